//! The rows nearest to a vector: the cells nearest to it are scanned by codes, and others as long as they may be expected to
//! hold an answer.

use crate::error::Result;
use crate::options::{EXPECTED_MISS_MAX, FIRST_CELLS_SHARE, RoutingOptions};
use crate::storage::Part;

use super::explain::Explain;
use super::plan::rerank_rows;
use super::rows::ExactScorer;
use super::scan::{Candidates, Ground, Scan, Waiting, rows_of};

/// Candidates for the `depth` rows nearest to the vector.
///
/// # Errors
/// `Corrupt`, `Io`.
pub(super) fn nearest_rows(
    ground: Ground<'_>,
    options: &RoutingOptions,
    depth: usize,
    explain: &mut Explain,
) -> Result<Candidates> {
    let most = rerank_rows(depth, rows_of(ground.parts));
    let mut scan = Scan::begin(ground, most, depth, explain)?;
    let first = options.cells.max(scan.waiting().len() / FIRST_CELLS_SHARE);
    scan.nearest(first, explain)?;
    if options.widen && !scan.waiting().is_empty() {
        let bar = bar(ground, &scan.found(), depth)?;
        let wanted = worth_scanning(&scan, bar, depth);
        scan.widen(wanted, explain)?;
    }
    let found = scan.found();
    scan.end(explain);
    Ok(found)
}

/// The cosine that `depth` of the rows found so far reach; none when there are fewer. The estimates choose whom to ask.
fn bar(ground: Ground<'_>, found: &Candidates, depth: usize) -> Result<Option<f32>> {
    let mut cosines: Vec<f32> = found.exact.iter().map(|(scored, _)| scored.score).collect();
    let mut estimated = found.by_code.clone();
    let most = (2 * depth).min(estimated.len());
    if most > 0 {
        estimated.select_nth_unstable_by(most - 1, |a, b| b.1.total_cmp(&a.1));
    }
    let mut scorer = ExactScorer::new(ground.query, ground.space);
    for (place, _) in &estimated[..most] {
        let Part::Cell { segment, .. } = &ground.parts[place.part as usize] else { continue };
        cosines.push(scorer.score(segment.vectors(place.row..place.row + 1)?)?);
    }
    if cosines.len() < depth {
        return Ok(None);
    }
    Ok(Some(*cosines.select_nth_unstable_by(depth - 1, |a, b| b.total_cmp(a)).1))
}

/// Which of the cells that are left are to be scanned, so that of `answers` rows few are to be expected in the others:
/// [`EXPECTED_MISS_MAX`]. `cosine`: what a row needs to be one of them; none when any row may be.
fn worth_scanning(
    scan: &Scan<'_>,
    cosine: Option<f32>,
    answers: usize,
) -> impl Fn(&Waiting) -> bool + use<> {
    let dimension = scan.dimension();
    let expected = move |cell: &Waiting| match cosine {
        Some(cosine) => cell.expected_above(cosine, dimension),
        None => f32::INFINITY,
    };
    let all = scan.waiting().iter().map(expected).collect();
    let least = tolerable(all, EXPECTED_MISS_MAX * answers as f32);
    move |cell| expected(cell) > least
}

/// The largest of `expected` below which all together come to no more than `most`; less than all when none may be missed.
fn tolerable(mut expected: Vec<f32>, most: f32) -> f32 {
    expected.sort_unstable_by(f32::total_cmp);
    let mut sum = 0.0;
    let mut least = -1.0;
    for one in expected {
        sum += one;
        if sum > most {
            break;
        }
        least = one;
    }
    least
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_cells_are_passed_over_as_may_be_missed() {
        assert_eq!(tolerable(vec![0.5, 0.01, 0.02, 3.0], 0.1), 0.02);
        assert_eq!(tolerable(vec![0.5, 0.2], 0.1), -1.0);
        assert_eq!(tolerable(vec![f32::INFINITY; 3], 0.1), -1.0);
        assert_eq!(tolerable(vec![0.0, 0.0], 0.1), 0.0);
        assert_eq!(tolerable(Vec::new(), 0.1), -1.0);
    }
}
