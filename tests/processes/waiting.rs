//! One process holds the writer lock: others read at once, and writers wait with a bound.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use loomdb::internals::model::VectorSpace;
use loomdb::internals::options::StorageOptions;
use loomdb::internals::storage::vfs::RealVfs;
use loomdb::internals::storage::{SpaceChoice, Store};
use loomdb::{Db, ErrorKind, Maintenance, TimelineOptions};

use super::fleet::{Task, command};
use super::roles::{self, Outcome};

/// Holds the writer lock until `deadline`, which its parent does not wait for.
pub fn hold(directory: &Path, deadline: Instant) -> Outcome {
    let space = VectorSpace {
        name: "test".into(),
        dimension: roles::DIMENSION,
        element: Default::default(),
    };
    let path = roles::database(directory);
    let choice = SpaceChoice::Exactly(space);
    let vfs = Arc::new(RealVfs::new());
    let store = Store::open(vfs, &path, StorageOptions::default(), choice).unwrap();
    let signal = directory.join("held");
    let committed = store.commit(move |_| {
        std::fs::write(signal, "").unwrap();
        std::thread::sleep(deadline.saturating_duration_since(Instant::now()));
        Ok(())
    });
    committed.map(drop).map_err(|error| format!("{error:?}"))
}

#[test]
fn a_writer_lock_held_elsewhere_times_out_and_names_its_holder() {
    const TIMEOUT: Duration = Duration::from_millis(300);
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let options = || roles::options(Maintenance::Manual).busy_timeout(TIMEOUT);
    let db = Db::open_with(roles::database(directory), options()).unwrap();
    let memory = db.user("alice");
    memory.add(roles::turn(0, 1, "1.0")).unwrap();

    let mut child = command(directory, &Task { role: "hold", number: 0 }, 0, 60).spawn().unwrap();
    let start = Instant::now();
    while !directory.join("held").exists() {
        assert!(start.elapsed() < Duration::from_secs(30) && child.try_wait().unwrap().is_none());
        std::thread::sleep(Duration::from_millis(1));
    }
    let start = Instant::now();
    let error = memory.add(roles::turn(0, 2, "2.0")).unwrap_err();
    let waited = start.elapsed();
    assert_eq!(error.kind(), ErrorKind::Locked);
    assert!(error.to_string().contains(&format!("process {}", child.id())), "{error}");
    assert!(waited >= TIMEOUT && waited < 10 * TIMEOUT, "{waited:?}");

    // Readers, and openers, do not wait for writers.
    let second = Db::open_with(roles::database(directory), options()).unwrap();
    for db in [&db, &second] {
        let page = db.user("alice").timeline(TimelineOptions::new()).unwrap();
        assert_eq!(page.episodes.len(), 1);
    }
    // The lock dies with its process, and the failed call has left none behind.
    child.kill().unwrap();
    child.wait().unwrap();
    memory.add(roles::turn(0, 3, "3.0")).unwrap();
    second.user("alice").add(roles::turn(0, 4, "4.0")).unwrap();
    assert_eq!(memory.count().unwrap(), 3);
    super::assert_whole(&db);
}
