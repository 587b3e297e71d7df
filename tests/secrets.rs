//! What was stored appears in no error, in no debug form and in no panic message, whatever goes wrong.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use loomdb::internals::model::{Body, Record};
use loomdb::internals::storage::log::format::KIND_ROW;
use loomdb::internals::storage::log::frame;
use loomdb::internals::storage::segment::example::simple_terms;
use loomdb::internals::storage::vfs::{MemoryVfs, OpenMode, Vfs};
use loomdb::internals::storage::wire;
use loomdb::{
    Db, Embedding, EpisodeId, Error, ErrorKind, Maintenance, Memory, OpenOptions, Patch, Query,
    TimelineOptions, Timestamp, Turn,
};
use serde_json::json;

const MARK: &str = "zq-secret-marker";
const ROOT: &str = "/t.loom";

fn options() -> OpenOptions {
    OpenOptions::new()
        .maintenance(Maintenance::Manual)
        .busy_timeout(Duration::from_millis(20))
        .embedding(Embedding::External { name: "test".into(), dimension: 2 })
}

/// A turn with the mark in everything that can hold it.
fn turn(number: usize) -> Turn {
    Turn::new(format!("{MARK} text {number} {}", "x".repeat(number * 97 % 400)))
        .vector([1.0, number as f32])
        .session(format!("{MARK} session"))
        .speaker(format!("{MARK} speaker"))
        .agent(format!("{MARK} agent"))
        .key(format!("{MARK} key {number}"))
        .tag(format!("{MARK} tag"))
        .metadata(json!({ format!("{MARK} name"): MARK }))
}

/// Fails when a printed form holds the mark, as text or as a list of its bytes.
#[track_caller]
fn check(printed: &str) {
    let bytes = format!("{:?}", MARK.as_bytes());
    let bytes = bytes.trim_matches(['[', ']']);
    let shown = &printed[..printed.len().min(600)];
    assert!(!printed.contains(MARK) && !printed.contains(bytes), "{shown}");
    // Part of it would do harm as well.
    assert!(!printed.contains("secret"), "{shown}");
}

/// An error, its causes, and their debug forms.
fn printed(error: &Error) -> String {
    let mut text = format!("{error} {error:?} {error:#?}");
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text += &format!(" {error} {error:?}");
        cause = error.source();
    }
    text
}

/// The errors of a run, by what they print.
#[derive(Default)]
struct Errors {
    printed: HashSet<String>,
    kinds: HashSet<ErrorKind>,
}

impl Errors {
    fn take<T: std::fmt::Debug>(&mut self, result: loomdb::Result<T>) -> Option<T> {
        match result {
            Ok(value) => {
                check(&format!("{value:?}"));
                Some(value)
            }
            Err(error) => {
                self.kinds.insert(error.kind());
                let text = printed(&error);
                check(&text);
                self.printed.insert(text);
                None
            }
        }
    }

    /// Makes every call that reads, and some that write.
    fn ask_everything(&mut self, db: &Db, write: bool) {
        let memory = db.user(MARK);
        self.take(db.stats());
        for problem in self.take(db.verify()).map_or(Vec::new(), |found| found.problems) {
            self.take::<()>(Err(problem));
        }
        if let Ok(users) = db.users() {
            assert!(users.iter().all(|user| user == MARK.as_bytes()));
        }
        self.take(memory.count());
        self.take(memory.stats());
        for id in (1..12).map(EpisodeId::new) {
            self.take(memory.get(id));
            self.take(memory.history(id));
        }
        let session = format!("{MARK} session");
        self.take(memory.timeline(TimelineOptions::new()));
        self.take(memory.timeline(TimelineOptions::new().session(&session)));
        if let Some(recall) = self.take(memory.search(Query::vector([1.0, 0.5]))) {
            check(&recall.explain.to_string());
        }
        self.take(memory.search(Query::vector([1.0, 0.5]).exact(true).session(&session)));
        self.take(memory.search(Query::text("")));
        if write {
            self.take(memory.add(turn(3)));
            self.take(memory.add(turn(33)));
            let patch = Patch::new().speaker(Some(MARK));
            check(&format!("{patch:?}"));
            self.take(memory.update(EpisodeId::new(2), patch));
            self.take(memory.delete(EpisodeId::new(5)));
            self.take(db.checkpoint());
            self.take(memory.delete_session(&session));
        }
    }
}

