//! One user's rows in one numbering: those of the segments first, segment by segment, then those of the logs.

use std::ops::Range;
use std::sync::Arc;

use crate::error::Result;
use crate::ids::EpisodeId;
use crate::model::{Frequencies, Record};
use crate::simd;
use crate::storage::segment::{Counts, PassageLength, Posting};
use crate::storage::{Part, Snapshot};

use super::cache::{Entry, IndexCache, Stored};
use super::log_rows::LogRows;
use super::run::{Code, Run};
use super::speakers::Speakers;

/// Stands for no row.
pub(crate) const NO_ROW: u32 = u32::MAX;

/// The rows of one user in one snapshot. A row or passage that is asked for must be below [`UserRows::len`] or
/// [`UserRows::passage_count`].
pub(crate) struct UserRows<'s> {
    snapshot: &'s Snapshot,
    runs: Vec<Run<'s>>,
    /// Rows and passages of the segments.
    stored: (u32, u32),
    counts: Counts,
    kept: Arc<Entry>,
}

/// Where a row lies.
pub(crate) enum At<'r, 's> {
    /// A run, and the row's index in it.
    Run(&'r Run<'s>, u32),
    /// A row that only the logs hold.
    Log(&'r Arc<Record>),
}

impl<'s> UserRows<'s> {
    /// The rows of `user`, whose parts of the snapshot are `parts`. What `cache` holds of them is used and renewed.
    ///
    /// # Errors
    /// `Corrupt`, `Io`; `Limit` above 2^32 rows.
    pub fn new(
        snapshot: &'s Snapshot,
        user: &[u8],
        parts: &[Part<'s>],
        cache: &IndexCache,
    ) -> Result<UserRows<'s>> {
        let runs = match snapshot.user_number(user)? {
            Some(number) => Run::all(number, parts)?,
            None => Vec::new(),
        };
        let records = parts.iter().find_map(|part| match part {
            Part::Log { records } => Some(&records[..]),
            Part::Cell { .. } => None,
        });
        let kept = cache.entry(snapshot, user, &runs, records.unwrap_or_default())?;
        Ok(UserRows {
            snapshot,
            stored: runs.last().map_or((0, 0), Run::ends),
            runs,
            counts: snapshot.counts(user)?,
            kept,
        })
    }

    pub fn snapshot(&self) -> &'s Snapshot {
        self.snapshot
    }

    /// Live counts of the user.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// The runs of the segments.
    pub fn runs(&self) -> &[Run<'s>] {
        &self.runs
    }

    /// The rows of the logs.
    pub fn log(&self) -> &LogRows {
        &self.kept.log
    }

    /// Rows, dead ones included.
    pub fn len(&self) -> u32 {
        self.stored.0 + self.log().len()
    }

    /// Passages, those of dead rows included.
    pub fn passage_count(&self) -> u32 {
        self.stored.1 + self.log().lengths().len() as u32
    }

    /// Who spoke.
    pub fn speakers(&self) -> &Speakers {
        &self.kept.speakers
    }

    /// Where a row lies.
    pub fn at(&self, row: u32) -> At<'_, 's> {
        match row.checked_sub(self.stored.0) {
            Some(at) => At::Log(self.log().record(at)),
            None => {
                let run = self.run_of(row);
                At::Run(run, row - run.first)
            }
        }
    }

    /// The place of one of [`UserRows::runs`] among them.
    pub fn number_of(&self, run: &Run<'_>) -> usize {
        self.runs.partition_point(|other| other.first < run.first)
    }

