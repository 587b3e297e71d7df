//! The definition of a search, by vectors here and by words in `words`: every live row that passes the filters is scored
//! exactly, and all are sorted.
//!
//! Shares no choice of candidates with the ordinary path, so that each can be held against the other.

mod words;

use crate::error::Result;
use crate::model::VectorSpace;
use crate::simd::Scored;
use crate::storage::Part;

use super::explain::Explain;
use super::rank::Ranked;
use super::rows::{ExactScorer, Place, RowFilter};

pub(super) use words::words;

/// The `top_k` rows of `parts` nearest to `query`.
pub(super) fn search(
    parts: &[Part<'_>],
    query: &[f32],
    space: &VectorSpace,
    filter: &RowFilter<'_>,
    top_k: usize,
    explain: &mut Explain,
) -> Result<Ranked> {
    let mut scorer = ExactScorer::new(query, space);
    let mut all = Vec::new();
    for (part, rows) in (0..).zip(parts) {
        match rows {
            Part::Cell { segment, rows, dead, .. } => {
                for row in rows.clone() {
                    if !filter.passes(segment, dead, row)? {
                        continue;
                    }
                    if let Some(vector) = segment.vector(row)? {
                        let name = segment.id_of(row)?.get();
                        let score = scorer.score(vector).map_err(|error| error.of(name))?;
                        all.push((Scored { score, name }, Place { part, row }));
                    }
                }
                explain.cells_visited += 1;
            }
            Part::Log { records } => {
                for (row, record) in (0..).zip(records) {
                    if record.vector.is_empty() || !filter.passes_record(record)? {
                        continue;
                    }
                    let name = record.id.get();
                    let score = scorer.score(&record.vector).map_err(|error| error.of(name))?;
                    all.push((Scored { score, name }, Place { part, row }));
                }
                explain.log_rows += records.len() as u64;
            }
        }
    }
    explain.rows_exact = all.len() as u64;
    explain.rows_exact_at_once = all.len() as u64;
    explain.bytes_touched += (all.len() * space.vector_bytes()) as u64;
    all.sort_by(|(a, _), (b, _)| a.order(b));
    all.truncate(top_k);
    Ok(Ranked { rows: all })
}
