//! Bulk load of 100,000 short turns, embedding included, until the last is found and everything lies in segments; and the
//! bytes that they take on disk.
//!
//! `LOOMDB_TURNS=turns.jsonl.gz cargo bench --bench ingest` stores the turns of a file (JSON Lines with `speaker` and
//! `text`); without one, generated sentences. Prints rows a second with the share of each phase, and bytes a turn by part
//! of the bundle, beside those of the vectors and texts alone. Uses as many threads as `add_many` does; nothing is
//! asserted.

mod common;

use std::time::{Duration, Instant};

use loomdb::{Db, Memory, Query, Stats, Timestamp, Turn};

use common::{DIMENSION, FIRST_TIME, SESSION, Turns, USER};

const ROWS: usize = 100_000;
const BATCH: usize = 4_096;
/// The last turn: words that no other has, so that finding it shows that everything before it can be found.
const LAST_TEXT: &str = "The zeppelin captain juggled seventeen pomegranates above Reykjavik";
const LAST_KEY: &str = "last";
/// A log with fewer bytes holds no row: a vector alone has as many.
const ROW_BYTES_MIN: u64 = 4 * DIMENSION as u64;
/// Time after which a checkpoint that makes no way is a fault.
const CHECKPOINT_WAIT_MAX: Duration = Duration::from_secs(120);

fn main() {
    let directory = common::bench_dir("ingest");
    common::print_machine(&directory);
    let turns = Turns::load(ROWS - 1);
    println!("data: {}", turns.source);
    let db = Db::open(directory.join("ingest.loom")).expect("open");
    load(&db, &turns.turns[..ROWS - 1]);
    print_bytes("after the load", &db.stats().expect("stats"));
    let merged = db.merge().expect("merge");
    print_bytes(&format!("after a merge of {merged} segments"), &db.stats().expect("stats"));
    drop(db);
    common::remove(&directory);
}

fn load(db: &Db, turns: &[(String, String)]) {
    let memory = db.user(USER);
    // Turns are made beforehand: a caller has them.
    let mut batches: Vec<Vec<Turn>> = Vec::new();
    for (number, (speaker, text)) in turns.iter().enumerate() {
        push(&mut batches, turn(number, speaker, text));
    }
    push(&mut batches, turn(turns.len(), "Zoe", LAST_TEXT).key(LAST_KEY));

    let started = Instant::now();
    let mut slowest = Duration::ZERO;
    for batch in batches {
        let begin = Instant::now();
        memory.add_many(batch).expect("add");
        slowest = slowest.max(begin.elapsed());
    }
    let added = started.elapsed();
    assert!(finds_last(&memory), "the last turn is found once it is added");
    let found = started.elapsed();
    checkpoint(db);
    let whole = started.elapsed();
    assert!(finds_last(&memory), "the last turn is found in a segment too");

    let rate = |time: Duration| ROWS as f64 / time.as_secs_f64();
    println!("\nbulk load of {ROWS} turns x {DIMENSION} in batches of {BATCH}");
    println!("  added                {:7.2} s   {:8.0} rows/s", added.as_secs_f64(), rate(added));
    println!("  the slowest batch    {:7.2} s", slowest.as_secs_f64());
    println!("  the last is found    {:7.4} s later", (found - added).as_secs_f64());
    println!("  all in segments      {:7.2} s later", (whole - found).as_secs_f64());
    println!("whole load: {:.0} rows/s (goal 20000)", rate(whole));
}

fn turn(number: usize, speaker: &str, text: &str) -> Turn {
    let time = Timestamp::from_micros(FIRST_TIME + number as i64 * 20_000_000);
    Turn::new(text)
        .speaker(speaker)
        .session(format!("session-{}", number / SESSION))
        .time(time.expect("within the calendar"))
}

fn push(batches: &mut Vec<Vec<Turn>>, turn: Turn) {
    match batches.last_mut() {
        Some(batch) if batch.len() < BATCH => batch.push(turn),
        _ => batches.push(vec![turn]),
    }
}

fn finds_last(memory: &Memory) -> bool {
    let recall = memory.search(Query::text(LAST_TEXT).top_k(1)).expect("search");
    recall.hits.first().is_some_and(|hit| hit.episode.key.as_deref() == Some(LAST_KEY))
}

/// Moves everything into segments. A call does nothing while the thread of the handle is at it, so it is repeated until
/// the logs are empty of rows.
fn checkpoint(db: &Db) {
    let begin = Instant::now();
    loop {
        let moved = db.checkpoint().expect("checkpoint");
        if db.stats().expect("stats").log_bytes < ROW_BYTES_MIN {
            return;
        }
        assert!(begin.elapsed() < CHECKPOINT_WAIT_MAX, "the logs still hold rows");
        if !moved {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

fn print_bytes(when: &str, stats: &Stats) {
    let turns = stats.episodes.max(1) as f64;
    let vectors = stats.episodes_with_vector * 4 * u64::from(stats.space_dimension);
    println!(
        "\nbytes a turn {when}, {} turns, {} segments, {} logs",
        stats.episodes, stats.segments, stats.logs
    );
    for (part, bytes) in [
        ("segments", stats.segment_bytes),
        ("catalog", stats.catalog_bytes),
        ("logs", stats.log_bytes),
        ("other", stats.other_bytes),
        ("whole", stats.bytes),
        ("of which f32 vectors", vectors),
        ("of which raw text", stats.text_bytes),
    ] {
        println!("  {part:<22}{:9.1}", bytes as f64 / turns);
    }
    println!(
        "whole / (vectors + raw text): {:.3} (goal 1.45)",
        stats.bytes as f64 / (vectors + stats.text_bytes).max(1) as f64
    );
}
