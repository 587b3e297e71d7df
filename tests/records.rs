//! Records through the public API: what is written is read, by every call, before and after checkpoint and reopen.

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

/// Every page of a listing, put together.
fn walk(memory: &Memory, options: &TimelineOptions, limit: usize) -> Vec<String> {
    let mut all = Vec::new();
    let mut cursor: Option<Cursor> = None;
    loop {
        let mut options = options.clone().limit(limit);
        if let Some(cursor) = cursor {
            // By way of its text, as a client would hand it back.
            options = options.cursor(cursor.to_string().parse().unwrap());
        }
        let page = memory.timeline(options).unwrap();
        assert!(page.episodes.len() == limit || page.next.is_none());
        assert!(!page.episodes.is_empty() || page.next.is_none());
        all.extend(page.episodes.into_iter().map(|episode| episode.text));
        assert!(all.len() <= 100, "the pages come to no end");
        cursor = page.next;
        if cursor.is_none() {
            return all;
        }
    }
}

#[test]
fn pages_put_together_are_the_listing() {
    let mut bench = Bench::new();
    // Written out of order, some at equal times, some behind a checkpoint.
    for i in [5, 3, 9, 1, 7, 3, 5, 0] {
        let count = bench.memory().count().unwrap();
        bench.memory().add(turn(&format!("{i}-{count}")).time(at(i)).session("s")).unwrap();
        if count == 3 {
            bench.db.checkpoint().unwrap();
        }
    }
    bench.memory().add(turn("other").time(at(4)).session("other")).unwrap();
    let all = ["0-7", "1-3", "3-1", "3-5", "other", "5-0", "5-6", "7-4", "9-2"];
    bench.at_every_stage(|memory| {
        for limit in 1..=10 {
            let options = TimelineOptions::new();
            assert_eq!(walk(memory, &options, limit), all);
            let down = options.clone().direction(Direction::Descending);
            let reversed: Vec<&str> = all.iter().rev().copied().collect();
            assert_eq!(walk(memory, &down, limit), reversed);
            let part = options.clone().since(at(3)).until(at(7));
            assert_eq!(walk(memory, &part, limit), ["3-1", "3-5", "other", "5-0", "5-6"]);
            let session = part.clone().session("s");
            assert_eq!(walk(memory, &session, limit), ["3-1", "3-5", "5-0", "5-6"]);
            let down = session.direction(Direction::Descending);
            assert_eq!(walk(memory, &down, limit), ["5-6", "5-0", "3-5", "3-1"]);
        }
        assert!(walk(memory, &TimelineOptions::new().since(at(3)).until(at(3)), 5).is_empty());
        assert!(walk(memory, &TimelineOptions::new().session("none"), 5).is_empty());
    });
}

#[test]
fn a_cursor_stays_good_when_its_episode_goes() {
    let bench = Bench::new();
    let memory = bench.memory();
    let turns = (0..6).map(|i| turn(&format!("t{i}")).session("s").time(at(i)));
    let ids: Vec<_> = memory.add_many(turns.collect()).unwrap().iter().map(|a| a.id).collect();
    for options in [TimelineOptions::new(), TimelineOptions::new().session("s")] {
        let page = memory.timeline(options.clone().limit(2)).unwrap();
        assert_eq!(page.episodes[1].text, "t1");
        let down = options.clone().direction(Direction::Descending);
        let last = memory.timeline(down.clone().limit(4)).unwrap();
        assert_eq!(last.episodes[3].text, "t2");
        if memory.get(ids[1]).is_ok() {
            memory.delete(ids[1]).unwrap();
            let rest = texts(&memory, options.clone().cursor(page.next.unwrap()));
            assert_eq!(rest, ["t2", "t3", "t4", "t5"]);
            memory.add(turn("t1").session("s").time(at(1))).unwrap();
        }
        assert_eq!(texts(&memory, down.cursor(last.next.unwrap())), ["t1", "t0"]);
    }
}

#[test]
fn a_session_keeps_the_order_of_time_then_ordinal_then_writing() {
    let mut bench = Bench::new();
    let memory = bench.memory();
    let given = |text: &str| turn(text).session("s").time(at(1));
    memory.add_many(vec![given("c").ordinal(2), given("a"), given("b")]).unwrap();
    bench.db.checkpoint().unwrap();
    memory
        .add_many(vec![given("late").ordinal(1), turn("first").session("s").time(at(0))])
        .unwrap();
    bench.at_every_stage(|memory| {
        for limit in 1..6 {
            let options = TimelineOptions::new().session("s");
            assert_eq!(walk(memory, &options, limit), ["first", "a", "b", "late", "c"]);
        }
    });
}

