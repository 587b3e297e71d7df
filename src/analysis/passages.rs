//! Cuts a long text into passages: pieces of about 100 words that end with a line or a sentence where they can.
//!
//! Invariants: the passages of a text begin in ascending order, stand at boundaries of characters and cover every word.
//! A term of the text is a term of one of its passages, and the other way round.

use std::ops::Range;

use super::length::{WordAt, each_word, words};

/// Words of a passage, about. BM25 over passages of this length was best on long turns (BEAM, 100k tokens).
const PASSAGE_WORDS: usize = 100;
/// Words of a line or sentence that stays whole.
const SENTENCE_WORDS_MAX: usize = 150;

/// The passages of a text as ranges of its bytes, at least one. Lines and sentences are gathered until the next one
/// would go over 100 words; one of more than 150 words is cut every 100. Two passages share a character where the cut
/// goes through a run of a script without spaces.
pub fn passages(text: &str) -> Vec<Range<usize>> {
    passages_of(text, words(text))
}

/// As [`passages`], for a text whose words have been counted.
pub(super) fn passages_of(text: &str, words: u32) -> Vec<Range<usize>> {
    if words as usize <= PASSAGE_WORDS {
        return std::iter::once(0..text.len()).collect();
    }
    let mut all: Vec<WordAt> = Vec::with_capacity(words as usize);
    each_word(text, |word| all.push(word));
    let mut passages = Vec::new();
    // Words from `start` on that are gathered for the next passage.
    let (mut start, mut gathered) = (0, 0);
    let mut cut = |from: usize, to: usize| passages.push(all[from].from..all[to - 1].end);
    for piece in all.split_inclusive(|word| word.closes) {
        let mut count = piece.len();
        if gathered > 0 && gathered + count > PASSAGE_WORDS {
            cut(start, start + gathered);
            start += gathered;
            gathered = 0;
        }
        while count > SENTENCE_WORDS_MAX {
            cut(start, start + PASSAGE_WORDS);
            start += PASSAGE_WORDS;
            count -= PASSAGE_WORDS;
        }
        gathered += count;
    }
    if gathered > 0 {
        cut(start, start + gathered);
    }
    passages
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lengths(text: &str) -> Vec<u32> {
        passages(text).into_iter().map(|range| words(&text[range])).collect()
    }

    #[test]
    fn short_texts_are_one_passage() {
        assert_eq!(passages(""), [Range { start: 0, end: 0 }]);
        let text = "one two. ".repeat(50);
        assert_eq!(passages(&text), [Range { start: 0, end: text.len() }]);
    }

    #[test]
    fn long_texts_are_cut_behind_sentences_and_lines() {
        assert_eq!(lengths(&"one two three. ".repeat(60)), [99, 81]);
        assert_eq!(lengths(&format!("{}\n{}", "a ".repeat(90), "b ".repeat(20))), [90, 20]);
        assert_eq!(lengths(&format!("a. {}", "b ".repeat(120))), [1, 120]);
    }

    #[test]
    fn a_sentence_of_more_than_150_words_is_cut() {
        assert_eq!(lengths(&"a ".repeat(150)), [150]);
        assert_eq!(lengths(&"a ".repeat(151)), [100, 51]);
        assert_eq!(lengths(&format!("x. {}", "a ".repeat(251))), [1, 100, 100, 51]);
    }

    #[test]
    fn scripts_without_spaces_are_cut_too() {
        let sentence = format!("{}\u{3002}", "\u{65e5}\u{672c}".repeat(30));
        assert_eq!(lengths(&sentence.repeat(4)), [90, 30]);
        let run = "\u{65e5}\u{672c}".repeat(160);
        let ranges = passages(&run);
        assert_eq!(ranges.len(), 2);
        // One character belongs to both.
        assert_eq!(ranges[1].start, ranges[0].end - '\u{672c}'.len_utf8());
    }
}