/// A bundle with rows in segments and in a log, some updated, some deleted.
fn build(vfs: Arc<dyn Vfs>) {
    let db = Db::open_on(vfs, Path::new(ROOT), options()).unwrap();
    let memory = db.user(MARK);
    for round in 0..3 {
        memory.add_many((0..4).map(|row| turn(round * 4 + row)).collect()).unwrap();
        if round > 0 {
            let id = EpisodeId::new(round as u64);
            let patch = Patch::new().text(format!("{MARK} again")).vector([0.0, 1.0]);
            memory.update(id, patch).unwrap();
            memory.delete(EpisodeId::new(3 + round as u64)).unwrap();
        }
        if round < 2 {
            db.checkpoint().unwrap();
        }
    }
}

fn files(vfs: &dyn Vfs) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files = Vec::new();
    for directory in ["", "log", "segments", "locks"] {
        for name in vfs.list(&Path::new(ROOT).join(directory)).unwrap() {
            let path = Path::new(ROOT).join(directory).join(name);
            let Ok(file) = vfs.open(&path, OpenMode::Read) else { continue };
            let mut bytes = vec![0; file.len().unwrap() as usize];
            file.read_exact_at(0, &mut bytes).unwrap();
            files.push((path, bytes));
        }
    }
    files
}

/// A copy of the files, the one numbered `damaged` put through `damage`.
fn copy(files: &[(PathBuf, Vec<u8>)], damaged: usize, damage: impl Fn(&mut Vec<u8>)) -> MemoryVfs {
    let vfs = MemoryVfs::new();
    for directory in ["", "log", "segments", "locks"] {
        vfs.create_dir(&Path::new(ROOT).join(directory)).unwrap();
    }
    for (number, (path, bytes)) in files.iter().enumerate() {
        let mut bytes = bytes.clone();
        if number == damaged {
            damage(&mut bytes);
        }
        vfs.open(path, OpenMode::CreateNew).unwrap().write_all_at(0, &bytes).unwrap();
    }
    vfs
}

/// Collects what panics say, so that it is checked and not printed.
static PANICS: Mutex<Vec<String>> = Mutex::new(Vec::new());

#[test]
fn damaged_files_make_no_error_quote_what_was_stored() {
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let here = info.location().is_some_and(|place| place.file().starts_with("tests/"));
        if here {
            print(info);
        } else {
            PANICS.lock().unwrap().push(info.to_string());
        }
    }));
    let vfs: Arc<dyn Vfs> = Arc::new(MemoryVfs::new());
    build(vfs.clone());
    let files = files(&*vfs);
    let mut errors = Errors::default();
    let mut cases = 0;
    for (number, (_, bytes)) in files.iter().enumerate() {
        // A prime step meets every alignment.
        let step = (bytes.len() / 120).max(1) | 1;
        for at in (0..bytes.len()).step_by(step) {
            let vfs = copy(&files, number, |bytes| match at % 5 {
                0 => bytes.truncate(at),
                1 => {
                    let end = (at + 64).min(bytes.len());
                    bytes[at..end].fill(0);
                }
                _ => bytes[at] ^= 1 << (at % 8),
            });
            cases += 1;
            let opened = Db::open_on(Arc::new(vfs), Path::new(ROOT), options());
            let Some(db) = errors.take(opened) else { continue };
            errors.ask_everything(&db, at % 3 == 0);
        }
    }
    let panics = PANICS.lock().unwrap();
    panics.iter().for_each(|panic| check(panic));
    println!(
        "{cases} damaged copies, {} different errors, {} panics stopped",
        errors.printed.len(),
        panics.len()
    );
    assert!(errors.printed.len() > 50 && errors.kinds.contains(&ErrorKind::Corrupt));
}

