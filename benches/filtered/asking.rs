//! Questions, asked by a process that has nothing in memory but what the database keeps there.

use std::hint::black_box;
use std::path::Path;
use std::process::Command;

use loomdb::{Db, Embedding, Explain, OpenOptions, Query, Recall, Timestamp};

use super::common::Spread;
use super::data::{DIMENSION, Row};

/// Answers of a question.
pub const TOP: usize = 10;
/// Times that every question is asked; the first is not counted.
const ROUNDS: usize = 4;
/// Questions whose processor time is taken together: the clock of a thread is read in steps.
const BLOCK: usize = 10;
const CHILD: &str = "--ask";

/// A question by vector, within the rows of a user and perhaps between two times.
pub struct Ask<'a> {
    pub user: String,
    pub times: Option<(i64, i64)>,
    pub vector: Vec<f32>,
    /// What a plain pass finds.
    pub truth: Vec<&'a Row>,
}

/// How a database of this bench is opened.
pub fn options() -> OpenOptions {
    let name = "made".to_owned();
    OpenOptions::new().embedding(Embedding::External { name, dimension: DIMENSION as u32 })
}

pub fn is_child() -> bool {
    std::env::args().nth(1).is_some_and(|argument| argument == CHILD)
}

/// Asks in a process of its own, prints what it says of times, counters and memory, and how much of the truth it found.
pub fn ask(path: &Path, file: &Path, asks: &[Ask<'_>]) {
    let line = |ask: &Ask<'_>| {
        let (since, until) = ask.times.unwrap_or((i64::MIN, i64::MAX));
        let vector: Vec<String> = ask.vector.iter().map(f32::to_string).collect();
        format!("{} {since} {until} {}", ask.user, vector.join(" "))
    };
    let lines: Vec<String> = asks.iter().map(line).collect();
    std::fs::write(file, lines.join("\n")).expect("the questions can be written");
    let program = std::env::current_exe().expect("the bench knows its file");
    let output = Command::new(program).arg(CHILD).arg(path).arg(file).output();
    let output = output.expect("the bench can run itself");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    print!("{}", String::from_utf8_lossy(&output.stderr));
    let answers = String::from_utf8(output.stdout).expect("texts of turns");
    let (mut found, mut wanted) = (0, 0);
    for (ask, answer) in asks.iter().zip(answers.lines()) {
        let answer: Vec<&str> = answer.split('\t').collect();
        found += ask.truth.iter().filter(|row| answer.contains(&row.text().as_str())).count();
        wanted += ask.truth.len();
    }
    println!("  recall@{TOP} {:.4} (goal 0.99)", found as f64 / wanted.max(1) as f64);
}

/// Answers the questions of a file: the texts found to stdout, a line each; figures to stderr.
pub fn child() {
    let arguments: Vec<String> = std::env::args().skip(2).collect();
    let [path, file] = &arguments[..] else { panic!("two arguments") };
    let asks = std::fs::read_to_string(file).expect("questions");
    let asks: Vec<(String, Query)> = asks.lines().map(parsed).collect();
    let db = Db::open_with(path, options()).expect("open");
    let search =
        |(user, query): &(String, Query)| db.user(user).search(query.clone()).expect("search");
    let [mut wall, mut processor] = [(); 2].map(|()| Spread::default());
    for round in 0..ROUNDS {
        for block in asks.chunks(BLOCK) {
            let before = processor_micros();
            for ask in block {
                let mut one = Spread::default();
                let recall = one.time(|| search(ask));
                black_box(recall.hits.iter().map(|hit| hit.episode.text.len()).sum::<usize>());
                if round > 0 {
                    wall.push(one.p50());
                }
            }
            if round > 0 {
                processor.push((processor_micros() - before) / block.len() as f64);
            }
        }
    }
    let mut counts = [0; 5];
    for ask in &asks {
        let Recall { hits, explain, .. } = search(ask);
        counts.iter_mut().zip(counts_of(&explain)).for_each(|(sum, count)| *sum += count);
        let texts: Vec<&str> = hits.iter().map(|hit| hit.episode.text.as_str()).collect();
        println!("{}", texts.join("\t"));
    }
    eprintln!("  processor {:.3} ms at the median of blocks of {BLOCK}", processor.p50() / 1e3);
    eprintln!("  search    {wall}");
    let [codes, vectors, scored, visited, bytes] = counts.map(|sum| sum / asks.len() as u64);
    eprintln!(
        "  mean counts: {codes} rows by code, {vectors} vectors, {scored} centroids, {visited} cells, {bytes} bytes"
    );
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let lines =
        status.lines().filter(|line| line.starts_with("RssAnon") || line.starts_with("VmHWM"));
    let lines: Vec<String> = lines.map(|line| line.replace('\t', " ")).collect();
    eprintln!(
        "  memory of the process that asked (RssAnon: beyond mapped files): {}",
        lines.join(", ")
    );
}

fn counts_of(explain: &Explain) -> [u64; 5] {
    [
        explain.rows_by_code,
        explain.rows_exact,
        explain.cells_scored,
        explain.cells_visited,
        explain.bytes_touched,
    ]
}

fn parsed(line: &str) -> (String, Query) {
    let mut parts = line.split(' ');
    let user = parts.next().expect("a user").to_owned();
    let mut time = || parts.next().expect("a time").parse::<i64>().expect("a number");
    let (since, until) = (time(), time());
    let vector: Vec<f32> = parts.map(|value| value.parse().expect("a number")).collect();
    let mut query = Query::vector(vector).top_k(TOP);
    if since > i64::MIN {
        let time = |micros| Timestamp::from_micros(micros).expect("within the calendar");
        query = query.since(time(since)).until(time(until));
    }
    (user, query)
}

/// Processor time of this thread so far, in microseconds.
#[cfg(unix)]
fn processor_micros() -> f64 {
    use rustix::time::{ClockId, clock_gettime};
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e6 + time.tv_nsec as f64 / 1e3
}

#[cfg(not(unix))]
fn processor_micros() -> f64 {
    0.0
}
