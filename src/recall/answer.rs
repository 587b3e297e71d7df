//! From a query to its answer, stage by stage.

use std::ops::Range;
use std::sync::Arc;

use crate::encode::Embedder;
use crate::error::Result;
use crate::ids::EpisodeId;
use crate::index::{IndexCache, UserRows};
use crate::model::Episode;
use crate::simd::Scored;
use crate::storage::segment::unpacked;
use crate::storage::{Direction, Part, Snapshot, Store};

use super::by_words::{ByWords, Memory, SlotPools};
use super::exhaustive;
use super::explain::{Explain, Leg, Stopwatch};
use super::formula::ScoreParts;
use super::found::{Found, Source};
use super::nearest::nearest_rows;
use super::plan::{Plan, Step, Words};
use super::query::Query;
use super::rank::rank;
use super::rows::{Place, RowFilter};
use super::scan::Ground;
use super::serve::{Served, first_depth, serve};
use super::timeline::{Listing, list};

/// An episode in an answer.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Hit {
    /// The stored episode, whole.
    pub episode: Episode,
    /// How well it answers; larger is better. In hybrid mode the sum of `parts`; by vectors alone a cosine, -1 to 1; by
    /// words alone 0 to 1; 0 where nothing was compared. It does not depend on which other episodes were scored.
    pub score: f32,
    /// Why it was found: the parts of the score, such as `words 1.20 + vector 0.61`.
    pub why: String,
    /// The parts of the score.
    pub parts: ScoreParts,
    /// The passage that holds the question's words best, in bytes of the text; `None` when the text is one passage or no
    /// words were compared.
    pub passage: Option<Range<usize>>,
    /// Whether only that passage was counted into the token budget, the whole being too long.
    pub cut: bool,
    /// Tokens of the text, or of the passage when `cut`: 1.3 for each word.
    pub tokens: usize,
    /// Near-duplicates of lower rank that are left out for this one.
    pub folded: usize,
}

impl Hit {
    /// The text to show: the best passage when `cut`, else the whole.
    pub fn shown(&self) -> &str {
        match &self.passage {
            Some(passage) if self.cut => &self.episode.text[passage.clone()],
            _ => &self.episode.text,
        }
    }
}

/// A ranked episode that did not fit into the token budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Omitted {
    /// Its id.
    pub id: EpisodeId,
    /// The tokens it would have taken.
    pub tokens: usize,
}

/// The answer to a search.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Recall {
    /// The episodes found, best first.
    pub hits: Vec<Hit>,
    /// Those that the token budget had no room for, best first.
    pub omitted: Vec<Omitted>,
    /// How they were found.
    pub explain: Explain,
}

/// What searches of one handle keep between them.
#[derive(Debug, Default)]
pub(crate) struct SearchCache {
    index: IndexCache,
    slots: SlotPools,
}

/// Answers `query` from the memory of `user`. `now`: microseconds since the epoch; what expired is not found.
pub(crate) fn search(
    store: &Store,
    cache: &SearchCache,
    embedder: Option<&dyn Embedder>,
    user: &[u8],
    query: Query,
    now: i64,
) -> Result<Recall> {
    let mut search =
        Search { store, cache, user, watch: Stopwatch::start(), explain: Explain::default() };
    let blocks_before = unpacked();
    let plan = Plan::new(query, store.space(), embedder, now)?;
    search.explain.micros.embed = search.watch.lap();
    let served = match &plan.step {
        Step::Nothing(reason) => {
            search.leg("vector", false, reason);
            Served::default()
        }
        Step::Newest => search.newest(&plan)?,
        Step::Vector(vector) => search.by_vector(vector, &plan)?,
        Step::Words(words) => search.by_words(words, &plan)?,
    };
    let Search { mut explain, mut watch, .. } = search;
    explain.micros.fetch += watch.lap();
    explain.bytes_touched += served.bytes;
    explain.unseen = served.unseen;
    explain.blocks_read = unpacked() - blocks_before;
    explain.micros.total = watch.total();
    Ok(Recall { hits: served.hits, omitted: served.omitted, explain })
}

/// A search under way.
struct Search<'a> {
    store: &'a Store,
    cache: &'a SearchCache,
    user: &'a [u8],
    watch: Stopwatch,
    explain: Explain,
}

