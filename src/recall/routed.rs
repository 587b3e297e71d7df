//! Chooses the rows of a large memory that are worth an exact score: the best by words, and the best by the codes of
//! their vectors.
//!
//! Scores are absolute, so that choosing can miss a row and never moves one. Both lists are ordered by one estimate, which
//! takes the cosine from the codes; the best of it are then scored exactly, with the neighbours that lend to them.

use std::collections::HashSet;

use crate::error::Result;
use crate::index::UserRows;
use crate::options::{
    CANDIDATE_ROWS_MIN, CANDIDATE_ROWS_PER_HIT, CONFIDENT_ROWS, EXACT_ROWS_MIN, EXACT_ROWS_PER_HIT,
    LEXICAL_POOL_ROWS, SPREAD_ROWS_MIN, WIDENED_CANDIDATE_TIMES,
};
use crate::storage::Part;

use super::exact::Exact;
use super::found::Candidate;
use super::scan::Candidates;
use super::slots::ROWS_AHEAD;

/// The rows best by words.
pub(super) struct LexicalList {
    /// Ascending.
    pub rows: Vec<u32>,
    /// The best lexical score, roughly: how much of the question a row covers.
    pub best: f32,
    /// The lexical score that no other row is above, roughly.
    pub next: f32,
}

/// Rows that were looked at roughly.
pub(super) struct Weighed {
    /// Each once, by rough scores with all priors.
    rows: Vec<Candidate>,
    /// The score, of words and vector alone, that [`CONFIDENT_ROWS`] of them reach: a cell that cannot hold a better row need
    /// not be scanned. None with fewer rows.
    pub bar: Option<f32>,
}

impl Weighed {
    /// The rows.
    pub fn rows(&self) -> impl Iterator<Item = u32> {
        self.rows.iter().map(|candidate| candidate.row)
    }
}

