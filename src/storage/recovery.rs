//! Opening: creation, the first opener's recovery, the trust check (design 2.2, 2.4).
//!
//! Nothing is written by opening except by the first opener on this machine since the last crash or close (a new log
//! with what was not known durable, and the state), a repair of the catalog, and `TRUST`.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use crate::error::{Error, ErrorKind, Result};
use crate::ids::LogId;
use crate::model::{ANALYSER, VectorSpace};
use crate::options::StorageOptions;

use super::bundle::{Bundle, LockName, is_absent, lost};
use super::catalog::{Access, CatalogView, Meta};
use super::commit::Writer;
use super::lock;
use super::log::format::HEADER_BYTES;
use super::log::{Batch, LogFile};
use super::queue::Queue;
use super::segment::TextCache;
use super::state::{State, StateFile};
use super::store::{Shared, SpaceChoice};
use super::trust::check_trust;
use super::vfs::{LockKind, OpenMode, Vfs, refuses_writes};
use super::view::Follower;
use super::worker::Bell;

/// Opens or creates a database; see [`super::Store::open`].
pub fn open(
    vfs: Arc<dyn Vfs>,
    path: &Path,
    options: StorageOptions,
    space: SpaceChoice,
) -> Result<Shared> {
    let bundle = Bundle::new(vfs, path, options.read_only);
    if !bundle.exists()? {
        create(&bundle, &options, &space)?;
    }
    refuse_remote(&bundle, &options)?;
    let database = bundle.read_format()?;
    open_known(&bundle, database, options, space).map_err(|error| {
        let refused = !bundle.read_only() && writes_refused(&error);
        if refused { reading_may_help(&bundle, error) } else { error }
    })
}

/// Whether the system let this process write nothing.
fn writes_refused(error: &Error) -> bool {
    let cause = std::error::Error::source(error);
    cause.and_then(|cause| cause.downcast_ref()).is_some_and(refuses_writes)
}

fn reading_may_help(bundle: &Bundle, error: Error) -> Error {
    let message = "the database cannot be opened for writing; opened read-only (option read_only, \
                   --read-only) it may be read";
    Error::new(ErrorKind::Io, message).in_file(bundle.root()).because(error)
}

/// Opens the database of a bundle whose `FORMAT` could be read.
fn open_known(
    bundle: &Bundle,
    database: [u8; 16],
    options: StorageOptions,
    space: SpaceChoice,
) -> Result<Shared> {
    let follower = Follower {
        bundle: bundle.clone(),
        database,
        access: access(&options),
        text_cache: TextCache::new(options.text_cache_bytes),
    };

    let opening =
        lock::acquire(bundle, LockName::Opening, LockKind::Exclusive, options.busy_timeout)?;
    let open_lock = lock::open(bundle, LockName::Open, bundle.lock_mode())?;
    let try_open = |kind| {
        open_lock.try_lock(kind).map_err(|error| Error::io(LockName::Open.try_words(), error))
    };
    let first = try_open(LockKind::Exclusive)?;
    check_trust(&follower)?;
    let catalog = follower.open_catalog()?;
    let meta = catalog.begin()?.meta()?;
    let space = choose_space(&meta.space, &options, &space)?;
    check_analyser(&meta.analyser)?;
    drop(catalog);

    let mode = if options.read_only { OpenMode::Read } else { OpenMode::ReadWrite };
    let state_path = bundle.state();
    let state_file = bundle
        .vfs
        .open(&state_path, mode)
        .map_err(|error| lost("open locks/state", &state_path, error))?;
    let process = bundle.vfs.process_id();
    let writer_lock = lock::open(bundle, LockName::Writer, bundle.lock_mode())?;
    let place = writer_lock
        .identity()
        .map_err(|error| Error::io("identity of the writer lock", error).in_file(bundle.root()))?;
    let mut shared = Shared {
        follower,
        options,
        space,
        state_file: StateFile::new(state_file),
        assumed: None,
        view: Mutex::new(None),
        writer: Mutex::new(Writer::new(writer_lock)),
        place,
        queue: Queue::default(),
        poisoned: AtomicBool::new(false),
        process,
        bell: Bell::default(),
        open_lock: open_lock.clone(),
    };
    if first {
        shared.recover()?;
    }
    if shared.options.read_only {
        // A handle that repairs nothing must not keep a later writer from being the first.
        open_lock
            .unlock()
            .map_err(|error| Error::io(LockName::Open.try_words(), error).in_file(bundle.root()))?;
    } else if !try_open(LockKind::Shared)? {
        return Err(Error::locked("the open lock changed hands while this handle was opening"));
    }
    drop(opening);
    // The first snapshot finds whatever is wrong with catalog, segments and logs before anyone relies on them.
    shared.snapshot()?;
    Ok(shared)
}

