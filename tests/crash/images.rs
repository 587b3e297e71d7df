//! Crash images: a power cut or a kill at every operation of every workload, and again at every operation of the
//! recovery after it.

use std::ops::RangeInclusive;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use loomdb::internals::storage::Store;
use loomdb::internals::storage::vfs::sim::{Replay, SimVfs};

use crate::check::{Verdict, contents, told};
use crate::model::{Model, Row, Write, commit};
use crate::script::{Recording, open};

/// Places of a workload that one thread takes at a time.
const STRIDE: usize = 4;
/// Failures that are kept in words.
const TOLD_MAX: usize = 20;

/// What many images came to.
#[derive(Default)]
pub struct Tally {
    pub images: AtomicU64,
    pub failures: AtomicU64,
    told: Mutex<Vec<String>>,
}

impl Tally {
    /// Judges one image; a panic is a failure.
    pub fn judge(&self, name: &dyn Fn() -> String, image: impl FnOnce() -> Verdict) {
        self.images.fetch_add(1, Ordering::Relaxed);
        let verdict = catch_unwind(AssertUnwindSafe(image))
            .unwrap_or_else(|_| Err("panicked, see above".to_owned()));
        if let Err(why) = verdict {
            self.failures.fetch_add(1, Ordering::Relaxed);
            let mut told = self.told.lock().expect("no panic holds it");
            if told.len() < TOLD_MAX {
                told.push(format!("{}: {why}", name()));
            }
        }
    }

    /// Images and failures.
    pub fn counts(&self) -> (u64, u64) {
        (self.images.load(Ordering::Relaxed), self.failures.load(Ordering::Relaxed))
    }

    /// The first failures in words.
    pub fn told(&self) -> String {
        self.told.lock().expect("no panic holds it").join("\n")
    }
}

/// How much of a workload is crashed.
#[derive(Clone, Copy)]
pub struct Plan {
    /// Seeds at each place.
    pub seeds: u64,
    /// One image in so many is crashed again while it recovers; 0 for none.
    pub again: u64,
    /// Seeds at each place of such a recovery.
    pub again_seeds: u64,
}

/// Crashes a recorded workload at every operation.
pub fn crash_everywhere(recording: &Recording, name: &str, plan: Plan, tally: &Tally) {
    let last = recording.vfs.op_count();
    let next = AtomicUsize::new(recording.from);
    let threads = std::thread::available_parallelism().map_or(2, usize::from).min(8);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let mut replay = recording.vfs.replay();
                loop {
                    let start = next.fetch_add(STRIDE, Ordering::Relaxed);
                    if start > last {
                        return;
                    }
                    for at in start..(start + STRIDE).min(last + 1) {
                        replay.advance_to(at);
                        crash_here(&replay, recording, name, plan, tally);
                    }
                }
            });
        }
    });
}

/// Crashes a recorded workload where the cursor is.
fn crash_here(replay: &Replay, recording: &Recording, name: &str, plan: Plan, tally: &Tally) {
    let (at, models) = (replay.position(), &recording.models);
    let what = |how: &str| {
        let op = recording.vfs.operation(at.max(1) - 1).unwrap_or_default();
        format!("{name}, {how} after operation {at} ({op})")
    };
    let killed = recording.allowed(at, false);
    tally.judge(&|| what("kill"), || check_image(&replay.kill_image(), killed, models, true));
    if replay.pending() == 0 {
        return;
    }
    let allowed = recording.allowed(at, true);
    for seed in 0..plan.seeds {
        let deep = (at as u64 + seed).is_multiple_of(4);
        tally.judge(&|| what(&format!("power cut {seed}")), || {
            check_image(&replay.crash_image(seed), allowed.clone(), models, deep)
        });
        let number = at as u64 * plan.seeds + seed;
        if plan.again > 0 && number.is_multiple_of(plan.again) {
            let what = |how: &str| what(&format!("power cut {seed}, then {how}"));
            let image = replay.crash_image(seed);
            crash_again(&image, allowed.clone(), models, plan, &what, tally);
        }
    }
}