/// Checksums keep damage from the decoders: they get it here at first hand.
#[test]
fn decoders_quote_nothing() {
    let body = Body {
        text: MARK.into(),
        session: Some(MARK.into()),
        speaker: Some(MARK.into()),
        agent: Some(MARK.into()),
        key: Some(MARK.into()),
        metadata: format!("{{\"{MARK}\":1}}"),
        tags: vec![MARK.into(); 3],
    };
    let encoded = wire::encode(&body);
    let terms = simple_terms(MARK, Some(MARK));
    let record = Record {
        id: EpisodeId::new(1),
        version: 1,
        user: MARK.as_bytes().into(),
        time: 0,
        offset_minutes: 0,
        record_time: 0,
        first_record_time: 0,
        ordinal: 0,
        expires: i64::MAX,
        vector: [][..].into(),
        shape: terms.shape(),
        terms: Some(terms.into()),
        body,
    };
    let frame = frame::encode_row(&record, &encoded).unwrap();
    let mut errors = Errors::default();
    for at in 0..frame.len() {
        for bit in 0..8 {
            let mut damaged = frame.clone();
            damaged[at] ^= 1 << bit;
            errors.take(frame::decode(KIND_ROW, &damaged).map(drop));
        }
        errors.take(frame::decode(KIND_ROW, &frame[..at]).map(drop));
        errors.take(wire::decode::<Body>(&encoded[..at.min(encoded.len() - 1)]).map(drop));
    }
    for at in 0..encoded.len() {
        let mut damaged = encoded.clone();
        damaged[at] = 0xff;
        errors.take(wire::decode::<Body>(&damaged));
    }
    assert!(errors.printed.len() > 3);
    check(&format!("{record:?} {record:#?}"));
}

#[test]
fn refused_arguments_and_states_make_no_error_quote_what_was_given() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.loom");
    let db = Db::open_with(&path, options()).unwrap();
    let memory = db.user(MARK);
    let mut errors = Errors::default();
    let id = errors.take(memory.add(turn(1))).unwrap().id;
    refused_arguments(&mut errors, &memory, id);
    let long = MARK.repeat(5000);
    errors.take(db.user(&long).count());
    errors.take(db.user("").add(turn(1)));
    errors.take(db.user("other").get(id));
    errors.take(db.user("other").update(id, Patch::new().text(MARK)));
    errors.take(MARK.parse::<loomdb::Cursor>());
    errors.take(loomdb::ZonedTime::parse(MARK));
    errors.take(loomdb::Zone::parse(MARK));

    // Another vector space, a read-only handle, a held lock, a closed handle.
    let other = Embedding::External { name: "other".into(), dimension: 3 };
    errors.take(Db::open_with(&path, options().embedding(other)));
    let reader = Db::open_with(&path, options().read_only(true)).unwrap();
    errors.ask_everything(&reader, true);
    let lock = std::fs::File::open(path.join("locks/writer")).unwrap();
    lock.lock().unwrap();
    errors.take(memory.add(turn(2)));
    errors.take(memory.delete(id));
    errors.take(db.checkpoint());
    lock.unlock().unwrap();
    errors.take(db.checkpoint());
    db.close().unwrap();
    errors.ask_everything(&db, true);
    // Somebody else's file in the place of the database, and none.
    let file = directory.path().join("file");
    std::fs::write(&file, MARK).unwrap();
    errors.take(Db::open_with(&file, options()));
    errors.take(Db::open_with(file.join("below"), options()));
    std::fs::create_dir(directory.path().join("dir")).unwrap();
    std::fs::write(directory.path().join("dir/FORMAT"), format!("{MARK}\n{MARK}\n")).unwrap();
    errors.take(Db::open_with(directory.path().join("dir"), options()));
    std::fs::write(
        directory.path().join("dir/FORMAT"),
        format!("LoomDB database\nformat {MARK}\n"),
    )
    .unwrap();
    errors.take(Db::open_with(directory.path().join("dir"), options()));
    errors.take(Db::open_with(directory.path().join("none"), options().create(false)));
    // A directory where a file belongs is what the machine refuses to open.
    std::fs::create_dir_all(directory.path().join("odd/FORMAT")).unwrap();
    errors.take(Db::open_with(directory.path().join("odd"), options()));

    use ErrorKind::{Corrupt, Invalid, Io, Limit, Locked, NotFound, Poisoned, Version};
    for kind in [Corrupt, Invalid, Io, Limit, Locked, NotFound, Poisoned, Version] {
        assert!(errors.kinds.contains(&kind), "no error of kind {kind:?} was provoked");
    }
}

