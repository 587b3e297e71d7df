//! Times: microseconds since the Unix epoch in UTC. Civil time exists only where text is read or printed.

use std::fmt;

use jiff::fmt::temporal::PiecesOffset;
use jiff::tz::{Offset, TimeZone};
use jiff::{Timestamp as Instant, civil};

use crate::error::{Error, Result};

/// The largest offset from UTC of RFC 3339, in minutes: 23:59.
const OFFSET_MINUTES_MAX: i32 = 23 * 60 + 59;

/// A point in time: microseconds since 1970-01-01T00:00:00Z, without leap seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The earliest time that can be stored: 0001-01-02T00:00:00Z. RFC 3339 has no years before 0.
    pub const MIN: Timestamp = Timestamp(-62_135_510_400_000_000);
    /// The latest time that can be stored: 9999-12-30T22:00:00Z, the last that every offset can show.
    pub const MAX: Timestamp = Timestamp(253_402_207_200_000_000);

    /// The time `micros` microseconds after the epoch.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Invalid`] outside [`Timestamp::MIN`] to [`Timestamp::MAX`].
    pub fn from_micros(micros: i64) -> Result<Timestamp> {
        let time = Timestamp(micros);
        if time < Timestamp::MIN || time > Timestamp::MAX {
            return Err(Error::invalid(format!("time of {micros} us is outside the calendar")));
        }
        Ok(time)
    }

    /// Microseconds since the epoch.
    pub const fn micros(self) -> i64 {
        self.0
    }

    /// The current time of the machine's clock.
    pub fn now() -> Timestamp {
        Timestamp(Instant::now().as_microsecond())
    }
}

/// The day that a time falls on where it was said. `micros`: since the epoch; outside the calendar the nearest end.
pub(crate) fn civil_date(micros: i64, offset_minutes: i16) -> civil::Date {
    let local = micros.saturating_add(i64::from(offset_minutes) * 60_000_000);
    let days = local.div_euclid(86_400_000_000);
    let span = jiff::Span::new().try_days(days).ok();
    let day = span.and_then(|span| civil::date(1970, 1, 1).checked_add(span).ok());
    day.unwrap_or(if days < 0 { civil::Date::MIN } else { civil::Date::MAX })
}

/// A time as a person wrote it: the instant and the offset from UTC that it was written with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ZonedTime {
    /// The instant.
    pub time: Timestamp,
    /// Minutes east of UTC, as written.
    pub offset_minutes: i16,
}

impl From<Timestamp> for ZonedTime {
    fn from(time: Timestamp) -> ZonedTime {
        ZonedTime::utc(time)
    }
}

impl ZonedTime {
    /// The instant, written with offset zero.
    pub const fn utc(time: Timestamp) -> ZonedTime {
        ZonedTime { time, offset_minutes: 0 }
    }

    /// Reads RFC 3339 with a zone (`2023-05-08T13:56:00+02:00`, `...Z`).
    ///
    /// # Errors
    /// [`crate::ErrorKind::Invalid`] when the text is no such time, names no offset, or lies outside
    /// [`Timestamp::MIN`] to [`Timestamp::MAX`].
    pub fn parse(text: &str) -> Result<ZonedTime> {
        match Written::read(text)? {
            Written::Zoned(time) => Ok(time),
            Written::Naive(_) => Err(Error::invalid(
                "time names no zone: write it with an offset, such as 2023-05-08T13:56:00Z",
            )),
        }
    }

    /// Reads a time that may lack a zone, which is then taken in `zone` (an IANA name, `UTC`, or an offset such as
    /// `+02:00`). The flag tells whether the zone was assumed.
    ///
    /// # Errors
    /// As [`ZonedTime::parse`], except that a time may lack its zone.
    pub fn parse_in_zone(text: &str, zone: &Zone) -> Result<(ZonedTime, bool)> {
        let local = match Written::read(text)? {
            Written::Zoned(time) => return Ok((time, false)),
            Written::Naive(local) => local,
        };
        let zoned = local.to_zoned_datetime(zone.0.clone()).map_err(|_| out_of_range())?;
        let time = in_range(zoned.timestamp())?;
        Ok((ZonedTime { time, offset_minutes: (zoned.offset().seconds() / 60) as i16 }, true))
    }
}