    /// The run of a stored row.
    fn run_of(&self, row: u32) -> &Run<'s> {
        let behind = self.runs.partition_point(|run| run.first <= row);
        &self.runs[behind - 1]
    }

    pub fn is_live(&self, row: u32) -> bool {
        match row.checked_sub(self.stored.0) {
            Some(at) => self.log().is_live(at),
            None => {
                let run = self.run_of(row);
                run.is_live(row - run.first)
            }
        }
    }

    pub fn id(&self, row: u32) -> u64 {
        match self.at(row) {
            At::Run(run, at) => run.id(at),
            At::Log(record) => record.id.get(),
        }
    }

    /// Tells the processor that the passages of a row and the rows around it are asked for soon.
    pub fn expect(&self, row: u32) {
        if row < self.stored.0 {
            let Stored { starts, order } = &*self.kept.stored;
            simd::prefetch(&starts[row as usize..=row as usize + 1]);
            order.expect(row);
        }
    }

    /// Tells the processor that the length of a passage is asked for soon.
    pub fn expect_length(&self, passage: u32) {
        if passage < self.stored.1 {
            let behind = self.runs.partition_point(|run| run.first_passage <= passage);
            let run = &self.runs[behind - 1];
            run.expect_length(passage - run.first_passage);
        }
    }

    /// Tells the processor that the counts of a row's words are asked for soon.
    pub fn expect_words(&self, row: u32) {
        if let At::Run(run, at) = self.at(row) {
            run.expect_words(at);
        }
    }

    /// Words of a row's text.
    pub fn words(&self, row: u32) -> u32 {
        match self.at(row) {
            At::Run(run, at) => run.words(at),
            At::Log(record) => record.shape.words,
        }
    }

    /// The stored vector of a row, if it has one.
    ///
    /// # Errors
    /// `Corrupt`.
    pub fn vector(&self, row: u32) -> Result<Option<&[u8]>> {
        match self.at(row) {
            At::Run(run, at) => run.vector(at),
            At::Log(record) => Ok(Some(&record.vector[..]).filter(|vector| !vector.is_empty())),
        }
    }

    /// The passages of a row; at least one.
    pub fn passages(&self, row: u32) -> Range<u32> {
        match row.checked_sub(self.stored.0) {
            Some(at) => {
                let (starts, first, at) = (self.log().starts(), self.stored.1, at as usize);
                first + starts[at]..first + starts[at + 1]
            }
            None => {
                let (starts, at) = (&self.kept.stored.starts, row as usize);
                starts[at]..starts[at + 1]
            }
        }
    }

    /// The length of a passage.
    pub fn length(&self, passage: u32) -> PassageLength {
        match passage.checked_sub(self.stored.1) {
            Some(at) => self.log().lengths()[at as usize],
            None => {
                let behind = self.runs.partition_point(|run| run.first_passage <= passage);
                let run = &self.runs[behind - 1];
                run.length(passage - run.first_passage)
            }
        }
    }

    /// The live rows before and after a live row in its session; [`NO_ROW`] for none.
    pub fn around(&self, row: u32) -> [u32; 2] {
        match row.checked_sub(self.stored.0) {
            Some(at) => self.kept.log_order.of_log(at),
            None => match self.kept.log_order.of_stored(row) {
                Some(around) => around,
                None => self.kept.stored.order.around(&self.runs, row),
            },
        }
    }

    /// A live row and those around it.
    pub fn with_around(&self, row: u32) -> impl Iterator<Item = u32> + use<> {
        let [previous, next] = self.around(row);
        [row, previous, next].into_iter().filter(|row| *row != NO_ROW)
    }

    /// Hands every live passage that holds `term` to `each`, with its row: ascending. Returns how many there are, which
    /// is the document frequency. `scratch` is overwritten.
    ///
    /// # Errors
    /// `Corrupt`.
    pub fn postings(
        &self,
        term: &str,
        scratch: &mut Vec<Posting>,
        mut each: impl FnMut(u32, u32, Frequencies),
    ) -> Result<u64> {
        let mut live = 0;
        let starts = &self.kept.stored.starts;
        for run in &self.runs {
            let Some(lexicon) = &run.lexicon else { continue };
            let Some(postings) = lexicon.find(term)? else { continue };
            let last = run.first + run.len();
            // Turns are mostly short: a passage each.
            let is_even = run.passages.end - run.passages.start == run.len();
            let mut row = run.first;
            for block in 0..postings.block_count() {
                postings.decode(block, scratch)?;
                for posting in scratch.iter() {
                    let at = posting.passage - run.passages.start;
                    let passage = at + run.first_passage;
                    row = if is_even { run.first + at } else { row_of(starts, passage, row, last) };
                    if run.is_live(row - run.first) {
                        live += 1;
                        each(passage, row, posting.frequencies);
                    }
                }
            }
        }
        let mut row = 0;
        let log = self.log();
        for posting in log.postings(term) {
            row = row_of(log.starts(), posting.passage, row, log.len());
            if log.is_live(row) {
                live += 1;
                let (rows, passages) = self.stored;
                each(passages + posting.passage, rows + row, posting.frequencies);
            }
        }
        Ok(live)
    }

    /// The number of the row at `row` of a part of the same snapshot; `id` is its episode.
    pub fn row_at(&self, part: &Part<'_>, row: u32, id: u64) -> Option<u32> {
        match part {
            Part::Cell { segment, .. } => {
                let run = self.runs.iter().find(|run| run.segment.id() == segment.id())?;
                Some(run.first + row.checked_sub(run.rows.start)?)
            }
            Part::Log { .. } => {
                self.log().row_of(EpisodeId::new(id)).map(|row| self.stored.0 + row)
            }
        }
    }

    /// Whether the row is of a segment with codes of the database's codec.
    pub fn has_code(&self, row: u32) -> bool {
        let wanted = self.snapshot.codec().map(|codec| codec.code_bytes());
        match self.at(row) {
            At::Run(run, _) => wanted.is_some() && run.segment.code_bytes() == wanted,
            At::Log(_) => false,
        }
    }

    /// The code of a row's vector and its factor, if it has one.
    ///
    /// # Errors
    /// `Corrupt`.
    pub fn code(&self, row: u32) -> Result<Option<Code<'_>>> {
        match self.at(row) {
            At::Run(run, at) if self.has_code(row) => run.code(at),
            _ => Ok(None),
        }
    }
}

/// The row of `passage`, which is in `from..to`: steps that double, then halves. `starts`: the first passage of each
/// row, ascending.
fn row_of(starts: &[u32], passage: u32, from: u32, to: u32) -> u32 {
    let (mut low, mut step) = (from, 1);
    while low + step < to && starts[(low + step) as usize] <= passage {
        low += step;
        step *= 2;
    }
    let high = (low + step).min(to);
    let within = &starts[low as usize..high as usize];
    low + within.partition_point(|start| *start <= passage).saturating_sub(1) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_passage_leads_to_its_row_from_anywhere_before() {
        let starts = [0, 1, 4, 5, 6, 10, 11, 12, 13, 20];
        for row in 0..9u32 {
            for passage in starts[row as usize]..starts[row as usize + 1] {
                for from in 0..=row {
                    assert_eq!(row_of(&starts, passage, from, 9), row);
                }
            }
        }
    }
}
