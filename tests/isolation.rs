//! No call returns or changes anything of another user's, and no error or debug text holds what was stored.

use loomdb::{
    Db, Embedding, EpisodeId, Error, ErrorKind, Maintenance, Memory, OpenOptions, Patch, Query,
    TimelineOptions, Turn,
};

fn open(path: &std::path::Path) -> Db {
    let options = OpenOptions::new()
        .maintenance(Maintenance::Manual)
        .embedding(Embedding::External { name: "test".into(), dimension: 2 });
    Db::open_with(path, options).unwrap()
}

/// Names that a careless key, pattern or path would mix up.
fn hostile_names() -> Vec<Vec<u8>> {
    let mut names: Vec<Vec<u8>> = [
        "a",
        "A",
        "a ",
        " a",
        "aa",
        "a/",
        "a/b",
        "a:b",
        "a\0",
        "a\0b",
        "\0",
        "%",
        "_",
        "*",
        "?",
        "a%",
        "a*",
        ".",
        "..",
        "../a",
        "a\u{301}",
        "á",
        "á",
        "a\n",
        "'",
        "\"",
        "a' OR '1'='1",
        "\u{202e}a",
    ]
    .iter()
    .map(|name| name.as_bytes().to_vec())
    .collect();
    names.push(vec![0xff; 3]);
    names.push(vec![0xff, 0xfe]);
    names.push(vec![0; 8]);
    names.push(1u64.to_be_bytes().to_vec());
    names.push(1u64.to_le_bytes().to_vec());
    names.push(vec![b'a'; 65_536]);
    names.push(vec![b'a'; 65_535]);
    names.sort();
    names.dedup();
    names
}

/// What is stored for the user with this number: its texts name it.
fn turns(number: usize) -> Vec<Turn> {
    (0..3)
        .map(|i| {
            Turn::new(format!("user {number} turn {i}"))
                .vector([1.0, i as f32])
                .session("shared session")
                .key(format!("shared key {i}"))
        })
        .collect()
}

#[track_caller]
fn check_only_own(memory: &Memory, number: usize, ids: &[EpisodeId]) {
    let own = |texts: Vec<String>| {
        assert_eq!(texts.len(), 3);
        assert!(texts.iter().all(|text| text.starts_with(&format!("user {number} turn "))));
    };
    assert_eq!(memory.count().unwrap(), 3);
    let listings = [
        TimelineOptions::new(),
        TimelineOptions::new().session("shared session"),
        TimelineOptions::new().direction(loomdb::Direction::Descending),
    ];
    for options in listings {
        let page = memory.timeline(options).unwrap();
        assert!(page.episodes.iter().all(|episode| episode.user == memory.user()));
        own(page.episodes.into_iter().map(|episode| episode.text).collect());
    }
    let queries = [
        Query::vector([1.0, 1.0]).top_k(1000),
        Query::vector([1.0, 1.0]).top_k(1000).exact(true),
        Query::vector([1.0, 1.0]).top_k(1000).session("shared session"),
        Query::text(""),
    ];
    for query in queries {
        let hits = memory.search(query).unwrap().hits;
        own(hits.into_iter().map(|hit| hit.episode.text).collect());
    }
    for id in ids {
        own(vec![memory.get(*id).unwrap().text; 3]);
    }
}

#[test]
fn no_call_returns_or_changes_a_row_of_another_user() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.loom");
    let mut db = open(&path);
    let names = hostile_names();
    let mut ids = Vec::new();
    for (number, name) in names.iter().enumerate() {
        let added = db.user(name).add_many(turns(number)).unwrap();
        ids.push(added.iter().map(|added| added.id).collect::<Vec<_>>());
        if number == names.len() / 2 {
            db.checkpoint().unwrap();
        }
    }
    for stage in 0..3 {
        for (number, name) in names.iter().enumerate() {
            let memory = db.user(name);
            check_only_own(&memory, number, &ids[number]);
            // Another user's ids are as good as none, for every call that takes one.
            for id in &ids[(number + 1) % names.len()] {
                let refused = [
                    memory.get(*id).unwrap_err(),
                    memory.history(*id).unwrap_err(),
                    memory.delete(*id).unwrap_err(),
                    memory.update(*id, Patch::new().tags(["x"])).unwrap_err(),
                ];
                assert!(refused.iter().all(|error| error.kind() == ErrorKind::NotFound));
            }
        }
        assert_eq!(db.users().unwrap(), names);
        match stage {
            0 => assert!(db.checkpoint().unwrap()),
            _ => {
                db.close().unwrap();
                db = open(&path);
            }
        }
    }
    // A session deleted and a key written again touch one user only.
    assert_eq!(db.user(&names[0]).delete_session("shared session").unwrap(), 3);
    db.user(&names[1]).add(Turn::new("new").vector([1.0, 0.0]).key("shared key 0")).unwrap();
    for (number, name) in names.iter().enumerate().skip(2) {
        check_only_own(&db.user(name), number, &ids[number]);
    }
    assert_eq!(db.users().unwrap(), names[1..]);
    assert_eq!(db.user(&names[0]).search(Query::vector([1.0, 0.0])).unwrap().hits.len(), 0);
}

