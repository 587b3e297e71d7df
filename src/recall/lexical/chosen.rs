//! The exact sums of the rows of a large memory that are asked for, from a table of what they and their neighbours hold of
//! each term.

use std::ops::Range;

use crate::error::Result;
use crate::index::{NO_ROW, UserRows};
use crate::model::Frequencies;
use crate::options::RecallOptions;

use super::super::formula::Held;
use super::super::numbers::NumberSet;
use super::super::slots::{ROWS_AHEAD, SlotPool};
use super::rough::Rough;
use super::{Lexical, PassageSlot, half_terms};

/// The live postings of the question's known terms, in the order of the terms.
pub(super) struct Lists(Vec<List>);

/// The live postings of one term, ascending.
pub(super) struct List {
    pub weight: f32,
    pub postings: Vec<(u32, Frequencies)>,
}

/// Postings that are passed over in the time in which one is searched for, about.
const SEARCH_POSTINGS: usize = 16;

impl List {
    /// Hands the postings of some passages, which ascend and are those of `set`, to `each`.
    fn each_of(&self, passages: &[u32], set: &NumberSet, mut each: impl FnMut((u32, Frequencies))) {
        if passages.len() * SEARCH_POSTINGS > self.postings.len() {
            let wanted = self.postings.iter().filter(|(passage, _)| set.contains(*passage));
            wanted.for_each(|posting| each(*posting));
            return;
        }
        let mut rest = &self.postings[..];
        for wanted in passages {
            // Steps that double, then halves.
            let mut step = 1;
            while step < rest.len() && rest[step].0 < *wanted {
                step *= 2;
            }
            let (from, to) = (step / 2, rest.len().min(step + 1));
            let at = from + rest[from..to].partition_point(|(passage, _)| passage < wanted);
            rest = &rest[at..];
            match rest.first() {
                Some(posting) if posting.0 == *wanted => each(*posting),
                Some(_) => {}
                None => break,
            }
        }
    }
}

/// A passage whose sum is asked for, with those that it borrows from: lines of a [`Table`].
struct Asked {
    passage: u32,
    row: u32,
    own: u32,
    previous: Option<u32>,
    before_previous: Option<u32>,
    next: Option<u32>,
}

/// What passages hold of each term.
struct Table {
    passages: Vec<u32>,
    needed: NumberSet,
    /// A line for each passage, a column for each term: halves of a term in all, and the frequency in the text.
    cells: Vec<(u16, u8)>,
}

impl<'r, 's> Lexical<'r, 's> {
    /// Looks roughly at every row that a rare term of `terms` reaches. The sums are rough until
    /// [`Lexical::score_rows`].
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub fn routed(
        rows: &'r UserRows<'s>,
        terms: &[(String, u32)],
        weights: &'r RecallOptions,
        pool: &'r SlotPool<PassageSlot>,
    ) -> Result<Lexical<'r, 's>> {
        let mut lexical = Lexical::new(rows, weights, pool);
        let (mut lists, mut scratch) = (Vec::new(), Vec::new());
        for (term, count) in terms {
            let mut postings = Vec::new();
            let df = rows.postings(term, &mut scratch, |passage, frequencies| {
                postings.push((passage, frequencies));
            })?;
            if let Some(weight) = lexical.weight(df, *count) {
                lists.push(List { weight, postings });
            }
        }
        lexical.rough = Some(Rough::new(rows, &lists, weights));
        lexical.lists = Some(Lists(lists));
        Ok(lexical)
    }

