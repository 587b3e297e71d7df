//! Chooses candidates: one pass over the codes of a user's cells, with the filters inside it, so that as many
//! candidates come out as pass the filters, up to the number asked for.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::model::VectorSpace;
use crate::options::EXACT_SCAN_ROWS_MAX;
use crate::simd::{Best, CodeQuery, Codec, Scored};
use crate::storage::dead::DeadRows;
use crate::storage::segment::{ROW_HAS_VECTOR, Segment};
use crate::storage::{Part, Snapshot};

use super::explain::Explain;
use super::rows::{ExactScorer, Place, RowFilter};

/// Rows worth scoring.
pub(super) struct Candidates {
    /// The best rows by the estimate of their codes, in no order, with the estimates: to be scored exactly.
    pub by_code: Vec<(Place, f32)>,
    /// The best of the rows that were scored exactly at once: those of small cells, of cells without codes, and of
    /// the logs.
    pub exact: Vec<(Scored, Place)>,
}

/// Keeps the best rows and where they lie. Rows are named by id, so that equal scores go to the smaller id wherever
/// the rows lie.
pub(super) struct BestPlaces {
    best: Best,
    /// Every row that was among the best at some time.
    places: Vec<Place>,
}

impl BestPlaces {
    pub fn new(most: usize) -> BestPlaces {
        BestPlaces { best: Best::new(most), places: Vec::new() }
    }

    pub fn push(&mut self, score: f32, id: u64, place: Place) {
        self.best.push(Scored { score, name: id }, keep(&mut self.places, place));
    }

    /// The best rows, best first.
    pub fn into_sorted(self) -> Vec<(Scored, Place)> {
        let place = |(scored, at)| (scored, self.places[at as usize]);
        self.best.into_sorted().into_iter().map(place).collect()
    }
}

/// Where `place` stands among `places` once it is added.
fn keep(places: &mut Vec<Place>, place: Place) -> u32 {
    places.push(place);
    // A row is a number of 32 bits within its segment; a search that meets more rows than that meets them for hours.
    u32::try_from(places.len() - 1).expect("fewer rows than 2^32 are scored by one search")
}

/// Scans `parts` for the rows nearest to `query`: the best `most` by code, and the best `depth` of those that are scored
/// exactly at once.
pub(super) fn scan(
    snapshot: &Snapshot,
    parts: &[Part<'_>],
    query: &[f32],
    space: &VectorSpace,
    (most, depth): (usize, usize),
    filter: &RowFilter<'_>,
    explain: &mut Explain,
) -> Result<Candidates> {
    let codec = snapshot.codec();
    let mut scan = Scan {
        codes: codec.map(|codec| codec.query(query)),
        scorer: ExactScorer::new(query, space),
        vector_bytes: space.vector_bytes(),
        filter,
        by_code: Best::new(most),
        exact: BestPlaces::new(depth),
    };
    let mut segments = HashSet::new();
    let mut segments_visited = HashSet::new();
    for (part, rows) in (0..).zip(parts) {
        match rows {
            Part::Log { records } => {
                for (row, record) in (0..).zip(records) {
                    if !record.vector.is_empty() && filter.passes_record(record)? {
                        let place = Place { part, row };
                        scan.score(&record.vector, record.id.get(), place, explain)?;
                    }
                }
                explain.log_rows += records.len() as u64;
            }
            Part::Cell { segment, rows, times, dead } => {
                segments.insert(segment.id());
                if !filter.may_pass(*times) {
                    explain.cells_skipped += 1;
                    continue;
                }
                explain.cells_visited += 1;
                segments_visited.insert(segment.id());
                let cell = Cell { segment, rows: rows.clone(), dead, part };
                if rows.len() < EXACT_SCAN_ROWS_MAX || !has_codes(segment, codec) {
                    scan.cell_exactly(&cell, explain)?;
                } else {
                    scan.cell_by_codes(&cell, explain)?;
                }
            }
        }
    }
    explain.segments_visited = segments_visited.len() as u64;
    explain.segments_skipped = (segments.len() - segments_visited.len()) as u64;
    let by_code = scan.by_code.into_unsorted().into_iter();
    let by_code =
        by_code.map(|(scored, row)| (Place { part: scored.name as u32, row }, scored.score));
    Ok(Candidates { by_code: by_code.collect(), exact: scan.exact.into_sorted() })
}

/// Whether the codes of `segment` can be scanned with `codec`. A segment written before the mean of the space was
/// fixed has none.
fn has_codes(segment: &Segment, codec: Option<&Arc<Codec>>) -> bool {
    codec.is_some_and(|codec| segment.code_bytes() == Some(codec.code_bytes()))
}

struct Scan<'a> {
    codes: Option<CodeQuery>,
    scorer: ExactScorer<'a>,
    vector_bytes: usize,
    filter: &'a RowFilter<'a>,
    /// Named by their places: which of two equal estimates is taken decides nothing.
    by_code: Best,
    exact: BestPlaces,
}

