//! Follows the database: what a handle has read of catalog, segments and logs, and how it catches up.
//!
//! Protocol of a snapshot (design 2.3): `locks/state` first, then a catalog transaction (manifest, `log_applied`), all
//! its segments, the logs above `log_applied` up to the state, then the catalog again: when `log_applied` has moved or
//! the catalog's path names another file, from the start. A file that is missing means the same, unless nothing moved.

use std::sync::Arc;
use std::time::Duration;

use crate::error::{Error, ErrorKind, Result};
use crate::ids::{LogId, SegmentId};
use crate::simd::codec::Codec;

use super::bundle::{Bundle, LockName, is_missing};
use super::catalog::{
    Access, CatalogRead, CatalogReader, CatalogView, CatalogWriter, ManifestRow, Meta, needs_repair,
};
use super::dead::DeadRows;
use super::lock;
use super::log::format::HEADER_BYTES;
use super::log::{Batch, LogFile};
use super::masks::Masks;
use super::pending::Pending;
use super::segment::{Segment, TextCache};
use super::state::State;
use super::vfs::{FileIdentity, LockKind, OpenMode, PlantedBug};

/// Tries before a reader that keeps being overtaken gives up.
const ATTEMPTS_MAX: u32 = 1000;
/// Pause after being overtaken, once that has happened a few times.
const OVERTAKEN_PAUSE: Duration = Duration::from_micros(200);

/// One live segment as of one catalog generation.
#[derive(Clone, Debug)]
pub struct SegmentView {
    pub segment: Arc<Segment>,
    pub dead: Arc<DeadRows>,
    pub row: ManifestRow,
}

/// What one catalog generation says.
#[derive(Debug)]
pub struct Base {
    pub catalog: Arc<CatalogReader>,
    pub generation: u64,
    pub log_applied: LogId,
    pub meta: Meta,
    /// Ascending by segment id.
    pub segments: Vec<SegmentView>,
    pub codec: Option<Arc<Codec>>,
}

/// A catalog generation and the logs above it, up to one commit.
#[derive(Clone, Debug)]
pub struct View {
    pub base: Arc<Base>,
    pub pending: Arc<Pending>,
    pub state: State,
    /// The active log.
    pub log: Arc<LogFile>,
    /// Where reading stopped in it.
    pub end: u64,
    /// The last batch read.
    pub seq: u64,
    /// The first id that no row has.
    pub next_id: u64,
    /// Logs above `log_applied`, the active one included.
    pub log_count: usize,
    /// Rows of the active log.
    pub log_rows: u64,
    /// Shared by all views of one base that only read on.
    pub masks: Arc<Masks>,
}

/// Builds and renews views of one bundle.
#[derive(Debug)]
pub struct Follower {
    pub bundle: Bundle,
    pub database: [u8; 16],
    /// Of all segments that this handle opens.
    pub text_cache: Option<Arc<TextCache>>,
    pub access: Access,
}

impl Follower {
    /// Brings `current` to a state that `read_state` tells of, or newer, and returns the catalog transaction that goes
    /// with it. The state is read anew after being overtaken. An error leaves `current` usable.
    ///
    /// # Errors
    /// `Corrupt` when a file that the catalog or a log header names is missing or does not hold; `Io`.
    pub fn follow(
        &self,
        current: &mut Option<View>,
        mut read_state: impl FnMut() -> Result<State>,
    ) -> Result<CatalogRead> {
        for attempt in 0..ATTEMPTS_MAX {
            if attempt > 8 {
                self.bundle.vfs.pause(OVERTAKEN_PAUSE);
            }
            let state = read_state()?;
            if let Some(read) = self.attempt(current, state)? {
                return Ok(read);
            }
        }
        Err(Error::locked("checkpoints overtook this reader too often"))
    }

    /// `None`: a checkpoint overtook the attempt.
    fn attempt(&self, current: &mut Option<View>, state: State) -> Result<Option<CatalogRead>> {
        let (catalog, read) = self.begin(current.as_ref())?;
        let (generation, log_applied) = read.publish_state()?;
        if let Some(view) = current
            && Arc::ptr_eq(&view.base.catalog, &catalog)
            && view.base.generation == generation
            && (view.state.generation >= state.generation || self.extend(view, state)?)
        {
            return Ok(Some(read));
        }
        if log_applied >= state.log {
            // The catalog is newer than the state that was read: read the state again.
            return Ok(None);
        }
        let built = self.build(current.as_ref(), catalog.clone(), &read, state);
        if self.overtaken(&catalog, generation, log_applied, &built)? {
            return Ok(None);
        }
        match built {
            Ok(view) => {
                *current = Some(view);
                Ok(Some(read))
            }
            Err(error) if is_missing(&error) => {
                Err(Error::corrupt("a file that the database lists is missing").because(error))
            }
            Err(error) => Err(error),
        }
    }

