//! A rough look at the words of a large memory: which rows are promising.
//!
//! A rare term proposes the passages that hold it; one that more passages hold only adds to those that a rarer one has
//! proposed. Every passage is taken for one of mean length, and only the next turn borrows. Lists are gone through one after
//! the other, and of rows nothing is looked up but for the best passages: the cost is that of the postings.

use crate::index::{NO_ROW, UserRows};
use crate::model::Frequencies;
use crate::options::{PROPOSING_TERM_PASSAGES_MAX, RecallOptions};

use super::super::formula::{length_norm, term_score};
use super::super::numbers::{NumberSet, RankedSet};
use super::super::slots::ROWS_AHEAD;
use super::chosen::List;
use super::half_terms;

/// Terms that propose however many passages hold them: the rarest of a question.
const PROPOSING_TERMS: usize = 2;

/// Passages that hold a proposing term, with their rough sums.
pub(super) struct Rough {
    reached: RankedSet,
    sums: Vec<Sums>,
}

#[derive(Clone, Copy, Default)]
struct Sums {
    /// Of what the passage holds.
    own: f32,
    /// Of what its text lends to the next turn.
    lends: f32,
}

impl Rough {
    pub fn new(rows: &UserRows<'_>, lists: &[List], weights: &RecallOptions) -> Rough {
        let mut by_rarity: Vec<&List> = lists.iter().collect();
        by_rarity.sort_by_key(|list| list.postings.len());
        let mut reached = NumberSet::new(rows.passage_count());
        for (rank, list) in by_rarity.iter().enumerate() {
            if rank < PROPOSING_TERMS || list.postings.len() as u64 <= PROPOSING_TERM_PASSAGES_MAX {
                list.postings.iter().for_each(|(passage, _)| {
                    reached.insert(*passage);
                });
            }
        }
        let reached = RankedSet::new(reached);
        let mut sums = vec![Sums::default(); reached.len()];
        for list in by_rarity {
            let rough = |frequency| {
                term_score(list.weight, frequency, length_norm(1.0, 1.0, weights), weights)
            };
            let adds = |frequencies: Frequencies| Sums {
                own: rough(f32::from(half_terms(frequencies)) * 0.5),
                lends: rough(f32::from(frequencies.text) * weights.words_previous),
            };
            const ONCE: Frequencies = Frequencies { text: 1, speaker: 0, date: 0 };
            let once = adds(ONCE);
            for &(passage, frequencies) in &list.postings {
                if let Some(at) = reached.rank(passage) {
                    let added = if frequencies == ONCE { once } else { adds(frequencies) };
                    sums[at].own += added.own;
                    sums[at].lends += added.lends;
                }
            }
        }
        Rough { reached, sums }
    }

    /// Passages reached.
    pub fn len(&self) -> usize {
        self.reached.len()
    }

    fn sums(&self, passage: u32) -> Sums {
        self.reached.rank(passage).map_or_else(Sums::default, |at| self.sums[at])
    }

    /// The rough sum of a live row: that of its best passage, the first with what the turn before lends.
    pub fn sum(&self, rows: &UserRows<'_>, row: u32) -> f32 {
        let passages = rows.passages(row);
        let [previous, _] = rows.around(row);
        let lent = match previous {
            NO_ROW => 0.0,
            previous => self.sums(rows.passages(previous).end - 1).lends,
        };
        let first = self.sums(passages.start).own + lent;
        (passages.start + 1..passages.end).map(|one| self.sums(one).own).fold(first, f32::max)
    }

    /// The `most` rows of the best passages, where there are so many, and those that borrow from them, each once, with their
    /// rough sums. Only rows that `admits` lets pass.
    pub fn best(
        &self,
        rows: &UserRows<'_>,
        most: usize,
        admits: Option<&dyn Fn(u32) -> bool>,
    ) -> Vec<(u32, f32)> {
        let all = self.reached.iter().zip(&self.sums).map(|(passage, sums)| (sums.own, passage));
        let mut passages: Vec<(f32, u32)> = match admits {
            Some(admits) => all.filter(|(_, passage)| admits(rows.row_of(*passage))).collect(),
            None => all.collect(),
        };
        // Long turns have several of the best passages.
        let (mut count, all) = (most, passages.len());
        let found = loop {
            if count < all {
                passages.select_nth_unstable_by(count, |a, b| b.0.total_cmp(&a.0));
            }
            let found = rows_of(rows, &mut passages[..count.min(all)]);
            if found.chunk_by(|a, b| a == b).count() >= most || count >= all {
                break found;
            }
            count *= 2;
        };
        let mut seen = NumberSet::new(rows.len());
        let mut best = Vec::with_capacity(2 * found.len());
        for (at, (&(_, passage), &row)) in passages.iter().zip(&found).enumerate() {
            if let Some(ahead) = found.get(at + ROWS_AHEAD) {
                rows.expect(*ahead);
            }
            let mut add = |row| {
                if seen.insert(row) {
                    best.push((row, self.sum(rows, row)));
                }
            };
            add(row);
            let [_, next] = rows.around(row);
            let lends = next != NO_ROW && passage + 1 == rows.passages(row).end;
            let lends = lends && self.sums(passage).lends > 0.0;
            if lends && admits.is_none_or(|admits| admits(next)) {
                add(next);
            }
        }
        best
    }
}

/// The rows of some passages, which are put in the order in which they lie.
fn rows_of(rows: &UserRows<'_>, passages: &mut [(f32, u32)]) -> Vec<u32> {
    passages.sort_unstable_by_key(|(_, passage)| *passage);
    let row = |(at, (_, passage)): (usize, &(f32, u32))| {
        if let Some((_, ahead)) = passages.get(at + ROWS_AHEAD) {
            rows.expect_row_of(*ahead);
        }
        rows.row_of(*passage)
    };
    passages.iter().enumerate().map(row).collect()
}
