//! One file held in memory, and an open handle of it. Shared by the memory layer and the simulated disk.
//!
//! Invariant: an inode lives as long as a name or an open handle leads to it, as POSIX files do.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::locks::{Locks, Owner, Span};
use super::map::Map;
use super::pages::Pages;
use super::{LockKind, LockRange};

/// One file: its bytes and its locks.
pub(super) struct Inode {
    pub(super) number: u64,
    state: Mutex<InodeState>,
    released: Condvar,
}

/// What an inode holds.
pub(super) struct InodeState {
    pub(super) pages: Pages,
    pub(super) read_only: bool,
    locks: Locks,
    /// The bytes as one piece, kept once the file is sealed, so that its maps share memory.
    whole: Option<Map>,
}

impl Inode {
    pub(super) fn new(number: u64, pages: Pages, read_only: bool) -> Inode {
        let state = InodeState { pages, read_only, locks: Locks::default(), whole: None };
        Inode { number, state: Mutex::new(state), released: Condvar::new() }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, InodeState> {
        // A panic elsewhere leaves the state whole: every change under the lock is one call.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The bytes of the file, which must be exactly `len` long.
    pub(super) fn map(&self, len: u64) -> io::Result<Map> {
        let mut state = self.state();
        if state.pages.len() != len {
            return Err(super::map::wrong_length(len, state.pages.len()));
        }
        if let Some(map) = &state.whole {
            return Ok(map.clone());
        }
        let len = usize::try_from(len).map_err(|_| io::ErrorKind::OutOfMemory)?;
        let map = Map::filled(len, |buffer| {
            state.pages.read_at(0, buffer);
        });
        if state.read_only {
            state.whole = Some(map.clone());
        }
        Ok(map)
    }

    /// Gives up all locks of an open file. `false` when it held none.
    pub(super) fn release(&self, owner: Owner) -> bool {
        let released = self.state().locks.release(owner);
        self.released.notify_all();
        released
    }
}

/// An open file. The layer that owns it calls [`OpenInode::release`] when it is dropped.
pub(super) struct OpenInode {
    pub(super) inode: Arc<Inode>,
    pub(super) owner: Owner,
    writable: bool,
}

impl OpenInode {
    /// Opens `inode`. Owners are never reused within the process.
    pub(super) fn new(inode: Arc<Inode>, writable: bool) -> OpenInode {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        OpenInode { inode, owner: Owner(NEXT.fetch_add(1, Ordering::Relaxed)), writable }
    }

    /// Whether the file was opened for writing; an error when not.
    pub(super) fn check_writable(&self) -> io::Result<()> {
        match self.writable {
            true => Ok(()),
            false => {
                Err(io::Error::new(io::ErrorKind::PermissionDenied, "file is open for reading"))
            }
        }
    }

    pub(super) fn read_at(&self, offset: u64, buffer: &mut [u8]) -> usize {
        self.inode.state().pages.read_at(offset, buffer)
    }

    pub(super) fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.check_writable()?;
        let mut state = self.inode.state();
        state.whole = None;
        state.pages.write_at(offset, bytes)
    }

    pub(super) fn len(&self) -> u64 {
        self.inode.state().pages.len()
    }

    pub(super) fn set_len(&self, len: u64) -> io::Result<()> {
        self.check_writable()?;
        let mut state = self.inode.state();
        state.whole = None;
        state.pages.set_len(len)
    }

    pub(super) fn set_read_only(&self) {
        self.inode.state().read_only = true;
    }

    pub(super) fn try_lock(&self, kind: LockKind) -> bool {
        let locked = self.inode.state().locks.try_whole(self.owner, kind);
        // A conversion may have given up a lock, whether it was granted or not.
        self.inode.released.notify_all();
        locked
    }

    pub(super) fn unlock(&self) {
        self.inode.state().locks.unlock_whole(self.owner);
        self.inode.released.notify_all();
    }

    pub(super) fn try_lock_range(&self, range: LockRange, kind: LockKind) -> io::Result<bool> {
        let span = self.lockable(range, kind)?;
        Ok(self.inode.state().locks.try_range(self.owner, span, kind))
    }

    /// Waits for a range, at most `patience`. `false`: patience ran out.
    pub(super) fn lock_range(
        &self,
        range: LockRange,
        kind: LockKind,
        patience: Duration,
    ) -> io::Result<bool> {
        let span = self.lockable(range, kind)?;
        let released = &self.inode.released;
        let mut refused = |state: &mut InodeState| !state.locks.try_range(self.owner, span, kind);
        let waited = released.wait_timeout_while(self.inode.state(), patience, &mut refused);
        let (state, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
        drop(state);
        Ok(!timeout.timed_out())
    }

    pub(super) fn unlock_range(&self, range: LockRange) -> io::Result<()> {
        let span = Span::of(range)?;
        self.inode.state().locks.unlock_range(self.owner, span);
        self.inode.released.notify_all();
        Ok(())
    }

    pub(super) fn query_lock_range(&self, range: LockRange) -> io::Result<bool> {
        let span = Span::of(range)?;
        Ok(self.inode.state().locks.refuses(self.owner, span, LockKind::Exclusive))
    }

    /// Gives up all locks. `false` when there were none.
    pub(super) fn release(&self) -> bool {
        self.inode.release(self.owner)
    }

    /// As under Linux, an exclusive range needs a file that is open for writing.
    fn lockable(&self, range: LockRange, kind: LockKind) -> io::Result<Span> {
        if kind == LockKind::Exclusive {
            self.check_writable()?;
        }
        Span::of(range)
    }
}
