//! The order of sessions: entries (time, ordinal, id), kept in chunks of at most 256, keyed by their first entry.
//!
//! Invariants: the chunks of a session do not overlap and ascend with their keys; no chunk is empty. A late turn
//! rewrites one chunk and moves nothing else. A chunk that shrinks is not joined with its neighbour, as a session is
//! mostly deleted whole.

use std::collections::BTreeMap;

use redb::{ReadableTable, Table};

use crate::error::Error;

use super::SessionEntry;
use super::boundary::Attempt;
use super::format::{Chunk, SESSION_CHUNK_ENTRIES, encode_chunk};
use super::tables::OrderKey;

type Bytes = &'static [u8];

fn key_of(session: u64, entry: SessionEntry) -> OrderKey {
    (session, entry.time, entry.ordinal, entry.id)
}

fn entry_of(key: OrderKey) -> SessionEntry {
    SessionEntry { time: key.1, ordinal: key.2, id: key.3 }
}

fn first_key(session: u64) -> OrderKey {
    (session, i64::MIN, 0, 0)
}

fn last_key(session: u64) -> OrderKey {
    (session, i64::MAX, u64::MAX, u64::MAX)
}

/// All entries of a session.
pub(super) fn entries(
    table: &impl ReadableTable<OrderKey, Bytes>,
    session: u64,
) -> Attempt<Vec<SessionEntry>> {
    let mut entries = Vec::new();
    for row in table.range(first_key(session)..=last_key(session))? {
        let (key, value) = row?;
        Chunk::new(session, entry_of(key.value()), value.value())?.decode(session, &mut entries)?;
    }
    Ok(entries)
}

/// The entries of the chunk that holds or would hold `at`.
pub(super) fn chunk(
    table: &impl ReadableTable<OrderKey, Bytes>,
    session: u64,
    at: SessionEntry,
) -> Attempt<Vec<SessionEntry>> {
    let mut row = table.range(first_key(session)..=key_of(session, at))?.next_back();
    if row.is_none() {
        row = table.range(first_key(session)..=last_key(session))?.next();
    }
    let mut entries = Vec::new();
    if let Some(row) = row {
        let (key, value) = row?;
        Chunk::new(session, entry_of(key.value()), value.value())?.decode(session, &mut entries)?;
    }
    Ok(entries)
}

/// The last entry before `entry`.
pub(super) fn before(
    table: &impl ReadableTable<OrderKey, Bytes>,
    session: u64,
    entry: SessionEntry,
) -> Attempt<Option<SessionEntry>> {
    let Some(row) = table.range(first_key(session)..key_of(session, entry))?.next_back() else {
        return Ok(None);
    };
    let (key, value) = row?;
    let chunk = Chunk::new(session, entry_of(key.value()), value.value())?;
    // The chunk's first entry is its key, which lies before `entry`.
    let count = chunk.partition(|candidate| candidate < entry);
    Ok(Some(chunk.entry(count.max(1) - 1)))
}

/// The first entry behind `entry`.
pub(super) fn after(
    table: &impl ReadableTable<OrderKey, Bytes>,
    session: u64,
    entry: SessionEntry,
) -> Attempt<Option<SessionEntry>> {
    if let Some(row) = table.range(first_key(session)..=key_of(session, entry))?.next_back() {
        let (key, value) = row?;
        let chunk = Chunk::new(session, entry_of(key.value()), value.value())?;
        let count = chunk.partition(|candidate| candidate <= entry);
        if count < chunk.len() {
            return Ok(Some(chunk.entry(count)));
        }
    }
    let behind = (
        std::ops::Bound::Excluded(key_of(session, entry)),
        std::ops::Bound::Included(last_key(session)),
    );
    match table.range::<OrderKey>(behind)?.next() {
        Some(row) => Ok(Some(entry_of(row?.0.value()))),
        None => Ok(None),
    }
}

/// How many entries [`apply`] added and took; what was there already, or was not there to take, does not count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionChange {
    /// Entries that are new.
    pub inserted: usize,
    /// Entries that are gone.
    pub removed: usize,
}

/// Takes `removes`, then adds `inserts`, writing each touched chunk once.
pub(super) fn apply(
    table: &mut Table<'_, OrderKey, Bytes>,
    session: u64,
    inserts: &[SessionEntry],
    removes: &[SessionEntry],
) -> Attempt<SessionChange> {
    let mut changes: BTreeMap<SessionEntry, bool> =
        removes.iter().map(|entry| (*entry, false)).collect();
    changes.extend(inserts.iter().map(|entry| (*entry, true)));
    let mut done = SessionChange::default();
    while let Some((&first, _)) = changes.first_key_value() {
        let old = chunk(table, session, first)?;
        // Whatever lies before the next chunk's first entry belongs to this one.
        let next = match old.last() {
            Some(_) => after_chunk(table, session, old[0])?,
            None => None,
        };
        if next.is_some_and(|next| next <= first) {
            // Pages that contradict one another; going on would never end.
            return Err(Error::corrupt("session order does not ascend").of(session).into());
        }
        let later = next.map_or_else(BTreeMap::new, |next| changes.split_off(&next));
        let here = std::mem::replace(&mut changes, later);
        let grows_at_end =
            old.last().is_none_or(|last| here.first_key_value().is_some_and(|(e, _)| e > last));
        let new = merge(&old, &here, &mut done);
        if new == old {
            continue;
        }
        if let Some(&first) = old.first()
            && new.first() != Some(&first)
        {
            table.remove(key_of(session, first))?;
        }
        for piece in pieces(&new, grows_at_end) {
            if piece != old {
                table.insert(key_of(session, piece[0]), encode_chunk(piece).as_slice())?;
            }
        }
    }
    Ok(done)
}

/// The first entry of the chunk behind the one that begins with `first`.
fn after_chunk(
    table: &impl ReadableTable<OrderKey, Bytes>,
    session: u64,
    first: SessionEntry,
) -> Attempt<Option<SessionEntry>> {
    let behind = (
        std::ops::Bound::Excluded(key_of(session, first)),
        std::ops::Bound::Included(last_key(session)),
    );
    match table.range::<OrderKey>(behind)?.next() {
        Some(row) => Ok(Some(entry_of(row?.0.value()))),
        None => Ok(None),
    }
}

fn merge(
    old: &[SessionEntry],
    changes: &BTreeMap<SessionEntry, bool>,
    done: &mut SessionChange,
) -> Vec<SessionEntry> {
    let mut new: Vec<SessionEntry> = Vec::with_capacity(old.len() + changes.len());
    for entry in old {
        match changes.get(entry) {
            Some(false) => done.removed += 1,
            Some(true) | None => new.push(*entry),
        }
    }
    let kept = new.len();
    for (entry, insert) in changes {
        if *insert && old.binary_search(entry).is_err() {
            new.push(*entry);
        }
    }
    done.inserted += new.len() - kept;
    new.sort_unstable();
    new
}

/// Cuts entries into chunks: full ones when a session grows at its end, as live sessions do; else even ones, with
/// room for more late turns.
fn pieces(entries: &[SessionEntry], grows_at_end: bool) -> impl Iterator<Item = &[SessionEntry]> {
    let size = if grows_at_end || entries.len() <= SESSION_CHUNK_ENTRIES {
        SESSION_CHUNK_ENTRIES
    } else {
        entries.len().div_ceil(entries.len().div_ceil(SESSION_CHUNK_ENTRIES))
    };
    entries.chunks(size)
}