/// A cell to scan.
struct Cell<'a> {
    segment: &'a Segment,
    rows: Range<u32>,
    dead: &'a DeadRows,
    part: u32,
}

impl Scan<'_> {
    /// Estimates every row of a cell by its code; asks the filters only about rows that may be among the best.
    fn cell_by_codes(&mut self, cell: &Cell<'_>, explain: &mut Explain) -> Result<()> {
        let rows = &cell.rows;
        let (Some(query), Some(codes), Some(factors)) =
            (&self.codes, cell.segment.codes(rows.clone())?, cell.segment.factors(rows.clone())?)
        else {
            return self.cell_exactly(cell, explain);
        };
        // The whole columns at once: a row that may be among the best is looked up without checking its blocks anew.
        let live = self.filter.cell(cell.segment, cell.dead, rows.clone())?;
        let flags = cell.segment.flags_column(rows.clone())?;
        let mut failed = None;
        query.select(codes, factors, &mut self.by_code, |index| {
            if flags[index] & ROW_HAS_VECTOR == 0 || !live.passes(index, flags[index]) {
                return None;
            }
            let row = rows.start + index as u32;
            match self.filter.passes_metadata(cell.segment, row) {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => {
                    failed.get_or_insert(error);
                    return None;
                }
            }
            Some((u64::from(cell.part), row))
        });
        if let Some(error) = failed {
            return Err(error);
        }
        explain.rows_by_code += rows.len() as u64;
        explain.bytes_touched += (codes.len() + size_of_val(factors)) as u64;
        Ok(())
    }

    /// Scores every row of a cell exactly.
    fn cell_exactly(&mut self, cell: &Cell<'_>, explain: &mut Explain) -> Result<()> {
        for row in cell.rows.clone() {
            if let Some(name) = name_of(self.filter, cell, row)? {
                let vector = vector_of(cell.segment, row)?;
                self.score(vector, name, Place { part: cell.part, row }, explain)?;
            }
        }
        Ok(())
    }

    fn score(&mut self, vector: &[u8], id: u64, place: Place, explain: &mut Explain) -> Result<()> {
        let score = self.scorer.score(vector).map_err(|error| error.of(id))?;
        self.exact.push(score, id, place);
        explain.rows_exact += 1;
        explain.rows_exact_at_once += 1;
        explain.bytes_touched += self.vector_bytes as u64;
        Ok(())
    }
}

/// The id of a row that has a vector, is live and passes the filters.
fn name_of(filter: &RowFilter<'_>, cell: &Cell<'_>, row: u32) -> Result<Option<u64>> {
    if !cell.segment.has_vector(row)? || !filter.passes(cell.segment, cell.dead, row)? {
        return Ok(None);
    }
    Ok(Some(cell.segment.id_of(row)?.get()))
}

/// The stored vector of a row that has one.
fn vector_of(segment: &Segment, row: u32) -> Result<&[u8]> {
    segment.vector(row)?.ok_or_else(|| Error::corrupt("row without the vector that its flags name"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_rows_keep_their_places_and_ties_go_to_the_smaller_id() {
        let mut best = BestPlaces::new(3);
        for id in (0..100u64).rev() {
            let score = if id % 10 == 7 { 1.0 } else { 0.5 };
            best.push(score, id, Place { part: 0, row: id as u32 * 2 });
        }
        let rows: Vec<_> =
            best.into_sorted().iter().map(|(row, place)| (row.name, place.row)).collect();
        assert_eq!(rows, [(7, 14), (17, 34), (27, 54)]);
    }
}
