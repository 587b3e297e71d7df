//! Cuts a text where its words can never join: at separators, between scripts with and without spaces, and behind the
//! sentence marks of the latter.
//!
//! Invariant: a text that is cut at the start or the end of a segment has the same segments on both sides. Terms are
//! made segment by segment, so passages that begin and end there have the terms of the whole.

use super::characters::{continues, is_sentence_mark, is_separator, is_unspaced};

/// What stands in front of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gap {
    /// Nothing: the previous segment ends here.
    None,
    /// Separators, or the start of the text.
    Space,
    /// Separators with a line feed among them.
    Line,
}

/// A piece of a text without separators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    pub start: usize,
    pub end: usize,
    pub gap: Gap,
    /// Whether it is a run of a script without spaces.
    pub unspaced: bool,
    /// Whether it ends with a sentence mark that needs no space behind it.
    pub closes: bool,
}

/// The segments of a text, in order.
pub(super) struct Segments<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Segments<'a> {
    pub(super) fn of(text: &'a str) -> Segments<'a> {
        Segments { text, at: 0 }
    }
}

impl Iterator for Segments<'_> {
    type Item = Segment;

    fn next(&mut self) -> Option<Segment> {
        let mut gap = if self.at == 0 { Gap::Space } else { Gap::None };
        let mut rest = self.text[self.at..].char_indices();
        let (start, first) = loop {
            let (at, c) = rest.next()?;
            match c {
                '\n' => gap = Gap::Line,
                c if !is_separator(c) => break (self.at + at, c),
                _ if gap == Gap::None => gap = Gap::Space,
                _ => {}
            }
        };
        let unspaced = is_unspaced(first);
        let mut closes = is_sentence_mark(first);
        let mut end = start + first.len_utf8();
        for (at, c) in rest {
            let ends = closes || is_separator(c) || is_unspaced(c) != unspaced;
            if ends && !continues(c) || unspaced && is_sentence_mark(c) {
                break;
            }
            closes = is_sentence_mark(c);
            end = self.at + at + c.len_utf8();
        }
        self.at = end;
        Some(Segment { start, end, gap, unspaced, closes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let found: Vec<&str> = Segments::of(text).map(|s| &text[s.start..s.end]).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn texts_are_cut_at_separators_scripts_and_sentence_marks() {
        check("", &[]);
        check(" \0 ", &[]);
        check("go, now\u{a0}!", &["go,", "now", "!"]);
        check("abc漢字def", &["abc", "漢字", "def"]);
        check("漢字。かな", &["漢字", "。", "かな"]);
        check("v1！v2", &["v1！", "v2"]);
        check("กำ e\u{301}", &["กำ", "e\u{301}"]);
    }

    #[test]
    fn gaps_tell_lines_from_spaces() {
        let gaps: Vec<Gap> = Segments::of("a b \n c漢").map(|s| s.gap).collect();
        assert_eq!(gaps, [Gap::Space, Gap::Space, Gap::Line, Gap::None]);
    }
}
