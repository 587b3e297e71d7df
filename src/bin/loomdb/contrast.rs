//! The same questions answered twice, by chosen candidates and with every turn scored: what the two answers differ by.
//!
//! Invariant: the comparison looks at ids and at what [`Explain`] counts, and knows nothing of how rows are chosen, so
//! that a routing that loses turns cannot hide it.

use std::collections::HashSet;
use std::time::Instant;

use loomdb::{EpisodeId, Explain, Memory, Query, Result, RoutingOptions};
use serde_json::{Value, json};

/// Answers that are compared, at most.
pub const DEPTH: usize = 50;
/// Depths at which answers are compared.
pub const DEPTHS: [usize; 3] = [10, 20, DEPTH];

/// One answer to a question.
pub struct Answer {
    /// Best first, [`DEPTH`] at most.
    pub ids: Vec<EpisodeId>,
    pub explain: Explain,
    /// Microseconds of the search.
    pub micros: f64,
}

impl Answer {
    /// By chosen candidates. `without`: a turn that is left out.
    ///
    /// # Errors
    /// Those of a search.
    pub fn routed(
        memory: &Memory,
        query: &Query,
        routing: RoutingOptions,
        without: Option<EpisodeId>,
    ) -> Result<Answer> {
        let query = query.clone().routing(routing).list_candidates(true);
        Answer::of(memory, query, without)
    }

    /// With every turn scored.
    ///
    /// With words by the ordinary code without a choice, as a small memory is scored: `tests/agreement` holds its answers
    /// to those of [`Query::exact`], to the last bit, and it takes a tenth of the time or less. By vectors alone it is
    /// [`Query::exact`].
    ///
    /// # Errors
    /// Those of a search.
    pub fn exhaustive(
        memory: &Memory,
        query: &Query,
        by_vectors: bool,
        without: Option<EpisodeId>,
    ) -> Result<Answer> {
        let query = match by_vectors {
            true => query.clone().exact(true),
            false => query.clone().route_above(u32::MAX),
        };
        Answer::of(memory, query, without)
    }

    fn of(memory: &Memory, query: Query, without: Option<EpisodeId>) -> Result<Answer> {
        let query = query.top_k(DEPTH + usize::from(without.is_some()));
        let start = Instant::now();
        let recall = memory.search(query)?;
        let micros = start.elapsed().as_secs_f64() * 1e6;
        let ids = recall.hits.iter().map(|hit| hit.episode.id);
        let ids = ids.filter(|id| Some(*id) != without).take(DEPTH).collect();
        Ok(Answer { ids, explain: recall.explain, micros })
    }
}

/// The two answers to one question.
#[derive(Clone, Copy)]
pub struct Contrast<'a> {
    pub routed: &'a Answer,
    pub exhaustive: &'a Answer,
}

impl Contrast<'_> {
    /// Share of the exhaustive first `depth` that routing has among its own first `depth`; 1 when there are none.
    pub fn overlap(&self, depth: usize) -> f64 {
        self.found(depth, depth)
    }

    /// Share of the exhaustive first `depth` that routing has anywhere in its answer; 1 when there are none.
    pub fn recall(&self, depth: usize) -> f64 {
        self.found(depth, DEPTH)
    }

    fn found(&self, depth: usize, within: usize) -> f64 {
        let wanted = &self.exhaustive.ids[..depth.min(self.exhaustive.ids.len())];
        let found: HashSet<&EpisodeId> = self.routed.ids.iter().take(within).collect();
        let shared = wanted.iter().filter(|id| found.contains(id)).count();
        if wanted.is_empty() { 1.0 } else { shared as f64 / wanted.len() as f64 }
    }

    /// Of the exhaustive first `depth` those that routing does not have among its own.
    ///
    /// A search that lists no candidates scored every turn; one by vectors alone lists none either, and its misses cannot
    /// be told apart.
    pub fn misses(&self, depth: usize) -> Misses {
        let found: HashSet<&EpisodeId> = self.routed.ids.iter().take(depth).collect();
        let candidates: Option<HashSet<&EpisodeId>> =
            self.routed.explain.candidates.as_ref().map(|candidates| candidates.iter().collect());
        let wanted = self.exhaustive.ids.iter().take(depth);
        let mut misses = Misses { wanted: wanted.len(), ..Misses::default() };
        for id in wanted.filter(|id| !found.contains(id)) {
            match &candidates {
                Some(candidates) if !candidates.contains(id) => misses.not_a_candidate += 1,
                _ => misses.ranked_out += 1,
            }
        }
        misses
    }
}