fn create(bundle: &Bundle, options: &StorageOptions, space: &SpaceChoice) -> Result<()> {
    if bundle.has_lost_format() {
        return Err(Error::corrupt("the directory holds parts of a database but no FORMAT")
            .in_file(bundle.root()));
    }
    if !options.create || options.read_only {
        let message = match bundle.leads_nowhere() {
            true => "no database at this path: it is a symlink that leads nowhere",
            false => "no database at this path",
        };
        return Err(Error::not_found(message).in_file(bundle.root()));
    }
    let parent = bundle.root().parent().filter(|parent| !parent.as_os_str().is_empty());
    check_remote(bundle, parent.unwrap_or(Path::new(".")), options)?;
    let (SpaceChoice::Recorded(space) | SpaceChoice::Exactly(space)) = space;
    let space = VectorSpace { element: options.element.unwrap_or(space.element), ..space.clone() };
    space.check()?;
    let mut random = [0; 28];
    bundle.vfs.random(&mut random).map_err(|error| Error::io("random database id", error))?;
    let meta = Meta {
        database: random[..16].try_into().expect("sixteen"),
        space,
        analyser: ANALYSER.to_owned(),
        generation: 1,
        log_applied: LogId::new(0),
        next_segment: 1,
        next_user: 1,
        next_session: 1,
        codec_mean: None,
        codec_seed: u64::from_le_bytes(random[16..24].try_into().expect("eight")),
    };
    let salt = u32::from_le_bytes(random[24..].try_into().expect("four"));
    bundle.create(&meta, access(options), salt)
}

fn access(options: &StorageOptions) -> Access {
    Access { cache_bytes: options.catalog_cache_bytes, busy_timeout: options.busy_timeout }
}

fn refuse_remote(bundle: &Bundle, options: &StorageOptions) -> Result<()> {
    check_remote(bundle, bundle.root(), options)
}

fn check_remote(bundle: &Bundle, path: &Path, options: &StorageOptions) -> Result<()> {
    if options.allow_remote_fs {
        return Ok(());
    }
    match bundle.vfs.remote_kind(path) {
        Ok(None) => Ok(()),
        // Whoever looks for a file there says what is missing.
        Err(error) if is_absent(&error) => Ok(()),
        Ok(Some(kind)) => Err(Error::invalid(format!(
            "the database lies on a {kind} file system, where locks and maps may fail; \
             allow it with the option allow_remote_fs"
        ))
        .in_file(path)),
        Err(error) => Err(Error::io("kind of file system", error).in_file(path)),
    }
}

fn choose_space(
    recorded: &VectorSpace,
    options: &StorageOptions,
    choice: &SpaceChoice,
) -> Result<VectorSpace> {
    if let SpaceChoice::Exactly(wanted) = choice
        && (wanted.name != recorded.name || wanted.dimension != recorded.dimension)
    {
        return Err(Error::version(format!(
            "the database holds vectors of `{}` with {} values, not of `{}` with {}",
            recorded.name, recorded.dimension, wanted.name, wanted.dimension
        )));
    }
    if let Some(element) = options.element
        && element != recorded.element
    {
        return Err(Error::version(format!(
            "the database keeps vector values as {:?}, not as {element:?}",
            recorded.element
        )));
    }
    Ok(recorded.clone())
}

/// Readers are held to it too: they would compare terms of two versions.
fn check_analyser(recorded: &str) -> Result<()> {
    if recorded == ANALYSER {
        return Ok(());
    }
    Err(Error::version(format!(
        "the database holds terms of the text analysis `{}`, not of `{ANALYSER}`",
        recorded.escape_default()
    )))
}

/// Where the log stands after whatever stopped its last writer.
struct Found {
    log: LogFile,
    /// Known durable, and the batch that ends there.
    durable: (u64, u64),
    /// Whole batches behind the durable end.
    batches: Vec<Batch>,
    /// The first id that no row has; meant for the log that is begun when there is a tail.
    next_id: u64,
    /// Anything at all lies behind the durable end.
    tail: bool,
}

