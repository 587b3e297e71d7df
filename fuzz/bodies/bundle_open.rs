//! A bundle of arbitrary files: whatever opens is read to the end, written to, checkpointed, merged and opened again.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use loomdb::internals::storage::vfs::Vfs;
use loomdb::{Db, Embedding, Maintenance, OpenOptions, Query, Result, TimelineOptions, Turn};

use super::harness::embedder::{ExactEmbedder, vector};
use super::image;

/// Users and episodes read, at most: this bounds time.
const READS_MAX: usize = 64;

/// The bytes are an image, see [`image`].
pub fn run(data: &[u8]) {
    let vfs = image::disk(data);
    // Read-only first, while nothing has been written: it may not repair.
    let before = open(&vfs, true).map(|db| read(&db));
    let Ok(db) = open(&vfs, false) else { return };
    let _ = db.verify();
    let read_before = before.and_then(|result| result);
    let read_after = read(&db);
    if let (Ok(before), Ok(after)) = (&read_before, &read_after) {
        assert!(before == after, "opening for writing changes no answer");
    }
    let is_whole = db.verify().is_ok_and(|found| found.is_whole());
    let wrote = write(&db);
    drop(db);
    let again = open(&vfs, false).and_then(|db| read(&db));
    if is_whole && read_after.is_ok() && wrote.is_ok() {
        again.expect("what was whole stays whole");
    }
}

/// Opens the bundle of [`image::disk`].
///
/// # Errors
/// Those of [`Db::open_on`].
pub fn open(vfs: &Arc<dyn Vfs>, read_only: bool) -> Result<Db> {
    let options = OpenOptions::new()
        .create(false)
        .read_only(read_only)
        .embedding(Embedding::Custom(Arc::new(ExactEmbedder)))
        .busy_timeout(Duration::from_millis(50))
        .catalog_cache_bytes(1 << 20)
        .maintenance(Maintenance::Manual);
    Db::open_on(vfs.clone(), Path::new(image::ROOT), options)
}

/// What the database answers, as far as it does.
fn read(db: &Db) -> Result<Vec<(Vec<u8>, Vec<String>)>> {
    db.stats()?;
    let mut all = Vec::new();
    for name in db.users()?.into_iter().take(READS_MAX) {
        let memory = db.user(&name);
        memory.count()?;
        let page = memory.timeline(TimelineOptions::new().limit(READS_MAX))?;
        for episode in &page.episodes {
            assert!(episode.user == name, "an episode of another user");
            memory.get(episode.id)?;
            memory.history(episode.id)?;
            if let Some(session) = &episode.session {
                memory.timeline(TimelineOptions::new().session(session.as_str()).limit(4))?;
            }
        }
        for exact in [false, true] {
            let query = Query::vector(vector(8)).exact(exact).top_k(READS_MAX);
            for hit in memory.search(query)?.hits {
                assert!(hit.episode.user == name, "a hit of another user");
            }
        }
        all.push((name, page.episodes.into_iter().map(|episode| episode.text).collect()));
    }
    Ok(all)
}

fn write(db: &Db) -> Result<()> {
    let memory = db.user("u");
    let added = memory.add(Turn::new("fuzz").key("k").session("s"))?;
    assert_eq!(memory.get(added.id)?.text, "fuzz");
    db.checkpoint()?;
    assert_eq!(memory.get(added.id)?.text, "fuzz");
    db.merge()?;
    memory.delete(added.id)?;
    assert!(memory.get(added.id).is_err());
    db.checkpoint().map(drop)
}
