//! What the text of a question says: its terms, the people and days that it names.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use jiff::civil::{Date, date};

use crate::analysis::{self, timex};
use crate::index::Speakers;
use crate::options::{QUESTION_RANGE_DAYS_MAX, RecallOptions};
use crate::time::{ZonedTime, civil_date};

/// What a question says.
#[derive(Clone, Debug, Default)]
pub(super) struct Question {
    /// The distinct terms, ascending, with how often each is said.
    pub terms: Vec<(String, u32)>,
    /// Words that may be first names.
    names: BTreeSet<String>,
    /// Whether the one who asks speaks of himself.
    of_self: bool,
    /// Whether it asks for a time.
    pub asks_when: bool,
    /// The days that it names, widened; days since the epoch.
    ranges: Vec<Range<i64>>,
}

impl Question {
    /// Reads `text`, as asked at `asked`.
    pub fn new(text: &str, asked: ZonedTime, weights: &RecallOptions) -> Question {
        let today = civil_date(asked.time.micros(), asked.offset_minutes);
        let ranges = timex::parse(text, today).into_iter().filter_map(|range| {
            let (start, end) = (days(range.start), days(range.end));
            let before = i64::from(weights.range_days_before);
            let after = i64::from(weights.range_days_after);
            (end - start <= QUESTION_RANGE_DAYS_MAX).then(|| start - before..end + after)
        });
        Question {
            terms: analysis::query_terms(text),
            names: analysis::names_in(text),
            of_self: analysis::speaks_of_self(text),
            asks_when: timex::asks_when(text),
            ranges: ranges.collect(),
        }
    }

    /// The speakers of whom the question speaks. `rows`: live rows in all. None when it speaks of all: then nobody is set
    /// apart. When it names none and its asker speaks of himself, the speaker called `user`.
    pub fn named(&self, speakers: &Speakers, rows: u64) -> BTreeSet<Arc<str>> {
        let mut named: BTreeMap<&Arc<str>, u64> =
            self.names.iter().flat_map(|name| speakers.called(name)).collect();
        if named.is_empty() && self.of_self {
            named.extend(speakers.called("user"));
        }
        if named.values().sum::<u64>() >= rows {
            named.clear();
        }
        named.into_keys().cloned().collect()
    }

    /// Whether the question names days at all.
    pub fn names_days(&self) -> bool {
        !self.ranges.is_empty()
    }

    /// Whether an episode of this day was said about the days that the question names.
    pub fn in_range(&self, day: i64) -> bool {
        self.ranges.iter().any(|range| range.contains(&day))
    }
}

/// The day on which an episode was said, where it was said: days since the epoch.
pub(super) fn day_of(micros: i64, offset_minutes: i16) -> i64 {
    micros.saturating_add(i64::from(offset_minutes) * 60_000_000).div_euclid(86_400_000_000)
}

fn days(day: Date) -> i64 {
    let epoch = date(1970, 1, 1);
    i64::from((day - epoch).get_days())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(text: &str) -> Question {
        let asked = ZonedTime::parse("2023-06-10T12:00:00+02:00").unwrap();
        Question::new(text, asked, &RecallOptions::default())
    }

    fn speakers(list: &[(&str, u64)]) -> Speakers {
        Speakers::new(list.iter().map(|(name, rows)| (Arc::from(*name), *rows)).collect(), None)
    }

    fn named(text: &str, list: &[(&str, u64)], rows: u64) -> Vec<String> {
        ask(text).named(&speakers(list), rows).iter().map(|name| name.to_string()).collect()
    }

    #[test]
    fn a_speaker_is_named_by_first_name_and_possessive() {
        let two = [("Ann Lee", 3), ("Bob", 2)];
        assert_eq!(named("What is Ann's dog called?", &two, 5), ["Ann Lee"]);
        assert!(named("Did Ann meet Bob?", &two, 5).is_empty());
        // Someone without a name spoke too: naming both sets them apart.
        assert_eq!(named("Did Ann meet Bob?", &two, 6).len(), 2);
        assert!(named("Who is Lee?", &two, 5).is_empty());
    }

    #[test]
    fn who_speaks_of_himself_is_the_user() {
        let two = [("assistant", 2), ("user", 2)];
        assert_eq!(named("What did I buy?", &two, 4), ["user"]);
        assert!(named("What was bought?", &two, 4).is_empty());
        assert_eq!(named("What did the assistant tell me?", &two, 4), ["assistant"]);
    }

    #[test]
    fn a_range_is_widened_and_counted_in_local_days() {
        let question = ask("What happened yesterday?");
        let day = |text: &str| {
            let time = ZonedTime::parse(text).unwrap();
            day_of(time.time.micros(), time.offset_minutes)
        };
        assert!(question.names_days());
        assert!(question.in_range(day("2023-06-09T23:30:00+02:00")));
        assert!(question.in_range(day("2023-06-06T00:00:00Z")));
        assert!(!question.in_range(day("2023-06-05T23:00:00Z")));
        assert!(question.in_range(day("2023-06-23T23:00:00Z")));
        assert!(!question.in_range(day("2023-06-24T00:00:00Z")));
        assert!(!ask("What happened?").names_days());
    }
}
