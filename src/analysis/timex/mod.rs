//! English expressions of time: which days a text speaks of, seen from a day of reference.
//!
//! A small grammar: dates, months, seasons, years, and what lies some days, weeks, months or years away. A turn is read
//! from its own day, a question from the day it is asked. Nothing is guessed beyond the grammar.
//!
//! Invariants: a range is not empty; equal text and reference give equal ranges; time is linear in the text but for
//! the search among what was found.

mod hints;
mod resolve;
mod rules;

use std::borrow::Cow;
use std::ops::Range;

use jiff::civil::Date;

use rules::{Expression, RULES};

/// Days that a text speaks of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeRange {
    /// The first day.
    pub start: Date,
    /// The day behind the last one.
    pub end: Date,
    /// The rule that found it.
    pub kind: TimeKind,
}

/// The rules of the grammar, in the order they are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeKind {
    /// 2023-05-07
    Iso,
    /// 5/7/2023
    MonthDayYear,
    /// 7 May 2023
    DayMonth,
    /// May 7th, 2023
    MonthDay,
    /// early May
    PartOfMonth,
    /// in May
    Month,
    /// last summer
    Season,
    /// two weeks ago
    Distance,
    /// the past two weeks
    Stretch,
    /// last week
    Relative,
    /// last Friday
    Weekday,
    /// yesterday
    Day,
    /// in 2023
    Year,
}

/// The ranges of days that `text` speaks of, read on the day `reference`: by rule, then by place. Where expressions
/// overlap the earlier rule has it.
pub fn parse(text: &str, reference: Date) -> Vec<TimeRange> {
    let mut found = Vec::new();
    each(text, reference, |range| {
        found.push(range);
        true
    });
    found
}

/// Whether [`parse`] finds anything.
pub fn holds_time(text: &str, reference: Date) -> bool {
    let mut holds = false;
    each(text, reference, |_| {
        holds = true;
        false
    });
    holds
}

/// Whether a question wants a time for an answer.
pub fn asks_when(question: &str) -> bool {
    rules::asks_when(&shadow(question))
}

/// A day as it is written out: `7 May 2023`.
pub fn printed(date: Date) -> String {
    let month = rules::MONTHS[usize::from(date.month().unsigned_abs()) - 1];
    format!("{} {month} {}", date.day(), date.year())
}

/// Hands the ranges to `visit` until it says no.
fn each(text: &str, reference: Date, mut visit: impl FnMut(TimeRange) -> bool) {
    let hinted = hints::of(text);
    if hinted == 0 {
        return;
    }
    let text = shadow(text);
    // Where expressions of earlier rules stand, in ascending order; they never overlap.
    let mut taken: Vec<Range<usize>> = Vec::new();
    for rule in RULES.iter().filter(|rule| hinted & hints::bit(rule.kind) != 0) {
        let earlier = taken.len();
        for captures in rule.pattern().captures_iter(&text) {
            let expression = Expression::new(rule.kind, captures);
            let span = expression.span();
            let next = taken[..earlier].partition_point(|other| other.end <= span.start);
            if next < earlier && taken[next].start < span.end {
                continue;
            }
            if let Some((start, end)) = resolve::resolve(&expression, reference) {
                taken.push(span);
                if !visit(TimeRange { start, end, kind: rule.kind }) {
                    return;
                }
            }
        }
        taken.sort_unstable_by_key(|span| span.start);
    }
}

/// The text with the grammar's own characters alone, each byte in its place: what is not ASCII becomes underscores when
/// it is a letter or number, which no rule knows and no word ends at, and controls when it is anything else. So the
/// patterns need no tables of Unicode, and run on their fastest engine.
fn shadow(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    let mut shadow = String::with_capacity(text.len());
    for c in text.chars() {
        let stand_in = if c.is_alphanumeric() { '_' } else { '\x01' };
        match c.is_ascii() {
            true => shadow.push(c),
            false => shadow.extend(std::iter::repeat_n(stand_in, c.len_utf8())),
        }
    }
    Cow::Owned(shadow)
}

#[cfg(test)]
mod tests;
