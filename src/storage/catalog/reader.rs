//! The read-only handle: opened once by every database handle, and following other processes' publishes.
//!
//! Invariants: never writes, waits for a writer only while that one writes the file's header. A read transaction keeps the state it began with.

use std::path::Path;
use std::sync::Arc;

use redb::{ConcurrencyMode, ReadOnlyDatabase, ReadableDatabase};

use crate::error::{Error, Result};
use crate::storage::vfs::CatalogBackend;
use crate::storage::vfs::{FileIdentity, OpenMode, Vfs};

use super::Access;
use super::boundary::{Boundary, Guarded};
use super::tables::{ReadTables, TableSet};
use super::view::CatalogView;

/// A catalog open for reading.
pub struct CatalogReader {
    database: Guarded<ReadOnlyDatabase>,
    boundary: Arc<Boundary>,
    identity: FileIdentity,
}

impl CatalogReader {
    /// Opens the catalog at `path`.
    ///
    /// # Errors
    /// One that [`super::needs_repair`] tells apart when the last writer died: open for writing, close, retry. Else
    /// `Corrupt` when it is no catalog, `Version`, `Locked` after the busy timeout, `Io`.
    pub fn open(vfs: &Arc<dyn Vfs>, path: &Path, access: Access) -> Result<CatalogReader> {
        let boundary = Arc::new(Boundary::new(path));
        let file = vfs
            .open(path, OpenMode::Read)
            .map_err(|cause| Error::io("open of the catalog", cause).in_file(path))?;
        let identity = file
            .identity()
            .map_err(|cause| Error::io("identity of the catalog", cause).in_file(path))?;
        let database = boundary.run("open of the catalog", || {
            let database = redb::Builder::new()
                .set_cache_size(access.cache_bytes)
                .set_concurrency_mode(ConcurrencyMode::MultiWriter)
                .open_read_only_with_backend(CatalogBackend::new(file, access.busy_timeout))?;
            Ok(Guarded::new(database))
        })?;
        Ok(CatalogReader { database, boundary, identity })
    }

    /// The file that this handle reads, whatever its name names now.
    pub fn identity(&self) -> FileIdentity {
        self.identity
    }

    /// Begins to read the newest published state.
    ///
    /// # Errors
    /// `Corrupt`, `Locked` after the busy timeout, `Io`, `Poisoned`.
    pub fn begin(&self) -> Result<CatalogRead> {
        let tables = self.boundary.run("begin of a catalog read", || {
            Ok(Guarded::new(ReadTables::new(self.database.begin_read()?)))
        })?;
        Ok(CatalogRead { tables, boundary: self.boundary.clone() })
    }
}

impl std::fmt::Debug for CatalogReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CatalogReader").field("identity", &self.identity).finish()
    }
}

/// A read transaction.
pub struct CatalogRead {
    tables: Guarded<ReadTables>,
    boundary: Arc<Boundary>,
}

impl CatalogView for CatalogRead {
    fn tables(&self) -> &impl TableSet {
        &*self.tables
    }

    fn boundary(&self) -> &Boundary {
        &self.boundary
    }
}

impl std::fmt::Debug for CatalogRead {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CatalogRead")
    }
}
