//! From a query to its answer, stage by stage.

use std::sync::Arc;

use crate::encode::Embedder;
use crate::error::Result;
use crate::model::{Episode, Record};
use crate::simd::Scored;
use crate::storage::{Direction, Part, Snapshot, Store};

use super::exhaustive;
use super::explain::{Explain, Leg, Stopwatch};
use super::plan::{Plan, Step};
use super::query::Query;
use super::rank::{Ranked, rank};
use super::rows::{RowFilter, record_at};
use super::scan::scan;
use super::timeline::{Listing, list};

/// An episode in an answer.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Hit {
    /// The stored episode.
    pub episode: Episode,
    /// How well it answers; larger is better. A cosine in -1 to 1; 0 where nothing was compared.
    pub score: f32,
    /// Why it was found, such as `vector 0.61`.
    pub why: String,
}

/// The answer to a search.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Recall {
    /// The episodes found, best first.
    pub hits: Vec<Hit>,
    /// How they were found.
    pub explain: Explain,
}

/// Answers `query` from the memory of `user`. `now`: microseconds since the epoch; what expired is not found.
pub(crate) fn search(
    store: &Store,
    embedder: Option<&dyn Embedder>,
    user: &[u8],
    query: Query,
    now: i64,
) -> Result<Recall> {
    let mut watch = Stopwatch::start();
    let mut explain = Explain::default();
    let plan = Plan::new(query, store.space(), embedder, now)?;
    explain.micros.embed = watch.lap();
    let hits = match &plan.step {
        Step::Nothing(reason) => {
            explain.legs.push(Leg::new("vector", false, reason));
            Vec::new()
        }
        Step::Newest => {
            explain.legs.push(Leg::new("vector", false, "the query is empty"));
            explain.legs.push(Leg::new("newest", true, "an empty query lists the newest"));
            let snapshot = store.snapshot()?;
            explain.micros.snapshot = watch.lap();
            let hits = newest(&snapshot, user, &plan, &mut explain)?;
            explain.micros.fetch = watch.lap();
            hits
        }
        Step::Words(words) => match &words.vector {
            Err(reason) => {
                explain.legs.push(Leg::new("vector", false, reason));
                Vec::new()
            }
            Ok(vector) => {
                let snapshot = store.snapshot()?;
                nearest(store, &snapshot, user, vector, &plan, &mut watch, &mut explain)?
            }
        },
        Step::Vector(vector) => {
            let reason = match plan.exact {
                true => "every row is scored exactly, as asked",
                false => "the query has a vector",
            };
            explain.legs.push(Leg::new("vector", true, reason));
            let snapshot = store.snapshot()?;
            explain.micros.snapshot = watch.lap();
            nearest(store, &snapshot, user, vector, &plan, &mut watch, &mut explain)?
        }
    };
    explain.micros.total = watch.total();
    Ok(Recall { hits, explain })
}

/// The rows nearest to `vector`.
fn nearest(
    store: &Store,
    snapshot: &Snapshot,
    user: &[u8],
    vector: &[f32],
    plan: &Plan,
    watch: &mut Stopwatch,
    explain: &mut Explain,
) -> Result<Vec<Hit>> {
    let space = store.space();
    let parts = snapshot.parts(user)?;
    let filter = RowFilter::new(snapshot, user, &plan.filters)?;
    let ranked = if plan.exact {
        let ranked = exhaustive::search(&parts, vector, space, &filter, plan.top_k, explain)?;
        explain.micros.scan = watch.lap();
        ranked
    } else {
        let candidates = scan(snapshot, &parts, vector, space, plan, &filter, explain)?;
        explain.micros.scan = watch.lap();
        let ranked = rank(candidates, &parts, vector, space, plan.top_k, explain)?;
        explain.micros.rerank = watch.lap();
        ranked
    };
    let hits = fetch(snapshot, &parts, ranked, explain)?;
    explain.micros.fetch = watch.lap();
    Ok(hits)
}

/// Reads the episodes of the ranked rows.
fn fetch(
    snapshot: &Snapshot,
    parts: &[Part<'_>],
    ranked: Ranked,
    explain: &mut Explain,
) -> Result<Vec<Hit>> {
    let read = |(scored, place): (Scored, _)| {
        let record = record_at(snapshot, parts, place)?;
        explain.bytes_touched += record.body.text.len() as u64;
        Ok(Hit {
            episode: Episode::from_record(&record)?,
            score: scored.score,
            why: format!("vector {:.2}", scored.score),
        })
    };
    ranked.rows.into_iter().map(read).collect()
}

/// The newest episodes that pass the filters.
fn newest(
    snapshot: &Snapshot,
    user: &[u8],
    plan: &Plan,
    explain: &mut Explain,
) -> Result<Vec<Hit>> {
    let listing = Listing {
        times: plan.filters.times.clone(),
        after: None,
        direction: Direction::Descending,
        limit: plan.top_k,
        session: plan.filters.session.as_deref(),
        now: plan.filters.now,
    };
    let records = list(snapshot, user, &listing)?;
    let hit = |record: &Arc<Record>| {
        explain.bytes_touched += record.body.text.len() as u64;
        Ok(Hit { episode: Episode::from_record(record)?, score: 0.0, why: "newest".into() })
    };
    records.iter().map(hit).collect()
}