/// A time as it stands in a text.
enum Written {
    Zoned(ZonedTime),
    Naive(civil::DateTime),
}

impl Written {
    fn read(text: &str) -> Result<Written> {
        let not_a_time = || Error::invalid("time is not RFC 3339");
        let parser = jiff::fmt::temporal::DateTimeParser::new();
        let pieces = parser.parse_pieces(text.trim()).map_err(|_| not_a_time())?;
        let offset = match pieces.offset() {
            None if pieces.time_zone_annotation().is_some() => {
                // Taken for a time without a zone, it would silently be read in another one.
                return Err(Error::invalid(
                    "time names a zone in brackets but no offset: write the offset, such as +02:00",
                ));
            }
            None => {
                let midnight = civil::Time::midnight();
                let time = pieces.time().unwrap_or(midnight);
                return Ok(Written::Naive(pieces.date().to_datetime(time)));
            }
            Some(PiecesOffset::Numeric(offset)) => offset.offset(),
            Some(_) => Offset::UTC,
        };
        let time = pieces.time().ok_or_else(not_a_time)?;
        let seconds = offset.seconds();
        if seconds.abs() > OFFSET_MINUTES_MAX * 60 || seconds % 60 != 0 {
            return Err(Error::invalid("offset of the time is not one of -23:59 to +23:59"));
        }
        let instant = offset.to_timestamp(pieces.date().to_datetime(time));
        Ok(Written::Zoned(ZonedTime {
            time: in_range(instant.map_err(|_| out_of_range())?)?,
            offset_minutes: (seconds / 60) as i16,
        }))
    }
}

fn in_range(instant: Instant) -> Result<Timestamp> {
    Timestamp::from_micros(instant.as_microsecond()).map_err(|_| out_of_range())
}

fn out_of_range() -> Error {
    Error::invalid(format!(
        "time is out of range: {} to {} can be stored",
        Timestamp::MIN,
        Timestamp::MAX
    ))
}

/// A time zone: an IANA name, `UTC`, or a fixed offset.
#[derive(Clone, Debug)]
pub struct Zone(TimeZone);

impl Zone {
    /// UTC.
    pub fn utc() -> Zone {
        Zone(TimeZone::UTC)
    }

    /// Reads `UTC`, an IANA name or an offset such as `+02:00`.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Invalid`] when there is no such zone.
    pub fn parse(text: &str) -> Result<Zone> {
        if text.eq_ignore_ascii_case("utc") || text == "Z" {
            return Ok(Zone::utc());
        }
        if text.starts_with(['+', '-']) {
            let probe = format!("2000-01-01T00:00:00{text}");
            let minutes = ZonedTime::parse(&probe)?.offset_minutes;
            let offset = Offset::from_seconds(i32::from(minutes) * 60)
                .map_err(|_| Error::invalid("offset of the zone is out of range"))?;
            return Ok(Zone(TimeZone::fixed(offset)));
        }
        TimeZone::get(text).map(Zone).map_err(|_| Error::invalid("unknown time zone"))
    }
}

impl fmt::Display for ZonedTime {
    /// RFC 3339 with the offset that the time was written with; fractions only when there are any.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let instant = Instant::from_microsecond(self.time.micros()).map_err(|_| fmt::Error)?;
        if self.offset_minutes == 0 {
            return write!(f, "{instant}");
        }
        let offset =
            Offset::from_seconds(i32::from(self.offset_minutes) * 60).map_err(|_| fmt::Error)?;
        write!(f, "{}", instant.display_with_offset(offset))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        ZonedTime::utc(*self).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(input: &str, micros: i64, offset: i16, printed: &str) {
        let read = ZonedTime::parse(input).unwrap();
        assert_eq!((read.time.micros(), read.offset_minutes), (micros, offset));
        assert_eq!(read.to_string(), printed);
        assert_eq!(ZonedTime::parse(printed).unwrap(), read);
    }

