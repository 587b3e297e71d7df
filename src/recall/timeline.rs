//! Listings: a user's episodes, or one session's, in the order of their time, page by page.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::ids::EpisodeId;
use crate::model::{Episode, Record};
use crate::options::{LISTING_LIMIT_DEFAULT, LISTING_LIMIT_MAX};
use crate::storage::{Direction, Snapshot};
use crate::time::Timestamp;

use super::plan::time_range;

/// What a listing holds, and in which order. The order is (time, id), and within one session (time, ordinal, id);
/// [`Direction::Descending`] turns it round.
///
/// `Debug` shows no session name.
#[derive(Clone)]
pub struct TimelineOptions {
    since: Option<Timestamp>,
    until: Option<Timestamp>,
    limit: usize,
    cursor: Option<Cursor>,
    direction: Direction,
    session: Option<String>,
}

impl Default for TimelineOptions {
    fn default() -> TimelineOptions {
        TimelineOptions {
            since: None,
            until: None,
            limit: LISTING_LIMIT_DEFAULT,
            cursor: None,
            direction: Direction::Ascending,
            session: None,
        }
    }
}

impl fmt::Debug for TimelineOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TimelineOptions")
            .field("since", &self.since)
            .field("until", &self.until)
            .field("limit", &self.limit)
            .field("cursor", &self.cursor)
            .field("direction", &self.direction)
            .finish_non_exhaustive()
    }
}

impl TimelineOptions {
    /// Everything, oldest first, 100 episodes a page.
    pub fn new() -> TimelineOptions {
        TimelineOptions::default()
    }

    /// Only episodes said at this time or later.
    #[must_use]
    pub fn since(mut self, since: Timestamp) -> TimelineOptions {
        self.since = Some(since);
        self
    }

    /// Only episodes said before this time.
    #[must_use]
    pub fn until(mut self, until: Timestamp) -> TimelineOptions {
        self.until = Some(until);
        self
    }

    /// Episodes of the page, at most: 1 to 65,536. Default: 100.
    #[must_use]
    pub fn limit(mut self, limit: usize) -> TimelineOptions {
        self.limit = limit;
        self
    }

    /// Goes on behind a page that was read before, with the same other options. Episodes written, changed or deleted
    /// in between are seen as they are now; none that stayed is listed twice or left out.
    #[must_use]
    pub fn cursor(mut self, cursor: Cursor) -> TimelineOptions {
        self.cursor = Some(cursor);
        self
    }

    /// Oldest or newest first. Default: oldest.
    #[must_use]
    pub fn direction(mut self, direction: Direction) -> TimelineOptions {
        self.direction = direction;
        self
    }

    /// Only episodes of this session.
    #[must_use]
    pub fn session(mut self, session: impl Into<String>) -> TimelineOptions {
        self.session = Some(session.into());
        self
    }
}

/// One page of a listing.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Page {
    /// The episodes, in the order of the listing.
    pub episodes: Vec<Episode>,
    /// Where the next page starts; `None` at the end.
    pub next: Option<Cursor>,
}

/// A place in a listing, as text or as a value. It names a place in the order, not an episode, so it stays good when
/// the episode it was made from changes or goes. Opaque; the text form is stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cursor {
    time: i64,
    ordinal: u64,
    id: u64,
}

impl Cursor {
    fn of(record: &Record) -> Cursor {
        Cursor { time: record.time, ordinal: record.ordinal, id: record.id.get() }
    }
}

/// Leads the text form of a cursor, and tells its version.
const CURSOR_PREFIX: &str = "t1-";

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{CURSOR_PREFIX}{:016x}{:016x}{:016x}", self.time, self.ordinal, self.id)
    }
}

impl FromStr for Cursor {
    type Err = Error;

    fn from_str(text: &str) -> Result<Cursor> {
        let bad = || Error::invalid("cursor is none that a listing gave");
        let digits = text.strip_prefix(CURSOR_PREFIX).ok_or_else(bad)?;
        let plain = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        if digits.len() != 48 || !plain {
            return Err(bad());
        }
        let number =
            |range: Range<usize>| u64::from_str_radix(&digits[range], 16).map_err(|_| bad());
        Ok(Cursor {
            time: number(0..16)?.cast_signed(),
            ordinal: number(16..32)?,
            id: number(32..48)?,
        })
    }
}

/// A listing, its options checked.
pub(super) struct Listing<'a> {
    pub times: Range<i64>,
    pub after: Option<Cursor>,
    pub direction: Direction,
    pub limit: usize,
    pub session: Option<&'a str>,
    /// What a record must meet to be listed.
    pub passes: &'a dyn Fn(&Record) -> Result<bool>,
}