/// Looks at the rows best by words and at those best by codes: words roughly, cosines by the codes of the rows alone.
///
/// # Errors
/// `Corrupt`.
pub(super) fn weigh(
    exact: &mut Exact<'_, '_>,
    list: &LexicalList,
    nearest: &Candidates,
    parts: &[Part<'_>],
) -> Result<Weighed> {
    let weights = &exact.scorer.words.weights;
    let others = by_codes(exact, nearest, parts, &list.rows);
    let count = list.rows.len() + others.len();
    let (mut rows, mut scores) = (Vec::with_capacity(count), Vec::with_capacity(count));
    for chosen in [&list.rows, &others] {
        for (at, &row) in chosen.iter().enumerate() {
            if let Some(row) = chosen.get(at + ROWS_AHEAD) {
                exact.expect_estimate(*row);
                exact.scorer.rows.expect(*row);
            }
            let cosine = exact.estimate(row)?;
            let words = exact.scorer.lexical.rough_score(row);
            scores.push(weights.lexical * words + weights.vector * cosine);
            rows.push(Candidate {
                score: exact.scorer.rough(row, words, cosine),
                id: row.into(),
                row,
            });
        }
    }
    let bar = (scores.len() >= CONFIDENT_ROWS)
        .then(|| *scores.select_nth_unstable_by(CONFIDENT_ROWS - 1, |a, b| b.total_cmp(a)).1);
    Ok(Weighed { rows, bar })
}

/// The candidates: the best of what was weighed, ascending. `depth`: answers wanted, at least 1. A search that was not sure
/// looks at more of them: `is_widened`.
pub(super) fn choose(weighed: Weighed, depth: usize, is_widened: bool) -> Vec<u32> {
    let mut rows = weighed.rows;
    let most = CANDIDATE_ROWS_MIN.max(depth * CANDIDATE_ROWS_PER_HIT);
    keep_best(&mut rows, if is_widened { WIDENED_CANDIDATE_TIMES * most } else { most });
    let mut chosen: Vec<u32> = rows.into_iter().map(|candidate| candidate.row).collect();
    chosen.sort_unstable();
    chosen
}

/// The best of the rows `chosen` with their exact scores, in no order. `depth`: answers wanted, at least 1.
///
/// # Errors
/// `Corrupt`, `Io`.
pub(super) fn score(
    exact: &mut Exact<'_, '_>,
    chosen: Vec<u32>,
    depth: usize,
    filter: &impl Admit,
) -> Result<Vec<Candidate>> {
    let rows = exact.scorer.rows;
    exact.scorer.lexical.score_rows(&chosen);

    let mut estimated = Vec::with_capacity(chosen.len());
    for (at, &row) in chosen.iter().enumerate() {
        if let Some(row) = chosen.get(at + ROWS_AHEAD) {
            exact.expect_estimate(*row);
        }
        estimated.push(Candidate { score: exact.estimated_own(row)?, id: row.into(), row });
    }
    let mut estimated =
        admitted(estimated, EXACT_ROWS_MIN.max(depth * EXACT_ROWS_PER_HIT), filter)?;

    exact.compare(estimated.iter().flat_map(|candidate| rows.with_around(candidate.row)))?;
    for candidate in &mut estimated {
        candidate.score = exact.own(candidate.row)?;
    }
    estimated.sort_unstable_by(Candidate::order);

    // What a neighbour lends is at most a share of the best score: a row that this does not lift to the last place asked
    // for stays out.
    let lift = estimated.first().map_or(0.0, |best| best.score.max(0.0));
    let lift = lift * exact.scorer.words.weights.spread;
    let last_place = estimated.get(depth - 1).map_or(f32::NEG_INFINITY, |last| last.score);
    let may_reach = |score: f32| score + lift >= last_place;
    estimated.retain(|candidate| may_reach(candidate.score));
    estimated.truncate(SPREAD_ROWS_MIN.max(2 * depth));

    let mut finals: HashSet<u32> = estimated.iter().map(|candidate| candidate.row).collect();
    let lenders = around_of(rows, &finals);
    prepare(exact, &lenders)?;
    for row in lenders {
        if !finals.contains(&row) && may_reach(exact.own(row)?) && filter.admits(row)? {
            finals.insert(row);
        }
    }
    let lenders = around_of(rows, &finals);
    prepare(exact, &lenders)?;
    finals.into_iter().map(|row| exact.candidate(row)).collect()
}

/// The best of `candidates` that the filters admit, at most `most`, in no order.
fn admitted(
    mut candidates: Vec<Candidate>,
    most: usize,
    filter: &impl Admit,
) -> Result<Vec<Candidate>> {
    if !filter.is_costly() {
        keep_best(&mut candidates, most);
        return Ok(candidates);
    }
    candidates.sort_unstable_by(Candidate::order);
    let mut best = Vec::new();
    for candidate in candidates {
        if best.len() == most {
            break;
        }
        if filter.admits(candidate.row)? {
            best.push(candidate);
        }
    }
    Ok(best)
}

/// What decides whether a row may be an answer.
pub(super) trait Admit {
    /// Whether that rules out readable rows.
    fn is_narrow(&self) -> bool;
    /// Whether [`Admit::admits`] asks more than [`Admit::passes`] and reads the row for it.
    fn is_costly(&self) -> bool;
    /// Whether a row may be an answer by its columns.
    fn passes(&self, row: u32) -> bool;
    /// Whether a row may be an answer.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    fn admits(&self, row: u32) -> Result<bool>;
}

/// The rows beside `chosen` in their sessions, and these themselves.
fn around_of(rows: &UserRows<'_>, chosen: &HashSet<u32>) -> Vec<u32> {
    let mut around: Vec<u32> = chosen.iter().flat_map(|row| rows.with_around(*row)).collect();
    around.sort_unstable();
    around.dedup();
    around
}

/// Makes the exact scores of `wanted` before neighbours lend cheap to ask for: words first, then vectors, all at once.
fn prepare(exact: &mut Exact<'_, '_>, wanted: &[u32]) -> Result<()> {
    let rows = exact.scorer.rows;
    exact.scorer.lexical.score_rows(wanted);
    exact.compare(wanted.iter().flat_map(|row| rows.with_around(*row)))
}

/// The rows that are best by their codes, and those that were compared exactly at once; without those of `others`,
/// which ascend.
fn by_codes(
    exact: &mut Exact<'_, '_>,
    nearest: &Candidates,
    parts: &[Part<'_>],
    others: &[u32],
) -> Vec<u32> {
    let rows = exact.scorer.rows;
    let mut chosen = Vec::with_capacity(nearest.by_code.len() + nearest.exact.len());
    for (place, cosine) in &nearest.by_code {
        if let Some(row) = rows.row_at(&parts[place.part as usize], place.row, 0) {
            exact.note_estimate(row, *cosine);
            chosen.push(row);
        }
    }
    for (scored, place) in &nearest.exact {
        chosen.extend(rows.row_at(&parts[place.part as usize], place.row, scored.name));
    }
    chosen.sort_unstable();
    chosen.dedup();
    chosen.retain(|row| others.binary_search(row).is_err());
    chosen
}

/// The rows that are best by words and priors, at most `most`.
pub(super) fn by_words(exact: &Exact<'_, '_>, most: usize, filter: &impl Admit) -> LexicalList {
    let (lexical, rows) = (&exact.scorer.lexical, exact.scorer.rows);
    let passes = |row| filter.passes(row);
    // Of all readable rows few are not to be found: asking the best is enough.
    let admits = filter.is_narrow().then_some(&passes as &dyn Fn(u32) -> bool);
    let count = LEXICAL_POOL_ROWS.max(most * 3 / 2);
    let best = lexical.best_roughly(count, admits).into_iter();
    let mut pool: Vec<Candidate> =
        best.map(|(row, score)| Candidate { score, id: row.into(), row }).collect();
    keep_best(&mut pool, count);
    pool.retain(|candidate| filter.is_narrow() || filter.passes(candidate.row));
    let best = pool.iter().map(|candidate| candidate.score).fold(0.0, f32::max);
    let next = match most < pool.len() {
        true => pool.select_nth_unstable_by(most, Candidate::order).1.score,
        false => 0.0,
    };
    for at in 0..pool.len() {
        if let Some(ahead) = pool.get(at + ROWS_AHEAD) {
            rows.expect_words(ahead.row);
        }
        let Candidate { row, score, .. } = pool[at];
        pool[at].score = exact.scorer.rough(row, lexical.share_of(score), 0.0);
    }
    keep_best(&mut pool, most);
    let mut rows: Vec<u32> = pool.into_iter().map(|candidate| candidate.row).collect();
    rows.sort_unstable();
    LexicalList { rows, best: lexical.share_of(best), next: lexical.share_of(next) }
}

fn keep_best(candidates: &mut Vec<Candidate>, most: usize) {
    if most < candidates.len() {
        candidates.select_nth_unstable_by(most, Candidate::order);
        candidates.truncate(most);
    }
}