impl Shared {
    /// What the first opener does, alone with the bundle: what was not known durable is copied into a new log, so that
    /// every reader may rely on it. A read-only handle only takes note of it.
    fn recover(&mut self) -> Result<()> {
        let stored = self.state_file.read()?;
        let found = self.find_end(stored)?;
        let generation = stored.map_or(0, |state| state.generation);
        let (durable_end, durable_seq) = found.durable;
        let settled = State {
            generation: generation + 1,
            log: found.log.id(),
            visible_end: durable_end,
            durable_end,
            visible_seq: durable_seq,
            durable_seq,
            rotating: false,
        };
        if self.options.read_only {
            let last = found.batches.last();
            self.assumed = Some(State {
                visible_end: last.map_or(durable_end, |batch| batch.end),
                visible_seq: last.map_or(durable_seq, |batch| batch.seq),
                generation,
                ..settled
            });
            return Ok(());
        }
        if durable_seq == 0 && found.batches.is_empty() {
            // Its creator may have died before the name was durable, and nobody has committed since.
            let bundle = &self.follower.bundle;
            bundle.sync_name(&bundle.parent())?;
            // Of those who lost the race for the name and were killed.
            bundle.remove_dead_drafts();
        }
        let held = self.lock_writer()?;
        let unchanged = stored
            .is_some_and(|state| State { generation: state.generation + 1, ..state } == settled);
        if !found.tail {
            return if unchanged { Ok(()) } else { self.write_state(&settled) };
        }
        let log = found.log.id();
        let (log, end, seq) =
            self.create_log(log, durable_end, durable_seq, found.next_id, &found.batches)?;
        self.write_state(&State {
            log: log.id(),
            visible_end: end,
            durable_end: end,
            visible_seq: seq,
            durable_seq: seq,
            ..settled
        })?;
        drop(held);
        Ok(())
    }

    /// Finds the last log and how far it counts. The last log is the highest with a valid header; a later one without
    /// was being begun when its writer stopped, and holds nothing.
    fn find_end(&self, stored: Option<State>) -> Result<Found> {
        let (bundle, database) = (&self.follower.bundle, &self.follower.database);
        let applied = self.follower.open_catalog()?.begin()?.publish_state()?.1;
        let mut last = None;
        for log in bundle.logs()?.into_iter().rev() {
            match LogFile::open(bundle, log, OpenMode::Read, database) {
                Ok(opened) => {
                    last = Some(opened);
                    break;
                }
                // A log gets its name with its header in it: one that is longer held batches.
                Err(error) if error.kind() == ErrorKind::Corrupt => {
                    let named = stored.is_some_and(|state| state.log == log);
                    if named || log <= applied || self.log_len(log)? > HEADER_BYTES as u64 {
                        return Err(error);
                    }
                }
                Err(error) => return Err(error),
            }
        }
        let log = last.ok_or_else(|| Error::corrupt("no log").in_file(bundle.log_dir()))?;
        if stored.is_some_and(|state| state.log > log.id()) || log.id() <= applied {
            return Err(Error::corrupt("the last log is missing").in_file(bundle.log_dir()));
        }
        if let Some(state) = stored.filter(|state| state.log == log.id())
            && state.durable_end == log.len()?
        {
            // Nothing lies behind what the state names durable. The first snapshot reads and checks all of it.
            return Ok(Found {
                durable: (state.durable_end, state.durable_seq),
                batches: Vec::new(),
                next_id: log.header.next_id,
                tail: false,
                log,
            });
        }
        let mut end = log.marked_end()?;
        if let Some(state) = stored.filter(|state| state.log == log.id()) {
            end = end.max(state.durable_end);
        }
        let start = HEADER_BYTES as u64;
        let first_seq = log.header.first_seq.saturating_sub(1);
        let known = log.read_to(start, end, first_seq)?;
        let durable_seq = known.last().map_or(first_seq, |batch| batch.seq);
        let tail = log.read_tail(end, durable_seq)?;
        // Ids that earlier logs gave out are named by the header; a batch behind it names the rest.
        let next_id = known.last().map_or(log.header.next_id, |batch| batch.next_id);
        Ok(Found {
            durable: (end, durable_seq),
            next_id,
            tail: tail.torn || !tail.batches.is_empty(),
            batches: tail.batches,
            log,
        })
    }

    fn log_len(&self, log: LogId) -> Result<u64> {
        let path = self.follower.bundle.log(log);
        let open = self.follower.bundle.vfs.open(&path, OpenMode::Read);
        open.and_then(|file| file.len())
            .map_err(|error| Error::io("length of log", error).in_file(path))
    }
}