impl Search<'_> {
    fn leg(&mut self, name: &'static str, ran: bool, reason: &'static str) {
        self.explain.legs.push(Leg::new(name, ran, reason));
    }

    fn snapshot(&mut self) -> Result<Snapshot> {
        let snapshot = self.store.snapshot()?;
        self.explain.micros.snapshot = self.watch.lap();
        Ok(snapshot)
    }

    /// The rows nearest to `vector`.
    fn by_vector(&mut self, vector: &[f32], plan: &Plan) -> Result<Served> {
        self.leg("lexical", false, "the answer is ranked by vectors alone");
        let reason = match plan.exact {
            true => "every row is scored exactly, as asked",
            false => "the query has a vector",
        };
        self.leg("vector", true, reason);
        let snapshot = self.snapshot()?;
        let space = self.store.space();
        let parts = snapshot.parts(self.user)?;
        let filter = RowFilter::new(&snapshot, self.user, &plan.filters)?;
        let rank = |depth: usize| {
            let (watch, explain) = (&mut self.watch, &mut self.explain);
            let ranked = if plan.exact {
                let ranked = exhaustive::search(&parts, vector, space, &filter, depth, explain)?;
                explain.micros.scan += watch.lap();
                ranked
            } else {
                let snapshot = &snapshot;
                let ground =
                    Ground { snapshot, parts: &parts, query: vector, space, filter: &filter };
                let candidates = nearest_rows(ground, &plan.routing, depth, explain)?;
                explain.micros.scan += watch.lap();
                let ranked = rank(candidates, &parts, vector, space, depth, explain)?;
                explain.micros.rerank += watch.lap();
                ranked
            };
            Ok(ranked
                .rows
                .into_iter()
                .map(|(scored, place)| nearest(scored, place, &parts))
                .collect())
        };
        serve(&snapshot, plan, |hit: &Hit| format!("vector {:.2}", hit.score), rank)
    }

    /// The rows that answer a question with words.
    fn by_words(&mut self, words: &Words, plan: &Plan) -> Result<Served> {
        let snapshot = self.snapshot()?;
        let why = |hit: &Hit| hit.parts.to_string();
        let (vector, reason) = match words.vector {
            Ok(_) => (true, "the question has a vector"),
            Err(reason) => (false, reason),
        };
        self.leg("lexical", true, "the question has words");
        self.leg("vector", vector, reason);
        let space = self.store.space();
        let parts = snapshot.parts(self.user)?;
        if plan.exact {
            let (filters, explain) = (&plan.filters, &mut self.explain);
            let all = exhaustive::words(&snapshot, &parts, words, filters, space, explain)?;
            explain.micros.scan = self.watch.lap();
            return serve(&snapshot, plan, why, |depth| {
                Ok(all.iter().take(depth).cloned().collect())
            });
        }
        let rows = UserRows::new(&snapshot, self.user, &parts, &self.cache.index)?;
        let (watch, explain) = (&mut self.watch, &mut self.explain);
        explain.log_rows = rows.log().len().into();
        let depth = first_depth(plan);
        let (rows, parts) = (&rows, &parts[..]);
        let pools = &self.cache.slots;
        let memory = Memory { rows, parts, user: self.user, space, plan, words, pools };
        let mut ranking = ByWords::new(memory, depth, watch, explain)?;
        serve(&snapshot, plan, why, |depth| ranking.rank(depth, watch, explain))
    }

    /// The newest episodes that pass the filters.
    fn newest(&mut self, plan: &Plan) -> Result<Served> {
        self.leg("lexical", false, "the query is empty");
        self.leg("vector", false, "the query is empty");
        self.leg("newest", true, "an empty query lists the newest");
        let snapshot = self.snapshot()?;
        let rank = |depth: usize| newest(&snapshot, self.user, plan, depth);
        serve(&snapshot, plan, |_: &Hit| "newest".into(), rank)
    }
}

/// A row that was ranked by its vector.
fn nearest<'s>(scored: Scored, place: Place, parts: &[Part<'s>]) -> Found<'s> {
    Found {
        score: scored.score,
        id: scored.name,
        parts: ScoreParts { vector: scored.score, ..ScoreParts::default() },
        passage: None,
        source: source_of(place, parts),
    }
}

fn source_of<'s>(place: Place, parts: &[Part<'s>]) -> Source<'s> {
    match &parts[place.part as usize] {
        Part::Cell { segment, .. } => Source::Stored(segment, place.row),
        Part::Log { records } => Source::Log(Arc::clone(&records[place.row as usize])),
    }
}

/// The newest episodes that pass the filters.
fn newest<'s>(
    snapshot: &Snapshot,
    user: &[u8],
    plan: &Plan,
    most: usize,
) -> Result<Vec<Found<'s>>> {
    let listing = Listing {
        times: plan.filters.times.clone(),
        after: None,
        direction: Direction::Descending,
        limit: most,
        session: plan.filters.session.as_deref(),
        passes: &|record| plan.filters.pass(record),
    };
    let found = |record: Arc<crate::model::Record>| Found {
        score: 0.0,
        id: record.id.get(),
        parts: ScoreParts::default(),
        passage: None,
        source: Source::Log(record),
    };
    Ok(list(snapshot, user, &listing)?.into_iter().map(found).collect())
}
