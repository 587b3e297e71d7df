//! A file layer in memory whose clock and random numbers are the same in every run: the stored inputs are made on it.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU8, Ordering};
use std::time::Duration;

use loomdb::internals::storage::vfs::{FileIdentity, Map, MemoryVfs, OpenMode, Vfs, VfsFile};

use super::DATABASE;

/// The file layer.
#[derive(Debug)]
pub struct SteadyVfs {
    memory: MemoryVfs,
    clock: AtomicI64,
    draws: AtomicU8,
}

impl Default for SteadyVfs {
    fn default() -> SteadyVfs {
        SteadyVfs {
            memory: MemoryVfs::new(),
            clock: AtomicI64::new(1_800_000_000_000_000),
            draws: AtomicU8::new(0),
        }
    }
}

impl Vfs for SteadyVfs {
    fn now(&self) -> i64 {
        self.clock.fetch_add(1000, Ordering::Relaxed)
    }

    /// The first draw makes the database [`DATABASE`]; each gives another salt.
    fn random(&self, bytes: &mut [u8]) -> io::Result<()> {
        let draw = self.draws.fetch_add(1, Ordering::Relaxed);
        for (place, byte) in bytes.iter_mut().enumerate() {
            *byte = DATABASE[place % DATABASE.len()] ^ draw;
        }
        Ok(())
    }

    fn process_id(&self) -> u32 {
        1
    }

    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn VfsFile>> {
        self.memory.open(path, mode)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.memory.create_dir(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        self.memory.list(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.memory.rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.memory.remove_file(path)
    }

    fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        self.memory.remove_dir_all(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.memory.sync_dir(path)
    }

    fn identity(&self, path: &Path) -> io::Result<FileIdentity> {
        self.memory.identity(path)
    }

    fn map(&self, path: &Path, len: u64) -> io::Result<Map> {
        self.memory.map(path, len)
    }

    fn remote_kind(&self, path: &Path) -> io::Result<Option<&'static str>> {
        self.memory.remote_kind(path)
    }

    fn machine_id(&self) -> Option<String> {
        self.memory.machine_id()
    }

    fn available_space(&self, path: &Path) -> io::Result<u64> {
        self.memory.available_space(path)
    }

    fn monotonic(&self) -> Duration {
        self.memory.monotonic()
    }

    fn pause(&self, duration: Duration) {
        self.memory.pause(duration);
    }
}