    /// The second look at the catalog.
    fn overtaken(
        &self,
        catalog: &Arc<CatalogReader>,
        generation: u64,
        log_applied: LogId,
        built: &Result<View>,
    ) -> Result<bool> {
        if self.bundle.vfs.planted(PlantedBug::NoSecondRead) {
            return Ok(false);
        }
        if self.catalog_identity()? != catalog.identity() {
            return Ok(true);
        }
        let (now, applied) = catalog.begin()?.publish_state()?;
        let missing = built.as_ref().is_err_and(is_missing);
        Ok(applied != log_applied || (missing && now != generation))
    }

    /// A transaction of the current view's catalog handle, or of a new one when the path names another file by now
    /// or the handle is no longer usable.
    fn begin(&self, current: Option<&View>) -> Result<(Arc<CatalogReader>, CatalogRead)> {
        if let Some(view) = current
            && view.base.catalog.identity() == self.catalog_identity()?
        {
            match view.base.catalog.begin() {
                Err(error) if error.kind() == ErrorKind::Poisoned => {}
                begun => return begun.map(|read| (view.base.catalog.clone(), read)),
            }
        }
        let catalog = Arc::new(self.open_catalog()?);
        let read = catalog.begin()?;
        Ok((catalog, read))
    }

    /// Opens the catalog for reading. When its last writer was killed while writing, it is opened for writing once,
    /// which repairs it, under the checkpoint lock: by this handle, or by whoever holds that lock.
    ///
    /// # Errors
    /// `Locked` when nobody has repaired it within the busy timeout; `Corrupt`; `Io`.
    pub fn open_catalog(&self) -> Result<CatalogReader> {
        let (vfs, name) = (&self.bundle.vfs, LockName::Checkpoint);
        let start = vfs.monotonic();
        loop {
            match CatalogReader::open(vfs, &self.bundle.catalog(), self.access) {
                Err(error) if needs_repair(&error) && !self.bundle.read_only() => {}
                opened => return opened,
            }
            if vfs.monotonic().saturating_sub(start) > self.access.busy_timeout {
                return Err(Error::locked("the catalog waits for a repair by another process"));
            }
            // Never a wait for the lock: this thread may hold the writer lock, which the lock's holder waits for.
            match lock::try_acquire(&self.bundle, name, LockKind::Exclusive)? {
                Some(_lock) => self.repair_catalog()?,
                None => vfs.pause(OVERTAKEN_PAUSE),
            }
        }
    }