    /// Makes the exact sums of some rows that have none yet: [`Lexical::score`] tells of these and of no others. Does
    /// nothing in a search of the whole.
    pub fn score_rows(&mut self, wanted: &[u32]) {
        let Some(Lists(lists)) = self.lists.take() else { return };
        let mut table = Table {
            passages: Vec::new(),
            needed: NumberSet::new(self.rows.passage_count()),
            cells: Vec::new(),
        };
        let mut asked = Vec::with_capacity(wanted.len());
        for (at, row) in wanted.iter().enumerate() {
            if let Some(row) = wanted.get(at + 2 * ROWS_AHEAD) {
                self.rows.expect(*row);
            }
            if let Some(row) = wanted.get(at + ROWS_AHEAD) {
                let passage = self.rows.passages(*row).start;
                self.slots.expect(passage);
                self.rows.expect_length(passage);
            }
            if !self.slots.read(self.rows.passages(*row).start).is_scored {
                self.ask(*row, &mut table, &mut asked);
            }
        }
        table.cells.resize(table.passages.len() * lists.len(), (0, 0));
        let mut ascending = table.passages.clone();
        ascending.sort_unstable();
        for (column, list) in lists.iter().enumerate() {
            list.each_of(&ascending, &table.needed, |(passage, frequencies)| {
                let line = self.slots.read(passage).line as usize - 1;
                table.cells[line * lists.len() + column] =
                    (half_terms(frequencies), frequencies.text);
            });
        }
        for one in &asked {
            let mut sum = 0.0;
            for (column, list) in lists.iter().enumerate() {
                let cell = |line: u32| table.cells[line as usize * lists.len() + column];
                let text = |line: Option<u32>| line.map_or(0, |line| u32::from(cell(line).1));
                let held = Held {
                    own_halves: cell(one.own).0.into(),
                    previous: text(one.previous),
                    before_previous: text(one.before_previous),
                    next: text(one.next),
                };
                if held != Held::default() {
                    sum += self.score_of(one.passage, one.row, held, list.weight);
                }
            }
            let slot = self.slots.write(one.passage);
            (slot.sum, slot.is_scored) = (sum, true);
        }
        for passage in table.passages {
            self.slots.write(passage).line = 0;
        }
        self.lists = Some(Lists(lists));
    }

    /// Asks for the sums of the passages of a row.
    fn ask(&mut self, row: u32, table: &mut Table, asked: &mut Vec<Asked>) {
        let rows = self.rows;
        let [previous, next] = rows.around(row);
        let before = if previous == NO_ROW { NO_ROW } else { rows.around(previous)[0] };
        let mut line = |row: u32, passage: fn(Range<u32>) -> u32| {
            (row != NO_ROW).then(|| self.line(passage(rows.passages(row)), table))
        };
        let previous = line(previous, |passages| passages.end - 1);
        let before_previous = line(before, |passages| passages.end - 1);
        let next = line(next, |passages| passages.start);
        let own = rows.passages(row);
        for passage in own.clone() {
            let (is_first, is_last) = (passage == own.start, passage + 1 == own.end);
            asked.push(Asked {
                passage,
                row,
                own: self.line(passage, table),
                previous: previous.filter(|_| is_first),
                before_previous: before_previous.filter(|_| is_first),
                next: next.filter(|_| is_last),
            });
        }
    }

    /// The line of a passage, a new one if it has none.
    fn line(&mut self, passage: u32, table: &mut Table) -> u32 {
        let slot = self.slots.write(passage);
        if slot.line == 0 {
            table.needed.insert(passage);
            table.passages.push(passage);
            slot.line = table.passages.len() as u32;
        }
        slot.line - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn postings_of_few_passages_are_those_of_a_scan() {
        let holds = |passage: u32| passage.is_multiple_of(3) || passage.is_multiple_of(7);
        let frequencies = Frequencies { text: 1, speaker: 0, date: 0 };
        let postings = (0..1000).filter(|passage| holds(*passage));
        let list = List { weight: 1.0, postings: postings.map(|one| (one, frequencies)).collect() };
        for step in [1, 2, 5, 40, 333, 998] {
            for first in [0, 1, 3, 996] {
                let passages: Vec<u32> = (first..1100).step_by(step).collect();
                let mut set = NumberSet::new(1100);
                let is_new = passages.iter().all(|passage| set.insert(*passage));
                assert!(is_new);
                let mut found = Vec::new();
                list.each_of(&passages, &set, |(passage, _)| found.push(passage));
                let expected: Vec<u32> =
                    passages.into_iter().filter(|one| *one < 1000 && holds(*one)).collect();
                assert_eq!(found, expected, "from {first} by {step}");
            }
        }
    }
}
