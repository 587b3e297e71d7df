//! The storage handle on a disk in memory: what is written is read back, before and after every step of its life.

mod damaged;
mod full;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::catalog::{Access, CatalogReader, CatalogView, CatalogWriter};
use super::vfs::sim::{Fault, FaultKind, SimVfs};
use super::vfs::{MemoryVfs, Vfs};
use super::{Direction, Draft, EncodedRow, Part, Snapshot, SpaceChoice, Store};
use crate::error::ErrorKind;
use crate::ids::EpisodeId;
use crate::model::{ANALYSER, Body, VectorSpace, pack_vector};
use crate::options::{Maintenance, StorageOptions, VectorElement};

fn space() -> VectorSpace {
    VectorSpace { name: "test".into(), dimension: 4, element: VectorElement::F32 }
}

fn options() -> StorageOptions {
    StorageOptions { maintenance: Maintenance::Manual, ..StorageOptions::default() }
}

fn open(vfs: &Arc<dyn Vfs>) -> Store {
    Store::open(vfs.clone(), Path::new("/db.loom"), options(), SpaceChoice::Recorded(space()))
        .unwrap()
}

fn memory() -> Arc<dyn Vfs> {
    Arc::new(MemoryVfs::new())
}

fn draft(user: &str, text: &str, time: i64, key: Option<&str>) -> EncodedRow {
    let vector = pack_vector(&[1.0, 0.0, 0.0, 0.0], VectorElement::F32);
    EncodedRow::new(Draft {
        user: user.as_bytes().into(),
        time,
        offset_minutes: 0,
        ordinal: 0,
        expires: i64::MAX,
        vector: vector.into(),
        terms: super::segment::example::simple_terms(text, None),
        body: Body {
            text: text.into(),
            session: Some("s".into()),
            speaker: None,
            agent: None,
            key: key.map(str::to_owned),
            metadata: String::new(),
            tags: vec![],
        },
    })
    .unwrap()
}

fn insert(store: &Store, user: &str, text: &str, time: i64, key: Option<&str>) -> EpisodeId {
    let row = draft(user, text, time, key);
    store.commit(move |transaction| transaction.insert(row)).unwrap().0.id
}

fn update(store: &Store, id: EpisodeId, text: &str, time: i64) {
    let row = draft("u", text, time, Some("k"));
    store
        .commit(move |transaction| {
            let old = transaction.get(id)?.unwrap();
            transaction.replace(&old, row)
        })
        .unwrap();
}

fn delete(store: &Store, id: EpisodeId) {
    store
        .commit(move |transaction| {
            let old = transaction.get(id)?.unwrap();
            transaction.delete(&old)
        })
        .unwrap();
}

fn texts(store: &Store, user: &str) -> Vec<String> {
    let snapshot = store.snapshot().unwrap();
    let times = i64::MIN..i64::MAX;
    let listed =
        snapshot.timeline(user.as_bytes(), times, None, Direction::Ascending, 1000).unwrap();
    let records = listed.iter().map(|(_, id)| snapshot.get(*id).unwrap().unwrap());
    records.map(|record| record.body.text.clone()).collect()
}

/// Rows that a scan of the user meets.
fn scanned(store: &Store, user: &str) -> usize {
    scanned_by(&store.snapshot().unwrap(), user)
}

fn scanned_by(snapshot: &Snapshot, user: &str) -> usize {
    let parts = snapshot.parts(user.as_bytes()).unwrap();
    let count = parts.iter().map(|part| match part {
        Part::Cell { rows, dead, .. } => rows.clone().filter(|row| !dead.contains(*row)).count(),
        Part::Log { records } => records.len(),
    });
    count.sum()
}

#[test]
fn rows_are_read_back_from_the_log_the_segments_and_after_reopening() {
    let vfs = memory();
    let store = open(&vfs);
    insert(&store, "u", "b", 20, None);
    insert(&store, "u", "a", 10, None);
    insert(&store, "v", "x", 5, None);
    assert_eq!(texts(&store, "u"), ["a", "b"]);
    assert!(store.checkpoint().unwrap());
    assert!(!store.checkpoint().unwrap(), "nothing is left to do");
    insert(&store, "u", "c", 15, None);
    assert_eq!(texts(&store, "u"), ["a", "c", "b"]);
    drop(store);
    let store = open(&vfs);
    assert_eq!(texts(&store, "u"), ["a", "c", "b"]);
    assert_eq!(texts(&store, "v"), ["x"]);
    assert_eq!(scanned(&store, "u"), 3);
    assert_eq!(store.snapshot().unwrap().users().unwrap().len(), 2);
}

