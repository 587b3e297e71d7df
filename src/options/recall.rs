//! The weights of a hybrid search.
//!
//! Measured with the numpy reference of the pipeline on the development parts of the two sets; `loomdb eval retrieval`
//! measures them again on any set.

use crate::error::{Error, Result};

/// Weights of a hybrid search. All defaults were chosen together on the development parts of two public sets of
/// conversations, LoCoMo (chats of months) and BEAM-100k (long exchanges with an assistant); they are defaults, not laws.
/// The ranges are those in which the weights were tried, or a stated guess; any finite number from 0 up is accepted.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct RecallOptions {
    /// Weight of the words in common (BM25 over its possible maximum, 0 to 1). Default: 2.0, range 0 to 4.
    pub lexical: f32,
    /// Weight of the vectors (cosine, -1 to 1). Default: 1.5, range 0 to 4; 1.0 is as good with the built-in embedder.
    pub vector: f32,
    /// Added when the question names the speaker. Default: 0.4, range 0 to 1. Without it all@10 on LoCoMo falls by 2
    /// points; questions that name the wrong person on purpose gain 6.
    pub speaker: f32,
    /// Added when the question asks for a time and the episode holds one. Default: 0.1, range 0 to 0.5.
    pub when: f32,
    /// Added when the episode was said about the time that the question names. Default: 0.2, range 0 to 1 (0.4 is as
    /// good).
    pub range: f32,
    /// Weight of the count of content words, which rises from 0 to 1 at about 19 words. Default: 0.1, range 0 to 0.5.
    pub length: f32,
    /// Weight of conciseness: 1 up to `concise_words`, then falling. Default: 0.6, range 0 to 1. Without it a budget of
    /// 1,000 tokens holds all evidence of 10 points fewer questions on BEAM.
    pub concise: f32,
    /// Words up to which an episode is concise. Default: 60, range 1 to 1,000.
    pub concise_words: f32,
    /// Share of the better neighbour's score that an episode gets. Default: 0.1, range 0 to 0.5 (0.2 is as good).
    pub spread: f32,
    /// Words up to which an episode takes the whole of what neighbours lend; longer ones take less. Default: 60, range 1
    /// to 1,000.
    pub long_words: f32,
    /// Share of the previous turn's cosine. Default: 0.3, range 0 to 1.
    pub vector_previous: f32,
    /// Share of the next turn's cosine. Default: 0.2, range 0 to 1.
    pub vector_next: f32,
    /// Share of the words of the previous turn's last passage. Default: 0.5, range 0 to 1. What neighbours lend in all
    /// raises all@10 of BM25 alone on LoCoMo from 55 to 65.
    pub words_previous: f32,
    /// Share of the words of the turn before that. Default: 0.2, range 0 to 1.
    pub words_before_previous: f32,
    /// Share of the words of the next turn's first passage. Default: 0.3, range 0 to 1.
    pub words_next: f32,
    /// BM25: how soon repeats of a word stop counting. Default: 0.9, range 0 to 3 (1.2 loses 1 point).
    pub k1: f32,
    /// BM25: how much a long passage is held against itself. Default: 0.4, range 0 to 1.
    pub b: f32,
    /// Days before a range named in the question that still count. Default: 3, range 0 to 30.
    pub range_days_before: i32,
    /// Days after it that still count: what happened is told later. Default: 14, range 0 to 60.
    pub range_days_after: i32,
}

impl Default for RecallOptions {
    fn default() -> Self {
        RecallOptions {
            lexical: 2.0,
            vector: 1.5,
            speaker: 0.4,
            when: 0.1,
            range: 0.2,
            length: 0.1,
            concise: 0.6,
            concise_words: 60.0,
            spread: 0.1,
            long_words: 60.0,
            vector_previous: 0.3,
            vector_next: 0.2,
            words_previous: 0.5,
            words_before_previous: 0.2,
            words_next: 0.3,
            k1: 0.9,
            b: 0.4,
            range_days_before: 3,
            range_days_after: 14,
        }
    }
}

impl RecallOptions {
    /// Whether every weight can be computed with.
    ///
    /// # Errors
    /// `Invalid` for a weight that is negative or not finite, or `b` above 1: the weight is named.
    pub(crate) fn check(&self) -> Result<()> {
        let weights = [
            ("lexical", self.lexical),
            ("vector", self.vector),
            ("speaker", self.speaker),
            ("when", self.when),
            ("range", self.range),
            ("length", self.length),
            ("concise", self.concise),
            ("concise_words", self.concise_words),
            ("spread", self.spread),
            ("long_words", self.long_words),
            ("vector_previous", self.vector_previous),
            ("vector_next", self.vector_next),
            ("words_previous", self.words_previous),
            ("words_before_previous", self.words_before_previous),
            ("words_next", self.words_next),
            ("k1", self.k1),
            ("b", self.b),
            ("range_days_before", self.range_days_before as f32),
            ("range_days_after", self.range_days_after as f32),
        ];
        // Far above anything that makes sense, and far below where a sum of products overflows.
        let wrong = weights.iter().find(|(_, weight)| !(0.0..=1e6).contains(weight));
        if let Some((name, weight)) = wrong {
            return Err(Error::invalid(format!("weight {name} is {weight}, not within 0 to 1e6")));
        }
        if self.b > 1.0 {
            return Err(Error::invalid(format!("weight b is {}, not within 0 to 1", self.b)));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_that_cannot_be_computed_with_are_named() {
        assert!(RecallOptions::default().check().is_ok());
        let spread = RecallOptions { spread: f32::NAN, ..RecallOptions::default() };
        assert!(spread.check().unwrap_err().to_string().contains("spread"));
        let b = RecallOptions { b: 1.5, ..RecallOptions::default() };
        assert!(b.check().is_err());
        let days = RecallOptions { range_days_after: -1, ..RecallOptions::default() };
        assert!(days.check().is_err());
    }
}
