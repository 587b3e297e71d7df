//! Cells, scanned: by the codes of their rows, or by the vectors where there are few.

use std::ops::Range;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::model::Record;
use crate::options::EXACT_SCAN_ROWS_MAX;
use crate::simd::Codec;
use crate::storage::Part;
use crate::storage::dead::DeadRows;
use crate::storage::segment::{ROW_HAS_VECTOR, Segment};

use super::super::explain::Explain;
use super::super::rows::{Place, RowFilter};
use super::{Scan, Waiting};

/// Whether the codes of `segment` can be scanned with `codec`. A segment written before the mean of the space was
/// fixed has none.
pub(super) fn has_codes(segment: &Segment, codec: Option<&Arc<Codec>>) -> bool {
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
    pub(super) fn log(
        &mut self,
        part: u32,
        records: &[Arc<Record>],
        explain: &mut Explain,
    ) -> Result<()> {
        for (row, record) in (0..).zip(records) {
            if !record.vector.is_empty() && self.ground.filter.passes_record(record)? {
                self.score(&record.vector, record.id.get(), Place { part, row }, explain)?;
            }
        }
        explain.log_rows += records.len() as u64;
        Ok(())
    }

    pub(super) fn cell(&mut self, part: u32, explain: &mut Explain) -> Result<()> {
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
        if self.is_small || !has_codes(segment, self.ground.snapshot.codec()) {
            return self.cell_exactly(&cell, explain);
        }
        match self.few_passing(&cell)? {
            Some(few) => self.rows_exactly(&cell, few, explain),
            None => {
                self.scanned.1.push(part);
                self.cell_by_codes(&cell, explain)
            }
        }
    }

    /// Estimates every row of a cluster by its code. There are no filters but life and expiry.
    pub(super) fn cluster(&mut self, waiting: &Waiting, explain: &mut Explain) -> Result<()> {
        let part = waiting.part;
        let Part::Cell { segment, rows, dead, clusters, .. } = &self.ground.parts[part as usize]
        else {
            unreachable!("a part with clusters");
        };
        let Some(codec) = self.ground.snapshot.codec() else {
            unreachable!("clusters come with codes")
        };
        let query = self.codes.get_or_init(|| codec.query(self.ground.query));
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

    /// Estimates every row of a cell by its code; asks the filters only about rows that may be among the best.
    fn cell_by_codes(&mut self, cell: &Cell<'_>, explain: &mut Explain) -> Result<()> {
        let rows = &cell.rows;
        let (Some(codec), Some(codes), Some(factors)) = (
            self.ground.snapshot.codec(),
            cell.segment.codes(rows.clone())?,
            cell.segment.factors(rows.clone())?,
        ) else {
            return self.cell_exactly(cell, explain);
        };
        // The whole columns at once: a row that may be among the best is looked up without checking its blocks anew.
        let live = self.ground.filter.cell(cell.segment, cell.dead, rows.clone())?;
        let flags = cell.segment.flags_column(rows.clone())?;
        let mut failed = None;
        let query = self.codes.get_or_init(|| codec.query(self.ground.query));
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

    /// The rows of a cell that pass, when filters leave fewer than the codes are worth: they would all be compared anyway.
    fn few_passing(&self, cell: &Cell<'_>) -> Result<Option<Vec<u32>>> {
        if self.ground.filter.is_open() {
            return Ok(None);
        }
        let live = self.ground.filter.cell(cell.segment, cell.dead, cell.rows.clone())?;
        let flags = cell.segment.flags_column(cell.rows.clone())?;
        let passing = (0..flags.len()).filter(|index| live.passes(*index, flags[*index]));
        let few: Vec<u32> =
            passing.map(|index| cell.rows.start + index as u32).take(EXACT_SCAN_ROWS_MAX).collect();
        Ok(Some(few).filter(|few| few.len() < EXACT_SCAN_ROWS_MAX))
    }

    /// Scores every row of a cell exactly.
    fn cell_exactly(&mut self, cell: &Cell<'_>, explain: &mut Explain) -> Result<()> {
        self.rows_exactly(cell, cell.rows.clone(), explain)
    }

    /// Scores some rows of a cell exactly.
    fn rows_exactly(
        &mut self,
        cell: &Cell<'_>,
        rows: impl IntoIterator<Item = u32>,
        explain: &mut Explain,
    ) -> Result<()> {
        for row in rows {
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
