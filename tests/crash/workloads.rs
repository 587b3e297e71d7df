//! The scripted workloads.

use loomdb::internals::options::Durability::{Relaxed, Synced};

use crate::model::{Row, Write};
use crate::script::{Script, Step};
use Step::{Checkpoint, Commit, Flush, Merge, Reopen};
use Write::{Delete, Insert, Update};

/// All of them.
pub fn all() -> Vec<Script> {
    vec![create(), ingest(), checkpoint(), merge(), delete(), relaxed(), reopen()]
}

fn row(user: usize, time: i64) -> Row {
    Row::new(user, time, 40 + (time as usize * 37) % 90)
}

/// A row whose frame takes several sectors.
fn long(user: usize, time: i64) -> Row {
    Row::new(user, time, 1400)
}

fn insert(user: usize, time: i64) -> Write {
    Insert(row(user, time))
}

/// The first open, and the first batches.
pub fn create() -> Script {
    Script {
        name: "create",
        durability: Synced,
        setup: vec![],
        steps: vec![Commit(vec![insert(0, 1)]), Commit(vec![insert(0, 2), insert(1, 3)])],
    }
}

/// Batches of one row and of several, keys, updates and deletes of rows in the log, several users.
pub fn ingest() -> Script {
    Script {
        name: "ingest",
        durability: Synced,
        setup: vec![Commit(vec![insert(0, 1)])],
        steps: vec![
            Commit(vec![Insert(row(0, 2).key(0))]),
            Commit(vec![insert(1, 3), Insert(long(0, 4)), insert(2, 5), Insert(long(1, 6))]),
            Commit(vec![Update(2, row(0, 12).key(0))]),
            Commit(vec![Insert(row(1, 7).key(0)), Delete(3)]),
            Commit(vec![Insert(long(2, 8)), Insert(long(2, 9)), Update(1, long(0, 10))]),
            Commit(vec![Delete(2)]),
            Commit(vec![Insert(row(0, 13).key(0)), Update(10, row(0, 14).key(1))]),
            Reopen,
            Commit(vec![insert(0, 15)]),
            Commit(vec![Delete(7), Delete(1), insert(2, 16)]),
        ],
    }
}

/// Several checkpoints, with updates and deletes of rows that lie in segments.
pub fn checkpoint() -> Script {
    Script {
        name: "checkpoint",
        durability: Synced,
        setup: vec![
            Commit(vec![insert(0, 1), Insert(row(0, 2).key(0)), insert(1, 3), insert(2, 4)]),
            Commit(vec![Insert(long(1, 5)), insert(0, 6)]),
        ],
        steps: vec![
            Checkpoint,
            Commit(vec![Update(2, row(0, 7).key(0)), Delete(3)]),
            Commit(vec![insert(1, 8), Update(5, row(1, 9).key(2))]),
            Checkpoint,
            Commit(vec![Delete(1), Update(2, row(0, 10).key(1)), insert(0, 11)]),
            Checkpoint,
            Commit(vec![Delete(2)]),
            Checkpoint,
            Commit(vec![insert(2, 12)]),
        ],
    }
}

/// Small segments become one, then one of them is rewritten for its deleted rows.
pub fn merge() -> Script {
    let mut setup = Vec::new();
    for time in 0..8 {
        let mut writes = vec![insert(time as usize % 3, time), insert(0, time + 20)];
        if time > 3 {
            // The second row of an earlier batch, which is user 0's.
            writes.push(Update(time as u64 / 2 * 2, row(0, time + 40)));
        }
        setup.push(Commit(writes));
        setup.push(Checkpoint);
    }
    setup.push(Commit(vec![Delete(3), Update(2, row(0, 50).key(0))]));
    Script {
        name: "merge",
        durability: Synced,
        setup,
        steps: vec![
            Merge,
            Commit(vec![Delete(4), insert(1, 60)]),
            Commit(vec![Delete(6), Delete(8), Delete(10), Delete(12), Delete(14)]),
            Checkpoint,
            Merge,
            Commit(vec![insert(1, 61), Update(2, row(0, 62).key(0))]),
        ],
    }
}

/// Whole users and histories go, from log and segments.
pub fn delete() -> Script {
    Script {
        name: "delete",
        durability: Synced,
        setup: vec![
            Commit(vec![Insert(row(0, 1).key(0)), insert(0, 2), insert(1, 3), insert(1, 4)]),
            Commit(vec![Update(1, row(0, 5).key(0))]),
            Checkpoint,
            Commit(vec![Update(1, row(0, 6).key(0)), Update(3, row(1, 7))]),
        ],
        steps: vec![
            Commit(vec![Delete(1)]),
            Commit(vec![Insert(row(0, 8).key(0)), Delete(3), Delete(4)]),
            Checkpoint,
            Commit(vec![Delete(5), Delete(2)]),
            Checkpoint,
            Merge,
            Commit(vec![insert(1, 9)]),
            Checkpoint,
        ],
    }
}

/// Batches that are acknowledged before they are durable.
pub fn relaxed() -> Script {
    Script {
        name: "relaxed",
        durability: Relaxed,
        setup: vec![Commit(vec![insert(0, 1)]), Flush],
        steps: vec![
            Commit(vec![insert(0, 2)]),
            Commit(vec![Insert(long(1, 3)), Insert(row(0, 4).key(0))]),
            Flush,
            Commit(vec![Update(2, long(0, 5))]),
            Commit(vec![Delete(1)]),
            Commit(vec![insert(2, 6)]),
            Checkpoint,
            Commit(vec![Update(2, row(0, 7))]),
            Commit(vec![insert(1, 8)]),
            Reopen,
            Commit(vec![Delete(2), insert(0, 9)]),
        ],
    }
}

/// Handles that come and go, with logs and segments behind them.
pub fn reopen() -> Script {
    Script {
        name: "reopen",
        durability: Synced,
        setup: vec![Commit(vec![insert(0, 1), insert(1, 2)]), Checkpoint],
        steps: vec![
            Reopen,
            Commit(vec![insert(0, 3)]),
            Reopen,
            Commit(vec![Update(1, long(0, 4))]),
            Checkpoint,
            Reopen,
            Commit(vec![Delete(2)]),
            Reopen,
        ],
    }
}
