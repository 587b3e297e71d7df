//! A handle that a fork has copied into another process.

use std::cell::Cell;
use std::fs::File;
use std::path::Path;

use loomdb::{Db, Durability, ErrorKind, Maintenance, TimelineOptions};

use super::fleet::{Task, command};
use super::roles::{self, Outcome, turn};

/// Runs `work` in a forked copy of this process, which then ends at once; its answer.
fn in_fork(work: impl FnOnce() -> u8) -> u8 {
    // SAFETY: the copy runs only the thread that called. It allocates, which the system's allocator allows after a
    // fork, takes no lock that another thread of this process could have held (the worker of a handle waits in a
    // condition variable), and ends without running destructors or exit handlers.
    #[expect(unsafe_code, reason = "the standard library cannot fork")]
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "fork failed");
    if child == 0 {
        // A panic must not unwind into the parent's copy of the test harness.
        let answer = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).unwrap_or(99);
        // SAFETY: ends the process and touches no memory of it.
        #[expect(unsafe_code, reason = "the copy must not run the parent's exit handlers")]
        unsafe {
            libc::_exit(i32::from(answer))
        }
    }
    let mut status = 0;
    // SAFETY: `child` is a child of this process that nobody else waits for, and `status` outlives the call.
    #[expect(unsafe_code, reason = "the standard library waits for children of its own only")]
    let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!(waited, child);
    assert!(libc::WIFEXITED(status), "the copy was stopped by a signal: {status}");
    libc::WEXITSTATUS(status) as u8
}

/// Whether somebody holds the lock in this file.
fn is_locked(path: &Path) -> bool {
    let file = File::open(path).unwrap();
    matches!(file.try_lock(), Err(std::fs::TryLockError::WouldBlock))
}

/// What the forked process finds: 0 when all is as promised, else the number of what is not.
fn misuse(db: Db, path: &Path) -> u8 {
    let memory = db.user("alice");
    let refused = [
        memory.count().map(drop),
        memory.timeline(TimelineOptions::new()).map(drop),
        memory.add(turn(0, 9, "9.0")).map(drop),
        memory.delete_session("s1").map(drop),
        db.checkpoint().map(drop),
        db.merge().map(drop),
        db.stats().map(drop),
        db.verify().map(drop),
    ];
    for (place, result) in refused.into_iter().enumerate() {
        if result.err().map(|error| error.kind()) != Some(ErrorKind::Poisoned) {
            return 1 + place as u8;
        }
    }
    drop(memory);
    drop(db);
    // A database opened in this process works.
    let own = Db::open_with(path, roles::options(Maintenance::Manual));
    let added = own.and_then(|own| own.user("alice").add(turn(0, 5, "5.0")));
    if added.is_ok() { 0 } else { 50 }
}

/// Forks with an open handle; in a process of its own, so that no other test runs while it does.
pub fn fork(directory: &Path) -> Outcome {
    let path = roles::database(directory);
    let lock = path.join("locks/open");
    let cases = [
        (Maintenance::Manual, Durability::Synced),
        (Maintenance::Background, Durability::Synced),
        (Maintenance::Background, Durability::Relaxed),
    ];
    for (round, (maintenance, durability)) in cases.into_iter().enumerate() {
        let options = roles::options(maintenance).durability(durability);
        let db = Db::open_with(&path, options).unwrap();
        let memory = db.user("alice");
        let before = memory.count().unwrap();
        memory.add(turn(0, 1, "1.0").key(format!("before {round}"))).unwrap();
        db.checkpoint().unwrap();
        memory.add(turn(0, 2, "2.0").key(format!("after {round}"))).unwrap();
        assert!(is_locked(&lock));

        // What the copy takes out of its cell and drops is still in the parent's.
        let held = Cell::new(Some((db, memory)));
        let answer = in_fork(|| {
            let (db, memory) = held.take().expect("put in above");
            drop(memory);
            misuse(db, &path)
        });
        let (db, memory) = held.take().expect("only the copy has taken it");
        assert!(is_locked(&lock), "the copy has given up the parent's lock");
        memory.add(turn(0, 3, "3.0").key(format!("later {round}"))).unwrap();
        db.checkpoint().unwrap();
        // The copy's own row is the same one in every round.
        let added = if round == 0 { 4 } else { 3 };
        assert_eq!(memory.count().unwrap(), before + added);
        super::assert_whole(&db);
        drop((db, memory));
        if answer != 0 {
            return Err(format!("round {round}: the copy found {answer}"));
        }
        assert!(!is_locked(&lock), "closing gives up the lock");
    }
    Ok(())
}

#[test]
fn a_handle_used_after_fork_is_refused_and_leaves_the_parent_alone() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let status =
        command(directory, &Task { role: "fork", number: 0 }, 0, 60).spawn().unwrap().wait();
    let said = std::fs::read_to_string(directory.join("failure-fork-0"));
    let log = std::fs::read_to_string(directory.join("stderr-fork-0"));
    assert!(status.unwrap().success(), "{} {}", said.unwrap_or_default(), log.unwrap());
}
