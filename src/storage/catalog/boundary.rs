//! The one way into redb: errors are translated here, and a panic stops here.
//!
//! Invariants: no redb type, error or panic passes [`Boundary::run`]. redb answers damaged pages with a panic now and
//! then (its ordinary open verifies nothing), so a caught panic is reported as `Corrupt`, and the handle answers
//! `Poisoned` from then on, because nobody knows which of redb's locks and caches the panic left half changed.
//! This needs unwinding: a program built with `panic = "abort"` dies instead.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Error, Result};

/// What a closure inside the boundary returns.
pub type Attempt<T> = std::result::Result<T, Failure>;

/// Where a call into redb failed.
pub enum Failure {
    /// One of our own checks on what redb returned.
    Ours(Error),
    /// redb's answer. Boxed, as it is large and rare.
    Redb(Box<redb::Error>),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Ours(error)
    }
}

macro_rules! from_redb {
    ($($error:ident)*) => {
        $(impl From<redb::$error> for Failure {
            fn from(error: redb::$error) -> Failure {
                Failure::Redb(Box::new(error.into()))
            }
        })*
    };
}

from_redb!(StorageError TableError TransactionError CommitError DatabaseError SetDurabilityError);

/// Marks, as the cause of an error, a catalog whose last writer died: a writable open repairs it.
#[derive(Debug)]
struct NeedsRepair;

impl fmt::Display for NeedsRepair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("its last writer was stopped before it closed the file")
    }
}

impl std::error::Error for NeedsRepair {}

/// Whether `error` says that the catalog must be opened once for writing, and closed, before it can be read.
pub fn needs_repair(error: &Error) -> bool {
    std::error::Error::source(error).is_some_and(|cause| cause.is::<NeedsRepair>())
}

/// What every part of one handle shares: the file's name for errors, and whether the handle is still usable.
#[derive(Debug)]
pub struct Boundary {
    path: PathBuf,
    poisoned: AtomicBool,
}

impl Boundary {
    pub(super) fn new(path: &Path) -> Boundary {
        Boundary { path: path.to_path_buf(), poisoned: AtomicBool::new(false) }
    }

    /// Runs `call`, which may use redb as it likes. `operation` names the call in errors.
    ///
    /// # Errors
    /// `Poisoned` when an earlier call panicked or met an input/output error; `Corrupt` when this one panics or finds
    /// damage; else the kind that fits redb's error.
    pub(super) fn run<T>(
        &self,
        operation: &'static str,
        call: impl FnOnce() -> Attempt<T>,
    ) -> Result<T> {
        if self.poisoned.load(Ordering::Acquire) {
            return Err(Error::poisoned("the catalog handle failed before, reopen the database")
                .in_file(&self.path));
        }
        match catch_unwind(AssertUnwindSafe(call)) {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(Failure::Ours(error))) if error.file().is_some() => Err(error),
            Ok(Err(Failure::Ours(error))) => Err(error.in_file(&self.path)),
            Ok(Err(Failure::Redb(error))) => Err(self.translate(operation, *error)),
            Err(_) => {
                // The panic's own message is not passed on: it could quote stored bytes.
                self.poisoned.store(true, Ordering::Release);
                Err(Error::corrupt(format!("{operation} met damaged pages")).in_file(&self.path))
            }
        }
    }

    fn translate(&self, operation: &'static str, error: redb::Error) -> Error {
        use redb::Error as Redb;
        let translated = match error {
            Redb::Corrupted(message) => {
                Error::corrupt(operation).because(std::io::Error::other(message))
            }
            // redb says so of a file without its magic number, and reads beyond the end of a file that was cut.
            Redb::Io(cause) if is_damage(&cause) => Error::corrupt(operation).because(cause),
            // Our own answer to a lock that was waited for in vain: no file of ours is opened non-blocking.
            Redb::Io(cause) if cause.kind() == std::io::ErrorKind::WouldBlock => {
                Error::locked(format!(
                    "{operation}: another process holds the catalog for longer than the busy timeout"
                ))
            }
            Redb::Io(cause) => Error::io(operation, cause),
            Redb::Backend(cause) => {
                Error::new(crate::error::ErrorKind::Io, operation).because(cause)
            }
            Redb::Unsupported => Error::new(
                crate::error::ErrorKind::Io,
                format!("{operation}: the file system has no byte-range locks"),
            ),
            Redb::PreviousIo | Redb::DatabaseClosed | Redb::LockPoisoned(_) => {
                self.poisoned.store(true, Ordering::Release);
                Error::poisoned("the catalog handle failed before, reopen the database")
            }
            Redb::RepairAborted => Error::poisoned(
                "the catalog needs a repair, which opening the database for writing does",
            )
            .because(NeedsRepair),
            Redb::DatabaseAlreadyOpen | Redb::TransactionInProgress | Redb::WouldBlock => {
                Error::locked(format!("{operation}: another process holds the catalog"))
            }
            Redb::UpgradeRequired(version) => {
                Error::version(format!("catalog file of redb format version {version}"))
            }
            Redb::LockProtocolMismatch => {
                Error::version("another process has the catalog open with another lock protocol")
            }
            Redb::ValueTooLarge(bytes) => {
                Error::limit(format!("{operation}: a catalog row of {bytes} bytes"))
            }
            // Missing tables and tables of other types: the file is not what we wrote. The message names tables only.
            other => Error::corrupt(operation).because(std::io::Error::other(other.to_string())),
        };
        translated.in_file(&self.path)
    }
}

