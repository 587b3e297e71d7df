//! Chooses candidates: one pass over the codes of a user's cells, with the filters inside it, so that as many
//! candidates come out as pass the filters, up to the number asked for.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::ids::SegmentId;
use crate::model::{Record, VectorSpace};
use crate::options::{CELL_SPREAD, EXACT_SCAN_ROWS_MAX};
use crate::simd::{Best, CodeQuery, Codec, Rounded, Scored};
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
#[derive(Clone)]
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

/// What a scan goes through, and with what.
#[derive(Clone, Copy)]
pub(super) struct Ground<'a> {
    pub snapshot: &'a Snapshot,
    pub parts: &'a [Part<'a>],
    /// Of unit length.
    pub query: &'a [f32],
    pub space: &'a VectorSpace,
    pub filter: &'a RowFilter<'a>,
}

/// A scan under way: which cells are left, and the best rows of the others.
pub(super) struct Scan<'a> {
    ground: Ground<'a>,
    codes: Option<CodeQuery>,
    scorer: ExactScorer<'a>,
    /// Named by their places: which of two equal estimates is taken decides nothing.
    by_code: Best,
    exact: BestPlaces,
    /// The cells of clusters that were not scanned.
    waiting: Vec<Waiting>,
    /// The cells of clusters that were, and the parts without clusters that were scanned by codes.
    scanned: (Vec<Waiting>, Vec<u32>),
    segments: HashSet<SegmentId>,
    segments_visited: HashSet<SegmentId>,
}

/// A cell that was not scanned yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    part: u32,
    /// Which of the part's clusters.
    number: u32,
    rows: u32,
    /// The mean of the cosines of its rows, from the rounded centroid.
    pub cosine: f32,
    radius: f32,
}

impl Waiting {
    /// The nearest first.
    fn order(&self, other: &Waiting) -> Ordering {
        let place = |cell: &Waiting| (cell.part, cell.number);
        other.cosine.total_cmp(&self.cosine).then(place(self).cmp(&place(other)))
    }

    /// How many rows of the cell are to be expected above `cosine`, were its vectors spread about their mean alike in all
    /// directions, [`CELL_SPREAD`] times as far as they are.
    pub fn expected_above(&self, cosine: f32, dimension: usize) -> f32 {
        let deviation = CELL_SPREAD * self.radius / (dimension as f32).sqrt();
        self.rows as f32 * upper_tail((cosine - self.cosine) / deviation.max(1e-6))
    }
}

/// The share of a normal distribution above `deviations`, from above: exact to a factor of 2 for all that matters.
fn upper_tail(deviations: f32) -> f32 {
    if deviations <= 0.0 { 1.0 } else { (0.5 * (-0.5 * deviations * deviations).exp()).min(0.5) }
}

