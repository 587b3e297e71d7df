//! One process holds the writer lock: others read at once, and writers wait with a bound.

use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use loomdb::internals::model::VectorSpace;
use loomdb::internals::options::StorageOptions;
use loomdb::internals::storage::vfs::{LockKind, OpenMode, RealVfs, Vfs};
use loomdb::internals::storage::{SpaceChoice, Store};
use loomdb::{Db, ErrorKind, Maintenance, TimelineOptions};

use super::fleet::{Task, command};
use super::roles::{self, Outcome};

/// A call that takes longer hangs, however busy the machine is.
const HANGS: Duration = Duration::from_secs(30);

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
        assert!(start.elapsed() < HANGS && child.try_wait().unwrap().is_none());
        std::thread::sleep(Duration::from_millis(1));
    }
    let start = Instant::now();
    let error = memory.add(roles::turn(0, 2, "2.0")).unwrap_err();
    let waited = start.elapsed();
    assert_eq!(error.kind(), ErrorKind::Locked);
    assert!(error.to_string().contains(&format!("process {}", child.id())), "{error}");
    assert!(waited >= TIMEOUT && waited < HANGS, "{waited:?}");

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

/// Whoever stops a process in the moment in which it writes the catalog's header leaves the lock of those bytes held.
#[test]
fn the_catalogs_header_held_elsewhere_times_out_for_every_call() {
    const TIMEOUT: Duration = Duration::from_millis(200);
    let directory = tempfile::tempdir().unwrap();
    let path = roles::database(directory.path());
    let options = || roles::options(Maintenance::Manual).busy_timeout(TIMEOUT);
    let db = Db::open_with(&path, options()).unwrap();
    let memory = db.user("alice");
    memory.add(roles::turn(0, 1, "1.0")).unwrap();

    let vfs = RealVfs::new();
    let holder = vfs.open(&path.join("catalog.redb"), OpenMode::ReadWrite).unwrap();
    let header = (Bound::Included(0), Bound::Excluded(320));
    assert!(holder.try_lock_range(header, LockKind::Exclusive).unwrap());
    let check = |name: &str, call: &dyn Fn() -> loomdb::Result<()>| {
        let start = Instant::now();
        let error = call().expect_err(name);
        assert_eq!(error.kind(), ErrorKind::Locked, "{name}: {error:?}");
        assert!(start.elapsed() < HANGS, "{name}: {:?}", start.elapsed());
    };
    check("open", &|| Db::open_with(&path, options()).map(drop));
    check("open to read", &|| Db::open_with(&path, options().read_only(true)).map(drop));
    check("read", &|| memory.count().map(drop));
    check("write", &|| memory.add(roles::turn(0, 2, "2.0")).map(drop));
    check("checkpoint", &|| db.checkpoint().map(drop));
    check("verify", &|| db.verify().map(drop));
    // Who cannot wait for a writer can still wait for the time of a header.
    let hurried = || Db::open_with(&path, options().busy_timeout(Duration::ZERO));
    check("open at once", &|| hurried().map(drop));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(10));
            holder.unlock_range(header).unwrap();
        });
        hurried().unwrap();
    });

    memory.add(roles::turn(0, 3, "3.0")).unwrap();
    assert!(db.checkpoint().unwrap());
    assert_eq!(memory.count().unwrap(), 2);
    super::assert_whole(&db);
}
