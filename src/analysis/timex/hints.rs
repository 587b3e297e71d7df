//! Which rules a text may hold something for, by its words and digits alone: most turns hold no time, and no pattern
//! has to look at them.
//!
//! Invariant: a rule that finds something in a text is among the hints of the text.

use super::TimeKind;

/// The place of a rule in the hints.
pub(super) fn bit(kind: TimeKind) -> u32 {
    1 << kind as u32
}

/// What words stand in a text, whatever their order.
#[derive(Default)]
struct Seen {
    month: bool,
    season: bool,
    unit: bool,
    night: bool,
    weekday: bool,
    /// `last`, `next` and their like.
    relation: bool,
    /// `ago`, `later` and their like.
    direction: bool,
    /// A word that is a day by itself, or the end of an expression that is one.
    day: bool,
}

/// The rules that may find something in `text`, as bits.
pub(super) fn of(text: &str) -> u32 {
    let bytes = text.as_bytes();
    let mut seen = Seen::default();
    let mut hints = 0;
    let mut at = 0;
    while at < bytes.len() {
        let start = at;
        let first = bytes[at];
        if first.is_ascii_alphabetic() {
            at += run(&bytes[at..], u8::is_ascii_alphabetic);
            seen.word(&bytes[start..at]);
        } else if first.is_ascii_digit() {
            at += run(&bytes[at..], u8::is_ascii_digit);
            match (at - start, bytes.get(at)) {
                (4, Some(b'-')) => hints |= bit(TimeKind::Iso),
                (1 | 2, Some(b'/')) => hints |= bit(TimeKind::MonthDayYear),
                _ => {}
            }
            if at - start == 4
                && (bytes[start..].starts_with(b"19") || bytes[start..].starts_with(b"20"))
            {
                hints |= bit(TimeKind::Year);
            }
        } else {
            at += 1;
        }
    }
    hints | seen.hints()
}

fn run(bytes: &[u8], belongs: fn(&u8) -> bool) -> usize {
    bytes.iter().position(|byte| !belongs(byte)).unwrap_or(bytes.len())
}

impl Seen {
    fn hints(&self) -> u32 {
        use TimeKind::{Day, DayMonth, Distance, Month, MonthDay, PartOfMonth};
        use TimeKind::{Relative, Season, Stretch, Weekday};
        let rules = [
            (self.month, [DayMonth, MonthDay, PartOfMonth, Month].as_slice()),
            (self.season, &[Season]),
            (self.unit && self.direction, &[Distance]),
            (self.unit && self.relation, &[Stretch]),
            ((self.unit || self.night) && self.relation, &[Relative]),
            (self.weekday, &[Weekday]),
            (self.day || self.night && self.relation, &[Day]),
        ];
        let seen = rules.into_iter().filter(|(seen, _)| *seen);
        seen.flat_map(|(_, kinds)| kinds).fold(0, |hints, kind| hints | bit(*kind))
    }

    fn word(&mut self, word: &[u8]) {
        // The longest word below, behind the longest that may stand glued to a month.
        let mut small = [0; 16];
        let Some(small) = small.get_mut(..word.len()) else { return };
        if small.len() < 3 {
            return;
        }
        small.copy_from_slice(word);
        small.make_ascii_lowercase();
        match &*small {
            b"day" | b"days" | b"week" | b"weeks" | b"weekend" | b"weekends" | b"month"
            | b"months" | b"year" | b"years" => self.unit = true,
            b"night" => self.night = true,
            b"last" | b"next" | b"this" | b"past" | b"previous" | b"coming" => {
                self.relation = true;
            }
            b"ago" | b"before" | b"back" | b"earlier" | b"later" => self.direction = true,
            b"now" => (self.direction, self.day) = (true, true),
            b"today" | b"tonight" | b"yesterday" | b"tomorrow" | b"recently" | b"other"
            | b"morning" | b"afternoon" | b"evening" => self.day = true,
            b"monday" | b"tuesday" | b"wednesday" | b"thursday" | b"friday" | b"saturday"
            | b"sunday" => self.weekday = true,
            b"spring" | b"summer" | b"fall" | b"autumn" | b"winter" => self.season = true,
            word => self.month |= is_month(word) || is_part_of_month(word),
        }
    }
}

fn is_month(word: &[u8]) -> bool {
    matches!(
        word,
        b"january"
            | b"february"
            | b"march"
            | b"april"
            | b"may"
            | b"june"
            | b"july"
            | b"august"
            | b"september"
            | b"october"
            | b"november"
            | b"december"
            | b"jan"
            | b"feb"
            | b"mar"
            | b"apr"
            | b"jun"
            | b"jul"
            | b"aug"
            | b"sept"
            | b"sep"
            | b"oct"
            | b"nov"
            | b"dec"
    )
}

/// `midmay`: the part of a month needs no space.
fn is_part_of_month(word: &[u8]) -> bool {
    let parts: [&[u8]; 4] = [b"early", b"mid", b"late", b"of"];
    parts.iter().any(|part| word.strip_prefix(*part).is_some_and(is_month))
}

#[cfg(test)]
mod tests {
    use super::super::rules::RULES;
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_rule_finds_what_was_not_hinted(
            text in "(([0-9]{1,4}|[-/.,]|a|early|middle of|end of|mid|late|last|this|past|on|in|since|the|other|day|before|weekend|s|ago|now|just|from|couple|night|May|june|Sept|summer|Friday|yesterday|morning|tonight|back in)[ ]?){0,8}"
        ) {
            let hinted = of(&text);
            for rule in &RULES {
                prop_assert!(
                    hinted & bit(rule.kind) != 0 || !rule.pattern().is_match(&text),
                    "{:?} in {text:?}", rule.kind
                );
            }
        }
    }
}
