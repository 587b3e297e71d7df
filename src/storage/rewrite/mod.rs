//! Rewrites segments into one: the mechanism of merging by size here, and of everything that moves rows later.
//!
//! Rows, assignments and codes stay as they are; rows of deleted episodes and tombstones that end nothing any more are
//! left out. Protocol (design 2.3): under the rewrite lock the new segment is written from a snapshot; then, under the
//! checkpoint lock, one catalog transaction replaces its inputs, after a check that they are still listed. A crash
//! before leaves a leftover, after it the inputs are leftovers.

pub mod policy;
mod rows;
mod terms;

use crate::error::{Error, Result};
use crate::ids::SegmentId;
use crate::simd::codec::Codec;

use super::bundle::LockName;
use super::catalog::{CatalogTxn, CatalogView, ManifestRow, Meta};
use super::dead::DeadRows;
use super::lock;
use super::segment::{Segment, SegmentSummary};
use super::segment_file::{SegmentDraft, learn_codec, sync_late};
use super::snapshot::Snapshot;
use super::store::Shared;
use super::vfs::LockKind;

use rows::MergedRows;

impl Shared {
    /// See [`super::Store::merge`].
    pub fn merge(&self) -> Result<usize> {
        let mut replaced = 0;
        loop {
            self.check_usable()?;
            self.check_place()?;
            let bundle = &self.follower.bundle;
            let rewrite = lock::try_acquire(bundle, LockName::Rewrite, LockKind::Exclusive)?;
            if rewrite.is_none() {
                return Ok(replaced);
            }
            let before = self.snapshot()?;
            let rows: Vec<&ManifestRow> =
                before.view().base.segments.iter().map(|view| &view.row).collect();
            let Some(inputs) = policy::choose(&rows) else { return Ok(replaced) };
            if !self.rewrite(&before, &inputs)? {
                return Ok(replaced);
            }
            replaced += inputs.len();
        }
    }

    /// Writes the live rows and history of `inputs` into one segment and lists it in their place. The caller holds the
    /// rewrite lock. `false`: another process replaced an input first.
    ///
    /// # Errors
    /// `Locked` when the checkpoint lock is held for longer than the busy timeout; `Corrupt`; `Io`.
    pub fn rewrite(&self, before: &Snapshot, inputs: &[SegmentId]) -> Result<bool> {
        let bundle = &self.follower.bundle;
        let timeout = self.options.busy_timeout;
        let files = lock::acquire(bundle, LockName::Files, LockKind::Shared, timeout)?;
        let base = &before.view().base;
        let merged = MergedRows::new(before, inputs)?;
        let learned = match base.codec {
            Some(_) => None,
            None => learn_codec(base.meta.codec_seed, &merged, &self.space)?,
        };
        let codec = base.codec.as_deref().or(learned.as_ref());
        let output = if merged.is_empty() {
            None
        } else {
            let draft = SegmentDraft {
                codec,
                logs: merged.logs(),
                replaces: inputs.to_vec(),
                users: merged.users()?,
                sessions: merged.sessions()?,
                tombstones: merged.tombstones().to_vec(),
            };
            let (id, summary) = self.write_segment(draft, &merged, base.meta.next_segment)?;
            let row = written_row(id, &summary);
            Some((self.follower.open_segment(&row)?, summary))
        };
        let kind = LockKind::Exclusive;
        let checkpoint = lock::acquire(bundle, LockName::Checkpoint, kind, timeout)?;
        let published = self.publish(|catalog| {
            replace(catalog, &merged, inputs, output.as_ref(), learned.as_ref())
        })?;
        if let Some((segment, _)) = &output {
            sync_late(bundle, segment.id())?;
        }
        drop(checkpoint);
        if published {
            self.remove_unlisted(inputs.iter().map(|input| bundle.segment(*input)));
        } else if let Some((segment, _)) = &output {
            self.remove_unlisted([bundle.segment(segment.id())]);
        }
        drop(files);
        Ok(published)
    }
}

fn written_row(segment: SegmentId, summary: &SegmentSummary) -> ManifestRow {
    ManifestRow {
        segment,
        bytes: summary.bytes,
        footer_crc: summary.footer_crc,
        rows: summary.rows,
        dead_rows: 0,
        deleted_rows: 0,
        dead_version: 0,
        ids: summary.ids,
    }
}

/// The catalog transaction of a rewrite. What was ended in the inputs since the snapshot is ended in the output.
fn replace(
    catalog: &mut CatalogTxn<'_>,
    merged: &MergedRows<'_>,
    inputs: &[SegmentId],
    output: Option<&(Segment, SegmentSummary)>,
    learned: Option<&Codec>,
) -> Result<bool> {
    let mut dead = Vec::new();
    let mut deleted_rows = 0;
    for input in inputs {
        if catalog.manifest_row(*input)?.is_none() {
            return Ok(false);
        }
        for row in catalog.dead(*input)? {
            let Some((id, version)) = merged.name_of(*input, row)? else { continue };
            let Some((segment, _)) = output else { continue };
            let Some(row) = segment.row_of(id, version)? else { continue };
            dead.push(row);
            deleted_rows += u32::from(catalog.tombstone(id)? == Some((version, false)));
        }
    }
    for input in inputs {
        catalog.manifest_remove(*input)?;
        catalog.dead_remove(*input)?;
    }
    for id in merged.forgotten() {
        catalog.tombstone_remove(*id)?;
    }
    let meta = catalog.meta()?;
    let mut next_segment = meta.next_segment;
    if let Some((segment, summary)) = output {
        let dead = DeadRows::new(summary.rows, &dead);
        if !dead.is_empty() {
            catalog.dead_set(segment.id(), &dead.rows())?;
        }
        let row = written_row(segment.id(), summary);
        catalog.manifest_put(&ManifestRow { dead_rows: dead.len(), deleted_rows, ..row })?;
        next_segment = next_segment.max(segment.id().get() + 1);
    }
    if learned.is_some() && meta.codec_mean.is_some() {
        return Err(Error::locked("a checkpoint fixed the codec during this rewrite"));
    }
    let codec_mean = learned.map(|codec| codec.mean().to_vec()).or(meta.codec_mean.clone());
    catalog.set_meta(&Meta {
        generation: meta.generation + 1,
        next_segment,
        codec_mean,
        ..meta
    })?;
    Ok(true)
}
