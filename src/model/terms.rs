//! What the text analysis makes of one episode: plain data, stored with the row and read by the lexical leg.
//!
//! Invariants: at least one passage; terms are non-empty, at most [`TERM_BYTES_MAX`] bytes, ascending and distinct
//! within their list.

/// Bytes of one term, at most.
pub const TERM_BYTES_MAX: usize = 64;
/// How often a term may count in one passage, at most: more is a list, not a sentence.
pub const FREQUENCY_MAX: u8 = 255;

/// The analysis of one episode.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeadTerm {
    /// The term.
    pub term: String,
    /// How often the speaker's name holds it.
    pub speaker: u8,
    /// How often the date holds it.
    pub date: u8,
}

/// A term of a passage.
#[derive(Clone, Debug, PartialEq, Eq)]
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

impl RowTerms {
    /// Terms of the text of one passage, repeats counted.
    pub fn text_length(passage: &[TextTerm]) -> u32 {
        passage.iter().map(|term| u32::from(term.frequency)).sum()
    }
}
