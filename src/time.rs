//! Times: microseconds since the Unix epoch in UTC. Civil time exists only where text is read or printed.

use std::fmt;

use jiff::tz::{Offset, TimeZone};
use jiff::{Timestamp as Instant, civil};

use crate::error::{Error, Result};

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
    /// [`crate::ErrorKind::Invalid`] when the text is no such time, or names no zone.
    pub fn parse(text: &str) -> Result<ZonedTime> {
        let pieces = jiff::fmt::temporal::DateTimeParser::new()
            .parse_pieces(text.trim())
            .map_err(|_| Error::invalid("time is not RFC 3339"))?;
        if pieces.offset().is_none() {
            return Err(Error::invalid(
                "time names no zone: write it with an offset, such as 2023-05-08T13:56:00Z",
            ));
        }
        let instant: Instant =
            text.trim().parse().map_err(|_| Error::invalid("time is not RFC 3339"))?;
        let seconds = match pieces.offset() {
            Some(jiff::fmt::temporal::PiecesOffset::Numeric(offset)) => offset.offset().seconds(),
            _ => 0,
        };
        Ok(ZonedTime {
            time: Timestamp::from_micros(instant.as_microsecond())?,
            offset_minutes: (seconds / 60) as i16,
        })
    }

    /// Reads a time that may lack a zone, which is then taken in `zone` (an IANA name, `UTC`, or an offset such as
    /// `+02:00`). The flag tells whether the zone was assumed.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Invalid`] when the text is no time or the zone is unknown.
    pub fn parse_in_zone(text: &str, zone: &Zone) -> Result<(ZonedTime, bool)> {
        if let Ok(time) = ZonedTime::parse(text) {
            return Ok((time, false));
        }
        let local: civil::DateTime =
            text.trim().parse().map_err(|_| Error::invalid("time is not RFC 3339"))?;
        let zoned = local
            .to_zoned_datetime(zone.0.clone())
            .map_err(|_| Error::invalid("time is outside the calendar of its zone"))?;
        Ok((
            ZonedTime {
                time: Timestamp::from_micros(zoned.timestamp().as_microsecond())?,
                offset_minutes: (zoned.offset().seconds() / 60) as i16,
            },
            true,
        ))
    }
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