/// How many answers were wanted, and how many of them are missing and why.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Misses {
    pub wanted: usize,
    pub not_a_candidate: usize,
    /// Candidates that did not come among the first.
    pub ranked_out: usize,
}

impl Misses {
    fn add(&mut self, other: Misses) {
        self.wanted += other.wanted;
        self.not_a_candidate += other.not_a_candidate;
        self.ranked_out += other.ranked_out;
    }

    /// Missing ones as a share of those wanted: no candidate, and ranked out.
    pub fn shares(&self) -> (f64, f64) {
        let share = |count: usize| count as f64 / self.wanted.max(1) as f64;
        (share(self.not_a_candidate), share(self.ranked_out))
    }

    /// Whether nothing is missing.
    pub fn is_none(&self) -> bool {
        self.not_a_candidate + self.ranked_out == 0
    }
}

/// The comparison of many questions. Arrays are by [`DEPTHS`].
#[derive(Default)]
pub struct Tally {
    pub overlap: [Numbers; 3],
    pub recall: [Numbers; 3],
    pub misses: [Misses; 3],
    /// Turns whose full vector was read, neighbours included, as a share of all.
    pub candidate_share: Numbers,
    /// Turns whose code was read, as a share of all.
    pub bits_share: Numbers,
    /// Questions that looked into more cells than the nearest.
    pub widened: usize,
    pub routed_micros: Numbers,
    pub exhaustive_micros: Numbers,
}

impl Tally {
    /// Adds a question to a memory of `rows` turns.
    pub fn add(&mut self, contrast: Contrast<'_>, rows: u64) {
        for (at, depth) in DEPTHS.into_iter().enumerate() {
            self.overlap[at].push(contrast.overlap(depth));
            self.recall[at].push(contrast.recall(depth));
            self.misses[at].add(contrast.misses(depth));
        }
        let explain = &contrast.routed.explain;
        let share = |count: u64| count as f64 / rows.max(1) as f64;
        self.candidate_share.push(share(explain.rows_exact));
        self.bits_share.push(share(explain.rows_by_code));
        self.widened += usize::from(explain.cells_widened > 0);
        self.routed_micros.push(contrast.routed.micros);
        self.exhaustive_micros.push(contrast.exhaustive.micros);
    }

    /// Microseconds of both, as JSON.
    pub fn latency_json(&self) -> Value {
        json!({ "routed": self.routed_micros.json(), "exhaustive": self.exhaustive_micros.json() })
    }

    /// What was read and how long it took, for people.
    pub fn costs(&self) -> String {
        let per_cent = |numbers: &Numbers, share| format!("{:.2} %", 100.0 * numbers.at(share));
        let mut lines = format!(
            "full vectors read, of all: p50 {}, p95 {}; codes: p50 {}\n",
            per_cent(&self.candidate_share, 0.5),
            per_cent(&self.candidate_share, 0.95),
            per_cent(&self.bits_share, 0.5),
        );
        for (name, micros) in
            [("routed", &self.routed_micros), ("exhaustive", &self.exhaustive_micros)]
        {
            let (p50, p99, mean) = (micros.at(0.5), micros.at(0.99), micros.mean());
            lines.push_str(&format!(
                "{name}: p50 {p50:.0} us, p99 {p99:.0} us, mean {mean:.0} us\n"
            ));
        }
        lines
    }
}

/// A line of a table for people: shares by [`DEPTHS`], in per cent.
pub fn line(name: &str, shares: [f64; 3]) -> String {
    let figures = shares.map(|share| format!("{:>9.2}", 100.0 * share)).concat();
    format!("{name:<18}{figures}\n")
}

/// The head of that table.
pub const HEAD: &str = "per cent              at 10    at 20    at 50\n";

/// Numbers of which quantiles are told.
#[derive(Clone, Debug, Default)]
pub struct Numbers(Vec<f64>);

impl Numbers {
    pub fn push(&mut self, number: f64) {
        self.0.push(number);
    }

    /// 0 of none.
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
    pub fn json(&self) -> Value {
        json!({ "p50": self.at(0.5), "p99": self.at(0.99), "mean": self.mean() })
    }
}

