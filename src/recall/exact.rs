//! Exact scores of a user's rows, each computed when it is asked for and then kept: a row needs those of its neighbours.

use crate::error::Result;
use crate::index::{NO_ROW, UserRows};
use crate::model::VectorSpace;

use super::formula::ScoreParts;
use super::found::{Candidate, Found};
use super::lexical::LexicalScore;
use super::plan::Words;
use super::rows::ExactScorer;
use super::scorer::{Scorer, source_of};

/// Vectors that the processor is told of before they are compared. They lie far apart; `benches/codes.rs` measured four.
const PREFETCHED_ROWS: usize = 4;

/// The scores.
pub(super) struct Exact<'r, 's> {
    pub scorer: Scorer<'r, 's>,
    vectors: Option<ExactScorer<'r>>,
    /// Of each row alone, 0 where there is no vector; not a number where it was not asked for.
    cosines: Vec<f32>,
    /// Scores before neighbours lend; not a number where they were not asked for.
    own: Vec<f32>,
    /// Vectors that were read.
    pub read: u64,
}

impl<'r, 's> Exact<'r, 's> {
    pub fn new(scorer: Scorer<'r, 's>, space: &VectorSpace) -> Exact<'r, 's> {
        let (rows, words): (&UserRows<'s>, &'r Words) = (scorer.rows, scorer.words);
        let unknown = || vec![f32::NAN; if words.alone { 0 } else { rows.len() as usize }];
        let vectors = words.vector.as_ref().ok().map(|vector| ExactScorer::new(vector, space));
        Exact { scorer, vectors, cosines: unknown(), own: unknown(), read: 0 }
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
            if self.cosines[row as usize].is_nan() {
                // Also keeps a row from being taken twice.
                self.cosines[row as usize] = 0.0;
                waiting.extend(rows.vector(row)?.map(|stored| (row, stored)));
            }
        }
        for (at, (row, stored)) in waiting.iter().enumerate() {
            if let Some((_, ahead)) = waiting.get(at + PREFETCHED_ROWS) {
                ExactScorer::expect(ahead);
            }
            let cosine = vectors.score(stored).map_err(|error| error.of(rows.id(*row)))?;
            self.cosines[*row as usize] = cosine;
        }
        self.read += waiting.len() as u64;
        Ok(())
    }

    /// The cosine of a row, if it was compared.
    pub fn compared(&self, row: u32) -> Option<f32> {
        Some(self.cosines[row as usize]).filter(|cosine| !cosine.is_nan())
    }

    /// The score of a row before its neighbours lend.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub fn own(&mut self, row: u32) -> Result<f32> {
        let known = self.own[row as usize];
        if !known.is_nan() {
            return Ok(known);
        }
        let own = self.parts(row)?.0.own();
        self.own[row as usize] = own;
        Ok(own)
    }

    fn parts(&mut self, row: u32) -> Result<(ScoreParts, LexicalScore)> {
        if self.vectors.is_some() {
            let [previous, next] = self.scorer.rows.around(row);
            let three = [row, previous, next];
            self.compare(three.into_iter().filter(|row| *row != NO_ROW))?;
        }
        self.scorer.parts(row, |row| Ok(self.cosines[row as usize]))
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
        Ok(self.scorer.lend(row, own, |row| self.own[row as usize]))
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