    /// Repairs the catalog when its last writer was killed while writing. The caller holds the checkpoint lock, and
    /// meets no catalog that needs a repair from then on.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub fn repair_catalog(&self) -> Result<()> {
        let (vfs, path) = (&self.bundle.vfs, self.bundle.catalog());
        match CatalogReader::open(vfs, &path, self.access) {
            Err(error) if needs_repair(&error) => {
                CatalogWriter::open(vfs, &path, self.access, false)?.close()
            }
            opened => opened.map(drop),
        }
    }

    fn catalog_identity(&self) -> Result<FileIdentity> {
        let path = self.bundle.catalog();
        self.bundle.vfs.identity(&path).map_err(|error| {
            if error.kind() == std::io::ErrorKind::NotFound {
                Error::corrupt("the catalog is missing").in_file(path)
            } else {
                Error::io("identity of the catalog", error).in_file(path)
            }
        })
    }

    /// Reads what was appended since `view`, when that lies in the same log or in one that follows it; `false` when not.
    pub fn extend(&self, view: &mut View, state: State) -> Result<bool> {
        if state.log == view.log.id() {
            if state.visible_end < view.end {
                return Ok(false);
            }
            let batches = view.log.read_to(view.end, state.visible_end, view.seq)?;
            view.absorb(&batches, state);
            return Ok(true);
        }
        let log = match self.open_log(state.log) {
            Ok(log) => log,
            Err(error) if is_missing(&error) => return Ok(false),
            Err(error) => return Err(error),
        };
        if log.header.previous != view.log.id() || log.header.previous_end < view.end {
            return Ok(false);
        }
        let batches = view.log.read_to(view.end, log.header.previous_end, view.seq)?;
        view.take(&batches);
        view.begin(log)?;
        let batches = view.log.read_to(view.end, state.visible_end, view.seq)?;
        view.absorb(&batches, state);
        Ok(true)
    }

    fn build(
        &self,
        current: Option<&View>,
        catalog: Arc<CatalogReader>,
        read: &CatalogRead,
        state: State,
    ) -> Result<View> {
        let base = Arc::new(self.base(current, catalog, read)?);
        let chain = self.chain(state.log, base.log_applied)?;
        let mut logs = chain.into_iter().peekable();
        let first = logs.next().expect("the chain holds at least the active log");
        let mut view = View {
            base,
            pending: Arc::default(),
            state,
            seq: first.header.first_seq.saturating_sub(1),
            next_id: first.header.next_id,
            end: HEADER_BYTES as u64,
            log: Arc::new(first),
            log_count: 1,
            log_rows: 0,
            masks: Arc::default(),
        };
        loop {
            let end = logs.peek().map_or(state.visible_end, |next| next.header.previous_end);
            let batches = view.log.read_to(view.end, end, view.seq)?;
            view.take(&batches);
            match logs.next() {
                Some(log) => view.begin(log)?,
                None => return Ok(view),
            }
        }
    }

    /// The logs from the first above `applied` to `last`, oldest first, following the headers back.
    pub fn chain(&self, last: LogId, applied: LogId) -> Result<Vec<LogFile>> {
        let mut chain = vec![self.open_log(last)?];
        loop {
            let previous = chain[chain.len() - 1].header.previous;
            if previous <= applied {
                chain.reverse();
                return Ok(chain);
            }
            chain.push(self.open_log(previous)?);
        }
    }

    fn open_log(&self, log: LogId) -> Result<LogFile> {
        LogFile::open(&self.bundle, log, OpenMode::Read, &self.database)
    }

    fn base(
        &self,
        current: Option<&View>,
        catalog: Arc<CatalogReader>,
        read: &CatalogRead,
    ) -> Result<Base> {
        let (generation, log_applied) = read.publish_state()?;
        let meta = read.meta()?;
        if meta.database != self.database {
            return Err(
                Error::corrupt("catalog of another database").in_file(self.bundle.catalog())
            );
        }
        let known = current.map(|view| &view.base);
        let mut segments = Vec::new();
        for row in read.manifest()? {
            let old = known.and_then(|base| base.segment(row.segment));
            segments.push(self.segment(old, row, read)?);
        }
        segments.sort_unstable_by_key(|view| view.row.segment);
        let codec = match (&meta.codec_mean, known.and_then(|base| base.codec.as_ref())) {
            (None, _) => None,
            (Some(mean), Some(codec))
                if codec.mean() == &mean[..] && codec.seed() == meta.codec_seed =>
            {
                Some(codec.clone())
            }
            (Some(mean), _) => Some(Arc::new(Codec::new(mean.clone(), meta.codec_seed))),
        };
        Ok(Base { catalog, generation, log_applied, meta, segments, codec })
    }

    fn segment(
        &self,
        old: Option<&SegmentView>,
        row: ManifestRow,
        read: &CatalogRead,
    ) -> Result<SegmentView> {
        let segment = match old {
            Some(old) => old.segment.clone(),
            None => Arc::new(self.open_segment(&row)?),
        };
        let dead = match old {
            Some(old) if old.row.dead_version == row.dead_version => old.dead.clone(),
            _ => {
                let rows = read.dead(row.segment)?;
                let dead = DeadRows::new(row.rows, &rows);
                if dead.len() != row.dead_rows {
                    return Err(Error::corrupt("dead list does not match the manifest")
                        .of(row.segment.get()));
                }
                Arc::new(dead)
            }
        };
        Ok(SegmentView { segment, dead, row })
    }

    /// Maps and opens one listed segment.
    ///
    /// # Errors
    /// `Io` when there is no such file; `Corrupt` when length, checksum or structure do not hold, with the ids lost.
    pub fn open_segment(&self, row: &ManifestRow) -> Result<Segment> {
        let path = self.bundle.segment(row.segment);
        let map = self.bundle.vfs.map(&path, row.bytes).map_err(|error| {
            if error.kind() == std::io::ErrorKind::InvalidData {
                Error::corrupt(format!(
                    "segment is not {} bytes long; it holds ids {} to {}",
                    row.bytes, row.ids.0, row.ids.1
                ))
                .in_file(&path)
            } else {
                Error::io("map segment", error).in_file(&path)
            }
        })?;
        let expected = Some((row.segment, row.bytes, row.footer_crc));
        let segment = Segment::open(map, &path, self.database, expected)?;
        Ok(segment.with_cache(self.text_cache.clone()))
    }
}

impl Base {
    pub fn segment(&self, id: SegmentId) -> Option<&SegmentView> {
        let at = self.segments.binary_search_by_key(&id, |view| view.row.segment).ok()?;
        Some(&self.segments[at])
    }
}

impl View {
    /// Goes on by `batches`, which lie behind what was read, up to `state`.
    pub fn absorb(&mut self, batches: &[Batch], state: State) {
        self.take(batches);
        self.state = state;
    }

    fn take(&mut self, batches: &[Batch]) {
        if batches.is_empty() {
            return;
        }
        let pending = Arc::make_mut(&mut self.pending);
        let before = pending.row_count();
        for batch in batches {
            for op in &batch.ops {
                pending.apply(op);
            }
            self.seq = batch.seq;
            self.end = batch.end;
            self.next_id = batch.next_id;
        }
        self.log_rows += pending.row_count() - before;
    }

    /// Goes on with a log that follows the current one.
    fn begin(&mut self, log: LogFile) -> Result<()> {
        if log.header.first_seq != self.seq + 1 {
            return Err(Error::corrupt("logs do not follow one another")
                .in_file(log.path())
                .at_byte(0));
        }
        self.next_id = self.next_id.max(log.header.next_id);
        self.end = HEADER_BYTES as u64;
        self.log = Arc::new(log);
        self.log_count += 1;
        self.log_rows = 0;
        Ok(())
    }
}
