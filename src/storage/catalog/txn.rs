//! What a publish may change.
//!
//! Invariants: reads inside the transaction see its writes. Rows go in one by one and are fastest in the order of
//! their keys, so a caller sorts its batch per table. Only `insert` and `remove` of redb are used.

use redb::ReadableTable;

use crate::error::{Error, Result};
use crate::ids::{EpisodeId, LogId, SegmentId, SessionNumber, UserNumber};
use crate::storage::segment::Counts;

use super::boundary::{Attempt, Boundary};
use super::order::{self, SessionChange};
use super::tables::{META_FACTS, META_STATE, STATISTICS_TOTAL, TableSet, WriteTables};
use super::view::CatalogView;
use super::{ManifestRow, Meta, SessionEntry, SessionName, format};

/// An uncommitted state of the catalog.
///
/// # Errors
/// Every method: `Corrupt` for damaged pages or values, `Io`, and `Poisoned` once the handle has failed.
pub struct CatalogTxn<'t> {
    tables: WriteTables<'t>,
    boundary: &'t Boundary,
}

impl CatalogView for CatalogTxn<'_> {
    fn tables(&self) -> &impl TableSet {
        &self.tables
    }

    fn boundary(&self) -> &Boundary {
        self.boundary
    }
}

impl<'t> CatalogTxn<'t> {
    pub(super) fn new(tables: WriteTables<'t>, boundary: &'t Boundary) -> CatalogTxn<'t> {
        CatalogTxn { tables, boundary }
    }

    pub(super) fn create_tables(&mut self) -> Result<()> {
        self.write("creation of tables", |tables| tables.create_all())
    }

    fn write<T>(
        &mut self,
        operation: &'static str,
        change: impl FnOnce(&mut WriteTables<'t>) -> Attempt<T>,
    ) -> Result<T> {
        self.boundary.run(operation, || change(&mut self.tables))
    }

    /// Sets generation and applied log.
    pub fn set_publish_state(&mut self, generation: u64, log_applied: LogId) -> Result<()> {
        self.write("write of the publish state", |tables| {
            let bytes = format::encode_state(generation, log_applied);
            tables.meta_mut()?.insert(META_STATE, bytes.as_slice())?;
            Ok(())
        })
    }

    /// Sets all of `meta`, publish state included.
    pub fn set_meta(&mut self, meta: &Meta) -> Result<()> {
        self.set_publish_state(meta.generation, meta.log_applied)?;
        self.write("write of meta", |tables| {
            let bytes = format::encode_facts(meta);
            tables.meta_mut()?.insert(META_FACTS, bytes.as_slice())?;
            Ok(())
        })
    }

    /// Adds or replaces a live segment's row.
    pub fn manifest_put(&mut self, row: &ManifestRow) -> Result<()> {
        self.write("write of a manifest row", |tables| {
            let bytes = format::encode_manifest(row);
            tables.manifest_mut()?.insert(row.segment.get(), bytes.as_slice())?;
            Ok(())
        })
    }

    /// Takes a segment out of the manifest. `false`: it was not there.
    pub fn manifest_remove(&mut self, segment: SegmentId) -> Result<bool> {
        self.write("removal of a manifest row", |tables| {
            Ok(tables.manifest_mut()?.remove(segment.get())?.is_some())
        })
    }

    /// Makes `rows` (ascending, each once) the ended rows of a segment. Only chunks that differ are written.
    ///
    /// # Panics
    /// When `rows` do not ascend.
    pub fn dead_set(&mut self, segment: SegmentId, rows: &[u32]) -> Result<()> {
        assert!(rows.is_sorted_by(|a, b| a < b), "dead rows ascend");
        let number = segment.get();
        self.write("write of dead rows", |tables| {
            let table = tables.dead_mut()?;
            let mut stale = Vec::new();
            for row in table.range((number, 0)..=(number, u32::MAX))? {
                stale.push(row?.0.value().1);
            }
            for rows in rows.chunk_by(|a, b| chunk_of(*a) == chunk_of(*b)) {
                let chunk = chunk_of(rows[0]);
                let bytes = format::encode_dead(number, chunk, rows);
                let same = table.get((number, chunk))?.is_some_and(|old| old.value() == bytes);
                if !same {
                    table.insert((number, chunk), bytes.as_slice())?;
                }
                if let Ok(index) = stale.binary_search(&chunk) {
                    stale.remove(index);
                }
            }
            for chunk in stale {
                table.remove((number, chunk))?;
            }
            Ok(())
        })
    }

    /// Forgets the ended rows of a segment.
    pub fn dead_remove(&mut self, segment: SegmentId) -> Result<()> {
        self.dead_set(segment, &[])
    }

    /// Gives a user its number. Giving the same number again changes nothing.
    ///
    /// # Errors
    /// Also `Corrupt` when the name or the number is taken by another.
    pub fn user_add(&mut self, user: UserNumber, name: &[u8]) -> Result<()> {
        let number = user.get();
        assert!(number != STATISTICS_TOTAL, "the last number stands for all users");
        self.write("write of a user", |tables| {
            let taken = tables.user_names()?.get(name)?.is_some_and(|row| row.value() != number)
                || tables.users()?.get(number)?.is_some_and(|row| row.value() != name);
            if taken {
                return Err(Error::corrupt("user number given twice").of(number).into());
            }
            tables.users_mut()?.insert(number, name)?;
            tables.user_names_mut()?.insert(name, number)?;
            Ok(())
        })
    }

    /// Gives a session its number. Giving the same number again changes nothing.
    ///
    /// # Errors
    /// Also `Corrupt` when the name or the number is taken by another.
    pub fn session_add(&mut self, session: &SessionName) -> Result<()> {
        let number = session.session.get();
        let bytes = format::encode_session(session);
        let name = (session.user.get(), session.name.as_bytes());
        self.write("write of a session", |tables| {
            let taken = tables.session_names()?.get(name)?.is_some_and(|row| row.value() != number)
                || tables.sessions()?.get(number)?.is_some_and(|row| row.value() != bytes);
            if taken {
                return Err(Error::corrupt("session number given twice").of(number).into());
            }
            tables.sessions_mut()?.insert(number, bytes.as_slice())?;
            tables.session_names_mut()?.insert(name, number)?;
            Ok(())
        })
    }

    /// Puts one entry into its session's order. `false`: it was there.
    pub fn session_insert(&mut self, session: SessionNumber, entry: SessionEntry) -> Result<bool> {
        Ok(self.session_apply(session, &[entry], &[])?.inserted == 1)
    }

    /// Takes one entry out of its session's order. `false`: it was not there.
    pub fn session_remove(&mut self, session: SessionNumber, entry: SessionEntry) -> Result<bool> {
        Ok(self.session_apply(session, &[], &[entry])?.removed == 1)
    }

    /// Takes `removes`, then puts `inserts`, both in any order, and writes each touched chunk once.
    pub fn session_apply(
        &mut self,
        session: SessionNumber,
        inserts: &[SessionEntry],
        removes: &[SessionEntry],
    ) -> Result<SessionChange> {
        self.write("write of a session's order", |tables| {
            order::apply(tables.session_order_mut()?, session.get(), inserts, removes)
        })
    }

    /// Adds a live episode to its user's timeline. `false`: it was there.
    pub fn timeline_insert(&mut self, user: UserNumber, time: i64, id: EpisodeId) -> Result<bool> {
        self.write("write of a timeline", |tables| {
            Ok(tables.timeline_mut()?.insert((user.get(), time, id.get()), ())?.is_none())
        })
    }

    /// Takes an episode off its user's timeline. `false`: it was not there.
    pub fn timeline_remove(&mut self, user: UserNumber, time: i64, id: EpisodeId) -> Result<bool> {
        self.write("write of a timeline", |tables| {
            Ok(tables.timeline_mut()?.remove((user.get(), time, id.get()))?.is_some())
        })
    }

    /// Adds a live episode by record time. `false`: it was there.
    pub fn recorded_insert(&mut self, user: UserNumber, time: i64, id: EpisodeId) -> Result<bool> {
        self.write("write of record times", |tables| {
            Ok(tables.recorded_mut()?.insert((user.get(), time, id.get()), ())?.is_none())
        })
    }

    /// Takes an episode by record time. `false`: it was not there.
    pub fn recorded_remove(&mut self, user: UserNumber, time: i64, id: EpisodeId) -> Result<bool> {
        self.write("write of record times", |tables| {
            Ok(tables.recorded_mut()?.remove((user.get(), time, id.get()))?.is_some())
        })
    }

    /// Lets `key` name an episode of its user. The episode that it named before.
    pub fn key_set(
        &mut self,
        user: UserNumber,
        key: &str,
        id: EpisodeId,
    ) -> Result<Option<EpisodeId>> {
        self.write("write of a key", |tables| {
            let old = tables.keys_mut()?.insert((user.get(), key.as_bytes()), id.get())?;
            Ok(old.map(|row| EpisodeId::new(row.value())))
        })
    }

    /// Lets `key` name nothing. The episode that it named.
    pub fn key_remove(&mut self, user: UserNumber, key: &str) -> Result<Option<EpisodeId>> {
        self.write("write of a key", |tables| {
            let old = tables.keys_mut()?.remove((user.get(), key.as_bytes()))?;
            Ok(old.map(|row| EpisodeId::new(row.value())))
        })
    }

    /// Adds `change`, which may be negative, to the counts of a user and to their sum over all users. A row of zeros
    /// is removed.
    pub fn statistics_add(&mut self, user: UserNumber, change: Counts) -> Result<()> {
        self.write("write of statistics", |tables| {
            for key in [user.get(), STATISTICS_TOTAL] {
                let table = tables.statistics_mut()?;
                let old = match table.get(key)? {
                    Some(row) => format::decode_counts(row.value())?,
                    None => Counts::default(),
                };
                let new = sum(old, change)
                    .ok_or_else(|| Error::corrupt("statistics beyond 64 bits").of(key))?;
                if new == Counts::default() {
                    table.remove(key)?;
                } else {
                    table.insert(key, format::encode_counts(&new).as_slice())?;
                }
            }
            Ok(())
        })
    }

    /// Records that `version` of an episode is ended. What says more stays: a higher version, or a deletion of the
    /// same one.
    pub fn tombstone_put(&mut self, id: EpisodeId, version: u32, superseded: bool) -> Result<()> {
        self.write("write of a tombstone", |tables| {
            let table = tables.tombstones_mut()?;
            let old = match table.get(id.get())? {
                Some(row) => Some(format::decode_tombstone(id.get(), row.value())?),
                None => None,
            };
            if old.is_none_or(|(old, by_version)| (old, !by_version) < (version, !superseded)) {
                table.insert(id.get(), (version, u8::from(superseded)))?;
            }
            Ok(())
        })
    }

    /// Forgets an episode's tombstone, once no segment holds the episode. `false`: there was none.
    pub fn tombstone_remove(&mut self, id: EpisodeId) -> Result<bool> {
        self.write("write of a tombstone", |tables| {
            Ok(tables.tombstones_mut()?.remove(id.get())?.is_some())
        })
    }
}

fn chunk_of(row: u32) -> u32 {
    row / format::DEAD_CHUNK_ROWS
}

fn sum(a: Counts, b: Counts) -> Option<Counts> {
    Some(Counts {
        rows: a.rows.checked_add(b.rows)?,
        vectors: a.vectors.checked_add(b.vectors)?,
        text_bytes: a.text_bytes.checked_add(b.text_bytes)?,
        passages: a.passages.checked_add(b.passages)?,
        half_terms: a.half_terms.checked_add(b.half_terms)?,
    })
}
