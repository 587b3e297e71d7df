//! The best of many scored rows, in one pass.
//!
//! Invariant: what is kept is what sorting all offered rows would put first: larger scores first, equal scores by the
//! smaller name, whatever the order of offers.

use std::cmp::Ordering;

/// Scores compared before any is looked at.
const STRIP: usize = 16;

/// A row's name and score.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scored {
    /// The score; larger is better.
    pub score: f32,
    /// What the caller calls the row.
    pub name: u64,
}

impl Scored {
    /// Best first; a score that is not a number ranks by its sign, as `total_cmp` has it.
    pub fn order(&self, other: &Scored) -> Ordering {
        other.score.total_cmp(&self.score).then(self.name.cmp(&other.name))
    }
}

/// Keeps the best rows of those offered.
///
/// Rows that beat the worst of the last cut are gathered, and cut back to the best when twice as many have come: for
/// `n` rows in random order about `m ln(n / m)` are gathered at all, the others cost one comparison.
#[derive(Clone, Debug)]
pub struct Best {
    most: usize,
    kept: Vec<Rank>,
    /// The worst row that is still among the best, once as many have been seen.
    worst: Option<Rank>,
}

/// A row as one number that is smaller for a better row: the score's place in the order of `total_cmp`, from the top,
/// above the name, above the number that comes back with the row. Comparing numbers makes a cut twice as fast as
/// comparing pairs.
type Rank = u128;

fn rank(row: Scored, at: u32) -> Rank {
    let bits = row.score.to_bits();
    // Of a number above zero all bits but the sign turn, of one below only the sign stays as it is: larger is smaller.
    let from_top = if bits >> 31 == 0 { bits ^ 0x7fff_ffff } else { bits };
    u128::from(from_top) << 96 | u128::from(row.name) << 32 | u128::from(at)
}

fn ranked(rank: Rank) -> (Scored, u32) {
    let from_top = (rank >> 96) as u32;
    let bits = if from_top >> 31 == 0 { from_top ^ 0x7fff_ffff } else { from_top };
    (Scored { score: f32::from_bits(bits), name: (rank >> 32) as u64 }, rank as u32)
}

impl Best {
    /// Keeps the best `most` rows.
    pub fn new(most: usize) -> Best {
        Best { most, kept: Vec::new(), worst: None }
    }

    /// Offers a score a row. `name` gives the name of a row by its index in `scores`, with a number that comes back with
    /// it, or `None` to pass it over; it is asked only for rows that may be among the best.
    ///
    /// A score that is not a number is never below the worst: such a row is kept for the caller to look at.
    pub fn offer(&mut self, scores: &[f32], mut name: impl FnMut(usize) -> Option<(u64, u32)>) {
        for (strip, scores) in scores.chunks(STRIP).enumerate() {
            let worst = self.worst.map_or(f32::NEG_INFINITY, |worst| ranked(worst).0.score);
            // Without a branch inside, so that the compiler compares many at once.
            #[expect(clippy::neg_cmp_op_on_partial_ord, reason = "what is no number is not below")]
            let able = |bits, (at, score): (u32, &f32)| bits | u32::from(!(*score < worst)) << at;
            let mut able = (0..).zip(scores).fold(0, able);
            while able != 0 {
                let at = able.trailing_zeros() as usize;
                able &= able - 1;
                if let Some((name, back)) = name(strip * STRIP + at) {
                    self.push(Scored { score: scores[at], name }, back);
                }
            }
        }
    }

    /// Offers one row, and a number that comes back with it. Of two offers of one row with one score the one with the
    /// smaller number is better.
    pub fn push(&mut self, row: Scored, at: u32) {
        let rank = rank(row, at);
        if self.worst.is_some_and(|worst| rank >= worst) {
            return;
        }
        self.kept.push(rank);
        if self.kept.len() >= self.most.saturating_mul(2).max(1) {
            self.cut();
        }
    }

    /// The best rows with their numbers, best first.
    pub fn into_sorted(mut self) -> Vec<(Scored, u32)> {
        self.kept.sort_unstable();
        self.kept.truncate(self.most);
        self.kept.into_iter().map(ranked).collect()
    }

    /// The best rows with their numbers, in no order: cheaper where they are scored again.
    pub fn into_unsorted(mut self) -> Vec<(Scored, u32)> {
        self.cut();
        self.kept.into_iter().map(ranked).collect()
    }

    fn cut(&mut self) {
        if self.kept.len() > self.most && self.most > 0 {
            self.kept.select_nth_unstable(self.most - 1);
        }
        self.kept.truncate(self.most);
        if self.kept.len() == self.most {
            self.worst = self.kept.iter().max().copied();
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn by_sorting(scores: &[f32], most: usize) -> Vec<(u32, u64)> {
        let mut all: Vec<Scored> =
            (0..).zip(scores).map(|(name, score)| Scored { score: *score, name }).collect();
        all.sort_by(Scored::order);
        all.iter().take(most).map(|row| (row.score.to_bits(), row.name)).collect()
    }

    fn bits(rows: Vec<(Scored, u32)>) -> Vec<(u32, u64)> {
        let bits = |(row, at): &(Scored, u32)| {
            assert_eq!(*at, row.name as u32 ^ 0x8000_0001, "the number that came with the row");
            (row.score.to_bits(), row.name)
        };
        rows.iter().map(bits).collect()
    }

    /// Names a row by its index; the number uses the highest and the lowest bit.
    fn named(row: usize) -> Option<(u64, u32)> {
        Some((row as u64, row as u32 ^ 0x8000_0001))
    }

    proptest! {
        #[test]
        fn the_best_are_those_that_sorting_puts_first(
            // Few distinct scores: many ties.
            scores in prop::collection::vec((-20i8..20).prop_map(|score| f32::from(score) / 8.0), 0..800),
            most in 0usize..120,
            block in 1usize..300,
            backwards in any::<bool>(),
        ) {
            let mut best = Best::new(most);
            let mut blocks: Vec<(usize, &[f32])> = scores.chunks(block).enumerate().collect();
            if backwards {
                blocks.reverse();
            }
            for (at, scores) in blocks {
                best.offer(scores, |row| named(at * block + row));
            }
            prop_assert_eq!(bits(best.into_sorted()), by_sorting(&scores, most));
        }
    }

    #[test]
    fn rows_without_a_name_take_no_place() {
        let scores: Vec<f32> = (0..1000u16).map(f32::from).collect();
        let mut best = Best::new(3);
        best.offer(&scores, |row| if row % 100 == 0 { named(row) } else { None });
        assert_eq!(
            best.into_sorted().iter().map(|(row, _)| row.name).collect::<Vec<_>>(),
            [900, 800, 700]
        );
    }

    #[test]
    fn infinite_scores_and_those_that_are_no_number_are_not_lost() {
        let scores = [f32::NEG_INFINITY, 1.0, f32::NAN, f32::INFINITY];
        let mut best = Best::new(4);
        best.offer(&scores, named);
        let names: Vec<u64> = best.into_sorted().iter().map(|(row, _)| row.name).collect();
        assert_eq!(names, [2, 3, 1, 0]);
        let mut best = Best::new(1);
        best.offer(&[5.0; 64], named);
        best.offer(&[f32::NAN], |_| Some((99, 0)));
        assert_eq!(best.into_sorted()[0].0.name, 99);
    }
}
