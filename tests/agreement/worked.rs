//! The definition against sums worked out by hand: small memories whose scores can be written down.
//!
//! No formula of the library is called. With `k1` 1 and `b` 0 a question of one word scores f / (f + 1), where f is how
//! often a passage holds the word, borrowed shares included: whatever the idf.

use std::sync::Arc;

use loomdb::{
    Db, Embedder, Embedding, Hit, Maintenance, Memory, MetadataFilter, OpenOptions, Query,
    RecallOptions, SearchMode, Turn, ZonedTime,
};
use serde_json::json;

/// Once in the text.
const WHOLE: f32 = 1.0 / 2.0;
/// Half of it: from the previous turn, or in the date.
const HALF: f32 = 0.5 / 1.5;
/// From the turn before the previous one.
const FIFTH: f32 = 0.2 / 1.2;
/// From the next turn.
const THIRD: f32 = 0.3 / 1.3;

fn zoned(text: &str) -> ZonedTime {
    ZonedTime::parse(text).unwrap()
}

/// On 7 May 2023, whose date comes to two terms: "may" is a stop word.
fn at(hour: u8, text: &str) -> Turn {
    Turn::new(text).time(zoned(&format!("2023-05-07T{hour:02}:00:00Z")))
}

fn said(hour: u8, text: &str) -> Turn {
    at(hour, text).session("s")
}

/// Knows no word: only turns and questions that bring a vector have one.
struct Wordless;

impl Embedder for Wordless {
    fn name(&self) -> &str {
        "wordless"
    }

    fn dimension(&self) -> usize {
        2
    }

    fn embed(&self, texts: &[&str], out: &mut Vec<f32>) -> loomdb::Result<Vec<bool>> {
        out.resize(out.len() + 2 * texts.len(), 0.0);
        Ok(vec![false; texts.len()])
    }
}

fn database() -> Db {
    let embedding = Embedding::Custom(Arc::new(Wordless));
    let options = OpenOptions::new().maintenance(Maintenance::Manual).embedding(embedding);
    Db::open_with(":memory:", options).unwrap()
}

fn simple() -> RecallOptions {
    let mut weights = RecallOptions::default();
    (weights.k1, weights.b) = (1.0, 0.0);
    weights
}

/// Shows `check` the same memory in the log, in a segment, and with its last turn written anew into the log.
fn in_each_state(turns: Vec<Turn>, check: impl Fn(&Memory)) {
    let db = database();
    let memory = db.user("u");
    // Another user's words count for nothing.
    db.user("v").add(said(1, "kayak river tent lake").vector([1.0, 0.0])).unwrap();
    memory.add_many(turns.clone()).unwrap();
    check(&memory);
    assert!(db.checkpoint().unwrap());
    check(&memory);

    let db = database();
    let memory = db.user("u");
    let (last, first) = turns.split_last().unwrap();
    memory.add_many(first.to_vec()).unwrap();
    assert!(first.is_empty() || db.checkpoint().unwrap());
    memory.add(last.clone()).unwrap();
    check(&memory);
}

/// The answer by the definition, which the ordinary search has to give too.
fn hits(memory: &Memory, query: Query) -> Vec<Hit> {
    let defined = memory.search(query.clone().exact(true)).unwrap().hits;
    assert_eq!(memory.search(query).unwrap().hits, defined);
    defined
}

/// The first words and the scores of the answer to a question by words alone.
#[track_caller]
fn check_lexical(memory: &Memory, query: Query, expected: &[(&str, f32)]) {
    let hits = hits(memory, query.mode(SearchMode::Lexical));
    check_scores(&hits, expected);
    for hit in &hits {
        assert_eq!((hit.parts.lexical, hit.parts.neighbours), (hit.score, 0.0));
    }
}

#[track_caller]
fn check_scores(hits: &[Hit], expected: &[(&str, f32)]) {
    let first = |hit: &Hit| hit.episode.text.split(' ').next().unwrap().to_owned();
    let told: Vec<(String, f32)> = hits.iter().map(|hit| (first(hit), hit.score)).collect();
    assert_eq!(told.len(), expected.len(), "{told:?}");
    for ((word, score), (wanted, wanted_score)) in told.iter().zip(expected) {
        assert!(word == wanted && near(*score, *wanted_score), "{told:?} is not {expected:?}");
    }
}

