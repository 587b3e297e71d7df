//! A large memory: which rows are promising by words, and the exact sums of those that are asked for.
//!
//! A rare term proposes rows; one that more passages hold only adds to those that a rarer one has proposed. The rough sums
//! that choose take every passage for one of mean length. Exact sums are made anew for the chosen rows alone.

use crate::error::Result;
use crate::index::{NO_ROW, UserRows};
use crate::model::Frequencies;
use crate::options::{PROPOSING_TERM_PASSAGES_MAX, RecallOptions};

use super::super::formula::{Held, length_norm, term_score};
use super::slots::{PassageSet, SlotPool};
use super::{Lexical, half_terms};

/// The live postings of the question's known terms, in the order of the terms.
pub(super) struct Lists(Vec<List>);

struct List {
    weight: f32,
    postings: Vec<(u32, u32, Frequencies)>,
}

/// A row whose sums are asked for, with the passages that it borrows from.
struct Asked {
    row: u32,
    /// The last passage of the previous turn and of the one before, the first of the next; [`NO_ROW`] for none.
    previous: u32,
    before_previous: u32,
    next: u32,
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
        pool: &'r SlotPool,
    ) -> Result<Lexical<'r, 's>> {
        let mut lexical = Lexical::new(rows, weights, pool);
        let (mut lists, mut scratch) = (Vec::new(), Vec::new());
        for (term, count) in terms {
            let mut postings = Vec::new();
            let df = rows.postings(term, &mut scratch, |passage, row, frequencies| {
                postings.push((passage, row, frequencies));
            })?;
            if let Some(weight) = lexical.weight(df, *count) {
                lists.push(List { weight, postings });
            }
        }
        lexical.look_roughly(&lists);
        lexical.lists = Some(Lists(lists));
        Ok(lexical)
    }

    fn look_roughly(&mut self, lists: &[List]) {
        let mut by_rarity: Vec<&List> = lists.iter().collect();
        by_rarity.sort_by_key(|list| list.postings.len());
        let mut reached = PassageSet::new(self.rows.passage_count());
        for (rank, list) in by_rarity.into_iter().enumerate() {
            let proposes = rank < 2 || list.postings.len() as u64 <= PROPOSING_TERM_PASSAGES_MAX;
            for &(passage, row, frequencies) in &list.postings {
                if proposes {
                    self.propose(passage, row, frequencies, list.weight, &mut reached);
                } else if reached.contains(passage) {
                    let own = f32::from(half_terms(frequencies)) * 0.5;
                    self.slots.write(passage).sum += rough(own, list.weight, self.weights);
                }
            }
        }
    }

    /// Adds a posting to the rough sums of the passage and of those that borrow from it.
    fn propose(
        &mut self,
        passage: u32,
        row: u32,
        frequencies: Frequencies,
        weight: f32,
        reached: &mut PassageSet,
    ) {
        let (rows, weights) = (self.rows, self.weights);
        let mut add = |passage: u32, row: u32, frequency: f32| {
            if frequency > 0.0 {
                if !reached.contains(passage) {
                    if !rows.passages(row).any(|passage| reached.contains(passage)) {
                        self.scored.push(row);
                    }
                    reached.insert(passage);
                }
                self.slots.write(passage).sum += rough(frequency, weight, weights);
            }
        };
        add(passage, row, f32::from(half_terms(frequencies)) * 0.5);
        let text = f32::from(frequencies.text);
        if text == 0.0 {
            return;
        }
        let own = rows.passages(row);
        let [previous, next] = rows.around(row);
        if passage + 1 == own.end && next != NO_ROW {
            add(rows.passages(next).start, next, text * weights.words_previous);
            let [_, behind] = rows.around(next);
            if behind != NO_ROW {
                let first = rows.passages(behind).start;
                add(first, behind, text * weights.words_before_previous);
            }
        }
        if passage == own.start && previous != NO_ROW {
            add(rows.passages(previous).end - 1, previous, text * weights.words_next);
        }
    }

    /// Makes the exact sums of some rows in place of the rough ones: [`Lexical::score`] is exact for these and for no
    /// others. Does nothing in a search of the whole.
    pub fn score_rows(&mut self, wanted: &[u32]) {
        let Some(Lists(lists)) = self.lists.take() else { return };
        let rows = self.rows;
        let mut needed = PassageSet::new(rows.passage_count());
        let mut asked = Vec::with_capacity(wanted.len());
        for &row in wanted {
            let one = Asked::new(rows, row);
            for passage in rows.passages(row) {
                needed.insert(passage);
                self.slots.write(passage).sum = 0.0;
            }
            for passage in [one.previous, one.before_previous, one.next] {
                if passage != NO_ROW {
                    needed.insert(passage);
                }
            }
            asked.push(one);
        }
        for list in &lists {
            for (passage, _, frequencies) in &list.postings {
                if needed.contains(*passage) {
                    let slot = self.slots.write(*passage);
                    (slot.own_halves, slot.text) = (half_terms(*frequencies), frequencies.text);
                }
            }
            for one in &asked {
                self.gather(one, list.weight);
            }
            for (passage, ..) in &list.postings {
                if needed.contains(*passage) {
                    let slot = self.slots.write(*passage);
                    (slot.own_halves, slot.text) = (0, 0);
                }
            }
        }
        self.lists = Some(Lists(lists));
    }

    /// Adds the term at hand to the passages of a row.
    fn gather(&mut self, one: &Asked, weight: f32) {
        let own = self.rows.passages(one.row);
        for passage in own.clone() {
            let text = |slots: &super::slots::Slots, passage: u32| match passage {
                NO_ROW => 0,
                passage => u32::from(slots.read(passage).text),
            };
            let mut held =
                Held { own_halves: self.slots.read(passage).own_halves.into(), ..Held::default() };
            if passage == own.start {
                held.previous = text(&self.slots, one.previous);
                held.before_previous = text(&self.slots, one.before_previous);
            }
            if passage + 1 == own.end {
                held.next = text(&self.slots, one.next);
            }
            if held != Held::default() {
                self.add_held(passage, one.row, held, weight);
            }
        }
    }
}

impl Asked {
    fn new(rows: &UserRows<'_>, row: u32) -> Asked {
        let [previous, next] = rows.around(row);
        let before = match previous {
            NO_ROW => NO_ROW,
            previous => rows.around(previous)[0],
        };
        let of = |row: u32, passage: fn(std::ops::Range<u32>) -> u32| match row {
            NO_ROW => NO_ROW,
            row => passage(rows.passages(row)),
        };
        Asked {
            row,
            previous: of(previous, |passages| passages.end - 1),
            before_previous: of(before, |passages| passages.end - 1),
            next: of(next, |passages| passages.start),
        }
    }
}

/// What a frequency adds to a passage of mean length.
fn rough(frequency: f32, weight: f32, weights: &RecallOptions) -> f32 {
    term_score(weight, frequency, length_norm(1.0, 1.0, weights), weights)
}
