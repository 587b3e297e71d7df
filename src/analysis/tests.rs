use jiff::civil::date;
use proptest::prelude::*;

use super::*;
use crate::model::TERM_BYTES_MAX;

/// Texts of scripts, marks, connectors and separators in any mixture.
fn texts() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        any::<String>(),
        "[a-z]{1,9}",
        "[A-Za-z0-9._/@:'’,+#-]{1,12}",
        "[ .!?:\n\0]{1,3}",
        "[日本語漢字。！？、ｶﾞﾅ゛ゟㇰ]{1,40}",
        "[กขำิ์ຳລາខ្មမြ]{1,12}",
        "[\u{301}\u{ad}\u{200b}\u{200d}\u{fe0f}\u{1f600}\u{1f170}㍿①ﬁéÉΣςİ]{1,6}",
        Just("it was a long day, ".repeat(9)),
    ];
    prop::collection::vec(piece, 0..30).prop_map(|pieces| pieces.concat())
}

#[track_caller]
fn check_terms<'a>(terms: impl Iterator<Item = &'a str>) {
    let terms: Vec<&str> = terms.collect();
    assert!(terms.is_sorted_by(|a, b| a < b), "{terms:?}");
    assert!(terms.iter().all(|term| !term.is_empty() && term.len() <= TERM_BYTES_MAX), "{terms:?}");
}

#[test]
fn a_turn_has_its_terms_its_head_and_its_counts() {
    let row =
        analyse(Some("Ada May 7"), "I saw the cats, cats and POL-358 yesterday", date(2023, 5, 7));
    assert_eq!((row.words, row.content_words, row.has_time), (8, 6, true));
    let passage: Vec<_> =
        row.passages[0].iter().map(|term| (term.term.as_str(), term.frequency)).collect();
    let expected =
        [("358", 1), ("cat", 2), ("pol", 1), ("pol-358", 1), ("saw", 1), ("yesterday", 1)];
    assert_eq!(passage, expected);
    let head: Vec<_> =
        row.head.iter().map(|term| (term.term.as_str(), term.speaker, term.date)).collect();
    assert_eq!(head, [("2023", 0, 1), ("7", 1, 1), ("ada", 1, 0)]);
}

#[test]
fn an_empty_turn_has_one_empty_passage() {
    let row = analyse(None, "", date(2023, 5, 7));
    assert_eq!((row.words, row.content_words, row.has_time), (0, 0, false));
    assert_eq!(row.passages, vec![Vec::new()]);
}

#[test]
fn frequencies_stop_at_their_limit() {
    let row = analyse(None, &"cat,".repeat(300), date(2023, 5, 7));
    assert_eq!((row.passages[0][0].frequency, row.content_words), (FREQUENCY_MAX, 300));
}

#[test]
fn a_question_has_distinct_terms_with_counts() {
    let expected = [("cat".to_owned(), 2), ("lisbon".to_owned(), 1)];
    assert_eq!(query_terms("Which cat is the cat of Lisbon?"), expected);
    assert!(query_terms("\"OR AND\" (*) NOT").is_empty());
}

#[test]
fn texts_that_hold_one_word_or_one_mark_take_linear_time() {
    for text in [
        "x".repeat(100_000),
        "a.b-".repeat(50_000),
        "\u{301}".repeat(500_000),
        format!("e{}", "\u{315}\u{301}".repeat(250_000)),
        "\u{65e5}".repeat(100_000),
        "1,".repeat(100_000),
        "don't".repeat(50_000),
    ] {
        check_invariants(&text);
    }
}

#[track_caller]
fn check_invariants(text: &str) {
    let row = analyse(Some(text), text, date(2023, 5, 7));
    check_terms(row.head.iter().map(|term| term.term.as_str()));
    assert!(row.head.iter().all(|term| term.speaker > 0 || term.date > 0));
    let ranges = passages(text);
    assert_eq!(ranges.len(), row.passages.len());
    for passage in &row.passages {
        check_terms(passage.iter().map(|term| term.term.as_str()));
        assert!(passage.iter().all(|term| term.frequency > 0));
    }
    assert!(ranges.is_sorted_by(|a, b| a.start < b.start && a.end < b.end));
    assert!(ranges.iter().all(|range| text.is_char_boundary(range.start)));
    assert!(ranges.iter().all(|range| text.is_char_boundary(range.end)));
    // What lies between two passages is no word.
    let mut reached = 0;
    for range in ranges.iter().cloned().chain(std::iter::once(text.len()..text.len())) {
        if let Some(between) = text.get(reached..range.start) {
            assert_eq!(words(between), 0, "{between:?}");
        }
        reached = range.end;
    }
    // The passages hold the terms of the whole, and nothing else.
    let mut united: Vec<&String> = row.passages.iter().flatten().map(|term| &term.term).collect();
    united.sort();
    united.dedup();
    let whole = query_terms(text);
    assert!(united.into_iter().eq(whole.iter().map(|(term, _)| term)));
    assert!(whole.iter().all(|(_, count)| *count > 0));
}

proptest! {
    #[test]
    fn any_text_keeps_the_promises(text in texts()) {
        check_invariants(&text);
    }

    #[test]
    fn speakers_and_questions_of_any_kind_have_names(text in texts()) {
        let names = names_in(&text);
        prop_assert!(!names.contains(""));
        prop_assert!(first_name(&text).is_none_or(|name| !name.is_empty()));
        speaks_of_self(&text);
    }
}
