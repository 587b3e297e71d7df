//! How the time of a question grows with a memory: one user, 10,000 to 1,000,000 turns.
//!
//! `LOOMDB_TURNS=turns.jsonl.gz cargo bench --bench scale` builds 10,000 and 100,000 turns once and asks 200 questions;
//! `LOOMDB_SCALE=full` builds 10,000, 100,000 and 1,000,000 turns five times and asks 1,000 questions each. Where there are
//! fewer turns they come again with one word in three changed for one of another turn, so that their vectors lie around real
//! ones. Prints p50 with its 95 % bootstrap interval, p99, the counters of a search, the slope of p50 against the turns on
//! logarithmic scales with its interval, and how well a sum of the counters tells the time. One thread; nothing is asserted.

mod common;

use std::hint::black_box;
use std::path::Path;

use loomdb::{Db, Explain, Query};

use common::{Random, Spread, Turns, USER};

/// Answers of a question.
const TOP: usize = 10;
/// Content words of a question.
const WORDS: usize = 6;
/// Letters of a content word, at least.
const LETTERS_MIN: usize = 4;
/// Samples of a bootstrap interval.
const RESAMPLES: usize = 1000;
/// One word in so many of a turn that comes again is changed.
const CHANGED: usize = 3;

/// The times of one size, by build.
struct Size {
    rows: usize,
    builds: Vec<Vec<f64>>,
}

fn main() {
    let directory = common::bench_dir("scale");
    common::print_machine(&directory);
    let is_full = std::env::var("LOOMDB_SCALE").is_ok_and(|value| value == "full");
    let (sizes, builds, asked): (&[usize], usize, usize) = match is_full {
        true => (&[10_000, 100_000, 1_000_000], 5, 1000),
        false => (&[10_000, 100_000], 1, 200),
    };
    let base = Turns::load(100_000);
    println!("data: {}; {builds} builds, {asked} questions each; 1 thread", base.source);
    let (mut measured, mut model) = (Vec::new(), Vec::new());
    for &rows in sizes {
        let mut size = Size { rows, builds: Vec::new() };
        for build in 0..builds {
            let path = directory.join(format!("scale-{rows}-{build}.loom"));
            let turns = grown(&base.turns, rows, build as u64);
            common::build(&path, &turns, 0, true);
            let questions = questions(&turns, asked, build as u64);
            size.builds.push(ask(&path, &questions, &mut model));
            common::remove(&path);
        }
        let (p50, low, high) = interval(&size);
        let mut all = Spread::default();
        size.builds.iter().flatten().for_each(|micros| all.push(*micros));
        println!(
            "{rows:>8} turns: p50 {p50:.0} us ({low:.0} to {high:.0}), p99 {:.0} us",
            all.p99()
        );
        measured.push(size);
    }
    print_slope(&measured);
    print_model(&model);
    common::remove(&directory);
}

/// `count` turns: those at hand, then the same with changed words.
fn grown(base: &[(String, String)], count: usize, seed: u64) -> Vec<(String, String)> {
    let mut random = Random::new(seed + 1);
    let mut turns: Vec<(String, String)> = base.iter().take(count).cloned().collect();
    while turns.len() < count {
        let (speaker, text) = &base[random.below(base.len())];
        let (_, other) = &base[random.below(base.len())];
        let others: Vec<&str> = other.split_whitespace().collect();
        let words = text.split_whitespace().map(|word| {
            let changes = random.below(CHANGED) == 0 && !others.is_empty();
            if changes { others[random.below(others.len())] } else { word }
        });
        let text = words.collect::<Vec<_>>().join(" ");
        turns.push((speaker.clone(), text));
    }
    turns
}

/// Questions in the words of random turns.
fn questions(turns: &[(String, String)], count: usize, seed: u64) -> Vec<String> {
    let mut random = Random::new(seed + 1001);
    let mut questions = Vec::with_capacity(count);
    for _ in 0..count * 1000 {
        let (_, text) = &turns[random.below(turns.len())];
        let words = text.split(|character: char| !character.is_alphanumeric());
        let words: Vec<&str> =
            words.filter(|word| word.chars().count() >= LETTERS_MIN).take(WORDS).collect();
        if words.len() >= WORDS - 2 {
            questions.push(words.join(" "));
        }
        if questions.len() == count {
            break;
        }
    }
    questions
}

/// Asks each question twice and returns the times of the second round; `model` gets the counters with them.
fn ask(path: &Path, questions: &[String], model: &mut Vec<(Explain, f64)>) -> Vec<f64> {
    let db = Db::open(path).expect("open");
    let memory = db.user(USER);
    let mut times = Vec::with_capacity(questions.len());
    let mut last = None;
    for round in 0..2 {
        for question in questions {
            let mut one = Spread::default();
            let query = Query::text(question.as_str()).top_k(TOP);
            let recall = one.time(|| memory.search(query).expect("search"));
            black_box(recall.hits.iter().map(|hit| hit.episode.text.len()).sum::<usize>());
            if round == 1 {
                times.push(one.p50());
                model.push((recall.explain.clone(), one.p50()));
                last = Some(recall.explain);
            }
        }
    }
    println!("last question: {}", last.expect("there are questions"));
    print_memory();
    times
}