fn is_damage(cause: &std::io::Error) -> bool {
    matches!(cause.kind(), std::io::ErrorKind::InvalidData | std::io::ErrorKind::UnexpectedEof)
}

/// Holds a redb object so that a panic in its destructor ends there: two panics at once would end the process.
///
/// After a panic inside redb its mutexes are poisoned, and the destructors of tables and transactions panic on them.
pub(super) struct Guarded<T>(Option<T>);

const HELD: &str = "taken only by into_inner and drop, which end the guard";

impl<T> Guarded<T> {
    pub(super) fn new(value: T) -> Guarded<T> {
        Guarded(Some(value))
    }

    pub(super) fn into_inner(mut self) -> T {
        self.0.take().expect(HELD)
    }
}

impl<T> Deref for Guarded<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_ref().expect(HELD)
    }
}

impl<T> DerefMut for Guarded<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.as_mut().expect(HELD)
    }
}

impl<T> Drop for Guarded<T> {
    fn drop(&mut self) {
        let value = self.0.take();
        // Nothing to report to: a destructor that panics follows a panic that was reported.
        let _ = catch_unwind(AssertUnwindSafe(|| drop(value)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    fn boundary() -> Boundary {
        Boundary::new(Path::new("/x/catalog.redb"))
    }

    #[test]
    fn a_panic_is_corrupt_once_and_poisons_the_handle() {
        let boundary = boundary();
        let error = boundary.run::<()>("read", || panic!("stored text")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        assert!(!format!("{error:?}").contains("stored text"));
        assert_eq!(boundary.run("read", || Ok(())).unwrap_err().kind(), ErrorKind::Poisoned);
    }

    #[test]
    fn redb_errors_become_the_kind_whose_move_it_is() {
        let eof = || std::io::Error::from(std::io::ErrorKind::UnexpectedEof);
        let full = || std::io::Error::from(std::io::ErrorKind::StorageFull);
        for (error, kind) in [
            (redb::Error::Corrupted("page".into()), ErrorKind::Corrupt),
            (redb::Error::Io(eof()), ErrorKind::Corrupt),
            (redb::Error::Io(full()), ErrorKind::Io),
            (redb::Error::Io(std::io::ErrorKind::WouldBlock.into()), ErrorKind::Locked),
            (redb::Error::PreviousIo, ErrorKind::Poisoned),
            (redb::Error::DatabaseAlreadyOpen, ErrorKind::Locked),
            (redb::Error::UpgradeRequired(2), ErrorKind::Version),
            (redb::Error::LockProtocolMismatch, ErrorKind::Version),
            (redb::Error::TableDoesNotExist("meta".into()), ErrorKind::Corrupt),
        ] {
            let text = error.to_string();
            let failure = Failure::Redb(Box::new(error));
            let ours = boundary().run::<()>("read", || Err(failure)).unwrap_err();
            assert_eq!(ours.kind(), kind, "{text}");
            assert!(!needs_repair(&ours));
        }
        let aborted = boundary()
            .run::<()>("open", || Err(redb::DatabaseError::RepairAborted.into()))
            .unwrap_err();
        assert!(needs_repair(&aborted));
    }

    #[test]
    fn a_destructor_that_panics_is_stopped() {
        struct Bad;
        impl Drop for Bad {
            fn drop(&mut self) {
                panic!("in drop");
            }
        }
        drop(Guarded::new(Bad));
        let outcome = catch_unwind(|| {
            let _first = Guarded::new(Bad);
            panic!("first");
        });
        assert!(outcome.is_err());
    }
}