fn near(a: f32, b: f32) -> bool {
    (a - b).abs() < 2e-5
}

fn simply(text: &str) -> Query {
    Query::text(text).weights(simple())
}

#[test]
fn words_are_borrowed_from_three_neighbours_of_the_session() {
    // Written late and out of order; turns of other sessions and of none stand between.
    let turns = vec![
        said(5, "lake"),
        said(3, "kayak"),
        at(3, "cloud").session("other"),
        at(4, "stone"),
        said(1, "garden"),
        said(4, "tent"),
        said(6, "rain"),
        said(2, "river"),
    ];
    in_each_state(turns, |memory| {
        let expected = [("kayak", WHOLE), ("tent", HALF), ("river", THIRD), ("lake", FIFTH)];
        check_lexical(memory, simply("kayak"), &expected);
    });
}

#[test]
fn a_long_turn_borrows_at_its_ends_and_lends_from_them() {
    let middle = "quiet river water. ".repeat(58);
    let long = format!("zebra river water. {middle}walrus river water.");
    let turns = vec![said(1, "kayak"), said(2, &long), said(3, "lantern"), said(4, "meadow")];
    in_each_state(turns, |memory| {
        let passage = |question: &str, first: &str| {
            let hits = hits(memory, simply(question).mode(SearchMode::Lexical));
            let hit = hits.iter().find(|hit| hit.episode.text.starts_with(first)).unwrap();
            hit.passage.clone().map(|range| range.start > 0)
        };
        let expected = [("kayak", WHOLE), ("zebra", HALF), ("lantern", FIFTH)];
        check_lexical(memory, simply("kayak"), &expected);
        assert_eq!(passage("kayak", "zebra"), Some(false));
        let expected = [("lantern", WHOLE), ("meadow", HALF), ("zebra", THIRD)];
        check_lexical(memory, simply("lantern"), &expected);
        assert_eq!(passage("lantern", "zebra"), Some(true));
        assert_eq!(passage("lantern", "meadow"), None);
        // The first passage lends to the turn before, the last one to those behind.
        check_lexical(memory, simply("zebra"), &[("zebra", WHOLE), ("kayak", THIRD)]);
        let expected = [("zebra", WHOLE), ("lantern", HALF), ("meadow", FIFTH)];
        check_lexical(memory, simply("walrus"), &expected);
        // A passage has its own words and what is borrowed at its end of the turn, not at the other.
        let (own, after) = (2.0 * WHOLE / 3.0, (2.0 * HALF + FIFTH) / 3.0);
        let expected = [
            ("zebra", own),
            ("lantern", after),
            ("kayak", WHOLE / 3.0),
            ("meadow", 2.0 * FIFTH / 3.0),
        ];
        check_lexical(memory, simply("kayak walrus walrus"), &expected);
        let expected = [
            ("zebra", own),
            ("lantern", WHOLE / 3.0),
            ("kayak", 2.0 * THIRD / 3.0),
            ("meadow", HALF / 3.0),
        ];
        check_lexical(memory, simply("lantern zebra zebra"), &expected);
        // Both passages have the date: the first of equal ones is named.
        assert_eq!(passage("2023", "zebra"), Some(false));
    });
}