/// Memory of this process beyond mapped files, where the system tells.
fn print_memory() {
    let Ok(status) = std::fs::read_to_string("/proc/self/status") else { return };
    let lines =
        status.lines().filter(|line| line.starts_with("RssAnon") || line.starts_with("VmHWM"));
    println!(
        "memory of this process, the turns at hand included: {}",
        lines.collect::<Vec<_>>().join(", ")
    );
}

/// The median of the builds' medians, with the 2.5 and 97.5 percentiles of its bootstrap.
fn interval(size: &Size) -> (f64, f64, f64) {
    let mut random = Random::new(99);
    let mut medians = Spread::default();
    for _ in 0..RESAMPLES {
        medians.push(resampled(size, &mut random));
    }
    let all: Vec<f64> = size.builds.iter().flatten().copied().collect();
    (median(&all), medians.at(0.025), medians.at(0.975))
}

/// The median of questions drawn again from builds drawn again.
fn resampled(size: &Size, random: &mut Random) -> f64 {
    let mut drawn = Vec::new();
    for _ in 0..size.builds.len() {
        let build = &size.builds[random.below(size.builds.len())];
        drawn.extend((0..build.len()).map(|_| build[random.below(build.len())]));
    }
    median(&drawn)
}

fn median(times: &[f64]) -> f64 {
    let mut spread = Spread::default();
    times.iter().for_each(|time| spread.push(*time));
    spread.p50()
}

fn print_slope(sizes: &[Size]) {
    let slope = |medians: &[f64]| {
        let points: Vec<(f64, f64)> = sizes
            .iter()
            .zip(medians)
            .map(|(size, median)| ((size.rows as f64).ln(), median.ln()))
            .collect();
        let count = points.len() as f64;
        let (x, y) =
            points.iter().fold((0.0, 0.0), |sum, point| (sum.0 + point.0, sum.1 + point.1));
        let (x, y) = (x / count, y / count);
        let of = |f: &dyn Fn(&(f64, f64)) -> f64| points.iter().map(f).sum::<f64>();
        of(&|point| (point.0 - x) * (point.1 - y)) / of(&|point| (point.0 - x).powi(2))
    };
    let mut random = Random::new(7);
    let mut slopes = Spread::default();
    for _ in 0..RESAMPLES {
        let medians: Vec<f64> = sizes.iter().map(|size| resampled(size, &mut random)).collect();
        slopes.push(slope(&medians));
    }
    println!(
        "slope of log p50 against log turns: {:.3} ({:.3} to {:.3}; goal below 0.35)",
        slopes.p50(),
        slopes.at(0.025),
        slopes.at(0.975)
    );
}

/// Least squares of the time over the counters.
fn print_model(searches: &[(Explain, f64)]) {
    let counters = |explain: &Explain| {
        [
            1.0,
            explain.rows_by_code as f64,
            explain.rows_exact as f64,
            explain.postings as f64,
            explain.cells_scored as f64,
            explain.bytes_touched as f64,
        ]
    };
    const N: usize = 6;
    // Normal equations with each counter scaled to its mean, solved by elimination.
    let mut scale = [0.0; N];
    for (explain, _) in searches {
        counters(explain).iter().zip(&mut scale).for_each(|(value, sum)| *sum += value);
    }
    scale.iter_mut().for_each(|sum| *sum = (*sum / searches.len() as f64).max(1e-9));
    let scaled = |explain: &Explain| {
        let mut values = counters(explain);
        values.iter_mut().zip(scale).for_each(|(value, scale)| *value /= scale);
        values
    };
    let mut matrix = [[0.0; N + 1]; N];
    for (explain, micros) in searches {
        let values = scaled(explain);
        for (row, left) in matrix.iter_mut().zip(values) {
            row.iter_mut().zip(values).for_each(|(sum, right)| *sum += left * right);
            row[N] += left * micros;
        }
    }
    for pivot in 0..N {
        matrix[pivot][pivot] += 1e-6;
        let row = matrix[pivot];
        for (at, other) in matrix.iter_mut().enumerate().filter(|(at, _)| *at != pivot) {
            let factor = other[pivot] / row[pivot];
            debug_assert_ne!(at, pivot);
            other.iter_mut().zip(row).for_each(|(value, above)| *value -= factor * above);
        }
    }
    let weights: Vec<f64> = (0..N).map(|at| matrix[at][N] / matrix[at][at]).collect();
    let mean = searches.iter().map(|(_, micros)| micros).sum::<f64>() / searches.len() as f64;
    let (mut rest, mut total) = (0.0, 0.0);
    for (explain, micros) in searches {
        let told: f64 = scaled(explain).iter().zip(&weights).map(|(a, b)| a * b).sum();
        rest += (micros - told).powi(2);
        total += (micros - mean).powi(2);
    }
    println!("cost model over the counters: R^2 {:.3} (goal 0.9)", 1.0 - rest / total);
    let names = ["each", "code", "vector", "posting", "centroid", "byte"];
    for ((name, weight), scale) in names.iter().zip(&weights).zip(scale) {
        println!("  {name:<10}{:>12.5} us", weight / scale);
    }
}
