//! Handles: several on one database, threads, opening and closing, what a database says of itself.

use super::*;

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
    // A text is compared by its words alone, and every turn has a score.
    let recall = memory.search("a text").unwrap();
    let legs: Vec<_> = recall.explain.legs.iter().map(|leg| (leg.name, leg.ran)).collect();
    assert_eq!(legs, [("lexical", true), ("vector", false)]);
    assert!(recall.hits.len() == 2 && recall.hits.iter().all(|hit| hit.parts.vector == 0.0));
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
