//! Decides what a search does, from the query alone: which legs run, what filters hold, how many rows are re-ranked.

use std::ops::Range;

use crate::encode::Embedder;
use crate::error::{Error, Result};
use crate::model::{Record, VectorSpace, parse_metadata};
use crate::options::{
    BUDGET_RANKS_MAX, RERANK_MEASURED_ROWS, RERANK_ROWS_MIN, RERANK_ROWS_PER_HIT, RecallOptions,
    RoutingOptions, TEXT_BYTES_MAX, TOP_K_DEFAULT, TOP_K_MAX,
};
use crate::time::{Timestamp, ZonedTime};

use super::filter::MetadataFilter;
use super::query::{Query, SearchMode};
use super::question::Question;

/// What a search does.
#[derive(Debug)]
pub(super) struct Plan {
    pub step: Step,
    pub filters: Filters,
    pub top_k: usize,
    pub max_tokens: Option<usize>,
    /// Near-duplicates are folded.
    pub fold: bool,
    /// Score every row by the definition instead of choosing candidates.
    pub exact: bool,
    /// How candidates are chosen.
    pub routing: RoutingOptions,
    /// Whether they are to be listed.
    pub list_candidates: bool,
}

/// The legs that run.
#[derive(Debug)]
pub(super) enum Step {
    /// Compare this vector, of unit length, with the stored ones.
    Vector(Vec<f32>),
    /// Score by the words of the question, and by what else the mode takes.
    Words(Box<Words>),
    /// List the newest.
    Newest,
    /// Nothing can be found, for this reason.
    Nothing(&'static str),
}

/// The vector of a question, of unit length; or why there is none.
pub(super) type VectorOrReason = std::result::Result<Vec<f32>, &'static str>;

/// What a question with words is scored by.
#[derive(Debug)]
pub(super) struct Words {
    pub question: Question,
    pub vector: VectorOrReason,
    /// Words alone: [`SearchMode::Lexical`].
    pub alone: bool,
    pub weights: RecallOptions,
}

/// What every row of the answer must meet.
#[derive(Clone, Debug)]
pub(super) struct Filters {
    /// Times, microseconds since the epoch.
    pub times: Range<i64>,
    pub session: Option<String>,
    pub speaker: Option<String>,
    pub metadata: Option<MetadataFilter>,
    /// Rows that expired at this time or before are not readable.
    pub now: i64,
}

impl Filters {
    /// Whether every readable row passes.
    pub fn are_open(&self) -> bool {
        self.times == (i64::MIN..i64::MAX)
            && self.session.is_none()
            && self.speaker.is_none()
            && self.metadata.is_none()
    }

    /// Whether a live record passes.
    ///
    /// # Errors
    /// `Corrupt` when its metadata is no JSON object.
    pub fn pass(&self, record: &Record) -> Result<bool> {
        Ok(self.pass_columns(record) && self.pass_metadata(record)?)
    }

    /// Whether a live record passes all but the filter on metadata.
    pub fn pass_columns(&self, record: &Record) -> bool {
        let is = |wanted: &Option<String>, has: &Option<String>| wanted.is_none() || wanted == has;
        self.times.contains(&record.time)
            && record.expires > self.now
            && is(&self.session, &record.body.session)
            && is(&self.speaker, &record.body.speaker)
    }

