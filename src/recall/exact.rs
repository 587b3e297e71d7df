//! Scores of a user's rows, each made when it is asked for and then kept: a row needs those of its neighbours. Exact
//! ones, and estimates that take cosines from the codes.

use crate::error::Result;
use crate::index::{NO_ROW, UserRows};
use crate::model::VectorSpace;
use crate::simd::{self, CodeQuery};

use super::formula::ScoreParts;
use super::found::{Candidate, Found};
use super::lexical::LexicalScore;
use super::plan::Words;
use super::rows::ExactScorer;
use super::scorer::{Scorer, source_of};
use super::slots::{Slot, SlotPool, Slots};

/// Vectors that the processor is told of before they are compared. They lie far apart; `benches/codes.rs` measured four.
const PREFETCHED_ROWS: usize = 4;

/// What is known of one row. Not a number: it was not asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowSlot {
    /// Of the row alone; 0 where there is no vector.
    cosine: f32,
    /// The same as the codes tell it.
    estimate: f32,
    /// The score before neighbours lend.
    own: f32,
    is_used: bool,
}

impl Slot for RowSlot {
    const EMPTY: &'static RowSlot =
        &RowSlot { cosine: f32::NAN, estimate: f32::NAN, own: f32::NAN, is_used: false };

    fn mark_used(&mut self) -> bool {
        std::mem::replace(&mut self.is_used, true)
    }
}

/// The scores.
pub(super) struct Exact<'r, 's> {
    pub scorer: Scorer<'r, 's>,
    vectors: Option<ExactScorer<'r>>,
    codes: Option<CodeQuery>,
    slots: Slots<RowSlot>,
    pool: &'r SlotPool<RowSlot>,
    /// What a code estimates: kept for its room.
    estimated: Vec<f32>,
    /// Vectors that were read.
    pub read: u64,
}

impl Drop for Exact<'_, '_> {
    fn drop(&mut self) {
        self.pool.give(std::mem::take(&mut self.slots));
    }
}

impl<'r, 's> Exact<'r, 's> {
    /// `codes`: the question's vector, where cosines are estimated.
    pub fn new(
        scorer: Scorer<'r, 's>,
        space: &VectorSpace,
        codes: Option<CodeQuery>,
        pool: &'r SlotPool<RowSlot>,
    ) -> Exact<'r, 's> {
        let (rows, words): (&UserRows<'s>, &'r Words) = (scorer.rows, scorer.words);
        let vectors = words.vector.as_ref().ok().map(|vector| ExactScorer::new(vector, space));
        let slots = pool.take(rows.len());
        Exact { scorer, vectors, codes, slots, pool, estimated: Vec::new(), read: 0 }
    }

    /// Compares the vectors of `wanted` that were not compared yet.
    ///
    /// # Errors
    /// `Corrupt`.
    pub fn compare(&mut self, wanted: impl IntoIterator<Item = u32>) -> Result<()> {
        let Some(vectors) = &mut self.vectors else { return Ok(()) };
        let rows = self.scorer.rows;
        let mut waiting = Vec::new();
        for row in wanted {
            if self.slots.read(row).cosine.is_nan() {
                // Also keeps a row from being taken twice.
                self.slots.write(row).cosine = 0.0;
                waiting.extend(rows.vector(row)?.map(|stored| (row, stored)));
            }
        }
        for (at, (row, stored)) in waiting.iter().enumerate() {
            if let Some((_, ahead)) = waiting.get(at + PREFETCHED_ROWS) {
                ExactScorer::expect(ahead);
            }
            let cosine = vectors.score(stored).map_err(|error| error.of(rows.id(*row)))?;
            self.slots.write(*row).cosine = cosine;
        }
        self.read += waiting.len() as u64;
        Ok(())
    }

