//! Records through the public API: what is written is read, by every call, before and after checkpoint and reopen.

mod handles;
mod listings;

use std::path::PathBuf;

use loomdb::{
    Cursor, Db, Direction, Embedding, ErrorKind, Maintenance, Memory, OpenOptions, Outcome, Patch,
    TimelineOptions, Timestamp, Turn, ZonedTime,
};
use serde_json::json;
use tempfile::TempDir;

fn options() -> OpenOptions {
    OpenOptions::new()
        .maintenance(Maintenance::Manual)
        .embedding(Embedding::External { name: "test".into(), dimension: 2 })
}

/// A database on disk whose vectors come from the test.
struct Bench {
    directory: TempDir,
    db: Db,
}

impl Bench {
    fn new() -> Bench {
        let directory = tempfile::tempdir().unwrap();
        let db = Db::open_with(directory.path().join("t.loom"), options()).unwrap();
        Bench { directory, db }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("t.loom")
    }

    fn memory(&self) -> Memory {
        self.db.user("alice")
    }

    fn reopen(&mut self) {
        self.db.close().unwrap();
        self.db = Db::open_with(self.path(), options()).unwrap();
    }

    /// Runs `check` as things are, after a checkpoint, and after a reopen.
    fn at_every_stage(&mut self, check: impl Fn(&Memory)) {
        check(&self.memory());
        self.db.checkpoint().unwrap();
        check(&self.memory());
        self.reopen();
        check(&self.memory());
    }
}

fn turn(text: &str) -> Turn {
    Turn::new(text).vector([1.0, 0.0])
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_micros(1_700_000_000_000_000 + seconds * 1_000_000).unwrap()
}

fn texts(memory: &Memory, options: TimelineOptions) -> Vec<String> {
    memory.timeline(options).unwrap().episodes.into_iter().map(|episode| episode.text).collect()
}

fn kind<T: std::fmt::Debug>(result: loomdb::Result<T>) -> ErrorKind {
    result.unwrap_err().kind()
}

#[test]
fn a_turn_comes_back_whole() {
    let mut bench = Bench::new();
    let time = ZonedTime::parse("2024-03-02T09:30:00+01:00").unwrap();
    let text = "It's \"quoted\": a-b? \u{0} \u{1F408} \u{5d0}\u{5d1} 猫\n";
    let metadata = json!({ "z": 1, "a": { "b": [null, 1.5, "x"] } });
    let added = bench
        .memory()
        .add(
            turn(text)
                .speaker("Ana")
                .session("s 1")
                .agent("bot")
                .time(time)
                .ordinal(7)
                .key("k/1")
                .tags(["one", "two"])
                .metadata(metadata.clone())
                .expires(at(10_000_000_000)),
        )
        .unwrap();
    assert_eq!((added.outcome, added.version), (Outcome::Stored, 1));
    let first = added.episode().unwrap();
    bench.at_every_stage(|memory| {
        let episode = memory.get(added.id).unwrap();
        assert_eq!(episode, first);
        assert_eq!(episode.text, text);
        assert_eq!(episode.speaker.as_deref(), Some("Ana"));
        assert_eq!(episode.session.as_deref(), Some("s 1"));
        assert_eq!(episode.agent.as_deref(), Some("bot"));
        assert_eq!(episode.user, b"alice");
        assert_eq!(episode.time, time);
        assert_eq!(episode.ordinal, 7);
        assert_eq!(episode.key.as_deref(), Some("k/1"));
        assert_eq!(episode.tags, ["one", "two"]);
        assert_eq!(serde_json::Value::Object(episode.metadata.clone()), metadata);
        assert_eq!(episode.metadata.keys().collect::<Vec<_>>(), ["z", "a"]);
        assert_eq!(episode.expires, Some(at(10_000_000_000)));
        assert_eq!(episode.record_time, episode.updated);
        assert!(episode.has_vector);
    });
}

