//! The database handle.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use crate::encode::Embedder;
use crate::error::{Error, Result};
use crate::ingest;
use crate::options::Durability;
use crate::recall::SearchCache;
use crate::storage::vfs::{MemoryVfs, RealVfs, Vfs};
use crate::storage::{self, Store};

use super::memory::Memory;
use super::options::OpenOptions;
use super::stats::{Stats, Verification};

/// The path that stands for a database in memory, as it does for SQLite.
const IN_MEMORY: &str = ":memory:";

/// One open database.
///
/// Cheap to clone; clones share the handle, and it may be used from any number of threads. Any number of processes may
/// have the same database open: readers never wait, writers queue, and a commit of one is seen by the next call of
/// every other. A handle must not be used after `fork`: it answers [`crate::ErrorKind::Poisoned`].
///
/// ```
/// use loomdb::{Db, Turn};
///
/// # fn main() -> loomdb::Result<()> {
/// let db = Db::in_memory()?;
/// let memory = db.user("alice");
/// memory.add(Turn::new("I adopted a cat called Miso").speaker("Alice"))?;
///
/// let recall = memory.search("which pet does she have?")?;
/// assert!(recall.hits[0].episode.text.contains("Miso"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Db {
    inner: Arc<Inner>,
}

struct Inner {
    /// `None` once closed.
    store: RwLock<Option<Store>>,
    /// `None`: vectors come from the caller.
    embedder: Option<Arc<dyn Embedder>>,
    /// What searches keep between them.
    searches: SearchCache,
}

impl std::fmt::Debug for Db {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Db").field("open", &self.store().is_ok()).finish_non_exhaustive()
    }
}

impl Db {
    /// Opens the database at `path`, or creates it. `":memory:"` is a new database in memory, as [`Db::in_memory`].
    ///
    /// # Errors
    /// As [`Db::open_with`].
    pub fn open(path: impl AsRef<Path>) -> Result<Db> {
        Db::open_with(path, OpenOptions::new())
    }

    /// Opens the database at `path` with `options`.
    ///
    /// # Errors
    /// [`crate::ErrorKind::NotFound`] when there is none and `create` is off; [`crate::ErrorKind::Version`] for a
    /// format of a later version, for another vector space than the recorded one and for terms of another text analysis,
    /// naming both;
    /// [`crate::ErrorKind::Invalid`] for impossible options; [`crate::ErrorKind::Locked`] when other processes hold
    /// the database for longer than the busy timeout; [`crate::ErrorKind::Corrupt`] for damage, with its place.
    pub fn open_with(path: impl AsRef<Path>, options: OpenOptions) -> Result<Db> {
        let path = path.as_ref();
        if path == Path::new(IN_MEMORY) {
            return Db::open_on(Arc::new(MemoryVfs::new()), Path::new("memory.loom"), options);
        }
        let path = absolute(path)?;
        Db::open_on(Arc::new(RealVfs::new()), &path, options)
    }

    /// A new database in memory, gone with its last handle.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Invalid`] in a build without the built-in model.
    pub fn in_memory() -> Result<Db> {
        Db::open(IN_MEMORY)
    }

    /// Opens the database at `path` of the file layer `vfs`.
    #[doc(hidden)]
    pub fn open_on(vfs: Arc<dyn Vfs>, path: &Path, options: OpenOptions) -> Result<Db> {
        let OpenOptions { storage, embedding } = options;
        let choice = embedding.choice(storage.element)?.ok_or_else(|| {
            Error::invalid("embedding: this build has no built-in model, name an embedding to open")
        })?;
        let store = Store::open(vfs, path, storage, choice)?;
        let embedder = embedding.embedder(store.space());
        Ok(Db {
            inner: Arc::new(Inner {
                store: RwLock::new(Some(store)),
                embedder,
                searches: SearchCache::default(),
            }),
        })
    }

