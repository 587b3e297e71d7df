//! The writable handle, which lives for one creation, publish, repair or check, under the checkpoint lock.
//!
//! Invariants: a publish is one redb transaction, durable when it returns, and nothing of it is kept when its closure
//! fails. An existing file is never initialised again: an empty one is damage.

use std::path::Path;
use std::sync::Arc;

use redb::{ConcurrencyMode, Database, Durability, WriteTransaction};

use crate::error::{Error, Result};
use crate::storage::vfs::CatalogBackend;
use crate::storage::vfs::{OpenMode, Vfs, VfsFile};

use super::boundary::{Attempt, Boundary, Guarded};
use super::tables::WriteTables;
use super::txn::CatalogTxn;
use super::{Access, Meta};

/// A catalog open for writing.
pub struct CatalogWriter {
    database: Guarded<Database>,
    boundary: Arc<Boundary>,
}

impl CatalogWriter {
    /// Creates the file (mode 0600) with all tables and `meta` in it, and closes it. The file is synced; its name is
    /// the caller's to sync.
    ///
    /// A power cut in between leaves bytes that are no catalog, so create in a directory that nobody has seen yet.
    ///
    /// # Errors
    /// `Io`; of kind `AlreadyExists` below when the name is taken.
    pub fn create(vfs: &Arc<dyn Vfs>, path: &Path, meta: &Meta, access: Access) -> Result<()> {
        let file = vfs
            .open(path, OpenMode::CreateNew)
            .map_err(|cause| Error::io("creation of the catalog", cause).in_file(path))?;
        let writer = CatalogWriter::start(path, file, access, false)?;
        writer.publish(|txn| {
            txn.create_tables()?;
            txn.set_meta(meta)
        })?;
        writer.close()
    }

    /// Opens an existing catalog, and repairs it when its last writer died. With `check_integrity`, every page is held
    /// against its checksum first (about 1.5 s a GB).
    ///
    /// # Errors
    /// `Corrupt` when the check fails or it is no catalog, `Version`, `Locked` after the busy timeout, `Io`.
    pub fn open(
        vfs: &Arc<dyn Vfs>,
        path: &Path,
        access: Access,
        check_integrity: bool,
    ) -> Result<CatalogWriter> {
        let file = vfs
            .open(path, OpenMode::ReadWrite)
            .map_err(|cause| Error::io("open of the catalog", cause).in_file(path))?;
        let len =
            file.len().map_err(|cause| Error::io("length of the catalog", cause).in_file(path))?;
        if len == 0 {
            // redb would make a new, empty database of it.
            return Err(Error::corrupt("the catalog is empty").in_file(path));
        }
        CatalogWriter::start(path, file, access, check_integrity)
    }

    fn start(
        path: &Path,
        file: Arc<dyn VfsFile>,
        access: Access,
        check_integrity: bool,
    ) -> Result<CatalogWriter> {
        let boundary = Arc::new(Boundary::new(path));
        let database = boundary.run("open of the catalog", || {
            let database = redb::Builder::new()
                .set_cache_size(access.cache_bytes)
                .set_concurrency_mode(ConcurrencyMode::MultiWriter)
                .set_check_integrity_on_open(check_integrity)
                .create_with_backend(CatalogBackend::new(file, access.busy_timeout))?;
            Ok(Guarded::new(database))
        })?;
        Ok(CatalogWriter { database, boundary })
    }

    /// Runs `work` in one write transaction and makes it durable; drops what it wrote when it fails.
    ///
    /// # Errors
    /// What `work` returned; `Corrupt`, `Locked`, `Io`, `Poisoned`. After an error of the commit itself the publish may or may
    /// not have happened: open the catalog again and look at its publish state.
    pub fn publish<T>(&self, work: impl FnOnce(&mut CatalogTxn<'_>) -> Result<T>) -> Result<T> {
        let txn = self.boundary.run("begin of a publish", || {
            let mut txn = Guarded::new(self.database.begin_write()?);
            txn.set_durability(Durability::Immediate)?;
            Ok(txn)
        })?;
        // The tables are closed before the transaction ends: each is guarded, so that a panic in one destructor does
        // not meet another.
        let outcome = work(&mut CatalogTxn::new(WriteTables::new(&txn), &self.boundary));
        match outcome {
            Ok(value) => {
                self.end("commit of a publish", txn, |txn| Ok(txn.commit()?))?;
                Ok(value)
            }
            Err(error) => {
                // The first error is the one to tell. A failed abort leaves pages unused until the next repair.
                let _ = self.end("abort of a publish", txn, |txn| Ok(txn.abort()?));
                Err(error)
            }
        }
    }

    fn end(
        &self,
        operation: &'static str,
        txn: Guarded<WriteTransaction>,
        how: impl FnOnce(WriteTransaction) -> Attempt<()>,
    ) -> Result<()> {
        self.boundary.run(operation, || how(txn.into_inner()))
    }

    /// Reads and writes nothing more, and leaves the file clean for readers. Dropping does the same, but an error
    /// is lost then.
    ///
    /// # Errors
    /// `Io`, `Poisoned`; the file may need a repair then.
    pub fn close(self) -> Result<()> {
        let CatalogWriter { database, boundary } = self;
        boundary.run("close of the catalog", || Ok(database.into_inner().close()?))
    }
}

impl std::fmt::Debug for CatalogWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CatalogWriter")
    }
}
