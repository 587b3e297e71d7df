//! Search of 100,000 rows of one user by vector, texts of the hits included, beside the exhaustive f32 scan.
//!
//! `LOOMDB_TURNS=turns.jsonl.gz cargo bench --bench scan` stores the turns of a file (JSON Lines with `speaker` and
//! `text`), embedded with the built-in model; without one, generated sentences. Blocks of queries run the ordinary
//! search, the exhaustive path of the same database, and a plain pass over vectors in memory, in turn. Prints p50, p99, `recall_at_10` and the ratios. One thread; nothing is asserted.

mod common;

use std::hint::black_box;

use loomdb::internals::simd::{Best, Scored, dot, kernel_names};
use loomdb::{Db, Hit, Query, Recall};

use common::{DIMENSION, Spread, Turns, USER};

const ROWS: usize = 100_000;
const QUERIES: usize = 600;
const TOP: usize = 10;
/// Queries of one kind that run one after the other.
const BLOCK: usize = 20;

fn main() {
    let directory = common::bench_dir("scan");
    common::print_machine(&directory);
    let turns = Turns::load(ROWS + 2 * QUERIES);
    println!("data: {}; kernels {:?}; 1 thread", turns.source, kernel_names());
    let path = directory.join("scan.loom");
    common::build(&path, &turns.turns[..ROWS], 0, true);
    let queries = common::embed_queries(&turns, ROWS, QUERIES);

    let db = Db::open(&path).expect("open");
    measure(&db, &queries, &bare_rows(&queries));
    drop(db);
    common::remove(&directory);
}

/// As many vectors as there are rows, for the plain pass; which ones makes no difference to its time.
fn bare_rows(queries: &[(String, Vec<f32>)]) -> Vec<f32> {
    let all = queries.iter().cycle().take(ROWS);
    all.flat_map(|(_, vector)| vector).copied().collect()
}

fn measure(db: &Db, queries: &[(String, Vec<f32>)], bare: &[f32]) {
    let memory = db.user(USER);
    let search = |query: Query| memory.search(query.top_k(TOP)).expect("search");
    let [mut codes, mut exact, mut plain, mut text, mut cold] = [(); 5].map(|()| Spread::default());
    let (mut found, mut wanted) = (0, 0);
    let mut stages: [Spread; 4] = Default::default();
    let mut explain = None;
    // The first search checks every checksum once; `benches/open.rs` measures that.
    for (_, vector) in &queries[..20] {
        search(Query::vector(vector.as_slice()));
    }
    // In blocks: what is compared runs close together in time, and each finds the caches as its own kind leaves them.
    for block in queries.chunks(BLOCK) {
        let by_vector = |(_, vector): &(String, Vec<f32>)| Query::vector(vector.as_slice());
        let answers: Vec<Recall> =
            block.iter().map(|query| codes.time(|| read(search(by_vector(query))))).collect();
        for (words, _) in block {
            text.time(|| read(search(Query::text(words.as_str()))));
        }
        for (query, answer) in block.iter().zip(answers) {
            let truth = exact.time(|| read(search(by_vector(query).exact(true))));
            // A pass over every vector has emptied the caches.
            cold.time(|| read(search(by_vector(query))));
            wanted += truth.hits.len();
            found += truth.hits.iter().filter(|hit| holds(&answer, hit)).count();
            let micros = &answer.explain.micros;
            let parts = [micros.snapshot, micros.scan, micros.rerank, micros.fetch];
            stages.iter_mut().zip(parts).for_each(|(stage, part)| stage.push(part as f64));
            explain = Some(answer.explain);
        }
        for (_, vector) in block {
            plain.time(|| black_box(plain_scan(vector, bare)));
        }
    }
    println!(
        "\nsearch of {ROWS} rows x {DIMENSION}, {} queries, top {TOP}, texts included",
        queries.len()
    );
    println!("  search by vector           {codes}");
    println!("  the same with cold caches  {cold}");
    println!("  search by text             {text}");
    println!("  exhaustive f32 path        {exact}");
    println!("  plain f32 pass in memory   {plain}   (no filter, no text)");
    for (name, stage) in ["snapshot", "scan", "rerank", "fetch"].iter().zip(&stages) {
        println!("    stage {name:<20} {stage}");
    }
    println!("{}", explain.expect("there are queries"));
    println!(
        "\nrecall_at_{TOP} against the exhaustive path: {:.4} (goal 0.99)",
        found as f64 / wanted as f64
    );
    println!("search by vector p50: {:.0} us (goal 600)", codes.p50());
    println!(
        "faster than the exhaustive path {:.1} x, than the plain pass {:.1} x (goal 8)",
        exact.p50() / codes.p50(),
        plain.p50() / codes.p50()
    );
}

/// Touches every text, as a caller would.
fn read(recall: Recall) -> Recall {
    black_box(recall.hits.iter().map(|hit| hit.episode.text.len()).sum::<usize>());
    recall
}

fn holds(answer: &Recall, hit: &Hit) -> bool {
    answer.hits.iter().any(|other| other.episode.id == hit.episode.id)
}

/// The least that an exact scan must do.
fn plain_scan(query: &[f32], rows: &[f32]) -> Vec<(Scored, u32)> {
    let mut best = Best::new(TOP);
    for (name, row) in (0..).zip(rows.chunks_exact(DIMENSION)) {
        best.push(Scored { score: dot(query, row), name }, 0);
    }
    best.into_sorted()
}
