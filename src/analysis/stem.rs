//! Word stems: Snowball's English stemmer.

use std::borrow::Cow;

use snowball_stemmers_rs::{Algorithm, Stemmer};

/// The stem of a word in small letters. Only words of ASCII have one: the rules are English, and what they do to other
/// letters is nobody's grammar.
pub(super) fn stem(word: &str) -> Cow<'_, str> {
    // Shorter words are their own stems.
    if word.len() < 3 || !word.is_ascii() {
        return Cow::Borrowed(word);
    }
    let stem = Stemmer::create(Algorithm::English).stem(word);
    if stem.is_empty() { Cow::Borrowed(word) } else { stem }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_a_word_share_a_stem() {
        for (word, expected) in [
            ("running", "run"),
            ("stories", "stori"),
            ("story", "stori"),
            ("as", "as"),
            ("90s", "90s"),
            ("caf\u{e9}s", "caf\u{e9}s"),
        ] {
            assert_eq!(stem(word), expected);
        }
    }
}
