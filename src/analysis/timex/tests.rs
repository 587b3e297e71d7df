use jiff::civil::{Date, date};
use proptest::prelude::*;

use super::*;

/// A Thursday.
fn reference() -> Date {
    date(2023, 5, 25)
}

#[track_caller]
fn check(text: &str, expected: &[(&str, &str)]) {
    let found: Vec<_> = parse(text, reference())
        .into_iter()
        .map(|range| (range.start.to_string(), range.end.to_string()))
        .collect();
    let expected: Vec<_> =
        expected.iter().map(|(start, end)| ((*start).to_owned(), (*end).to_owned())).collect();
    assert_eq!(found, expected, "{text}");
    assert_eq!(holds_time(text, reference()), !expected.is_empty());
}

#[test]
fn dates_are_read() {
    check("on 2023-04-02", &[("2023-04-02", "2023-04-03")]);
    check("5/7/2022", &[("2022-05-07", "2022-05-08")]);
    check("the week of 7 May 2023", &[("2023-05-07", "2023-05-08")]);
    check(
        "May 3rd, 2022 and the 1st of june",
        &[("2023-06-01", "2023-06-02"), ("2022-05-03", "2022-05-04")],
    );
    check("December 24", &[("2022-12-24", "2022-12-25")]);
    check("31 February 2023, 2023-13-01, 0000-01-01", &[("2023-02-01", "2023-03-01")]);
}

#[test]
fn months_seasons_and_years_are_read() {
    check("in June 2023", &[("2023-06-01", "2023-07-01")]);
    check("early August, 2023", &[("2023-08-01", "2023-08-12")]);
    check("midmay", &[("2023-05-10", "2023-05-22")]);
    check("late February 2024", &[("2024-02-20", "2024-03-01")]);
    check("last May", &[("2022-05-01", "2022-06-01")]);
    check("next May", &[("2024-05-01", "2024-06-01")]);
    check("last summer", &[("2022-06-01", "2022-09-01")]);
    check("this winter", &[("2023-12-01", "2024-03-01")]);
    check("since 2019", &[("2019-01-01", "2020-01-01")]);
}

#[test]
fn verbs_are_no_months() {
    check("I may go, we march on, mar it", &[]);
    check("in may", &[]);
    check("March was cold", &[("2023-03-01", "2023-04-01")]);
}

#[test]
fn days_around_the_reference_are_read() {
    check("I went yesterday", &[("2023-05-24", "2023-05-25")]);
    check("the day before yesterday", &[("2023-05-23", "2023-05-24")]);
    check("two weeks ago", &[("2023-05-08", "2023-05-15")]);
    check("over the last 3 months", &[("2023-02-24", "2023-05-26")]);
    check("last week", &[("2023-05-15", "2023-05-22")]);
    check("next month", &[("2023-06-01", "2023-07-01")]);
    check("last year", &[("2022-01-01", "2023-01-01")]);
    check(
        "next weekend, last weekend",
        &[("2023-05-26", "2023-05-29"), ("2023-05-19", "2023-05-22")],
    );
    check(
        "last Saturday, next thursday",
        &[("2023-05-20", "2023-05-21"), ("2023-06-01", "2023-06-02")],
    );
    check("last night", &[("2023-05-24", "2023-05-26")]);
}

#[test]
fn words_end_where_letters_of_any_script_end() {
    check("\u{e9}yesterday yesterday\u{e9}", &[]);
    check("\u{201c}yesterday\u{201d}", &[("2023-05-24", "2023-05-25")]);
}

#[test]
fn questions_for_a_time_are_known() {
    for question in ["When did she go?", "which year was it", "for how long?", "How many weeks"] {
        assert!(asks_when(question), "{question}");
    }
    for question in ["Where did she go?", "whenever", "how many cats", "\u{e9}when"] {
        assert!(!asks_when(question), "{question}");
    }
}

#[test]
fn a_day_is_written_out() {
    assert_eq!(printed(date(2023, 5, 7)), "7 May 2023");
    assert_eq!(printed(Date::MIN), "1 January -9999");
}

#[test]
fn many_expressions_take_linear_time() {
    let text = "in June 2020, yesterday ".repeat(20_000);
    assert_eq!(parse(&text, reference()).len(), 40_000);
}

proptest! {
    #[test]
    fn ranges_are_never_empty_and_nothing_panics(
        text in "((9999|0000|12|31|99|february|december|last|next|coming|years|year|ago|from now|week|in|in 2000|on|sunday|weekend|tomorrow|mid|the other day|several)[ -/]?){0,8}",
        edge in 0..3,
        days in 0..800_i32,
    ) {
        let span = jiff::Span::new().days(days);
        let reference = match edge {
            0 => Date::MIN.checked_add(span),
            1 => Date::MAX.checked_sub(span),
            _ => date(0, 6, 1).checked_add(span),
        }.unwrap();
        let ranges = parse(&text, reference);
        prop_assert!(ranges.iter().all(|range| range.start < range.end));
        prop_assert_eq!(holds_time(&text, reference), !ranges.is_empty());
    }

    #[test]
    fn any_text_has_an_answer(text in any::<String>()) {
        parse(&text, reference());
        asks_when(&text);
    }
}