#[test]
fn long_text_is_stored_whole_and_longer_text_is_refused_with_its_size() {
    let mut bench = Bench::new();
    // Not compressible to nothing, and no block boundary falls on a character's.
    let long: String =
        (0..(16 << 20) / 8).map(|i| format!("{:07x} ", i * 2_654_435_761u64 % (1 << 28))).collect();
    assert_eq!(long.len(), 16 << 20);
    let id = bench.memory().add(turn(&long)).unwrap().id;
    bench.at_every_stage(|memory| assert!(memory.get(id).unwrap().text == long));
    let error = bench.memory().add(turn(&format!("{long}x"))).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Limit);
    assert!(error.to_string().contains("16777217") && error.to_string().contains("16777216"));
    assert_eq!(bench.memory().count().unwrap(), 1);
}

#[test]
fn the_same_key_with_the_same_content_changes_nothing_and_says_so() {
    let mut bench = Bench::new();
    let given = || turn("one").key("k").speaker("A").metadata(json!({"a": 1, "b": 2}));
    let first = bench.memory().add(given()).unwrap();
    bench.at_every_stage(|memory| {
        let again = memory.add(given()).unwrap();
        assert_eq!((again.id, again.outcome, again.version), (first.id, Outcome::Unchanged, 1));
        // The order of keys is no content, nor is a default that was not given.
        let again = memory.add(given().metadata(json!({"b": 2, "a": 1}))).unwrap();
        assert_eq!(again.outcome, Outcome::Unchanged);
        assert_eq!(memory.count().unwrap(), 1);
    });
    let memory = bench.memory();
    let changed = memory.add(turn("two").key("k").speaker("A")).unwrap();
    assert_eq!((changed.id, changed.outcome, changed.version), (first.id, Outcome::NewVersion, 2));
    let dated = memory.add(turn("two").key("k").speaker("A").time(at(5))).unwrap();
    assert_eq!((dated.outcome, dated.version), (Outcome::NewVersion, 3));
    bench.at_every_stage(|memory| {
        let history = memory.history(first.id).unwrap();
        let texts: Vec<&str> = history.iter().map(|version| version.text.as_str()).collect();
        assert_eq!(texts, ["one", "two", "two"]);
        assert_eq!(history.iter().map(|version| version.version).collect::<Vec<_>>(), [1, 2, 3]);
        assert!(history.iter().all(|version| version.record_time == history[0].record_time));
        assert_eq!(memory.get(first.id).unwrap(), history[2]);
        assert_eq!(memory.count().unwrap(), 1);
    });
}

#[test]
fn one_batch_may_hold_a_key_twice() {
    let bench = Bench::new();
    let added = bench
        .memory()
        .add_many(vec![turn("a").key("k"), turn("a").key("k"), turn("b").key("k"), turn("c")])
        .unwrap();
    let outcomes: Vec<_> = added.iter().map(|added| added.outcome).collect();
    assert_eq!(
        outcomes,
        [Outcome::Stored, Outcome::Unchanged, Outcome::NewVersion, Outcome::Stored]
    );
    assert_eq!(added[0].id, added[2].id);
    assert_eq!(bench.memory().count().unwrap(), 2);
}

#[test]
fn a_key_is_free_again_once_its_episode_is_deleted() {
    let mut bench = Bench::new();
    let first = bench.memory().add(turn("a").key("k")).unwrap();
    bench.db.checkpoint().unwrap();
    bench.memory().delete(first.id).unwrap();
    let second = bench.memory().add(turn("a").key("k")).unwrap();
    assert_eq!(second.outcome, Outcome::Stored);
    assert!(second.id > first.id);
    bench.at_every_stage(|memory| {
        assert_eq!(kind(memory.get(first.id)), ErrorKind::NotFound);
        assert_eq!(memory.add(turn("a").key("k")).unwrap().id, second.id);
    });
}

#[test]
fn a_batch_is_written_whole_or_not_at_all() {
    let bench = Bench::new();
    let memory = bench.memory();
    assert!(memory.add_many(Vec::new()).unwrap().is_empty());
    let bad = vec![turn("a"), turn("b"), Turn::new("c").vector([1.0])];
    assert_eq!(kind(memory.add_many(bad)), ErrorKind::Invalid);
    assert_eq!(memory.count().unwrap(), 0);
    let added = memory.add_many((0..1000).map(|i| turn(&format!("t{i}"))).collect()).unwrap();
    assert!(added.windows(2).all(|pair| pair[0].id < pair[1].id));
    assert_eq!(memory.get(added[617].id).unwrap().text, "t617");
    assert_eq!(memory.count().unwrap(), 1000);
    // Turns without a time keep the order given.
    let page = texts(&memory, TimelineOptions::new().limit(1000));
    assert!(page.iter().enumerate().all(|(i, text)| *text == format!("t{i}")));
}

