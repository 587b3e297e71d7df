//! Questions, asked by a process that has nothing in memory but what the database keeps there.

use std::hint::black_box;
use std::path::Path;
use std::process::Command;

use loomdb::{Db, Explain, Query};

use super::common::{Spread, USER};

/// Answers of a question.
const TOP: usize = 10;
/// Times that every question is asked; the first is not counted, of the others the median is.
const ROUNDS: usize = 4;
const CHILD: &str = "--ask";

/// What is counted of a search, and stands for its cost.
pub const COUNTERS: [&str; 7] =
    ["search", "code", "vector", "posting", "centroid", "text block", "log row"];
const STAGES: [&str; 7] = ["embed", "snapshot", "lexical", "scan", "rerank", "fetch", "total"];

/// A question's time, and what the search counted.
#[derive(Clone, Copy)]
pub struct Asked {
    pub micros: f64,
    pub counts: [f64; COUNTERS.len()],
}

pub fn is_child() -> bool {
    std::env::args().nth(1).is_some_and(|argument| argument == CHILD)
}

/// Asks `questions` in a process of their own, and prints what it says of its memory and of the stages.
pub fn ask(path: &Path, file: &Path, questions: &[String]) -> Vec<Asked> {
    std::fs::write(file, questions.join("\n")).expect("the questions can be written");
    let program = std::env::current_exe().expect("the bench knows its file");
    let output = Command::new(program).arg(CHILD).arg(path).arg(file).output();
    let output = output.expect("the bench can run itself");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    print!("{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("numbers");
    text.lines()
        .map(|line| {
            let mut numbers = line.split(' ').map(|number| number.parse().expect("a number"));
            let mut next = || numbers.next().expect("a line is whole");
            Asked { micros: next(), counts: std::array::from_fn(|_| next()) }
        })
        .collect()
}

/// Answers the questions of the file named by the arguments: a line of numbers each to stdout, means to stderr.
pub fn child() {
    let arguments: Vec<String> = std::env::args().skip(2).collect();
    let [path, file] = &arguments[..] else { panic!("two arguments") };
    let questions = std::fs::read_to_string(file).expect("questions");
    let questions: Vec<&str> = questions.lines().collect();
    let db = Db::open(path).expect("open");
    let memory = db.user(USER);
    let mut times = vec![Spread::default(); questions.len()];
    let mut counted = Vec::new();
    let mut stages = [0.0; STAGES.len()];
    for round in 0..ROUNDS {
        for (question, times) in questions.iter().zip(&mut times) {
            let query = Query::text(*question).top_k(TOP);
            let mut one = Spread::default();
            let recall = one.time(|| memory.search(query).expect("search"));
            black_box(recall.hits.iter().map(|hit| hit.episode.text.len()).sum::<usize>());
            if round > 0 {
                times.push(one.p50());
                stages
                    .iter_mut()
                    .zip(stages_of(&recall.explain))
                    .for_each(|(sum, one)| *sum += one);
            }
            if round + 1 == ROUNDS {
                counted.push(counts_of(&recall.explain));
            }
        }
    }
    for (times, counts) in times.iter().zip(&counted) {
        let counts: Vec<String> = counts.iter().map(f64::to_string).collect();
        println!("{} {}", times.p50(), counts.join(" "));
    }
    let searches = ((ROUNDS - 1) * questions.len()) as f64;
    let stages =
        STAGES.iter().zip(stages).map(|(name, sum)| format!("{name} {:.0}", sum / searches));
    eprintln!("  mean microseconds: {}", stages.collect::<Vec<_>>().join(", "));
    let counts = COUNTERS.iter().enumerate().skip(1).map(|(at, name)| {
        let sum: f64 = counted.iter().map(|counts| counts[at]).sum();
        format!("{name} {:.0}", sum / counted.len() as f64)
    });
    eprintln!("  mean counts: {}", counts.collect::<Vec<_>>().join(", "));
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let lines =
        status.lines().filter(|line| line.starts_with("RssAnon") || line.starts_with("VmHWM"));
    let lines: Vec<String> = lines.map(|line| line.replace('\t', " ")).collect();
    eprintln!(
        "  memory of the process that asked (RssAnon: beyond mapped files): {}",
        lines.join(", ")
    );
}

fn counts_of(explain: &Explain) -> [f64; COUNTERS.len()] {
    [
        1,
        explain.rows_by_code,
        explain.rows_exact,
        explain.postings,
        explain.cells_scored,
        explain.blocks_read,
        explain.log_rows,
    ]
    .map(|count| count as f64)
}

fn stages_of(explain: &Explain) -> [f64; STAGES.len()] {
    let micros = &explain.micros;
    [
        micros.embed,
        micros.snapshot,
        micros.lexical,
        micros.scan,
        micros.rerank,
        micros.fetch,
        micros.total,
    ]
    .map(|micros| micros as f64)
}
