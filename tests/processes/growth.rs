//! How many files a database is made of after many small commits, with default settings and no manual step.

use std::path::Path;

use loomdb::{Db, Embedding, OpenOptions, Turn};

use super::random::Random;
use super::roles;

/// Values of a vector as the built-in model's, without its time.
const DIMENSION: u32 = 256;

fn open(directory: &Path) -> Db {
    let embedding = Embedding::External { name: "test".into(), dimension: DIMENSION };
    Db::open_with(roles::database(directory), OpenOptions::new().embedding(embedding)).unwrap()
}

fn turn(random: &mut Random) -> Turn {
    let words = 10 + random.below(20);
    let text: String = (0..words).map(|_| format!("{:x} ", random.below(1 << 16))).collect();
    let value = |_| random.below(2000) as f32 - 999.5;
    Turn::new(text).session("s").vector((0..DIMENSION).map(value).collect::<Vec<f32>>())
}

fn files(directory: &Path) -> usize {
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    entries.map(|path| if path.is_dir() { files(&path) } else { 1 }).sum()
}

#[test]
fn five_hundred_one_row_commits_make_at_most_14_files() {
    let directory = tempfile::tempdir().unwrap();
    let db = open(directory.path());
    let (memory, mut random) = (db.user("alice"), Random::new(1));
    for _ in 0..500 {
        memory.add(turn(&mut random)).unwrap();
    }
    let count = |when: &str| {
        let files = files(&roles::database(directory.path()));
        println!("files after 500 one-row commits, {when}: {files}");
        assert!(files <= 14, "{files} files {when}");
        assert_eq!(files as u64, db.stats().map_or(files as u64, |stats| stats.files));
    };
    count("open");
    db.close().unwrap();
    count("closed");
}

#[test]
fn a_hundred_thousand_rows_in_batches_of_100_make_at_most_40_segments() {
    let directory = tempfile::tempdir().unwrap();
    let db = open(directory.path());
    let (memory, mut random) = (db.user("alice"), Random::new(2));
    let mut most = 0;
    for batch in 0..1000 {
        memory.add_many((0..100).map(|_| turn(&mut random)).collect()).unwrap();
        if batch % 20 == 19 {
            most = most.max(db.stats().unwrap().segments);
        }
    }
    let stats = db.stats().unwrap();
    println!(
        "after 100,000 rows in batches of 100: {} segments (at most {most} on the way), {} files, {} logs",
        stats.segments, stats.files, stats.logs
    );
    assert_eq!(stats.episodes, 100_000);
    assert!(most <= 40, "{most} segments on the way");
    drop((db, memory));
    let db = open(directory.path());
    let stats = db.stats().unwrap();
    assert!(stats.segments <= 40, "{} segments", stats.segments);
    assert_eq!(stats.episodes, 100_000);
}