#[test]
fn an_update_changes_what_it_names_and_keeps_the_rest() {
    let mut bench = Bench::new();
    let memory = bench.memory();
    let given = turn("before")
        .speaker("A")
        .session("s")
        .key("k")
        .tags(["t"])
        .time(at(1))
        .metadata(json!({ "keep": 1, "drop": 2, "deep": { "x": 1, "y": 2 } }));
    let added = memory.add(given).unwrap();
    bench.db.checkpoint().unwrap();
    let patch = Patch::new()
        .text("after")
        .vector([0.0, 1.0])
        .metadata(json!({ "drop": null, "new": 3, "deep": { "x": null } }));
    let updated = memory.update(added.id, patch.clone()).unwrap();
    assert_eq!((updated.outcome, updated.version), (Outcome::NewVersion, 2));
    assert_eq!(memory.update(added.id, patch).unwrap().outcome, Outcome::Unchanged);
    bench.at_every_stage(|memory| {
        let episode = memory.get(added.id).unwrap();
        assert_eq!(episode.text, "after");
        assert_eq!(
            serde_json::Value::Object(episode.metadata.clone()),
            json!({ "keep": 1, "deep": { "y": 2 }, "new": 3 })
        );
        assert_eq!(episode.speaker.as_deref(), Some("A"));
        assert_eq!(episode.session.as_deref(), Some("s"));
        assert_eq!(episode.key.as_deref(), Some("k"));
        assert_eq!(episode.tags, ["t"]);
        assert_eq!(episode.time.time, at(1));
        assert_eq!(episode.record_time, added.episode().unwrap().record_time);
        assert!(episode.updated >= episode.record_time);
        assert_eq!(memory.history(added.id).unwrap()[0].text, "before");
        assert_eq!(memory.count().unwrap(), 1);
        assert_eq!(texts(memory, TimelineOptions::new()), ["after"]);
        assert_eq!(texts(memory, TimelineOptions::new().session("s")), ["after"]);
    });
    // A change of time and session moves the episode in every listing.
    bench.memory().update(added.id, Patch::new().time(at(9)).session(Some("u"))).unwrap();
    bench.at_every_stage(|memory| {
        assert!(texts(memory, TimelineOptions::new().until(at(9))).is_empty());
        assert_eq!(texts(memory, TimelineOptions::new().since(at(9))), ["after"]);
        assert!(texts(memory, TimelineOptions::new().session("s")).is_empty());
        assert_eq!(texts(memory, TimelineOptions::new().session("u")), ["after"]);
    });
}

#[test]
fn a_new_text_needs_a_new_vector_where_the_caller_gives_them() {
    let bench = Bench::new();
    let added = bench.memory().add(turn("a")).unwrap();
    assert_eq!(kind(bench.memory().update(added.id, Patch::new().text("b"))), ErrorKind::Invalid);
    assert_eq!(bench.memory().get(added.id).unwrap().text, "a");
    bench.memory().update(added.id, Patch::new().tags(["x"])).unwrap();
}

