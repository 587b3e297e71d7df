//! Scores every row of a user: what small memories and narrow filters get. Nothing can be missed.

use crate::error::Result;
use crate::index::UserRows;
use crate::model::VectorSpace;

use super::explain::{Explain, Stopwatch};
use super::formula::ScoreParts;
use super::found::{Candidate, Found, Source};
use super::lexical::{Lexical, LexicalScore};
use super::plan::Words;
use super::rows::ExactScorer;
use super::scorer::Scorer;

/// Every row, scored.
pub(super) struct Whole<'r, 's> {
    scorer: Scorer<'r, 's>,
    /// Of each row alone; 0 where there is nothing to compare.
    cosines: Vec<f32>,
    /// The scores of the rows before neighbours lend.
    own: Vec<f32>,
    live: Vec<u32>,
}

impl<'r, 's> Whole<'r, 's> {
    /// Scores every live row.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub fn new(
        rows: &'r UserRows<'s>,
        words: &'r Words,
        space: &VectorSpace,
        watch: &mut Stopwatch,
        explain: &mut Explain,
    ) -> Result<Whole<'r, 's>> {
        let scorer = Scorer::new(rows, words)?;
        explain.micros.lexical = watch.lap();
        let live: Vec<u32> = (0..rows.len()).filter(|row| rows.is_live(*row)).collect();
        let (mut cosines, mut own) = (Vec::new(), Vec::new());
        if !words.alone {
            cosines.resize(rows.len() as usize, 0.0);
            own.resize(rows.len() as usize, 0.0);
        }
        if let Ok(vector) = &words.vector {
            let mut exact = ExactScorer::new(vector, space);
            for &row in &live {
                if let Some(stored) = rows.vector(row)? {
                    cosines[row as usize] = exact.score(stored).map_err(|e| e.of(rows.id(row)))?;
                    explain.rows_exact += 1;
                }
            }
            explain.rows_exact_at_once = explain.rows_exact;
            explain.bytes_touched += explain.rows_exact * space.vector_bytes() as u64;
        }
        explain.micros.scan = watch.lap();
        let mut whole = Whole { scorer, cosines, own, live };
        if !words.alone {
            for at in 0..whole.live.len() {
                let row = whole.live[at];
                whole.own[row as usize] = whole.parts(row)?.0.own();
            }
        }
        Ok(whole)
    }

    pub fn lexical(&self) -> &Lexical<'r, 's> {
        &self.scorer.lexical
    }

    /// Where to read a candidate.
    pub fn source(&self, candidate: &Candidate) -> Source<'s> {
        self.scorer.source(candidate.row)
    }

    fn parts(&self, row: u32) -> Result<(ScoreParts, LexicalScore)> {
        self.scorer.parts(row, |row| Ok(self.cosines[row as usize]))
    }

    /// The rows that `passes` takes, in no order. By words alone: those of them that share a word with the question.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub fn candidates(&self, passes: impl Fn(u32) -> bool) -> Result<Vec<Candidate>> {
        let rows = self.scorer.rows;
        let passing = self.live.iter().copied().filter(|row| passes(*row));
        let mut candidates = Vec::with_capacity(self.live.len());
        for row in passing {
            let score = self.score(row)?;
            if score > 0.0 || !self.scorer.words.alone {
                candidates.push(Candidate { score, id: rows.id(row), row });
            }
        }
        Ok(candidates)
    }

    fn score(&self, row: u32) -> Result<f32> {
        if self.scorer.words.alone {
            return Ok(self.scorer.lexical.score(row).score);
        }
        let own = |row| Ok(self.own[row as usize]);
        self.scorer.lend(row, own(row)?, own).map(|lent| self.own[row as usize] + lent)
    }

    /// The candidate with all that is to be told of it.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub fn found(&self, candidate: &Candidate) -> Result<Found<'s>> {
        let Candidate { score, id, row } = *candidate;
        let source = self.scorer.source(row);
        if self.scorer.words.alone {
            let LexicalScore { passage, .. } = self.scorer.lexical.score(row);
            let parts = ScoreParts { lexical: score, ..ScoreParts::default() };
            return Ok(Found { score, id, parts, passage: Some(passage), source });
        }
        let (mut parts, LexicalScore { passage, .. }) = self.parts(row)?;
        parts.neighbours = self.scorer.lend(row, parts.own(), |row| Ok(self.own[row as usize]))?;
        Ok(Found { score, id, parts, passage: Some(passage), source })
    }
}
