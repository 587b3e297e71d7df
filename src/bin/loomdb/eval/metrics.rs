//! The figures of one question's ranking, and their means.
//!
//! `recall@k`: share of the gold turns among the first k. `all@k`: 1 if all of them are. `ndcg@10`: with gain 1 for a gold
//! turn, divided by the best that is possible. `mrr`: one over the rank of the first gold turn. In a budget of tokens:
//! the same share and `all` of what [`pack`] takes.

/// The k of `recall@k`.
pub const RECALL_AT: [usize; 4] = [5, 10, 20, 50];
/// The k of `all@k`.
pub const ALL_AT: [usize; 3] = [10, 20, 50];
/// Budgets, tokens.
pub const BUDGETS: [usize; 4] = [500, 1000, 2000, 4000];
/// Ranks that are looked at.
pub const RANKS: usize = 400;
/// Tokens left of a budget below which nothing more is taken.
const LEFT_MIN: usize = 5;

/// Tokens of a text, estimated as 1.3 a word, at least 1.
pub fn tokens(text: &str) -> usize {
    (text.split_whitespace().count() * 13).div_ceil(10).max(1)
}

/// The figures of one ranking, or the mean over several.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Scores {
    /// At [`RECALL_AT`].
    pub recall: [f64; 4],
    /// At [`ALL_AT`].
    pub all: [f64; 3],
    pub ndcg_at_10: f64,
    pub mrr: f64,
}

/// Shares of gold turns within each of [`BUDGETS`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BudgetScores {
    pub recall: [f64; 4],
    pub all: [f64; 4],
}

/// Scores a ranking of turns, best first, each at most once. `gold`: at least one turn, each once.
pub fn score(ranking: &[usize], gold: &[usize]) -> Scores {
    // Ranks of the gold turns that were found, from 0, ascending.
    let found = ranking.iter().take(RANKS).enumerate();
    let found: Vec<usize> =
        found.filter(|(_, turn)| gold.contains(turn)).map(|(rank, _)| rank).collect();
    let within = |k: usize| found.iter().filter(|rank| **rank < k).count();
    let gain = |rank: usize| 1.0 / ((rank + 2) as f64).log2();
    let best: f64 = (0..gold.len().min(10)).map(gain).sum();
    Scores {
        recall: RECALL_AT.map(|k| within(k) as f64 / gold.len() as f64),
        all: ALL_AT.map(|k| share(within(k) == gold.len())),
        ndcg_at_10: found.iter().filter(|rank| **rank < 10).map(|rank| gain(*rank)).sum::<f64>()
            / best,
        mrr: found.first().map_or(0.0, |rank| 1.0 / (rank + 1) as f64),
    }
}

/// Scores what of a ranking fits into each budget. `costs`: the tokens of each rank.
pub fn score_budgets(ranking: &[usize], costs: &[usize], gold: &[usize]) -> BudgetScores {
    let found = BUDGETS.map(|budget| {
        pack(costs, budget).into_iter().filter(|rank| gold.contains(&ranking[*rank])).count()
    });
    BudgetScores {
        recall: found.map(|found| found as f64 / gold.len() as f64),
        all: found.map(|found| share(found == gold.len())),
    }
}

/// The ranks that are taken into `budget` tokens: greedily in order, and what does not fit is skipped.
fn pack(costs: &[usize], budget: usize) -> Vec<usize> {
    let (mut left, mut taken) = (budget, Vec::new());
    for (rank, cost) in costs.iter().take(RANKS).enumerate() {
        if *cost <= left {
            taken.push(rank);
            left -= cost;
            if left < LEFT_MIN {
                break;
            }
        }
    }
    taken
}

fn share(yes: bool) -> f64 {
    if yes { 1.0 } else { 0.0 }
}

/// The mean of the [`Scores`] of several questions.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mean {
    /// Questions.
    pub n: usize,
    sum: Scores,
}

impl Mean {
    pub fn add(&mut self, scores: &Scores) {
        self.n += 1;
        add(&mut self.sum.recall, &scores.recall);
        add(&mut self.sum.all, &scores.all);
        self.sum.ndcg_at_10 += scores.ndcg_at_10;
        self.sum.mrr += scores.mrr;
    }

    /// The mean; zeros without questions.
    pub fn mean(&self) -> Scores {
        let n = self.n.max(1) as f64;
        Scores {
            recall: self.sum.recall.map(|sum| sum / n),
            all: self.sum.all.map(|sum| sum / n),
            ndcg_at_10: self.sum.ndcg_at_10 / n,
            mrr: self.sum.mrr / n,
        }
    }
}

