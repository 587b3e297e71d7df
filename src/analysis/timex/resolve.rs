//! From an expression to days.
//!
//! A date that does not exist, or lies beyond the calendar, is none: the expression is passed over.

use jiff::civil::Date;
use jiff::{Span, Unit};

use super::TimeKind;
use super::rules::Expression;

/// First and last day, the latter exclusive.
type Days = (Date, Date);

/// The days that `expression` speaks of on the day `reference`.
pub(super) fn resolve(expression: &Expression, reference: Date) -> Option<Days> {
    match expression.kind {
        TimeKind::Iso | TimeKind::MonthDayYear => {
            let month = i8::try_from(expression.number("m")?).ok()?;
            one_day(date(expression.number("year")?, month, day_of(expression)?)?)
        }
        TimeKind::DayMonth | TimeKind::MonthDay => day_of_month(expression, reference),
        TimeKind::PartOfMonth => part_of_month(expression, reference),
        TimeKind::Month => month(expression, reference),
        TimeKind::Season => season(expression, reference),
        TimeKind::Distance => distance(expression, reference),
        TimeKind::Stretch => stretch(expression, reference),
        TimeKind::Relative => relative(expression, reference),
        TimeKind::Weekday => weekday(expression, reference),
        TimeKind::Day => day(expression, reference),
        TimeKind::Year => {
            let year = expression.number("year")?;
            Some((date(year, 1, 1)?, date(year + 1, 1, 1)?))
        }
    }
}

fn day_of_month(expression: &Expression, reference: Date) -> Option<Days> {
    let (month, day) = (expression.month()?, day_of(expression)?);
    if !(1..=31).contains(&day) {
        return None;
    }
    let year = match expression.number("year") {
        Some(year) => year,
        None => nearest_year(reference, month, day.min(28))?,
    };
    one_day(date(year, month, day)?)
}

fn part_of_month(expression: &Expression, reference: Date) -> Option<Days> {
    let month = expression.month()?;
    let (first, behind) = whole_months(year_of(expression, reference, month)?, month, 1)?;
    let part = expression.part("part")?;
    let (from, to) = if part.starts_with("late") || part.starts_with("end") {
        (19, 31)
    } else if part.starts_with('m') {
        (9, 21)
    } else {
        (0, 11)
    };
    Some((moved(first, from)?, behind.min(moved(first, to)?)))
}

fn month(expression: &Expression, reference: Date) -> Option<Days> {
    let name = expression.part("month")?;
    let relation = expression.part("relation");
    let named_year = expression.number("year");
    let whole = expression.whole();
    let small = |text: &str| text.starts_with(|c: char| c.is_ascii_lowercase());
    if named_year.is_none() {
        // The verbs "may" and "march", and names that are more often something else.
        let doubtful = match name.as_str() {
            "may" | "mar" => true,
            "march" | "jan" | "sep" => small(whole),
            _ => false,
        };
        if doubtful && relation.is_none() {
            return None;
        }
        if name == "may" && whole.split_ascii_whitespace().next_back().is_some_and(small) {
            return None;
        }
    }
    let month = expression.month()?;
    let mut year = year_of(expression, reference, month)?;
    if named_year.is_none() {
        let first = date(year, month, 1)?;
        match relation.as_deref() {
            Some("last") if first >= reference.first_of_month() => year -= 1,
            Some("next") if first <= reference => year += 1,
            _ => {}
        }
    }
    whole_months(year, month, 1)
}

fn season(expression: &Expression, reference: Date) -> Option<Days> {
    let (first, middle) = match expression.part("season")?.as_str() {
        "spring" => (3, 4),
        "summer" => (6, 7),
        "fall" | "autumn" => (9, 10),
        _ => (12, 1),
    };
    let mut year = year_of(expression, reference, middle)?;
    if expression.number("year").is_none()
        && expression.part("relation").as_deref() == Some("last")
        && date(year, first, 1)? >= reference
    {
        year -= 1;
    }
    whole_months(year, first, 3)
}

fn distance(expression: &Expression, reference: Date) -> Option<Days> {
    let unit = expression.part("unit")?;
    let ahead = matches!(expression.part("relation")?.as_str(), "later" | "from now");
    let days = i32::from(count(expression)?) * days_of(&unit);
    let centre = moved(reference, if ahead { days } else { -days })?;
    let blur = match unit.as_str() {
        "day" => 0,
        "week" | "weekend" => 3,
        "month" => 15,
        _ => 183,
    };
    Some((moved(centre, -blur)?, moved(centre, blur + 1)?))
}

fn stretch(expression: &Expression, reference: Date) -> Option<Days> {
    let days = i32::from(count(expression)?) * days_of(&expression.part("unit")?);
    if matches!(expression.part("relation")?.as_str(), "next" | "coming") {
        Some((reference, moved(reference, days + 1)?))
    } else {
        Some((moved(reference, -days)?, moved(reference, 1)?))
    }
}

