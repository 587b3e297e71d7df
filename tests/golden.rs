//! A database as version 1 of the format wrote it is read for good: `tests/data/v1/bundle` is copied and opened, and every
//! answer is as it was.
//!
//! Vectors are given, so that no embedder is needed. Made anew by
//! `cargo test --test golden -- --ignored`, which only a change of a format that was never released allows.

use std::path::{Path, PathBuf};

use loomdb::{
    Db, Embedding, EpisodeId, ErrorKind, Maintenance, Memory, MetadataFilter, OpenOptions, Patch,
    Query, SearchMode, TimelineOptions, Timestamp, Turn, ZonedTime,
};
use serde_json::json;

const DIMENSION: u32 = 16;
/// Notes before the conversation: enough for vectors to have codes.
const NOTES: u64 = 1_100;

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/v1/bundle")
}

fn options() -> OpenOptions {
    OpenOptions::new()
        .maintenance(Maintenance::Manual)
        .embedding(Embedding::External { name: "golden".into(), dimension: DIMENSION })
}

/// A vector that `number` decides: the same on every machine, since nothing is rounded.
fn vector(number: u64) -> Vec<f32> {
    let mut state = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut value = || {
        state = (state ^ (state >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        ((state >> 40) as f32 - 8_388_608.0) / 65_536.0
    };
    (0..DIMENSION).map(|_| value()).collect()
}

fn time(text: &str) -> ZonedTime {
    ZonedTime::parse(text).unwrap()
}

fn note(number: u64) -> Turn {
    const THINGS: [&str; 7] = ["lamp", "ladder", "kettle", "bicycle", "umbrella", "radio", "tent"];
    const PLACES: [&str; 5] = ["attic", "cellar", "garage", "shed", "hall"];
    let thing = THINGS[number as usize % THINGS.len()];
    let place = PLACES[number as usize % PLACES.len()];
    let micros = 1_700_000_000_000_000 + number as i64 * 60_000_000;
    Turn::new(format!("Note {number}: the {thing} is in the {place}"))
        .time(Timestamp::from_micros(micros).unwrap())
        .session("notes")
        .vector(vector(number))
}

/// Writes the database: two segments, the first with codes; one log; rows updated and deleted in segment and log.
fn make(path: &Path) {
    let db = Db::open_with(path, options()).unwrap();
    let (ana, ben) = (db.user("ana"), db.user("ben"));
    ana.add_many((1..=NOTES).map(note).collect()).unwrap();
    db.checkpoint().unwrap();

    let said = |speaker: &str, at: &str, text: &str, number: u64| {
        Turn::new(text).speaker(speaker).session("kitchen").time(time(at)).vector(vector(number))
    };
    let worktop = said("Ana", "2025-02-18T22:19:00+01:00", "The worktop is order QRZ-771", 2_001);
    let worktop = worktop
        .key("chat/1")
        .agent("notebook")
        .tags(["kitchen", "orders"])
        .metadata(json!({ "price": 1980, "shop": { "name": "Pollock" }, "paid": false }))
        .expires(Timestamp::from_micros(4_000_000_000_000_000).unwrap());
    let worktop = ana.add(worktop).unwrap().id;
    ana.add(said("Ben", "2025-02-18T22:20:00+01:00", "And the cupboards?", 2_002)).unwrap();
    let green = said("Ana", "2025-02-18T22:21:00+01:00", "Sage green, as agreed", 2_003);
    let green = ana.add(green.metadata(json!({ "price": 640 }))).unwrap().id;
    let lost = said("Ben", "2025-02-18T22:22:00+01:00", "Nobody may read this again", 2_004);
    let lost = ana.add(lost).unwrap().id;
    ben.add(
        Turn::new("Ben's own worktop is of oak")
            .vector(vector(2_005))
            .time(time("2025-03-01T08:00:00Z")),
    )
    .unwrap();
    db.checkpoint().unwrap();

    ana.update(green, Patch::new().text("Dark blue, after all").vector(vector(2_006))).unwrap();
    ana.delete(lost).unwrap();
    ana.delete(EpisodeId::new(7)).unwrap();
    ana.add(said("Ben", "2025-02-19T08:00:00+01:00", "The fitter comes on Friday", 2_007)).unwrap();
    ana.update(worktop, Patch::new().metadata(json!({ "paid": true }))).unwrap();
    db.close().unwrap();
}

/// The ids of the rows behind the notes, in the order of writing.
const WORKTOP: u64 = NOTES + 1;
const CUPBOARDS: u64 = NOTES + 2;
const GREEN: u64 = NOTES + 3;
const LOST: u64 = NOTES + 4;
const OAK: u64 = NOTES + 5;
const FITTER: u64 = NOTES + 6;

fn found(memory: &Memory, query: Query) -> Vec<u64> {
    memory.search(query).unwrap().hits.iter().map(|hit| hit.episode.id.get()).collect()
}

/// Holds everything that is read against what was written.
fn check(db: &Db) {
    assert_eq!(db.users().unwrap(), [b"ana".to_vec(), b"ben".to_vec()]);
    let (ana, ben) = (db.user("ana"), db.user("ben"));
    assert_eq!((ana.count().unwrap(), ben.count().unwrap()), (NOTES - 1 + 4, 1));

    let page = ana.timeline(TimelineOptions::new().session("kitchen")).unwrap();
    let texts: Vec<&str> = page.episodes.iter().map(|episode| episode.text.as_str()).collect();
    let expected = [
        "The worktop is order QRZ-771",
        "And the cupboards?",
        "Dark blue, after all",
        "The fitter comes on Friday",
    ];
    assert_eq!(texts, expected);
    let notes =
        ana.timeline(TimelineOptions::new().session("notes").limit(2_000)).unwrap().episodes;
    let ids: Vec<u64> = notes.iter().map(|episode| episode.id.get()).collect();
    assert_eq!(ids, (1..=NOTES).filter(|id| *id != 7).collect::<Vec<_>>());
    assert_eq!(notes[0].text, "Note 1: the ladder is in the cellar");

    let worktop = ana.get(EpisodeId::new(WORKTOP)).unwrap();
    assert_eq!((worktop.version, worktop.key.as_deref()), (2, Some("chat/1")));
    assert_eq!(
        (worktop.speaker.as_deref(), worktop.agent.as_deref()),
        (Some("Ana"), Some("notebook"))
    );
    assert_eq!(worktop.time.to_string(), "2025-02-18T22:19:00+01:00");
    assert_eq!(worktop.tags, ["kitchen", "orders"]);
    let metadata = json!({ "price": 1980, "shop": { "name": "Pollock" }, "paid": true });
    assert_eq!(json!(worktop.metadata), metadata);
    assert_eq!(worktop.expires.map(Timestamp::micros), Some(4_000_000_000_000_000));
    for gone in [7, LOST, OAK] {
        assert_eq!(ana.get(EpisodeId::new(gone)).unwrap_err().kind(), ErrorKind::NotFound);
    }
    let history = ana.history(EpisodeId::new(GREEN)).unwrap();
    let versions: Vec<_> = history.iter().map(|row| (row.version, row.text.as_str())).collect();
    assert_eq!(versions, [(1, "Sage green, as agreed"), (2, "Dark blue, after all")]);

    searches(&ana, &ben);
    let verified = db.verify().unwrap();
    assert!(verified.is_whole(), "{:?}", verified.problems);
}

fn searches(ana: &Memory, ben: &Memory) {
    let words = |text: &str| Query::text(text).mode(SearchMode::Lexical);
    assert_eq!(found(ana, words("order QRZ-771"))[0], WORKTOP);
    assert_eq!(found(ana, words("dark blue"))[0], GREEN);
    assert!(found(ana, words("Nobody may read this again")).iter().all(|id| *id != LOST));
    assert_eq!(found(ana, words("note 612").top_k(1)), [612]);
    assert_eq!(found(ben, words("worktop")), [OAK]);

    let nearest = ana.search(Query::vector(vector(900)).top_k(1)).unwrap();
    assert_eq!(nearest.hits[0].episode.id.get(), 900);
    assert!(nearest.explain.rows_by_code > 1_000, "{:?}", nearest.explain);
    assert_eq!(found(ana, Query::vector(vector(2_006)).top_k(1)), [GREEN]);
    assert_eq!(found(ana, Query::vector(vector(2_007)).top_k(1)), [FITTER]);

    let hybrid = Query::text("what did Ben ask about cupboards?").with_vector(vector(2_002));
    assert_eq!(found(ana, hybrid.clone())[0], CUPBOARDS);
    assert_eq!(found(ana, hybrid.clone().exact(true))[0], CUPBOARDS);
    let ben_said = found(ana, hybrid.clone().speaker("Ben"));
    assert_eq!(ben_said, [CUPBOARDS, FITTER]);
    let paid =
        MetadataFilter::from_json(&json!({ "price": { "gt": 1000 }, "paid": true })).unwrap();
    assert_eq!(found(ana, hybrid.filter(paid)), [WORKTOP]);
    assert_eq!(found(ana, Query::text("").session("kitchen")), [FITTER, GREEN, CUPBOARDS, WORKTOP]);
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let (path, to) = {
            let entry = entry.unwrap();
            (entry.path(), to.join(entry.file_name()))
        };
        if path.is_dir() {
            copy(&path, &to);
        } else {
            // A plain write, not a copy of the mode: version control keeps none that forbids writing.
            std::fs::write(&to, std::fs::read(&path).unwrap()).unwrap();
        }
    }
}

/// A copy to do with as one likes.
fn copied() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("golden.loom");
    copy(&golden(), &path);
    (directory, path)
}

