//! One user's rows in one numbering: those of the segments first, segment by segment, then those of the logs.

use std::ops::Range;
use std::sync::Arc;

use crate::error::Result;
use crate::ids::EpisodeId;
use crate::model::{Frequencies, Record};
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
            let Stored { passages, order } = &*self.kept.stored;
            passages.expect(row);
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
            None => self.kept.stored.passages.of(row),
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

    /// Hands every live passage that holds `term` to `each`: ascending. Returns how many there are, which is the document
    /// frequency. `scratch` is overwritten.
    ///
    /// # Errors
    /// `Corrupt`.
    pub fn postings(
        &self,
        term: &str,
        scratch: &mut Vec<Posting>,
        mut each: impl FnMut(u32, Frequencies),
    ) -> Result<u64> {
        let mut live = 0;
        for run in &self.runs {
            let Some(lexicon) = &run.lexicon else { continue };
            let Some(postings) = lexicon.find(term)? else { continue };
            for block in 0..postings.block_count() {
                postings.decode(block, scratch)?;
                for posting in scratch.iter() {
                    let passage = posting.passage - run.passages.start + run.first_passage;
                    if !run.has_dead || run.is_live(self.row_of(passage) - run.first) {
                        live += 1;
                        each(passage, posting.frequencies);
                    }
                }
            }
        }
        let log = self.log();
        for posting in log.postings(term) {
            if log.is_live(log.row_of_passage(posting.passage)) {
                live += 1;
                each(self.stored.1 + posting.passage, posting.frequencies);
            }
        }
        Ok(live)
    }

    /// The row of a passage.
    pub fn row_of(&self, passage: u32) -> u32 {
        match passage.checked_sub(self.stored.1) {
            Some(passage) => self.stored.0 + self.log().row_of_passage(passage),
            None => self.kept.stored.passages.row_of(passage),
        }
    }

    /// Tells the processor that the row of a passage is asked for soon.
    pub fn expect_row_of(&self, passage: u32) {
        if passage < self.stored.1 {
            self.kept.stored.passages.expect_row_of(passage);
        }
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