fn relative(expression: &Expression, reference: Date) -> Option<Days> {
    let step: i8 = match expression.part("relation")?.as_str() {
        "last" | "past" | "previous" | "this past" => -1,
        "next" | "coming" => 1,
        _ => 0,
    };
    let monday = -weekday_of(reference);
    let days = |from: i32, to: i32| Some((moved(reference, from)?, moved(reference, to)?));
    match expression.part("unit")?.as_str() {
        "night" => days(if step == 0 { 0 } else { -1 }, 1),
        "week" => {
            let monday = monday + 7 * i32::from(step);
            days(monday, monday + 7)
        }
        "weekend" => {
            // The next weekend is the one that this week ends with.
            let saturday = monday + 5 - if step < 0 { 7 } else { 0 };
            days(saturday - 1, saturday + 2)
        }
        "month" => {
            let month = reference.month() + step;
            whole_months(reference.year(), month, 1)
        }
        _ => whole_months(reference.year().checked_add(i16::from(step))?, 1, 12),
    }
}

fn weekday(expression: &Expression, reference: Date) -> Option<Days> {
    let named = match expression.part("weekday")?.as_str() {
        "monday" => 0,
        "tuesday" => 1,
        "wednesday" => 2,
        "thursday" => 3,
        "friday" => 4,
        "saturday" => 5,
        _ => 6,
    };
    let today = weekday_of(reference);
    let ahead = matches!(expression.part("relation")?.as_str(), "next" | "coming" | "this coming");
    one_day(if ahead {
        moved(reference, (named - today - 1).rem_euclid(7) + 1)?
    } else {
        moved(reference, -((today - named - 1).rem_euclid(7) + 1))?
    })
}

fn day(expression: &Expression, reference: Date) -> Option<Days> {
    let (from, to) = match expression.part("expression")?.as_str() {
        "recently" | "the other day" => (-10, 1),
        "yesterday" => (-1, 0),
        "last night" => (-1, 1),
        "the day before yesterday" => (-2, -1),
        "tomorrow" => (1, 2),
        _ => (0, 1),
    };
    Some((moved(reference, from)?, moved(reference, to)?))
}

fn day_of(expression: &Expression) -> Option<i8> {
    i8::try_from(expression.number("day")?).ok()
}

/// The number in front of a unit.
fn count(expression: &Expression) -> Option<i16> {
    let number = expression.part("number")?;
    Some(match number.as_str() {
        "a" | "an" | "one" => 1,
        "couple" | "a couple of" | "two" => 2,
        "few" | "a few" | "three" => 3,
        "several" | "four" => 4,
        "five" => 5,
        "six" => 6,
        "seven" => 7,
        "eight" => 8,
        "nine" => 9,
        "ten" => 10,
        "eleven" => 11,
        "twelve" => 12,
        digits => digits.parse().ok()?,
    })
}

fn days_of(unit: &str) -> i32 {
    match unit {
        "day" => 1,
        "week" | "weekend" => 7,
        "month" => 30,
        _ => 365,
    }
}

/// The year that is named, or else the one that puts the middle of `month` nearest to the reference.
fn year_of(expression: &Expression, reference: Date, month: i8) -> Option<i16> {
    expression.number("year").or_else(|| nearest_year(reference, month, 15))
}

/// The year that puts a day nearest to the reference, the earlier of two.
fn nearest_year(reference: Date, month: i8, day: i8) -> Option<i16> {
    let year = i32::from(reference.year());
    let years = (year - 1..=year + 1).filter_map(|year| i16::try_from(year).ok());
    years
        .filter_map(|year| {
            let span = reference.until((Unit::Day, date(year, month, day)?)).ok()?;
            Some((span.get_days().abs(), year))
        })
        .min()
        .map(|(_, year)| year)
}

/// `count` months from the first of a month on; months below 1 or above 12 are those of the years beside.
fn whole_months(year: i16, month: i8, count: i8) -> Option<Days> {
    let first = |ahead: i8| {
        let months = i32::from(year) * 12 + i32::from(month) - 1 + i32::from(ahead);
        let year = i16::try_from(months.div_euclid(12)).ok()?;
        date(year, months.rem_euclid(12) as i8 + 1, 1)
    };
    Some((first(0)?, first(count)?))
}

fn one_day(day: Date) -> Option<Days> {
    Some((day, moved(day, 1)?))
}

/// There is no year 0 in what people write.
fn date(year: i16, month: i8, day: i8) -> Option<Date> {
    if year == 0 { None } else { Date::new(year, month, day).ok() }
}

/// Days since Monday.
fn weekday_of(date: Date) -> i32 {
    i32::from(date.weekday().to_monday_zero_offset())
}

fn moved(date: Date, days: i32) -> Option<Date> {
    date.checked_add(Span::new().try_days(days).ok()?).ok()
}
