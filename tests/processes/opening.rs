//! Many processes and threads open a database that does not exist, at once.

use std::path::Path;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use loomdb::{Db, TimelineOptions, Turn};

use super::fleet::{Task, command};
use super::roles::{self, Outcome};

const OPENERS: usize = 20;

/// Waits for the signal, opens with the default settings, adds one row and reads it.
pub fn open(directory: &Path, number: usize, deadline: Instant) -> Outcome {
    while !directory.join("go").exists() {
        if Instant::now() > deadline {
            return Err("no signal".into());
        }
        std::thread::yield_now();
    }
    let told = |error: loomdb::Error| format!("{error:?}");
    let db = Db::open(roles::database(directory)).map_err(told)?;
    add_one(&db, number).map_err(told)
}

fn add_one(db: &Db, number: usize) -> loomdb::Result<()> {
    let memory = db.user("everybody");
    let added = memory.add(Turn::new(format!("opener {number}")))?;
    memory.get(added.id).map(drop)
}

#[track_caller]
fn check(directory: &Path) {
    let db = Db::open(roles::database(directory)).unwrap();
    let page = db.user("everybody").timeline(TimelineOptions::new()).unwrap();
    let mut texts: Vec<_> = page.episodes.into_iter().map(|episode| episode.text).collect();
    let mut expected: Vec<_> = (0..OPENERS).map(|number| format!("opener {number}")).collect();
    texts.sort();
    expected.sort();
    assert_eq!(texts, expected);
    super::assert_whole(&db);
    let names = std::fs::read_dir(directory).unwrap();
    let drafts =
        names.filter(|name| name.as_ref().unwrap().file_name().to_string_lossy().ends_with(".tmp"));
    assert_eq!(drafts.count(), 0, "losers of the race discard their copies");
}

#[test]
fn twenty_processes_opening_at_once_for_the_first_time_all_succeed() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let spawn = |number| command(directory, &Task { role: "open", number }, 0, 60).spawn().unwrap();
    let mut children: Vec<_> = (0..OPENERS).map(spawn).collect();
    // Long enough for most of them to be waiting.
    std::thread::sleep(Duration::from_millis(300));
    std::fs::write(directory.join("go"), "").unwrap();
    for (number, child) in children.iter_mut().enumerate() {
        let status = child.wait().unwrap();
        let said = std::fs::read_to_string(directory.join(format!("failure-open-{number}")));
        assert!(status.success(), "opener {number}: {status} {}", said.unwrap_or_default());
    }
    check(directory);
}

#[test]
fn twenty_threads_opening_at_once_for_the_first_time_all_succeed() {
    let directory = tempfile::tempdir().unwrap();
    let path = roles::database(directory.path());
    let barrier = Barrier::new(OPENERS);
    std::thread::scope(|scope| {
        for number in 0..OPENERS {
            let (barrier, path) = (&barrier, &path);
            scope.spawn(move || {
                barrier.wait();
                add_one(&Db::open(path).unwrap(), number).unwrap();
            });
        }
    });
    check(directory.path());
}
