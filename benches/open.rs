//! Open of a database of 100,000 rows and its first answer, in a fresh process with a warm page cache.
//!
//! `LOOMDB_TURNS=turns.jsonl.gz cargo bench --bench open` stores the turns of a file, without one generated sentences.
//! The bench runs itself anew for every measurement: the child opens the database, asks one question, reads the texts,
//! and prints microseconds from its call of open to there. Measured with an empty log, then with a log of 4 MiB; as the
//! only process and beside another that has the database open; with a vector and with a text. Prints p50 and p99.

mod common;

use std::hint::black_box;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use loomdb::{Db, Query};

use common::{DIMENSION, Spread, Turns, USER};

const ROWS: usize = 100_000;
const RUNS: usize = 40;
const TOP: usize = 10;
/// Bytes that the log is filled to: the default threshold of a checkpoint.
const LOG_BYTES: u64 = 4 << 20;
/// Turns kept ready to fill the log with: of few bytes each beside their vector.
const LOG_TURNS: usize = 4_000;
const CHILD: &str = "--open-and-ask";

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let Some(at) = arguments.iter().position(|argument| argument == CHILD) {
        return child(&arguments[at + 1..]);
    }
    let directory = common::bench_dir("open");
    common::print_machine(&directory);
    let turns = Turns::load(ROWS + LOG_TURNS + RUNS * 2);
    println!("data: {}; 1 thread", turns.source);
    let path = directory.join("open.loom");
    common::build(&path, &turns.turns[..ROWS], 0, true);
    let queries = common::embed_queries(&turns, ROWS + LOG_TURNS, RUNS);

    measure("log empty", &path, &queries);
    fill_log(&path, &turns);
    measure("log of 4 MiB", &path, &queries);
    common::remove(&directory);
}

/// Adds turns until the log reaches the threshold.
fn fill_log(path: &Path, turns: &Turns) {
    let log = || {
        let files = std::fs::read_dir(path.join("log")).expect("a bundle has logs");
        files.flatten().filter_map(|file| file.metadata().ok()).map(|file| file.len()).sum::<u64>()
    };
    let mut next = ROWS;
    while log() < LOG_BYTES && next < ROWS + LOG_TURNS {
        let end = (next + 200).min(ROWS + LOG_TURNS);
        common::build(path, &turns.turns[next..end], next, false);
        next = end;
    }
    println!("log of {:.2} MB, {} rows", log() as f64 / 1e6, next - ROWS);
}

fn measure(what: &str, path: &Path, queries: &[(String, Vec<f32>)]) {
    println!(
        "\n{what}, {ROWS} rows x {DIMENSION} in segments, top {TOP}, {RUNS} fresh processes each"
    );
    for shared in [false, true] {
        let _other = shared.then(|| Db::open(path).expect("open"));
        let [mut vector, mut text, mut opened, mut whole, mut floor] =
            [(); 5].map(|()| Spread::default());
        // Warms the page cache; not counted.
        spawn(path, "vector", &queries[0]);
        for query in queries {
            let answer = whole.time(|| spawn(path, "vector", query));
            opened.push(answer[0]);
            vector.push(answer[1]);
            text.push(spawn(path, "text", query)[1]);
            floor.time(|| spawn(path, "nothing", query));
        }
        let beside = if shared { "beside another process" } else { "alone" };
        println!("  {beside}");
        println!("    open + answer to a vector  {vector}");
        println!("      of which open            {opened}");
        println!("    open + answer to a text    {text}");
        println!("    whole process, vector      {whole}");
        println!("    process that does nothing  {floor}");
        println!(
            "    open + answer to a vector: p50 {:.2} ms (goal 10, log empty)",
            vector.p50() / 1e3
        );
    }
}

/// Runs a child; microseconds to the open handle and to the answer.
fn spawn(path: &Path, kind: &str, (text, vector): &(String, Vec<f32>)) -> [f64; 2] {
    let vector: Vec<String> = vector.iter().map(f32::to_string).collect();
    let program = std::env::current_exe().expect("the bench knows its file");
    let mut command = Command::new(program);
    command.arg(CHILD).arg(path).args([kind, text, &vector.join(" ")]);
    let output = command.output().expect("the bench can run itself");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("numbers");
    let mut numbers = text.split_whitespace().map(|number| number.parse().expect("a number"));
    std::array::from_fn(|_| numbers.next().unwrap_or(0.0))
}

fn child(arguments: &[String]) {
    let [path, kind, text, vector] = arguments else { panic!("four arguments") };
    let vector: Vec<f32> = vector.split(' ').map(|value| value.parse().expect("a float")).collect();
    let query = match kind.as_str() {
        "vector" => Query::vector(vector),
        "text" => Query::text(text.as_str()),
        _ => return,
    };
    let started = Instant::now();
    let db = Db::open(path).expect("open");
    let opened = started.elapsed();
    let recall = db.user(USER).search(query.top_k(TOP)).expect("search");
    black_box(recall.hits.iter().map(|hit| hit.episode.text.len()).sum::<usize>());
    let answered = started.elapsed();
    println!("{} {}", common::micros(opened), common::micros(answered));
    if std::env::var_os("LOOMDB_BENCH_EXPLAIN").is_some() {
        eprintln!("{}", recall.explain);
    }
}