    /// Tells the processor that [`Exact::estimated_own`] is asked soon.
    pub fn expect_estimate(&self, row: u32) {
        let rows = self.scorer.rows;
        rows.expect_words(row);
        self.slots.expect(row);
        // What cannot be read is met again when it is asked for.
        if let Ok(Some((code, factor))) = rows.code(row) {
            simd::prefetch(code);
            simd::prefetch(factor);
        }
    }

    /// Notes what the code of a row told of its cosine.
    pub fn note_estimate(&mut self, row: u32, cosine: f32) {
        self.slots.write(row).estimate = cosine;
    }

    /// The cosine of a row: the exact one if it was compared, else as its code tells it. A row without a code is compared.
    ///
    /// # Errors
    /// `Corrupt`.
    pub fn estimate(&mut self, row: u32) -> Result<f32> {
        let RowSlot { cosine, estimate, .. } = *self.slots.read(row);
        if !cosine.is_nan() {
            return Ok(cosine);
        }
        if !estimate.is_nan() {
            return Ok(estimate);
        }
        let code = match self.codes {
            Some(_) => self.scorer.rows.code(row)?,
            None => None,
        };
        let (Some(query), Some((code, factor))) = (&self.codes, code) else {
            self.compare([row])?;
            return Ok(self.slots.read(row).cosine);
        };
        query.scan(code, factor, &mut self.estimated);
        let estimate = self.estimated.first().copied().unwrap_or(0.0);
        self.note_estimate(row, estimate);
        Ok(estimate)
    }

    /// The score of a row before its neighbours lend, cosines estimated.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub fn estimated_own(&mut self, row: u32) -> Result<f32> {
        if self.vectors.is_some() {
            let rows = self.scorer.rows;
            for row in rows.with_around(row) {
                self.estimate(row)?;
            }
        }
        let known = |row| {
            let RowSlot { cosine, estimate, .. } = *self.slots.read(row);
            if cosine.is_nan() { estimate } else { cosine }
        };
        Ok(self.scorer.parts(row, known).0.own())
    }

    /// The score of a row before its neighbours lend.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub fn own(&mut self, row: u32) -> Result<f32> {
        let known = self.slots.read(row).own;
        if !known.is_nan() {
            return Ok(known);
        }
        let own = self.parts(row)?.0.own();
        self.slots.write(row).own = own;
        Ok(own)
    }

    fn parts(&mut self, row: u32) -> Result<(ScoreParts, LexicalScore)> {
        let rows = self.scorer.rows;
        self.compare(rows.with_around(row))?;
        Ok(self.scorer.parts(row, |row| self.slots.read(row).cosine))
    }

    /// The score of a row.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub fn score(&mut self, row: u32) -> Result<f32> {
        if self.scorer.words.alone {
            return Ok(self.scorer.lexical.score(row).score);
        }
        let own = self.own(row)?;
        Ok(own + self.lent(row, own)?)
    }

    fn lent(&mut self, row: u32, own: f32) -> Result<f32> {
        for row in self.scorer.rows.around(row).into_iter().filter(|row| *row != NO_ROW) {
            self.own(row)?;
        }
        Ok(self.scorer.lend(row, own, |row| self.slots.read(row).own))
    }

    /// A row with its score.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub fn candidate(&mut self, row: u32) -> Result<Candidate> {
        Ok(Candidate { score: self.score(row)?, id: self.scorer.rows.id(row), row })
    }

    /// The candidate with all that is to be told of it.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub fn found(&mut self, candidate: &Candidate) -> Result<Found<'s>> {
        let Candidate { score, id, row } = *candidate;
        let (parts, passage) = if self.scorer.words.alone {
            let LexicalScore { passage, .. } = self.scorer.lexical.score(row);
            (ScoreParts { lexical: score, ..ScoreParts::default() }, passage)
        } else {
            let (mut parts, LexicalScore { passage, .. }) = self.parts(row)?;
            parts.neighbours = self.lent(row, parts.own())?;
            (parts, passage)
        };
        Ok(Found {
            score,
            id,
            parts,
            passage: Some(passage),
            source: source_of(self.scorer.rows, row),
        })
    }
}
