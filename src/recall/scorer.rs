//! What a row is scored by in a hybrid search: the parts of its score, and what its neighbours lend.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::error::Result;
use crate::index::{At, NO_ROW, UserRows};

use super::formula::{Facts, ScoreParts, blended_cosine, lent, openness};
use super::found::Source;
use super::lexical::{Lexical, LexicalScore, PassageSlot};
use super::plan::Words;
use super::question::day_of;
use super::slots::SlotPool;

/// What rows are scored by, one at a time.
pub(super) struct Scorer<'r, 's> {
    pub rows: &'r UserRows<'s>,
    pub words: &'r Words,
    pub lexical: Lexical<'r, 's>,
    named: BTreeSet<Arc<str>>,
    /// The named speakers' numbers in each run.
    named_in_runs: Vec<Vec<u32>>,
}

impl<'r, 's> Scorer<'r, 's> {
    /// Scores the words of every row.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub fn whole(
        rows: &'r UserRows<'s>,
        words: &'r Words,
        pool: &'r SlotPool<PassageSlot>,
    ) -> Result<Scorer<'r, 's>> {
        let lexical = Lexical::whole(rows, &words.question.terms, &words.weights, pool)?;
        Scorer::new(rows, words, lexical)
    }

    /// Looks at the words roughly, see [`Lexical::routed`].
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub fn routed(
        rows: &'r UserRows<'s>,
        words: &'r Words,
        pool: &'r SlotPool<PassageSlot>,
    ) -> Result<Scorer<'r, 's>> {
        let lexical = Lexical::routed(rows, &words.question.terms, &words.weights, pool)?;
        Scorer::new(rows, words, lexical)
    }

    fn new(
        rows: &'r UserRows<'s>,
        words: &'r Words,
        lexical: Lexical<'r, 's>,
    ) -> Result<Scorer<'r, 's>> {
        let live = u64::try_from(rows.counts().rows).unwrap_or(0);
        let named = words.question.named(rows.speakers(), live);
        let in_run = |run: &crate::index::Run<'_>| -> Result<Vec<u32>> {
            let numbers = named.iter().map(|name| run.speaker_number(name));
            Ok(numbers.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
        };
        let named_in_runs = match named.is_empty() {
            true => Vec::new(),
            false => rows.runs().iter().map(in_run).collect::<Result<_>>()?,
        };
        Ok(Scorer { rows, words, lexical, named, named_in_runs })
    }

    /// What the question makes of a row. Columns lie far apart: those that it does not ask for are not looked at.
    fn facts(&self, row: u32) -> Facts {
        let question = &self.words.question;
        let in_range = |micros, offset| question.in_range(day_of(micros, offset));
        match self.rows.at(row) {
            At::Run(run, at) => Facts {
                words: run.words(at),
                content_words: run.content_words(at),
                named: !self.named.is_empty()
                    && self.named_in_runs[self.rows.number_of(run)].contains(&run.speaker(at)),
                when: question.asks_when && run.has_time(at),
                in_range: question.names_days() && in_range(run.time(at), run.offset_minutes(at)),
            },
            At::Log(record) => Facts {
                words: record.shape.words,
                content_words: record.shape.content_words,
                named: record.body.speaker.as_deref().is_some_and(|name| self.named.contains(name)),
                when: question.asks_when && record.shape.has_time,
                in_range: question.names_days() && in_range(record.time, record.offset_minutes),
            },
        }
    }

    /// The parts of a live row's score, but for what its neighbours lend. `cosine` gives that of a row alone.
    pub fn parts(&self, row: u32, cosine: impl Fn(u32) -> f32) -> (ScoreParts, LexicalScore) {
        let weights = &self.words.weights;
        let (facts, lexical) = (self.facts(row), self.lexical.score(row));
        let mut blended = 0.0;
        if self.words.vector.is_ok() {
            let [previous, next] = self.rows.around(row);
            let of = |row: u32| (row != NO_ROW).then(|| cosine(row));
            let openness = openness(facts.words, weights);
            blended = blended_cosine(cosine(row), of(previous), of(next), openness, weights);
        }
        (ScoreParts::new(lexical.score, blended, facts, weights), lexical)
    }

    /// The score of a row from a rough lexical score and the cosine of the row alone: it only orders.
    pub fn rough(&self, row: u32, lexical: f32, cosine: f32) -> f32 {
        ScoreParts::new(lexical, cosine, self.facts(row), &self.words.weights).own()
    }

    /// What its neighbours lend to a live row with score `score`. `own` gives a row's score before that.
    pub fn lend(&self, row: u32, score: f32, own: impl Fn(u32) -> f32) -> f32 {
        let weights = &self.words.weights;
        let [previous, next] = self.rows.around(row);
        let of = |row: u32| (row != NO_ROW).then(|| own(row));
        let (previous, next) = (of(previous), of(next));
        let words = self.rows.words(row);
        lent(score, previous, next, openness(words, weights), weights)
    }
}

/// Where to read a row.
pub(super) fn source_of<'s>(rows: &UserRows<'s>, row: u32) -> Source<'s> {
    match rows.at(row) {
        At::Run(run, at) => Source::Stored(run.segment, run.rows.start + at),
        At::Log(record) => Source::Log(Arc::clone(record)),
    }
}
