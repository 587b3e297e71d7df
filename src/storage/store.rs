//! The storage handle.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use crate::error::{Error, Result};
use crate::ids::CommitSeq;
use crate::model::VectorSpace;
use crate::options::StorageOptions;

use super::commit::Writer;
use super::queue::Queue;
use super::recovery;
use super::snapshot::Snapshot;
use super::state::{State, StateFile};
use super::transaction::Transaction;
use super::vfs::{FileIdentity, Vfs, VfsFile};
use super::view::{Follower, View};
use super::worker::Worker;

/// Which vector space an open accepts.
#[derive(Clone, Debug)]
pub enum SpaceChoice {
    /// Whatever is recorded; a new database gets this one.
    Recorded(VectorSpace),
    /// Only this one: another recorded space is an error of kind `Version` that names both.
    Exactly(VectorSpace),
}

/// One handle of one database. Cheap to clone, `Send + Sync`. The last clone dropped closes it.
#[derive(Clone)]
pub struct Store {
    shared: Arc<Handle>,
}

/// Owns what a handle shares between its clones and its worker, and closes it.
struct Handle {
    /// `None` only once closed or forgotten.
    shared: Option<Arc<Shared>>,
    worker: Option<Worker>,
}

/// What the threads of one handle share.
pub struct Shared {
    pub follower: Follower,
    pub options: StorageOptions,
    pub space: VectorSpace,
    pub state_file: StateFile,
    /// The state that a read-only handle found by reading a log that nobody may repair for it.
    pub assumed: Option<State>,
    pub view: Mutex<Option<View>>,
    pub writer: Mutex<Writer>,
    /// The writer's lock file: while the path names this file, it leads to the database that was opened.
    pub place: FileIdentity,
    pub queue: Queue,
    pub poisoned: AtomicBool,
    /// The process that opened the handle: another one inherited it by fork.
    pub process: u32,
    /// Bells of the worker, and the thresholds crossed since.
    pub bell: super::worker::Bell,
    /// Keeps `locks/open` shared while the handle lives; a read-only handle keeps nothing.
    pub open_lock: Arc<dyn VfsFile>,
}

impl Store {
    /// Opens or creates the database at `path`.
    ///
    /// # Errors
    /// `NotFound` when there is none and `create` is off; `Version` for another format or vector space; `Locked` when
    /// another process outlasts the busy timeout; `Corrupt`; `Io`; `Invalid` on a network file system.
    pub fn open(
        vfs: Arc<dyn Vfs>,
        path: &Path,
        options: StorageOptions,
        space: SpaceChoice,
    ) -> Result<Store> {
        let shared = Arc::new(recovery::open(vfs, path, options, space)?);
        let worker = Worker::start(&shared);
        Ok(Store { shared: Arc::new(Handle { shared: Some(shared), worker }) })
    }

    /// The recorded vector space.
    pub fn space(&self) -> &VectorSpace {
        &self.shared().space
    }

    /// The database's id.
    pub fn database(&self) -> [u8; 16] {
        self.shared().follower.database
    }

    /// The settings of this handle.
    pub fn options(&self) -> &StorageOptions {
        &self.shared().options
    }

    /// A read view of everything committed before this call, in any process.
    ///
    /// # Errors
    /// `Poisoned` for a handle inherited by fork; `Corrupt`; `Io`.
    pub fn snapshot(&self) -> Result<Snapshot> {
        self.shared().snapshot()
    }