    #[test]
    fn rfc_3339_is_read_and_printed_with_its_offset() {
        check("1970-01-01T00:00:00Z", 0, 0, "1970-01-01T00:00:00Z");
        check("1970-01-01T02:00:01+02:00", 1_000_000, 120, "1970-01-01T02:00:01+02:00");
        check("1969-12-31T23:59:59.5Z", -500_000, 0, "1969-12-31T23:59:59.5Z");
    }

    #[test]
    fn naive_times_are_refused_but_read_in_a_zone() {
        assert!(ZonedTime::parse("2023-05-08T13:56:00").is_err());
        assert!(ZonedTime::parse("2023-05-08").is_err());
        let berlin = Zone::parse("Europe/Berlin").unwrap();
        let (time, assumed) = ZonedTime::parse_in_zone("2023-05-08T13:56:00", &berlin).unwrap();
        assert!(assumed);
        assert_eq!(time.to_string(), "2023-05-08T13:56:00+02:00");
        let plus = Zone::parse("+02:00").unwrap();
        assert_eq!(ZonedTime::parse_in_zone("2023-05-08T13:56", &plus).unwrap().0, time);
    }

    #[track_caller]
    fn refused(text: &str, why: &str) {
        let in_zone = ZonedTime::parse_in_zone(text, &Zone::utc()).map(drop);
        for error in [ZonedTime::parse(text).map(drop), in_zone] {
            let error = error.expect_err(text).to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn a_zone_in_brackets_does_not_stand_for_an_offset() {
        refused("2025-01-01T10:00:00[Europe/Paris]", "no offset");
        refused("2025-01-01[Europe/Paris]", "no offset");
        let both = "2025-01-01T10:00:00+01:00[Europe/Paris]";
        assert_eq!(ZonedTime::parse(both).unwrap().to_string(), "2025-01-01T10:00:00+01:00");
    }

    #[test]
    fn offsets_are_those_of_rfc_3339() {
        for offset in ["+25:00", "-24:00", "+24:00", "+01:00:30"] {
            refused(&format!("2025-01-01T10:00:00{offset}"), "offset");
            assert!(Zone::parse(offset).is_err(), "{offset}");
        }
        check(
            "2025-01-01T00:00:00+23:59",
            1_735_603_260_000_000,
            1439,
            "2025-01-01T00:00:00+23:59",
        );
        check(
            "2025-01-01T00:00:00-23:59",
            1_735_775_940_000_000,
            -1439,
            "2025-01-01T00:00:00-23:59",
        );
    }

    #[test]
    fn a_time_that_cannot_be_stored_is_out_of_range_and_no_time_is_not() {
        for text in ["0000-12-31T23:59:59Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"] {
            refused(text, "out of range");
        }
        refused("9999-12-31T23:59:59-23:59", "out of range");
        let late = ZonedTime::parse_in_zone("9999-12-31T23:59:59", &Zone::utc()).unwrap_err();
        assert!(late.to_string().contains("out of range"), "{late}");
        for text in ["", "soon", "2025-13-01T00:00:00Z", "2025-02-30T00:00:00Z", "10:00:00Z"] {
            refused(text, "not RFC 3339");
        }
    }

    #[test]
    fn limits_are_the_calendars() {
        assert!(Timestamp::from_micros(i64::MAX).is_err());
        for limit in [Timestamp::MIN, Timestamp::MAX] {
            assert_eq!(Timestamp::from_micros(limit.micros()).unwrap(), limit);
            let printed = limit.to_string();
            assert_eq!(ZonedTime::parse(&printed).unwrap().time, limit);
        }
    }
}
