//! Removes leftovers: files that a crash left and nothing lists.
//!
//! Whoever creates segments holds the files lock shared until they are listed; cleaning takes it exclusively, and only
//! then reads the manifest, so that what it does not find there belongs to nobody.

use std::collections::HashSet;

use crate::error::Result;
use crate::ids::SegmentId;

use super::bundle::LockName;
use super::catalog::CatalogView;
use super::lock;
use super::store::Shared;
use super::vfs::{LockKind, PlantedBug};

impl Shared {
    /// Cleans when nobody is creating files. An error only leaves leftovers for the next time.
    pub fn clean(&self) {
        let _ = self.try_clean();
    }

    fn try_clean(&self) -> Result<()> {
        let bundle = &self.follower.bundle;
        let planted = bundle.vfs.planted(PlantedBug::CleanWithoutLock);
        let lock = lock::try_acquire(bundle, LockName::Files, LockKind::Exclusive)?;
        if lock.is_none() && !planted {
            return Ok(());
        }
        let (whole, unfinished) = bundle.segments()?;
        let read = self.follower.open_catalog()?.begin()?;
        let (_, log_applied) = read.publish_state()?;
        let listed: HashSet<SegmentId> =
            read.manifest()?.into_iter().map(|row| row.segment).collect();
        self.remove_unlisted(unfinished.into_iter().map(|id| bundle.segment_tmp(id)));
        let unlisted = whole.into_iter().filter(|id| !listed.contains(id));
        self.remove_unlisted(unlisted.map(|id| bundle.segment(id)));
        let applied = bundle.logs()?.into_iter().filter(|log| *log <= log_applied);
        self.remove_unlisted(applied.map(|log| bundle.log(log)));
        Ok(())
    }
}
