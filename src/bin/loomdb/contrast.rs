//! One question asked twice, choosing candidates and scoring every turn, and what the two answers differ by.

use std::collections::HashSet;
use std::time::Instant;

use loomdb::{EpisodeId, Explain, Memory, Query, Recall, Result, RoutingOptions};

/// Answers that are compared, at most.
pub const DEPTH: usize = 50;
/// Depths at which answers are compared.
pub const DEPTHS: [usize; 3] = [10, 20, DEPTH];

/// Both answers to one question.
pub struct Contrast {
    /// Ids, best first.
    pub routed: Vec<EpisodeId>,
    pub exhaustive: Vec<EpisodeId>,
    /// What routing did.
    pub explain: Explain,
    /// Microseconds.
    pub routed_micros: f64,
    pub exhaustive_micros: f64,
}

impl Contrast {
    /// Asks `query` by `routing`, and again with every turn scored. `without`: a turn that is left out of both answers.
    ///
    /// The second is [`Query::exact`] for vectors alone. With words it scores every row by the ordinary code, which gives
    /// the same scores to the last bit (`tests/agreement`) in a thirtieth of the time.
    ///
    /// # Errors
    /// Those of a search.
    pub fn ask(
        memory: &Memory,
        query: &Query,
        routing: RoutingOptions,
        by_vectors: bool,
        without: Option<EpisodeId>,
    ) -> Result<Contrast> {
        let query = || query.clone().top_k(DEPTH + usize::from(without.is_some()));
        let timed = |query: Query| -> Result<(Recall, f64)> {
            let start = Instant::now();
            let recall = memory.search(query)?;
            Ok((recall, start.elapsed().as_secs_f64() * 1e6))
        };
        let ids = |recall: &Recall| -> Vec<EpisodeId> {
            let ids = recall.hits.iter().map(|hit| hit.episode.id);
            ids.filter(|id| Some(*id) != without).take(DEPTH).collect()
        };
        let (routed, routed_micros) = timed(query().routing(routing).list_candidates(true))?;
        let all = match by_vectors {
            true => query().exact(true),
            false => query().route_above(u32::MAX),
        };
        let (exhaustive, exhaustive_micros) = timed(all)?;
        Ok(Contrast {
            routed: ids(&routed),
            exhaustive: ids(&exhaustive),
            explain: routed.explain,
            routed_micros,
            exhaustive_micros,
        })
    }

    /// Share of the exhaustive first `depth` that routing has among its own; 1 when there are none.
    pub fn overlap(&self, depth: usize) -> f64 {
        let wanted = &self.exhaustive[..depth.min(self.exhaustive.len())];
        let found: HashSet<&EpisodeId> = self.routed.iter().take(depth).collect();
        let shared = wanted.iter().filter(|id| found.contains(id)).count();
        if wanted.is_empty() { 1.0 } else { shared as f64 / wanted.len() as f64 }
    }

    /// Of the exhaustive first `depth` that routing misses: how many were no candidates, and how many were and did not come
    /// among the first.
    pub fn misses(&self, depth: usize) -> (usize, usize) {
        let found: HashSet<&EpisodeId> = self.routed.iter().take(depth).collect();
        let candidates: Option<HashSet<&EpisodeId>> =
            self.explain.candidates.as_ref().map(|candidates| candidates.iter().collect());
        let missed = self.exhaustive.iter().take(depth).filter(|id| !found.contains(id));
        let (mut unchosen, mut ranked_out) = (0, 0);
        for id in missed {
            match &candidates {
                Some(candidates) if !candidates.contains(id) => unchosen += 1,
                _ => ranked_out += 1,
            }
        }
        (unchosen, ranked_out)
    }
}

/// Numbers of which quantiles are told.
#[derive(Clone, Debug, Default)]
pub struct Numbers(Vec<f64>);

impl Numbers {
    pub fn push(&mut self, number: f64) {
        self.0.push(number);
    }

    pub fn mean(&self) -> f64 {
        if self.0.is_empty() { 0.0 } else { self.0.iter().sum::<f64>() / self.0.len() as f64 }
    }

    /// The number below which a share of the others lies, by nearest rank; 0 of none.
    pub fn at(&self, share: f64) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let last = sorted.len().saturating_sub(1) as f64;
        sorted.get((last * share).round() as usize).copied().unwrap_or(0.0)
    }

    /// As JSON: median, 99th percentile and mean.
    pub fn json(&self) -> serde_json::Value {
        serde_json::json!({ "p50": self.at(0.5), "p99": self.at(0.99), "mean": self.mean() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contrast(routed: &[u64], exhaustive: &[u64], candidates: &[u64]) -> Contrast {
        let ids = |ids: &[u64]| ids.iter().map(|id| EpisodeId::new(*id)).collect::<Vec<_>>();
        let mut explain = Explain::default();
        explain.candidates = Some(ids(candidates));
        Contrast {
            routed: ids(routed),
            exhaustive: ids(exhaustive),
            explain,
            routed_micros: 1.0,
            exhaustive_micros: 2.0,
        }
    }

    #[test]
    fn a_miss_was_no_candidate_or_was_ranked_out() {
        let found = contrast(&[1, 2, 5], &[1, 2, 3, 4], &[1, 2, 4, 5]);
        assert_eq!(found.overlap(10), 0.5);
        assert_eq!(found.misses(10), (1, 1));
        assert_eq!(found.overlap(2), 1.0);
        let whole = contrast(&[2, 1], &[1, 2], &[]);
        assert_eq!((whole.overlap(10), whole.misses(10)), (1.0, (0, 0)));
        assert_eq!(contrast(&[], &[], &[]).overlap(10), 1.0);
    }

    #[test]
    fn quantiles_are_of_the_nearest_rank() {
        let mut numbers = Numbers::default();
        assert_eq!((numbers.at(0.5), numbers.mean()), (0.0, 0.0));
        (0..=100).rev().for_each(|number| numbers.push(f64::from(number)));
        assert_eq!((numbers.at(0.5), numbers.at(0.99), numbers.mean()), (50.0, 99.0, 50.0));
    }
}
