//! Operations with a power cut at any place, and another one while the first is recovered from: what is there
//! afterwards is the last acknowledged state or the one in flight, whole.

use std::path::Path;
use std::sync::Arc;

use loomdb::internals::storage::vfs::Vfs;
use loomdb::internals::storage::vfs::sim::SimVfs;

use super::harness::bytes::Bytes;
use super::harness::check;
use super::harness::op::Op;
use super::harness::oracle::Oracle;
use super::harness::world::{World, open};

/// Where the database lies.
const PATH: &str = "/f.loom";
/// Operations of one run, at most: each is compared many times over.
const OPS_MAX: usize = 12;
/// Power cuts tried in one run.
const CUTS: usize = 3;

/// A state that was acknowledged, and how much of the disk's record it took.
struct Acknowledged {
    operations: usize,
    highest: u64,
    oracle: Oracle,
}

/// The first bytes choose the cuts, the rest are operations.
pub fn run(data: &[u8]) {
    run_on(&SimVfs::new(), data);
}

/// As [`run`], on an empty disk of the caller's.
pub fn run_on(disk: &SimVfs, data: &[u8]) {
    let mut bytes = Bytes(data);
    let choices: Vec<(u16, u8, u16, u8)> = (0..CUTS)
        .map(|_| (bytes.next_u16(), bytes.next(), bytes.next_u16(), bytes.next()))
        .collect();
    let mut ops = bytes.ops();
    ops.truncate(OPS_MAX);
    let states = record(disk, &ops).unwrap_or_else(|difference| {
        panic!("{difference}\noperations: {ops:?}");
    });
    for choice in choices {
        if let Err(difference) = cut(disk, &states, choice) {
            panic!("cut {choice:?}: {difference}\noperations: {ops:?}");
        }
    }
}

/// Runs the operations, taking down every acknowledged state. An addition of several turns is one batch, and no
/// operation here makes more than one.
fn record(disk: &SimVfs, ops: &[Op]) -> Result<Vec<Acknowledged>, String> {
    let vfs: Arc<dyn Vfs> = Arc::new(disk.clone());
    let mut world = World::new(vfs, PATH)?;
    let state = |world: &World| Acknowledged {
        operations: disk.op_count(),
        highest: world.highest,
        oracle: world.oracle.clone(),
    };
    let mut states = vec![state(&world)];
    for (step, op) in ops.iter().enumerate() {
        // Several batches in one step would be several states: one round is enough.
        let op = match op {
            Op::Churn { handle, user, .. } => Op::Churn { handle: *handle, user: *user, rounds: 0 },
            other => other.clone(),
        };
        world.apply(&op).map_err(|difference| format!("step {step}, {op:?}: {difference}"))?;
        states.push(state(&world));
    }
    Ok(states)
}

/// Cuts the power once, and again during recovery.
fn cut(disk: &SimVfs, states: &[Acknowledged], choice: (u16, u8, u16, u8)) -> Result<(), String> {
    let (place, seed, again, again_seed) = choice;
    let at = usize::from(place) % (disk.op_count() + 1);
    let acknowledged = states.iter().rposition(|state| state.operations <= at);
    let Some(acknowledged) = acknowledged else {
        // Before creation was acknowledged there may be a database or none; either way opening works.
        let image = disk.crash_image(at, u64::from(seed));
        return open_on(&image).map(drop);
    };
    // An acknowledged state may have needed no operation of its own, so the state in flight is the next that differs.
    let in_flight = states[acknowledged..].iter().find(|state| state.operations > at);
    let wanted: Vec<&Acknowledged> =
        [Some(&states[acknowledged]), in_flight].into_iter().flatten().collect();

    let image = disk.crash_image(at, u64::from(seed));
    let served = recovered(&image, &wanted)?;
    let all = image.op_count();
    let place = usize::from(again) % (all + 1);
    let second = image.crash_image(place, u64::from(again_seed));
    // What was served once never un-happens; before that, both states still may come.
    let wanted = if place == all { vec![served] } else { wanted };
    let kept = recovered(&second, &wanted)
        .map_err(|difference| format!("second cut at {place} of {all}: {difference}"))?;
    let third = recovered(&second.crash_image(second.op_count(), 0), &[kept]);
    third.map(drop).map_err(|difference| format!("after the second recovery: {difference}"))
}

fn open_on(image: &SimVfs) -> Result<loomdb::Db, String> {
    let vfs: Arc<dyn Vfs> = Arc::new(image.clone());
    check::answer(open(&vfs, Path::new(PATH), 0), "open after a cut")
}

/// Opens the image and tells which of the states it holds.
fn recovered<'a>(image: &SimVfs, wanted: &[&'a Acknowledged]) -> Result<&'a Acknowledged, String> {
    let db = open_on(image)?;
    let mut differences = Vec::new();
    for state in wanted {
        match check::everything(&db, &state.oracle, state.highest) {
            Ok(()) => {
                let found = check::answer(db.verify(), "verify")?;
                let problems = found.problems.iter().map(ToString::to_string).collect();
                check::same(problems, Vec::<String>::new(), "problems")?;
                return Ok(state);
            }
            Err(difference) => differences.push(difference),
        }
    }
    Err(format!("none of the states that may be there: {}", differences.join("; or ")))
}
