//! Vector search: the ordinary path against the exhaustive one, which is the definition.

use loomdb::{
    Db, Embedding, ErrorKind, Maintenance, Memory, OpenOptions, Patch, Query, Recall, SearchMode,
    Timestamp, Turn,
};

const DIMENSION: usize = 64;

/// A small generator, so that a failure can be run again: splitmix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn unit(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1u64 << 24) as f32 - 0.5
    }

    /// A vector near one of 50 centres.
    fn vector(&mut self) -> Vec<f32> {
        let mut centre = Random(self.next() % 50);
        (0..DIMENSION).map(|_| centre.unit() + 0.6 * self.unit()).collect()
    }
}

fn open() -> (tempfile::TempDir, Db) {
    let directory = tempfile::tempdir().unwrap();
    let options = OpenOptions::new()
        .maintenance(Maintenance::Manual)
        .embedding(Embedding::External { name: "test".into(), dimension: DIMENSION as u32 });
    let db = Db::open_with(directory.path().join("t.loom"), options).unwrap();
    (directory, db)
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_micros(1_700_000_000_000_000 + seconds * 1_000_000).unwrap()
}

/// `count` turns in sessions of 100, a second apart.
fn turns(random: &mut Random, from: usize, count: usize) -> Vec<Turn> {
    (from..from + count)
        .map(|i| {
            Turn::new(format!("turn {i}"))
                .vector(random.vector())
                .session(format!("session {}", i / 100))
                .time(at(i as i64))
        })
        .collect()
}

fn ids(recall: &Recall) -> Vec<u64> {
    recall.hits.iter().map(|hit| hit.episode.id.get()).collect()
}

/// Share of the exhaustive answer that the ordinary one holds; scores of what both hold must be equal.
fn overlap(memory: &Memory, query: Query) -> (usize, usize) {
    let found = memory.search(query.clone()).unwrap();
    let exact = memory.search(query.exact(true)).unwrap();
    assert_eq!(found.hits.len(), exact.hits.len());
    for recall in [&found, &exact] {
        let ordered = |pair: &[loomdb::Hit]| {
            let (a, b) = (&pair[0], &pair[1]);
            a.score > b.score || (a.score == b.score && a.episode.id < b.episode.id)
        };
        assert!(recall.hits.windows(2).all(ordered));
    }
    let mut shared = 0;
    for hit in &exact.hits {
        if let Some(same) = found.hits.iter().find(|other| other.episode.id == hit.episode.id) {
            assert_eq!(same.score.to_bits(), hit.score.to_bits());
            assert_eq!(same.episode, hit.episode);
            shared += 1;
        }
    }
    (shared, exact.hits.len())
}

#[track_caller]
fn check_recall(memory: &Memory, random: &mut Random, shape: impl Fn(Query) -> Query) {
    let (mut shared, mut all) = (0, 0);
    for _ in 0..30 {
        let (found, exact) = overlap(memory, shape(Query::vector(random.vector())));
        shared += found;
        all += exact;
    }
    let recall_at_10 = shared as f64 / all as f64;
    assert!(recall_at_10 >= 0.99, "recall@10 {recall_at_10}");
}

#[test]
fn the_scan_by_codes_finds_what_the_exhaustive_scan_finds() {
    let (_directory, db) = open();
    let memory = db.user("alice");
    let mut random = Random(1);
    for batch in 0..3 {
        memory.add_many(turns(&mut random, batch * 5000, 5000)).unwrap();
        db.checkpoint().unwrap();
    }
    memory.add_many(turns(&mut random, 15_000, 300)).unwrap();
    check_recall(&memory, &mut random, |query| query);
    let explain = memory.search(Query::vector(random.vector())).unwrap().explain;
    // Random vectors lie in no clusters: hardly a cell can be passed over.
    assert!((10_000..=15_000).contains(&explain.rows_by_code), "{}", explain.rows_by_code);
    assert_eq!(explain.cells_visited + explain.cells_passed_over, explain.cells_scored);
    assert_eq!(explain.log_rows, 300);
    let reranked = explain.rows_exact - 300;
    assert!((300..=1000).contains(&reranked), "{reranked}");
    assert_eq!(explain.rows_distinct(), explain.rows_by_code + 300);
    assert_eq!(explain.segments_visited, 3);
    assert!(explain.bytes_touched < 15_300 * 64 * 4 / 4, "{}", explain.bytes_touched);
    let exact = memory.search(Query::vector(random.vector()).exact(true)).unwrap().explain;
    assert_eq!((exact.rows_by_code, exact.rows_exact), (0, 15_300));

    // Rows that were changed or deleted since their segment was written.
    for id in ids(&memory.search(Query::vector(random.vector()).top_k(200)).unwrap()) {
        let id = loomdb::EpisodeId::new(id);
        match id.get() % 2 {
            0 => memory.delete(id).unwrap(),
            _ => drop(memory.update(id, Patch::new().vector(random.vector())).unwrap()),
        }
    }
    check_recall(&memory, &mut random, |query| query);
    db.checkpoint().unwrap();
    check_recall(&memory, &mut random, |query| query);
    db.merge().unwrap();
    check_recall(&memory, &mut random, |query| query);
}

