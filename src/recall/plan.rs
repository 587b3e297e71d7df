//! Decides what a search does, from the query alone: which leg runs, what filters hold, how many rows are re-ranked.

use std::ops::Range;

use crate::encode::Embedder;
use crate::error::{Error, Result};
use crate::model::VectorSpace;
use crate::options::{RERANK_ROWS_MIN, RERANK_ROWS_PER_HIT, TEXT_BYTES_MAX, TOP_K_MAX};
use crate::time::Timestamp;

use super::query::{Query, What};

/// What a search does.
#[derive(Debug)]
pub(super) struct Plan {
    pub step: Step,
    pub filters: Filters,
    pub top_k: usize,
    /// Rows that the scan of codes hands to exact re-ranking.
    pub rerank_rows: usize,
    /// Score every row instead of choosing candidates.
    pub exact: bool,
}

/// The leg that runs.
#[derive(Debug)]
pub(super) enum Step {
    /// Compare this vector, of unit length, with the stored ones.
    Vector(Vec<f32>),
    /// List the newest.
    Newest,
    /// Nothing can be found, for this reason.
    Nothing(&'static str),
}

/// What every row of the answer must meet.
#[derive(Clone, Debug)]
pub(super) struct Filters {
    /// Times, microseconds since the epoch.
    pub times: Range<i64>,
    pub session: Option<String>,
    /// Rows that expired at this time or before are not readable.
    pub now: i64,
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
        let Query { what, top_k, since, until, session, exact } = query;
        if top_k == 0 {
            return Err(Error::invalid("top_k is 0"));
        }
        if top_k > TOP_K_MAX {
            return Err(Error::limit(format!("top_k is {top_k}, at most {TOP_K_MAX} is allowed")));
        }
        let step = match what {
            What::Vector(mut vector) => {
                space.admit(&mut vector)?;
                Step::Vector(vector)
            }
            What::Text(text) if text.len() > TEXT_BYTES_MAX => {
                return Err(Error::limit(format!(
                    "text of the query has {} bytes, at most {TEXT_BYTES_MAX} are allowed",
                    text.len()
                )));
            }
            What::Text(text) if text.trim().is_empty() => Step::Newest,
            What::Text(text) => embed(&text, space, embedder)?,
        };
        Ok(Plan {
            step,
            filters: Filters { times: time_range(since, until)?, session, now },
            top_k,
            rerank_rows: RERANK_ROWS_MIN.max(top_k * RERANK_ROWS_PER_HIT),
            exact,
        })
    }
}

fn embed(text: &str, space: &VectorSpace, embedder: Option<&dyn Embedder>) -> Result<Step> {
    let Some(embedder) = embedder else {
        return Ok(Step::Nothing(
            "the query is a text and the vectors of this database come from the caller",
        ));
    };
    match embedder.embed_one(text)? {
        None => Ok(Step::Nothing("the embedder knows no word of the query")),
        Some(mut vector) => {
            space.admit(&mut vector).map_err(|cause| {
                Error::invalid("vector made by the embedder is unusable").because(cause)
            })?;
            Ok(Step::Vector(vector))
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
    fn the_leg_follows_from_the_query() {
        let step = |query| plan(query).unwrap().step;
        assert!(matches!(step(Query::text("known")), Step::Vector(v) if v == [0.0, 1.0]));
        assert!(matches!(step(Query::text("other")), Step::Nothing(_)));
        assert!(matches!(step(Query::text(" \n")), Step::Newest));
        assert!(matches!(step(Query::vector([3.0, 0.0])), Step::Vector(v) if v == [1.0, 0.0]));
    }

    #[test]
    fn a_text_without_an_embedder_says_why_nothing_runs() {
        let space = VectorSpace { name: "x".into(), dimension: 2, element: VectorElement::F32 };
        let plan = Plan::new(Query::text("known"), &space, None, 0).unwrap();
        assert!(matches!(plan.step, Step::Nothing(reason) if reason.contains("caller")));
    }

    #[test]
    fn impossible_queries_are_refused() {
        let kind = |query| plan(query).unwrap_err().kind();
        assert_eq!(kind(Query::text("known").top_k(0)), ErrorKind::Invalid);
        assert_eq!(kind(Query::text("known").top_k(10_001)), ErrorKind::Limit);
        assert_eq!(kind(Query::vector([1.0])), ErrorKind::Invalid);
        assert_eq!(kind(Query::vector([0.0, 0.0])), ErrorKind::Invalid);
        let time = |micros| Timestamp::from_micros(micros).unwrap();
        assert_eq!(kind(Query::text("known").since(time(2)).until(time(1))), ErrorKind::Invalid);
    }

    #[test]
    fn more_answers_re_rank_more_rows() {
        assert_eq!(plan(Query::text("known")).unwrap().rerank_rows, RERANK_ROWS_MIN);
        assert_eq!(plan(Query::text("known").top_k(100)).unwrap().rerank_rows, 4000);
    }
}
