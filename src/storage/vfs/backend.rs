//! The catalog's file as redb sees it, on any file layer.
//!
//! Invariants: a read past the end is an error; exactly the ranges that were locked are unlocked, and all of them by
//! `close`; a refused lock changes nothing; no lock is waited for without a bound.

use std::io;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redb::{BackendError, StorageBackend};

use super::{LockKind, LockRange, VfsFile};

/// One redb handle's access to the catalog's file. Locks belong to the open file, so every handle needs its own.
#[derive(Debug)]
pub struct CatalogBackend {
    file: Arc<dyn VfsFile>,
    held: Mutex<Vec<LockRange>>,
    patience: Duration,
}

/// How long a lock is waited for at least: redb holds its locks for as long as it takes to write a header, and no
/// caller who will not wait for a writer means to fail because of that.
const PATIENCE_MIN: Duration = Duration::from_millis(100);

impl CatalogBackend {
    /// Wraps a file that no other handle uses. redb's locks are waited for for `patience`, or 100 ms when that is
    /// shorter, and then refused with an error of kind `WouldBlock`.
    pub fn new(file: Arc<dyn VfsFile>, patience: Duration) -> CatalogBackend {
        let patience = patience.max(PATIENCE_MIN);
        CatalogBackend { file, held: Mutex::new(Vec::new()), patience }
    }

    fn held(&self) -> MutexGuard<'_, Vec<LockRange>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn try_lock(&self, range: LockRange, kind: LockKind) -> Result<bool, BackendError> {
        let locked = self.file.try_lock_range(range, kind).map_err(BackendError::Io)?;
        if locked {
            self.held().push(range);
        }
        Ok(locked)
    }

    fn lock(&self, range: LockRange, kind: LockKind) -> Result<(), BackendError> {
        if !self.file.lock_range(range, kind, self.patience).map_err(BackendError::Io)? {
            return Err(BackendError::Io(io::ErrorKind::WouldBlock.into()));
        }
        self.held().push(range);
        Ok(())
    }

    /// Gives up every lock; the first error is told, after all were tried.
    fn release_all(&self) -> io::Result<()> {
        let mut result = Ok(());
        for range in std::mem::take(&mut *self.held()) {
            result = result.and(self.file.unlock_range(range));
        }
        result
    }
}

impl Drop for CatalogBackend {
    fn drop(&mut self) {
        // redb closes what it opened; this is for a handle that a panic took out of its hands. Nobody is left to
        // tell of an error, and closing the file gives up the locks as well.
        let _ = self.release_all();
    }
}

impl StorageBackend for CatalogBackend {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.file.write_all_at(offset, data)
    }

    fn close(&self) -> io::Result<()> {
        self.release_all()
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.try_lock((start, end), LockKind::Exclusive)
    }

    fn try_lock_shared_range(
        &self,
        start: Bound<u64>,
        end: Bound<u64>,
    ) -> Result<bool, BackendError> {
        self.try_lock((start, end), LockKind::Shared)
    }

    fn lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.lock((start, end), LockKind::Exclusive)
    }

    fn lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.lock((start, end), LockKind::Shared)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        // Out of the record before the bytes are free, as another thread may lock them at once; back into it when
        // unlocking fails, so that `close` tries again. The record is never locked across a call of the file layer.
        let range = (start, end);
        let mut held = self.held();
        if let Some(at) = held.iter().position(|held| *held == range) {
            held.swap_remove(at);
        }
        drop(held);
        self.file.unlock_range(range).map_err(|error| {
            self.held().push(range);
            BackendError::Io(error)
        })
    }

    fn query_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.file.query_lock_range((start, end)).map_err(BackendError::Io)
    }
}
