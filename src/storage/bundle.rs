//! The directory that is presented as one database: names, `FORMAT`, `TRUST` (design 2).
//!
//! Invariant: names come from ids.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::ids::{LogId, NUMBER_END, SegmentId};

use super::vfs::{FileIdentity, OpenMode, Vfs};

/// The version of the bundle's layout that this program writes and reads.
pub const FORMAT_VERSION: u32 = 1;
const FORMAT_MAGIC: &str = "LoomDB database";
const TRUST_MAGIC: &str = "LoomDB trust 1";
/// `FORMAT` and `TRUST` are small texts: more is refused unread.
const TEXT_BYTES_MAX: usize = 4096;

/// The lock files of a bundle (design 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockName {
    Writer,
    Checkpoint,
    Rewrite,
    Files,
    Opening,
    Open,
}

impl LockName {
    pub const ALL: [LockName; 6] = [
        LockName::Writer,
        LockName::Checkpoint,
        LockName::Rewrite,
        LockName::Files,
        LockName::Opening,
        LockName::Open,
    ];

    pub fn file_name(self) -> &'static str {
        match self {
            LockName::Writer => "writer",
            LockName::Checkpoint => "checkpoint",
            LockName::Rewrite => "rewrite",
            LockName::Files => "files",
            LockName::Opening => "opening",
            LockName::Open => "open",
        }
    }

    /// The operation's name in an error.
    pub fn try_words(self) -> &'static str {
        match self {
            LockName::Writer => "take the writer lock",
            LockName::Checkpoint => "take the checkpoint lock",
            LockName::Rewrite => "take the rewrite lock",
            LockName::Files => "take the files lock",
            LockName::Opening => "take the opening lock",
            LockName::Open => "take the open lock",
        }
    }
}

/// Where the parts of one database lie.
#[derive(Clone, Debug)]
pub struct Bundle {
    pub vfs: Arc<dyn Vfs>,
    root: PathBuf,
    read_only: bool,
}

impl Bundle {
    pub fn new(vfs: Arc<dyn Vfs>, root: &Path, read_only: bool) -> Bundle {
        Bundle { vfs, root: root.to_path_buf(), read_only }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    pub fn read_only(&self) -> bool {
        self.read_only
    }

    pub fn catalog(&self) -> PathBuf {
        self.root.join("catalog.redb")
    }

    pub fn log_dir(&self) -> PathBuf {
        self.root.join("log")
    }

    pub fn log(&self, log: LogId) -> PathBuf {
        self.log_dir().join(format!("{:08x}.log", log.get()))
    }

    pub fn log_tmp(&self, log: LogId) -> PathBuf {
        self.log_dir().join(format!("{:08x}.log.tmp", log.get()))
    }

    pub fn segment_dir(&self) -> PathBuf {
        self.root.join("segments")
    }

    pub fn segment(&self, segment: SegmentId) -> PathBuf {
        self.segment_dir().join(format!("{:08x}.seg", segment.get()))
    }

    pub fn segment_tmp(&self, segment: SegmentId) -> PathBuf {
        self.segment_dir().join(format!("{:08x}.seg.tmp", segment.get()))
    }

    pub fn lock(&self, name: LockName) -> PathBuf {
        self.root.join("locks").join(name.file_name())
    }

    pub fn state(&self) -> PathBuf {
        self.root.join("locks").join("state")
    }

    /// How lock files are opened: locks need no write, but the writer lock names its holder.
    pub fn lock_mode(&self) -> OpenMode {
        if self.read_only { OpenMode::Read } else { OpenMode::ReadWrite }
    }

    /// The numbers of the logs present, ascending. Other names are not ours to touch.
    ///
    /// # Errors
    /// `Io`.
    pub fn logs(&self) -> Result<Vec<LogId>> {
        let mut logs: Vec<LogId> = numbers(&self.list(&self.log_dir())?, ".log")
            .map(LogId::new)
            .filter(|log| log.get() > 0)
            .collect();
        logs.sort_unstable();
        Ok(logs)
    }

    /// The numbers of segments present, whole and unfinished.
    ///
    /// # Errors
    /// `Io`.
    pub fn segments(&self) -> Result<(Vec<SegmentId>, Vec<SegmentId>)> {
        let names = self.list(&self.segment_dir())?;
        let whole = numbers(&names, ".seg").map(SegmentId::new).collect();
        Ok((whole, numbers(&names, ".seg.tmp").map(SegmentId::new).collect()))
    }

    /// The names of the lock files and the state.
    ///
    /// # Errors
    /// `Io`.
    pub fn locks(&self) -> Result<Vec<String>> {
        self.list(&self.root.join("locks"))
    }

    fn list(&self, directory: &Path) -> Result<Vec<String>> {
        self.vfs.list(directory).map_err(|error| lost("list", directory, error))
    }

    /// Whether `FORMAT` is not there, but what only a database has is.
    pub fn has_lost_format(&self) -> bool {
        [self.catalog(), self.state()].iter().any(|path| self.vfs.identity(path).is_ok())
    }

    /// Whether the path is a symlink that leads to nothing.
    pub fn leads_nowhere(&self) -> bool {
        let missing = |error: &std::io::Error| error.kind() == std::io::ErrorKind::NotFound;
        self.vfs.identity(&self.root).is_ok()
            && self.vfs.list(&self.root).is_err_and(|error| missing(&error))
    }

    /// Whether `FORMAT` is there.
    ///
    /// # Errors
    /// `Io`.
    pub fn exists(&self) -> Result<bool> {
        match self.vfs.identity(&self.root.join("FORMAT")) {
            Ok(_) => Ok(true),
            Err(error) if is_absent(&error) => Ok(false),
            Err(error) => Err(Error::io("look for FORMAT", error).in_file(&self.root)),
        }
    }

    /// Checks `FORMAT` and returns the database's id.
    ///
    /// # Errors
    /// `Version` for another format version; `Corrupt` when the text does not hold; `Io`.
    pub fn read_format(&self) -> Result<[u8; 16]> {
        let path = self.root.join("FORMAT");
        let text = self.read_text(&path)?;
        let broken = || Error::corrupt("FORMAT does not hold").in_file(&path);
        let mut lines = text.lines();
        if lines.next() != Some(FORMAT_MAGIC) {
            return Err(broken());
        }
        let version = lines.next().and_then(|line| line.strip_prefix("format "));
        let version: u32 = version.and_then(|text| text.parse().ok()).ok_or_else(broken)?;
        if version != FORMAT_VERSION {
            return Err(Error::version(format!(
                "database format {version}, this program reads {FORMAT_VERSION}"
            ))
            .in_file(&path));
        }
        let id = lines.next().and_then(|line| line.strip_prefix("database ")).ok_or_else(broken)?;
        let number = u128::from_str_radix(id, 16).map_err(|_| broken())?;
        if format_text(&number.to_be_bytes()) != text {
            return Err(broken());
        }
        Ok(number.to_be_bytes())
    }

    /// Whether this machine has checked the catalog at `identity` (design 2.4).
    pub fn is_trusted(&self, identity: FileIdentity) -> bool {
        let Some(text) = trust_text(&*self.vfs, identity) else { return false };
        self.read_text(&self.root.join("TRUST")).is_ok_and(|stored| stored == text)
    }

    /// Records that this machine has checked the catalog at `identity`. Written whole or not at all; a lost mark only
    /// costs another check.
    ///
    /// # Errors
    /// `Io`.
    pub fn write_trust(&self, identity: FileIdentity) -> Result<()> {
        let Some(text) = trust_text(&*self.vfs, identity) else { return Ok(()) };
        let (path, tmp) = (self.root.join("TRUST"), self.root.join("TRUST.tmp"));
        self.write_text(&tmp, &text)?;
        self.vfs.rename(&tmp, &path).map_err(|error| Error::io("rename TRUST", error).in_file(path))
    }

    fn read_text(&self, path: &Path) -> Result<String> {
        let io = |error| Error::io("read", error).in_file(path);
        let file = self.vfs.open(path, OpenMode::Read);
        let file = file.map_err(|error| lost("read", path, error))?;
        let length = file.len().map_err(io)? as usize;
        if length > TEXT_BYTES_MAX {
            return Err(Error::corrupt(format!("text of {length} bytes")).in_file(path));
        }
        let mut bytes = vec![0; length];
        file.read_exact_at(0, &mut bytes).map_err(io)?;
        String::from_utf8(bytes).map_err(|_| Error::corrupt("text is not UTF-8").in_file(path))
    }

    pub fn write_text(&self, path: &Path, text: &str) -> Result<()> {
        let io = |error| Error::io("write", error).in_file(path);
        let file = self.vfs.open(path, OpenMode::Create).map_err(io)?;
        file.set_len(0).map_err(io)?;
        file.write_all_at(0, text.as_bytes()).map_err(io)?;
        file.sync_data().map_err(io)
    }

    /// The directory that holds the bundle.
    pub fn parent(&self) -> PathBuf {
        match self.root.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent.to_path_buf(),
            _ => PathBuf::from("."),
        }
    }

