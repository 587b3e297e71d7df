//! Writes a segment file whole, for a checkpoint or a rewrite.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::ids::{LogId, SegmentId, SessionNumber, UserNumber};
use crate::model::{VectorSpace, unpack_vector};
use crate::options::{CLUSTERED_ROWS_MIN, CODEC_SAMPLE_MIN};
use crate::simd::codec::Codec;

use super::bundle::Bundle;
use super::segment::{RowSource, SegmentInput, SegmentSummary, Tombstone, write_segment};
use super::store::Shared;
use super::vfs::{OpenMode, PlantedBug, VfsFile};

/// What a new segment is made of, but its number and its rows.
pub struct SegmentDraft<'a> {
    pub codec: Option<&'a Codec>,
    pub logs: (LogId, LogId),
    pub replaces: Vec<SegmentId>,
    pub users: Vec<(UserNumber, Arc<[u8]>)>,
    pub sessions: Vec<(SessionNumber, UserNumber, String)>,
    pub tombstones: Vec<Tombstone>,
}

impl Shared {
    /// Writes a segment: file written, synced, sealed, renamed, directory synced. Its number is above `next` and above
    /// every number present. The caller holds the files lock until the manifest lists it.
    ///
    /// # Errors
    /// `Io`; `Corrupt` when a row cannot be read. Nothing is left but perhaps a leftover.
    pub fn write_segment(
        &self,
        draft: SegmentDraft<'_>,
        rows: &dyn RowSource,
        next: u64,
    ) -> Result<(SegmentId, SegmentSummary)> {
        let bundle = &self.follower.bundle;
        let (id, file) = new_segment(bundle, next)?;
        let input = SegmentInput {
            id,
            database: self.follower.database,
            space: &self.space,
            codec: draft.codec,
            clustered_from: CLUSTERED_ROWS_MIN,
            logs: draft.logs,
            replaces: draft.replaces,
            users: draft.users,
            sessions: draft.sessions,
            tombstones: draft.tombstones,
        };
        let written = write_segment(&*file, &input, rows)
            .and_then(|summary| seal(bundle, id, &file).map(|()| summary));
        if written.is_err() {
            // Unlisted either way; what cannot be removed here is a leftover.
            let _ = bundle.vfs.remove_file(&bundle.segment_tmp(id));
        }
        written.map(|summary| (id, summary))
    }
}

/// Makes the file durable under its name. A crash before the rename leaves a temporary file.
fn seal(bundle: &Bundle, id: SegmentId, file: &Arc<dyn VfsFile>) -> Result<()> {
    let (vfs, path) = (&bundle.vfs, bundle.segment(id));
    let io = |error| Error::io("write segment", error).in_file(&path);
    let late = vfs.planted(PlantedBug::PublishBeforeSync);
    if !vfs.planted(PlantedBug::NoSegmentSync) && !late {
        file.sync_data().map_err(io)?;
    }
    file.set_read_only().map_err(io)?;
    vfs.rename(&bundle.segment_tmp(id), &path).map_err(io)?;
    if late {
        return Ok(());
    }
    vfs.sync_dir(&bundle.segment_dir()).map_err(io)
}

/// A planted bug: makes a segment durable after it was listed.
pub fn sync_late(bundle: &Bundle, id: SegmentId) -> Result<()> {
    if !bundle.vfs.planted(PlantedBug::PublishBeforeSync) {
        return Ok(());
    }
    let io = |error| Error::io("sync segment", error).in_file(bundle.segment(id));
    let file = bundle.vfs.open(&bundle.segment(id), OpenMode::Read).map_err(io)?;
    file.sync_data().map_err(io)?;
    bundle.vfs.sync_dir(&bundle.segment_dir()).map_err(io)
}

/// A new temporary file under a number that no segment has or had.
fn new_segment(bundle: &Bundle, next: u64) -> Result<(SegmentId, Arc<dyn VfsFile>)> {
    loop {
        let (whole, unfinished) = bundle.segments()?;
        let highest = whole.iter().chain(&unfinished).map(|id| id.get()).max().unwrap_or(0);
        let id = SegmentId::new(next.max(highest + 1));
        let path = bundle.segment_tmp(id);
        let file = match bundle.vfs.open(&path, OpenMode::CreateNew) {
            Ok(file) => file,
            // A rewrite beside this checkpoint, or the other way round, took the number.
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => continue,
            Err(error) => return Err(Error::io("begin segment", error).in_file(path)),
        };
        // It may have taken the number after the listing and be through with it: its file has its name by now.
        let (whole, _) = bundle.segments()?;
        if whole.iter().all(|other| *other < id) {
            return Ok((id, file));
        }
        let removed = bundle.vfs.remove_file(&path);
        removed.map_err(|error| Error::io("begin segment again", error).in_file(path))?;
    }
}

/// The codec of the vector space, once [`CODEC_SAMPLE_MIN`] vectors are at hand to fix its mean for good.
///
/// # Errors
/// What `rows` returns.
pub fn learn_codec(seed: u64, rows: &dyn RowSource, space: &VectorSpace) -> Result<Option<Codec>> {
    let mut sum = vec![0.0_f64; space.dimension as usize];
    let (mut bytes, mut values, mut count) = (Vec::new(), Vec::new(), 0_usize);
    for row in 0..rows.len() {
        if !rows.head(row)?.has_vector {
            continue;
        }
        bytes.clear();
        rows.vector(row, &mut bytes)?;
        unpack_vector(&bytes, space.element, &mut values);
        for (sum, value) in sum.iter_mut().zip(&values) {
            *sum += f64::from(*value);
        }
        count += 1;
    }
    if count < CODEC_SAMPLE_MIN {
        return Ok(None);
    }
    let mean = sum.iter().map(|sum| (sum / count as f64) as f32).collect();
    Ok(Some(Codec::new(mean, seed)))
}