#[test]
fn what_has_expired_is_not_read() {
    let mut bench = Bench::new();
    let memory = bench.memory();
    let past = Timestamp::from_micros(Timestamp::now().micros() - 1_000_000).unwrap();
    let gone = memory.add(turn("gone").expires(past).session("s").key("k")).unwrap();
    memory.add(turn("here").expires(at(10_000_000_000)).session("s")).unwrap();
    bench.at_every_stage(|memory| {
        assert_eq!(kind(memory.get(gone.id)), ErrorKind::NotFound);
        assert_eq!(kind(memory.history(gone.id)), ErrorKind::NotFound);
        assert_eq!(texts(memory, TimelineOptions::new().limit(1)), ["here"]);
        assert_eq!(texts(memory, TimelineOptions::new().session("s")), ["here"]);
        for exact in [false, true] {
            let query = loomdb::Query::vector([1.0, 0.0]).exact(exact);
            assert_eq!(memory.search(query).unwrap().hits.len(), 1);
        }
        assert_eq!(memory.search("").unwrap().hits.len(), 1);
    });
    // Written again without an expiry, it is back.
    let back = bench.memory().add(turn("gone").session("s").key("k")).unwrap();
    assert_eq!((back.id, back.outcome), (gone.id, Outcome::NewVersion));
    assert_eq!(bench.memory().get(gone.id).unwrap().text, "gone");
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

#[test]
fn two_handles_of_one_database_see_each_other_at_once() {
    let mut bench = Bench::new();
    let other = Db::open_with(bench.path(), options()).unwrap();
    let id = bench.memory().add(turn("one").key("k")).unwrap().id;
    assert_eq!(other.user("alice").get(id).unwrap().text, "one");
    assert_eq!(other.user("alice").add(turn("one").key("k")).unwrap().outcome, Outcome::Unchanged);
    bench.db.checkpoint().unwrap();
    other.user("alice").delete(id).unwrap();
    assert_eq!(kind(bench.memory().get(id)), ErrorKind::NotFound);
    let next = other.user("alice").add(turn("two")).unwrap().id;
    assert!(next > id);
    bench.at_every_stage(|memory| assert_eq!(memory.get(next).unwrap().text, "two"));
}

#[test]
fn threads_share_a_handle() {
    let bench = Bench::new();
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let memory = bench.memory();
            scope.spawn(move || {
                for i in 0..20 {
                    let id = memory.add(turn(&format!("{thread}-{i}"))).unwrap().id;
                    assert_eq!(memory.get(id).unwrap().text, format!("{thread}-{i}"));
                }
            });
        }
    });
    assert_eq!(bench.memory().count().unwrap(), 160);
}

#[test]
fn updates_that_race_all_take_effect() {
    let bench = Bench::new();
    let id = bench.memory().add(turn("a")).unwrap().id;
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let memory = bench.memory();
            scope.spawn(move || {
                for i in 0..5 {
                    let key = format!("{thread}-{i}");
                    memory.update(id, Patch::new().metadata(json!({ key: true }))).unwrap();
                }
            });
        }
    });
    let episode = bench.memory().get(id).unwrap();
    assert_eq!((episode.metadata.len(), episode.version), (20, 21));
}

#[test]
fn a_closed_handle_answers_poisoned_and_closing_again_does_nothing() {
    let bench = Bench::new();
    let id = bench.memory().add(turn("a")).unwrap().id;
    let (clone, memory) = (bench.db.clone(), bench.memory());
    bench.db.close().unwrap();
    clone.close().unwrap();
    assert_eq!(kind(memory.get(id)), ErrorKind::Poisoned);
    assert_eq!(kind(memory.add(turn("b"))), ErrorKind::Poisoned);
    assert_eq!(kind(clone.stats()), ErrorKind::Poisoned);
    let again = Db::open_with(bench.path(), options()).unwrap();
    assert_eq!(again.user("alice").get(id).unwrap().text, "a");
}

#[test]
fn a_read_only_handle_reads_and_refuses_to_write() {
    let bench = Bench::new();
    let id = bench.memory().add(turn("a")).unwrap().id;
    let reader = Db::open_with(bench.path(), options().read_only(true)).unwrap();
    let memory = reader.user("alice");
    assert_eq!(memory.get(id).unwrap().text, "a");
    assert_eq!(kind(memory.add(turn("b"))), ErrorKind::Invalid);
    assert_eq!(kind(memory.delete(id)), ErrorKind::Invalid);
    assert_eq!(memory.count().unwrap(), 1);
}

#[test]
fn a_database_that_is_not_there_is_created_only_when_allowed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("new.loom");
    assert_eq!(kind(Db::open_with(&path, options().create(false))), ErrorKind::NotFound);
    assert!(!path.exists());
    Db::open_with(&path, options()).unwrap();
    Db::open_with(&path, options().create(false)).unwrap();
}

