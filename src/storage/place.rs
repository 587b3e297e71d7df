//! The path of an open database: whether it still leads to the files that the handle holds.
//!
//! Files are named by path, while locks, `locks/state` and the active log are held open. They belong together only as
//! long as the path leads where it led when the handle was opened. Whoever renames a bundle, puts another one in its
//! place or turns a symlink makes the two differ; a log begun, a segment listed or a log removed at the path would then
//! damage two databases. So everything that creates, lists or removes files asks here first.

use std::io::ErrorKind as IoKind;
use std::path::Path;

use crate::error::{Error, Result};

use super::bundle::LockName;
use super::catalog::{CatalogTxn, CatalogView, CatalogWriter};
use super::store::Shared;

impl Shared {
    /// Whether the path names the writer's lock file that this handle holds open.
    ///
    /// # Errors
    /// `Poisoned` when the database was moved, replaced or removed; `Io`.
    pub fn check_place(&self) -> Result<()> {
        let path = self.follower.bundle.lock(LockName::Writer);
        match self.follower.bundle.vfs.identity(&path) {
            Ok(identity) if identity == self.place => Ok(()),
            Err(error) if !matches!(error.kind(), IoKind::NotFound | IoKind::NotADirectory) => {
                Err(Error::io("look for the database", error).in_file(path))
            }
            _ => Err(self.moved()),
        }
    }

    fn moved(&self) -> Error {
        let message = "the database was moved, replaced or removed while it was open: \
                       open it again where it is";
        Error::poisoned(message).in_file(self.follower.bundle.root())
    }

    /// Runs `work` in one transaction of this database's catalog. The caller holds the checkpoint lock.
    ///
    /// # Errors
    /// What `work` returned; `Poisoned` when the path leads to another database by now; `Corrupt`, `Io`.
    pub fn publish<T>(&self, work: impl FnOnce(&mut CatalogTxn<'_>) -> Result<T>) -> Result<T> {
        self.check_place()?;
        let bundle = &self.follower.bundle;
        let access = self.follower.access;
        let writer = CatalogWriter::open(&bundle.vfs, &bundle.catalog(), access, false)?;
        let published = writer.publish(|catalog| {
            // Of the file that is open, so that no moment is left in which the path could turn.
            if catalog.meta()?.database != self.follower.database {
                return Err(self.moved());
            }
            work(catalog)
        })?;
        writer.close()?;
        Ok(published)
    }

    /// Removes files that nothing lists any more. What cannot be removed now is a leftover, removed later.
    pub fn remove_unlisted<P: AsRef<Path>>(&self, paths: impl IntoIterator<Item = P>) {
        for path in paths {
            if self.check_place().is_err() {
                return;
            }
            let _ = self.follower.bundle.vfs.remove_file(path.as_ref());
        }
    }
}
