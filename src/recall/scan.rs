//! Chooses candidates: one pass over the codes of a user's cells, with the filters inside it, so that as many
//! candidates come out as pass the filters, up to the number asked for.

mod cells;

use std::cell::OnceCell;
use std::cmp::Ordering;
use std::collections::HashSet;

use crate::error::Result;
use crate::ids::SegmentId;
use crate::model::VectorSpace;
use crate::options::{CELL_SPREAD, EXACT_SCAN_ROWS_MAX};
use crate::simd::{Best, CodeQuery, Rounded, Scored};
use crate::storage::{Part, Snapshot};

use super::explain::Explain;
use super::rows::{ExactScorer, Place, RowFilter};
use cells::has_codes;

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
    /// Made when the first codes are scanned.
    codes: OnceCell<CodeQuery>,
    scorer: ExactScorer<'a>,
    /// Named by their places: which of two equal estimates is taken decides nothing.
    by_code: Best,
    exact: BestPlaces,
    /// The cells of clusters that were not scanned.
    waiting: Vec<Waiting>,
    /// The cells of clusters that were, and the parts without clusters that were scanned by codes.
    scanned: (Vec<Waiting>, Vec<u32>),
    /// Whether there are so few rows that all are compared by their vectors.
    is_small: bool,
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

    /// The cosine of the direction in which the cell lies; its rows are of unit length.
    pub fn direction_cosine(&self) -> f32 {
        self.cosine / (1.0 - self.radius * self.radius).max(1e-6).sqrt()
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
            codes: OnceCell::new(),
            scorer: ExactScorer::new(ground.query, ground.space),
            by_code: Best::new(most),
            exact: BestPlaces::new(depth),
            waiting: Vec::new(),
            scanned: (Vec::new(), Vec::new()),
            is_small: rows_of(ground.parts) < EXACT_SCAN_ROWS_MAX,
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
}

/// Rows of the segments, dead ones included.
pub(super) fn rows_of(parts: &[Part<'_>]) -> usize {
    let rows = |part: &Part<'_>| match part {
        Part::Cell { rows, .. } => rows.len(),
        Part::Log { .. } => 0,
    };
    parts.iter().map(rows).sum()
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