#[cfg(test)]
mod tests {
    use loomdb::{Db, Turn};

    use super::*;

    fn answer(ids: impl IntoIterator<Item = u64>, candidates: Option<&[u64]>) -> Answer {
        let mut explain = Explain::default();
        explain.candidates =
            candidates.map(|ids| ids.iter().copied().map(EpisodeId::new).collect());
        Answer { ids: ids.into_iter().map(EpisodeId::new).collect(), explain, micros: 1.0 }
    }

    fn misses(wanted: usize, not_a_candidate: usize, ranked_out: usize) -> Misses {
        Misses { wanted, not_a_candidate, ranked_out }
    }

    #[test]
    fn a_miss_was_no_candidate_or_was_ranked_out() {
        let (routed, exhaustive) =
            (answer([1, 2, 5], Some(&[1, 2, 4, 5])), answer([1, 2, 3, 4], None));
        let found = Contrast { routed: &routed, exhaustive: &exhaustive };
        assert_eq!((found.overlap(10), found.recall(10)), (0.5, 0.5));
        assert_eq!(found.misses(10), misses(4, 1, 1));
        assert_eq!(found.overlap(2), 1.0);

        let whole = Contrast { routed: &exhaustive, exhaustive: &exhaustive };
        assert_eq!((whole.overlap(10), whole.misses(10)), (1.0, misses(4, 0, 0)));
        let none = answer([], None);
        assert_eq!(Contrast { routed: &none, exhaustive: &none }.overlap(10), 1.0);
    }

    #[test]
    #[cfg(feature = "builtin-model")]
    fn a_turn_is_left_out_of_both_answers_and_the_next_takes_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let memory = Db::open(folder.path().join("db")).unwrap().user("u");
        let turn = |number: usize| Turn::new(format!("the green harbour, number{number}"));
        let own = memory.add_many((0..60).map(turn).collect()).unwrap()[7].id;
        let query = Query::text("green harbour number7");
        let routing = RoutingOptions { whole_rows: 0, ..RoutingOptions::default() };
        for without in [None, Some(own)] {
            let routed = Answer::routed(&memory, &query, routing, without).unwrap();
            let exhaustive = Answer::exhaustive(&memory, &query, false, without).unwrap();
            for answer in [&routed, &exhaustive] {
                assert_eq!(answer.ids.len(), DEPTH);
                assert_eq!(answer.ids.first() == Some(&own), without.is_none());
                assert_eq!(answer.ids.contains(&own), without.is_none());
            }
            assert!(routed.explain.candidates.is_some() && exhaustive.explain.candidates.is_none());
        }
    }

    #[test]
    fn what_stands_too_low_is_recalled_and_does_not_overlap() {
        let (routed, exhaustive) = (answer((1..=50).rev(), Some(&[])), answer(1..=50, None));
        let found = Contrast { routed: &routed, exhaustive: &exhaustive };
        assert_eq!((found.overlap(10), found.recall(10), found.overlap(50)), (0.0, 1.0, 1.0));
    }

    #[test]
    fn a_tally_is_of_all_questions() {
        let (mut routed, exhaustive) = (answer([1, 9], Some(&[1, 9])), answer([1, 2], None));
        routed.explain.rows_exact = 5;
        let mut tally = Tally::default();
        tally.add(Contrast { routed: &routed, exhaustive: &exhaustive }, 100);
        tally.add(Contrast { routed: &exhaustive, exhaustive: &exhaustive }, 100);
        assert_eq!((tally.overlap[0].mean(), tally.misses[0]), (0.75, misses(4, 1, 0)));
        assert_eq!(tally.misses[0].shares(), (0.25, 0.0));
        assert!(!tally.misses[2].is_none());
        assert_eq!((tally.candidate_share.at(1.0), tally.candidate_share.at(0.0)), (0.05, 0.0));
    }

    #[test]
    fn quantiles_are_of_the_nearest_rank() {
        let mut numbers = Numbers::default();
        assert_eq!((numbers.at(0.5), numbers.mean()), (0.0, 0.0));
        (0..=100).rev().for_each(|number| numbers.push(f64::from(number)));
        assert_eq!((numbers.at(0.5), numbers.at(0.99), numbers.mean()), (50.0, 99.0, 50.0));
    }
}