    /// Closes the handle and all its clones: every later call answers [`crate::ErrorKind::Poisoned`]. Calls that run
    /// in other threads go on to their end. Closing again does nothing. Nothing that was acknowledged as durable is lost
    /// by not closing; under [`crate::Durability::Relaxed`] closing syncs what is not yet.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Io`] and [`crate::ErrorKind::Poisoned`] when that sync fails. The handle is closed
    /// nevertheless.
    pub fn close(&self) -> Result<()> {
        let store = self.inner.store.write().unwrap_or_else(PoisonError::into_inner).take();
        match store {
            Some(store) if store.options().durability == Durability::Relaxed => {
                if store.options().read_only { Ok(()) } else { store.flush() }
            }
            _ => Ok(()),
        }
    }

    /// The memory of one user. The name is an opaque byte string: no trimming, folding, wildcards or prefixes. No call
    /// on a memory returns or changes anything of another user's. Costs nothing; an empty or too long name is refused
    /// by the first call.
    pub fn user(&self, name: impl AsRef<[u8]>) -> Memory {
        Memory::new(self.clone(), name.as_ref().into())
    }

    /// What makes the vectors of this database; `None` when the caller gives them.
    pub fn embedder(&self) -> Option<&dyn Embedder> {
        self.inner.embedder.as_deref()
    }

    /// The names of the users that have at least one live episode, in byte order.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Corrupt`], [`crate::ErrorKind::Io`], [`crate::ErrorKind::Poisoned`].
    pub fn users(&self) -> Result<Vec<Vec<u8>>> {
        let users = self.store()?.snapshot()?.users()?;
        Ok(users.into_iter().map(|name| name.to_vec()).collect())
    }

    /// Sizes and counts: episodes, users, files, and bytes by part.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Corrupt`], [`crate::ErrorKind::Io`], [`crate::ErrorKind::Poisoned`].
    pub fn stats(&self) -> Result<Stats> {
        let store = self.store()?;
        let space = store.space();
        Ok(Stats::new(&store.stats()?, &space.name, space.dimension))
    }

    /// Reads every byte of the database and checks it against its checksums and against the rest. Damage is listed in
    /// the answer; bad bytes never make the call fail. Cost: reads everything.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Locked`] when a checkpoint of another process outlasts the busy timeout;
    /// [`crate::ErrorKind::Io`], [`crate::ErrorKind::Poisoned`].
    pub fn verify(&self) -> Result<Verification> {
        Ok(Verification::new(self.store()?.verify()?))
    }

    /// Checks the files of a database that [`Db::open`] calls damaged, each by itself: as many problems as can be found
    /// without opening it. No problem does not mean that it is whole: [`Db::verify`] says that. Writes nothing; other
    /// processes that write meanwhile may make a file seem damaged. Cost: reads everything.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Invalid`] when the path is none.
    pub fn inspect(path: impl AsRef<Path>) -> Result<Verification> {
        let path = absolute(path.as_ref())?;
        Ok(Verification::new(storage::inspect(Arc::new(RealVfs::new()), &path)))
    }

    /// Moves what the log holds into segments and the catalog. Never needed: it happens by itself once the log has
    /// grown. `false`: there was nothing to move, or another process is at it.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Invalid`] on a read-only handle; [`crate::ErrorKind::Corrupt`],
    /// [`crate::ErrorKind::Io`], [`crate::ErrorKind::Poisoned`].
    pub fn checkpoint(&self) -> Result<bool> {
        self.store()?.checkpoint()
    }

    /// Joins small segments until no size class holds eight of them. Never needed: it follows checkpoints by itself.
    /// Returns how many segments were replaced.
    ///
    /// # Errors
    /// As [`Db::checkpoint`].
    pub fn merge(&self) -> Result<usize> {
        self.store()?.merge()
    }

    /// The store, unless closed.
    pub(super) fn store(&self) -> Result<Store> {
        let store = self.inner.store.read().unwrap_or_else(PoisonError::into_inner);
        store.clone().ok_or_else(|| Error::poisoned("database is closed"))
    }

    /// What makes vectors of `store`.
    pub(super) fn encoder<'a>(&'a self, store: &'a Store) -> ingest::Encoder<'a> {
        ingest::Encoder { space: store.space(), embedder: self.inner.embedder.as_deref() }
    }

    /// What searches keep between them.
    pub(super) fn searches(&self) -> &SearchCache {
        &self.inner.searches
    }
}

/// A relative path would lead elsewhere once the program changes its directory.
fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path)
        .map_err(|cause| Error::invalid("path of the database is no path").because(cause))
}
