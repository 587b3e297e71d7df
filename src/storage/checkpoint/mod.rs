//! Checkpoint: what the logs hold becomes a segment and catalog rows (design 2.3).
//!
//! Order, and what a crash leaves: the log is sealed (a new log begins); the segment is written, synced, renamed and
//! its directory synced (a crash leaves a file that no manifest lists: a leftover); one catalog transaction publishes
//! it (before: the logs hold everything; after: the segment does); the applied logs are removed (a crash leaves logs at
//! or below `log_applied`: leftovers).

mod publish;
mod rows;

use crate::error::Result;
use crate::ids::LogId;

use super::bundle::LockName;
use super::catalog::CatalogView;
use super::lock::{self, Lock};
use super::log::Op;
use super::log::format::HEADER_BYTES;
use super::segment_file::{SegmentDraft, learn_codec, sync_late};
use super::snapshot::Snapshot;
use super::store::Shared;
use super::vfs::{LockKind, PlantedBug};

use rows::{LogRows, Plan};

impl Shared {
    /// See [`super::Store::checkpoint`].
    pub fn checkpoint(&self) -> Result<bool> {
        self.run_checkpoint(true)
    }

    /// Checkpoints the logs that are sealed already. What is tried again before each commit must begin no new log:
    /// on a full disk every try would leave one more.
    ///
    /// # Errors
    /// As [`super::Store::checkpoint`].
    pub fn checkpoint_sealed(&self) -> Result<bool> {
        self.run_checkpoint(false)
    }

    fn run_checkpoint(&self, seal: bool) -> Result<bool> {
        self.check_usable()?;
        self.check_place()?;
        let bundle = &self.follower.bundle;
        let Some(_checkpoint) = self.try_checkpoint_lock()? else { return Ok(false) };
        // Before anything else that opens the catalog: a publish that failed half way is repaired here.
        self.follower.repair_catalog()?;
        let applied = self.follower.open_catalog()?.begin()?.publish_state()?.1;
        let timeout = self.options.busy_timeout;
        let files = lock::acquire(bundle, LockName::Files, LockKind::Shared, timeout)?;
        let sealed = if seal { self.seal_log(applied)? } else { self.last_sealed(applied)? };
        let Some(last) = sealed else { return Ok(false) };
        // Nobody else publishes while the checkpoint lock is held: the snapshot's base stays the newest.
        let before = self.snapshot()?;
        let ops = self.sealed_ops(&before, last)?;
        self.write_and_publish(&before, ops, last)?;
        drop(files);
        self.remove_logs(last);
        // The handle's own view moves on, so that its memory holds no applied rows.
        self.snapshot()?;
        self.clean();
        Ok(true)
    }

    /// The checkpoint lock, unless another process has it.
    pub fn try_checkpoint_lock(&self) -> Result<Option<Option<Lock>>> {
        let bundle = &self.follower.bundle;
        if bundle.vfs.planted(PlantedBug::TwoCheckpointers) {
            return Ok(Some(None));
        }
        let lock = lock::try_acquire(bundle, LockName::Checkpoint, LockKind::Exclusive)?;
        Ok(lock.map(Some))
    }

    /// Begins a new log, so that the ones before it only have to be read. `None` when no log above `applied` holds
    /// anything.
    fn seal_log(&self, applied: LogId) -> Result<Option<LogId>> {
        let mut held = self.lock_writer()?;
        let state = self.read_state()?;
        let (state, _) = self.prepare_log(&mut held, state)?;
        let view = self.refresh(state)?;
        if state.visible_end == HEADER_BYTES as u64 {
            // An empty active log: what is before it is sealed already.
            let previous = view.log.header.previous;
            return Ok((previous > applied).then_some(previous));
        }
        drop(view);
        let state = self.sync_shown(&held, state)?;
        self.begin_log(&mut held, &state, state.visible_end, state.visible_seq, &[])?;
        Ok(Some(state.log))
    }

    /// The log before the active one, unless it is applied.
    fn last_sealed(&self, applied: LogId) -> Result<Option<LogId>> {
        let previous = self.snapshot()?.view().log.header.previous;
        Ok((previous > applied).then_some(previous))
    }

    /// What the logs above `log_applied` up to `last` did, in order.
    fn sealed_ops(&self, before: &Snapshot, last: LogId) -> Result<Vec<Op>> {
        let applied = before.view().base.log_applied;
        let active = self.follower.chain(before.view().log.id(), applied)?;
        let mut ops = Vec::new();
        for pair in active.windows(2) {
            let (log, next) = (&pair[0], &pair[1]);
            if log.id() > last {
                break;
            }
            let first = log.header.first_seq.saturating_sub(1);
            for batch in log.read_to(HEADER_BYTES as u64, next.header.previous_end, first)? {
                ops.extend(batch.ops);
            }
        }
        Ok(ops)
    }

    fn write_and_publish(&self, before: &Snapshot, ops: Vec<Op>, last: LogId) -> Result<()> {
        let bundle = &self.follower.bundle;
        let base = &before.view().base;
        let plan = Plan::new(before, ops)?;
        let rows = LogRows::new(&plan);
        let fresh = match base.codec {
            Some(_) => None,
            None => learn_codec(base.meta.codec_seed, &rows, &self.space)?,
        };
        let codec = base.codec.as_deref().or(fresh.as_ref());
        let segment = if plan.is_empty() {
            None
        } else {
            let first = LogId::new(base.log_applied.get() + 1);
            let draft = SegmentDraft {
                codec,
                logs: (first, last),
                replaces: Vec::new(),
                users: plan.segment_users(),
                sessions: plan.segment_sessions(),
                tombstones: plan.tombstones(),
            };
            Some(self.write_segment(draft, &rows, base.meta.next_segment)?)
        };
        let listed = segment.as_ref().map(|(id, _)| *id);
        self.publish(|catalog| {
            publish::apply(catalog, before, &plan, segment, last, fresh.as_ref())
        })?;
        listed.map_or(Ok(()), |id| sync_late(bundle, id))
    }

    fn remove_logs(&self, last: LogId) {
        let bundle = &self.follower.bundle;
        let Ok(logs) = bundle.logs() else { return };
        let applied = logs.into_iter().filter(|log| *log <= last);
        self.remove_unlisted(applied.map(|log| bundle.log(log)));
    }
}
