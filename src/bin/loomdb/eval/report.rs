//! What an evaluation found: JSON with names that stay, and a table for people.

use serde_json::{Map, Value, json};

use super::metrics::{ALL_AT, BUDGETS, BudgetMean, BudgetScores, Mean, RECALL_AT, Scores};
use super::metrics::{score, score_budgets};

/// The category of questions that ask about the wrong person on purpose. Kept out of the main figures.
const ADVERSARIAL: &str = "adversarial";

/// The figures of one way of ranking.
#[derive(Debug, Default)]
pub struct Block {
    /// In the order of their first question.
    by_category: Vec<(String, Mean)>,
    all: Mean,
    all_but_adversarial: Mean,
    /// With costs as the answer would have them: a passage counts as its turn.
    budget: BudgetMean,
    /// With the costs of whole turns.
    budget_whole_turns: BudgetMean,
}

/// A ranking of turns.
#[derive(Debug, Default)]
pub struct Ranking {
    /// Places of turns, best first.
    pub turns: Vec<usize>,
    /// Tokens of each, as it would enter an answer.
    pub tokens: Vec<usize>,
    /// Tokens of each as a whole.
    pub whole_tokens: Vec<usize>,
}

impl Block {
    /// Adds the ranking for one question.
    pub fn add(&mut self, category: &str, ranking: &Ranking, gold: &[usize]) {
        let scores = score(&ranking.turns, gold);
        self.all.add(&scores);
        match self.by_category.iter_mut().find(|(name, _)| name == category) {
            Some((_, mean)) => mean.add(&scores),
            None => {
                let mut mean = Mean::default();
                mean.add(&scores);
                self.by_category.push((category.to_owned(), mean));
            }
        }
        if category != ADVERSARIAL {
            self.all_but_adversarial.add(&scores);
            let budgets = |tokens| score_budgets(&ranking.turns, tokens, gold);
            self.budget.add(&budgets(&ranking.tokens));
            self.budget_whole_turns.add(&budgets(&ranking.whole_tokens));
        }
    }

    fn json(&self) -> Map<String, Value> {
        let by_category: Map<String, Value> =
            self.by_category.iter().map(|(name, mean)| (name.clone(), mean_json(mean))).collect();
        Map::from_iter([
            ("by_category".to_owned(), by_category.into()),
            ("all".to_owned(), mean_json(&self.all)),
            ("all_but_adversarial".to_owned(), mean_json(&self.all_but_adversarial)),
            ("budget".to_owned(), budget_json(&self.budget.mean())),
            ("budget_whole_turns".to_owned(), budget_json(&self.budget_whole_turns.mean())),
        ])
    }
}

/// Microseconds of a search.
#[derive(Clone, Copy, Debug, Default)]
pub struct Latency {
    pub p50: f64,
    pub p99: f64,
    pub mean: f64,
}

impl Latency {
    /// Of these times, in microseconds.
    pub fn of(mut micros: Vec<f64>) -> Latency {
        micros.sort_by(f64::total_cmp);
        let Some(last) = micros.len().checked_sub(1) else { return Latency::default() };
        let at = |share: f64| micros[(last as f64 * share).round() as usize];
        let mean = micros.iter().sum::<f64>() / micros.len() as f64;
        Latency { p50: at(0.5), p99: at(0.99), mean }
    }
}

/// A whole evaluation.
#[derive(Debug)]
pub struct Report {
    /// The name of the data set.
    pub set: String,
    /// Questions asked.
    pub queries: usize,
    /// Turns stored.
    pub turns: usize,
    /// The vector space.
    pub embedder: String,
    /// The search of this build.
    pub search: Block,
    pub latency: Latency,
    /// The yardsticks by name.
    pub compared: Vec<(&'static str, Block)>,
}

impl Report {
    /// As one JSON object.
    pub fn json(&self) -> Value {
        let Latency { p50, p99, mean } = self.latency;
        let mut value = Map::from_iter([
            ("set".to_owned(), json!(self.set)),
            ("queries".to_owned(), json!(self.queries)),
            ("turns".to_owned(), json!(self.turns)),
            ("embedder".to_owned(), json!(self.embedder)),
        ]);
        value.extend(self.search.json());
        value.insert("latency_us".to_owned(), json!({ "p50": p50, "p99": p99, "mean": mean }));
        for (name, block) in &self.compared {
            value.insert((*name).to_owned(), block.json().into());
        }
        value.into()
    }

