//! What a writer does under the writer lock.

use std::cell::OnceCell;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::ids::EpisodeId;
use crate::model::{Body, Record, RowTerms, VERSION_FIRST};

use super::log::format::{KIND_END, KIND_ROW};
use super::log::frame::{self, counts_of};
use super::log::{Batch, BatchWriter, EndFrame, Op, RowFrame};
use super::pending::Pending;
use super::snapshot::Snapshot;
use super::store::Shared;
use super::wire;

/// An episode's contents on the way in, before it has an id.
#[derive(Clone, Debug)]
pub struct Draft {
    pub user: Arc<[u8]>,
    pub time: i64,
    pub offset_minutes: i16,
    pub ordinal: u64,
    /// Microseconds since the epoch; `i64::MAX` for never.
    pub expires: i64,
    /// Stored bytes of the vector; empty for none.
    pub vector: Arc<[u8]>,
    /// The analysis of the text.
    pub terms: RowTerms,
    pub body: Body,
}

/// A draft encoded to the bytes of its frame, all but the fields known only under the lock.
#[derive(Debug)]
pub struct EncodedRow {
    record: Record,
    body: Arc<[u8]>,
    payload: Vec<u8>,
}

impl EncodedRow {
    /// Encodes outside any lock.
    ///
    /// # Errors
    /// `Limit` when a part is larger than the format allows.
    pub fn new(draft: Draft) -> Result<EncodedRow> {
        let body: Arc<[u8]> = wire::encode(&draft.body).into();
        let record = Record {
            id: EpisodeId::new(0),
            version: 0,
            user: draft.user,
            time: draft.time,
            offset_minutes: draft.offset_minutes,
            record_time: 0,
            first_record_time: 0,
            ordinal: draft.ordinal,
            expires: draft.expires,
            vector: draft.vector,
            shape: draft.terms.shape(),
            terms: Some(Arc::new(draft.terms)),
            body: draft.body,
        };
        let payload = frame::encode_row(&record, &body)?;
        Ok(EncodedRow { record, body, payload })
    }

    /// The contents. Id, version and record times are zero.
    pub fn record(&self) -> &Record {
        &self.record
    }

    /// Bytes that the row adds to its batch.
    pub fn bytes(&self) -> usize {
        self.payload.len()
    }
}

/// What was written and the table of it. Most work writes without looking back, and then the table is never made.
#[derive(Default)]
struct Written {
    table: Pending,
    /// Steps that the table holds.
    applied: usize,
}

impl Written {
    /// The table of `ops`, which only ever grow.
    fn table<'o>(&mut self, ops: impl Iterator<Item = &'o Op>) -> &Pending {
        for op in ops.skip(self.applied) {
            self.table.apply(op);
            self.applied += 1;
        }
        &self.table
    }
}

/// The batches of a group, made one after the other and not in any log yet.
#[derive(Default)]
pub(super) struct Group {
    pub batches: Vec<Batch>,
    written: Written,
}

impl Group {
    fn table(&mut self) -> &Pending {
        self.written.table(self.batches.iter().flat_map(|batch| &batch.ops))
    }
}

/// The state under the writer lock, and the batch being made.
pub struct Transaction<'a> {
    shared: &'a Shared,
    /// The state before the group, read when first asked for.
    snapshot: &'a OnceCell<Snapshot>,
    /// Earlier batches of the group.
    group: &'a mut Group,
    /// What this batch wrote.
    batch: Written,
    ops: Vec<Op>,
    writer: &'a mut BatchWriter,
    next_id: u64,
    record_time: i64,
}

impl<'a> Transaction<'a> {
    pub(super) fn new(
        shared: &'a Shared,
        snapshot: &'a OnceCell<Snapshot>,
        group: &'a mut Group,
        writer: &'a mut BatchWriter,
        next_id: u64,
        record_time: i64,
    ) -> Self {
        let (batch, ops) = (Written::default(), Vec::new());
        Transaction { shared, snapshot, group, batch, ops, writer, next_id, record_time }
    }

    /// What the batch did, and the first id that no row has after it.
    pub(super) fn finish(self) -> (Vec<Op>, u64) {
        (self.ops, self.next_id)
    }

    /// The time that this batch is recorded with: microseconds since the epoch.
    pub fn record_time(&self) -> i64 {
        self.record_time
    }

