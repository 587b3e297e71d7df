//! The rows of one user that only the logs hold, in the columns that a segment has.
//!
//! Invariant: rows are only ever added at the end and marked as gone, so that a table grows with the logs instead of
//! being built again for every commit.

use std::collections::HashMap;
use std::sync::Arc;

use crate::ids::EpisodeId;
use crate::model::{Frequencies, Record};
use crate::storage::segment::{PassageLength, Posting};

/// Share of rows that are gone above which the table is built anew: one in `1 << GONE_SHIFT`.
const GONE_SHIFT: u32 = 2;

/// The table.
#[derive(Clone, Debug, Default)]
pub struct LogRows {
    records: Vec<Arc<Record>>,
    live: Vec<bool>,
    gone: usize,
    place: HashMap<EpisodeId, u32>,
    /// First passage of each row, and the end.
    starts: Vec<u32>,
    lengths: Vec<PassageLength>,
    postings: HashMap<Box<str>, Vec<Posting>>,
}

impl LogRows {
    /// Brings the table to `records`, the live rows of the logs.
    pub fn update(&mut self, records: &[Arc<Record>]) {
        let known = |table: &LogRows, record: &Arc<Record>| {
            let place = table.place.get(&record.id);
            place.is_some_and(|place| table.records[*place as usize].version == record.version)
        };
        let kept = records.iter().filter(|record| known(self, record)).count();
        let live = self.records.len() - self.gone;
        if kept < live {
            if (live - kept + self.gone) << GONE_SHIFT > self.records.len() {
                *self = LogRows::default();
            } else {
                self.drop_all_but(records);
            }
        }
        for record in records {
            if !known(self, record) {
                self.add(record.clone());
            }
        }
    }

    fn drop_all_but(&mut self, records: &[Arc<Record>]) {
        let kept: HashMap<EpisodeId, u32> =
            records.iter().map(|record| (record.id, record.version)).collect();
        for (at, record) in self.records.iter().enumerate() {
            if self.live[at] && kept.get(&record.id) != Some(&record.version) {
                self.live[at] = false;
                self.gone += 1;
                if self.place.get(&record.id) == Some(&(at as u32)) {
                    self.place.remove(&record.id);
                }
            }
        }
    }

    fn add(&mut self, record: Arc<Record>) {
        let row = self.records.len() as u32;
        let terms = record.terms.clone().expect("a row of the logs has its terms");
        let head_halves = terms.head_half_terms();
        if self.starts.is_empty() {
            self.starts.push(0);
        }
        for passage in &terms.passages {
            let number = self.lengths.len() as u32;
            let text = passage.iter().map(|term| u32::from(term.frequency)).sum();
            self.lengths.push(PassageLength { text, head_halves });
            for term in passage {
                let frequencies = Frequencies { text: term.frequency, speaker: 0, date: 0 };
                post(&mut self.postings, &term.term, number, frequencies);
            }
            for term in &terms.head {
                let frequencies = Frequencies { text: 0, speaker: term.speaker, date: term.date };
                post(&mut self.postings, &term.term, number, frequencies);
            }
        }
        self.starts.push(self.lengths.len() as u32);
        self.place.insert(record.id, row);
        self.records.push(record);
        self.live.push(true);
    }

    /// Rows, gone ones included.
    pub fn len(&self) -> u32 {
        self.records.len() as u32
    }

    /// Whether the row is live.
    pub fn is_live(&self, row: u32) -> bool {
        self.live[row as usize]
    }

    /// The record of a row.
    pub fn record(&self, row: u32) -> &Arc<Record> {
        &self.records[row as usize]
    }

    /// The row of a live episode.
    pub fn row_of(&self, id: EpisodeId) -> Option<u32> {
        self.place.get(&id).copied()
    }

    /// The row of a passage.
    pub fn row_of_passage(&self, passage: u32) -> u32 {
        self.starts.partition_point(|start| *start <= passage).saturating_sub(1) as u32
    }

    /// First passage of each row, and the end. Empty without rows.
    pub fn starts(&self) -> &[u32] {
        &self.starts
    }

    /// The length of each passage.
    pub fn lengths(&self) -> &[PassageLength] {
        &self.lengths
    }

    /// The passages that hold `term`, ascending, those of gone rows included.
    pub fn postings(&self, term: &str) -> &[Posting] {
        self.postings.get(term).map_or(&[], |list| list)
    }
}

/// Adds what `passage` holds of `term`, to the entry that is there already if its text holds the term too.
fn post(
    postings: &mut HashMap<Box<str>, Vec<Posting>>,
    term: &str,
    passage: u32,
    frequencies: Frequencies,
) {
    let list = match postings.get_mut(term) {
        Some(list) => list,
        None => postings.entry(term.into()).or_default(),
    };
    match list.last_mut().filter(|last| last.passage == passage) {
        Some(last) => {
            last.frequencies.speaker = frequencies.speaker;
            last.frequencies.date = frequencies.date;
        }
        None => list.push(Posting { passage, frequencies }),
    }
}
