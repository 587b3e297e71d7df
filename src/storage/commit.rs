//! Commit: one append and one sync for all batches that wait (design 2.2).
//!
//! The thread that leads takes the writer lock, runs the work of every thread that waits, appends their batches, syncs
//! once, tells everyone. Only then is any of them acknowledged.
//!
//! Invariants: a log is never overwritten, and cut only by the writer whose append found the disk full, to the end that
//! everyone knows. `locks/state` is written after the sync that it tells of. A failed
//! sync is never tried again: the handle is poisoned, and the next writer begins a new log from the durable end.

use std::cell::OnceCell;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::error::{Error, Result};
use crate::ids::{CommitSeq, LogId};
use crate::options::Durability;

use super::bundle::LockName;
use super::lock;
use super::log::{Batch, BatchWriter, LogFile};
use super::queue::Work;
use super::state::State;
use super::store::Shared;
use super::transaction::{Group, Transaction};
use super::vfs::{LockKind, PlantedBug, VfsFile, is_full};

/// Bytes of batches that share one append, at most: bounds the memory of a group.
const GROUP_BYTES_MAX: usize = 16 << 20;

/// The writer's own files: the lock file, kept open, and the active log.
#[derive(Debug)]
pub struct Writer {
    lock: Arc<dyn VfsFile>,
    pub(super) log: Option<LogFile>,
}

impl Writer {
    pub fn new(lock: Arc<dyn VfsFile>) -> Writer {
        Writer { lock, log: None }
    }
}

/// The writer lock, held.
pub struct WriterLock<'a> {
    pub(super) writer: std::sync::MutexGuard<'a, Writer>,
}

impl WriterLock<'_> {
    /// The active log, once [`Shared::prepare_log`] has opened it.
    pub fn log(&self) -> Option<&LogFile> {
        self.writer.log.as_ref()
    }
}

impl Drop for WriterLock<'_> {
    fn drop(&mut self) {
        // What cannot be given up here is given up when the file is closed.
        let _ = self.writer.lock.unlock();
    }
}

