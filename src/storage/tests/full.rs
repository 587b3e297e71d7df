//! A full disk takes away writing and nothing else.

use super::super::vfs::OpenMode;
use super::*;

const LOGS: &str = "/db.loom/log";

fn full(vfs: &SimVfs, kind: FaultKind, sticky: bool) {
    vfs.inject(Fault { at_call: 0, kind, sticky });
}

#[test]
fn an_append_that_found_the_disk_full_leaves_nothing_behind_the_logs_end() {
    let sim = SimVfs::new();
    let vfs: Arc<dyn Vfs> = Arc::new(sim.clone());
    let store = open(&vfs);
    insert(&store, "u", "before", 1, None);
    let log = Path::new("/db.loom/log/00000001.log");
    let length = || vfs.open(log, OpenMode::Read).unwrap().len().unwrap();
    let before = length();

    full(&sim, FaultKind::ShortWriteThenEnospc, false);
    let row = draft("u", "lost", 2, None);
    let error = store.commit(move |transaction| transaction.insert(row)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    assert_eq!(length(), before);

    // So the next batch goes where it would have gone: no log is begun, which would need space of its own.
    insert(&store, "u", "after", 3, None);
    assert_eq!(vfs.list(Path::new(LOGS)).unwrap(), ["00000001.log"]);
    assert_eq!(texts(&store, "u"), ["before", "after"]);
    drop(store);
    assert_eq!(texts(&open(&vfs), "u"), ["before", "after"]);
}

#[test]
fn a_database_that_cannot_be_opened_for_writing_names_the_way_to_read_it() {
    let sim = SimVfs::new();
    let vfs: Arc<dyn Vfs> = Arc::new(sim.clone());
    let store = open(&vfs);
    insert(&store, "u", "kept", 1, None);
    drop(store);
    // What a killed writer leaves behind the log's end needs a new log.
    let log = Path::new("/db.loom/log/00000001.log");
    let file = vfs.open(log, OpenMode::ReadWrite).unwrap();
    file.write_all_at(file.len().unwrap(), b"torn").unwrap();
    drop(file);

    full(&sim, FaultKind::ShortWriteThenEnospc, true);
    let path = Path::new("/db.loom");
    let choice = || SpaceChoice::Recorded(space());
    let error = Store::open(vfs.clone(), path, options(), choice()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    assert!(error.to_string().contains("--read-only"), "{error}");
    assert_eq!(vfs.list(Path::new(LOGS)).unwrap(), ["00000001.log"], "no draft of a log is left");
    let reading = StorageOptions { read_only: true, ..options() };
    let store = Store::open(vfs.clone(), path, reading, choice()).unwrap();
    assert_eq!(texts(&store, "u"), ["kept"]);
    drop(store);
    sim.clear_faults();
    assert_eq!(texts(&open(&vfs), "u"), ["kept"]);
}
