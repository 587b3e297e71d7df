//! The lexical leg: BM25 of every passage that holds a word of the question, or whose neighbours lend it one.
//!
//! Terms are taken one after the other, in ascending order, and what each adds to a passage is added at once: a
//! passage's sum is made in one order, wherever its postings lie.

use crate::error::Result;
use crate::index::{NO_ROW, UserRows};
use crate::model::Frequencies;
use crate::options::RecallOptions;
use crate::storage::segment::Posting;

use super::formula::{Held, idf, length_norm, possible_maximum, term_score};

/// The sums of all passages.
pub(super) struct Lexical<'r, 's> {
    rows: &'r UserRows<'s>,
    weights: &'r RecallOptions,
    /// Mean length of the user's passages.
    average: f32,
    /// What each passage holds of the term at hand.
    held: Vec<Held>,
    /// Passages that hold any of it, with their rows.
    touched: Vec<(u32, u32)>,
    /// Rows with a passage that has a sum.
    scored: Vec<u32>,
    sums: Vec<f32>,
    /// The length norm of each passage; 0 before it is asked for.
    norms: Vec<f32>,
    weight_sum: f32,
    scratch: Vec<Posting>,
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

impl<'r, 's> Lexical<'r, 's> {
    /// Scores every passage of `rows` by `terms`, which ascend.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub fn new(
        rows: &'r UserRows<'s>,
        terms: &[(String, u32)],
        weights: &'r RecallOptions,
    ) -> Result<Lexical<'r, 's>> {
        let passages = rows.passage_count() as usize;
        let counts = rows.counts();
        let (live, halves) = (counts.passages.max(1) as f64, counts.half_terms as f64);
        let mut lexical = Lexical {
            rows,
            weights,
            average: (halves / 2.0 / live) as f32,
            held: vec![Held::default(); passages],
            touched: Vec::new(),
            scored: Vec::new(),
            sums: vec![0.0; passages],
            norms: vec![0.0; passages],
            weight_sum: 0.0,
            scratch: Vec::new(),
            postings: 0,
            known_terms: 0,
        };
        for (term, count) in terms {
            lexical.add(term, *count)?;
        }
        Ok(lexical)
    }

    fn add(&mut self, term: &str, count: u32) -> Result<()> {
        let mut scratch = std::mem::take(&mut self.scratch);
        let rows = self.rows;
        let df = rows.postings(term, &mut scratch, |passage, row, frequencies| {
            self.spread(passage, row, frequencies)
        })?;
        self.scratch = scratch;
        self.postings += df;
        if df == 0 {
            return Ok(());
        }
        self.known_terms += 1;
        let passages = u64::try_from(rows.counts().passages).unwrap_or(0);
        let weight = idf(passages, df) * count as f32;
        self.weight_sum += weight;
        let mut touched = std::mem::take(&mut self.touched);
        for (passage, row) in touched.drain(..) {
            let held = std::mem::take(&mut self.held[passage as usize]);
            let frequency = held.weighted(self.weights);
            if frequency > 0.0 {
                let norm = self.norm(passage, row)?;
                let own = self.rows.passages(row);
                let sums = &self.sums[own.start as usize..own.end as usize];
                if sums.iter().all(|sum| *sum == 0.0) {
                    self.scored.push(row);
                }
                self.sums[passage as usize] += term_score(weight, frequency, norm, self.weights);
            }
        }
        self.touched = touched;
        Ok(())
    }

    /// Hands what a passage holds to itself and, what its text holds, to those that borrow from it.
    fn spread(&mut self, passage: u32, row: u32, frequencies: Frequencies) -> Result<()> {
        let Frequencies { text, speaker, date } = frequencies;
        self.at(passage, row).own_halves =
            2 * (u32::from(text) + u32::from(speaker)) + u32::from(date);
        if text == 0 {
            return Ok(());
        }
        let (rows, text) = (self.rows, u32::from(text));
        let own = rows.passages(row);
        let [previous, next] = rows.around(row)?;
        if passage + 1 == own.end && next != NO_ROW {
            self.at(rows.passages(next).start, next).previous = text;
            let [_, behind] = rows.around(next)?;
            if behind != NO_ROW {
                self.at(rows.passages(behind).start, behind).before_previous = text;
            }
        }
        if passage == own.start && previous != NO_ROW {
            self.at(rows.passages(previous).end - 1, previous).next = text;
        }
        Ok(())
    }

    fn at(&mut self, passage: u32, row: u32) -> &mut Held {
        let held = &mut self.held[passage as usize];
        if *held == Held::default() {
            self.touched.push((passage, row));
        }
        held
    }

    /// The length norm of a passage of `row`, its neighbours' lengths included.
    fn norm(&mut self, passage: u32, row: u32) -> Result<f32> {
        let known = self.norms[passage as usize];
        if known > 0.0 {
            return Ok(known);
        }
        let rows = self.rows;
        let own = rows.passages(row);
        let [previous, next] = rows.around(row)?;
        let mut length = Held {
            own_halves: u32::try_from(rows.length(passage).half_terms()).unwrap_or(u32::MAX),
            ..Held::default()
        };
        if passage == own.start && previous != NO_ROW {
            length.previous = rows.length(rows.passages(previous).end - 1).text;
            let [before, _] = rows.around(previous)?;
            if before != NO_ROW {
                length.before_previous = rows.length(rows.passages(before).end - 1).text;
            }
        }
        if passage + 1 == own.end && next != NO_ROW {
            length.next = rows.length(rows.passages(next).start).text;
        }
        let norm = length_norm(length.weighted(self.weights), self.average, self.weights);
        self.norms[passage as usize] = norm;
        Ok(norm)
    }

    /// The rows that a word of the question reaches.
    pub fn touched_rows(&self) -> impl Iterator<Item = u32> + '_ {
        self.scored.iter().copied()
    }

    /// The score of a row: that of its best passage, over what the question could reach at most.
    pub fn score(&self, row: u32) -> LexicalScore {
        let passages = self.rows.passages(row);
        let sums = &self.sums[passages.start as usize..passages.end as usize];
        let (mut best, mut passage) = (0.0, 0);
        for (at, sum) in (0..).zip(sums) {
            if *sum > best {
                (best, passage) = (*sum, at);
            }
        }
        LexicalScore { score: best / possible_maximum(self.weight_sum, self.weights), passage }
    }
}
