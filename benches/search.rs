//! Question text to hits with text, the ordinary search of one user: 100,000 rows, and 600, the size of one long
//! conversation.
//!
//! `LOOMDB_TURNS=turns.jsonl.gz cargo bench --bench search` stores the turns of a file (JSON Lines with `speaker` and
//! `text`); without one, generated sentences. A question is 4 to 8 content words of a random turn. Every question is asked
//! once, and in a second pass again: the first pass pays for postings, vectors and texts that no question before has
//! touched. Prints p50 and p99 of each pass, the mean of each stage, and the overlap of the first ten with the
//! exhaustive path. One thread; nothing is asserted.

mod common;

use std::collections::HashSet;
use std::hint::black_box;

use loomdb::{Db, EpisodeId, Memory, Query, Recall, StageMicros};

use common::{Random, Spread, Turns, USER};

const ROWS: usize = 100_000;
const FEW_ROWS: usize = 600;
const QUESTIONS: usize = 400;
/// Questions that the exhaustive path answers too.
const SAMPLE: usize = 20;
const TOP: usize = 10;
const WORDS_MIN: usize = 4;
const WORDS_MAX: usize = 8;
/// Letters of a content word, at least. Says enough of English without a list of words.
const LETTERS_MIN: usize = 4;

fn main() {
    let directory = common::bench_dir("search");
    common::print_machine(&directory);
    let turns = Turns::load(ROWS);
    println!("data: {}; 1 thread", turns.source);
    for (rows, goal) in [(ROWS, 1_000.0), (FEW_ROWS, 150.0)] {
        let path = directory.join(format!("search-{rows}.loom"));
        let stored = &turns.turns[..rows];
        common::build(&path, stored, 0, true);
        // Opened anew, so that the first question finds nothing that building has left in memory.
        let db = Db::open(&path).expect("open");
        measure(&db.user(USER), rows, &questions(stored), goal);
    }
    common::remove(&directory);
}

/// Questions, each different, in the words of random turns.
fn questions(turns: &[(String, String)]) -> Vec<String> {
    let mut random = Random::new(7);
    let mut seen = HashSet::new();
    let mut questions = Vec::new();
    // Short turns have too few words; of some hundred rows not every try gives a new question.
    for _ in 0..QUESTIONS * 100 {
        let (_, text) = &turns[random.below(turns.len())];
        let mut words: Vec<&str> = text
            .split(|character: char| !character.is_alphanumeric())
            .filter(|word| word.chars().count() >= LETTERS_MIN)
            .collect();
        let wanted = WORDS_MIN + random.below(WORDS_MAX - WORDS_MIN + 1);
        while words.len() > wanted {
            words.remove(random.below(words.len()));
        }
        let question = words.join(" ");
        if words.len() >= WORDS_MIN && seen.insert(question.clone()) {
            questions.push(question);
        }
        if questions.len() == QUESTIONS {
            break;
        }
    }
    assert!(!questions.is_empty(), "no turn has {WORDS_MIN} content words");
    questions
}

fn measure(memory: &Memory, rows: usize, questions: &[String], goal: f64) {
    let ask = |question: &String| search(memory, Query::text(question.as_str()));
    let [mut first, mut again, mut exact] = [(); 3].map(|()| Spread::default());
    let mut stages = Stages::default();
    // Opens the embedder and checks the checksums of what it touches; `benches/open.rs` measures that.
    let opening = {
        let mut opening = Spread::default();
        opening.time(|| ask(&questions[0]));
        opening.p50()
    };
    for question in questions {
        first.time(|| ask(question));
    }
    let mut explained = None;
    for question in questions {
        let answer = again.time(|| ask(question));
        stages.add(&answer.explain.micros);
        explained = Some(answer.explain);
    }
    let (mut found, mut wanted) = (0, 0);
    for question in questions.iter().step_by((questions.len() / SAMPLE).max(1)) {
        let truth = exact.time(|| search(memory, Query::text(question.as_str()).exact(true)));
        let truth = ids(&truth);
        found += truth.intersection(&ids(&ask(question))).count();
        wanted += truth.len();
    }

    println!("\nsearch of {rows} rows, {} questions, top {TOP}, texts included", questions.len());
    println!("  first search of the handle {opening:.0} us");
    println!("  first pass                 {first}");
    println!("  second pass                {again}");
    println!("  exhaustive path            {exact}");
    stages.print();
    println!("last question: {}", explained.expect("there are questions"));
    println!("overlap@{TOP} with the exhaustive path: {:.4}", found as f64 / wanted.max(1) as f64);
    println!("p50 {:.0} us, p99 {:.0} us (goal: p50 {goal:.0} us)", again.p50(), again.p99());
}

/// Searches and touches every text, as a caller would.
fn search(memory: &Memory, query: Query) -> Recall {
    let recall = memory.search(query.top_k(TOP)).expect("search");
    black_box(recall.hits.iter().map(|hit| hit.episode.text.len()).sum::<usize>());
    recall
}

fn ids(recall: &Recall) -> HashSet<EpisodeId> {
    recall.hits.iter().map(|hit| hit.episode.id).collect()
}

/// Sums of the stages of several searches.
#[derive(Default)]
struct Stages {
    searches: u64,
    sums: [u64; 7],
}

impl Stages {
    /// The stages that a search tells of.
    fn parts(micros: &StageMicros) -> [(&'static str, u64); 7] {
        [
            ("embed", micros.embed),
            ("snapshot", micros.snapshot),
            ("lexical", micros.lexical),
            ("scan", micros.scan),
            ("rerank", micros.rerank),
            ("fetch", micros.fetch),
            ("total", micros.total),
        ]
    }

    fn add(&mut self, micros: &StageMicros) {
        self.searches += 1;
        for (sum, (_, part)) in self.sums.iter_mut().zip(Stages::parts(micros)) {
            *sum += part;
        }
    }

    fn print(&self) {
        println!("  mean of each stage, second pass, us");
        for ((name, _), sum) in Stages::parts(&StageMicros::default()).iter().zip(self.sums) {
            println!("    {name:<10}{:8.1}", sum as f64 / self.searches.max(1) as f64);
        }
    }
}
