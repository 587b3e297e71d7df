//! Whom a question speaks of, by first names.

use std::collections::BTreeSet;

use super::characters::{
    is_apostrophe, is_separator, is_spaced_word, is_unspaced, is_word, push_small,
};
use super::words::{is_letter, normalise};

/// Words by which people speak of themselves.
const SELF: [&str; 7] = ["i", "me", "mine", "my", "myself", "our", "we"];

/// The first name of a speaker: the first word of the name, in small letters, without punctuation around it.
pub fn first_name(speaker: &str) -> Option<String> {
    let speaker = normalise(speaker);
    let first = speaker.split(is_separator).find(|word| !word.is_empty())?;
    let name = small(trim(first));
    (!name.is_empty()).then_some(name)
}

/// The words of a question that may be first names: in small letters, without the possessive `'s`, neither stemmed nor
/// rid of stop words. Words between white space are there as a whole (`jean-luc`) and by their parts.
pub fn names_in(question: &str) -> BTreeSet<String> {
    let question = normalise(question);
    let mut names = BTreeSet::new();
    for word in question.split(is_separator) {
        let whole = without_possessive(trim(word));
        if !whole.is_empty() {
            names.insert(small(whole));
        }
        let mut rest = word;
        while let Some(start) = rest.find(is_word) {
            rest = &rest[start..];
            let end = end_of_word(rest);
            names.insert(small(without_possessive(&rest[..end])));
            rest = &rest[end..];
        }
    }
    names
}

/// Whether a question speaks of the one who asks.
pub fn speaks_of_self(question: &str) -> bool {
    question
        .split(|c: char| !(is_word(c) || c == '_'))
        .any(|word| SELF.iter().any(|own| word.eq_ignore_ascii_case(own)))
}

/// Where the run of letters and numbers at the start of `text` ends, one suffix behind an apostrophe included.
fn end_of_word(text: &str) -> usize {
    let unspaced = text.starts_with(is_unspaced);
    let run = |from: usize, belongs: fn(char) -> bool| {
        text[from..].find(|c| !belongs(c)).map_or(text.len(), |length| from + length)
    };
    if unspaced {
        return run(0, is_unspaced);
    }
    let end = run(0, |c| is_spaced_word(c) || super::characters::is_mark(c));
    super::words::suffix(text, end).map_or(end, |suffix| run(suffix, is_letter))
}

fn trim(word: &str) -> &str {
    word.trim_matches(|c| !is_word(c))
}

/// `word` without `'s` at its end.
fn without_possessive(word: &str) -> &str {
    word.strip_suffix(['s', 'S']).and_then(|word| word.strip_suffix(is_apostrophe)).unwrap_or(word)
}

fn small(word: &str) -> String {
    let mut name = String::with_capacity(word.len());
    for c in word.chars() {
        push_small(if is_apostrophe(c) { '\'' } else { c }, |small| name.push(small));
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_speaker_is_called_by_the_first_name() {
        assert_eq!(first_name("Ada Lovelace").as_deref(), Some("ada"));
        assert_eq!(first_name(" \u{c9}va ").as_deref(), Some("\u{e9}va"));
        assert_eq!(first_name("user:").as_deref(), Some("user"));
        assert_eq!(first_name(" "), None);
        assert_eq!(first_name("?!"), None);
    }

    #[test]
    fn names_are_found_with_and_without_possessive() {
        let names =
            names_in("What did Caroline\u{2019}s and JEAN-LUC's friend O'Brien say, \u{c9}va?");
        for name in ["caroline", "jean-luc", "jean", "luc", "o'brien", "\u{e9}va", "what"] {
            assert!(names.contains(name), "{name}: {names:?}");
        }
        assert!(!names.contains("caroline's"));
        assert!(names_in("").is_empty());
        assert!(names_in("\u{65e5}\u{672c}a").contains("\u{65e5}\u{672c}"));
    }

    #[test]
    fn a_question_of_mine_is_known() {
        assert!(speaks_of_self("Where do I live?") && speaks_of_self("what I'd like"));
        assert!(speaks_of_self("OUR house") && !speaks_of_self("Where did Ian go, to Amy?"));
    }
}