fn refused_arguments(errors: &mut Errors, memory: &Memory, id: EpisodeId) {
    let long = MARK.repeat(5000);
    let turns = [
        turn(2).vector([f32::NAN, 0.0]),
        turn(2).vector([0.0, 0.0]),
        turn(2).vector([1.0]),
        turn(2).session(&long),
        turn(2).speaker(&long),
        turn(2).agent(&long),
        turn(2).key(&long),
        turn(2).tag(&long),
        turn(2).tags(vec![MARK; 65]),
        turn(2).session(""),
        turn(2).metadata(json!([MARK])),
        turn(2).metadata(json!(MARK)),
        turn(2).metadata(json!({ MARK: MARK.repeat(100_000) })),
        Turn::new(MARK),
        Turn::new(""),
        Turn::new(MARK.repeat(2 << 20)).vector([1.0, 0.0]),
    ];
    for turn in turns {
        check(&format!("{turn:?} {turn:#?}"));
        assert!(errors.take(memory.add(turn.clone())).is_none());
        // The whole batch is refused for it.
        errors.take(memory.add_many(vec![Turn::new("good").vector([1.0, 0.0]), turn]));
    }
    let patches = [
        Patch::new().text(MARK),
        Patch::new().text(""),
        Patch::new().session(Some(&long)),
        Patch::new().speaker(Some(&long)),
        Patch::new().agent(Some(&long)),
        Patch::new().tags([long.as_str()]),
        Patch::new().metadata(json!([MARK])),
        Patch::new().vector([1.0, 2.0, 3.0]),
    ];
    for patch in patches {
        check(&format!("{patch:?} {patch:#?}"));
        errors.take(memory.update(id, patch));
    }
    let late = Timestamp::from_micros(1_000_000).unwrap();
    let queries = [
        Query::text(MARK).top_k(0),
        Query::text(MARK).top_k(1 << 30),
        Query::text(MARK),
        Query::text(MARK.repeat(2 << 20)),
        Query::vector([1.0]),
        Query::vector([f32::INFINITY, 1.0]),
        Query::vector([1.0, 1.0])
            .session(MARK)
            .since(late)
            .until(Timestamp::from_micros(0).unwrap()),
    ];
    for query in queries {
        check(&format!("{query:?} {query:#?}"));
        errors.take(memory.search(query));
    }
    let listing = TimelineOptions::new().session(&long).limit(0);
    check(&format!("{listing:?} {listing:#?} {memory:?} {memory:#?}"));
    errors.take(memory.timeline(listing));
    errors.take(memory.get(EpisodeId::new(999)));
    errors.take(memory.delete(EpisodeId::new(999)));
    errors.take(memory.delete_session(&long));
    errors.take(memory.delete_session(""));
    // A key written again with other content is a new version.
    let again = Turn::new(format!("{MARK} other")).vector([1.0, 0.0]);
    errors.take(memory.add(again.key(format!("{MARK} key 1"))));
}
