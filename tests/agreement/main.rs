//! The ordinary search against its definition: equal episodes with equal scores, to the last bit, whatever has been
//! written, changed, deleted, checkpointed, merged and opened again in between.

mod memory;
mod worked;

use std::collections::HashMap;

use loomdb::{
    EpisodeId, Hit, Memory, MetadataFilter, Query, RecallOptions, ScoreParts, SearchMode, ZonedTime,
};
use proptest::prelude::*;
use serde_json::json;

use memory::{Life, Op, TEXTS, ops};

/// What an answer says of an episode.
type Told = (EpisodeId, u32, ScoreParts, Option<std::ops::Range<usize>>);

fn told(hit: &Hit) -> Told {
    (hit.episode.id, hit.score.to_bits(), hit.parts, hit.passage.clone())
}

fn answer(memory: &Memory, query: Query) -> Vec<Told> {
    memory.search(query).unwrap().hits.iter().map(told).collect()
}

/// A question as plain numbers, so that it can be asked in several ways.
#[derive(Clone, Debug)]
struct Asked {
    text: String,
    mode: SearchMode,
    filter: u8,
    top_k: usize,
    weights: u8,
    fold: bool,
}

impl Asked {
    fn query(&self) -> Query {
        let time = |text: &str| ZonedTime::parse(text).unwrap();
        let query = Query::text(self.text.as_str())
            .mode(self.mode)
            .top_k(self.top_k)
            .weights(weights(self.weights))
            .fold(self.fold)
            .query_time(time("2023-05-20T10:00:00Z"));
        match self.filter {
            0 => query.session("s1"),
            1 => query.speaker("Ann Lee"),
            2 => query.since(time("2023-05-03T00:00:00Z").time),
            3 => query.filter(MetadataFilter::from_json(&json!({ "n": { "gte": 2 } })).unwrap()),
            4 => query.speaker("nobody"),
            5 => query.until(time("2023-05-03T00:00:00Z").time).session("s2"),
            _ => query,
        }
    }
}

/// The defaults, and weights at the ends of what is accepted.
fn weights(number: u8) -> RecallOptions {
    let mut weights = RecallOptions::default();
    match number {
        0 => (weights.k1, weights.b) = (0.0, 1.0),
        1 => (weights.words_previous, weights.words_next, weights.spread) = (0.0, 3.0, 5.0),
        2 => (weights.lexical, weights.vector, weights.long_words) = (0.0, 0.0, 0.0),
        3 => (weights.vector, weights.vector_previous, weights.speaker) = (40.0, 0.0, 7.0),
        _ => {}
    }
    weights
}

fn asked() -> impl Strategy<Value = Asked> {
    let word = prop::sample::select(vec![
        "lake",
        "hikes",
        "Ann",
        "Bob's",
        "when",
        "did",
        "I",
        "POL-358",
        "May",
        "yesterday",
        "dog",
        "über",
        "東京",
        "the",
        "?",
        "user",
        "2023",
        "kayak",
    ]);
    let text = prop_oneof![
        3 => prop::collection::vec(word, 1..6).prop_map(|words| words.join(" ")),
        1 => prop::sample::select(TEXTS.to_vec()).prop_map(str::to_owned),
    ];
    let mode = prop_oneof![
        3 => Just(SearchMode::Hybrid),
        1 => Just(SearchMode::Lexical),
        1 => Just(SearchMode::Vector),
    ];
    let top_k = prop_oneof![Just(3usize), Just(10), Just(500)];
    (text, mode, 0..12u8, top_k, 0..12u8, prop::bool::weighted(0.2)).prop_map(
        |(text, mode, filter, top_k, weights, fold)| Asked {
            text,
            mode,
            filter,
            top_k,
            weights,
            fold,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(48) })]

    #[test]
    fn every_state_answers_as_the_definition_says(
        rounds in prop::collection::vec((ops(), prop::collection::vec(asked(), 1..6)), 1..5),
    ) {
        let mut life = Life::begin();
        for (ops, questions) in rounds {
            for op in ops {
                life.take(op);
            }
            for question in &questions {
                for user in ["u", "v"] {
                    check(&life.memory(user), question)?;
                }
            }
            let users = ["u", "v"];
            let answers = |life: &Life| -> Vec<Vec<Told>> {
                let all = questions.iter().flat_map(|question| users.map(|user| (question, user)));
                all.map(|(question, user)| answer(&life.memory(user), question.query())).collect()
            };
            let before = answers(&life);
            for op in [Op::Reopen, Op::Checkpoint, Op::Merge, Op::Reopen] {
                life.take(op.clone());
                prop_assert_eq!(&answers(&life), &before, "after {:?}", op);
            }
        }
    }
}

fn check(memory: &Memory, question: &Asked) -> Result<(), TestCaseError> {
    let defined = answer(memory, question.query().exact(true));
    prop_assert_eq!(&answer(memory, question.query()), &defined);
    // What is chosen may miss an episode, and tells no other score of one. Fewer than asked for are all there are.
    let all = answer(memory, question.query().exact(true).fold(false).top_k(10_000));
    let all: HashMap<EpisodeId, Told> = all.into_iter().map(|told| (told.0, told)).collect();
    let routed = answer(memory, question.query().route_above(0));
    if routed.len() < question.top_k {
        prop_assert_eq!(&routed, &defined);
    }
    for told in routed {
        prop_assert_eq!(Some(&told), all.get(&told.0));
    }
    Ok(())
}

/// A memory that is large enough for codes.
#[test]
fn a_routed_search_finds_what_the_whole_one_finds() {
    let mut life = Life::begin();
    for number in 0..3_000u32 {
        life.take(Op::Add(memory::generated(number)));
    }
    life.take(Op::Checkpoint);
    for number in 3_000..3_100 {
        life.take(Op::Add(memory::generated(number)));
    }
    let memory = life.memory("u");
    let (mut common, mut wanted) = (0, 0);
    for number in (0..3_100u32).step_by(31) {
        let text = memory::question(number);
        let query = || Query::text(text.as_str()).top_k(10);
        let whole = answer(&memory, query());
        let routed = answer(&memory, query().route_above(0));
        assert_eq!(routed.len(), 10);
        wanted += whole.len();
        common += routed.iter().filter(|told| whole.contains(told)).count();
    }
    println!("overlap@10 of routed and whole: {:.4}", common as f64 / wanted as f64);
    assert!(common * 100 >= wanted * 97, "{common} of {wanted}");
}

/// Folding asks for a deeper ranking, and what is chosen at first misses turns that the whole has in its midst.
#[test]
fn a_folded_answer_names_each_episode_once_however_often_it_is_ranked() {
    for copies in 12..18 {
        let mut life = Life::begin();
        let texts = std::iter::repeat_n(TEXTS[0], copies).chain(TEXTS[1..8].iter().copied());
        for text in texts {
            life.take(Op::Add(memory::plain(text)));
        }
        let query = || Query::text("lake").fold(true);
        let routed = answer(&life.memory("u"), query().route_above(0));
        assert_eq!(routed, answer(&life.memory("u"), query().exact(true)), "{copies} copies");
        assert_eq!(routed.len(), 8);
    }
}