    /// The state before the group of batches that this one belongs to.
    ///
    /// # Errors
    /// As [`super::Store::snapshot`].
    pub fn before(&self) -> Result<&Snapshot> {
        if self.snapshot.get().is_none() {
            // Another thread cannot fill the cell: it belongs to this one.
            let _ = self.snapshot.set(self.shared.snapshot()?);
        }
        Ok(self.snapshot.get().expect("set above"))
    }

    /// The table of what this batch wrote, and that of the earlier ones of its group.
    fn layers(&mut self) -> (&Pending, &Pending) {
        (self.batch.table(self.ops.iter()), self.group.table())
    }

    /// The live episode with this key, earlier batches of the same group and this batch included.
    ///
    /// # Errors
    /// As [`super::Store::snapshot`].
    pub fn key(&mut self, user: &[u8], key: &str) -> Result<Option<EpisodeId>> {
        let before = self.before()?.key(user, key)?;
        let (batch, group) = self.layers();
        if let Some(id) = batch.user(user).and_then(|user| user.key(key)) {
            return Ok(Some(id));
        }
        if let Some(id) = group.user(user).and_then(|user| user.key(key)) {
            return Ok((!batch.masks(id)).then_some(id));
        }
        Ok(before.filter(|id| !batch.masks(*id) && !group.masks(*id)))
    }

    /// The latest version of a live episode.
    ///
    /// # Errors
    /// As [`super::Store::snapshot`].
    pub fn get(&mut self, id: EpisodeId) -> Result<Option<Arc<Record>>> {
        let (batch, group) = self.layers();
        for layer in [batch, group] {
            if let Some(record) = layer.live(id) {
                return Ok(Some(record.clone()));
            }
            if layer.masks(id) {
                return Ok(None);
            }
        }
        self.before()?.get(id)
    }

    /// The live episodes of a session.
    ///
    /// # Errors
    /// As [`super::Store::snapshot`].
    pub fn session(&mut self, user: &[u8], session: &str) -> Result<Vec<EpisodeId>> {
        let mut ids = self.before()?.session(user, session)?;
        let (batch, group) = self.layers();
        for layer in [group, batch] {
            ids.retain(|id| !layer.masks(*id));
            let entries = layer.user(user).and_then(|user| user.session(session));
            ids.extend(entries.into_iter().flatten().map(|entry| EpisodeId::new(entry.id)));
        }
        Ok(ids)
    }

    /// Adds a new episode.
    ///
    /// # Errors
    /// `Limit` when the batch grows too large.
    pub fn insert(&mut self, row: EncodedRow) -> Result<Arc<Record>> {
        let id = EpisodeId::new(self.next_id);
        self.next_id += 1;
        self.row(row, id, VERSION_FIRST, self.record_time)
    }

    /// Adds the next version of a live episode; the one before is ended as superseded.
    ///
    /// # Errors
    /// `Limit` when the batch grows too large or the episode has too many versions.
    pub fn replace(&mut self, old: &Record, row: EncodedRow) -> Result<Arc<Record>> {
        let version = old
            .version
            .checked_add(1)
            .ok_or_else(|| Error::limit("versions of one episode").of(old.id.get()))?;
        self.end(old, true)?;
        self.row(row, old.id, version, old.first_record_time)
    }

    /// Ends a live episode.
    ///
    /// # Errors
    /// `Limit` when the batch grows too large.
    pub fn delete(&mut self, old: &Record) -> Result<()> {
        self.end(old, false)
    }

    fn row(
        &mut self,
        mut row: EncodedRow,
        id: EpisodeId,
        version: u32,
        first_record_time: i64,
    ) -> Result<Arc<Record>> {
        row.record.id = id;
        row.record.version = version;
        row.record.record_time = self.record_time;
        row.record.first_record_time = first_record_time;
        frame::set_row_identity(&mut row.payload, &row.record);
        self.writer.frame(KIND_ROW, &row.payload)?;
        let record = Arc::new(row.record);
        self.ops.push(Op::Row(RowFrame { record: record.clone(), body: row.body }));
        Ok(record)
    }

    fn end(&mut self, old: &Record, superseded: bool) -> Result<()> {
        let end = EndFrame {
            id: old.id,
            version: old.version,
            user: old.user.clone(),
            record_time: self.record_time,
            superseded,
            counts: counts_of(old).negated(),
        };
        self.writer.frame(KIND_END, &frame::encode_end(&end))?;
        self.ops.push(Op::End(end));
        Ok(())
    }
}
