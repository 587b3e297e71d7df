//! Passes over whole tables, for `verify` and `doctor`, which hold one table against another.
//!
//! Invariants: a pass never keeps more than one row; its first error ends it. A key that does not ascend is an error,
//! so that a pass over damaged pages that lead in a circle ends.

use std::sync::Arc;

use redb::{Key, ReadableTable, Value};

use crate::error::{Error, Result};
use crate::ids::{EpisodeId, SegmentId, SessionNumber, UserNumber};
use crate::storage::segment::Counts;

use super::boundary::{Attempt, Boundary};
use super::format::{self, Chunk};
use super::tables::{STATISTICS_TOTAL, TableSet};
use super::view::CatalogView;
use super::{SessionEntry, SessionName};

type NextRow<'a, T> = Box<dyn FnMut() -> Attempt<Option<T>> + 'a>;

/// The rows of one table in the order of its keys.
pub struct Rows<'a, T> {
    boundary: &'a Boundary,
    /// `None` once the pass is over or has failed.
    next: Option<NextRow<'a, T>>,
}

impl<T> Iterator for Rows<'_, T> {
    type Item = Result<T>;

    fn next(&mut self) -> Option<Result<T>> {
        let next = self.next.as_mut()?;
        let row = self.boundary.run("pass over a table", next);
        if !matches!(row, Ok(Some(_))) {
            self.next = None;
        }
        row.transpose()
    }
}

fn rows<'a, K, V, T>(
    boundary: &'a Boundary,
    table: impl FnOnce() -> Attempt<redb::Range<'a, K, V>>,
    decode: impl for<'f> Fn(K::SelfType<'f>, V::SelfType<'f>) -> Result<T> + 'a,
) -> Result<Rows<'a, T>>
where
    K: Key + 'static,
    V: Value + 'static,
{
    let mut range = boundary.run("pass over a table", table)?;
    let mut last: Option<Vec<u8>> = None;
    let next = move || match range.next() {
        Some(row) => {
            let (key, value) = row?;
            let bytes = K::as_bytes(&key.value()).as_ref().to_vec();
            if last.as_ref().is_some_and(|last| K::compare(last, &bytes).is_ge()) {
                return Err(Error::corrupt("table rows do not ascend").into());
            }
            last = Some(bytes);
            Ok(Some(decode(key.value(), value.value())?))
        }
        None => Ok(None),
    };
    Ok(Rows { boundary, next: Some(Box::new(next)) })
}

/// Passes over whole tables of one state of the catalog.
///
/// # Errors
/// As [`CatalogView`].
pub trait CatalogRows: CatalogView {
    /// Name and number of rows of every table, empty ones included. No pass over rows.
    fn row_counts(&self) -> Result<Vec<(&'static str, u64)>> {
        self.boundary().run("count of rows", || self.tables().lengths())
    }

    /// (number, name) of every user.
    fn user_rows(&self) -> Result<Rows<'_, (UserNumber, Arc<[u8]>)>> {
        rows(
            self.boundary(),
            || Ok(self.tables().users()?.iter()?),
            |number, name| Ok((UserNumber::new(number), Arc::from(name))),
        )
    }

    /// (name, number) of every user.
    fn user_name_rows(&self) -> Result<Rows<'_, (Arc<[u8]>, UserNumber)>> {
        rows(
            self.boundary(),
            || Ok(self.tables().user_names()?.iter()?),
            |name, number| Ok((Arc::from(name), UserNumber::new(number))),
        )
    }

    /// Every session, by number.
    fn session_rows(&self) -> Result<Rows<'_, SessionName>> {
        rows(self.boundary(), || Ok(self.tables().sessions()?.iter()?), format::decode_session)
    }

    /// Every session, by user and name.
    fn session_name_rows(&self) -> Result<Rows<'_, SessionName>> {
        rows(
            self.boundary(),
            || Ok(self.tables().session_names()?.iter()?),
            |(user, name), session| {
                Ok(SessionName {
                    user: UserNumber::new(user),
                    session: SessionNumber::new(session),
                    name: format::decode_name(name)?,
                })
            },
        )
    }

    /// Every chunk of every session's order.
    fn session_order_rows(&self) -> Result<Rows<'_, (SessionNumber, Vec<SessionEntry>)>> {
        rows(
            self.boundary(),
            || Ok(self.tables().session_order()?.iter()?),
            |(session, time, ordinal, id), value| {
                let mut entries = Vec::new();
                let first = SessionEntry { time, ordinal, id };
                Chunk::new(session, first, value)?.decode(session, &mut entries)?;
                Ok((SessionNumber::new(session), entries))
            },
        )
    }

    /// (user, key, episode) of every key.
    fn key_rows(&self) -> Result<Rows<'_, (UserNumber, String, EpisodeId)>> {
        rows(
            self.boundary(),
            || Ok(self.tables().keys()?.iter()?),
            |(user, key), id| {
                Ok((UserNumber::new(user), format::decode_name(key)?, EpisodeId::new(id)))
            },
        )
    }

    /// (user, time, episode) of every live episode.
    fn timeline_rows(&self) -> Result<Rows<'_, (UserNumber, i64, EpisodeId)>> {
        rows(
            self.boundary(),
            || Ok(self.tables().timeline()?.iter()?),
            |(user, time, id), ()| Ok((UserNumber::new(user), time, EpisodeId::new(id))),
        )
    }

    /// (user, record time, episode) of every live episode.
    fn recorded_rows(&self) -> Result<Rows<'_, (UserNumber, i64, EpisodeId)>> {
        rows(
            self.boundary(),
            || Ok(self.tables().recorded()?.iter()?),
            |(user, time, id), ()| Ok((UserNumber::new(user), time, EpisodeId::new(id))),
        )
    }

    /// (episode, highest ended version, superseded) of every tombstone.
    fn tombstone_rows(&self) -> Result<Rows<'_, (EpisodeId, u32, bool)>> {
        rows(
            self.boundary(),
            || Ok(self.tables().tombstones()?.iter()?),
            |id, value| {
                let (version, superseded) = format::decode_tombstone(id, value)?;
                Ok((EpisodeId::new(id), version, superseded))
            },
        )
    }

    /// Ended rows, chunk by chunk: a segment has several rows here, one after another.
    fn dead_rows(&self) -> Result<Rows<'_, (SegmentId, Vec<u32>)>> {
        rows(
            self.boundary(),
            || Ok(self.tables().dead()?.iter()?),
            |(segment, chunk), value| {
                let mut dead = Vec::new();
                format::decode_dead(segment, chunk, value, &mut dead)?;
                Ok((SegmentId::new(segment), dead))
            },
        )
    }

    /// Live counts of every user that has any; `None` for the row of their sum, which comes last.
    fn statistics_rows(&self) -> Result<Rows<'_, (Option<UserNumber>, Counts)>> {
        rows(
            self.boundary(),
            || Ok(self.tables().statistics()?.iter()?),
            |user, value| {
                let user = (user != STATISTICS_TOTAL).then(|| UserNumber::new(user));
                Ok((user, format::decode_counts(value)?))
            },
        )
    }
}

impl<V: CatalogView + ?Sized> CatalogRows for V {}
