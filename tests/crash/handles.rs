//! Several handles in situations that no script reaches: a group of batches whose sync failed, a writer that dies
//! between a failed sync and telling of it, a read-only handle that is open first after a power cut.

use std::path::Path;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use loomdb::internals::options::{Durability, StorageOptions};
use loomdb::internals::storage::Store;
use loomdb::internals::storage::vfs::PlantedBug;
use loomdb::internals::storage::vfs::sim::{Fault, FaultKind, SimVfs, Task};
use loomdb::{Error, ErrorKind};

use crate::check::{Verdict, contents, told};
use crate::faults::{Candidates, go_on};
use crate::images::one_more;
use crate::model::{Model, Row, Write, commit};
use crate::script::{PATH, Recording, open, open_with, options, space};
use crate::workloads;

/// Between two looks at the queue.
const LOOK_AGAIN: Duration = Duration::from_millis(1);

fn started() -> (SimVfs, Model) {
    let vfs = SimVfs::new();
    let first = [Write::Insert(Row::new(0, 1, 60))];
    commit(&open(&vfs).expect("creation"), &first).expect("first batch");
    (vfs, Model::new().with(&first))
}

fn cut_everywhere(vfs: &SimVfs, candidates: &Candidates) -> Verdict {
    let mut replay = vfs.replay();
    replay.advance_to(vfs.op_count());
    go_on(&replay.kill_image(), candidates.clone(), true).map_err(|why| format!("kill: {why}"))?;
    for seed in 0..8 {
        go_on(&replay.crash_image(seed), candidates.clone(), false)
            .map_err(|why| format!("power cut {seed}: {why}"))?;
    }
    Ok(())
}

/// Two batches are appended in one piece and their sync fails; another process then commits a batch that is as long as
/// each of them, whichever came first. Neither of the two may come back.
pub fn failed_group(bug: Option<PlantedBug>) -> Verdict {
    let (vfs, model) = started();
    let write = [Write::Insert(Row::new(0, 4, 60))];
    bug.inspect(|bug| vfs.plant(*bug));
    let other = told("open another process", open(&vfs.new_process()))?;
    let store = told("open", open(&vfs))?;
    vfs.inject(Fault { at_call: vfs.call_count(), kind: FaultKind::SyncEio, sticky: false });
    let failed = std::thread::scope(|scope| {
        let (working, at_work) = mpsc::channel();
        let (go, wait) = mpsc::channel::<()>();
        let leader = scope.spawn({
            let store = store.clone();
            move || {
                store.commit(move |_| {
                    let _ = working.send(());
                    let _ = wait.recv();
                    // Writes nothing, so that the group behind it makes the first sync.
                    Err::<(), _>(Error::invalid("nothing to write"))
                })
            }
        });
        at_work.recv().expect("the leader runs its work");
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let (store, write) = (store.clone(), write.clone());
                scope.spawn(move || commit(&store, &write))
            })
            .collect();
        while store.commits_waiting() < threads.len() {
            std::thread::sleep(LOOK_AGAIN);
        }
        let _ = go.send(());
        let _ = leader.join().expect("no panic");
        threads.into_iter().filter_map(|thread| thread.join().expect("no panic").err()).count()
    });
    if failed != 2 {
        return Err(format!("{failed} of 2 batches failed with their sync"));
    }
    told("commit by the other process", commit(&other, &write))?;
    let candidates = Candidates::one(2, model.with(&write));
    cut_everywhere(&vfs, &candidates)?;
    let poisoned = commit(&store, &write).map_err(|error| error.kind());
    if poisoned != Err(ErrorKind::Poisoned) {
        return Err(format!("a handle writes on after a failed sync: {poisoned:?}"));
    }
    drop(other);
    let other = told("open again", open(&vfs.new_process()))?;
    candidates.clone().settle(&told("snapshot", other.snapshot())?)
}

/// Batches are visible only, their sync fails, and the writer dies at `call` of its calls, perhaps before it could tell
/// anyone. The batch of a writer that was open all the time must not stand on pages that were never written. `false`:
/// the writer lived to its end.
pub fn killed_after_a_failed_sync(call: u64) -> Verdict<bool> {
    let (vfs, model) = started();
    let other = told("open another process", open(&vfs.new_process()))?;
    vfs.inject(Fault { at_call: vfs.call_count(), kind: FaultKind::SyncEio, sticky: false });
    let visible = [Write::Insert(Row::new(0, 2, 60)), Write::Insert(Row::new(1, 3, 700))];
    let task = |vfs: SimVfs| {
        let Ok(store) = open_with(&vfs, Durability::Relaxed) else { return };
        let _ = commit(&store, &visible);
        let _ = store.flush();
    };
    let run = vfs.interleaving(call).kill_at(0, call).run(vec![Box::new(task) as Task<'_, ()>]);
    vfs.clear_faults();
    let mut candidates = Candidates::one(1, model);
    candidates.may_add(&visible);
    candidates.settle(&told("snapshot", other.snapshot())?)?;
    let more = [Write::Insert(Row::new(2, 4, 60))];
    told("commit by the other process", commit(&other, &more))?;
    candidates.add(&more);
    candidates.settle(&told("snapshot", other.snapshot())?)?;
    cut_everywhere(&vfs, &candidates)?;
    Ok(run.calls[0] >= call)
}

/// A read-only handle is open first after a power cut, a writer second: both show every acknowledged batch, and what
/// the first one showed stays.
pub fn read_only_first() -> Verdict {
    let recording = Recording::new(&workloads::ingest());
    let mut replay = recording.vfs.replay();
    for at in recording.from..=recording.vfs.op_count() {
        replay.advance_to(at);
        for seed in 0..4 {
            let image = replay.crash_image(seed);
            read_only_first_on(&image, &recording, at)
                .map_err(|why| format!("power cut {seed} after operation {at}: {why}"))?;
        }
    }
    Ok(())
}

fn read_only_first_on(image: &SimVfs, recording: &Recording, at: usize) -> Verdict {
    let read_only = StorageOptions { read_only: true, ..options(Durability::Synced) };
    let vfs = Arc::new(image.new_process());
    let reader = told("read-only open", Store::open(vfs, Path::new(PATH), read_only, space()))?;
    let snapshot = told("snapshot of the reader", reader.snapshot())?;
    let seen = snapshot.seq().get() as usize;
    if !recording.allowed(at, true).contains(&seen) {
        return Err(format!("the reader shows {seen} batches"));
    }
    contents(&snapshot, &recording.models[seen])?;
    let writer = told("open", open(image))?;
    let mut candidates = Candidates::one(seen as u64, recording.models[seen].clone());
    candidates.settle(&told("snapshot of the writer", writer.snapshot())?)?;
    candidates.settle(&told("snapshot of the reader", reader.snapshot())?)?;
    let (more, _) = one_more(&recording.models[seen]);
    told("commit", commit(&writer, &more))?;
    candidates.add(&more);
    candidates.settle(&told("snapshot of the writer", writer.snapshot())?)?;
    candidates.settle(&told("snapshot of the reader", reader.snapshot())?)
}
