//! The check of a catalog that comes from elsewhere (design 2.4).

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::error::{Error, ErrorKind, Result};

use super::bundle::{Bundle, LockName, lost};
use super::catalog::{Access, CatalogWriter};
use super::lock;
use super::vfs::{LockKind, MemoryVfs, OpenMode, Vfs};
use super::view::Follower;

/// Bytes copied at once, and the cache of the copy that is checked.
pub const COPY_CHUNK_BYTES: usize = 1 << 20;

/// A catalog that this machine has not checked is checked whole, through a writable open: a plain open of redb does
/// not verify its pages.
pub fn check_trust(follower: &Follower) -> Result<()> {
    let bundle = &follower.bundle;
    let path = bundle.catalog();
    let identity = || {
        bundle.vfs.identity(&path).map_err(|error| {
            let missing = error.kind() == std::io::ErrorKind::NotFound;
            let kind = if missing { ErrorKind::Corrupt } else { ErrorKind::Io };
            Error::new(kind, "the catalog cannot be opened").in_file(&path).because(error)
        })
    };
    if bundle.is_trusted(identity()?) {
        return Ok(());
    }
    if bundle.read_only() {
        return check_copy(bundle);
    }
    let timeout = follower.access.busy_timeout;
    let _lock = lock::acquire(bundle, LockName::Checkpoint, LockKind::Exclusive, timeout)?;
    let identity = identity()?;
    if bundle.is_trusted(identity) {
        return Ok(());
    }
    CatalogWriter::open(&bundle.vfs, &path, follower.access, true)?.close()?;
    bundle.write_trust(identity)
}

/// Where the copy lies in its file layer.
pub const COPY_PATH: &str = "/catalog.redb";

/// Checks a copy in memory of the catalog, which may not be written.
///
/// # Errors
/// `Corrupt`, `Version`, `Io`.
pub fn check_copy(bundle: &Bundle) -> Result<()> {
    checked_copy(bundle).map(drop)
}

/// A copy in memory of the catalog, repaired and checked.
///
/// # Errors
/// As [`check_copy`].
pub fn checked_copy(bundle: &Bundle) -> Result<Arc<dyn Vfs>> {
    let path = bundle.catalog();
    let io = |error| Error::io("read the catalog", error).in_file(&path);
    let file = bundle.vfs.open(&path, OpenMode::Read);
    let file = file.map_err(|error| lost("read the catalog", &path, error))?;
    let length = file.len().map_err(io)?;
    let memory: Arc<dyn Vfs> = Arc::new(MemoryVfs::new());
    let copy_path = Path::new(COPY_PATH);
    let copy = memory.open(copy_path, OpenMode::CreateNew).map_err(io)?;
    let mut chunk = vec![0; COPY_CHUNK_BYTES];
    let mut at = 0;
    while at < length {
        let count = (length - at).min(COPY_CHUNK_BYTES as u64) as usize;
        file.read_exact_at(at, &mut chunk[..count]).map_err(io)?;
        copy.write_all_at(at, &chunk[..count]).map_err(io)?;
        at += count as u64;
    }
    drop(copy);
    // Nobody else has the copy.
    let access = Access { cache_bytes: COPY_CHUNK_BYTES, busy_timeout: Duration::ZERO };
    CatalogWriter::open(&memory, copy_path, access, true)
        .and_then(CatalogWriter::close)
        .map_err(|error| error.in_file(&path))?;
    Ok(memory)
}
