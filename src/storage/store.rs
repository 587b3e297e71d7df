//! The storage handle.

use std::path::Path;
use std::sync::Arc;

use crate::error::Result;
use crate::ids::CommitSeq;
use crate::model::VectorSpace;
use crate::options::StorageOptions;

use super::snapshot::Snapshot;
use super::transaction::Transaction;
use super::vfs::Vfs;

/// Which vector space an open accepts.
#[derive(Clone, Debug)]
pub enum SpaceChoice {
    /// Whatever is recorded; a new database gets this one.
    Recorded(VectorSpace),
    /// Only this one: another recorded space is an error of kind `Version` that names both.
    Exactly(VectorSpace),
}

/// One handle of one database. Cheap to clone, `Send + Sync`.
#[derive(Clone)]
pub struct Store {}

impl Store {
    /// Opens or creates the database at `path`.
    pub fn open(
        vfs: Arc<dyn Vfs>,
        path: &Path,
        options: StorageOptions,
        space: SpaceChoice,
    ) -> Result<Store> {
        let _ = (vfs, path, options, space);
        todo!()
    }

    /// The recorded vector space.
    pub fn space(&self) -> &VectorSpace {
        todo!()
    }

    /// A read view of everything committed before this call, in any process.
    pub fn snapshot(&self) -> Result<Snapshot> {
        todo!()
    }

    /// Runs `work` under the writer lock and makes what it wrote durable, as one batch, together with the batches of
    /// other threads. Nothing is written when `work` fails. `None` as sequence number: nothing was written.
    pub fn commit<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Transaction<'_>) -> Result<T> + Send + 'static,
    ) -> Result<(T, Option<CommitSeq>)> {
        let _ = work;
        todo!()
    }

    /// Moves what the logs hold into segments and the catalog. `false`: another process is at it, or nothing to do.
    pub fn checkpoint(&self) -> Result<bool> {
        todo!()
    }

    /// Merges small segments until no size class holds [`crate::options::MERGE_FACTOR`] of them. Segments replaced.
    pub fn merge(&self) -> Result<usize> {
        todo!()
    }
}
