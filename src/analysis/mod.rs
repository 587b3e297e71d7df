//! From text to terms: what the lexical leg of a recall reads of a turn and of a question.
//!
//! Pure: equal text gives equal terms on every machine. Any text is taken, in time linear in its length, and questions
//! are texts like others. English is known best: stop words, stems and expressions of time are English.

mod characters;
mod identifiers;
mod length;
mod passages;
mod segments;
mod speakers;
mod stem;
mod stop;
pub mod timex;
mod unspaced;
mod words;

use jiff::civil::Date;

use crate::model::{FREQUENCY_MAX, HeadTerm, RowTerms, TextTerm};

/// What this analysis is called; to be changed with everything that changes a term, a passage or a count.
pub use crate::model::ANALYSER;
pub use length::{tokens, words};
pub use passages::passages;
pub use speakers::{first_name, names_in, speaks_of_self};
pub use words::{Kind, terms};

/// The analysis of an episode: of what was said, by whom, and on which day.
pub fn analyse(speaker: Option<&str>, text: &str, date: Date) -> RowTerms {
    let words = words(text);
    let mut bag = Bag::default();
    let mut content_words = 0_u32;
    let passages = passages::passages_of(text, words);
    let passages = passages.into_iter().map(|range| {
        terms(&text[range], |term, kind| {
            bag.push(term);
            content_words = content_words.saturating_add(u32::from(kind == Kind::Word));
        });
        bag.drain(|term, count| TextTerm { term, frequency: capped(count) })
    });
    let passages = passages.collect();
    RowTerms {
        words,
        content_words,
        has_time: timex::holds_time(text, date),
        head: head(speaker.unwrap_or_default(), date),
        passages,
    }
}

/// The distinct terms of a question in ascending order, with how often it holds each.
pub fn query_terms(question: &str) -> Vec<(String, u32)> {
    let mut bag = Bag::default();
    terms(question, |term, _| bag.push(term));
    bag.drain(|term, count| (term, count))
}

/// The terms that stand for a whole episode.
fn head(speaker: &str, date: Date) -> Vec<HeadTerm> {
    let mut head: Vec<HeadTerm> = query_terms(speaker)
        .into_iter()
        .map(|(term, count)| HeadTerm { term, speaker: capped(count), date: 0 })
        .collect();
    for (term, count) in query_terms(&timex::printed(date)) {
        match head.binary_search_by(|known| known.term.cmp(&term)) {
            Ok(at) => head[at].date = capped(count),
            Err(at) => head.insert(at, HeadTerm { term, speaker: 0, date: capped(count) }),
        }
    }
    head
}

fn capped(count: u32) -> u8 {
    count.min(u32::from(FREQUENCY_MAX)) as u8
}

/// Terms with repeats, in one string until they are counted.
#[derive(Default)]
struct Bag {
    bytes: String,
    ranges: Vec<(usize, usize)>,
}

impl Bag {
    fn push(&mut self, term: &str) {
        let start = self.bytes.len();
        self.bytes.push_str(term);
        self.ranges.push((start, self.bytes.len()));
    }

    /// Empties the bag: its distinct terms in ascending order, with their counts.
    fn drain<T>(&mut self, make: impl Fn(String, u32) -> T) -> Vec<T> {
        let term = |&(start, end): &(usize, usize)| &self.bytes[start..end];
        self.ranges.sort_unstable_by(|a, b| term(a).cmp(term(b)));
        let equal = self.ranges.chunk_by(|a, b| term(a) == term(b));
        let made = equal.map(|same| {
            make(term(&same[0]).to_owned(), u32::try_from(same.len()).unwrap_or(u32::MAX))
        });
        let made = made.collect();
        self.bytes.clear();
        self.ranges.clear();
        made
    }
}

#[cfg(test)]
mod tests;
