//! Checks the files of a database that cannot be opened, each by itself: as much as can be told without one that leads
//! from file to file.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::ids::LogId;

use super::bundle::{Bundle, LockName, is_missing, lost};
use super::catalog::{Access, CatalogReader, CatalogView, ManifestRow};
use super::log::LogFile;
use super::log::format::HEADER_BYTES;
use super::segment::Segment;
use super::state::StateFile;
use super::trust::{COPY_CHUNK_BYTES, COPY_PATH, checked_copy};
use super::verify::Verification;
use super::vfs::{OpenMode, Vfs};
use super::view::Follower;

/// What the catalog says of the other files.
struct Listed {
    database: [u8; 16],
    manifest: Vec<ManifestRow>,
    log_applied: LogId,
}

/// Checks `FORMAT`, the locks, the catalog, every segment and every log by itself. What is about several of them, such
/// as an index that lists a row, is not looked at. Writes nothing and takes no lock: other processes that change the
/// database meanwhile may make a file seem damaged.
pub fn inspect(vfs: Arc<dyn Vfs>, path: &Path) -> Verification {
    let bundle = Bundle::new(vfs, path, true);
    let mut found = Verification::default();
    let format = found.note(bundle.read_format());
    for name in LockName::ALL {
        let path = bundle.lock(name);
        let there = bundle.vfs.identity(&path);
        found.note(there.map_err(|error| lost("look for lock", &path, error)));
    }
    found.note(check_state(&bundle));
    let listed = found.note(read_catalog(&bundle));
    let database = format.or(listed.as_ref().map(|listed| listed.database));
    let Some(database) = database else { return found };
    if listed.as_ref().is_some_and(|listed| listed.database != database) {
        found.add(Error::corrupt("catalog of another database").in_file(bundle.catalog()));
    }
    let access = Access { cache_bytes: COPY_CHUNK_BYTES, busy_timeout: Duration::ZERO };
    let follower = Follower { bundle, database, access, text_cache: None };
    check_segments(&follower, listed.as_ref(), &mut found);
    let applied = listed.map_or(LogId::new(0), |listed| listed.log_applied);
    if let Some(logs) = found.note(follower.bundle.logs()) {
        let logs: Vec<_> = logs.into_iter().filter(|log| *log > applied).collect();
        check_logs(&follower, &logs, applied, &mut found);
    }
    found
}

fn check_state(bundle: &Bundle) -> Result<()> {
    let path = bundle.state();
    let file = bundle.vfs.open(&path, OpenMode::Read);
    let file = file.map_err(|error| lost("open locks/state", &path, error))?;
    // After a power cut no slot needs to hold.
    StateFile::new(file).read().map(drop)
}

fn read_catalog(bundle: &Bundle) -> Result<Listed> {
    let copy = checked_copy(bundle)?;
    let access = Access { cache_bytes: COPY_CHUNK_BYTES, busy_timeout: Duration::ZERO };
    let read = || {
        let read = CatalogReader::open(&copy, Path::new(COPY_PATH), access)?.begin()?;
        let (database, log_applied) = (read.meta()?.database, read.publish_state()?.1);
        Ok(Listed { database, manifest: read.manifest()?, log_applied })
    };
    read().map_err(|error: Error| error.in_file(bundle.catalog()))
}

/// The segments that the catalog lists; when it cannot be read, all that are there.
fn check_segments(follower: &Follower, listed: Option<&Listed>, found: &mut Verification) {
    let opened: Vec<_> = match listed {
        Some(listed) => listed.manifest.iter().map(|row| follower.open_segment(row)).collect(),
        None => {
            let present = found.note(follower.bundle.segments()).unwrap_or_default().0;
            present
                .into_iter()
                .map(|id| open_present(follower, &follower.bundle.segment(id)))
                .collect()
        }
    };
    for segment in opened {
        let segment = segment.map_err(|error| match is_missing(&error) {
            true => Error::corrupt("a file that the database lists is missing").because(error),
            false => error,
        });
        let Some(segment) = found.note(segment) else { continue };
        found.rows += u64::from(segment.rows());
        segment.verify(true).into_iter().for_each(|problem| found.add(problem.error));
    }
}

fn open_present(follower: &Follower, path: &Path) -> Result<Segment> {
    let vfs = &follower.bundle.vfs;
    let io = |error| Error::io("map segment", error).in_file(path);
    let bytes = vfs.open(path, OpenMode::Read).and_then(|file| file.len()).map_err(io)?;
    Segment::open(vfs.map(path, bytes).map_err(io)?, path, follower.database, None)
}

/// Every log up to the end that a later one names, the last as far as it says itself.
fn check_logs(follower: &Follower, ids: &[LogId], applied: LogId, found: &mut Verification) {
    let mut logs: Vec<LogFile> = Vec::new();
    for id in ids {
        let log = LogFile::open(&follower.bundle, *id, OpenMode::Read, &follower.database);
        if let Some(log) = found.note(log) {
            let previous = log.header.previous;
            if previous > applied && !ids.contains(&previous) {
                let lost = "the log before this one is missing";
                found.add(Error::corrupt(lost).in_file(log.path()).of(previous.get()));
            }
            logs.push(log);
        }
    }
    if ids.is_empty() {
        found.add(Error::corrupt("no log").in_file(follower.bundle.log_dir()));
    }
    for (at, log) in logs.iter().enumerate() {
        let (start, seq) = (HEADER_BYTES as u64, log.header.first_seq.saturating_sub(1));
        let next = logs[at + 1..].iter().rev().find(|next| next.header.previous == log.id());
        let end = match next {
            Some(next) => Ok(next.header.previous_end),
            None => log.marked_end(),
        };
        let batches = end.and_then(|end| log.read_to(start, end, seq));
        if let Some(batches) = found.note(batches) {
            found.rows += batches.iter().map(|batch| batch.ops.len() as u64).sum::<u64>();
        }
        found.bytes += log.len().unwrap_or(0);
    }
}
