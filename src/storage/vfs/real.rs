//! The file layer of the operating system.
//!
//! Invariants: no symlink is followed at the last part of a path, every open file is closed on `exec`, files are made
//! with mode 0600 and directories with 0700. An open file owns all it needs, so that a handle used after `fork` can
//! forget it without a call into the system.

#[cfg(not(unix))]
compile_error!("the file layer needs the open flags, modes and positioned reads of a Unix");

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use redb::backends::FileBackend;
use redb::{BackendError, StorageBackend};
use rustix::fs::OFlags;

use super::map::Map;
use super::remote::remote_kind;
use super::{FileIdentity, LockKind, LockRange, OpenMode, Vfs, VfsFile};

/// First and longest wait between two tries of a range lock: redb holds one for microseconds, and for one write of its
/// header at most.
const RANGE_PAUSE_MIN: Duration = Duration::from_micros(20);
const RANGE_PAUSE_MAX: Duration = Duration::from_millis(1);

/// The operating system's files.
#[derive(Debug)]
pub struct RealVfs {
    started: Instant,
}

impl RealVfs {
    /// The file layer.
    pub fn new() -> RealVfs {
        RealVfs { started: Instant::now() }
    }
}

impl Default for RealVfs {
    fn default() -> RealVfs {
        RealVfs::new()
    }
}

impl Vfs for RealVfs {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn VfsFile>> {
        Ok(Arc::new(RealFile { file: open_regular(path, mode)?, ranges: OnceLock::new() }))
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        DirBuilder::new().mode(0o700).create(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        // A name that is no UTF-8 is none of ours; it is shown with marks in place of the odd bytes.
        fs::read_dir(path)?
            .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
            .collect()
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir_all(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
        OpenOptions::new().read(true).custom_flags(flag_bits(flags)).open(path)?.sync_all()
    }

    fn identity(&self, path: &Path) -> io::Result<FileIdentity> {
        fs::symlink_metadata(path).map(|metadata| identity_of(&metadata))
    }

    fn map(&self, path: &Path, len: u64) -> io::Result<Map> {
        Map::of_sealed_file(&open_regular(path, OpenMode::Read)?, len)
    }

    fn remote_kind(&self, path: &Path) -> io::Result<Option<&'static str>> {
        remote_kind(path)
    }

    fn machine_id(&self) -> Option<String> {
        let id = fs::read_to_string("/etc/machine-id").ok()?;
        let id = id.trim();
        // "uninitialized" stands in the file while a fresh system boots.
        (!id.is_empty() && id != "uninitialized").then(|| id.to_owned())
    }

    fn available_space(&self, path: &Path) -> io::Result<u64> {
        fs2::available_space(path)
    }

    fn monotonic(&self) -> Duration {
        self.started.elapsed()
    }

    fn pause(&self, duration: Duration) {
        std::thread::sleep(duration);
    }
}

/// Opens a file and checks that it is a regular one.
fn open_regular(path: &Path, mode: OpenMode) -> io::Result<File> {
    // A pipe that someone put in a file's place must not block the open.
    let flags = OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(flag_bits(flags)).mode(0o600);
    match mode {
        OpenMode::Read => {}
        OpenMode::ReadWrite => {
            options.write(true);
        }
        OpenMode::CreateNew => {
            options.write(true).create_new(true);
        }
        OpenMode::Create => {
            options.write(true).create(true).truncate(false);
        }
    }
    let file = options.open(path)?;
    let kind = file.metadata()?.file_type();
    match (kind.is_file(), kind.is_dir()) {
        (true, _) => Ok(file),
        (false, true) => Err(io::ErrorKind::IsADirectory.into()),
        (false, false) => Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")),
    }
}

fn flag_bits(flags: OFlags) -> i32 {
    flags.bits().cast_signed()
}

fn identity_of(metadata: &fs::Metadata) -> FileIdentity {
    FileIdentity { device: metadata.dev(), inode: metadata.ino() }
}

/// An open file of the system.
#[derive(Debug)]
struct RealFile {
    file: File,
    /// Range locks, by redb's own calls for them. Made at the first use; shares the open file, and so its locks.
    ranges: OnceLock<FileBackend>,
}

impl RealFile {
    fn ranges(&self) -> io::Result<&FileBackend> {
        if let Some(ranges) = self.ranges.get() {
            return Ok(ranges);
        }
        let made = FileBackend::new(self.file.try_clone()?).map_err(io::Error::other)?;
        // Of two threads here at once, one drops a backend that has locked nothing yet.
        Ok(self.ranges.get_or_init(|| made))
    }
}

impl Drop for RealFile {
    fn drop(&mut self) {
        // Closing is not enough when a forked child still holds the open file. Errors have no reader here, and the
        // locks die with the last process anyway.
        if let Some(ranges) = self.ranges.get() {
            let _ = ranges.close();
        }
        let _ = fs2::FileExt::unlock(&self.file);
    }
}

impl VfsFile for RealFile {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.file.read_at(buffer, offset)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<usize> {
        self.file.write_at(bytes, offset)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn set_read_only(&self) -> io::Result<()> {
        self.file.set_permissions(Permissions::from_mode(0o400))
    }

