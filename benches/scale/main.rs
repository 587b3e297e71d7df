//! How the time of a question grows with a memory: one user, 10,000 to 1,000,000 turns.
//!
//! `LOOMDB_TURNS=turns.jsonl.gz,... cargo bench --bench scale` builds 10,000 and 100,000 turns once and asks 200 questions;
//! `LOOMDB_SCALE=full` builds 10,000, 100,000 and 1,000,000 turns five times and asks 1,000 questions each;
//! `LOOMDB_SCALE=1000000` (or several numbers, parted by commas) builds those sizes once. Where there are fewer turns they
//! come again with one word in three changed for one of another turn, so that their vectors lie around real ones.
//!
//! The questions are asked by a fresh process that does nothing else. Prints p50 with its 95 % bootstrap interval, p99,
//! stages and counters of a search, the memory of that process beyond mapped files, the slope of p50 against the turns on
//! logarithmic scales with its interval, and how well a sum of the counters tells the time. One thread; nothing is asserted.

mod asking;
#[path = "../common/mod.rs"]
mod common;
mod figures;

use common::{Random, Turns};
use figures::Size;

/// Content words of a question.
const WORDS: usize = 6;
/// Letters of a content word, at least.
const LETTERS_MIN: usize = 4;
/// One word in so many of a turn that comes again is changed.
const CHANGED: usize = 3;

fn main() {
    if asking::is_child() {
        return asking::child();
    }
    let directory = common::bench_dir("scale");
    common::print_machine(&directory);
    let wanted = std::env::var("LOOMDB_SCALE").unwrap_or_default();
    let (sizes, builds, asked): (Vec<usize>, usize, usize) = match wanted.as_str() {
        "full" => (vec![10_000, 100_000, 1_000_000], 5, 1000),
        "" => (vec![10_000, 100_000], 1, 200),
        sizes => (sizes.split(',').map(|size| size.parse().expect("a number")).collect(), 1, 200),
    };
    let base = Turns::load(100_000);
    println!("data: {}; {builds} builds, {asked} questions each; 1 thread", base.source);
    let mut measured = Vec::new();
    for rows in sizes {
        let mut size = Size { rows, builds: Vec::new() };
        for build in 0..builds {
            let path = directory.join(format!("scale-{rows}-{build}.loom"));
            let turns = grown(&base.turns, rows, build as u64);
            common::build(&path, &turns, 0, true);
            let questions = questions(&turns, asked, build as u64);
            drop(turns);
            size.builds.push(asking::ask(&path, &directory.join("questions"), &questions));
            common::remove(&path);
        }
        figures::print_size(&size);
        measured.push(size);
    }
    figures::print_slope(&measured);
    figures::print_model(&measured);
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
