//! The arithmetic of a hybrid score, in one place: the ordinary path and the definition call the same functions.
//!
//! Invariants: a score depends on the row, its neighbours, the question and the user's statistics, never on which
//! other rows were scored; every sum is taken in one order, so that equal inputs give equal bits.
//!
//! Source: BM25 after Robertson and Zaragoza (2009) with the idf of Lucene. Departs: frequencies and lengths borrow from
//! neighbouring turns, and the sum is divided by its possible maximum.

use crate::options::RecallOptions;

/// What one passage and its neighbours hold of one term, or of all terms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Held {
    /// In the passage itself: text and speaker count 2, the date 1.
    pub own_halves: u32,
    /// In the text of the last passage of the previous turn.
    pub previous: u32,
    /// In the text of the last passage of the turn before that.
    pub before_previous: u32,
    /// In the text of the first passage of the next turn.
    pub next: u32,
}

impl Held {
    /// The frequency of a term, or the length when all terms were counted.
    pub fn weighted(&self, weights: &RecallOptions) -> f32 {
        self.own_halves as f32 * 0.5
            + weights.words_previous * self.previous as f32
            + weights.words_before_previous * self.before_previous as f32
            + weights.words_next * self.next as f32
    }
}

/// Inverse document frequency of a term that `df` of `passages` hold; 0 for a term that none holds.
pub(crate) fn idf(passages: u64, df: u64) -> f32 {
    if df == 0 {
        return 0.0;
    }
    let (passages, df) = (passages as f64, df as f64);
    (1.0 + (passages - df + 0.5) / (df + 0.5)).ln() as f32
}

/// What a passage's length takes from its frequencies. `average`: mean own length of the user's passages.
pub(crate) fn length_norm(length: f32, average: f32, weights: &RecallOptions) -> f32 {
    weights.k1 * (1.0 - weights.b + weights.b * length / average)
}

/// What one term adds to a passage's sum. `weight`: idf times the term's count in the question.
pub(crate) fn term_score(weight: f32, frequency: f32, norm: f32, weights: &RecallOptions) -> f32 {
    weight * (frequency * (weights.k1 + 1.0) / (frequency + norm))
}

/// The possible maximum of a passage's sum: `weight_sum` over the question's terms, times k1 + 1.
pub(crate) fn possible_maximum(weight_sum: f32, weights: &RecallOptions) -> f32 {
    ((weights.k1 + 1.0) * weight_sum).max(1e-6)
}

/// How much of what neighbours lend an episode of `words` takes.
pub(crate) fn openness(words: u32, weights: &RecallOptions) -> f32 {
    (weights.long_words / words.max(1) as f32).min(1.0)
}

/// The cosine of an episode blended with those of its neighbours in the session.
pub(crate) fn blended_cosine(
    own: f32,
    previous: Option<f32>,
    next: Option<f32>,
    openness: f32,
    weights: &RecallOptions,
) -> f32 {
    let before = if previous.is_some() { weights.vector_previous * openness } else { 0.0 };
    let after = if next.is_some() { weights.vector_next * openness } else { 0.0 };
    (own + before * previous.unwrap_or(0.0) + after * next.unwrap_or(0.0)) / (1.0 + before + after)
}

/// What is known of an episode beside words and vector.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Facts {
    pub words: u32,
    pub content_words: u32,
    /// The question names the speaker.
    pub named: bool,
    /// The question asks for a time and the episode holds one.
    pub when: bool,
    /// The episode was said about the time that the question names.
    pub in_range: bool,
}

/// The weighted parts of a score before neighbours lend: their sum in the order of the fields is the score.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ScoreParts {
    /// Words in common.
    pub lexical: f32,
    /// Vectors.
    pub vector: f32,
    /// The question names the speaker.
    pub speaker: f32,
    /// The question asks for a time and the episode holds one.
    pub when: f32,
    /// The episode was said about the time that the question names.
    pub range: f32,
    /// Count of content words.
    pub length: f32,
    /// Conciseness.
    pub concise: f32,
    /// What the neighbours lent.
    pub neighbours: f32,
}

