//! A question with words, answered: from one user's rows to ranked ones.
//!
//! Small memories and narrow filters are scored whole. Large ones are routed: the words are looked at roughly, the codes
//! are scanned, and only the best of both get an exact score.

use crate::error::Result;
use crate::ids::EpisodeId;
use crate::index::UserRows;
use crate::model::VectorSpace;
use crate::options::{CONFIDENT_COVERAGE, CONFIDENT_ROWS, ROUTED_TOP_K_MAX, WIDENED_LIST_TIMES};
use crate::storage::Part;

use super::exact::{Exact, RowSlot};
use super::explain::{Explain, Stopwatch};
use super::found::{Candidate, Found};
use super::lexical::PassageSlot;
use super::plan::{Filters, Plan, Words};
use super::routed;
use super::row_test::RowTest;
use super::rows::RowFilter;
use super::scan::{Ground, Scan, Waiting};
use super::scorer::{Scorer, source_of};
use super::slots::SlotPool;

/// Slots that the searches of one handle use one after the other.
#[derive(Debug, Default)]
pub(super) struct SlotPools {
    passages: SlotPool<PassageSlot>,
    rows: SlotPool<RowSlot>,
}

/// What a search by words goes through.
pub(super) struct Memory<'a, 's> {
    pub rows: &'a UserRows<'s>,
    pub parts: &'a [Part<'s>],
    pub user: &'a [u8],
    pub space: &'a VectorSpace,
    pub plan: &'a Plan,
    pub words: &'a Words,
    pub pools: &'a SlotPools,
}

/// The rows of a user as a question ranks them.
pub(super) struct ByWords<'a, 's> {
    memory: Memory<'a, 's>,
    test: RowTest<'a>,
    exact: Exact<'a, 's>,
    /// Rows that pass the filters but for the one on metadata.
    passing: Vec<u32>,
    /// The candidates of the last ranking: all of `passing`, or those that were chosen.
    candidates: Vec<Candidate>,
    is_whole: bool,
}

