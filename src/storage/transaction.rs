//! What a writer does under the writer lock.

use std::sync::Arc;

use crate::error::Result;
use crate::ids::EpisodeId;
use crate::model::{Body, Record};

/// An episode's contents on the way in, before it has an id.
#[derive(Clone, Debug)]
pub struct Draft {
    pub user: Arc<[u8]>,
    pub time: i64,
    pub offset_minutes: i16,
    pub ordinal: u64,
    pub expires: i64,
    /// Stored bytes of the vector; empty for none.
    pub vector: Arc<[u8]>,
    pub body: Body,
}

/// A draft encoded to the bytes of its frame, all but the fields known only under the lock.
pub struct EncodedRow {}

impl EncodedRow {
    /// Encodes outside any lock.
    ///
    /// # Errors
    /// `Limit` when a part is larger than the format allows.
    pub fn new(draft: Draft) -> Result<EncodedRow> {
        let _ = draft;
        todo!()
    }

    pub fn draft(&self) -> &Draft {
        todo!()
    }
}

/// The state under the writer lock, and the batch being made.
pub struct Transaction<'a> {
    _lock: std::marker::PhantomData<&'a ()>,
}

impl Transaction<'_> {
    /// The time that this batch is recorded with.
    pub fn record_time(&self) -> i64 {
        todo!()
    }

    /// The live episode with this key, earlier batches of the same group and this batch included.
    pub fn key(&self, _user: &[u8], _key: &str) -> Result<Option<EpisodeId>> {
        todo!()
    }

    /// The latest version of a live episode.
    pub fn get(&self, _id: EpisodeId) -> Result<Option<Arc<Record>>> {
        todo!()
    }

    /// The live episodes of a session.
    pub fn session(&self, _user: &[u8], _session: &str) -> Result<Vec<EpisodeId>> {
        todo!()
    }

    /// Adds a new episode.
    pub fn insert(&mut self, _row: EncodedRow) -> Result<Arc<Record>> {
        todo!()
    }

    /// Adds the next version of a live episode; the one before is ended as superseded.
    pub fn replace(&mut self, _old: &Record, _row: EncodedRow) -> Result<Arc<Record>> {
        todo!()
    }

    /// Ends a live episode.
    pub fn delete(&mut self, _old: &Record) -> Result<()> {
        todo!()
    }
}