/// Opens an image, holds it against the models of the numbers of batches allowed, and goes on with it: one more commit,
/// and if `deep` a checkpoint and another open.
pub fn check_image(
    image: &SimVfs,
    allowed: RangeInclusive<usize>,
    models: &[Model],
    deep: bool,
) -> Verdict {
    let store = told("open", open(image))?;
    let snapshot = told("snapshot", store.snapshot())?;
    let seq = snapshot.seq().get() as usize;
    if !allowed.contains(&seq) {
        return Err(format!("holds {seq} batches, not {allowed:?}"));
    }
    contents(&snapshot, &models[seq])?;
    drop(snapshot);

    let (more, model) = one_more(&models[seq]);
    told("one more commit", commit(&store, &more))?;
    let check = |store: &Store, when: &str| {
        let snapshot = told("snapshot", store.snapshot())?;
        contents(&snapshot, &model).map_err(|why| format!("{when}: {why}"))
    };
    check(&store, "after one more commit")?;
    if deep {
        if !told("checkpoint", store.checkpoint())? {
            return Err("nothing to checkpoint after a commit".to_owned());
        }
        check(&store, "after a checkpoint")?;
        drop(store);
        let store = told("open again", open(image))?;
        check(&store, "after opening again")?;
    }
    Ok(())
}

/// A batch that inserts a row and updates and deletes others, and the model with it.
pub fn one_more(model: &Model) -> (Vec<Write>, Model) {
    let mut more = vec![Write::Insert(Row::new(1, 98, 100))];
    let mut ids = model.live.iter();
    if let Some((id, versions)) = ids.next() {
        let mut row = (*versions[versions.len() - 1]).clone();
        row.text.push_str(" more");
        more.push(Write::Update(*id, row));
    }
    if let Some((id, _)) = ids.next_back() {
        more.push(Write::Delete(*id));
    }
    let model = model.with(&more);
    (more, model)
}

/// Lets an image recover and commit, and crashes it again at each operation of that.
fn crash_again(
    image: &SimVfs,
    allowed: RangeInclusive<usize>,
    models: &[Model],
    plan: Plan,
    what: &dyn Fn(&str) -> String,
    tally: &Tally,
) {
    let Ok(store) = open(image) else { return };
    let opened = image.op_count();
    let Ok(snapshot) = store.snapshot() else { return };
    let seen = snapshot.seq().get() as usize;
    drop(snapshot);
    let (more, model) = one_more(&models[seen]);
    let mut models = models[..=seen].to_vec();
    models.push(model);
    if commit(&store, &more).is_err() {
        return;
    }
    let committed = image.op_count();
    drop(store);
    let mut replay = image.replay();
    for at in 0..=image.op_count() {
        replay.advance_to(at);
        // What a handle has shown is never taken back.
        let allowed = match at {
            at if at < opened => *allowed.start()..=seen,
            at if at < committed => seen..=seen + usize::from(at > opened),
            _ => seen + 1..=seen + 1,
        };
        let what = |how: &str| {
            let op = image.operation(at.max(1) - 1).unwrap_or_default();
            what(&format!("{how} after operation {at} ({op})"))
        };
        if at < opened {
            tally.judge(&|| what("kill"), || {
                check_image(&replay.kill_image(), allowed.clone(), &models, false)
            });
        }
        if replay.pending() == 0 {
            continue;
        }
        for seed in 0..plan.again_seeds {
            // Recovery chooses other seeds than the first crash.
            let seed = if seed < 2 { seed } else { seed + 1000 };
            tally.judge(&|| what(&format!("power cut {seed}")), || {
                check_image(&replay.crash_image(seed), allowed.clone(), &models, false)
            });
        }
    }
}