impl<'a, 's> ByWords<'a, 's> {
    /// Scores the candidates for `depth` answers.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub fn new(
        memory: Memory<'a, 's>,
        depth: usize,
        watch: &mut Stopwatch,
        explain: &mut Explain,
    ) -> Result<ByWords<'a, 's>> {
        let (rows, plan, words) = (memory.rows, memory.plan, memory.words);
        let test = RowTest::new(rows, memory.user, &plan.filters)?;
        let is_large = rows.len() > plan.routing.whole_rows;
        let passing = match is_large && plan.filters.are_open() {
            true => Vec::new(),
            false => (0..rows.len()).filter(|row| test.passes(rows, *row)).collect(),
        };
        let is_routed = is_large
            && (plan.filters.are_open() || passing.len() > plan.routing.whole_rows as usize)
            && words.vector.is_ok()
            && depth <= ROUTED_TOP_K_MAX;
        let scorer = match is_routed {
            true => Scorer::routed(rows, words, &memory.pools.passages)?,
            false => Scorer::whole(rows, words, &memory.pools.passages)?,
        };
        explain.micros.lexical += watch.lap();
        explain.terms = scorer.lexical.known_terms;
        explain.postings = scorer.lexical.postings;
        let codes = match (&words.vector, rows.snapshot().codec()) {
            (Ok(vector), Some(codec)) if is_routed => Some(codec.query(vector)),
            _ => None,
        };
        let exact = Exact::new(scorer, memory.space, codes, &memory.pools.rows);
        let mut made =
            ByWords { memory, test, exact, passing, candidates: Vec::new(), is_whole: false };
        match (&words.vector, is_routed) {
            (Ok(vector), true) => made.route(vector, depth, watch, explain)?,
            _ => made.score_whole(watch, explain)?,
        }
        Ok(made)
    }

    /// Chooses candidates by words and by the nearest cells, and scores them.
    fn route(
        &mut self,
        vector: &[f32],
        depth: usize,
        watch: &mut Stopwatch,
        explain: &mut Explain,
    ) -> Result<()> {
        let Memory { rows, parts, plan, space, user, .. } = self.memory;
        let filter = RowAdmission { rows, test: &self.test, filters: &plan.filters };
        let options = &plan.routing;
        let listed = options.lexical_rows.max(2 * depth);
        let list = routed::by_words(&self.exact, listed, &filter);
        explain.micros.lexical += watch.lap();

        let snapshot = rows.snapshot();
        let row_filter = RowFilter::new(snapshot, user, &plan.filters)?;
        let ground = Ground { snapshot, parts, query: vector, space, filter: &row_filter };
        let most = options.code_rows.max(2 * depth);
        let mut scan = Scan::begin(ground, most, depth, explain)?;
        scan.nearest(options.cells, explain)?;
        let mut weighed = routed::weigh(&mut self.exact, &list, &scan.found(), parts)?;
        let mut is_widened = false;
        if options.widen && !scan.waiting().is_empty() {
            let has_words = self.exact.scorer.lexical.reached() >= CONFIDENT_ROWS
                && list.best >= CONFIDENT_COVERAGE;
            // A cell may hold a row that is one of the first, and that the lists miss, when its direction says so.
            let weights = &self.memory.words.weights;
            let next = weights.lexical * list.next;
            let bar = weighed.bar.filter(|_| has_words);
            let wanted = |cell: &Waiting| {
                bar.is_none_or(|bar| next + weights.vector * cell.direction_cosine() > bar)
            };
            is_widened = scan.waiting().iter().any(&wanted);
            if is_widened {
                scan.keep(WIDENED_LIST_TIMES * most)?;
                scan.widen(wanted, explain)?;
                let list = routed::by_words(&self.exact, WIDENED_LIST_TIMES * listed, &filter);
                weighed = routed::weigh(&mut self.exact, &list, &scan.found(), parts)?;
            }
        }
        scan.end(explain);
        explain.micros.scan += watch.lap();

        if plan.list_candidates {
            let ids = weighed.rows().map(|row| EpisodeId::new(rows.id(row)));
            explain.candidates = Some(ids.collect());
        }
        let chosen = routed::choose(weighed, depth, is_widened);
        self.candidates = routed::score(&mut self.exact, chosen, depth, &filter)?;
        explain.micros.rerank += watch.lap();
        self.tell(explain);
        Ok(())
    }

    /// Scores all rows that pass.
    fn score_whole(&mut self, watch: &mut Stopwatch, explain: &mut Explain) -> Result<()> {
        let (rows, words) = (self.memory.rows, self.memory.words);
        if self.passing.is_empty() && self.memory.plan.filters.are_open() {
            self.passing = (0..rows.len()).filter(|row| self.test.passes(rows, *row)).collect();
        }
        self.is_whole = true;
        if words.alone {
            let exact = &mut self.exact;
            let shares = |row: &u32| exact.scorer.lexical.score(*row).score > 0.0;
            let sharing: Vec<u32> = self.passing.iter().copied().filter(shares).collect();
            self.candidates =
                sharing.into_iter().map(|row| exact.candidate(row)).collect::<Result<_>>()?;
            explain.micros.rerank += watch.lap();
            return Ok(());
        }
        self.exact.compare(self.passing.iter().copied())?;
        explain.micros.scan += watch.lap();
        let candidates = self.passing.iter().map(|row| self.exact.candidate(*row));
        self.candidates = candidates.collect::<Result<_>>()?;
        explain.micros.rerank += watch.lap();
        self.tell(explain);
        explain.rows_exact_at_once = explain.rows_exact;
        Ok(())
    }

    fn tell(&self, explain: &mut Explain) {
        let exact_before = explain.rows_exact;
        explain.rows_exact = exact_before.max(self.exact.read);
        explain.bytes_touched +=
            (explain.rows_exact - exact_before) * self.memory.space.vector_bytes() as u64;
    }

    /// The best rows, at most `depth`, best first: as many as there are.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub fn rank(
        &mut self,
        depth: usize,
        watch: &mut Stopwatch,
        explain: &mut Explain,
    ) -> Result<Vec<Found<'s>>> {
        let mut best = self.best(depth)?;
        if best.len() < depth && !self.is_whole {
            let Memory { rows, words, pools, space, .. } = self.memory;
            let scorer = Scorer::whole(rows, words, &pools.passages)?;
            self.exact = Exact::new(scorer, space, None, &pools.rows);
            self.score_whole(watch, explain)?;
            best = self.best(depth)?;
        }
        let found = best.iter().map(|candidate| self.exact.found(candidate)).collect();
        explain.micros.rerank += watch.lap();
        found
    }

    fn best(&mut self, depth: usize) -> Result<Vec<Candidate>> {
        let (snapshot, filters) = (self.memory.rows.snapshot(), &self.memory.plan.filters);
        if filters.metadata.is_none() || !self.is_whole {
            return Ok(best_of(&mut self.candidates, depth));
        }
        let rows = self.memory.rows;
        best_passing(&mut self.candidates, depth, |candidate| {
            filters.pass_metadata(&*source_of(rows, candidate.row).record(snapshot)?)
        })
    }
}

/// The filters of a search, asked of one row.
struct RowAdmission<'r, 's> {
    rows: &'r UserRows<'s>,
    test: &'r RowTest<'r>,
    filters: &'r Filters,
}

impl routed::Admit for RowAdmission<'_, '_> {
    fn is_narrow(&self) -> bool {
        !self.filters.are_open()
    }

    fn is_costly(&self) -> bool {
        self.filters.metadata.is_some()
    }

    fn passes(&self, row: u32) -> bool {
        self.test.passes(self.rows, row)
    }

    fn admits(&self, row: u32) -> Result<bool> {
        if !self.passes(row) || self.filters.metadata.is_none() {
            return Ok(self.passes(row));
        }
        let record = source_of(self.rows, row).record(self.rows.snapshot())?.into_owned();
        self.filters.pass_metadata(&record)
    }
}

/// The best candidates, at most `most`, best first.
fn best_of(candidates: &mut [Candidate], most: usize) -> Vec<Candidate> {
    let most = most.min(candidates.len());
    if most > 0 && most < candidates.len() {
        candidates.select_nth_unstable_by(most - 1, Candidate::order);
    }
    let mut best = candidates[..most].to_vec();
    best.sort_unstable_by(Candidate::order);
    best
}

/// The best candidates that pass, at most `most`, best first. No more are asked than are needed.
fn best_passing(
    candidates: &mut [Candidate],
    most: usize,
    mut passes: impl FnMut(&Candidate) -> Result<bool>,
) -> Result<Vec<Candidate>> {
    candidates.sort_unstable_by(Candidate::order);
    let mut best = Vec::new();
    for candidate in candidates.iter() {
        if best.len() == most {
            break;
        }
        if passes(candidate)? {
            best.push(*candidate);
        }
    }
    Ok(best)
}
