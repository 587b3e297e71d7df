//! A segment file of arbitrary bytes: every accessor answers or fails, in bounded memory.

use std::ops::Range;

use loomdb::Result;
use loomdb::internals::ids::{EpisodeId, UserNumber};
use loomdb::internals::model::RowKind;
use loomdb::internals::storage::segment::Segment;
use loomdb::internals::storage::vfs::Map;

use super::DATABASE;

/// Rows read one by one, at most. A segment may state many rows in few bytes only where a column is empty, which is
/// refused, so this bounds time and nothing else.
const ROWS_MAX: u32 = 256;

/// The bytes are the file.
pub fn run(data: &[u8]) {
    let map = Map::from_bytes(data.into());
    let Ok(segment) = Segment::open(map, "/f.loom/segments/0000002a.seg", DATABASE, None) else {
        return;
    };
    let _ = tables(&segment);
    let rows = segment.rows();
    for row in (0..rows.min(ROWS_MAX)).chain([rows.saturating_sub(1), rows, u32::MAX]) {
        row_of(&segment, row);
    }
    let ids = segment.ids();
    for id in [0, ids.0, ids.0.wrapping_add(1), ids.1, u64::MAX] {
        if let Ok(found) = segment.find(EpisodeId::new(id)) {
            assert!(found.take(ROWS_MAX as usize).all(|row| row < rows));
        }
        let _ = segment.row_of(EpisodeId::new(id), 1);
    }
    for range in [0..rows, 0..0, rows / 2..rows, rows..u32::MAX, backwards(rows)] {
        let _ = columns(&segment, range);
    }
    segment.verify(false);
    segment.verify(true);
}

fn backwards(rows: u32) -> Range<u32> {
    Range { start: rows, end: rows / 2 }
}

fn tables(segment: &Segment) -> Result<()> {
    for cell in segment.cells() {
        assert!(cell.rows.start < cell.rows.end && cell.rows.end <= segment.rows());
        assert!(!segment.cells_of(cell.user, cell.kind).is_empty());
    }
    assert!(segment.cells_of(UserNumber::new(u64::MAX - 1), RowKind::Tag).len() <= 1 << 20);
    let _ = segment.tombstones();
    let _ = segment.sessions();
    let _ = segment.codec();
    for (user, name) in segment.users()? {
        let _ = lexicon(segment, user);
        let _ = segment.speakers(user);
        assert!(segment.user_name(user)?.is_some_and(|found| found == name));
    }
    Ok(())
}

/// Every term, and what a look-up of it finds.
fn lexicon(segment: &Segment, user: UserNumber) -> Result<()> {
    let Some(lexicon) = segment.lexicon(user)? else { return Ok(()) };
    let passages = lexicon.passages();
    let _ = lexicon.find("2024");
    let (mut terms, mut block) = (lexicon.terms(), Vec::new());
    while let Some((term, postings)) = terms.next()? {
        assert!(!term.is_empty() && postings.len() <= passages.end - passages.start);
        let _ = lexicon.find(term);
        for number in 0..postings.block_count() {
            let _ = postings.block_last(number);
            if postings.decode(number, &mut block).is_ok() {
                assert!(block.is_sorted_by(|a, b| a.passage < b.passage));
                assert!(block.iter().all(|posting| passages.contains(&posting.passage)));
            }
        }
    }
    Ok(())
}

fn row_of(segment: &Segment, row: u32) {
    let mut body = Vec::new();
    let results = [
        segment.head(row).is_ok(),
        segment.body(row, &mut body).is_ok(),
        segment.body_decoded(row).is_ok(),
        segment.vector(row).is_ok(),
        segment.id_of(row).is_ok(),
        segment.version(row).is_ok(),
        segment.time(row).is_ok(),
        segment.has_vector(row).is_ok(),
        segment.speaker_column(row..row.saturating_add(1)).is_ok(),
        segment.passages_of(row..row.saturating_add(1)).is_ok(),
    ];
    assert!(row < segment.rows() || results == [false; 10], "row {row} is beyond the segment");
    let file = segment.bytes() as usize;
    assert!(body.len() <= file.saturating_mul(1024), "a body of {} bytes", body.len());
}

fn columns(segment: &Segment, rows: Range<u32>) -> Result<()> {
    let _ = segment.id_column(rows.clone());
    let _ = segment.times(rows.clone());
    let _ = segment.expiries(rows.clone());
    let _ = segment.session_column(rows.clone());
    let _ = segment.flags_column(rows.clone());
    let _ = segment.codes(rows.clone());
    let _ = segment.factors(rows.clone());
    let _ = segment.words(rows.clone());
    let _ = segment.content_words(rows.clone());
    let _ = segment.speaker_column(rows.clone());
    let _ = segment.passage_starts(rows.clone());
    let _ = segment.passage_lengths(rows.clone());
    segment.vectors(rows).map(drop)
}