impl ScoreParts {
    /// The parts of an episode with lexical score `lexical` (0 to 1), blended cosine `cosine` and `facts`; what the
    /// neighbours lend comes later.
    pub(crate) fn new(
        lexical: f32,
        cosine: f32,
        facts: Facts,
        weights: &RecallOptions,
    ) -> ScoreParts {
        let on = |flag: bool, weight: f32| if flag { weight } else { 0.0 };
        let length = ((1.0 + facts.content_words as f32).ln() / 3.0).min(1.0);
        ScoreParts {
            lexical: weights.lexical * lexical,
            vector: weights.vector * cosine,
            speaker: on(facts.named, weights.speaker),
            when: on(facts.when, weights.when),
            range: on(facts.in_range, weights.range),
            length: weights.length * length,
            concise: weights.concise * (weights.concise_words / facts.words.max(1) as f32).min(1.0),
            neighbours: 0.0,
        }
    }

    /// The score before neighbours lend.
    pub(crate) fn own(&self) -> f32 {
        self.lexical
            + self.vector
            + self.speaker
            + self.when
            + self.range
            + self.length
            + self.concise
    }
}

/// The parts that count, such as `words 1.20 + vector 0.61`.
impl std::fmt::Display for ScoreParts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let parts = [
            ("words", self.lexical),
            ("vector", self.vector),
            ("speaker", self.speaker),
            ("when", self.when),
            ("range", self.range),
            ("length", self.length),
            ("concise", self.concise),
            ("neighbours", self.neighbours),
        ];
        let mut separator = "";
        for (name, part) in parts.into_iter().filter(|(_, part)| *part != 0.0) {
            write!(f, "{separator}{name} {part:.2}")?;
            separator = " + ";
        }
        Ok(())
    }
}

/// What the neighbours lend to an episode with score `own`; `previous` and `next` are their scores.
pub(crate) fn lent(
    own: f32,
    previous: Option<f32>,
    next: Option<f32>,
    openness: f32,
    weights: &RecallOptions,
) -> f32 {
    let best = previous.unwrap_or(0.0).max(next.unwrap_or(0.0)).max(0.0);
    weights.spread * (openness * best + (1.0 - openness) * own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequencies_borrow_and_saturate() {
        let weights = RecallOptions::default();
        let held = Held { own_halves: 3, previous: 2, before_previous: 1, next: 1 };
        let frequency = held.weighted(&weights);
        assert!((frequency - 3.0).abs() < 1e-6);
        let norm = length_norm(10.0, 10.0, &weights);
        assert!((norm - 0.9).abs() < 1e-6);
        let one = term_score(1.0, 1.0, norm, &weights);
        let many = term_score(1.0, 1e6, norm, &weights);
        assert!((one - 1.0).abs() < 1e-6 && many < 1.9 && many > 1.89);
        assert!(many / possible_maximum(1.0, &weights) < 1.0);
    }

    #[test]
    fn rare_terms_weigh_more_and_unknown_ones_nothing() {
        assert_eq!(idf(100, 0), 0.0);
        assert!(idf(100, 1) > idf(100, 50) && idf(100, 100) > 0.0);
    }

    #[test]
    fn a_missing_neighbour_takes_no_part() {
        let weights = RecallOptions::default();
        assert_eq!(blended_cosine(0.5, None, None, 1.0, &weights), 0.5);
        let both = blended_cosine(0.5, Some(1.0), Some(0.0), 1.0, &weights);
        assert!((both - 0.8 / 1.5).abs() < 1e-6);
        assert_eq!(lent(1.0, None, Some(-3.0), 1.0, &weights), 0.0);
        assert!((lent(1.0, Some(2.0), None, 0.5, &weights) - 0.15).abs() < 1e-6);
    }
}
