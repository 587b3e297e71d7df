//! Writers, readers and checkpointers are killed at random and started again; a journal outside the database says what
//! must be there afterwards.

use std::path::Path;
use std::time::{Duration, Instant};

use loomdb::{Db, Maintenance};

use super::fleet::{Fleet, Task};
use super::oracle::{Follower, first_repeated};
use super::random::Random;
use super::roles::{self, CHECKPOINTERS, READERS, WRITERS};

#[test]
fn nothing_acknowledged_is_lost_when_processes_are_killed() {
    storm(100, 0x5eed_0001, Duration::from_secs(60));
}

/// The long run: `cargo test --test processes -- --ignored --nocapture`.
#[test]
#[ignore = "takes about ten minutes"]
fn nothing_acknowledged_is_lost_in_a_thousand_kills() {
    storm(1000, 0x5eed_0002, Duration::from_secs(1800));
}

/// Kills until there were `kills`, then compares. Fails when that takes longer than `limit`.
fn storm(kills: u64, seed: u64, limit: Duration) {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let start = Instant::now();
    println!("seed: {seed:#x}");
    let mut random = Random::new(seed);
    let roles = [("write", WRITERS), ("read", READERS), ("checkpoint", CHECKPOINTERS)];
    let tasks = roles
        .into_iter()
        .flat_map(|(role, count)| (0..count).map(move |number| Task { role, number }))
        .collect();
    let mut fleet = Fleet::start(directory, tasks, random.next(), limit.as_secs() + 30);
    while fleet.kills < kills {
        assert!(start.elapsed() < limit, "{} kills in {limit:?}", fleet.kills);
        std::thread::sleep(Duration::from_millis(100 + random.below(500)));
        for at in 0..fleet.len() {
            fleet.check_alive(at);
        }
        // Now and then everybody, so that the next one finds the database as a crash left it.
        let everybody = random.below(12) == 0;
        let victims: Vec<usize> = match everybody {
            true => (0..fleet.len()).collect(),
            false => vec![random.below(fleet.len() as u64) as usize],
        };
        victims.iter().for_each(|at| fleet.kill(*at));
        victims.iter().for_each(|at| fleet.start_again(*at, random.next()));
    }
    for at in 0..fleet.len() {
        fleet.kill(at);
    }
    let kills = fleet.kills;
    drop(fleet);
    let (commits, rows) = check_at_rest(directory);
    println!(
        "kills: {kills}, acknowledged: {commits} commits, {rows} rows, lost: 0, in {:.1?}",
        start.elapsed()
    );
}

/// Holds the database against the journals: as the crash left it, after a checkpoint and merge, and after reopening.
/// Returns the acknowledged commits, and the rows that they added.
pub fn check_at_rest(directory: &Path) -> (u64, u64) {
    let open = || {
        let options = roles::options(Maintenance::Manual);
        Db::open_with(roles::database(directory), options).unwrap()
    };
    let mut followers: Vec<_> =
        (0..WRITERS).map(|writer| Follower::new(directory, writer)).collect();
    let mut db = open();
    for stage in 0..3 {
        let mut listings = Vec::new();
        for (writer, follower) in followers.iter_mut().enumerate() {
            let seen = follower.before().and_then(|()| {
                let listing = roles::list(&db, writer)?;
                follower.after(&listing)?;
                listings.push(listing);
                Ok(())
            });
            seen.unwrap_or_else(|error| panic!("stage {stage}, writer {writer}: {error}"));
        }
        assert_eq!(first_repeated(&listings), None);
        super::assert_whole(&db);
        match stage {
            0 => {
                db.checkpoint().unwrap();
                db.merge().unwrap();
            }
            _ => {
                db.close().unwrap();
                db = open();
            }
        }
    }
    let acknowledged = followers.iter().map(Follower::acknowledged);
    acknowledged.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
}
