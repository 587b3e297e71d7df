//! Which segments to merge. Pure: manifest rows in, a choice out.

use crate::ids::SegmentId;
use crate::options::{MERGE_FACTOR, MERGE_SEGMENT_BYTES_MAX, REWRITE_DEAD_SHARE};
use crate::storage::catalog::ManifestRow;

/// Bytes of the smallest size class: below, all segments are alike. A stated guess: a few dozen short turns.
const SMALLEST_BYTES: u64 = 64 << 10;

/// The segments to rewrite into one next: [`MERGE_FACTOR`] of one size class, smallest class first; else one whose
/// share of deleted rows exceeds [`REWRITE_DEAD_SHARE`]. `None`: nothing to gain.
pub fn choose(rows: &[&ManifestRow]) -> Option<Vec<SegmentId>> {
    let mut classes: Vec<(u32, u64, SegmentId)> = rows
        .iter()
        .filter(|row| row.bytes < MERGE_SEGMENT_BYTES_MAX)
        .map(|row| (size_class(row.bytes), row.ids.0, row.segment))
        .collect();
    classes.sort_unstable();
    for class in classes.chunk_by(|a, b| a.0 == b.0) {
        if class.len() >= MERGE_FACTOR {
            // Neighbours by id: ranges of ids stay apart, which look-ups profit from.
            return Some(class[..MERGE_FACTOR].iter().map(|(_, _, segment)| *segment).collect());
        }
    }
    let worst = rows.iter().max_by(|a, b| dead_share(a).total_cmp(&dead_share(b)))?;
    (dead_share(worst) > REWRITE_DEAD_SHARE).then(|| vec![worst.segment])
}

fn size_class(bytes: u64) -> u32 {
    (bytes / SMALLEST_BYTES).checked_ilog(MERGE_FACTOR as u64).map_or(0, |class| class + 1)
}

/// Rows that a rewrite would leave out. Superseded versions stay for `history` and do not count.
fn dead_share(row: &ManifestRow) -> f64 {
    f64::from(row.deleted_rows) / f64::from(row.rows.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(segment: u64, kib: u64, deleted_rows: u32) -> ManifestRow {
        ManifestRow {
            segment: SegmentId::new(segment),
            bytes: kib << 10,
            footer_crc: 0,
            rows: 100,
            dead_rows: deleted_rows,
            deleted_rows,
            dead_version: 0,
            ids: (segment * 100, segment * 100 + 99),
        }
    }

    fn check(rows: &[ManifestRow], expected: Option<&[u64]>) {
        let chosen = choose(&rows.iter().collect::<Vec<_>>());
        let expected = expected.map(|ids| ids.iter().copied().map(SegmentId::new).collect());
        assert_eq!(chosen, expected);
    }

    #[test]
    fn eight_of_a_class_are_merged_and_seven_are_not() {
        let rows: Vec<_> = (1..=8).map(|segment| row(segment, 10 + segment, 0)).collect();
        check(&rows[..7], None);
        check(&rows, Some(&[1, 2, 3, 4, 5, 6, 7, 8]));
    }

    #[test]
    fn segments_of_other_classes_stay_apart() {
        let rows: Vec<_> = (1..=8).map(|segment| row(segment, 10 << segment, 0)).collect();
        check(&rows, None);
    }

    #[test]
    fn the_segment_with_most_deleted_rows_is_rewritten_alone() {
        check(&[row(1, 900, 25), row(2, 900, 0)], None);
        check(&[row(1, 900, 26), row(2, 900, 40)], Some(&[2]));
    }
}
