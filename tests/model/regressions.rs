//! Sequences that once failed, and sequences that are easily got wrong, kept for good.

use super::harness::op::{Op, PatchSpec, TurnSpec};
use super::run;

fn add(handle: u8, turns: &[TurnSpec]) -> Op {
    Op::Add { handle, user: 0, turns: turns.to_vec() }
}

fn keyed(text: u8) -> TurnSpec {
    TurnSpec { text, key: 1, session: 1, ..TurnSpec::default() }
}

#[test]
fn one_batch_may_write_one_key_several_times() {
    run(&[
        add(0, &[keyed(0), keyed(0), keyed(1), keyed(1), keyed(0)]),
        Op::Check { handle: 1 },
        Op::Checkpoint { handle: 1 },
        add(1, &[keyed(1), keyed(0)]),
        Op::Delete { handle: 0, user: 0, target: 1 },
        add(1, &[keyed(0)]),
        Op::Check { handle: 2 },
        Op::ReopenAll,
    ]);
}

#[test]
fn versions_of_one_episode_in_many_segments_survive_a_merge() {
    let patch = |text| PatchSpec { text, ..PatchSpec::default() };
    let mut ops = vec![add(0, &[keyed(0), TurnSpec::default()])];
    for round in 0..12 {
        ops.push(Op::Update { handle: 0, user: 0, target: 2, patch: patch(1 + 2 * (round % 5)) });
        ops.push(Op::Checkpoint { handle: 0 });
        ops.push(Op::Merge { handle: 1 });
        ops.push(Op::Check { handle: 2 });
    }
    ops.push(Op::Delete { handle: 1, user: 0, target: 2 });
    ops.push(Op::Checkpoint { handle: 0 });
    ops.push(Op::Churn { handle: 0, user: 1, rounds: 8 });
    ops.push(Op::Merge { handle: 0 });
    ops.push(Op::ReopenAll);
    run(&ops);
}
