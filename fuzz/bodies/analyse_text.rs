//! Any text of any speaker on any day has an analysis that keeps its promises, and the terms of its passages are those
//! of the whole.

use jiff::civil::Date;
use loomdb::internals::analysis::{
    analyse, first_name, names_in, passages, query_terms, speaks_of_self, timex, tokens, words,
};
use loomdb::internals::model::TERM_BYTES_MAX;

/// Two bytes for the year, one each for month, day and bytes of the speaker's name; then the name and the text.
pub fn run(data: &[u8]) {
    let [low, high, month, day, name, rest @ ..] = data else { return };
    let year = i16::from_le_bytes([*low, *high]) % 10_000;
    let date = Date::new(year, (month % 12 + 1) as i8, (day % 28 + 1) as i8);
    let date = date.expect("every month has 28 days, and the years are those of the calendar");
    let (name, text) = rest.split_at(usize::from(*name).min(rest.len()));
    let (name, text) = (String::from_utf8_lossy(name), String::from_utf8_lossy(text));

    let row = analyse(Some(&name), &text, date);
    assert_eq!(row, analyse(Some(&name), &text, date), "equal turns, equal terms");
    check_terms(row.head.iter().map(|term| term.term.as_str()));
    assert!(row.head.iter().all(|term| term.speaker > 0 || term.date > 0));
    for passage in &row.passages {
        check_terms(passage.iter().map(|term| term.term.as_str()));
        assert!(passage.iter().all(|term| term.frequency > 0));
    }
    assert_eq!(row.words, words(&text));
    assert!(tokens(row.words) > row.words);
    check_passages(&text, row.passages.len());

    let mut united: Vec<&String> = row.passages.iter().flatten().map(|term| &term.term).collect();
    united.sort();
    united.dedup();
    let whole = query_terms(&text);
    assert!(united.into_iter().eq(whole.iter().map(|(term, _)| term)), "the passages are the text");

    let ranges = timex::parse(&text, date);
    assert!(ranges.iter().all(|range| range.start < range.end));
    assert_eq!(row.has_time, !ranges.is_empty());
    timex::asks_when(&text);
    speaks_of_self(&text);
    assert!(!names_in(&text).contains(""));
    assert!(first_name(&name).is_none_or(|name| !name.is_empty()));
}

fn check_terms<'a>(terms: impl Iterator<Item = &'a str>) {
    let terms: Vec<&str> = terms.collect();
    assert!(terms.is_sorted_by(|a, b| a < b), "terms ascend");
    assert!(terms.iter().all(|term| !term.is_empty() && term.len() <= TERM_BYTES_MAX));
}

/// They ascend, stand between characters, and leave no word out.
fn check_passages(text: &str, count: usize) {
    let ranges = passages(text);
    assert!(count >= 1 && count == ranges.len());
    assert!(ranges.is_sorted_by(|a, b| a.start < b.start && a.end < b.end));
    let mut reached = 0;
    for range in ranges.iter().cloned().chain(std::iter::once(text.len()..text.len())) {
        assert!(text.get(range.clone()).is_some(), "a passage begins and ends between characters");
        if let Some(between) = text.get(reached..range.start) {
            assert_eq!(words(between), 0, "words between passages");
        }
        reached = range.end;
    }
}