#[test]
fn rare_words_and_short_passages_count_more() {
    // Own lengths with the date's two halves: 2, 5 and 2; 3 on average.
    let turns = vec![at(1, "kayak"), at(2, "lake kayak river tent"), at(3, "tent")];
    in_each_state(turns, |memory| {
        // 1 / (1 + .9 (.6 + .4 length / 3))
        let (short, long) = (1.0 / 1.78, 1.0 / 2.14);
        let kayak = || [("kayak", short), ("lake", long)];
        check_lexical(memory, Query::text("kayak"), &kayak());
        // Words that nobody says change nothing.
        check_lexical(memory, Query::text("zebra kayak walrus"), &kayak());
        // idf of "kayak" ln(1 + 1.5 / 2.5), of "river" ln(1 + 2.5 / 1.5).
        let (kayak, river) = (0.470_004_f32, 0.980_829_f32);
        let share = kayak / 1.78 / (kayak + river);
        check_lexical(memory, Query::text("kayak river"), &[("lake", long), ("kayak", share)]);
        let share = 2.0 * kayak / 1.78 / (2.0 * kayak + river);
        let twice = [("lake", long), ("kayak", share)];
        check_lexical(memory, Query::text("kayak and kayak by the river"), &twice);
        let (short, long) = (0.5 / 1.28, 0.5 / 1.64);
        let dated = [("kayak", short), ("tent", short), ("lake", long)];
        check_lexical(memory, Query::text("2023"), &dated);
    });
}

#[test]
fn lengths_borrow_as_words_do() {
    in_each_state(vec![said(1, "kayak"), said(2, "tent")], |memory| {
        // Lengths 2 + .3 and 2 + .5 of 2 on average, and nothing else in the norm.
        let mut weights = simple();
        weights.b = 1.0;
        let expected = [("kayak", 1.0 / 2.15), ("tent", 0.5 / 1.75)];
        check_lexical(memory, Query::text("kayak").weights(weights), &expected);
    });
}

#[test]
fn what_expired_or_is_filtered_lends_and_what_is_deleted_does_not() {
    let expired = zoned("2023-06-01T00:00:00Z").time;
    let turns = vec![
        said(1, "kayak").expires(expired).speaker("Bob").metadata(json!({ "n": 1 })),
        said(2, "tent").speaker("Ann Lee").metadata(json!({ "n": 2 })),
        said(3, "lake").speaker("Ann Lee"),
    ];
    in_each_state(turns.clone(), |memory| {
        check_lexical(memory, simply("kayak"), &[("tent", HALF), ("lake", FIFTH)]);
        let two = MetadataFilter::from_json(&json!({ "n": 2 })).unwrap();
        check_lexical(memory, simply("kayak").filter(two), &[("tent", HALF)]);
        let none = MetadataFilter::from_json(&json!({ "n": 1 })).unwrap();
        check_lexical(memory, simply("kayak").filter(none), &[]);
        let late = zoned("2023-05-07T03:00:00Z").time;
        check_lexical(memory, simply("kayak").since(late), &[("lake", FIFTH)]);
        check_lexical(memory, simply("kayak").until(late), &[("tent", HALF)]);
        check_lexical(memory, simply("tent").speaker("Ann Lee").since(late), &[("lake", HALF)]);
        check_lexical(memory, simply("kayak").speaker("Ann"), &[]);
        check_lexical(memory, simply("kayak").session("t"), &[]);
    });
    let db = database();
    let memory = db.user("u");
    let first = memory.add_many(turns).unwrap()[0].id;
    db.checkpoint().unwrap();
    memory.delete(first).unwrap();
    check_lexical(&memory, simply("kayak"), &[]);
    // Nobody stands before it any more.
    check_lexical(&memory, simply("tent"), &[("tent", WHOLE), ("lake", HALF)]);
}

