//! What was done to the simulated disk, in order.

use std::fmt;
use std::sync::Arc;

use super::super::tree::Entry;

/// One operation that changes the disk, or makes a change durable.
#[derive(Clone, Debug)]
pub(super) enum Operation {
    Write {
        file: u64,
        offset: u64,
        bytes: Arc<[u8]>,
    },
    SetLen {
        file: u64,
        len: u64,
    },
    /// `done` is false when the call failed: the kernel then calls the pages clean and never writes them again.
    SyncData {
        file: u64,
        done: bool,
    },
    Seal {
        file: u64,
    },
    CreateFile(Entry),
    CreateDirectory(Entry),
    Rename {
        from: Entry,
        to: Entry,
    },
    Unlink(Entry),
    SyncDirectory {
        directory: u64,
        done: bool,
    },
}

impl Operation {
    /// The file or directory that the operation is about.
    pub(super) fn subject(&self) -> u64 {
        match self {
            Operation::Write { file, .. }
            | Operation::SetLen { file, .. }
            | Operation::SyncData { file, .. }
            | Operation::Seal { file } => *file,
            Operation::CreateFile(entry)
            | Operation::CreateDirectory(entry)
            | Operation::Unlink(entry)
            | Operation::Rename { to: entry, .. } => entry.number,
            Operation::SyncDirectory { directory, .. } => *directory,
        }
    }

    /// The name that the operation gives to its subject, if it does.
    pub(super) fn given_name(&self) -> Option<&Arc<str>> {
        match self {
            Operation::CreateFile(entry)
            | Operation::CreateDirectory(entry)
            | Operation::Rename { to: entry, .. } => Some(&entry.name),
            _ => None,
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let outcome = |done: &bool| if *done { "" } else { " failed" };
        match self {
            Operation::Write { offset, bytes, .. } => {
                write!(f, "write {} bytes at {offset}", bytes.len())
            }
            Operation::SetLen { len, .. } => write!(f, "set length to {len}"),
            Operation::SyncData { done, .. } => write!(f, "sync data{}", outcome(done)),
            Operation::Seal { .. } => write!(f, "set read-only"),
            Operation::CreateFile(_) => write!(f, "create file"),
            Operation::CreateDirectory(_) => write!(f, "create directory"),
            Operation::Rename { from, .. } => write!(f, "rename from {}", from.name),
            Operation::Unlink(entry) => write!(f, "unlink {}", entry.name),
            Operation::SyncDirectory { done, .. } => write!(f, "sync directory{}", outcome(done)),
        }
    }
}
