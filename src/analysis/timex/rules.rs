//! The grammar's rules as regular expressions over ASCII, small and capital letters alike.

use std::ops::Range;
use std::sync::OnceLock;

use regex::{Captures, Regex};

use super::TimeKind;

/// Names of the months, in order.
pub(super) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// A rule; its pattern is compiled when it is first needed.
pub(super) struct Rule {
    pub kind: TimeKind,
    source: &'static str,
    compiled: OnceLock<Regex>,
}

const fn rule(kind: TimeKind, source: &'static str) -> Rule {
    Rule { kind, source, compiled: OnceLock::new() }
}

/// Placeholders of the sources.
const PARTS: [(&str, &str); 4] = [
    (
        "MONTH",
        r"(?P<month>january|february|march|april|may|june|july|august|september|october|november|december|jan|feb|mar|apr|jun|jul|aug|sept|sep|oct|nov|dec)\.?",
    ),
    (
        "NUMBER",
        "(?P<number>[0-9]{1,2}|a couple of|a few|several|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|couple|few|an|a)",
    ),
    ("WEEKDAY", "(?P<weekday>monday|tuesday|wednesday|thursday|friday|saturday|sunday)"),
    ("YEAR", "(?P<year>[0-9]{4})"),
];

/// The rules in the order they are tried.
pub(super) static RULES: [Rule; 13] = [
    rule(TimeKind::Iso, r"YEAR-(?P<m>[0-9]{2})-(?P<day>[0-9]{2})"),
    rule(TimeKind::MonthDayYear, r"(?P<m>[0-9]{1,2})/(?P<day>[0-9]{1,2})/YEAR"),
    rule(TimeKind::DayMonth, r"(?P<day>[0-9]{1,2})(?:st|nd|rd|th)?(?: of)? MONTH,? ?YEAR?"),
    rule(TimeKind::MonthDay, r"MONTH (?P<day>[0-9]{1,2})(?:st|nd|rd|th)?(?:,? YEAR)?"),
    rule(
        TimeKind::PartOfMonth,
        r"(?P<part>early|mid|late|beginning of|middle of|end of)[ -]?MONTH,? ?YEAR?",
    ),
    rule(
        TimeKind::Month,
        r"(?:(?P<relation>last|next|this|in|since|of|during|by|until|for) )?MONTH,? ?(?:of )?YEAR?",
    ),
    rule(
        TimeKind::Season,
        r"(?:(?P<relation>last|next|this|in|during|of|the) )(?P<season>spring|summer|fall|autumn|winter)(?: of)?(?: YEAR)?",
    ),
    rule(
        TimeKind::Distance,
        r"NUMBER (?P<unit>day|week|weekend|month|year)s? (?P<relation>ago|before|back|earlier|later|from now)",
    ),
    rule(
        TimeKind::Stretch,
        r"(?P<relation>past|last|next|coming) NUMBER (?P<unit>day|week|month|year)s",
    ),
    rule(
        TimeKind::Relative,
        r"(?P<relation>last|next|this|this past|past|previous|coming) (?P<unit>week|weekend|month|year|night)",
    ),
    rule(
        TimeKind::Weekday,
        r"(?:(?P<relation>last|next|this|this past|on|past|coming|this coming) )WEEKDAY",
    ),
    rule(
        TimeKind::Day,
        r"(?P<expression>today|tonight|yesterday|tomorrow|the day before yesterday|the other day|last night|this morning|this afternoon|this evening|recently|just now)",
    ),
    rule(
        TimeKind::Year,
        r"(?:in|since|of|during|by|until|back in|year) (?P<year>(?:19|20)[0-9]{2})",
    ),
];

impl Rule {
    /// The pattern. It takes a text of ASCII.
    pub(super) fn pattern(&self) -> &Regex {
        self.compiled.get_or_init(|| {
            let parts = PARTS.iter();
            compile(
                &parts.fold(self.source.to_owned(), |source, (name, part)| {
                    source.replace(name, part)
                }),
            )
        })
    }
}

/// Whether a question, in ASCII, asks for a time.
pub(super) fn asks_when(question: &str) -> bool {
    static PATTERN: OnceLock<Regex> = OnceLock::new();
    let pattern = PATTERN.get_or_init(|| {
        compile(
            "(?:when|what (?:date|day|month|year|time)|which (?:date|day|month|year)|how long|how many (?:days|weeks|months|years)|since when|how old)",
        )
    });
    pattern.is_match(question)
}

fn compile(source: &str) -> Regex {
    Regex::new(&format!(r"(?i-u)\b{source}\b"))
        .expect("the patterns are constants that tests compile")
}

/// An expression that a rule has found.
pub(super) struct Expression<'t> {
    pub kind: TimeKind,
    captures: Captures<'t>,
}

impl<'t> Expression<'t> {
    pub(super) fn new(kind: TimeKind, captures: Captures<'t>) -> Expression<'t> {
        Expression { kind, captures }
    }

    /// Where it stands.
    pub(super) fn span(&self) -> Range<usize> {
        self.captures.get_match().range()
    }

    /// All of it.
    pub(super) fn whole(&self) -> &'t str {
        self.captures.get_match().as_str()
    }

    /// A part in small letters.
    pub(super) fn part(&self, name: &str) -> Option<String> {
        self.captures.name(name).map(|part| part.as_str().to_ascii_lowercase())
    }

    /// A part that is a number.
    pub(super) fn number(&self, name: &str) -> Option<i16> {
        self.captures.name(name)?.as_str().parse().ok()
    }

    /// The number of the month that is named, from 1.
    pub(super) fn month(&self) -> Option<i8> {
        let name = self.captures.name("month")?.as_str();
        let named = |month: &&str| month[..3].eq_ignore_ascii_case(&name[..3]);
        MONTHS.iter().position(named).map(|at| at as i8 + 1)
    }
}
