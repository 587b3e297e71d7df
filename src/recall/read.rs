//! Reads by id.

use crate::error::{Error, Result};
use crate::ids::EpisodeId;
use crate::model::Episode;
use crate::storage::Snapshot;

/// The latest version of episode `id` of `user`.
///
/// # Errors
/// `NotFound` when there is none, or it is another user's, deleted, or expired before `now`.
pub(crate) fn get(snapshot: &Snapshot, user: &[u8], id: EpisodeId, now: i64) -> Result<Episode> {
    snapshot
        .get(id)?
        .filter(|record| *record.user == *user && record.expires > now)
        .map_or_else(|| Err(not_found(id)), |record| Episode::from_record(&record))
}

/// All versions of episode `id` of `user`, oldest first.
///
/// # Errors
/// As [`get`].
pub(crate) fn history(
    snapshot: &Snapshot,
    user: &[u8],
    id: EpisodeId,
    now: i64,
) -> Result<Vec<Episode>> {
    let versions = snapshot.versions(id)?;
    match versions.last() {
        Some(latest) if *latest.user == *user && latest.expires > now => {
            versions.iter().map(|version| Episode::from_record(version)).collect()
        }
        _ => Err(not_found(id)),
    }
}

fn not_found(id: EpisodeId) -> Error {
    Error::not_found("episode").of(id.get())
}