#[test]
fn a_second_handle_sees_commits_checkpoints_and_merges_at_once() {
    let vfs = memory();
    let (one, two) = (open(&vfs), open(&vfs));
    for round in 0..20 {
        let writer = if round % 2 == 0 { &one } else { &two };
        insert(writer, "u", &format!("{round:02}"), round, None);
        assert_eq!(texts(&one, "u").len() as i64, round + 1);
        assert_eq!(texts(&two, "u").len() as i64, round + 1);
        if round % 3 == 0 {
            assert!(two.checkpoint().unwrap());
        }
    }
    for round in 0..8 {
        insert(&one, "u", "more", 100 + round, None);
        one.checkpoint().unwrap();
    }
    let before = texts(&two, "u");
    assert!(two.merge().unwrap() >= 8);
    assert_eq!(two.merge().unwrap(), 0, "no class holds eight any more");
    assert_eq!(texts(&one, "u"), before);
    assert_eq!(texts(&two, "u"), before);
}

#[test]
fn updates_keep_history_and_deletes_end_it() {
    let vfs = memory();
    for checkpoints in 0..16_u32 {
        let store = open(&vfs);
        let maybe = |bit: u32| {
            if checkpoints & (1 << bit) != 0 {
                store.checkpoint().unwrap();
            }
        };
        let id = insert(&store, "u", "one", 1, Some("k"));
        maybe(0);
        update(&store, id, "two", 2);
        maybe(1);
        let snapshot = store.snapshot().unwrap();
        assert_eq!(snapshot.key(b"u", "k").unwrap(), Some(id));
        assert_eq!(texts(&store, "u"), ["two"]);
        let versions = snapshot.versions(id).unwrap();
        let read: Vec<_> = versions.iter().map(|record| &record.body.text[..]).collect();
        assert_eq!(read, ["one", "two"]);
        assert_eq!(snapshot.counts(b"u").unwrap().rows, 1);
        assert_eq!(scanned(&store, "u"), 1);
        drop(snapshot);
        delete(&store, id);
        maybe(2);
        let snapshot = store.snapshot().unwrap();
        assert!(snapshot.get(id).unwrap().is_none());
        assert!(snapshot.versions(id).unwrap().is_empty());
        assert_eq!(snapshot.key(b"u", "k").unwrap(), None);
        assert!(snapshot.session(b"u", "s").unwrap().is_empty());
        assert_eq!(snapshot.counts(b"u").unwrap(), Default::default());
        assert_eq!(scanned(&store, "u"), 0);
        maybe(3);
    }
    let store = open(&vfs);
    store.checkpoint().unwrap();
    assert!(texts(&store, "u").is_empty());
}

#[test]
fn an_older_snapshot_keeps_what_was_ended_after_it() {
    let vfs = memory();
    let store = open(&vfs);
    let ids: Vec<_> = (0..4).map(|turn| insert(&store, "u", "t", turn, None)).collect();
    store.checkpoint().unwrap();
    let mut snapshots = vec![store.snapshot().unwrap()];
    for id in &ids {
        delete(&store, *id);
        snapshots.push(store.snapshot().unwrap());
    }
    for (ended, snapshot) in snapshots.iter().enumerate().rev().chain([(0, &snapshots[0])]) {
        assert_eq!(scanned_by(snapshot, "u"), 4 - ended);
        assert_eq!(snapshot.get(ids[0]).unwrap().is_none(), ended > 0);
    }
}

#[test]
fn a_deletion_takes_the_older_versions_out_of_the_segments() {
    let vfs = memory();
    let store = open(&vfs);
    let id = insert(&store, "u", "one", 1, Some("k"));
    insert(&store, "u", "other", 2, None);
    store.checkpoint().unwrap();
    // The version that the deletion ends never reaches a segment.
    update(&store, id, "two", 3);
    delete(&store, id);
    store.checkpoint().unwrap();
    assert!(store.snapshot().unwrap().place(id).unwrap().is_some());
    store.merge().unwrap();
    assert!(store.snapshot().unwrap().place(id).unwrap().is_none());
    assert_eq!(texts(&store, "u"), ["other"]);
}

/// Twelve turns of two users and three speakers, with a checkpoint behind each turn for which `every` says so; the
/// fourth is deleted behind the sixth and the fifth gets a second version.
fn spoken(every: impl Fn(i64) -> bool) -> Store {
    let store = open(&memory());
    let mut ids = Vec::new();
    for turn in 0..12_i64 {
        let user = if turn % 3 == 2 { "v" } else { "u" };
        let row = spoken_row(user, turn, turn + 40);
        ids.push(store.commit(move |transaction| transaction.insert(row)).unwrap().0.id);
        if turn == 6 {
            delete(&store, ids[3]);
            let row = spoken_row("u", 4, 99);
            let id = ids[4];
            let replaced = store.commit(move |transaction| {
                let old = transaction.get(id)?.unwrap();
                transaction.replace(&old, row)
            });
            replaced.unwrap();
        }
        if every(turn) {
            store.checkpoint().unwrap();
        }
    }
    store.checkpoint().unwrap();
    store
}