    /// Makes the bundle's name in `parent` durable.
    ///
    /// # Errors
    /// `Io`.
    pub fn sync_name(&self, parent: &Path) -> Result<()> {
        self.vfs
            .sync_dir(parent)
            .map_err(|error| Error::io("sync directory", error).in_file(parent))
    }
}

/// The error of an operation on a part that every database has: when it is not there, the database is damaged.
pub fn lost(operation: &'static str, path: &Path, error: std::io::Error) -> Error {
    match is_absent(&error) {
        true => Error::corrupt("a part of the database is missing").because(error),
        false => Error::io(operation, error),
    }
    .in_file(path)
}

/// Whether `error` says that a file is not there.
pub fn is_missing(error: &Error) -> bool {
    std::error::Error::source(error)
        .and_then(|cause| cause.downcast_ref::<std::io::Error>())
        .is_some_and(|cause| cause.kind() == std::io::ErrorKind::NotFound)
}

fn numbers<'a>(names: &'a [String], suffix: &'a str) -> impl Iterator<Item = u64> + 'a {
    names.iter().filter_map(move |name| {
        let digits = name.strip_suffix(suffix)?;
        let number = u64::from_str_radix(digits, 16).ok()?;
        (number < NUMBER_END && format!("{number:08x}") == digits).then_some(number)
    })
}

/// Whether an error says that no file has the name: also when what should be its directory is a file.
pub fn is_absent(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory)
}

pub fn format_text(database: &[u8; 16]) -> String {
    let body = format!(
        "{FORMAT_MAGIC}\nformat {FORMAT_VERSION}\ndatabase {:032x}\n",
        u128::from_be_bytes(*database)
    );
    format!("{body}crc {:08x}\n", crc32fast::hash(body.as_bytes()))
}

fn trust_text(vfs: &dyn Vfs, identity: FileIdentity) -> Option<String> {
    let machine = vfs.machine_id()?;
    Some(format!(
        "{TRUST_MAGIC}\nmachine {machine}\ndevice {}\ninode {}\n",
        identity.device, identity.inode
    ))
}