#[test]
fn a_hybrid_score_is_the_sum_of_its_parts() {
    let turns = vec![
        said(1, "kayak tent").speaker("Ann Lee").vector([1.0, 0.0]),
        said(2, "tent").speaker("Bob"),
        at(3, "lake").vector([0.0, 1.0]),
    ];
    in_each_state(turns, |memory| {
        let query = || simply("Ann kayak?").with_vector([0.6, 0.8]);
        let all = hits(memory, query());
        check_scores(&all, &[("kayak", 2.903_033), ("lake", 1.823_105), ("tent", 1.442_792)]);
        // Both words, one of them the speaker's name; (.6 + .2 x 0) / 1.2 of the vectors; ln(3) / 3 of the length; a
        // tenth of the next one's own score.
        let ann = all[0].parts;
        assert!(near(ann.lexical, 1.0) && near(ann.vector, 0.75) && near(ann.speaker, 0.4));
        assert!(near(ann.length, 0.036_620) && near(ann.concise, 0.6));
        assert!(near(ann.neighbours, 0.116_413) && ann.when == 0.0 && ann.range == 0.0);
        // Nothing stands beside it.
        let alone = all[1].parts;
        assert!(near(alone.vector, 1.2) && alone.lexical == 0.0 && alone.neighbours == 0.0);
        // No vector of its own, .3 of the previous one's; the text is borrowed and the speaker's name is not.
        let bob = all[2].parts;
        assert!(near(bob.lexical, 2.0 * HALF / 2.0) && near(bob.vector, 1.5 * 0.18 / 1.3));
        assert!(bob.speaker == 0.0 && near(bob.neighbours, 0.278_662));
        // A filter changes no score.
        check_scores(&hits(memory, query().speaker("Bob")), &[("tent", 1.442_792)]);
        // Without a vector of the question there are no cosines, with or without neighbours.
        let without = hits(memory, simply("Ann kayak?"));
        assert!(without.len() == 3 && without.iter().all(|hit| hit.parts.vector == 0.0));
    });
}

#[test]
fn a_long_turn_takes_less_from_its_neighbours() {
    let turns = vec![
        said(1, "river ".repeat(120).trim()).vector([1.0, 0.0]),
        said(2, "tent").vector([0.0, 1.0]),
    ];
    in_each_state(turns, |memory| {
        let all = hits(memory, simply("zebra").with_vector([1.0, 0.0]));
        let (long, short) = (all[0].parts, all[1].parts);
        // Half open: 1 / (1 + .2 / 2) of the vectors, half of the conciseness.
        assert!(near(long.vector, 1.5 / 1.1) && near(long.concise, 0.3) && near(long.length, 0.1));
        // Own scores 1.763636 and .969259.
        assert!(near(long.neighbours, 0.1 * (0.5 * 0.969_259 + 0.5 * 1.763_636)));
        assert!(near(short.vector, 1.5 * 0.3 / 1.3) && near(short.neighbours, 0.176_364));
        assert!(long.lexical == 0.0 && short.lexical == 0.0);
    });
}

#[test]
fn days_that_a_question_names_are_widened_and_local() {
    let on = |time: &str, text: &str| Turn::new(text).time(zoned(time));
    let turns = vec![
        on("2023-05-15T23:30:00Z", "early"),
        on("2023-05-16T01:30:00+02:00", "first swam last week"),
        on("2023-06-02T23:00:00Z", "final"),
        on("2023-06-03T00:00:00Z", "late swam last week"),
    ];
    in_each_state(turns, |memory| {
        // Yesterday is 19 May: 16 May to 2 June.
        let query = simply("When, if not yesterday?").query_time(zoned("2023-05-20T12:00:00Z"));
        let mut told: Vec<_> = hits(memory, query)
            .iter()
            .map(|hit| {
                let word = hit.episode.text.split(' ').next().unwrap().to_owned();
                (word, hit.parts.range, hit.parts.when)
            })
            .collect();
        told.sort_by(|a, b| a.0.cmp(&b.0));
        let expected = [("early", 0.0, 0.0), ("final", 0.2, 0.0), ("first", 0.2, 0.1)];
        let expected = expected.into_iter().chain([("late", 0.0, 0.1)]);
        assert!(told.iter().map(|(word, a, b)| (word.as_str(), *a, *b)).eq(expected), "{told:?}");
    });
}

#[test]
fn equal_scores_go_to_the_smaller_id() {
    let turns = (1..=9).rev().map(|hour| at(hour, "kayak").vector([1.0, 0.0])).collect();
    in_each_state(turns, |memory| {
        for mode in [SearchMode::Hybrid, SearchMode::Lexical] {
            let query = || simply("kayak").with_vector([1.0, 0.0]).mode(mode);
            let ids = |top_k| -> Vec<_> {
                hits(memory, query().top_k(top_k)).iter().map(|hit| hit.episode.id).collect()
            };
            assert!(ids(9).len() == 9 && ids(9).is_sorted());
            assert_eq!(ids(4), ids(9)[..4]);
        }
    });
}