#[test]
fn a_database_of_version_1_is_read() {
    let (_directory, path) = copied();
    check(&Db::open_with(&path, options().create(false).read_only(true)).unwrap());
}

#[test]
fn a_database_of_version_1_is_written_checkpointed_and_merged() {
    let (_directory, path) = copied();
    let db = Db::open_with(&path, options().create(false)).unwrap();
    check(&db);
    assert!(db.checkpoint().unwrap());
    check(&db);
    db.merge().unwrap();
    let added = db.user("new").add(Turn::new("A third user").vector(vector(1))).unwrap();
    assert!(added.id.get() > FITTER);
    db.user("new").delete(added.id).unwrap();
    drop(db);
    check(&Db::open_with(&path, options().create(false)).unwrap());
}

#[test]
#[ignore = "writes tests/data/v1"]
fn make_the_database_of_version_1() {
    let directory = tempfile::tempdir().unwrap();
    let made = directory.path().join("made.loom");
    make(&made);
    if golden().exists() {
        std::fs::remove_dir_all(golden()).unwrap();
    }
    // It names the machine and the file that it was made on, and is of no use on another.
    std::fs::remove_file(made.join("TRUST")).unwrap();
    std::fs::create_dir_all(golden().parent().unwrap()).unwrap();
    copy(&made, &golden());
}
