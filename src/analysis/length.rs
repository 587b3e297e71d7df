//! How long a text is, in words: the unit of passages and budgets.
//!
//! What white space parts is a word; a run of a script without spaces holds one word for every two characters. Scripts
//! that meet inside a word part it. Punctuation alone is a word only when it stands alone.

use super::characters::{continues, is_separator, is_word};
use super::segments::{Gap, Segment, Segments};

/// Tokens of a word, on the average of English.
const TOKENS_PER_WORD: f64 = 1.3;

/// A word by its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WordAt {
    /// Where a passage begins that begins with this word: one character ahead within a run of a script without spaces,
    /// so that the pair across the cut is not lost.
    pub from: usize,
    pub end: usize,
    /// Whether a line or sentence ends behind it.
    pub closes: bool,
}

/// Words of a text.
pub fn words(text: &str) -> u32 {
    let count = if text.is_ascii() {
        let mut apart = true;
        let starts = text.bytes().filter(|byte| {
            let begins = apart && !is_separator(char::from(*byte));
            apart = is_separator(char::from(*byte));
            begins
        });
        starts.count()
    } else {
        let mut count = 0;
        each_word(text, |_| count += 1);
        count
    };
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// Tokens that a language model makes of so many words, at least 1.
pub fn tokens(words: u32) -> u32 {
    // Exact in f64, and the conversion saturates.
    ((f64::from(words) * TOKENS_PER_WORD).ceil() as u32).max(1)
}

/// Hands the words of a text to `visit`, in order.
pub(super) fn each_word(text: &str, mut visit: impl FnMut(WordAt)) {
    // The last word, which waits for what follows it, and whether it holds no letter.
    let mut last: Option<(WordAt, bool)> = None;
    for segment in Segments::of(text) {
        if segment.gap != Gap::None
            && let Some((mut word, _)) = last.take()
        {
            word.closes |=
                segment.gap == Gap::Line || text[..word.end].ends_with(['.', '!', '?', ':']);
            visit(word);
        }
        let bare = !segment.unspaced && !text[segment.start..segment.end].chars().any(is_word);
        let mut from = segment.start;
        match &mut last {
            Some((word, _)) if bare => {
                word.end = segment.end;
                word.closes |= segment.closes;
                continue;
            }
            Some((word, true)) => from = word.from,
            Some((word, false)) => visit(*word),
            None => {}
        }
        let word = if segment.unspaced {
            pairs(text, segment, from, &mut visit)
        } else {
            WordAt { from, end: segment.end, closes: segment.closes }
        };
        last = Some((word, bare));
    }
    if let Some((word, _)) = last {
        visit(word);
    }
}

/// Hands all words of a run of a script without spaces but the last to `visit`, and returns the last.
fn pairs(text: &str, run: Segment, from: usize, visit: &mut impl FnMut(WordAt)) -> WordAt {
    let mut word = WordAt { from, end: run.end, closes: false };
    let (mut units, mut unit_start) = (0_usize, run.start);
    for (offset, c) in text[run.start..run.end].char_indices() {
        if offset > 0 && continues(c) {
            continue;
        }
        if units == 2 {
            let end = run.start + offset;
            visit(WordAt { end, ..word });
            word.from = unit_start;
            units = 0;
        }
        unit_start = run.start + offset;
        units += 1;
    }
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: u32) {
        assert_eq!(words(text), expected, "{text:?}");
    }

    #[test]
    fn words_are_parted_by_white_space() {
        check("", 0);
        check("  one two,three\n- four ", 4);
        check("caf\u{e9} \u{1f600} -", 3);
        check("nul\0nul", 2);
    }

    #[test]
    fn two_characters_of_a_script_without_spaces_are_a_word() {
        check("\u{65e5}", 1);
        check("\u{65e5}\u{672c}\u{8a9e}", 2);
        check("(\u{65e5}\u{672c}\u{3002}\u{8a9e})", 2);
        check("abc\u{65e5}\u{672c}def", 3);
        check("\u{e01}\u{e33}\u{e01}\u{e34}", 1);
    }

    #[test]
    fn a_word_is_a_little_more_than_a_token() {
        for (words, expected) in [(0, 1), (1, 2), (10, 13), (11, 15), (u32::MAX, u32::MAX)] {
            assert_eq!(tokens(words), expected);
        }
    }
}
