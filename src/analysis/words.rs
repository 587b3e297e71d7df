//! From text to terms.
//!
//! A segment is normalised (NFKC), its runs of letters and numbers are put in small letters, lose what follows an
//! apostrophe, stop words are dropped, the rest is stemmed. Runs of scripts without spaces become pairs, identifiers
//! are added whole. Symbols give no terms.
//!
//! This is Unicode word segmentation (UAX 29) with its words of several parts parted: what it joins over dots, colons,
//! commas and underscores is split here, which leaves the runs of letters, numbers and marks.
//!
//! Invariant: time is linear in the text, whatever it holds, and a term is never longer than [`TERM_BYTES_MAX`].

use std::borrow::Cow;

use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfkc_quick};

use super::characters::{
    is_apostrophe, is_ignorable, is_mark, is_spaced_word, is_unspaced, push_small,
};
use super::identifiers::{identifiers, is_connector};
use super::segments::Segments;
use super::stem::stem;
use super::stop::is_stop;
use super::unspaced::pairs;
use crate::model::TERM_BYTES_MAX;

/// Where a term comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A word, or a pair of characters of a script without spaces.
    Word,
    /// An identifier as a whole; its parts are words besides.
    Whole,
}

/// Hands the terms of `text` to `visit`, repeats included. Questions go through it as well: there is no query language.
pub fn terms(text: &str, mut visit: impl FnMut(&str, Kind)) {
    let mut buffer = String::with_capacity(TERM_BYTES_MAX);
    for segment in Segments::of(text) {
        let normal = normalise(&text[segment.start..segment.end]);
        terms_of_segment(&normal, &mut buffer, &mut visit);
    }
}

/// NFKC. Runs of marks are broken up after 30 (UAX 15's stream-safe form), which keeps their sorting cheap.
pub(super) fn normalise(text: &str) -> Cow<'_, str> {
    if text.is_ascii() || is_nfkc_quick(text.chars()) == IsNormalized::Yes {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(text.stream_safe().nfkc().collect())
    }
}

fn terms_of_segment(text: &str, buffer: &mut String, visit: &mut impl FnMut(&str, Kind)) {
    let mut at = 0;
    let mut connected = false;
    while let Some(c) = text[at..].chars().next() {
        if is_unspaced(c) {
            at = pairs(text, at, buffer, visit);
        } else if is_spaced_word(c) {
            at = word(text, at, buffer, visit);
            let mut next = text[at..].chars();
            connected |=
                next.next().is_some_and(is_connector) && next.next().is_some_and(is_spaced_word);
        } else {
            at += c.len_utf8();
        }
    }
    if connected {
        identifiers(text, buffer, &mut |whole| visit(whole, Kind::Whole));
    }
}

/// Handles the word at `at` and returns where it and its suffix end.
fn word(text: &str, at: usize, buffer: &mut String, visit: &mut impl FnMut(&str, Kind)) -> usize {
    buffer.clear();
    let (mut end, whole) = take(text, at, buffer, is_spaced_word);
    let length = buffer.len();
    if let Some(suffix) = suffix(text, end) {
        buffer.push('\'');
        end = take(text, suffix, buffer, is_letter).0;
        if is_stop(buffer) {
            return end;
        }
        buffer.truncate(length);
    }
    if whole {
        if is_stop(buffer) {
            return end;
        }
        stem(buffer);
    }
    visit(buffer, Kind::Word);
    end
}

/// Where the letters behind an apostrophe at `end` begin.
pub(super) fn suffix(text: &str, end: usize) -> Option<usize> {
    let mut rest = text[end..].chars();
    let quote = rest.next().filter(|c| is_apostrophe(*c))?;
    rest.next().filter(|c| is_letter(*c)).map(|_| end + quote.len_utf8())
}

/// A letter, as it stands behind an apostrophe.
pub(super) fn is_letter(c: char) -> bool {
    is_spaced_word(c) && !c.is_numeric()
}

/// Appends the run of `belongs` from `at` on to `buffer`, in small letters, and returns where it ends and whether it
/// fitted. Marks inside are kept; what is only shown is not.
pub(super) fn take(
    text: &str,
    at: usize,
    buffer: &mut String,
    belongs: impl Fn(char) -> bool,
) -> (usize, bool) {
    let mut fits = true;
    for (offset, c) in text[at..].char_indices() {
        if belongs(c) || is_mark(c) && !is_ignorable(c) {
            push_small(c, |small| fits = fits && push_bounded(buffer, small));
        } else if !is_ignorable(c) {
            return (at + offset, fits);
        }
    }
    (text.len(), fits)
}

/// Appends a character unless the term would become too long.
pub(super) fn push_bounded(term: &mut String, c: char) -> bool {
    let fits = term.len() + c.len_utf8() <= TERM_BYTES_MAX;
    if fits {
        term.push(c);
    }
    fits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let mut found = Vec::new();
        terms(text, |term, _| found.push(term.to_owned()));
        assert_eq!(found, expected, "{text:?}");
    }

    #[test]
    fn words_are_small_stemmed_and_without_stop_words() {
        check("The cats were RUNNING to Lisbon!", &["cat", "run", "lisbon"]);
        check("Caroline's don't let's o\u{2019}clock", &["carolin", "o"]);
        check("rock'n'roll it's2 5's", &["rock", "roll", "2", "5"]);
        check(
            "na\u{ef}ve CAFE\u{301} \u{fb01}sh \u{ff21}\u{ff22}",
            &["na\u{ef}ve", "caf\u{e9}", "fish", "ab"],
        );
        check("\u{3a3}\u{399}\u{3a3} \u{3c3}\u{3b9}\u{3c2}", &["\u{3c3}\u{3b9}\u{3c3}"; 2]);
        check("exam\u{ad}ple nul\0byte", &["exampl", "nul", "byte"]);
    }

    #[test]
    fn parts_and_wholes_of_identifiers_are_terms() {
        check("POL-358", &["pol", "358", "pol-358"]);
        check("well-known and/or", &["well", "known", "and/or"]);
        check("see a.b@c.org.", &["see", "b", "c", "org", "a.b@c.org"]);
    }

    #[test]
    fn scripts_without_spaces_become_pairs() {
        check("\u{65e5}\u{672c}\u{8a9e}", &["\u{65e5}\u{672c}", "\u{672c}\u{8a9e}"]);
        check("\u{65e5}", &["\u{65e5}"]);
        check("a\u{65e5}\u{672c}b2", &["\u{65e5}\u{672c}", "b2"]);
        check("\u{ff76}\u{ff9e}\u{ff77}", &["\u{30ac}\u{30ad}"]);
    }

    #[test]
    fn symbols_give_no_terms() {
        check("\u{1f600}\u{200d}\u{1f468} -- ?! \u{301}\u{301} \u{1f170}\u{fe0f}", &[]);
        check("1\u{fe0f}\u{20e3}", &["1"]);
    }

    #[test]
    fn long_terms_are_cut_between_characters() {
        let long = "x".repeat(200);
        check(&long, &[&long[..TERM_BYTES_MAX]]);
        let marks = format!("a{}", "\u{20d0}".repeat(500));
        terms(&marks, |term, _| assert!(term.len() <= TERM_BYTES_MAX && term.len() > 50));
        let wide = "\u{e9}".repeat(200);
        check(&wide, &[&wide[..TERM_BYTES_MAX]]);
    }
}
