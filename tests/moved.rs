//! A database that is moved, replaced or removed while a handle has it open: the handle refuses, and what was
//! acknowledged stays readable where it is. Nothing is ever written into another database.

#![cfg(unix)]

use std::fs;
use std::path::{Path, PathBuf};

use loomdb::{Db, Embedding, ErrorKind, Maintenance, OpenOptions, Query, TimelineOptions, Turn};
use tempfile::TempDir;

/// Few rows start a checkpoint, so that logs begin and files are removed all the time.
fn options() -> OpenOptions {
    OpenOptions::new()
        .embedding(Embedding::External { name: "made".into(), dimension: 2 })
        .maintenance(Maintenance::Inline)
        .checkpoint_rows(3)
}

fn open(path: &Path) -> Db {
    Db::open_with(path, options()).unwrap()
}

fn add(db: &Db, text: &str) -> loomdb::Result<()> {
    db.user("u").add(Turn::new(text).vector([1.0, 0.5])).map(drop)
}

struct Place(TempDir);

impl Place {
    fn new() -> Place {
        Place(tempfile::tempdir().unwrap())
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// A database with `rows` rows, and a handle of it.
    fn database(&self, name: &str, rows: u64) -> Db {
        let db = open(&self.at(name));
        for row in 0..rows {
            add(&db, &format!("{name} {row}")).unwrap();
        }
        db
    }
}

/// Every way to write with `db` is refused as long as its path leads elsewhere.
#[track_caller]
fn refuses(db: &Db) {
    for round in 0..8 {
        assert_eq!(add(db, "stray").unwrap_err().kind(), ErrorKind::Poisoned, "round {round}");
        for refused in [db.checkpoint().map(drop), db.merge().map(drop)] {
            // A merge may find nothing to do before it looks at a file.
            let kind = refused.map_or_else(|error| error.kind(), |()| ErrorKind::Poisoned);
            assert_eq!(kind, ErrorKind::Poisoned, "round {round}");
        }
    }
}

/// The database at `path` holds `rows` rows and is whole, and takes more.
#[track_caller]
fn holds(path: &Path, rows: u64) {
    let db = open(path);
    assert_eq!(db.user("u").count().unwrap(), rows);
    let found = db.verify().unwrap();
    assert!(found.problems.is_empty(), "{:?}", found.problems);
    add(&db, "more").unwrap();
    db.checkpoint().unwrap();
}

#[test]
fn a_renamed_database_is_left_alone_and_so_is_the_one_in_its_place() {
    for rows in [1, 2, 3, 5, 7] {
        let place = Place::new();
        let db = place.database("a", rows);
        fs::rename(place.at("a"), place.at("b")).unwrap();
        refuses(&db);
        let other = place.database("a", 2);
        refuses(&db);
        drop(other);
        refuses(&db);
        drop(db);
        holds(&place.at("a"), 2);
        holds(&place.at("b"), rows);
    }
}

#[test]
fn databases_that_change_places_do_not_mix() {
    let place = Place::new();
    let (a, b) = (place.database("a", 4), place.database("b", 5));
    for (from, to) in [("a", "c"), ("b", "a"), ("c", "b")] {
        fs::rename(place.at(from), place.at(to)).unwrap();
    }
    refuses(&a);
    refuses(&b);
    // Back in their places both go on.
    for (from, to) in [("b", "c"), ("a", "b"), ("c", "a")] {
        fs::rename(place.at(from), place.at(to)).unwrap();
    }
    add(&a, "again").unwrap();
    add(&b, "again").unwrap();
    drop((a, b));
    holds(&place.at("a"), 5);
    holds(&place.at("b"), 6);
}

#[test]
fn a_link_that_is_turned_does_not_lead_a_handle_astray() {
    let place = Place::new();
    drop((place.database("one", 4), place.database("two", 2)));
    std::os::unix::fs::symlink(place.at("one"), place.at("link")).unwrap();
    let db = open(&place.at("link"));
    add(&db, "through the link").unwrap();
    fs::remove_file(place.at("link")).unwrap();
    std::os::unix::fs::symlink(place.at("two"), place.at("link")).unwrap();
    refuses(&db);
    drop(db);
    holds(&place.at("one"), 5);
    holds(&place.at("two"), 2);
}

#[test]
fn nothing_is_acknowledged_into_a_removed_database() {
    let place = Place::new();
    let db = place.database("a", 2);
    fs::remove_dir_all(place.at("a")).unwrap();
    refuses(&db);
    let memory = db.user("u");
    for error in [
        memory.count().unwrap_err(),
        memory.search(Query::vector([1.0, 0.0])).unwrap_err(),
        memory.timeline(TimelineOptions::new()).unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::Poisoned, "no damage: {error}");
    }
    let fresh = place.database("a", 1);
    refuses(&db);
    drop((db, fresh));
    holds(&place.at("a"), 1);
}

#[test]
fn a_relative_path_is_not_read_again_when_the_program_changes_its_directory() {
    let place = Place::new();
    let program = std::env::current_exe().unwrap();
    if std::env::var_os("LOOMDB_TEST_CHDIR").is_none() {
        // In a process of its own: the directory is the whole process's.
        let name = "a_relative_path_is_not_read_again_when_the_program_changes_its_directory";
        let ran = std::process::Command::new(program)
            .args(["--exact", name, "--test-threads=1"])
            .env("LOOMDB_TEST_CHDIR", "1")
            .output()
            .unwrap();
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stdout));
        return;
    }
    for name in ["one", "two"] {
        fs::create_dir(place.at(name)).unwrap();
    }
    drop(place.database("two/agent.loom", 2));
    std::env::set_current_dir(place.at("one")).unwrap();
    let db = open(Path::new("agent.loom"));
    std::env::set_current_dir(place.at("two")).unwrap();
    for row in 0..10 {
        add(&db, &format!("row {row}")).unwrap();
    }
    db.checkpoint().unwrap();
    drop(db);
    holds(&place.at("one/agent.loom"), 10);
    holds(&place.at("two/agent.loom"), 2);
}
