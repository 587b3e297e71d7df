//! What the text analysis makes of one episode: plain data, stored with the row and read by the lexical leg.
//!
//! Invariants: at least one passage; terms are non-empty, at most [`TERM_BYTES_MAX`] bytes, ascending and distinct
//! within their list; the head comes to at most [`HEAD_HALF_TERMS_MAX`].

use bincode::{Decode, Encode};

/// Name and version of the analysis that makes terms of texts. It is recorded in a database: terms of two versions are
/// never compared.
pub const ANALYSER: &str = "loom-en-1";
/// Bytes of one term, at most.
pub const TERM_BYTES_MAX: usize = 64;
/// How often a term may count in one passage, at most: more is a list, not a sentence.
pub const FREQUENCY_MAX: u8 = 255;
/// What speaker and date of one episode may add to the length of a passage, in halves of a term: segments keep two
/// bytes for it. A name of 64 KiB, one word behind the other, stays below.
pub const HEAD_HALF_TERMS_MAX: u16 = u16::MAX;

/// The analysis of one episode.
#[derive(Clone, Default, PartialEq, Eq, Encode, Decode)]
pub struct RowTerms {
    /// Words of the text, as they are counted for length and token budgets.
    pub words: u32,
    /// Terms of the text, repeats counted, stop words left out.
    pub content_words: u32,
    /// Whether the text holds an expression of time.
    pub has_time: bool,
    /// Terms of the speaker's name and of the date of the episode: they belong to every passage.
    pub head: Vec<HeadTerm>,
    /// The passages, in the order of the text.
    pub passages: Vec<Vec<TextTerm>>,
}

/// A term of the speaker's name or the date.
#[derive(Clone, PartialEq, Eq, Encode, Decode)]
pub struct HeadTerm {
    /// The term.
    pub term: String,
    /// How often the speaker's name holds it.
    pub speaker: u8,
    /// How often the date holds it.
    pub date: u8,
}

/// A term of a passage.
#[derive(Clone, PartialEq, Eq, Encode, Decode)]
pub struct TextTerm {
    /// The term.
    pub term: String,
    /// How often the passage holds it, at least 1.
    pub frequency: u8,
}

/// What one passage says of one term: its own frequencies, by where the term stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Frequencies {
    /// In the passage's text.
    pub text: u8,
    /// In the speaker's name.
    pub speaker: u8,
    /// In the date.
    pub date: u8,
}

/// What a row's analysis comes to in numbers: kept with the row wherever it lies, so that statistics need no terms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    /// As in [`RowTerms`].
    pub words: u32,
    /// As in [`RowTerms`].
    pub content_words: u32,
    /// As in [`RowTerms`].
    pub has_time: bool,
    /// Passages, at least 1.
    pub passages: u32,
    /// The own lengths of all passages, in halves of a term: a term of the text or the speaker's name counts 2, one
    /// of the date 1.
    pub half_terms: u64,
}

impl RowTerms {
    /// Terms of the text of one passage, repeats counted.
    pub fn text_length(passage: &[TextTerm]) -> u32 {
        passage.iter().map(|term| u32::from(term.frequency)).sum()
    }

    /// What speaker and date add to the length of every passage, in halves of a term.
    pub fn head_half_terms(&self) -> u32 {
        self.head.iter().map(|term| 2 * u32::from(term.speaker) + u32::from(term.date)).sum()
    }

    /// The analysis in numbers.
    pub fn shape(&self) -> Shape {
        let head = u64::from(self.head_half_terms());
        let text = |passage: &Vec<TextTerm>| 2 * u64::from(RowTerms::text_length(passage));
        Shape {
            words: self.words,
            content_words: self.content_words,
            has_time: self.has_time,
            passages: self.passages.len() as u32,
            half_terms: self.passages.iter().map(|passage| text(passage) + head).sum(),
        }
    }

    /// Whether the invariants hold: asked of what is read from a file, and of what goes into one.
    pub fn is_valid(&self) -> bool {
        let named = |term: &str| (1..=TERM_BYTES_MAX).contains(&term.len());
        let texts = |passage: &Vec<TextTerm>| {
            let length: u64 = passage.iter().map(|term| u64::from(term.frequency)).sum();
            passage.is_sorted_by(|a, b| a.term < b.term)
                && passage.iter().all(|term| named(&term.term) && term.frequency > 0)
                && u32::try_from(length).is_ok()
        };
        let halves = |term: &HeadTerm| 2 * u64::from(term.speaker) + u64::from(term.date);
        !self.passages.is_empty()
            && u32::try_from(self.passages.len()).is_ok()
            && self.passages.iter().all(texts)
            && self.head.is_sorted_by(|a, b| a.term < b.term)
            && self.head.iter().map(halves).sum::<u64>() <= u64::from(HEAD_HALF_TERMS_MAX)
            && self.head.iter().all(|term| named(&term.term) && (term.speaker, term.date) != (0, 0))
    }
}

/// Redacted: terms are memory text.
impl std::fmt::Debug for RowTerms {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RowTerms {{ words: {}, passages: {} }}", self.words, self.passages.len())
    }
}

/// Redacted likewise.
impl std::fmt::Debug for HeadTerm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "HeadTerm {{ speaker: {}, date: {} }}", self.speaker, self.date)
    }
}

/// Redacted likewise.
impl std::fmt::Debug for TextTerm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "TextTerm {{ frequency: {} }}", self.frequency)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(term: &str, frequency: u8) -> TextTerm {
        TextTerm { term: term.into(), frequency }
    }

    #[test]
    fn lengths_count_halves_and_every_passage_has_the_head() {
        let terms = RowTerms {
            words: 9,
            content_words: 6,
            has_time: true,
            head: vec![
                HeadTerm { term: "2023".into(), speaker: 0, date: 1 },
                HeadTerm { term: "ann".into(), speaker: 1, date: 0 },
            ],
            passages: vec![vec![text("a", 2), text("b", 1)], vec![text("b", 3)]],
        };
        let shape = terms.shape();
        assert_eq!((shape.passages, shape.half_terms), (2, 2 * 3 + 3 + 2 * 3 + 3));
        assert!(terms.is_valid());
        let broken: [fn(&mut RowTerms); 6] = [
            |t| t.passages.clear(),
            |t| t.passages[0].reverse(),
            |t| t.passages[1][0].frequency = 0,
            |t| t.head[0].date = 0,
            |t| t.head[1].term = "x".repeat(TERM_BYTES_MAX + 1),
            |t| {
                let many = 10_000..10_200;
                t.head = many
                    .map(|n| HeadTerm { term: format!("{n}"), speaker: 255, date: 1 })
                    .collect();
            },
        ];
        for damage in broken {
            let mut terms = terms.clone();
            damage(&mut terms);
            assert!(!terms.is_valid());
        }
    }
}
