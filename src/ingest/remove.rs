//! Deletes episodes: a tombstone each, written as one batch.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::ids::EpisodeId;
use crate::storage::Store;

/// Ends episode `id` of `user`.
pub(crate) fn delete(store: &Store, user: &Arc<[u8]>, id: EpisodeId) -> Result<()> {
    let user = Arc::clone(user);
    store.commit(move |transaction| {
        let old = transaction
            .get(id)?
            .filter(|old| old.user == user)
            .ok_or_else(|| Error::not_found("episode").of(id.get()))?;
        transaction.delete(&old)
    })?;
    Ok(())
}

/// Ends every live episode of a session of `user`, all or none. Returns how many there were.
pub(crate) fn delete_session(store: &Store, user: &Arc<[u8]>, session: &str) -> Result<u64> {
    let user = Arc::clone(user);
    let session = session.to_owned();
    let (count, _) = store.commit(move |transaction| {
        let ids = transaction.session(&user, &session)?;
        let mut count = 0;
        for id in ids {
            if let Some(old) = transaction.get(id)? {
                transaction.delete(&old)?;
                count += 1;
            }
        }
        Ok(count)
    })?;
    Ok(count)
}