    /// For people, in per cent.
    pub fn table(&self) -> String {
        let Report { set, queries, turns, embedder, search, latency, compared } = self;
        let set = crate::output::plain(set);
        let mut lines =
            format!("{set}: {queries} questions about {turns} turns; vectors: {embedder}\n");
        lines.push_str(&format!("\n{:<28}{:>6}", "per cent", "n"));
        RECALL_AT.iter().for_each(|k| lines.push_str(&format!("{:>8}", format!("r@{k}"))));
        ALL_AT.iter().for_each(|k| lines.push_str(&format!("{:>8}", format!("all@{k}"))));
        lines.push_str(&format!("{:>9}{:>7}\n", "ndcg@10", "mrr"));
        for (name, mean) in &search.by_category {
            lines.push_str(&mean_line(&crate::output::plain(name), mean));
        }
        lines.push_str(&mean_line("all", &search.all));
        lines.push_str(&mean_line("all but adversarial", &search.all_but_adversarial));
        for (name, block) in compared {
            lines.push_str(&mean_line(&words(name), &block.all_but_adversarial));
        }

        lines.push_str(&format!("\n{:<28}", "within tokens, recall / all"));
        BUDGETS.iter().for_each(|budget| lines.push_str(&format!("{budget:>16}")));
        lines.push('\n');
        lines.push_str(&budget_line("long turns as passages", &search.budget));
        lines.push_str(&budget_line("whole turns", &search.budget_whole_turns));
        for (name, block) in compared {
            lines.push_str(&budget_line(&words(name), &block.budget_whole_turns));
        }
        let Latency { p50, p99, mean } = latency;
        lines.push_str(&format!(
            "\nsearch, top 10: p50 {p50:.0} us, p99 {p99:.0} us, mean {mean:.0} us\n"
        ));
        lines
    }
}

fn words(name: &str) -> String {
    name.replace('_', " ")
}

fn mean_json(mean: &Mean) -> Value {
    let Scores { recall, all, ndcg_at_10, mrr } = mean.mean();
    let mut value = Map::from_iter([("n".to_owned(), json!(mean.n))]);
    value.extend(
        RECALL_AT.iter().zip(recall).map(|(k, share)| (format!("recall@{k}"), json!(share))),
    );
    value.extend(ALL_AT.iter().zip(all).map(|(k, share)| (format!("all@{k}"), json!(share))));
    value.insert("ndcg@10".to_owned(), json!(ndcg_at_10));
    value.insert("mrr".to_owned(), json!(mrr));
    value.into()
}

fn budget_json(scores: &BudgetScores) -> Value {
    let parts = BUDGETS.iter().zip(scores.recall.iter().zip(&scores.all));
    let part = |(budget, (recall, all)): (&usize, (&f64, &f64))| {
        (budget.to_string(), json!({ "recall": recall, "all": all }))
    };
    Value::Object(parts.map(part).collect())
}

fn mean_line(name: &str, mean: &Mean) -> String {
    let Scores { recall, all, ndcg_at_10, mrr } = mean.mean();
    let mut line = format!("{name:<28}{:>6}", mean.n);
    for share in recall.iter().chain(&all) {
        line.push_str(&format!("{:>8.1}", 100.0 * share));
    }
    line + &format!("{:>9.1}{:>7.1}\n", 100.0 * ndcg_at_10, 100.0 * mrr)
}

fn budget_line(name: &str, mean: &BudgetMean) -> String {
    let scores = mean.mean();
    let mut line = format!("{name:<28}");
    for (recall, all) in scores.recall.iter().zip(&scores.all) {
        line.push_str(&format!("{:>16}", format!("{:.1} / {:.1}", 100.0 * recall, 100.0 * all)));
    }
    line + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranking(turns: &[usize], tokens: usize, whole_tokens: usize) -> Ranking {
        let many = |tokens| vec![tokens; turns.len()];
        Ranking { turns: turns.into(), tokens: many(tokens), whole_tokens: many(whole_tokens) }
    }

    fn report() -> Report {
        let mut search = Block::default();
        search.add("temporal", &ranking(&[1, 0], 90, 600), &[1]);
        search.add("adversarial", &ranking(&[0], 90, 600), &[1]);
        Report {
            set: "s".into(),
            queries: 2,
            turns: 2,
            embedder: "e".into(),
            search,
            latency: Latency::of(vec![30.0, 10.0, 20.0]),
            compared: vec![("plain_bm25", Block::default())],
        }
    }

    #[test]
    fn the_json_has_the_names_that_stay() {
        let value = report().json();
        assert_eq!(value["all"]["n"], 2);
        assert_eq!(value["all"]["recall@5"], 0.5);
        assert_eq!(value["all_but_adversarial"]["all@50"], 1.0);
        assert_eq!(value["by_category"]["adversarial"]["mrr"], 0.0);
        assert_eq!(value["by_category"]["temporal"]["ndcg@10"], 1.0);
        assert_eq!(value["budget"]["500"], json!({ "recall": 1.0, "all": 1.0 }));
        assert_eq!(value["budget_whole_turns"]["500"], json!({ "recall": 0.0, "all": 0.0 }));
        assert_eq!(value["budget_whole_turns"]["1000"]["all"], 1.0);
        assert_eq!(value["latency_us"], json!({ "p50": 20.0, "p99": 30.0, "mean": 20.0 }));
        assert_eq!(value["plain_bm25"]["all"]["n"], 0);
    }

    #[test]
    fn the_table_tells_per_cent() {
        let table = report().table();
        let line = |name: &str| table.lines().find(|line| line.starts_with(name)).unwrap();
        assert!(line("all  ").contains(" 50.0"));
        assert!(line("whole turns").contains("0.0 / 0.0") && line("long turns").contains("100.0"));
        assert!(line("search, top 10").contains("p50 20 us"));
        assert!(line("plain bm25").contains(" 0.0"));
    }
}
