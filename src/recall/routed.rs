//! Chooses the rows of a large memory that are worth an exact score: the best by words, and the best by the codes of
//! their vectors.
//!
//! Scores are absolute, so that choosing can miss a row and never moves one. Both lists are ordered by one estimate, which
//! takes the cosine from the codes; the best of it are then scored exactly, with the neighbours that lend to them.

use std::collections::HashSet;

use crate::error::Result;
use crate::index::{NO_ROW, UserRows};
use crate::options::{
    EXACT_ROWS_MIN, EXACT_ROWS_PER_HIT, LEXICAL_LIST_ROWS, LEXICAL_POOL_ROWS, SPREAD_ROWS_MIN,
};
use crate::simd::CodeQuery;
use crate::storage::Part;

use super::exact::Exact;
use super::found::Candidate;
use super::scan::Candidates;

/// The rows with their exact scores, in no order. `passes`: whether a row may be an answer. `depth`: answers wanted.
///
/// # Errors
/// `Corrupt`, `Io`.
pub(super) fn candidates(
    exact: &mut Exact<'_, '_>,
    codes: Option<&CodeQuery>,
    nearest: &Candidates,
    parts: &[Part<'_>],
    depth: usize,
    passes: impl Fn(u32) -> bool,
) -> Result<Vec<Candidate>> {
    let rows = exact.scorer.rows;
    let mut chosen = by_words(exact, depth, &passes)?;
    for (id, place) in &nearest.by_code {
        chosen.extend(rows.row_at(&parts[place.part as usize], place.row, *id));
    }
    for (scored, place) in &nearest.exact {
        chosen.extend(rows.row_at(&parts[place.part as usize], place.row, scored.name));
    }
    chosen.sort_unstable();
    chosen.dedup();
    let lexical = &mut exact.scorer.lexical;
    lexical.begin_exact();
    lexical.score_rows(&chosen);
    let mut scored: HashSet<u32> = chosen.iter().copied().collect();

    // Rows that have a vector and no code yet cannot be estimated.
    let mut reach = Vec::new();
    for row in &chosen {
        let around = rows.around(*row).into_iter().filter(|row| *row != NO_ROW);
        reach.extend(around.chain([*row]).filter(|row| codes.is_none() || !rows.has_code(*row)));
    }
    exact.compare(reach.drain(..))?;
    let mut estimates = Estimates { rows, codes, scratch: Vec::new() };
    let mut estimated = Vec::with_capacity(chosen.len());
    for row in chosen {
        let cosine = |row| exact.compared(row).map_or_else(|| estimates.cosine(row), Ok);
        let (parts, _) = exact.scorer.parts(row, cosine)?;
        estimated.push(Candidate { score: parts.own(), id: rows.id(row), row });
    }
    keep_best(&mut estimated, EXACT_ROWS_MIN.max(depth * EXACT_ROWS_PER_HIT));

    for candidate in &estimated {
        reach.push(candidate.row);
        reach.extend(rows.around(candidate.row).into_iter().filter(|row| *row != NO_ROW));
    }
    exact.compare(reach.drain(..))?;
    for candidate in &mut estimated {
        candidate.score = exact.own(candidate.row)?;
    }
    keep_best(&mut estimated, SPREAD_ROWS_MIN.max(2 * depth));

    let mut last: HashSet<u32> = HashSet::new();
    for candidate in &estimated {
        last.insert(candidate.row);
        let around = rows.around(candidate.row);
        last.extend(around.into_iter().filter(|row| *row != NO_ROW && passes(*row)));
    }
    let mut lenders = Vec::new();
    for row in &last {
        exact.reach(*row, &mut reach);
        let around = rows.around(*row);
        let three = around.into_iter().chain([*row]).filter(|row| *row != NO_ROW);
        lenders.extend(three.filter(|row| scored.insert(*row)));
    }
    exact.scorer.lexical.score_rows(&lenders);
    exact.compare(reach)?;
    last.into_iter().map(|row| exact.candidate(row)).collect()
}

/// The rows that are best by words and priors.
fn by_words(
    exact: &Exact<'_, '_>,
    depth: usize,
    passes: &impl Fn(u32) -> bool,
) -> Result<Vec<u32>> {
    let (rows, lexical) = (exact.scorer.rows, &exact.scorer.lexical);
    let mut reached = lexical.reached().to_vec();
    reached.sort_unstable();
    reached.dedup();
    let mut pool: Vec<Candidate> = reached
        .into_iter()
        .filter(|row| passes(*row))
        .map(|row| Candidate { score: lexical.score(row).score, id: rows.id(row), row })
        .collect();
    let list = LEXICAL_LIST_ROWS.max(2 * depth);
    keep_best(&mut pool, LEXICAL_POOL_ROWS.max(2 * list));
    for candidate in &mut pool {
        candidate.score = exact.scorer.parts(candidate.row, |_| Ok(0.0))?.0.own();
    }
    keep_best(&mut pool, list);
    Ok(pool.into_iter().map(|candidate| candidate.row).collect())
}

fn keep_best(candidates: &mut Vec<Candidate>, most: usize) {
    if most < candidates.len() {
        candidates.select_nth_unstable_by(most, Candidate::order);
        candidates.truncate(most);
    }
}

/// Cosines as the codes tell them; 0 for a row without a code.
struct Estimates<'r, 's> {
    rows: &'r UserRows<'s>,
    codes: Option<&'r CodeQuery>,
    scratch: Vec<f32>,
}

impl Estimates<'_, '_> {
    fn cosine(&mut self, row: u32) -> Result<f32> {
        let Some(query) = self.codes else { return Ok(0.0) };
        let Some((code, factor)) = self.rows.code(row)? else { return Ok(0.0) };
        self.scratch.clear();
        query.scan(code, factor, &mut self.scratch);
        Ok(self.scratch.first().copied().unwrap_or(0.0))
    }
}