/// A turn of a hundred and fifty words or so: more passages of one term than a block of postings has, all in all.
fn spoken_row(user: &str, turn: i64, length: i64) -> EncodedRow {
    let words: Vec<_> = (0..length * 3).map(|n| format!("w{} a", (n * (turn + 3)) % 17)).collect();
    let speaker = ["Ada L", "Bob", "w3"][turn as usize % 3].to_owned();
    let row = draft(user, &words.join(" "), turn, None);
    let body = Body { speaker: Some(speaker), ..row.record().body.clone() };
    let terms = super::segment::example::simple_terms(&body.text, body.speaker.as_deref());
    EncodedRow::new(Draft {
        user: user.as_bytes().into(),
        time: turn,
        offset_minutes: 0,
        ordinal: 0,
        expires: i64::MAX,
        vector: row.record().vector.clone(),
        terms,
        body,
    })
    .unwrap()
}

#[test]
fn a_rewrite_gives_the_bytes_that_a_checkpoint_of_the_same_rows_would() {
    let (at_once, merged) = (spoken(|turn| turn == 99), spoken(|_| true));
    // What one rewrite wrote is the input of the next.
    assert!(merged.merge().unwrap() >= 8);
    let before = merged.snapshot().unwrap();
    let inputs: Vec<_> = before.view().base.segments.iter().map(|view| view.row.segment).collect();
    assert!(merged.shared().rewrite(&before, &inputs).unwrap());
    let whole = |store: &Store| {
        let snapshot = store.snapshot().unwrap();
        let segments: Vec<_> =
            snapshot.view().base.segments.iter().map(|view| view.segment.clone()).collect();
        assert!(segments.iter().all(|segment| segment.verify(true).is_empty()));
        segments
    };
    let rewritten = whole(&merged).swap_remove(0);
    assert_eq!(rewritten.replaces(), inputs);
    let checkpointed = whole(&at_once).swap_remove(0);
    assert!(rewritten.rows() == 12 && rewritten.passage_count() > 128);
    assert!(rewritten.lexical_bytes() == checkpointed.lexical_bytes());
    let counts = |store: &Store| store.snapshot().unwrap().counts(b"u").unwrap();
    assert_eq!(counts(&merged), counts(&at_once));
    assert!(merged.verify().unwrap().problems.is_empty());
    let stats = merged.stats().unwrap();
    let parts = stats.segment_parts;
    let sum = parts.vectors + parts.text + parts.lexical + parts.other;
    assert!(sum == stats.segment_bytes && parts.lexical > 1000, "{parts:?}");
}

#[test]
fn a_snapshot_tells_sessions_and_what_the_logs_change_of_them() {
    let store = open(&memory());
    let first = insert(&store, "u", "a", 1, None);
    insert(&store, "v", "x", 1, None);
    let before = store.snapshot().unwrap().generation();
    store.checkpoint().unwrap();
    let second = insert(&store, "u", "b", 2, None);
    delete(&store, first);
    let snapshot = store.snapshot().unwrap();
    assert!(snapshot.generation() > before);
    assert!(snapshot.user_number(b"u").unwrap().is_some());
    assert!(snapshot.user_number(b"w").unwrap().is_none());
    assert_eq!(snapshot.ended().collect::<Vec<_>>(), [first]);
    let place = snapshot.place(first).unwrap().unwrap();
    let dead = snapshot.dead_in_catalog(place.view.segment.id()).unwrap();
    assert!(!dead.contains(place.row), "as stored, though the logs end it");
    assert!(snapshot.is_masked(first) && !snapshot.is_masked(second));
    let pending: Vec<_> = snapshot.pending_sessions(b"u").collect();
    assert_eq!(pending.len(), 1);
    assert_eq!(pending[0].0, "s");
    let ids: Vec<u64> = pending[0].1.iter().map(|entry| entry.id).collect();
    assert_eq!(ids, [second.get()]);
    assert_eq!(snapshot.pending_sessions(b"v").count(), 0);
}

#[test]
fn neighbours_follow_the_session_across_log_and_segments() {
    let vfs = memory();
    let store = open(&vfs);
    let ids: Vec<_> = (0..6).map(|turn| insert(&store, "u", "t", turn * 10, None)).collect();
    let check = |missing: usize| {
        let snapshot = store.snapshot().unwrap();
        let live: Vec<_> =
            ids.iter().enumerate().filter(|(at, _)| *at != missing).map(|(_, id)| *id).collect();
        assert_eq!(snapshot.session(b"u", "s").unwrap(), live);
        for (at, id) in live.iter().enumerate() {
            let before = at.checked_sub(1).map(|at| live[at]);
            let expected = (before, live.get(at + 1).copied());
            assert_eq!(snapshot.neighbours(*id).unwrap(), expected);
        }
    };
    check(99);
    store.checkpoint().unwrap();
    check(99);
    delete(&store, ids[3]);
    check(3);
    store.checkpoint().unwrap();
    check(3);
}

