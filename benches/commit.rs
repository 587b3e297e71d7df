//! Durable commit of an already encoded batch of one 2.6 KB episode, beside a bare append + fdatasync.
//!
//! `cargo bench --bench commit`; `LOOMDB_BENCH_DIR` chooses the directory and so the disk. With one thread the bare
//! append of the same number of bytes into a file of the same directory, the commit, and an `add` of text (embedding
//! included) alternate, so that drift of the disk cancels out. With 8 and 64 threads every thread commits in a loop;
//! the rounds alternate with rounds of one thread. No checkpoint runs meanwhile. Prints p50, p99 and the ratios.

mod common;

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, Barrier};
use std::time::Instant;

use loomdb::internals::model::{Body, VectorSpace};
use loomdb::internals::options::{Maintenance, StorageOptions, VectorElement};
use loomdb::internals::storage::segment::example::simple_terms;
use loomdb::internals::storage::vfs::RealVfs;
use loomdb::internals::storage::{Draft, EncodedRow, SpaceChoice, Store};
use loomdb::{Db, Turn};

use common::{DIMENSION, SYNC_MICROS_MIN, Spread};

/// Bytes of the text: with 1 KiB of vector and the frames a batch has 2.6 KB.
const TEXT_BYTES: usize = 1500;
/// Commits of the comparison with the bare append.
const PAIRS: usize = 1000;
/// Rounds of each number of threads.
const ROUNDS: usize = 7;
const THREADS: [usize; 3] = [1, 8, 64];
/// Commits of one round, over all threads: about as long as one another.
const ROUND_COMMITS: [usize; 3] = [600, 3200, 12_800];

fn main() {
    let directory = common::bench_dir("commit");
    let sync = common::print_machine(&directory);
    if sync < SYNC_MICROS_MIN {
        println!("refused as no disk: a sync takes {sync:.0} us, under {SYNC_MICROS_MIN} us");
    } else {
        let store = open(&directory.join("commit.loom"));
        compare(&directory, &store);
        checkpoint(&store);
        threads(&store);
    }
    common::remove(&directory);
}

fn open(path: &Path) -> Store {
    let space = VectorSpace {
        name: "bench".into(),
        dimension: DIMENSION as u32,
        element: VectorElement::F32,
    };
    let options = StorageOptions { maintenance: Maintenance::Manual, ..Default::default() };
    Store::open(Arc::new(RealVfs::new()), path, options, SpaceChoice::Exactly(space)).expect("open")
}

fn checkpoint(store: &Store) {
    store.checkpoint().expect("checkpoint");
}

/// Text of [`TEXT_BYTES`] that differs by `number`.
fn text(number: usize) -> String {
    let mut text = format!("Turn {number}. ");
    while text.len() < TEXT_BYTES {
        text.push_str(
            "We spoke of the move to the coast, the price of the flat and who feeds the cat. ",
        );
    }
    text.truncate(TEXT_BYTES);
    text
}

fn encoded(number: usize) -> EncodedRow {
    let value = |at: usize| (((number * 31 + at * 17) % 97) as f32 / 97.0 - 0.5) / 8.0;
    let vector: Vec<u8> = (0..DIMENSION).flat_map(|at| value(at).to_le_bytes()).collect();
    EncodedRow::new(Draft {
        user: b"bench"[..].into(),
        time: number as i64,
        offset_minutes: 0,
        ordinal: 0,
        expires: i64::MAX,
        vector: vector.into(),
        terms: simple_terms(&text(number), Some("speaker")),
        body: Body {
            text: text(number),
            session: Some("session".into()),
            speaker: Some("speaker".into()),
            agent: None,
            key: None,
            metadata: String::new(),
            tags: Vec::new(),
        },
    })
    .expect("within the limits")
}

fn commit(store: &Store, row: EncodedRow) {
    let done = store.commit(move |transaction| transaction.insert(row).map(drop));
    done.expect("commit");
}

