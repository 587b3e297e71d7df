//! Several processes on one database, interleaved at every call of the file layer in an order that a seed decides, one
//! of them killed at a call of its own, and the power cut at some operations of all that.

use std::sync::Arc;

use loomdb::internals::options::Durability;
use loomdb::internals::storage::Store;
use loomdb::internals::storage::vfs::PlantedBug;
use loomdb::internals::storage::vfs::sim::{SimVfs, Task, TaskEnd};

use crate::check::{Verdict, told};
use crate::faults::go_on;
use crate::images::Tally;
use crate::model::{Model, Row, Write};
use crate::oracle::Oracle;
use crate::script::{Recording, Script, Step, open};

/// Power cuts of one run.
const CUTS: u64 = 3;

/// SplitMix64: the choices of one run.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % end
    }
}

/// The disk that every run starts from: seven small segments, so that the next checkpoint gives a merge something to
/// do, and two batches in the log.
pub struct Base {
    recording: Recording,
}

impl Base {
    pub fn new() -> Base {
        let mut steps = Vec::new();
        for time in 0..7 {
            let row = |time: i64| Row::new(time as usize % 3, time, 60);
            steps.push(Step::Commit(vec![Write::Insert(row(time)), Write::Insert(row(time + 20))]));
            steps.push(Step::Checkpoint);
        }
        steps.push(Step::Commit(vec![Write::Delete(1), Write::Update(2, Row::new(2, 50, 80))]));
        let durability = Durability::Synced;
        let script = Script { name: "interleaved", durability, setup: vec![], steps };
        Base { recording: Recording::new(&script) }
    }

    /// The disk, as after a restart of the machine; its last batch and its contents.
    fn disk(&self) -> (SimVfs, u64, Model) {
        let vfs = self.recording.vfs.crash_image(self.recording.vfs.op_count(), 1);
        let models = &self.recording.models;
        (vfs, models.len() as u64 - 1, models.last().expect("never empty").clone())
    }
}

/// One thing that a process does.
#[derive(Clone, Copy, Debug)]
enum Action {
    Commit(u64),
    Scan,
    Checkpoint,
    Merge,
    Reopen,
}

fn program(random: &mut Random) -> Vec<Action> {
    let length = 4 + random.below(4);
    let mut choose = || match random.below(12) {
        0..4 => Action::Commit(random.below(u64::MAX)),
        4..7 => Action::Scan,
        7..9 => Action::Checkpoint,
        9..11 => Action::Merge,
        _ => Action::Reopen,
    };
    (0..length).map(|_| choose()).collect()
}

fn batch(oracle: &Oracle, choice: u64) -> Vec<Write> {
    let mut random = Random(choice);
    let mut writes = Vec::new();
    for _ in 0..1 + random.below(3) {
        let row = Row::new(
            random.below(3) as usize,
            random.below(90) as i64,
            30 + random.below(600) as usize,
        );
        let id = oracle.some_id(random.below(u64::MAX)).get();
        writes.push(match random.below(5) {
            0 => Write::Delete(id),
            1 => Write::Update(id, row),
            _ => Write::Insert(row),
        });
    }
    writes
}

/// What a process does; its errors, unless it was killed.
fn process(vfs: &SimVfs, oracle: &Arc<Oracle>, actions: &[Action]) -> Verdict {
    let result = (|| {
        let mut store = Some(told("open", open(vfs))?);
        for action in actions {
            let handle = store.as_ref().expect("open");
            match action {
                Action::Commit(choice) => {
                    told("commit", oracle.commit(handle, &batch(oracle, *choice)))?;
                }
                Action::Scan => look(handle, oracle)?,
                Action::Checkpoint => drop(told("checkpoint", handle.checkpoint())?),
                Action::Merge => drop(told("merge", handle.merge())?),
                Action::Reopen => {
                    drop(store.take());
                    store = Some(told("open again", open(vfs))?);
                }
            }
        }
        look(store.as_ref().expect("open"), oracle)
    })();
    if vfs.is_process_killed() { Ok(()) } else { result }
}

fn look(store: &Store, oracle: &Oracle) -> Verdict {
    let floor = oracle.floor();
    oracle.observe(&told("snapshot", store.snapshot())?, floor)
}

/// One run of two or three processes, and power cuts at some of its operations.
pub fn one_run(base: &Base, seed: u64, bug: Option<PlantedBug>) -> Verdict {
    let mut random = Random(seed);
    let (vfs, seq, model) = base.disk();
    bug.inspect(|bug| vfs.plant(*bug));
    let oracle = Arc::new(Oracle::new(&vfs, seq, model));
    let programs: Vec<Vec<Action>> =
        (0..2 + random.below(2)).map(|_| program(&mut random)).collect();
    let mut run = vfs.interleaving(seed);
    // In two runs of three one process dies somewhere.
    if random.below(3) > 0 {
        let size = 5 + random.below(6);
        let call = 1 + random.below(1 << size);
        run = run.kill_at(random.below(programs.len() as u64) as usize, call);
    }
    let tasks: Vec<Task<'_, Verdict>> = programs
        .iter()
        .map(|actions| {
            let oracle = oracle.clone();
            Box::new(move |vfs: SimVfs| process(&vfs, &oracle, actions)) as Task<'_, Verdict>
        })
        .collect();
    for (number, end) in run.run(tasks).ends.into_iter().enumerate() {
        if let TaskEnd::Done(Err(why)) = end {
            return Err(format!("process {number} of {programs:?}: {why}"));
        }
    }
    let last = vfs.op_count();
    let mut places: Vec<usize> =
        (0..CUTS).map(|_| random.below(last as u64 + 1) as usize).collect();
    places.sort_unstable();
    let mut replay = vfs.replay();
    for at in places {
        replay.advance_to(at);
        let seed = random.below(20);
        go_on(&replay.crash_image(seed), oracle.candidates(at), seed.is_multiple_of(2))
            .map_err(|why| format!("power cut {seed} after operation {at} of {last}: {why}"))?;
    }
    let store = told("open at the end", open(&vfs.new_process()))?;
    look(&store, &oracle).map_err(|why| format!("at the end: {why}"))?;
    drop(store);
    go_on(&vfs.new_process(), oracle.candidates(last + 1), true)
        .map_err(|why| format!("going on: {why}"))
}

/// Runs of `seeds`, two at a time, each judged; stops once `enough` have failed.
pub fn runs(
    base: &Base,
    seeds: std::ops::Range<u64>,
    bug: Option<PlantedBug>,
    enough: u64,
    tally: &Tally,
) {
    let next = std::sync::atomic::AtomicU64::new(seeds.start);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    if seed >= seeds.end || tally.counts().1 >= enough {
                        return;
                    }
                    tally.judge(&|| format!("interleaving {seed}"), || one_run(base, seed, bug));
                }
            });
        }
    });
}