    /// Runs `work` under the writer lock and makes what it wrote durable, as one batch, together with the batches of
    /// other threads. Nothing is written when `work` fails. `None` as sequence number: nothing was written.
    ///
    /// # Errors
    /// What `work` returns; `Invalid` for a read-only handle; `Locked`, `Poisoned`, `Io`. After an error of the last
    /// three kinds the batch may or may not be found after a power cut, whole or not at all.
    pub fn commit<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Transaction<'_>) -> Result<T> + Send + 'static,
    ) -> Result<(T, Option<CommitSeq>)> {
        let shared = self.shared();
        shared.check_writable()?;
        shared.checkpoint_in_line()?;
        let slot = Arc::new(Mutex::new(None));
        let fill = slot.clone();
        let seq = shared.queue.commit(
            shared,
            Box::new(move |transaction| {
                let value = work(transaction)?;
                *fill.lock().expect("no panic holds it") = Some(value);
                Ok(())
            }),
        )?;
        shared.maintain_in_line();
        let value = slot.lock().expect("no panic holds it").take();
        Ok((value.expect("the work has run"), seq))
    }

    /// Threads of this handle whose commit nobody has begun.
    #[cfg(any(test, feature = "internals"))]
    pub fn commits_waiting(&self) -> usize {
        self.shared().queue.waiting()
    }

    /// Moves what the logs hold into segments and the catalog. `false`: another process is at it, or nothing to do.
    ///
    /// # Errors
    /// `Invalid` for a read-only handle; `Locked`, `Poisoned`, `Corrupt`, `Io`.
    pub fn checkpoint(&self) -> Result<bool> {
        let shared = self.shared();
        shared.check_writable()?;
        shared.checkpoint()
    }

    /// Merges small segments until no size class holds [`crate::options::MERGE_FACTOR`] of them. Segments replaced.
    ///
    /// # Errors
    /// As [`Store::checkpoint`].
    pub fn merge(&self) -> Result<usize> {
        let shared = self.shared();
        shared.check_writable()?;
        shared.merge()
    }

    /// Makes durable what was acknowledged under [`crate::options::Durability::Relaxed`].
    ///
    /// # Errors
    /// As [`Store::checkpoint`].
    pub fn flush(&self) -> Result<()> {
        let shared = self.shared();
        shared.check_writable()?;
        shared.sync_visible()
    }

    pub(super) fn shared(&self) -> &Shared {
        self.shared.shared.as_ref().expect("held until the last clone is dropped")
    }
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Store({})", self.shared().follower.bundle.root().display())
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let (shared, worker) = (self.shared.take(), self.worker.take());
        let Some(shared) = shared else { return };
        if shared.is_forked() {
            // The parent still owns locks and files: nothing is unlocked, closed or joined here.
            std::mem::forget(shared);
            std::mem::forget(worker);
            return;
        }
        if let Some(worker) = worker {
            worker.stop(&shared);
        }
        if shared.options.durability == crate::options::Durability::Relaxed
            && !shared.options.read_only
        {
            // Nobody is left to tell; the next opener reads the log itself.
            let _ = shared.sync_visible();
        }
    }
}

impl Shared {
    /// # Errors
    /// `Poisoned` for a handle inherited by fork, or after a failed sync.
    pub fn check_usable(&self) -> Result<()> {
        self.check_process()?;
        if self.poisoned.load(Ordering::Acquire) {
            return Err(Error::poisoned("a sync failed on this handle: reopen the database"));
        }
        Ok(())
    }

    fn check_writable(&self) -> Result<()> {
        if self.options.read_only {
            return Err(Error::invalid("the database is open read-only"));
        }
        self.check_usable()
    }

    fn check_process(&self) -> Result<()> {
        if self.is_forked() {
            return Err(Error::poisoned(
                "the handle was inherited by fork: open the database in this process",
            ));
        }
        Ok(())
    }

    fn is_forked(&self) -> bool {
        self.follower.bundle.vfs.process_id() != self.process
    }

    /// The state of the log. What was read once is never taken back by an older slot.
    pub fn read_state(&self) -> Result<State> {
        let stored = self.state_file.read()?;
        match (stored, self.assumed) {
            (Some(stored), Some(assumed)) if stored.generation <= assumed.generation => Ok(assumed),
            (Some(stored), _) => Ok(stored),
            (None, Some(assumed)) => Ok(assumed),
            (None, None) => {
                Err(Error::corrupt("locks/state does not hold")
                    .in_file(self.follower.bundle.state()))
            }
        }
    }

    pub fn write_state(&self, state: &State) -> Result<()> {
        self.state_file.write(state)
    }

    /// See [`Store::snapshot`].
    pub fn snapshot(&self) -> Result<Snapshot> {
        self.check_process()?;
        let mut current = self.view.lock().unwrap_or_else(|poison| poison.into_inner());
        let followed = self.follower.follow(&mut current, || self.read_state());
        // What looks like damage may be another database, or none, at the path.
        let read = followed.or_else(|error| self.check_place().and(Err(error)))?;
        Ok(Snapshot::new(current.clone().expect("followed above"), read))
    }

    /// The view as of `state`, which the caller read under the writer lock; without a look at the catalog when the
    /// view only has to read on.
    pub fn refresh(&self, state: State) -> Result<View> {
        let mut current = self.view.lock().unwrap_or_else(|poison| poison.into_inner());
        let extended = match current.as_mut() {
            Some(view) if view.state.generation == state.generation => true,
            Some(view) => self.follower.extend(view, state)?,
            None => false,
        };
        if !extended {
            self.follower.follow(&mut current, || self.read_state())?;
        }
        Ok(current.clone().expect("followed above"))
    }
}