/// One page of the episodes of `user`. `now`: microseconds since the epoch; what expired is not listed.
///
/// # Errors
/// As [`crate::Memory::timeline`] says.
pub(crate) fn timeline(
    snapshot: &Snapshot,
    user: &[u8],
    options: &TimelineOptions,
    now: i64,
) -> Result<Page> {
    let limit = options.limit;
    if limit == 0 {
        return Err(Error::invalid("limit is 0"));
    }
    if limit > LISTING_LIMIT_MAX {
        return Err(Error::limit(format!(
            "limit is {limit}, at most {LISTING_LIMIT_MAX} is allowed"
        )));
    }
    let listing = Listing {
        times: time_range(options.since, options.until)?,
        after: options.cursor,
        direction: options.direction,
        // One more tells whether there is a next page.
        limit: limit + 1,
        session: options.session.as_deref(),
        passes: &|record| Ok(record.expires > now),
    };
    let mut records = list(snapshot, user, &listing)?;
    let more = records.len() > limit;
    records.truncate(limit);
    let next = records.last().filter(|_| more).map(|record| Cursor::of(record));
    let episodes =
        records.iter().map(|record| Episode::from_record(record)).collect::<Result<_>>()?;
    Ok(Page { episodes, next })
}

/// The records of a listing, in its order.
pub(super) fn list(
    snapshot: &Snapshot,
    user: &[u8],
    listing: &Listing<'_>,
) -> Result<Vec<Arc<Record>>> {
    match listing.session {
        Some(session) => list_session(snapshot, user, session, listing),
        None => list_all(snapshot, user, listing),
    }
}

fn list_all(snapshot: &Snapshot, user: &[u8], listing: &Listing<'_>) -> Result<Vec<Arc<Record>>> {
    let mut records = Vec::new();
    let mut after = listing.after.map(|cursor| (cursor.time, EpisodeId::new(cursor.id)));
    // Passed-over rows leave a page short, so it is filled in several goes.
    while records.len() < listing.limit {
        let wanted = listing.limit - records.len();
        let times = listing.times.clone();
        let keys = snapshot.timeline(user, times, after, listing.direction, wanted)?;
        let Some(last) = keys.last() else { break };
        after = Some(*last);
        let ended = keys.len() < wanted;
        for (_, id) in keys {
            let record = snapshot.get(id)?.ok_or_else(|| listed(id))?;
            if (listing.passes)(&record)? {
                records.push(record);
            }
        }
        if ended {
            break;
        }
    }
    Ok(records)
}

fn list_session(
    snapshot: &Snapshot,
    user: &[u8],
    session: &str,
    listing: &Listing<'_>,
) -> Result<Vec<Arc<Record>>> {
    let ids = snapshot.session(user, session)?;
    let read = |id: EpisodeId| snapshot.get(id)?.ok_or_else(|| listed(id));
    // The ids stand in the order of the cursor, so the ends are found by reading a few records, not all.
    let start = partition_point(&ids, |id| Ok(read(id)?.time < listing.times.start))?;
    let end = partition_point(&ids, |id| Ok(read(id)?.time < listing.times.end))?;
    let (mut start, mut end) = (start, end.max(start));
    if let Some(after) = listing.after {
        match listing.direction {
            Direction::Ascending => {
                let behind = partition_point(&ids, |id| Ok(Cursor::of(&*read(id)?) <= after))?;
                start = start.max(behind).min(end);
            }
            Direction::Descending => {
                let before = partition_point(&ids, |id| Ok(Cursor::of(&*read(id)?) < after))?;
                end = end.min(before).max(start);
            }
        }
    }
    let mut ids: Vec<EpisodeId> = ids[start..end].to_vec();
    if listing.direction == Direction::Descending {
        ids.reverse();
    }
    let mut records = Vec::new();
    for id in ids {
        if records.len() == listing.limit {
            break;
        }
        let record = read(id)?;
        if (listing.passes)(&record)? {
            records.push(record);
        }
    }
    Ok(records)
}

/// The first place for which `before` is false; it must be true for all below and false above.
fn partition_point(
    ids: &[EpisodeId],
    mut before: impl FnMut(EpisodeId) -> Result<bool>,
) -> Result<usize> {
    let (mut low, mut high) = (0, ids.len());
    while low < high {
        let middle = low + (high - low) / 2;
        if before(ids[middle])? {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    Ok(low)
}

/// An index names an episode that is not there, within one snapshot.
fn listed(id: EpisodeId) -> Error {
    Error::corrupt("episode that an index lists is missing").of(id.get())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_survives_the_way_through_text() {
        for (time, ordinal, id) in [(0, 0, 1), (-1, u64::MAX, 7), (i64::MIN, 3, u64::MAX)] {
            let cursor = Cursor { time, ordinal, id };
            assert_eq!(cursor.to_string().parse::<Cursor>().unwrap(), cursor);
        }
    }

    #[test]
    fn other_text_is_no_cursor() {
        let good = Cursor { time: 1, ordinal: 2, id: 3 }.to_string();
        let plus = good.replacen('0', "+", 1);
        for bad in ["", "t1-", &good[1..], &good[..good.len() - 1], &format!("{good}0"), &plus] {
            assert!(bad.parse::<Cursor>().is_err(), "{bad}");
        }
        assert!("t1-é".repeat(13).parse::<Cursor>().is_err());
    }
}