#[test]
fn a_failed_work_writes_nothing_and_spends_no_id() {
    let vfs = memory();
    let store = open(&vfs);
    let row = draft("u", "lost", 1, None);
    let failed = store.commit(move |transaction| {
        transaction.insert(row)?;
        Err::<(), _>(crate::error::Error::invalid("changed my mind"))
    });
    assert_eq!(failed.unwrap_err().kind(), ErrorKind::Invalid);
    assert!(texts(&store, "u").is_empty());
    assert_eq!(insert(&store, "u", "kept", 1, None).get(), 1);
}

#[test]
fn another_vector_space_is_refused_by_name() {
    let vfs = memory();
    drop(open(&vfs));
    let other = VectorSpace { name: "other".into(), dimension: 4, element: VectorElement::F32 };
    let path = Path::new("/db.loom");
    let error = Store::open(vfs, path, options(), SpaceChoice::Exactly(other)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Version);
    assert!(error.to_string().contains("`test`") && error.to_string().contains("`other`"));
}

#[test]
fn terms_of_another_text_analysis_are_refused_by_name_by_readers_too() {
    let vfs = memory();
    let store = open(&vfs);
    insert(&store, "u", "kept", 1, None);
    drop(store);
    let path = Path::new("/db.loom/catalog.redb");
    let access = Access { cache_bytes: 1 << 20, busy_timeout: Duration::from_millis(100) };
    let recorded = |name: &str| {
        let writer = CatalogWriter::open(&vfs, path, access, true).unwrap();
        let reader = CatalogReader::open(&vfs, path, access).unwrap();
        let mut meta = reader.begin().unwrap().meta().unwrap();
        let before = std::mem::replace(&mut meta.analyser, name.to_owned());
        writer.publish(|txn| txn.set_meta(&meta)).unwrap();
        writer.close().unwrap();
        before
    };
    assert_eq!(recorded("loom-en-0"), ANALYSER);
    for read_only in [false, true] {
        let options = StorageOptions { read_only, ..options() };
        let space = SpaceChoice::Recorded(space());
        let error = Store::open(vfs.clone(), Path::new("/db.loom"), options, space).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Version);
        let message = error.to_string();
        assert!(message.contains("`loom-en-0`") && message.contains(&format!("`{ANALYSER}`")));
    }
    recorded(ANALYSER);
    assert_eq!(texts(&open(&vfs), "u"), ["kept"]);
}

#[test]
fn threads_share_commits_and_every_row_is_there_once() {
    let vfs = memory();
    let store = open(&vfs);
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let store = &store;
            scope.spawn(move || {
                for turn in 0..50 {
                    insert(store, "u", &format!("{thread}/{turn}"), turn, None);
                }
            });
        }
    });
    let mut read = texts(&store, "u");
    read.sort();
    read.dedup();
    assert_eq!(read.len(), 400);
}

#[test]
fn a_checkpoint_that_ran_out_of_space_anywhere_succeeds_once_there_is_some() {
    for step in 0.. {
        let disk = SimVfs::new();
        let vfs: Arc<dyn Vfs> = Arc::new(disk.clone());
        let store = open(&vfs);
        insert(&store, "u", "a", 1, None);
        let kind = FaultKind::Enospc;
        disk.inject(Fault { at_call: disk.call_count() + step, kind, sticky: true });
        let full = store.checkpoint();
        let fired = disk.fault_fired().is_some();
        disk.clear_faults();
        insert(&store, "u", "b", 2, None);
        assert!(store.checkpoint().unwrap(), "after a full disk from call {step} on");
        assert_eq!(texts(&store, "u"), ["a", "b"]);
        if !fired {
            full.unwrap();
            assert!(step > 10, "the faults met the checkpoint");
            break;
        }
    }
}

#[test]
fn a_batch_counts_once_towards_the_threshold_of_a_checkpoint() {
    let vfs = memory();
    let options = StorageOptions {
        maintenance: Maintenance::Inline,
        checkpoint_rows: 10,
        ..StorageOptions::default()
    };
    let space = SpaceChoice::Recorded(space());
    let store = Store::open(vfs, Path::new("/db.loom"), options, space).unwrap();
    let batch = |count: i64| {
        let rows: Vec<_> = (0..count).map(|time| draft("u", "t", time, None)).collect();
        store
            .commit(move |transaction| {
                rows.into_iter().try_for_each(|row| transaction.insert(row).map(drop))
            })
            .unwrap();
        store.stats().unwrap().segments
    };
    assert_eq!(batch(6), 0, "six of ten rows");
    assert_eq!(batch(4), 1, "ten rows");
}
