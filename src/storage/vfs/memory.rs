//! The file layer of databases that live in memory only.
//!
//! Invariant: it behaves as [`RealVfs`](super::real::RealVfs) does, except that nothing outlives the value.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::inode::OpenInode;
use super::map::Map;
use super::tree::Tree;
use super::{FileIdentity, LockKind, LockRange, OpenMode, Vfs, VfsFile};

/// A file layer in memory. It starts with an empty root directory.
pub struct MemoryVfs {
    tree: Mutex<Tree>,
    device: u64,
    started: Instant,
}

impl MemoryVfs {
    /// An empty file layer.
    pub fn new() -> MemoryVfs {
        static NEXT_DEVICE: AtomicU64 = AtomicU64::new(1);
        let device = NEXT_DEVICE.fetch_add(1, Ordering::Relaxed);
        MemoryVfs { tree: Mutex::new(Tree::default()), device, started: Instant::now() }
    }

    fn tree(&self) -> MutexGuard<'_, Tree> {
        self.tree.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for MemoryVfs {
    fn default() -> MemoryVfs {
        MemoryVfs::new()
    }
}

impl fmt::Debug for MemoryVfs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MemoryVfs({})", self.device)
    }
}

impl Vfs for MemoryVfs {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn VfsFile>> {
        let (inode, _) = self.tree().open(path, mode)?;
        let open = OpenInode::new(inode, mode != OpenMode::Read);
        Ok(Arc::new(MemoryFile { open, device: self.device }))
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.tree().create_dir(path).map(drop)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        self.tree().list(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.tree().rename(from, to).map(drop)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.tree().remove_file(path).map(drop)
    }

    fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        self.tree().remove_dir_all(path).map(drop)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.tree().directory_number(path).map(drop)
    }

    fn identity(&self, path: &Path) -> io::Result<FileIdentity> {
        Ok(FileIdentity { device: self.device, inode: self.tree().number(path)? })
    }

    fn map(&self, path: &Path, len: u64) -> io::Result<Map> {
        let (inode, _) = self.tree().open(path, OpenMode::Read)?;
        inode.map(len)
    }

    fn remote_kind(&self, path: &Path) -> io::Result<Option<&'static str>> {
        self.tree().number(path).map(|_| None)
    }

    fn machine_id(&self) -> Option<String> {
        // Nobody but this process can have written what lies here.
        Some("memory".to_owned())
    }

    fn available_space(&self, path: &Path) -> io::Result<u64> {
        self.tree().number(path).map(|_| u64::MAX)
    }

    fn monotonic(&self) -> Duration {
        self.started.elapsed()
    }

    fn pause(&self, duration: Duration) {
        std::thread::sleep(duration);
    }
}

struct MemoryFile {
    open: OpenInode,
    device: u64,
}

impl fmt::Debug for MemoryFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MemoryFile({}, {})", self.device, self.open.inode.number)
    }
}

impl Drop for MemoryFile {
    fn drop(&mut self) {
        self.open.release();
    }
}

impl VfsFile for MemoryFile {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        Ok(self.open.read_at(offset, buffer))
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<usize> {
        self.open.write_at(offset, bytes)?;
        Ok(bytes.len())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.open.len())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.open.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn set_read_only(&self) -> io::Result<()> {
        self.open.set_read_only();
        Ok(())
    }

    fn identity(&self) -> io::Result<FileIdentity> {
        Ok(FileIdentity { device: self.device, inode: self.open.inode.number })
    }

    fn try_lock(&self, kind: LockKind) -> io::Result<bool> {
        Ok(self.open.try_lock(kind))
    }

    fn unlock(&self) -> io::Result<()> {
        self.open.unlock();
        Ok(())
    }

    fn try_lock_range(&self, range: LockRange, kind: LockKind) -> io::Result<bool> {
        self.open.try_lock_range(range, kind)
    }

    fn lock_range(&self, range: LockRange, kind: LockKind, patience: Duration) -> io::Result<bool> {
        self.open.lock_range(range, kind, patience)
    }

    fn unlock_range(&self, range: LockRange) -> io::Result<()> {
        self.open.unlock_range(range)
    }

    fn query_lock_range(&self, range: LockRange) -> io::Result<bool> {
        self.open.query_lock_range(range)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_maps_of_a_sealed_file_share_memory() {
        let vfs = MemoryVfs::new();
        let path = Path::new("/segment");
        let file = vfs.open(path, OpenMode::CreateNew).unwrap();
        file.write_all_at(0, &[3; 1000]).unwrap();
        file.set_read_only().unwrap();
        let (one, two) = (vfs.map(path, 1000).unwrap(), vfs.map(path, 1000).unwrap());
        assert_eq!(one.as_ptr(), two.as_ptr());
        assert_eq!(&*one, &[3; 1000]);
    }

    #[test]
    fn files_of_two_layers_have_different_identities() {
        let identity = |vfs: &MemoryVfs| {
            vfs.open(Path::new("/a"), OpenMode::Create).unwrap().identity().unwrap()
        };
        assert_ne!(identity(&MemoryVfs::new()), identity(&MemoryVfs::new()));
    }
}
