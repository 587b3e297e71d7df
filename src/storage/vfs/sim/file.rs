//! An open file of the simulated disk.

use std::fmt;
use std::io;
use std::time::Duration;

use super::super::inode::OpenInode;
use super::super::{FileIdentity, LockKind, LockRange, VfsFile};
use super::fault::{Call, Verdict};
use super::log::Operation;
use super::schedule::Want;
use super::{DEVICE, SimVfs};

/// Real time after which a wait for a range lock outside of a run is taken for a deadlock.
const LOCK_PATIENCE: Duration = Duration::from_secs(20);

pub(super) struct SimFile {
    vfs: SimVfs,
    open: OpenInode,
}

impl SimFile {
    pub(super) fn new(vfs: SimVfs, open: OpenInode) -> SimFile {
        SimFile { vfs, open }
    }

    fn number(&self) -> u64 {
        self.open.inode.number
    }
}

impl fmt::Debug for SimFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SimFile({} of process {})", self.number(), self.vfs.process)
    }
}

impl Drop for SimFile {
    fn drop(&mut self) {
        self.vfs.disk.state().open.remove(&self.open.owner);
        if self.open.release() {
            self.vfs.disk.locks_freed();
        }
    }
}

impl VfsFile for SimFile {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let _state = self.vfs.enter(Call::Read)?;
        Ok(self.open.read_at(offset, buffer))
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<usize> {
        let (mut state, verdict) = self.vfs.enter_judged(Call::Write)?;
        let count = match verdict {
            Verdict::Fail(error) => return Err(error),
            Verdict::Proceed => bytes.len(),
            Verdict::Short => bytes.len().div_ceil(2),
        };
        self.open.write_at(offset, &bytes[..count])?;
        let bytes = bytes[..count].into();
        state.log.push(Operation::Write { file: self.number(), offset, bytes });
        Ok(count)
    }

    fn len(&self) -> io::Result<u64> {
        let _state = self.vfs.enter(Call::Other)?;
        Ok(self.open.len())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut state = self.vfs.enter(Call::SetLen)?;
        self.open.set_len(len)?;
        state.log.push(Operation::SetLen { file: self.number(), len });
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let (mut state, verdict) = self.vfs.enter_judged(Call::Sync)?;
        let result = match verdict {
            Verdict::Fail(error) => Err(error),
            Verdict::Proceed | Verdict::Short => Ok(()),
        };
        if result.is_err() || !state.is_deaf(self.number()) {
            state.log.push(Operation::SyncData { file: self.number(), done: result.is_ok() });
        }
        result
    }

    fn set_read_only(&self) -> io::Result<()> {
        let mut state = self.vfs.enter(Call::Other)?;
        self.open.set_read_only();
        state.log.push(Operation::Seal { file: self.number() });
        Ok(())
    }

    fn identity(&self) -> io::Result<FileIdentity> {
        self.vfs.hand_over(Want::Turn)?;
        Ok(FileIdentity { device: DEVICE, inode: self.number() })
    }

    fn try_lock(&self, kind: LockKind) -> io::Result<bool> {
        self.vfs.hand_over(Want::Turn)?;
        let locked = self.open.try_lock(kind);
        // A conversion may have given up a lock, whether it was granted or not.
        self.vfs.disk.locks_freed();
        Ok(locked)
    }

    fn unlock(&self) -> io::Result<()> {
        self.vfs.hand_over(Want::Turn)?;
        self.open.unlock();
        self.vfs.disk.locks_freed();
        Ok(())
    }

    fn try_lock_range(&self, range: LockRange, kind: LockKind) -> io::Result<bool> {
        self.vfs.hand_over(Want::Turn)?;
        self.open.try_lock_range(range, kind)
    }

    fn lock_range(&self, range: LockRange, kind: LockKind, _: Duration) -> io::Result<bool> {
        // No task of the schedule is ever stopped: a lock that is not given up is a bug, which the schedule finds.
        let mut wants = Want::Turn;
        loop {
            self.vfs.hand_over(wants)?;
            let scheduled = self.vfs.disk.task().is_some();
            let locked = match scheduled {
                true => self.open.try_lock_range(range, kind)?,
                false => self.open.lock_range(range, kind, LOCK_PATIENCE)?,
            };
            if locked {
                return Ok(true);
            }
            assert!(scheduled, "a range lock of the simulated disk was never given up");
            wants = Want::Lock;
        }
    }

    fn unlock_range(&self, range: LockRange) -> io::Result<()> {
        self.vfs.hand_over(Want::Turn)?;
        self.open.unlock_range(range)?;
        self.vfs.disk.locks_freed();
        Ok(())
    }

    fn query_lock_range(&self, range: LockRange) -> io::Result<bool> {
        self.vfs.hand_over(Want::Turn)?;
        self.open.query_lock_range(range)
    }
}
