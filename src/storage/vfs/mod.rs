//! The file layer that everything stored goes through, so that a test can put a faulty disk under it.
//!
//! Invariants: no other module of the crate touches `std::fs` or maps a file. A path handed to a [`Vfs`] is made from
//! the bundle's path and names that come from ids, never from file contents. Opening follows no symlink.

mod backend;
#[cfg(test)]
mod conformance;
mod inode;
mod locks;
mod map;
mod memory;
mod pages;
mod planted;
mod real;
mod refusal;
mod remote;
#[cfg(any(test, feature = "internals"))]
pub mod sim;
mod tree;

pub use backend::CatalogBackend;
pub use map::{MAP_ALIGNMENT, Map};
pub use memory::MemoryVfs;
pub use planted::PlantedBug;
pub use real::RealVfs;
pub use refusal::{is_full, refuses_writes};

use std::fmt::Debug;
use std::io;
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// How [`Vfs::open`] opens a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// An existing file, for reading.
    Read,
    /// An existing file, for reading and writing.
    ReadWrite,
    /// A new file of mode 0600, for reading and writing; fails with `AlreadyExists` when the name is taken.
    CreateNew,
    /// An existing or new file of mode 0600, for reading and writing.
    Create,
}

/// What tells two files apart, on this machine, whatever their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileIdentity {
    /// The device.
    pub device: u64,
    /// The inode on that device.
    pub inode: u64,
}

/// A whole-file lock's kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockKind {
    /// Any number of holders.
    Shared,
    /// One holder, and no shared one.
    Exclusive,
}

/// A range of bytes to lock; both ends may lie beyond the file's end.
pub type LockRange = (Bound<u64>, Bound<u64>);

/// A file layer.
pub trait Vfs: Debug + Send + Sync + 'static {
    /// Opens a regular file. A symlink at the last part of the path is an error.
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn VfsFile>>;

    /// Makes a directory of mode 0700. `AlreadyExists` when the name is taken.
    fn create_dir(&self, path: &Path) -> io::Result<()>;

    /// The names in a directory, in no order.
    fn list(&self, path: &Path) -> io::Result<Vec<String>>;

    /// Renames; an existing file at `to` is replaced, an existing directory that is not empty is an error.
    /// Durable once the directory is synced.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Unlinks a file. Durable once the directory is synced.
    fn remove_file(&self, path: &Path) -> io::Result<()>;

    /// Removes a directory and all below it. For what this process made itself and nobody else has seen.
    fn remove_dir_all(&self, path: &Path) -> io::Result<()>;

    /// Makes the entries of a directory durable.
    fn sync_dir(&self, path: &Path) -> io::Result<()>;

    /// Identity of what `path` names now. `NotFound` when there is nothing.
    fn identity(&self, path: &Path) -> io::Result<FileIdentity>;

    /// Maps (or reads) the first `len` bytes of a sealed file, which must be exactly `len` long (`InvalidData` when not).
    fn map(&self, path: &Path, len: u64) -> io::Result<Map>;

    /// The kind of network file system that `path` lies on, if it is one.
    fn remote_kind(&self, path: &Path) -> io::Result<Option<&'static str>>;

    /// What tells this machine from others; `None` when the machine has no such id.
    fn machine_id(&self) -> Option<String>;

    /// Bytes that an ordinary process may still write to the file system of `path`.
    fn available_space(&self, path: &Path) -> io::Result<u64>;

    /// Time since an arbitrary start that never runs backwards.
    fn monotonic(&self) -> Duration;

    /// Waits.
    fn pause(&self, duration: Duration);

    /// Whether a test planted this bug.
    fn planted(&self, _bug: PlantedBug) -> bool {
        false
    }

    /// The current time: microseconds since the Unix epoch.
    fn now(&self) -> i64 {
        crate::time::Timestamp::now().micros()
    }

    /// Fills `bytes` with random ones: salts and ids of databases.
    fn random(&self, bytes: &mut [u8]) -> io::Result<()> {
        getrandom::fill(bytes).map_err(|_| io::Error::other("the system gave no random bytes"))
    }

    /// The id of this process, as others see it.
    fn process_id(&self) -> u32 {
        std::process::id()
    }
}

/// An open file. Dropping it closes it and gives up its locks.
pub trait VfsFile: Debug + Send + Sync + 'static {
    /// Reads at `offset` into `buffer`; fewer bytes only at the end of the file.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize>;

    /// Writes at `offset`; may write fewer bytes than given (at least one).
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<usize>;

    /// Bytes of the file.
    fn len(&self) -> io::Result<u64>;

    /// Cuts or extends the file with zeros.
    fn set_len(&self, len: u64) -> io::Result<()>;

    /// Makes the contents and the length durable.
    fn sync_data(&self) -> io::Result<()>;

    /// Makes the file read-only (mode 0400).
    fn set_read_only(&self) -> io::Result<()>;

    /// Identity of the open file, whatever its name is now.
    fn identity(&self) -> io::Result<FileIdentity>;

    /// Tries to take the whole-file lock; `false` when another open file holds it. Taking it again in another kind
    /// converts it; a refused conversion loses the lock held before, as under Linux.
    fn try_lock(&self, kind: LockKind) -> io::Result<bool>;

    /// Gives up the whole-file lock.
    fn unlock(&self) -> io::Result<()>;

    /// Tries to lock a byte range. A namespace of its own: never meets [`VfsFile::try_lock`]'s lock of this crate's
    /// other files, as the catalog is locked by ranges only.
    fn try_lock_range(&self, range: LockRange, kind: LockKind) -> io::Result<bool>;

    /// Locks a byte range, waiting at most `patience`: whoever holds it may be a stopped process, which never gives it
    /// up. `false`: patience ran out.
    fn lock_range(&self, range: LockRange, kind: LockKind, patience: Duration) -> io::Result<bool>;

    /// Gives up exactly this range.
    fn unlock_range(&self, range: LockRange) -> io::Result<()>;

    /// Whether an exclusive lock of the range would be refused now.
    fn query_lock_range(&self, range: LockRange) -> io::Result<bool>;
}

impl dyn VfsFile {
    /// Fills `buffer` from `offset` as far as the file goes; the bytes filled.
    pub fn read_up_to(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.read_at(offset + filled as u64, &mut buffer[filled..]) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }

    /// Fills `buffer` from `offset`; `UnexpectedEof` when the file ends before.
    pub fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        match self.read_up_to(offset, buffer)? == buffer.len() {
            true => Ok(()),
            false => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    /// Writes all of `bytes` at `offset`.
    pub fn write_all_at(&self, mut offset: u64, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.write_at(offset, bytes) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => {
                    offset += count as u64;
                    bytes = &bytes[count..];
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