impl<'a> Scan<'a> {
    /// Scans the rows that are in no cluster, and orders the cells by their centroids. Keeps the best `most` rows by code,
    /// and the best `depth` of those that are scored exactly at once. Filters may leave few rows of a cell: with any, all
    /// cells are scanned at once.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub fn begin(
        ground: Ground<'a>,
        most: usize,
        depth: usize,
        explain: &mut Explain,
    ) -> Result<Scan<'a>> {
        let mut scan = Scan {
            ground,
            codes: ground.snapshot.codec().map(|codec| codec.query(ground.query)),
            scorer: ExactScorer::new(ground.query, ground.space),
            by_code: Best::new(most),
            exact: BestPlaces::new(depth),
            waiting: Vec::new(),
            scanned: (Vec::new(), Vec::new()),
            segments: HashSet::new(),
            segments_visited: HashSet::new(),
        };
        let is_open = ground.filter.is_open();
        let mut query = Rounded::new(ground.query.len());
        query.push(ground.query.iter().copied());
        for (part, rows) in (0..).zip(ground.parts) {
            match rows {
                Part::Log { records } => scan.log(part, records, explain)?,
                Part::Cell { segment, clusters: (first, clusters), .. }
                    if is_open
                        && !clusters.is_empty()
                        && has_codes(segment, ground.snapshot.codec()) =>
                {
                    scan.segments.insert(segment.id());
                    let centroids = segment.rounded_centroids()?;
                    for (number, cluster) in (*first..).zip(*clusters) {
                        scan.waiting.push(Waiting {
                            part,
                            number: number - first,
                            rows: cluster.entries.end - cluster.entries.start,
                            cosine: centroids.dot(number as usize, &query),
                            radius: cluster.radius,
                        });
                    }
                }
                Part::Cell { .. } => scan.cell(part, explain)?,
            }
        }
        explain.cells_scored += scan.waiting.len() as u64;
        explain.bytes_touched += (scan.waiting.len() * ground.query.len()) as u64;
        Ok(scan)
    }

    /// Scans the nearest `count` cells that are left.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub fn nearest(&mut self, count: usize, explain: &mut Explain) -> Result<()> {
        let count = count.min(self.waiting.len());
        if count > 0 && count < self.waiting.len() {
            self.waiting.select_nth_unstable_by(count - 1, Waiting::order);
        }
        let mut nearest: Vec<Waiting> = self.waiting.drain(..count).collect();
        self.clusters(&mut nearest, explain)
    }

    /// Scans those of the cells that are left that `wanted` names.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub fn widen(
        &mut self,
        wanted: impl Fn(&Waiting) -> bool,
        explain: &mut Explain,
    ) -> Result<()> {
        let (mut chosen, left): (Vec<Waiting>, _) =
            self.waiting.iter().partition(|cell| wanted(cell));
        self.waiting = left;
        explain.cells_widened += chosen.len() as u64;
        self.clusters(&mut chosen, explain)
    }

    /// Scans some cells, the nearest first.
    fn clusters(&mut self, cells: &mut [Waiting], explain: &mut Explain) -> Result<()> {
        cells.sort_unstable_by(Waiting::order);
        self.scanned.0.extend_from_slice(cells);
        cells.iter().try_for_each(|cell| self.cluster(cell, explain))
    }

    /// Keeps the best `most` rows by code from now on. What was scanned is scanned again for it: a search that is sure of its
    /// answer, as most are, gathers the fewer.
    ///
    /// # Errors
    /// `Corrupt`.
    pub fn keep(&mut self, most: usize) -> Result<()> {
        self.by_code = Best::new(most);
        let (cells, parts) = std::mem::take(&mut self.scanned);
        // Counted when they were scanned first.
        let mut counted = Explain::default();
        cells.iter().try_for_each(|cell| self.cluster(cell, &mut counted))?;
        parts.iter().try_for_each(|part| self.cell(*part, &mut counted))?;
        self.scanned = (cells, parts);
        Ok(())
    }

    /// Values of a vector.
    pub fn dimension(&self) -> usize {
        self.ground.query.len()
    }

    /// The cells that are left.
    pub fn waiting(&self) -> &[Waiting] {
        &self.waiting
    }

    /// What was found so far.
    pub fn found(&self) -> Candidates {
        let by_code = self.by_code.clone().into_unsorted().into_iter();
        let place =
            |(scored, row): (Scored, u32)| (Place { part: scored.name as u32, row }, scored.score);
        Candidates {
            by_code: by_code.map(place).collect(),
            exact: self.exact.clone().into_sorted(),
        }
    }

    /// Ends the scan.
    pub fn end(self, explain: &mut Explain) {
        explain.segments_visited = self.segments_visited.len() as u64;
        let skipped = self.segments.difference(&self.segments_visited).count();
        explain.segments_skipped = skipped as u64;
        explain.cells_passed_over += self.waiting.len() as u64;
    }

    fn log(&mut self, part: u32, records: &[Arc<Record>], explain: &mut Explain) -> Result<()> {
        for (row, record) in (0..).zip(records) {
            if !record.vector.is_empty() && self.ground.filter.passes_record(record)? {
                self.score(&record.vector, record.id.get(), Place { part, row }, explain)?;
            }
        }
        explain.log_rows += records.len() as u64;
        Ok(())
    }

    fn cell(&mut self, part: u32, explain: &mut Explain) -> Result<()> {
        let Part::Cell { segment, rows, times, dead, .. } = &self.ground.parts[part as usize]
        else {
            unreachable!("a part with rows of a segment");
        };
        self.segments.insert(segment.id());
        if !self.ground.filter.may_pass(*times) {
            explain.cells_skipped += 1;
            return Ok(());
        }
        explain.cells_visited += 1;
        self.segments_visited.insert(segment.id());
        let cell = Cell { segment, rows: rows.clone(), dead, part };
        let has_codes = has_codes(segment, self.ground.snapshot.codec());
        if !has_codes || rows.len() < EXACT_SCAN_ROWS_MAX {
            self.cell_exactly(&cell, explain)
        } else {
            self.scanned.1.push(part);
            self.cell_by_codes(&cell, explain)
        }
    }

    /// Estimates every row of a cluster by its code. There are no filters but life and expiry.
    fn cluster(&mut self, waiting: &Waiting, explain: &mut Explain) -> Result<()> {
        let part = waiting.part;
        let Part::Cell { segment, rows, dead, clusters, .. } = &self.ground.parts[part as usize]
        else {
            unreachable!("a part with clusters");
        };
        let Some(query) = &self.codes else { unreachable!("clusters come with codes") };
        explain.cells_visited += 1;
        self.segments_visited.insert(segment.id());
        let entries = clusters.1[waiting.number as usize].entries.clone();
        let members = segment.cluster_rows(entries.clone())?;
        let (codes, factors) = segment.cluster_codes(entries)?;
        let live = self.ground.filter.cell(segment, dead, rows.clone())?;
        let flags = segment.flags_column(rows.clone())?;
        let mut is_foreign = false;
        query.select(codes, factors, &mut self.by_code, |entry| {
            let row = u32::from_le_bytes(members[entry]);
            if !rows.contains(&row) {
                is_foreign = true;
                return None;
            }
            let index = (row - rows.start) as usize;
            let passes = flags[index] & ROW_HAS_VECTOR != 0 && live.passes(index, flags[index]);
            passes.then_some((u64::from(part), row))
        });
        if is_foreign {
            return Err(Error::corrupt("cluster holds a row that is not its user's")
                .in_file(segment.path()));
        }
        explain.rows_by_code += members.len() as u64;
        explain.bytes_touched += (codes.len() + size_of_val(factors)) as u64;
        Ok(())
    }
}

/// Whether the codes of `segment` can be scanned with `codec`. A segment written before the mean of the space was
/// fixed has none.
fn has_codes(segment: &Segment, codec: Option<&Arc<Codec>>) -> bool {
    codec.is_some_and(|codec| segment.code_bytes() == Some(codec.code_bytes()))
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
        let live = self.ground.filter.cell(cell.segment, cell.dead, rows.clone())?;
        let flags = cell.segment.flags_column(rows.clone())?;
        let mut failed = None;
        query.select(codes, factors, &mut self.by_code, |index| {
            if flags[index] & ROW_HAS_VECTOR == 0 || !live.passes(index, flags[index]) {
                return None;
            }
            let row = rows.start + index as u32;
            match self.ground.filter.passes_metadata(cell.segment, row) {
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
            if let Some(name) = name_of(self.ground.filter, cell, row)? {
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
        explain.bytes_touched += self.ground.space.vector_bytes() as u64;
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
