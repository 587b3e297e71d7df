//! The lexical leg: BM25 of passages that hold a word of the question, or whose neighbours lend them one.
//!
//! Two ways lead to the same sums: all passages at once, a term after the other handing out what it finds
//! ([`Lexical::whole`]), or a rough look at all and exact sums of the rows that are asked for ([`Lexical::routed`]). A
//! passage's sum is always made in the order of the terms, so that both agree to the last bit.

mod chosen;
mod rough;

use crate::error::Result;
use crate::index::{NO_ROW, UserRows};
use crate::model::Frequencies;
use crate::options::RecallOptions;
use crate::storage::segment::Posting;

use super::formula::{Held, idf, length_norm, possible_maximum, term_score};
use super::slots::{Slot, SlotPool, Slots};

use chosen::Lists;
use rough::Rough;

/// What is known of one passage.
#[derive(Clone, Copy, Debug)]
pub(super) struct PassageSlot {
    /// Of all terms so far.
    sum: f32,
    /// The length norm; 0 before it is asked for.
    norm: f32,
    /// The line of a table of frequencies, counted from 1; 0 for none.
    line: u32,
    /// Of the term at hand: in the passage itself, the text and the speaker counting 2 and the date 1.
    own_halves: u16,
    /// Borrowed, as `Held` of the formula has it.
    previous: u8,
    before_previous: u8,
    next: u8,
    /// Whether the sum is that of [`Lexical::score_rows`].
    is_scored: bool,
    is_used: bool,
}

impl Slot for PassageSlot {
    const EMPTY: &'static PassageSlot = &PassageSlot {
        sum: 0.0,
        norm: 0.0,
        line: 0,
        own_halves: 0,
        previous: 0,
        before_previous: 0,
        next: 0,
        is_scored: false,
        is_used: false,
    };

    fn mark_used(&mut self) -> bool {
        std::mem::replace(&mut self.is_used, true)
    }
}

/// The sums.
pub(super) struct Lexical<'r, 's> {
    rows: &'r UserRows<'s>,
    weights: &'r RecallOptions,
    pool: &'r SlotPool<PassageSlot>,
    /// Mean length of the user's passages.
    average: f32,
    slots: Slots<PassageSlot>,
    /// What a rough look found, where rows are scored when they are asked for.
    rough: Option<Rough>,
    /// The postings, where rows are scored when they are asked for.
    lists: Option<Lists>,
    weight_sum: f32,
    /// Postings read.
    pub postings: u64,
    /// Terms of the question that a passage holds.
    pub known_terms: u64,
}

/// How well a row's words answer.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct LexicalScore {
    /// 0 to below 1.
    pub score: f32,
    /// The best passage of the row, counted from its first; the first of equal ones.
    pub passage: u32,
}

impl Drop for Lexical<'_, '_> {
    fn drop(&mut self) {
        self.pool.give(std::mem::take(&mut self.slots));
    }
}

impl<'r, 's> Lexical<'r, 's> {
    fn new(
        rows: &'r UserRows<'s>,
        weights: &'r RecallOptions,
        pool: &'r SlotPool<PassageSlot>,
    ) -> Lexical<'r, 's> {
        let counts = rows.counts();
        let (live, halves) = (counts.passages.max(1) as f64, counts.half_terms as f64);
        Lexical {
            rows,
            weights,
            pool,
            average: (halves / 2.0 / live) as f32,
            slots: pool.take(rows.passage_count()),
            rough: None,
            lists: None,
            weight_sum: 0.0,
            postings: 0,
            known_terms: 0,
        }
    }