/// The mean of the [`BudgetScores`] of several questions.
#[derive(Clone, Copy, Debug, Default)]
pub struct BudgetMean {
    n: usize,
    sum: BudgetScores,
}

impl BudgetMean {
    pub fn add(&mut self, scores: &BudgetScores) {
        self.n += 1;
        add(&mut self.sum.recall, &scores.recall);
        add(&mut self.sum.all, &scores.all);
    }

    /// The mean; zeros without questions.
    pub fn mean(&self) -> BudgetScores {
        let n = self.n.max(1) as f64;
        BudgetScores {
            recall: self.sum.recall.map(|sum| sum / n),
            all: self.sum.all.map(|sum| sum / n),
        }
    }
}

fn add<const N: usize>(sums: &mut [f64; N], values: &[f64; N]) {
    sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn close(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-12, "{a} and {b}");
    }

    #[test]
    fn a_token_is_three_tenths_more_than_a_word_rounded_up() {
        assert_eq!(["", "one", "a b", "1 2 3 4 5 6 7 8 9 10"].map(tokens), [1, 2, 3, 13]);
        assert_eq!((tokens(&"w ".repeat(115)), tokens(&"w ".repeat(110))), (150, 143));
    }

    #[test]
    fn figures_are_those_computed_by_hand() {
        // Gold on ranks 2 and 7 of three; the third is not found.
        let ranking = [10, 1, 11, 12, 13, 14, 2, 15];
        let scores = score(&ranking, &[1, 2, 3]);
        let third = 1.0 / 3.0;
        assert_eq!(scores.recall, [third, 2.0 * third, 2.0 * third, 2.0 * third]);
        assert_eq!(scores.all, [0.0; 3]);
        close(scores.mrr, 0.5);
        // 1/log2(3) + 1/log2(8), over 1 + 1/log2(3) + 1/2.
        close(scores.ndcg_at_10, (0.630_929_753_571_457_4 + third) / 2.130_929_753_571_457_4);
    }

    #[test]
    fn everything_at_the_top_is_one_and_nothing_is_zero() {
        let scores = score(&[3, 1, 2], &[1, 2, 3]);
        assert_eq!((scores.recall, scores.all), ([1.0; 4], [1.0; 3]));
        close(scores.ndcg_at_10, 1.0);
        close(scores.mrr, 1.0);
        assert_eq!(score(&[], &[1]), Scores::default());
        let late: Vec<usize> = (0..RANKS + 1).collect();
        assert_eq!(score(&late, &[RANKS]), Scores::default());
        close(score(&late, &[RANKS - 1]).mrr, 1.0 / RANKS as f64);
    }

    #[test]
    fn more_than_ten_gold_turns_can_still_be_perfect() {
        let ranking: Vec<usize> = (0..12).collect();
        close(score(&ranking, &ranking).ndcg_at_10, 1.0);
        assert_eq!(score(&ranking, &ranking).all, [0.0, 1.0, 1.0]);
    }

    #[test]
    fn what_does_not_fit_is_skipped_and_a_full_budget_ends() {
        assert_eq!(pack(&[60, 50, 30, 11, 10], 100), [0, 2, 4]);
        assert_eq!(pack(&[96, 1], 100), [0]);
        assert_eq!(pack(&[95, 1], 100), [0, 1]);
        assert_eq!(pack(&[1; RANKS + 1], 10_000).len(), RANKS);
    }

    #[test]
    fn budgets_are_scored_by_what_was_taken() {
        // 400 and 90 fit into 500, the 600 between them into 2,000 only.
        let scores = score_budgets(&[7, 8, 9], &[400, 600, 90], &[8, 9]);
        assert_eq!(scores.recall, [0.5, 0.5, 1.0, 1.0]);
        assert_eq!(scores.all, [0.0, 0.0, 1.0, 1.0]);
    }

    #[test]
    fn means_are_over_questions() {
        let mut mean = Mean::default();
        assert_eq!(mean.mean(), Scores::default());
        mean.add(&score(&[1], &[1]));
        mean.add(&score(&[], &[1]));
        assert_eq!((mean.n, mean.mean().mrr, mean.mean().all[0]), (2, 0.5, 0.5));
        let mut budgets = BudgetMean::default();
        budgets.add(&score_budgets(&[1], &[400], &[1]));
        budgets.add(&score_budgets(&[1], &[700], &[1]));
        assert_eq!(budgets.mean().recall, [0.5, 1.0, 1.0, 1.0]);
    }
}