    /// Whether a record's metadata passes.
    ///
    /// # Errors
    /// `Corrupt` when the metadata is no JSON object.
    pub fn pass_metadata(&self, record: &Record) -> Result<bool> {
        let Some(filter) = &self.metadata else { return Ok(true) };
        let metadata = parse_metadata(&record.body.metadata).ok_or_else(|| {
            Error::corrupt("metadata of an episode is no JSON object").of(record.id.get())
        })?;
        Ok(filter.matches(&metadata))
    }
}

impl Plan {
    /// Plans `query` for a database of `space`. Embeds the text, if there is one and `embedder` can.
    ///
    /// # Errors
    /// `Invalid` and `Limit` as [`crate::Memory::search`] says.
    pub fn new(
        query: Query,
        space: &VectorSpace,
        embedder: Option<&dyn Embedder>,
        now: i64,
    ) -> Result<Plan> {
        query.weights.check()?;
        let top_k = top_k(&query)?;
        let filters = Filters {
            times: time_range(query.since, query.until)?,
            session: query.session.clone(),
            speaker: query.speaker.clone(),
            metadata: query.filter.clone().filter(|filter| !filter.is_empty()),
            now,
        };
        let (max_tokens, fold, exact) = (query.max_tokens, query.fold, query.exact);
        let (routing, list_candidates) = (query.routing, query.list_candidates);
        routing.check()?;
        let step = step(query, space, embedder, now)?;
        Ok(Plan { step, filters, top_k, max_tokens, fold, exact, routing, list_candidates })
    }
}

/// Rows that the scan of codes hands to exact re-ranking for `depth` answers out of `rows` rows: the fewer there are, the
/// farther apart lie the best.
pub(super) fn rerank_rows(depth: usize, rows: usize) -> usize {
    let share = (rows as f64 / RERANK_MEASURED_ROWS as f64).sqrt().sqrt().clamp(0.6, 2.0);
    let most = RERANK_ROWS_MIN.max(depth.saturating_mul(RERANK_ROWS_PER_HIT));
    (most as f64 * share) as usize
}

fn top_k(query: &Query) -> Result<usize> {
    match query.top_k {
        Some(0) => Err(Error::invalid("top_k is 0")),
        Some(top_k) if top_k > TOP_K_MAX => {
            Err(Error::limit(format!("top_k is {top_k}, at most {TOP_K_MAX} is allowed")))
        }
        Some(top_k) => Ok(top_k),
        None if query.max_tokens.is_some() => Ok(BUDGET_RANKS_MAX),
        None => Ok(TOP_K_DEFAULT),
    }
}

fn step(
    query: Query,
    space: &VectorSpace,
    embedder: Option<&dyn Embedder>,
    now: i64,
) -> Result<Step> {
    let given = match query.vector {
        Some(mut vector) => {
            space.admit(&mut vector)?;
            Some(vector)
        }
        None => None,
    };
    let Some(text) = query.text else {
        return match (given, query.mode) {
            (Some(vector), None | Some(SearchMode::Vector)) => Ok(Step::Vector(vector)),
            (Some(_), Some(mode)) => {
                Err(Error::invalid(format!("mode {} needs a text", mode.name())))
            }
            (None, _) => Ok(Step::Newest),
        };
    };
    if text.len() > TEXT_BYTES_MAX {
        return Err(Error::limit(format!(
            "text of the query has {} bytes, at most {TEXT_BYTES_MAX} are allowed",
            text.len()
        )));
    }
    if text.trim().is_empty() {
        return Ok(Step::Newest);
    }
    let mode = query.mode.unwrap_or(SearchMode::Hybrid);
    let vector = match (mode, given) {
        (SearchMode::Lexical, _) => Err("the mode is lexical"),
        (_, Some(vector)) => Ok(vector),
        (_, None) => embed(&text, space, embedder)?,
    };
    if mode == SearchMode::Vector {
        return Ok(vector.map_or_else(Step::Nothing, Step::Vector));
    }
    let asked = match query.query_time {
        Some(time) => time,
        None => ZonedTime::utc(Timestamp::from_micros(now)?),
    };
    Ok(Step::Words(Box::new(Words {
        question: Question::new(&text, asked, &query.weights),
        vector,
        alone: mode == SearchMode::Lexical,
        weights: query.weights,
    })))
}

/// The vector of `text`, or why there is none.
fn embed(
    text: &str,
    space: &VectorSpace,
    embedder: Option<&dyn Embedder>,
) -> Result<VectorOrReason> {
    let Some(embedder) = embedder else {
        return Ok(Err(
            "the query is a text and the vectors of this database come from the caller",
        ));
    };
    match embedder.embed_one(text)? {
        None => Ok(Err("the embedder knows no word of the query")),
        Some(mut vector) => {
            space.admit(&mut vector).map_err(|cause| {
                Error::invalid("vector made by the embedder is unusable").because(cause)
            })?;
            Ok(Ok(vector))
        }
    }
}

/// The half-open range of `since` (inclusive) and `until` (exclusive), in microseconds.
///
/// # Errors
/// `Invalid` when it ends before it starts.
pub(super) fn time_range(since: Option<Timestamp>, until: Option<Timestamp>) -> Result<Range<i64>> {
    if let (Some(since), Some(until)) = (since, until)
        && since > until
    {
        return Err(Error::invalid(format!("since ({since}) is later than until ({until})")));
    }
    Ok(since.map_or(i64::MIN, Timestamp::micros)..until.map_or(i64::MAX, Timestamp::micros))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use crate::options::VectorElement;

    /// Knows the word "known".
    struct OneWord;

    impl Embedder for OneWord {
        fn name(&self) -> &str {
            "one-word"
        }
        fn dimension(&self) -> usize {
            2
        }
        fn embed(&self, texts: &[&str], out: &mut Vec<f32>) -> Result<Vec<bool>> {
            out.extend(texts.iter().flat_map(|_| [0.0, 2.0]));
            Ok(texts.iter().map(|text| text.contains("known")).collect())
        }
    }

    fn plan(query: Query) -> Result<Plan> {
        let space =
            VectorSpace { name: "one-word".into(), dimension: 2, element: VectorElement::F32 };
        Plan::new(query, &space, Some(&OneWord), 0)
    }

    #[test]
    fn the_legs_follow_from_the_query() {
        let step = |query| plan(query).unwrap().step;
        let vector = |query| match step(query) {
            Step::Words(words) if !words.alone => words.vector,
            step => panic!("{step:?}"),
        };
        assert_eq!(vector(Query::text("known")), Ok(vec![0.0, 1.0]));
        assert!(vector(Query::text("other")).is_err());
        assert_eq!(vector(Query::text("other").with_vector([2.0, 0.0])), Ok(vec![1.0, 0.0]));
        let lexical = step(Query::text("known").mode(SearchMode::Lexical));
        assert!(matches!(lexical, Step::Words(words) if words.alone && words.vector.is_err()));
        assert!(matches!(step(Query::text(" \n")), Step::Newest));
        assert!(matches!(step(Query::vector([3.0, 0.0])), Step::Vector(v) if v == [1.0, 0.0]));
        let other = Query::text("other").mode(SearchMode::Vector);
        assert!(matches!(step(other), Step::Nothing(_)));
    }

    #[test]
    fn a_text_without_an_embedder_says_why_no_vector_is_compared() {
        let space = VectorSpace { name: "x".into(), dimension: 2, element: VectorElement::F32 };
        let plan = Plan::new(Query::text("known"), &space, None, 0).unwrap();
        let Step::Words(words) = plan.step else { panic!("words are scored") };
        assert!(words.vector.unwrap_err().contains("caller"));
    }

    #[test]
    fn impossible_queries_are_refused() {
        let kind = |query| plan(query).unwrap_err().kind();
        assert_eq!(kind(Query::text("known").top_k(0)), ErrorKind::Invalid);
        assert_eq!(kind(Query::text("known").top_k(10_001)), ErrorKind::Limit);
        assert_eq!(kind(Query::vector([1.0])), ErrorKind::Invalid);
        assert_eq!(kind(Query::vector([0.0, 0.0])), ErrorKind::Invalid);
        assert_eq!(kind(Query::vector([1.0, 0.0]).mode(SearchMode::Hybrid)), ErrorKind::Invalid);
        let weights = RecallOptions { k1: -1.0, ..RecallOptions::default() };
        assert_eq!(kind(Query::text("known").weights(weights)), ErrorKind::Invalid);
        let time = |micros| Timestamp::from_micros(micros).unwrap();
        assert_eq!(kind(Query::text("known").since(time(2)).until(time(1))), ErrorKind::Invalid);
    }

    #[test]
    fn more_answers_re_rank_more_rows() {
        let of = |depth| rerank_rows(depth, RERANK_MEASURED_ROWS);
        assert_eq!((of(10), of(100)), (RERANK_ROWS_MIN, 4000));
        let from = |rows| rerank_rows(10, rows);
        assert_eq!((from(10), from(50_000), from(usize::MAX)), (300, 420, 1000));
        assert_eq!(plan(Query::text("known").max_tokens(9)).unwrap().top_k, BUDGET_RANKS_MAX);
    }
}
