//! Locks between processes: whole-file locks that die with their process, waited for with a bound.
//!
//! Each holder opens the lock file anew, so that two threads of one process exclude one another like two processes.

use std::sync::Arc;
use std::time::Duration;

use crate::error::{Error, Result};

use super::bundle::{Bundle, LockName, lost};
use super::vfs::{LockKind, OpenMode, Vfs, VfsFile};

/// First wait between two tries.
const PAUSE_MIN: Duration = Duration::from_micros(20);
/// Longest wait between two tries.
const PAUSE_MAX: Duration = Duration::from_millis(4);
/// Bytes at the head of a lock file that name its holder.
const HOLDER_BYTES: usize = 24;

/// A held lock; dropping it gives it up.
#[derive(Debug)]
pub struct Lock {
    file: Arc<dyn VfsFile>,
}

impl Lock {
    /// The lock that was taken on `file`.
    pub fn held(file: Arc<dyn VfsFile>) -> Lock {
        Lock { file }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // A lock that cannot be given up here is given up when the file is closed.
        let _ = self.file.unlock();
    }
}

/// Opens the lock file and waits for the lock.
///
/// # Errors
/// `Locked` when another holder outlasts `timeout`; `Io`.
pub fn acquire(bundle: &Bundle, name: LockName, kind: LockKind, timeout: Duration) -> Result<Lock> {
    let file = open(bundle, name, bundle.lock_mode())?;
    wait(&*bundle.vfs, &file, name, kind, timeout)?;
    Ok(Lock { file })
}

/// Opens the lock file and tries once.
///
/// # Errors
/// `Io`.
pub fn try_acquire(bundle: &Bundle, name: LockName, kind: LockKind) -> Result<Option<Lock>> {
    let file = open(bundle, name, bundle.lock_mode())?;
    let taken = file.try_lock(kind).map_err(|error| Error::io(name.try_words(), error))?;
    Ok(taken.then_some(Lock { file }))
}

/// Opens a lock file without taking the lock.
///
/// # Errors
/// `Corrupt` when the file is missing; `Io`.
pub fn open(bundle: &Bundle, name: LockName, mode: OpenMode) -> Result<Arc<dyn VfsFile>> {
    let path = bundle.lock(name);
    bundle.vfs.open(&path, mode).map_err(|error| lost("open lock", &path, error))
}

/// Waits for the lock on an open file, with growing, jittered pauses.
///
/// # Errors
/// `Locked` when another holder outlasts `timeout`, naming the holder's process when the file does; `Io`.
pub fn wait(
    vfs: &dyn Vfs,
    file: &Arc<dyn VfsFile>,
    name: LockName,
    kind: LockKind,
    timeout: Duration,
) -> Result<()> {
    let start = vfs.monotonic();
    let mut pause = PAUSE_MIN;
    loop {
        if file.try_lock(kind).map_err(|error| Error::io(name.try_words(), error))? {
            return Ok(());
        }
        let waited = vfs.monotonic().saturating_sub(start);
        if waited >= timeout {
            let holder = holder(file).map_or(String::new(), |pid| format!(" by process {pid}"));
            return Err(Error::locked(format!(
                "the {} lock is held{holder} for longer than {} ms",
                name.file_name(),
                timeout.as_millis()
            )));
        }
        // Jitter from the clock's low bits: waiters that started together drift apart.
        let jitter = u64::from(waited.subsec_nanos()).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56;
        vfs.pause(pause.mul_f64(0.75 + jitter as f64 / 512.0).min(timeout - waited));
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

/// Writes this process's id into a lock file that it holds, unless it stands there: a write would change the file's
/// times, and the next sync of a log would carry them to the disk.
///
/// # Errors
/// `Io`.
pub fn sign(vfs: &dyn Vfs, file: &Arc<dyn VfsFile>) -> Result<()> {
    let process = vfs.process_id();
    if holder(file) == Some(process) {
        return Ok(());
    }
    let text = format!("{process:<width$}\n", width = HOLDER_BYTES - 1);
    file.write_all_at(0, text.as_bytes()).map_err(|error| Error::io("sign lock", error))
}

fn holder(file: &Arc<dyn VfsFile>) -> Option<u32> {
    let mut bytes = [0; HOLDER_BYTES];
    file.read_exact_at(0, &mut bytes).ok()?;
    std::str::from_utf8(&bytes).ok()?.trim().parse().ok()
}