#[test]
fn a_deleted_episode_stays_gone_from_every_call() {
    let mut bench = Bench::new();
    let memory = bench.memory();
    let turns = (0..6).map(|i| turn(&format!("t{i}")).session("s").time(at(i)).key(format!("{i}")));
    let ids: Vec<_> = memory.add_many(turns.collect()).unwrap().iter().map(|a| a.id).collect();
    // One deleted from the log, one that has versions, one from a segment.
    memory.delete(ids[0]).unwrap();
    memory.update(ids[1], Patch::new().tags(["new"])).unwrap();
    memory.delete(ids[1]).unwrap();
    bench.db.checkpoint().unwrap();
    memory.delete(ids[2]).unwrap();
    bench.at_every_stage(|memory| {
        for id in &ids[..3] {
            assert_eq!(kind(memory.get(*id)), ErrorKind::NotFound);
            assert_eq!(kind(memory.history(*id)), ErrorKind::NotFound);
            assert_eq!(kind(memory.update(*id, Patch::new().tags(["x"]))), ErrorKind::NotFound);
            assert_eq!(kind(memory.delete(*id)), ErrorKind::NotFound);
        }
        let left = ["t3", "t4", "t5"];
        assert_eq!(memory.count().unwrap(), 3);
        assert_eq!(texts(memory, TimelineOptions::new()), left);
        assert_eq!(texts(memory, TimelineOptions::new().session("s")), left);
        let hits = memory.search(loomdb::Query::vector([1.0, 0.0])).unwrap().hits;
        assert_eq!(hits.len(), 3);
    });
    bench.db.merge().unwrap();
    assert_eq!(bench.memory().count().unwrap(), 3);
}

#[test]
fn a_session_is_deleted_as_one_and_counted() {
    let mut bench = Bench::new();
    let memory = bench.memory();
    memory.add_many(vec![turn("a").session("s"), turn("b").session("s2")]).unwrap();
    bench.db.checkpoint().unwrap();
    memory.add_many(vec![turn("c").session("s"), turn("d")]).unwrap();
    assert_eq!(memory.delete_session("s").unwrap(), 2);
    bench.at_every_stage(|memory| {
        assert_eq!(memory.delete_session("s").unwrap(), 0);
        assert_eq!(memory.count().unwrap(), 2);
        assert_eq!(texts(memory, TimelineOptions::new()), ["b", "d"]);
        assert!(texts(memory, TimelineOptions::new().session("s")).is_empty());
    });
}

#[test]
fn arguments_that_are_not_acceptable_are_refused_by_field() {
    let bench = Bench::new();
    let memory = bench.memory();
    #[track_caller]
    fn check<T: std::fmt::Debug>(result: loomdb::Result<T>, kind: ErrorKind, part: &str) {
        let error = result.unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.to_string().contains(part), "{error} lacks {part}");
    }
    check(memory.add(turn("")), ErrorKind::Invalid, "text is empty");
    check(memory.add(Turn::new("a")), ErrorKind::Invalid, "vector is missing");
    check(memory.add(Turn::new("a").vector([0.0, 0.0])), ErrorKind::Invalid, "length");
    check(memory.add(Turn::new("a").vector([f32::NAN, 0.0])), ErrorKind::Invalid, "finite");
    check(memory.add(Turn::new("a").vector([1.0; 3])), ErrorKind::Invalid, "3 values");
    check(memory.add(turn("a").metadata(json!(1))), ErrorKind::Invalid, "metadata");
    check(memory.add(turn("a").tags(["t"; 65])), ErrorKind::Limit, "65");
    check(memory.add(turn("a").session("x".repeat(65_537))), ErrorKind::Limit, "session");
    check(memory.add_many(vec![turn("a"); 65_537]), ErrorKind::Limit, "65537");
    let large = vec![turn(&"x".repeat(9 << 20)); 8];
    check(memory.add_many(large), ErrorKind::Limit, "batch");
    check(bench.db.user("").count(), ErrorKind::Invalid, "user is empty");
    check(bench.db.user("x".repeat(65_537)).count(), ErrorKind::Limit, "user");
    check(memory.timeline(TimelineOptions::new().limit(0)), ErrorKind::Invalid, "limit");
    check(memory.timeline(TimelineOptions::new().limit(65_537)), ErrorKind::Limit, "65537");
    let turned = TimelineOptions::new().since(at(2)).until(at(1));
    check(memory.timeline(turned), ErrorKind::Invalid, "since");
    assert_eq!(memory.count().unwrap(), 0);
    // What stands at a limit is taken.
    let name = "x".repeat(65_536);
    memory.add(turn("a").session(name.clone()).speaker(name.clone()).key(name.clone())).unwrap();
    let edge = bench.db.user(&name);
    edge.add(turn("b")).unwrap();
    bench.db.checkpoint().unwrap();
    assert_eq!(edge.count().unwrap(), 1);
}