#[test]
fn filters_hold_and_k_answers_come_whenever_k_rows_pass() {
    let (_directory, db) = open();
    let memory = db.user("alice");
    let mut random = Random(2);
    memory.add_many(turns(&mut random, 0, 6000)).unwrap();
    db.checkpoint().unwrap();
    memory.add_many(turns(&mut random, 6000, 150)).unwrap();
    for session in ["session 3", "session 59", "session 60", "session 61"] {
        let query = Query::vector(random.vector()).session(session).top_k(20);
        let hits = memory.search(query.clone()).unwrap().hits;
        assert_eq!(hits.len(), 20, "{session}");
        assert!(hits.iter().all(|hit| hit.episode.session.as_deref() == Some(session)));
        assert_eq!(overlap(&memory, query), (20, 20));
    }
    // `since` is inclusive, `until` is not.
    for (since, until, count) in
        [(100, 115, 15), (5990, 6010, 20), (6140, 9000, 10), (7000, 8000, 0)]
    {
        let query = Query::vector(random.vector()).since(at(since)).until(at(until)).top_k(500);
        let hits = memory.search(query.clone()).unwrap().hits;
        assert_eq!(hits.len(), count);
        assert!(hits.iter().all(|hit| (at(since)..at(until)).contains(&hit.episode.time.time)));
        assert_eq!(overlap(&memory, query), (count, count));
    }
    let both = Query::vector(random.vector()).since(at(350)).session("session 3").top_k(500);
    assert_eq!(overlap(&memory, both), (50, 50));
    let none = memory.search(Query::vector(random.vector()).session("none")).unwrap();
    assert!(none.hits.is_empty());
    let late = memory.search(Query::vector(random.vector()).since(at(6000))).unwrap();
    assert_eq!(late.explain.cells_visited, 0);
    assert!(late.explain.cells_skipped >= 1);
    assert_eq!(late.explain.segments_skipped, 1);
    check_recall(&memory, &mut random, |query| query.since(at(2000)).until(at(5000)));
}

#[test]
fn users_that_share_a_segment_find_their_live_rows_only() {
    let (_directory, db) = open();
    let mut random = Random(5);
    let gone = Timestamp::from_micros(Timestamp::now().micros() + 1).unwrap();
    // One checkpoint: the cells of all three lie in one segment, those of the latter two not at its start.
    for name in ["a", "b", "c"] {
        let expiring =
            |(at, turn): (usize, Turn)| if at % 3 == 1 { turn.expires(gone) } else { turn };
        let turns = turns(&mut random, 0, 3000).into_iter().enumerate().map(expiring).collect();
        db.user(name).add_many(turns).unwrap();
    }
    db.checkpoint().unwrap();
    for name in ["a", "b", "c"] {
        let memory = db.user(name);
        let found = memory.search(Query::vector(random.vector()).top_k(200)).unwrap();
        assert_eq!(found.explain.rows_by_code, 3000);
        for id in ids(&found) {
            memory.delete(loomdb::EpisodeId::new(id)).unwrap();
        }
        check_recall(&memory, &mut random, |query| query);
    }
    db.checkpoint().unwrap();
    for name in ["a", "b", "c"] {
        let memory = db.user(name);
        check_recall(&memory, &mut random, |query| query.since(at(500)).until(at(2500)));
        let all = memory.search(Query::vector(random.vector()).top_k(3000)).unwrap();
        assert_eq!(all.hits.len(), 2000 - 200, "a third has expired");
    }
}

#[test]
fn equal_scores_go_to_the_smaller_id_wherever_the_rows_lie() {
    let (_directory, db) = open();
    let memory = db.user("alice");
    let mut random = Random(3);
    let same = random.vector();
    let copies = |count: usize| (0..count).map(|i| Turn::new(format!("{i}")).vector(same.clone()));
    let first = memory.add_many(copies(900).collect()).unwrap()[0].id.get();
    memory.add_many(turns(&mut random, 0, 3000)).unwrap();
    db.checkpoint().unwrap();
    memory.add_many(copies(900).collect()).unwrap();
    let expected: Vec<u64> = (first..first + 10).collect();
    for exact in [false, true] {
        let recall = memory.search(Query::vector(same.clone()).exact(exact)).unwrap();
        assert_eq!(ids(&recall), expected);
        assert!((recall.hits[0].score - 1.0).abs() < 1e-5);
        assert_eq!(recall.hits[0].why, "vector 1.00");
    }
    db.checkpoint().unwrap();
    let recall = memory.search(Query::vector(same)).unwrap();
    assert_eq!(ids(&recall), expected);
}

