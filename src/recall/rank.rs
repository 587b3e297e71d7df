//! Orders candidates by their exact score.

use crate::error::Result;
use crate::model::VectorSpace;
use crate::simd::Scored;
use crate::storage::Part;

use super::explain::Explain;
use super::rows::{ExactScorer, Place};
use super::scan::{BestPlaces, Candidates};

/// Vectors that the processor is told of before they are scored. They lie far apart; `benches/codes.rs` measured four.
const PREFETCHED_ROWS: usize = 4;

/// The answer's rows, best first: larger scores first by `total_cmp`, equal ones by the smaller id.
pub(super) struct Ranked {
    pub rows: Vec<(Scored, Place)>,
}

/// Scores the candidates that were chosen by code exactly, and orders all by score.
pub(super) fn rank(
    candidates: Candidates,
    parts: &[Part<'_>],
    query: &[f32],
    space: &VectorSpace,
    top_k: usize,
    explain: &mut Explain,
) -> Result<Ranked> {
    let mut best = BestPlaces::new(top_k);
    for (scored, place) in &candidates.exact {
        best.push(scored.score, scored.name, *place);
    }
    let mut scorer = ExactScorer::new(query, space);
    let stored = |&(place, _): &(Place, f32)| {
        let Part::Cell { segment, .. } = &parts[place.part as usize] else {
            unreachable!("only rows of cells have codes");
        };
        // The scan has passed over rows without a vector.
        let id = segment.id_of(place.row)?.get();
        Ok((id, place, segment.vectors(place.row..place.row + 1)?))
    };
    let rows = candidates.by_code.iter().map(stored).collect::<Result<Vec<_>>>()?;
    for (at, (id, place, vector)) in rows.iter().enumerate() {
        if let Some((_, _, ahead)) = rows.get(at + PREFETCHED_ROWS) {
            ExactScorer::expect(ahead);
        }
        let score = scorer.score(vector).map_err(|error| error.of(*id))?;
        best.push(score, *id, *place);
    }
    explain.rows_exact += candidates.by_code.len() as u64;
    explain.bytes_touched += (candidates.by_code.len() * space.vector_bytes()) as u64;
    Ok(Ranked { rows: best.into_sorted() })
}