fn log_bytes(path: &Path) -> u64 {
    let files = std::fs::read_dir(path.join("log")).expect("a bundle has logs");
    files.flatten().filter_map(|file| file.metadata().ok()).map(|file| file.len()).sum()
}

/// One thread: bare append, commit and `add` in turn.
fn compare(directory: &Path, store: &Store) {
    let path = directory.join("commit.loom");
    commit(store, encoded(0));
    let before = log_bytes(&path);
    commit(store, encoded(1));
    let bytes = vec![7_u8; (log_bytes(&path) - before) as usize];

    let bare = OpenOptions::new().create_new(true).write(true).open(directory.join("bare"));
    let bare: File = bare.expect("a file can be created");
    let options = loomdb::OpenOptions::new().maintenance(Maintenance::Manual);
    let db = Db::open_with(directory.join("add.loom"), options).expect("open");
    let memory = db.user("bench");
    memory.add(Turn::new(text(0))).expect("add");

    let [mut bares, mut commits, mut adds] = [(); 3].map(|()| Spread::default());
    let mut end = 0;
    for number in 0..PAIRS {
        bares.time(|| {
            bare.write_all_at(&bytes, end).expect("append");
            bare.sync_data().expect("sync");
        });
        end += bytes.len() as u64;
        let row = encoded(number + 2);
        commits.time(|| commit(store, row));
        if number % 2 == 0 {
            let turn = Turn::new(text(number)).session("session").speaker("speaker");
            adds.time(|| memory.add(turn)).expect("add");
        }
    }
    println!(
        "\n1 thread, batch of {} bytes (text {TEXT_BYTES}, vector {DIMENSION} x f32)",
        bytes.len()
    );
    println!("  bare append + fdatasync    {bares}");
    println!("  commit                     {commits}");
    println!("  add of text, embedded      {adds}");
    let (bare, commit) = (bares.p50(), commits.p50());
    println!(
        "  commit: p50 {:.3} x the bare append, {:+.0} us (goal: at most {:.0} us; the larger of 1.15 x and + 40 us)",
        commit / bare,
        commit - bare,
        (bare * 1.15).max(bare + 40.0)
    );
}

/// Rounds of 1, 8 and 64 threads in turn.
fn threads(store: &Store) {
    let mut rates: [Spread; 3] = Default::default();
    let mut latencies: [Spread; 3] = Default::default();
    for _ in 0..ROUNDS {
        for (at, count) in THREADS.into_iter().enumerate() {
            let each = ROUND_COMMITS[at] / count;
            let (seconds, latency) = round(store, count, each);
            rates[at].push((count * each) as f64 / seconds);
            latencies[at].extend(latency);
        }
        checkpoint(store);
    }
    println!("\nthreads, {ROUNDS} rounds each, in turn");
    for ((count, rate), latency) in THREADS.iter().zip(&rates).zip(&latencies) {
        println!(
            "  {count:2} threads: {:6.0} commits/s (p10 {:.0}, p90 {:.0}), {:5.1} x one thread; {latency}",
            rate.p50(),
            rate.at(0.1),
            rate.at(0.9),
            rate.p50() / rates[0].p50(),
        );
    }
    println!("  64 threads: {:.1} x the commits/s of 1 (goal 8)", rates[2].p50() / rates[0].p50());
}

/// `count` threads commit `each` batches; seconds of the whole, and the latencies.
fn round(store: &Store, count: usize, each: usize) -> (f64, Spread) {
    let barrier = Barrier::new(count + 1);
    let mut latencies = Spread::default();
    let seconds = std::thread::scope(|scope| {
        let run = || {
            let rows: Vec<EncodedRow> = (0..each).map(encoded).collect();
            let mut latency = Spread::default();
            barrier.wait();
            for row in rows {
                latency.time(|| commit(store, row));
            }
            latency
        };
        let workers: Vec<_> = (0..count).map(|_| scope.spawn(run)).collect();
        barrier.wait();
        let started = Instant::now();
        for worker in workers {
            latencies.extend(worker.join().expect("no commit fails"));
        }
        started.elapsed().as_secs_f64()
    });
    (seconds, latencies)
}