#[test]
fn an_empty_query_lists_the_newest() {
    let (_directory, db) = open();
    let memory = db.user("alice");
    memory.add_many(turns(&mut Random(4), 0, 250)).unwrap();
    for query in ["", "  \n"] {
        let recall = memory.search(query).unwrap();
        let texts: Vec<&str> = recall.hits.iter().map(|hit| hit.episode.text.as_str()).collect();
        assert_eq!(texts[..3], ["turn 249", "turn 248", "turn 247"]);
        assert_eq!(texts.len(), 10);
        assert_eq!(recall.hits[0].why, "newest");
        assert!(recall.explain.legs.iter().any(|leg| leg.name == "newest" && leg.ran));
    }
    let recall = memory.search(Query::text("").session("session 0").top_k(2)).unwrap();
    assert_eq!(recall.hits[0].episode.text, "turn 99");
    assert_eq!(recall.hits.len(), 2);
}

#[test]
fn a_leg_that_cannot_run_says_why() {
    let (_directory, db) = open();
    let memory = db.user("alice");
    memory.add_many(turns(&mut Random(5), 0, 5)).unwrap();
    let leg = |recall: &Recall| {
        recall.explain.legs.iter().find(|leg| leg.name == "vector").unwrap().clone()
    };
    let recall = memory.search("what is this?").unwrap();
    assert!(!leg(&recall).ran && leg(&recall).reason.contains("caller"), "{:?}", leg(&recall));
    assert_eq!(recall.hits.len(), 5, "scored by words and priors");
    let recall = memory.search(Query::text("turn").mode(SearchMode::Vector)).unwrap();
    assert!(!leg(&recall).ran && recall.hits.is_empty());
    assert_eq!(memory.search(Query::vector([1.0; 3])).unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(memory.search(Query::vector([0.0; 64])).unwrap_err().kind(), ErrorKind::Invalid);
}

#[cfg(feature = "builtin-model")]
mod text {
    use super::*;

    #[test]
    fn a_text_finds_what_is_near_in_meaning() {
        let db = Db::in_memory().unwrap();
        let memory = db.user("alice");
        let given = [
            ("Ana", "I adopted a grey cat called Miso last week"),
            ("Ben", "The train to Porto was two hours late"),
            ("Ana", "My sister is getting married in June"),
            ("Ben", "I started to bake sourdough bread"),
        ];
        let turns = given.map(|(speaker, text)| Turn::new(text).speaker(speaker));
        memory.add_many(turns.to_vec()).unwrap();
        for (question, part) in [
            ("what pet does Ana have?", "cat"),
            ("the wedding of her sister", "married"),
            ("railway delay", "train"),
            ("baking", "bread"),
        ] {
            let recall = memory.search(question).unwrap();
            assert!(recall.hits[0].episode.text.contains(part), "{question}");
            assert_eq!(recall.hits.len(), 4);
            assert!(recall.explain.legs[0].ran);
        }
    }

    #[test]
    fn text_without_a_known_word_is_stored_and_counted_without_a_vector() {
        let db = Db::in_memory().unwrap();
        let memory = db.user("alice");
        memory.add("a plain sentence").unwrap();
        let strange = memory.add("\u{16800}\u{16801}").unwrap();
        assert!(!memory.get(strange.id).unwrap().has_vector);
        let stats = memory.stats().unwrap();
        assert_eq!((stats.episodes, stats.episodes_with_vector), (2, 1));
        let by_vector = Query::text("sentence").mode(SearchMode::Vector);
        assert_eq!(memory.search(by_vector).unwrap().hits.len(), 1);
        let hybrid = memory.search("sentence").unwrap();
        assert_eq!(hybrid.hits.len(), 2);
        assert_eq!(hybrid.hits[1].parts.vector, 0.0, "scored by what else there is");
        assert_eq!(memory.search("").unwrap().hits.len(), 2);
        let recall = memory.search("\u{16800}").unwrap();
        let vector = recall.explain.legs.iter().find(|leg| leg.name == "vector").unwrap();
        assert!(!vector.ran && vector.reason.contains("no word"));
    }

    #[test]
    fn a_given_vector_wins_and_an_update_embeds_anew() {
        let db = Db::in_memory().unwrap();
        let memory = db.user("alice");
        memory.add("the weather is fine").unwrap();
        let added = memory.add("my cat sleeps all day").unwrap();
        let top = |question: &str| memory.search(question).unwrap().hits[0].episode.id;
        assert_eq!(top("a sleeping cat"), added.id);
        memory.update(added.id, Patch::new().text("stock prices fell on Monday")).unwrap();
        assert_eq!(top("the share market"), added.id);
        assert_ne!(top("sunshine and weather"), added.id);
        let vector: Vec<f32> = (0..256).map(|i| if i == 0 { 1.0 } else { 0.0 }).collect();
        memory.update(added.id, Patch::new().vector(vector.clone())).unwrap();
        let hits = memory.search(Query::vector(vector)).unwrap().hits;
        assert_eq!(hits[0].episode.id, added.id);
        assert!((hits[0].score - 1.0).abs() < 1e-5);
    }
}