    fn identity(&self) -> io::Result<FileIdentity> {
        Ok(identity_of(&self.file.metadata()?))
    }

    fn try_lock(&self, kind: LockKind) -> io::Result<bool> {
        let result = match kind {
            LockKind::Shared => fs2::FileExt::try_lock_shared(&self.file),
            LockKind::Exclusive => fs2::FileExt::try_lock_exclusive(&self.file),
        };
        match result {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == fs2::lock_contended_error().kind() => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn unlock(&self) -> io::Result<()> {
        fs2::FileExt::unlock(&self.file)
    }

    fn try_lock_range(&self, range: LockRange, kind: LockKind) -> io::Result<bool> {
        let ranges = self.ranges()?;
        let result = match kind {
            LockKind::Shared => ranges.try_lock_shared_range(range.0, range.1),
            LockKind::Exclusive => ranges.try_lock_range(range.0, range.1),
        };
        result.map_err(io_error)
    }

    fn lock_range(&self, range: LockRange, kind: LockKind, patience: Duration) -> io::Result<bool> {
        // The system's own wait for a range has no bound.
        let start = Instant::now();
        let mut pause = RANGE_PAUSE_MIN;
        while !self.try_lock_range(range, kind)? {
            let left = patience.saturating_sub(start.elapsed());
            if left.is_zero() {
                return Ok(false);
            }
            std::thread::sleep(pause.min(left));
            pause = (pause * 2).min(RANGE_PAUSE_MAX);
        }
        Ok(true)
    }

    fn unlock_range(&self, range: LockRange) -> io::Result<()> {
        self.ranges()?.unlock_range(range.0, range.1).map_err(io_error)
    }

    fn query_lock_range(&self, range: LockRange) -> io::Result<bool> {
        self.ranges()?.query_lock_range(range.0, range.1).map_err(io_error)
    }
}

fn io_error(error: BackendError) -> io::Error {
    match error {
        BackendError::Io(error) => error,
        BackendError::Unsupported => io::ErrorKind::Unsupported.into(),
        other => io::Error::other(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_symlink_a_directory_and_a_pipe_are_not_opened() {
        let dir = tempfile::tempdir().unwrap();
        let vfs = RealVfs::new();
        let (file, link) = (dir.path().join("file"), dir.path().join("link"));
        vfs.open(&file, OpenMode::CreateNew).unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        for mode in [OpenMode::Read, OpenMode::ReadWrite, OpenMode::Create, OpenMode::CreateNew] {
            assert!(vfs.open(&link, mode).is_err());
            assert!(vfs.open(dir.path(), mode).is_err());
        }
        let pipe = dir.path().join("pipe");
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, mode).unwrap();
        let error = vfs.open(&pipe, OpenMode::Read).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }

    #[test]
    fn files_and_directories_are_private_and_sealed_files_read_only() {
        let dir = tempfile::tempdir().unwrap();
        let vfs = RealVfs::new();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let (below, path) = (dir.path().join("d"), dir.path().join("d/f"));
        vfs.create_dir(&below).unwrap();
        assert_eq!(mode(&below), 0o700);
        let file = vfs.open(&path, OpenMode::Create).unwrap();
        assert_eq!(mode(&path), 0o600);
        file.set_read_only().unwrap();
        assert_eq!(mode(&path), 0o400);
    }

    #[test]
    fn a_forgotten_file_keeps_its_lock_and_a_dropped_one_does_not() {
        let dir = tempfile::tempdir().unwrap();
        let vfs = RealVfs::new();
        let path = dir.path().join("lock");
        let (one, two) = (
            vfs.open(&path, OpenMode::Create).unwrap(),
            vfs.open(&path, OpenMode::Create).unwrap(),
        );
        assert!(one.try_lock(LockKind::Exclusive).unwrap());
        drop(one);
        assert!(two.try_lock(LockKind::Exclusive).unwrap());
        std::mem::forget(two);
        let three = vfs.open(&path, OpenMode::Create).unwrap();
        assert!(!three.try_lock(LockKind::Shared).unwrap());
    }

    #[test]
    fn dropping_a_file_unlocks_it_even_while_a_copy_of_its_descriptor_is_open() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let file = open_regular(&path, OpenMode::Create).unwrap();
        let copy = file.try_clone().unwrap();
        let one = RealFile { file, ranges: OnceLock::new() };
        let range = (std::ops::Bound::Included(7), std::ops::Bound::Included(7));
        assert!(one.try_lock(LockKind::Exclusive).unwrap());
        assert!(one.try_lock_range(range, LockKind::Exclusive).unwrap());
        drop(one);
        let two = RealVfs::new().open(&path, OpenMode::ReadWrite).unwrap();
        assert!(two.try_lock(LockKind::Exclusive).unwrap());
        assert!(two.try_lock_range(range, LockKind::Exclusive).unwrap());
        drop(copy);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn local_file_systems_are_not_called_remote() {
        // The kernel's own file system is local on every Linux.
        assert_eq!(RealVfs::new().remote_kind(Path::new("/proc")).unwrap(), None);
        assert!(RealVfs::new().available_space(Path::new("/")).is_ok());
    }
}
