//! Stores a data set, asks its questions and scores the answers.

use std::collections::HashMap;
use std::time::Instant;

use loomdb::{
    Db, Hit, Maintenance, Memory, OpenOptions, Query, Result, Timestamp, Turn, ZonedTime,
};

use super::data::{Conversation, Set};
use super::metrics::{RANKS, tokens};
use super::plain::{Bm25, Vectors, fuse};
use super::report::{Block, Latency, Ranking, Report};
use crate::import::item::Item;
use crate::temporary::Temporary;

/// Turns stored at once.
const BATCH_TURNS: usize = 4096;
/// Tokens above which a turn enters an answer of bounded size as its best passage, as in a search with a budget.
const LONG_TURN_TOKENS: usize = 150;
/// Answers of a search whose time is taken: the default of a search.
const TIMED_TOP: usize = 10;

/// Evaluates the search on `set`; with `compare`, the yardsticks too.
///
/// # Errors
/// Those of the database; `Io` when there is no room for it in the directory for temporary files.
pub fn retrieval(set: &Set, compare: bool) -> Result<Report> {
    let temporary = Temporary::new("eval")?;
    // No thread of its own: the same rows lie in the same segments in every run, and no checkpoint takes time from a
    // search that is measured.
    let options = OpenOptions::new().maintenance(Maintenance::Inline);
    let db = Db::open_with(temporary.path().join("eval.loom"), options)?;
    store(&db, set)?;
    let mut search = Block::default();
    let mut micros = Vec::with_capacity(set.questions());
    for conversation in &set.conversations {
        ask(&db.user(&conversation.id), conversation, &mut search, &mut micros)?;
    }
    let compared = if compare { yardsticks(&db, set)? } else { Vec::new() };
    Ok(Report {
        set: set.name.clone(),
        queries: set.questions(),
        turns: set.turns(),
        embedder: db.stats()?.space_name,
        search,
        latency: Latency::of(micros),
        compared,
    })
}

/// Stores every conversation as one user's memory, and moves everything into segments.
fn store(db: &Db, set: &Set) -> Result<()> {
    for conversation in &set.conversations {
        for batch in conversation.turns.chunks(BATCH_TURNS) {
            let turns: Vec<Turn> = batch.iter().cloned().map(Item::into_turn).collect();
            db.user(&conversation.id).add_many(turns)?;
        }
    }
    db.checkpoint()?;
    db.merge()?;
    Ok(())
}

/// Asks every question of a conversation twice: for the ranking, and for the time of an ordinary search.
fn ask(
    memory: &Memory,
    conversation: &Conversation,
    block: &mut Block,
    micros: &mut Vec<f64>,
) -> Result<()> {
    let places: HashMap<&str, usize> = conversation
        .turns
        .iter()
        .zip(0..)
        .map(|(turn, place)| (turn.key.as_str(), place))
        .collect();
    for question in &conversation.questions {
        let query = |top_k| query(&question.text, top_k, conversation.asked_at);
        let recall = memory.search(query(RANKS))?;
        let mut ranking = Ranking::default();
        for hit in &recall.hits {
            let place = hit.episode.key.as_deref().and_then(|key| places.get(key));
            let place =
                *place.expect("the memory holds the turns of the conversation and no others");
            let whole = conversation.tokens[place];
            ranking.turns.push(place);
            ranking.tokens.push(tokens_in_answer(hit, whole));
            ranking.whole_tokens.push(whole);
        }
        block.add(&question.category, &ranking, &question.gold);

        let query = query(TIMED_TOP);
        let begin = Instant::now();
        let recall = memory.search(query)?;
        micros.push(begin.elapsed().as_secs_f64() * 1e6);
        drop(recall);
    }
    Ok(())
}

/// A question as it is asked.
fn query(text: &str, top_k: usize, asked_at: Timestamp) -> Query {
    Query::text(text).top_k(top_k).query_time(ZonedTime::utc(asked_at))
}

/// Tokens of a hit in an answer of bounded size: a long turn enters as its best passage.
fn tokens_in_answer(hit: &Hit, whole: usize) -> usize {
    match &hit.passage {
        Some(passage) if whole > LONG_TURN_TOKENS => {
            whole.min(tokens(&hit.episode.text[passage.clone()]))
        }
        _ => whole,
    }
}

/// The same questions to plain BM25, to plain vectors, and to the fusion of their ranks.
fn yardsticks(db: &Db, set: &Set) -> Result<Vec<(&'static str, Block)>> {
    let [mut lexical, mut nearest, mut fused] = [(); 3].map(|()| Block::default());
    let embedder = db.embedder().expect("a new database has the built-in model, or none is made");
    for conversation in &set.conversations {
        let turns = &conversation.turns;
        let bm25 = Bm25::new(turns);
        let vectors = Vectors::new(embedder, turns)?;
        for question in &conversation.questions {
            let by_words = bm25.rank(&question.text);
            let by_vector = vectors.rank(&question.text)?;
            let both = fuse([&by_words, &by_vector], turns.len());
            let add = |block: &mut Block, mut turns: Vec<usize>| {
                turns.truncate(RANKS);
                let tokens: Vec<usize> =
                    turns.iter().map(|place| conversation.tokens[*place]).collect();
                let ranking = Ranking { turns, tokens: tokens.clone(), whole_tokens: tokens };
                block.add(&question.category, &ranking, &question.gold);
            };
            add(&mut lexical, by_words);
            add(&mut nearest, by_vector);
            add(&mut fused, both);
        }
    }
    Ok(vec![("plain_bm25", lexical), ("plain_vectors", nearest), ("rank_fusion", fused)])
}
