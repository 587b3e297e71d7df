//! Model test: random operations on several handles of one database give, step by step, what a `BTreeMap` memory
//! gives.
//!
//! `LOOMDB_MODEL_CASES` sets the number of cases of each test (default: as below). A failure prints the seed and the
//! shrunk operations; paste them into `regressions.rs` under a name that says what was wrong.

mod harness;
mod regressions;

use std::path::Path;
use std::sync::Arc;

use loomdb::internals::storage::vfs::{MemoryVfs, RealVfs, Vfs};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use harness::op::{ListingSpec, Op, PatchSpec, QuerySpec, TurnSpec};
use harness::world::World;

/// Operations of one case, at most.
const OPS_MAX: usize = 60;
/// The variable that sets the number of cases, and the one that sets the seed of a run.
const CASES_VARIABLE: &str = "LOOMDB_MODEL_CASES";
const SEED_VARIABLE: &str = "LOOMDB_MODEL_SEED";

fn turn() -> impl Strategy<Value = TurnSpec> {
    // Half of the turns have no key, a third no session: what is rare in random bytes is not rare here.
    let key = prop_oneof![Just(0_u8), 1..5_u8];
    (any::<u8>(), key, 0..4_u8, 0..3_u8, any::<u8>(), 0..4_u8, any::<u8>(), extra()).prop_map(
        |(text, key, session, speaker, time, ordinal, vector, extra)| TurnSpec {
            text,
            key,
            session,
            speaker,
            time,
            ordinal,
            vector,
            extra,
        },
    )
}

/// Mostly nothing, so that equal turns meet.
fn extra() -> impl Strategy<Value = u8> {
    prop_oneof![2 => Just(0_u8), 1 => any::<u8>()]
}

fn patch() -> impl Strategy<Value = PatchSpec> {
    (any::<u8>(), any::<u8>(), any::<u8>(), any::<u8>(), any::<u8>(), any::<u8>(), extra())
        .prop_map(|(text, session, speaker, time, ordinal, vector, extra)| PatchSpec {
            text,
            session,
            speaker,
            time,
            ordinal,
            vector,
            extra,
        })
}

fn query() -> impl Strategy<Value = QuerySpec> {
    (any::<u8>(), 0..16_u8, bound(), bound(), 0..4_u8, any::<bool>()).prop_map(
        |(what, top_k, since, until, session, exact)| QuerySpec {
            what,
            top_k,
            since,
            until,
            session,
            exact,
        },
    )
}

fn listing() -> impl Strategy<Value = ListingSpec> {
    (bound(), bound(), 0..4_u8, 0..9_u8, any::<bool>()).prop_map(
        |(since, until, session, limit, descending)| ListingSpec {
            since,
            until,
            session,
            limit,
            descending,
        },
    )
}

fn bound() -> impl Strategy<Value = u8> {
    prop_oneof![Just(0_u8), 1..11_u8]
}

fn op() -> impl Strategy<Value = Op> {
    // Two users and the writing handles act most, so that their operations meet.
    let handle = || prop_oneof![8 => 0..2_u8, 1 => Just(2_u8)];
    let user = || prop_oneof![3 => 0..2_u8, 1 => 2..4_u8];
    let target = || prop_oneof![3 => 0..12_u8, 1 => any::<u8>()];
    prop_oneof![
        12 => (handle(), user(), vec(turn(), 1..5))
            .prop_map(|(handle, user, turns)| Op::Add { handle, user, turns }),
        6 => (handle(), user(), target(), patch())
            .prop_map(|(handle, user, target, patch)| Op::Update { handle, user, target, patch }),
        4 => (handle(), user(), target())
            .prop_map(|(handle, user, target)| Op::Delete { handle, user, target }),
        1 => (handle(), user(), 0..3_u8)
            .prop_map(|(handle, user, session)| Op::DeleteSession { handle, user, session }),
        4 => handle().prop_map(|handle| Op::Checkpoint { handle }),
        2 => handle().prop_map(|handle| Op::Merge { handle }),
        1 => (handle(), user(), 0..9_u8)
            .prop_map(|(handle, user, rounds)| Op::Churn { handle, user, rounds }),
        2 => (0..3_u8).prop_map(|handle| Op::Reopen { handle }),
        1 => Just(Op::ReopenAll),
        4 => (0..3_u8, user(), query())
            .prop_map(|(handle, user, query)| Op::Search { handle, user, query }),
        3 => (0..3_u8, user(), listing())
            .prop_map(|(handle, user, listing)| Op::Timeline { handle, user, listing }),
        2 => (0..3_u8).prop_map(|handle| Op::Check { handle }),
    ]
}

/// Runs `ops` on a new database of `vfs`.
#[track_caller]
fn run_on(vfs: Arc<dyn Vfs>, path: &Path, ops: &[Op]) {
    let difference = World::new(vfs, path).and_then(|mut world| world.run(ops)).err();
    if let Some(difference) = difference {
        panic!("{difference}");
    }
}

/// Runs `ops` on a new database in memory.
#[track_caller]
fn run(ops: &[Op]) {
    run_on(Arc::new(MemoryVfs::new()), Path::new("/m.loom"), ops);
}

/// Runs random cases. The seed is printed, and taken from the environment when it is set there.
fn random(cases: u32, run: impl Fn(&[Op])) {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let cases = number(CASES_VARIABLE).map_or(cases, |cases| cases as u32);
    let seed = number(SEED_VARIABLE).unwrap_or_else(|| {
        std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), std::process::id())
    });
    println!("{cases} cases, {SEED_VARIABLE}={seed}");
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let config =
        Config { cases, failure_persistence: None, max_shrink_time: 60_000, ..Config::default() };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let result = TestRunner::new_with_rng(config, rng).run(&vec(op(), 1..OPS_MAX), |ops| {
        run(&ops);
        Ok(())
    });
    if let Err(error) = result {
        panic!("{SEED_VARIABLE}={seed}: {error}");
    }
}

#[test]
fn random_operations_give_what_the_model_gives() {
    random(200, run);
}

#[test]
fn random_operations_on_a_real_disk_give_what_the_model_gives() {
    random(6, |ops| {
        let directory = tempfile::tempdir().unwrap();
        run_on(Arc::new(RealVfs::new()), &directory.path().join("m.loom"), ops);
    });
}

#[test]
fn a_difference_between_database_and_model_is_noticed() {
    let mut world = World::new(Arc::new(MemoryVfs::new()), "/m.loom").unwrap();
    let add =
        Op::Add { handle: 0, user: 0, turns: vec![TurnSpec { session: 1, ..Default::default() }] };
    world.run(&[add]).unwrap();
    let whole = world.oracle.clone();
    let changes: [fn(&mut harness::oracle::Content); 6] = [
        |content| content.text.push('!'),
        |content| content.session = None,
        |content| content.time += 1,
        |content| content.vector = content.vector.map(|vector| vector ^ 1),
        |content| content.tags.push("z".into()),
        |content| content.expires = Some(1_000_000),
    ];
    for change in changes {
        world.oracle = whole.clone();
        change(world.oracle.rows.get_mut(&1).unwrap().versions.last_mut().unwrap());
        world.finish().unwrap_err();
    }
    world.oracle = whole.clone();
    world.finish().unwrap();
    world.oracle.rows.clear();
    world.finish().unwrap_err();
}