    /// Scores every passage of `rows` by `terms`, which ascend.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub fn whole(
        rows: &'r UserRows<'s>,
        terms: &[(String, u32)],
        weights: &'r RecallOptions,
        pool: &'r SlotPool<PassageSlot>,
    ) -> Result<Lexical<'r, 's>> {
        let mut lexical = Lexical::new(rows, weights, pool);
        let mut scratch = Vec::new();
        let mut touched = Vec::new();
        for (term, count) in terms {
            lexical.add(term, *count, &mut scratch, &mut touched)?;
        }
        Ok(lexical)
    }

    /// Adds one term to every passage that holds it or borrows it.
    fn add(
        &mut self,
        term: &str,
        count: u32,
        scratch: &mut Vec<Posting>,
        touched: &mut Vec<(u32, u32)>,
    ) -> Result<()> {
        let rows = self.rows;
        let df = rows.postings(term, scratch, |passage, frequencies| {
            self.spread(passage, rows.row_of(passage), frequencies, touched);
        })?;
        let Some(weight) = self.weight(df, count) else { return Ok(()) };
        for (passage, row) in touched.drain(..) {
            let slot = self.slots.write(passage);
            let held = Held {
                own_halves: slot.own_halves.into(),
                previous: slot.previous.into(),
                before_previous: slot.before_previous.into(),
                next: slot.next.into(),
            };
            let (sum, norm) = (slot.sum, slot.norm);
            *slot = PassageSlot { sum, norm, is_used: true, ..*PassageSlot::EMPTY };
            let added = self.score_of(passage, row, held, weight);
            self.slots.write(passage).sum += added;
        }
        Ok(())
    }

    /// The weight of a term that `df` passages hold, said `count` times; `None` when none holds it.
    fn weight(&mut self, df: u64, count: u32) -> Option<f32> {
        if df == 0 {
            return None;
        }
        self.postings += df;
        self.known_terms += 1;
        let passages = u64::try_from(self.rows.counts().passages).unwrap_or(0);
        let weight = idf(passages, df) * count as f32;
        self.weight_sum += weight;
        Some(weight)
    }

    /// What one term adds to the sum of a passage of `row`.
    fn score_of(&mut self, passage: u32, row: u32, held: Held, weight: f32) -> f32 {
        let frequency = held.weighted(self.weights);
        if frequency <= 0.0 {
            return 0.0;
        }
        let norm = self.norm(passage, row);
        term_score(weight, frequency, norm, self.weights)
    }

    /// Hands what a passage holds to itself and, what its text holds, to those that borrow from it.
    fn spread(
        &mut self,
        passage: u32,
        row: u32,
        frequencies: Frequencies,
        touched: &mut Vec<(u32, u32)>,
    ) {
        let Frequencies { text, .. } = frequencies;
        self.touch(passage, row, touched).own_halves = half_terms(frequencies);
        if text == 0 {
            return;
        }
        let rows = self.rows;
        let own = rows.passages(row);
        let [previous, next] = rows.around(row);
        if passage + 1 == own.end && next != NO_ROW {
            self.touch(rows.passages(next).start, next, touched).previous = text;
            let [_, behind] = rows.around(next);
            if behind != NO_ROW {
                let first = rows.passages(behind).start;
                self.touch(first, behind, touched).before_previous = text;
            }
        }
        if passage == own.start && previous != NO_ROW {
            self.touch(rows.passages(previous).end - 1, previous, touched).next = text;
        }
    }

    fn touch(&mut self, passage: u32, row: u32, touched: &mut Vec<(u32, u32)>) -> &mut PassageSlot {
        let slot = self.slots.write(passage);
        let PassageSlot { own_halves, previous, before_previous, next, .. } = *slot;
        if (own_halves, previous, before_previous, next) == (0, 0, 0, 0) {
            touched.push((passage, row));
        }
        slot
    }

    /// The length norm of a passage of `row`, its neighbours' lengths included.
    fn norm(&mut self, passage: u32, row: u32) -> f32 {
        let known = self.slots.read(passage).norm;
        if known > 0.0 {
            return known;
        }
        let rows = self.rows;
        let own = rows.passages(row);
        let [previous, next] = rows.around(row);
        let mut length = Held {
            own_halves: u32::try_from(rows.length(passage).half_terms()).unwrap_or(u32::MAX),
            ..Held::default()
        };
        if passage == own.start && previous != NO_ROW {
            length.previous = rows.length(rows.passages(previous).end - 1).text;
            let [before, _] = rows.around(previous);
            if before != NO_ROW {
                length.before_previous = rows.length(rows.passages(before).end - 1).text;
            }
        }
        if passage + 1 == own.end && next != NO_ROW {
            length.next = rows.length(rows.passages(next).start).text;
        }
        let norm = length_norm(length.weighted(self.weights), self.average, self.weights);
        self.slots.write(passage).norm = norm;
        norm
    }

    /// Passages that a rough look found.
    pub fn reached(&self) -> usize {
        self.rough.as_ref().map_or(0, Rough::len)
    }

    /// The rows that a rough look takes for the best, each once, with sums that only order them: those of the `most` best
    /// passages, and those that borrow from them. Only rows that `admits` lets pass.
    pub fn best_roughly(
        &self,
        most: usize,
        admits: Option<&dyn Fn(u32) -> bool>,
    ) -> Vec<(u32, f32)> {
        self.rough.as_ref().map_or_else(Vec::new, |rough| rough.best(self.rows, most, admits))
    }

    /// The share of the rough sum of a row in what the question could reach; 0 when no rare term reaches it.
    pub fn rough_score(&self, row: u32) -> f32 {
        self.rough.as_ref().map_or(0.0, |rough| self.share_of(rough.sum(self.rows, row)))
    }

    /// The score of a row: that of its best passage, over what the question could reach at most.
    pub fn score(&self, row: u32) -> LexicalScore {
        let slots = self.rows.passages(row).map(|passage| self.slots.read(passage));
        let (mut best, mut passage) = (0.0, 0);
        for (at, slot) in (0..).zip(slots) {
            if slot.sum > best {
                (best, passage) = (slot.sum, at);
            }
        }
        LexicalScore { score: self.share_of(best), passage }
    }

    /// The share of a sum in what the question could reach at most.
    pub fn share_of(&self, sum: f32) -> f32 {
        sum / possible_maximum(self.weight_sum, self.weights)
    }
}

/// What a passage holds of a term, in halves of a term.
fn half_terms(frequencies: Frequencies) -> u16 {
    let Frequencies { text, speaker, date } = frequencies;
    2 * (u16::from(text) + u16::from(speaker)) + u16::from(date)
}