#[test]
fn another_vector_space_is_refused_with_both_named() {
    let bench = Bench::new();
    bench.memory().add(turn("a")).unwrap();
    bench.db.close().unwrap();
    let other = Embedding::External { name: "newer".into(), dimension: 3 };
    let error = Db::open_with(bench.path(), options().embedding(other)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Version);
    let message = error.to_string();
    assert!(message.contains("newer") && message.contains("test"), "{message}");
    assert!(message.contains('3') && message.contains('2'), "{message}");
}

#[cfg(feature = "builtin-model")]
#[test]
fn a_database_of_another_space_opens_by_default_and_takes_vectors_only() {
    let bench = Bench::new();
    bench.memory().add(turn("a")).unwrap();
    bench.db.close().unwrap();
    let db = Db::open(bench.path()).unwrap();
    let memory = db.user("alice");
    let error = memory.add("no vector").unwrap_err();
    assert!(error.to_string().contains("vector is missing"), "{error}");
    memory.add(turn("b")).unwrap();
    let recall = memory.search("a text").unwrap();
    assert!(recall.hits.is_empty() && !recall.explain.legs[0].ran);
}

#[test]
fn stats_tell_counts_and_bytes_by_part() {
    let bench = Bench::new();
    let memory = bench.memory();
    let ids: Vec<_> = memory
        .add_many((0..10).map(|i| turn(&format!("text {i}"))).collect())
        .unwrap()
        .iter()
        .map(|added| added.id)
        .collect();
    bench.db.user("bob").add(turn("b")).unwrap();
    bench.db.checkpoint().unwrap();
    memory.delete(ids[0]).unwrap();
    memory.update(ids[1], Patch::new().tags(["x"])).unwrap();
    let stats = bench.db.stats().unwrap();
    assert_eq!((stats.episodes, stats.episodes_with_vector, stats.users), (10, 10, 2));
    assert_eq!(stats.text_bytes, 9 * 6 + 1);
    assert_eq!((stats.space_name.as_str(), stats.space_dimension), ("test", 2));
    let parts = stats.log_bytes + stats.segment_bytes + stats.catalog_bytes + stats.other_bytes;
    assert_eq!(stats.bytes, parts);
    assert!(stats.log_bytes > 0 && stats.segment_bytes > 0 && stats.catalog_bytes > 0);
    assert_eq!((stats.segments, stats.dead_rows), (1, 0));
    let on_disk: u64 = walk_bytes(&bench.path());
    assert_eq!(stats.bytes, on_disk);
    bench.db.checkpoint().unwrap();
    let after = bench.db.stats().unwrap();
    assert_eq!((after.segments, after.dead_rows), (2, 2));
    assert_eq!((after.episodes, after.text_bytes), (stats.episodes, stats.text_bytes));
    let of_user = memory.stats().unwrap();
    assert_eq!((of_user.episodes, of_user.text_bytes), (9, 54));
    assert_eq!(bench.db.users().unwrap(), [b"alice".to_vec(), b"bob".to_vec()]);
}

/// Bytes of all files below `path`.
fn walk_bytes(path: &std::path::Path) -> u64 {
    let entries = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap());
    entries
        .map(|entry| match entry.metadata().unwrap() {
            metadata if metadata.is_dir() => walk_bytes(&entry.path()),
            metadata => metadata.len(),
        })
        .sum()
}

#[test]
fn a_whole_database_verifies() {
    let mut bench = Bench::new();
    let ids: Vec<_> = bench
        .memory()
        .add_many((0..50).map(|i| turn(&format!("t{i}")).session("s")).collect())
        .unwrap();
    bench.db.checkpoint().unwrap();
    bench.memory().delete(ids[3].id).unwrap();
    bench.memory().add(turn("in the log")).unwrap();
    for _ in 0..2 {
        let found = bench.db.verify().unwrap();
        assert!(found.is_whole(), "{:?}", found.problems);
        assert!(found.rows >= 50 && found.bytes > 0);
        bench.reopen();
    }
}

#[test]
fn a_database_in_memory_does_all_that_one_on_disk_does() {
    let db = Db::open_with(":memory:", options()).unwrap();
    let memory = db.user("alice");
    let id = memory.add(turn("a")).unwrap().id;
    assert!(db.checkpoint().unwrap());
    memory.update(id, Patch::new().tags(["x"])).unwrap();
    assert_eq!(memory.history(id).unwrap().len(), 2);
    assert_eq!(memory.search(loomdb::Query::vector([1.0, 0.0])).unwrap().hits.len(), 1);
    let other = Db::open_with(":memory:", options()).unwrap();
    assert_eq!(other.user("alice").count().unwrap(), 0);
    assert!(!std::path::Path::new(":memory:").exists());
}

#[test]
fn handles_cross_threads() {
    fn crosses<T: Send + Sync + Clone>() {}
    crosses::<Db>();
    crosses::<Memory>();
}