impl Shared {
    /// Takes the writer lock: this handle's, then this machine's.
    ///
    /// # Errors
    /// `Locked` after the busy timeout; `Poisoned` after a failed sync, or when the path leads elsewhere by now; `Io`.
    pub fn lock_writer(&self) -> Result<WriterLock<'_>> {
        let writer = self.writer.lock().unwrap_or_else(|poison| poison.into_inner());
        self.check_usable()?;
        let vfs = &*self.follower.bundle.vfs;
        let timeout = self.options.busy_timeout;
        lock::wait(vfs, &writer.lock, LockName::Writer, LockKind::Exclusive, timeout)?;
        let held = WriterLock { writer };
        self.check_place()?;
        lock::sign(vfs, &held.writer.lock)?;
        Ok(held)
    }

    /// Makes the batches of `works` durable in as few appends as [`GROUP_BYTES_MAX`] allows; one result a work.
    pub fn commit_group(&self, works: Vec<Work>) -> Vec<Result<Option<CommitSeq>>> {
        let mut results = Vec::with_capacity(works.len());
        let mut works = VecDeque::from(works);
        while !works.is_empty() {
            let left = works.len();
            let done = results.len();
            if let Err(error) = self.commit_some(&mut works, &mut results) {
                // Nothing of this round is acknowledged, whatever each work came to.
                results.truncate(done);
                results.extend((0..left - works.len()).map(|_| Err(error.duplicate())));
                if left == works.len() {
                    works.clear();
                    results.extend((0..left).map(|_| Err(error.duplicate())));
                }
            }
        }
        results
    }

    /// Runs works until they are all done or the group is full, and makes their batches durable.
    fn commit_some(
        &self,
        works: &mut VecDeque<Work>,
        results: &mut Vec<Result<Option<CommitSeq>>>,
    ) -> Result<()> {
        let mut held = self.lock_writer()?;
        let state = self.read_state()?;
        let (state, next_id) = self.prepare_log(&mut held, state)?;
        let log = held.writer.log.as_ref().expect("prepared above");
        let mut writer = BatchWriter::new(
            state.visible_end,
            log.header.salt,
            state.visible_seq,
            state.durable_seq,
            state.durable_end,
        );
        let (snapshot, mut group, mut next_id) = (OnceCell::new(), Group::default(), next_id);
        while let Some(work) = works.pop_front() {
            let now = self.follower.bundle.vfs.now();
            let mut transaction =
                Transaction::new(self, &snapshot, &mut group, &mut writer, next_id, now);
            let outcome = work(&mut transaction);
            let (ops, after) = transaction.finish();
            results.push(match outcome {
                Ok(()) => {
                    next_id = after;
                    let sealed = writer.seal(next_id);
                    group.batches.extend(sealed.map(|seq| Batch {
                        seq,
                        end: writer.end(),
                        next_id,
                        ops,
                    }));
                    Ok(sealed.map(CommitSeq::new))
                }
                Err(error) => {
                    writer.abandon();
                    Err(error)
                }
            });
            if writer.sealed().len() >= GROUP_BYTES_MAX {
                break;
            }
        }
        if writer.sealed().is_empty() {
            return Ok(());
        }
        let after = self.append(log, &state, &writer)?;
        // A snapshot of the state before would make the view copy its table.
        drop(snapshot);
        self.absorb(log.id(), &state, after, &group.batches);
        drop(held);
        self.note_growth(writer.end());
        Ok(())
    }

    /// Appends sealed batches behind the log's end, syncs, and tells everyone through `locks/state`. Returns the state
    /// that was written.
    fn append(&self, log: &LogFile, before: &State, writer: &BatchWriter) -> Result<State> {
        let vfs = &self.follower.bundle.vfs;
        if let Err(error) = log.file.write_all_at(before.visible_end, writer.sealed()) {
            if is_full(&error) {
                // What was written of it would keep the last space, in which the next log has to begin. Nobody has
                // looked behind the end that the state names: the writer lock is held, and who holds `locks/open`
                // keeps every recovery away. What cannot be cut is excluded by the next writer.
                let _ = log.file.set_len(before.visible_end);
            }
            return Err(Error::io("append to log", error).in_file(log.path()));
        }
        let mut state = State {
            generation: before.generation + 1,
            visible_end: writer.end(),
            visible_seq: writer.seq(),
            ..*before
        };
        if self.options.durability == Durability::Synced {
            if vfs.planted(PlantedBug::StateBeforeSync) {
                let early = State {
                    durable_end: state.visible_end,
                    durable_seq: state.visible_seq,
                    ..state
                };
                self.write_state(&early)?;
                state.generation += 1;
            }
            self.sync_log(log)?;
            state.durable_end = state.visible_end;
            state.durable_seq = state.visible_seq;
        }
        self.write_state(&state)?;
        Ok(state)
    }

    /// Brings the view that stands at `before` to `after` by the batches that were appended to `log` in between, so that
    /// nobody reads back what this handle has written. A view that stands elsewhere catches up by reading.
    fn absorb(&self, log: LogId, before: &State, after: State, batches: &[Batch]) {
        let mut current = self.view.lock().unwrap_or_else(|poison| poison.into_inner());
        if let Some(view) = current.as_mut()
            && view.log.id() == log
            && (view.end, view.seq) == (before.visible_end, before.visible_seq)
        {
            view.absorb(batches, after);
        }
    }

    /// Syncs a log. When that fails, what was appended may be lost although the system calls its pages clean: this
    /// handle writes no more, and what lies behind the durable end is excluded by the next writer.
    pub fn sync_log(&self, log: &LogFile) -> Result<()> {
        let Err(error) = log.file.sync_data() else { return Ok(()) };
        if self.follower.bundle.vfs.planted(PlantedBug::SyncRetried) && log.file.sync_data().is_ok()
        {
            return Ok(());
        }
        self.poisoned.store(true, Ordering::Release);
        Err(Error::io("sync log", error).in_file(log.path()))
    }

    /// Makes durable what is only visible: what a timer does under relaxed durability.
    ///
    /// # Errors
    /// `Locked`, `Poisoned`, `Io`.
    pub fn sync_visible(&self) -> Result<()> {
        let mut held = self.lock_writer()?;
        let state = self.read_state()?;
        if state.durable_end == state.visible_end {
            return Ok(());
        }
        let (state, _) = self.prepare_log(&mut held, state)?;
        self.sync_shown(&held, state).map(drop)
    }

    /// Syncs what is only visible of the active log, which [`Shared::prepare_log`] has opened, and says so.
    ///
    /// The state says first that a sync is tried. When it fails, or its caller dies before it can tell, the next writer
    /// copies what is visible into a new log: a sync that it made itself would believe the pages of the failed one.
    ///
    /// # Errors
    /// `Io`; the handle is poisoned after a failed sync.
    pub fn sync_shown(&self, held: &WriterLock<'_>, state: State) -> Result<State> {
        if state.durable_end == state.visible_end {
            return Ok(state);
        }
        let tried = State { generation: state.generation + 1, rotating: true, ..state };
        self.write_state(&tried)?;
        self.sync_log(held.log().expect("prepared by the caller"))?;
        let done = State {
            generation: tried.generation + 1,
            durable_end: state.visible_end,
            durable_seq: state.visible_seq,
            rotating: false,
            ..state
        };
        self.write_state(&done)?;
        Ok(done)
    }
}