#[test]
fn a_name_that_was_never_written_has_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let db = open(&directory.path().join("t.loom"));
    db.user("alice").add(Turn::new("a").vector([1.0, 0.0]).session("s").key("k")).unwrap();
    db.checkpoint().unwrap();
    for name in ["alic", "alice ", "alicea", "ALICE", "*", "%", "alice\0"] {
        let memory = db.user(name);
        assert_eq!(memory.count().unwrap(), 0);
        assert!(memory.timeline(TimelineOptions::new()).unwrap().episodes.is_empty());
        assert!(memory.search(Query::vector([1.0, 0.0])).unwrap().hits.is_empty());
        assert_eq!(memory.delete_session("s").unwrap(), 0);
    }
    assert_eq!(db.users().unwrap(), [b"alice"]);
}

/// The whole of an error: its message, its debug form, and those of its causes.
fn printed(error: &Error) -> String {
    let mut text = format!("{error} {error:?}");
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text += &format!(" {error} {error:?}");
        cause = error.source();
    }
    text
}

#[test]
fn errors_and_debug_forms_hold_nothing_that_was_stored() {
    const MARK: &str = "secret-marker";
    let directory = tempfile::tempdir().unwrap();
    let db = open(&directory.path().join("t.loom"));
    let memory = db.user(MARK);
    let good = || {
        Turn::new(MARK)
            .vector([1.0, 0.0])
            .session(MARK)
            .speaker(MARK)
            .agent(MARK)
            .key(MARK)
            .tag(MARK)
            .metadata(serde_json::json!({ MARK: MARK }))
    };
    let long = MARK.repeat(6000);
    let added = memory.add(good()).unwrap();
    let errors = [
        memory.add(good().vector([f32::NAN, 0.0])).unwrap_err(),
        memory.add(good().vector([1.0])).unwrap_err(),
        memory.add(Turn::new(MARK)).unwrap_err(),
        memory.add(good().session(&long)).unwrap_err(),
        memory.add(good().speaker(&long)).unwrap_err(),
        memory.add(good().key(&long)).unwrap_err(),
        memory.add(good().tag(&long)).unwrap_err(),
        memory.add(good().tags(vec![MARK; 65])).unwrap_err(),
        memory.add(good().metadata(serde_json::json!([MARK]))).unwrap_err(),
        memory.add(Turn::new(MARK.repeat(2 << 20))).unwrap_err(),
        memory.update(added.id, Patch::new().text(MARK.repeat(2))).unwrap_err(),
        memory.update(added.id, Patch::new().session(Some(&long))).unwrap_err(),
        memory.get(EpisodeId::new(999)).unwrap_err(),
        memory.delete(EpisodeId::new(999)).unwrap_err(),
        memory.search(Query::text(MARK).top_k(0)).unwrap_err(),
        memory.search(Query::vector([1.0])).unwrap_err(),
        db.user(&long).count().unwrap_err(),
        MARK.parse::<loomdb::Cursor>().unwrap_err(),
        loomdb::ZonedTime::parse(MARK).unwrap_err(),
        loomdb::Zone::parse(MARK).unwrap_err(),
    ];
    for error in &errors {
        assert!(!printed(error).contains(MARK), "{error:?}");
    }
    let recall = memory.search(Query::vector([1.0, 0.0])).unwrap();
    let page = memory.timeline(TimelineOptions::new().session(MARK)).unwrap();
    let forms = [
        format!("{recall:?}"),
        format!("{page:?}"),
        format!("{added:?}"),
        format!("{:?}", memory.get(added.id).unwrap()),
        format!("{memory:?} {db:?}"),
        format!("{:?}", good()),
        format!("{:?}", Query::text(MARK).session(MARK)),
        format!("{:?}", TimelineOptions::new().session(MARK)),
        format!("{:?}", Patch::new().text(MARK)),
        format!("{} {:?}", recall.explain, db.stats().unwrap()),
    ];
    for form in forms {
        assert!(!form.contains(MARK), "{form}");
    }
}
