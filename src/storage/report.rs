//! What a store says of itself: sizes and counts.

use std::path::Path;

use crate::error::{Error, Result};

use super::bundle::Bundle;
use super::catalog::CatalogView;
use super::segment::{Counts, SegmentParts};
use super::store::Store;
use super::vfs::OpenMode;

/// Sizes and counts of a database, read in one snapshot. Files come and go meanwhile: sizes are of the files found.
#[derive(Clone, Debug, Default)]
pub struct StoreStats {
    /// Live rows of all users.
    pub counts: Counts,
    /// Users with at least one live row.
    pub users: u64,
    /// Rows that are ended but still lie in segments.
    pub dead_rows: u64,
    /// Bytes of the log files.
    pub log_bytes: u64,
    /// Bytes of the segment files of the manifest.
    pub segment_bytes: u64,
    /// The same by what they hold.
    pub segment_parts: SegmentParts,
    /// Bytes of the catalog file.
    pub catalog_bytes: u64,
    /// Bytes of every other file of the bundle.
    pub other_bytes: u64,
    /// Files of the bundle.
    pub files: u64,
    /// Log files.
    pub logs: u64,
    /// Segments of the manifest.
    pub segments: u64,
}

impl Store {
    /// Sizes and counts. Cost grows with the number of users and files, not with the rows.
    ///
    /// # Errors
    /// As [`Store::snapshot`].
    pub fn stats(&self) -> Result<StoreStats> {
        let snapshot = self.snapshot()?;
        let bundle = &self.shared().follower.bundle;
        let base = &snapshot.view().base;
        let mut stats = StoreStats {
            counts: snapshot.read().statistics_total()?,
            users: snapshot.users()?.len() as u64,
            dead_rows: base.segments.iter().map(|view| u64::from(view.row.dead_rows)).sum(),
            segment_bytes: base.segments.iter().map(|view| view.row.bytes).sum(),
            segment_parts: base.segments.iter().map(|view| view.segment.parts()).sum(),
            segments: base.segments.len() as u64,
            catalog_bytes: bytes(bundle, &bundle.catalog())?,
            ..StoreStats::default()
        };
        for (_, user) in snapshot.view().pending.users() {
            stats.counts.add(&user.counts);
        }
        for log in bundle.logs()? {
            stats.log_bytes += bytes(bundle, &bundle.log(log))?;
            stats.logs += 1;
        }
        let (whole, unfinished) = bundle.segments()?;
        let mut all_segments = 0;
        for path in whole
            .iter()
            .map(|id| bundle.segment(*id))
            .chain(unfinished.iter().map(|id| bundle.segment_tmp(*id)))
        {
            all_segments += bytes(bundle, &path)?;
        }
        let mut small = Vec::new();
        for name in ["FORMAT", "TRUST"] {
            small.push(bundle.root().join(name));
        }
        for name in bundle.locks()? {
            small.push(bundle.root().join("locks").join(name));
        }
        for path in &small {
            stats.other_bytes += bytes(bundle, path)?;
        }
        stats.other_bytes += all_segments.saturating_sub(stats.segment_bytes);
        let segments = (whole.len() + unfinished.len()) as u64;
        stats.files = segments + stats.logs + small.len() as u64 + 1;
        Ok(stats)
    }
}

/// Bytes of a file; 0 when it is gone by now.
fn bytes(bundle: &Bundle, path: &Path) -> Result<u64> {
    let opened = bundle.vfs.open(path, OpenMode::Read).and_then(|file| file.len());
    match opened {
        Ok(length) => Ok(length),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(0),
        Err(error) => Err(Error::io("length of file", error).in_file(path)),
    }
}
