//! One-bit codes on embedded turns: how many true neighbours survive the estimate, and what a search costs.
//!
//! `LOOMDB_TURNS=turns.jsonl.gz cargo bench --bench codes` reads turns (JSON Lines with `speaker` and `text`, gzip or
//! plain) and embeds them with the built-in model; without the variable, vectors in synthetic clusters stand in for
//! them. Prints p50 and p99 over the queries. One thread.

use std::hint::black_box;
use std::io::{BufRead, BufReader, Read};
use std::time::{Duration, Instant};

use loomdb::internals::simd::{Best, CodeQuery, Codec, Scored, dot, kernel_names, prefetch};

const ROWS: usize = 100_000;
const QUERIES: usize = 300;
const DIMENSION: usize = 256;
const TOP: usize = 10;
const SEED: u64 = 42;

struct Data {
    rows: Vec<f32>,
    queries: Vec<f32>,
}

impl Data {
    fn row(&self, row: u64) -> &[f32] {
        &self.rows[row as usize * DIMENSION..][..DIMENSION]
    }

    fn queries(&self) -> impl Iterator<Item = &[f32]> {
        self.queries.chunks_exact(DIMENSION)
    }
}

fn main() {
    println!(
        "{ROWS} rows x {DIMENSION}, {QUERIES} queries, 1 thread, kernels {:?}",
        kernel_names()
    );
    let data = match std::env::var_os("LOOMDB_TURNS") {
        Some(path) => embedded(std::path::Path::new(&path)),
        None => {
            println!("LOOMDB_TURNS is not set: synthetic clusters");
            clustered()
        }
    };
    let mean: Vec<f32> = (0..DIMENSION)
        .map(|at| data.rows.iter().skip(at).step_by(DIMENSION).sum::<f32>() / ROWS as f32)
        .collect();
    println!("length of the mean {:.3}", dot(&mean, &mean).sqrt());
    let codec = Codec::new(mean, SEED);
    let (mut codes, mut factors) = (Vec::new(), Vec::new());
    let started = Instant::now();
    for row in data.rows.chunks_exact(DIMENSION) {
        factors.push(codec.encode(row, &mut codes).to_le_bytes());
    }
    println!("encode {:.2} us a row", started.elapsed().as_secs_f64() * 1e6 / ROWS as f64);
    let query = data.queries().next().expect("there are queries");
    let started = Instant::now();
    (0..1000).for_each(|_| drop(black_box(codec.query(black_box(query)))));
    println!("query {:.2} us", started.elapsed().as_secs_f64() * 1e3);

    kernels(&codec, query, &codes, &factors);
    let exact = exact_scan(&data);
    recall(&codec, &data, &codes, &factors, &exact);
    searches(&codec, &data, &codes, &factors, &exact);
}

/// Nanoseconds a row of every kernel at every width of the query, beside the library's distance of two codes.
fn kernels(codec: &Codec, query: &[f32], codes: &[u8], factors: &[[u8; 4]]) {
    println!("\nscan, ns a row (p50 of 60)   1 bit  2 bits  3 bits  4 bits");
    let mut out = Vec::new();
    for (index, name) in CodeQuery::kernels().into_iter().enumerate() {
        print!("  {name:<26}");
        for bits in 1..=4 {
            let query = codec.query_with_bits(query, bits);
            let times = (0..60).map(|_| timed(|| query.scan_by(index, codes, factors, &mut out)));
            print!(" {:7.2}", percentiles(times.collect()).0 * 1e3 / ROWS as f64);
        }
        println!();
    }
    let mut code = Vec::new();
    codec.encode(query, &mut code);
    let times = (0..60).map(|_| {
        timed(|| {
            out.clear();
            let distance =
                |row| <u8 as simsimd::BinarySimilarity>::hamming(row, &code).unwrap_or(0.0) as f32;
            out.extend(codes.chunks_exact(code.len()).map(distance));
        })
    });
    println!(
        "  {:<26} {:7.2}",
        "simsimd hamming",
        percentiles(times.collect()).0 * 1e3 / ROWS as f64
    );
}

/// The exact best of every query, and what the scan costs.
fn exact_scan(data: &Data) -> Vec<Vec<u64>> {
    let mut times = Vec::new();
    let best = data
        .queries()
        .map(|query| {
            let started = Instant::now();
            let mut best = Best::new(TOP);
            for (name, row) in (0..).zip(data.rows.chunks_exact(DIMENSION)) {
                best.push(Scored { score: dot(query, row), name }, 0);
            }
            let best = best.into_sorted();
            times.push(started.elapsed());
            best.iter().map(|(row, _)| row.name).collect()
        })
        .collect();
    let (p50, p99) = percentiles(times);
    println!("\nf32 scan: p50 {p50:.0} us, p99 {p99:.0} us");
    best
}

/// Share of the exact best that are among the best `most` by estimate.
fn recall(codec: &Codec, data: &Data, codes: &[u8], factors: &[[u8; 4]], exact: &[Vec<u64>]) {
    const MOST: [usize; 6] = [100, 200, 300, 400, 600, 800];
    println!("\nrecall_at_{TOP} after re-ranking the best m by estimate\nbits   {MOST:>7?}");
    for bits in 1..=4 {
        let mut found = [0; MOST.len()];
        for (query, exact) in data.queries().zip(exact) {
            let mut best = Best::new(MOST[MOST.len() - 1]);
            let named = |row| Some((row as u64, 0));
            codec.query_with_bits(query, bits).select(codes, factors, &mut best, named);
            let best: Vec<u64> = best.into_sorted().iter().map(|(row, _)| row.name).collect();
            for (found, most) in found.iter_mut().zip(MOST) {
                *found += exact.iter().filter(|row| best[..most].contains(row)).count();
            }
        }
        let share = found.map(|found| found as f64 / (exact.len() * TOP) as f64);
        println!("{bits}       {}", share.map(|share| format!("{share:.4}")).join("  "));
    }
}

/// The whole search but for the text: prepare the query, estimate, take the best `most`, score them exactly.
fn searches(codec: &Codec, data: &Data, codes: &[u8], factors: &[[u8; 4]], exact: &[Vec<u64>]) {
    println!(
        "\nsearch                scan + select us p50  p99     whole us p50  p99   recall_at_{TOP}"
    );
    for (bits, most) in
        [(1, 800), (2, 600), (3, 400), (4, 200), (4, 400), (4, 500), (4, 600), (4, 800)]
    {
        let (mut scans, mut wholes, mut found) = (Vec::new(), Vec::new(), 0);
        for (query, exact) in data.queries().zip(exact) {
            let started = Instant::now();
            let prepared = codec.query_with_bits(query, bits);
            let mut candidates = Best::new(most);
            prepared.select(codes, factors, &mut candidates, |row| Some((row as u64, 0)));
            let candidates = candidates.into_unsorted();
            scans.push(started.elapsed());
            let mut best = Best::new(TOP);
            for (at, (candidate, _)) in candidates.iter().enumerate() {
                if let Some((ahead, _)) = candidates.get(at + 4) {
                    prefetch(data.row(ahead.name));
                }
                let score = dot(query, data.row(candidate.name));
                best.push(Scored { score, name: candidate.name }, 0);
            }
            let best = best.into_sorted();
            wholes.push(started.elapsed());
            found += best.iter().filter(|(row, _)| exact.contains(&row.name)).count();
        }
        let ((scan, scan_99), (whole, whole_99)) = (percentiles(scans), percentiles(wholes));
        let share = found as f64 / (exact.len() * TOP) as f64;
        println!(
            "  {bits} bits, best {most:<8} {scan:17.0} {scan_99:8.0} {whole:14.0} {whole_99:7.0} {share:10.4}"
        );
    }
}

fn timed(work: impl FnOnce()) -> Duration {
    let started = Instant::now();
    work();
    started.elapsed()
}

/// Microseconds: p50 and p99.
fn percentiles(mut times: Vec<Duration>) -> (f64, f64) {
    times.sort();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e6;
    (at(0.5), at(0.99))
}

#[cfg(feature = "builtin-model")]
fn embedded(path: &std::path::Path) -> Data {
    use loomdb::internals::encode::{Embedder, StaticModel, builtin, episode_text};

    let started = Instant::now();
    let model = builtin();
    println!("model opened in {:.2} ms", started.elapsed().as_secs_f64() * 1e3);
    let again = (0..20).map(|_| {
        timed(|| {
            let bytes = include_bytes!("../assets/memstatic-en-v1/model.stemb");
            drop(black_box(StaticModel::from_bytes(black_box(bytes))));
        })
    });
    println!("opened again: p50 {:.0} us", percentiles(again.collect()).0);
    let texts = turns(path).expect("the file of turns is readable");
    assert!(texts.len() >= ROWS + QUERIES, "{} turns are too few", texts.len());
    // Queries are turns behind the rows, spread over the rest of the file, whose first turns continue the last rows.
    let (stored, others) = texts.split_at(ROWS);
    let step = (others.len() / QUERIES).max(1);
    let mut times = Vec::new();
    let mut embed = |texts: &mut dyn Iterator<Item = &(String, String)>, most: usize| {
        let (mut out, mut kept) = (Vec::new(), 0);
        for (speaker, text) in texts {
            let started = Instant::now();
            let vector = model
                .embed_one(&episode_text(Some(speaker), text))
                .expect("the built-in model never fails");
            times.push(started.elapsed());
            if let Some(vector) = vector
                && kept < most
            {
                out.extend(vector);
                kept += 1;
            }
        }
        out
    };
    let rows = embed(&mut stored.iter(), ROWS);
    let queries = embed(&mut others.iter().step_by(step), QUERIES);
    let bytes: usize = texts.iter().map(|(speaker, text)| speaker.len() + text.len() + 2).sum();
    let (p50, p99) = percentiles(times);
    println!("embed {} bytes on average: p50 {p50:.2} us, p99 {p99:.2} us", bytes / texts.len());
    assert_eq!(rows.len(), ROWS * DIMENSION, "a turn of the file has no known token");
    Data { rows, queries }
}

#[cfg(not(feature = "builtin-model"))]
fn embedded(_path: &std::path::Path) -> Data {
    println!("without feature `builtin-model`: synthetic clusters");
    clustered()
}

/// Speaker and text of each turn.
#[cfg_attr(not(feature = "builtin-model"), expect(dead_code))]
fn turns(path: &std::path::Path) -> std::io::Result<Vec<(String, String)>> {
    let file = std::fs::File::open(path)?;
    let reader: Box<dyn Read> = if path.extension().is_some_and(|extension| extension == "gz") {
        Box::new(flate2::read::MultiGzDecoder::new(file))
    } else {
        Box::new(file)
    };
    BufReader::new(reader)
        .lines()
        .map(|line| {
            let turn: serde_json::Value = serde_json::from_str(&line?)?;
            let field = |name: &str| turn[name].as_str().unwrap_or_default().to_owned();
            Ok((field("speaker"), field("text")))
        })
        .collect()
}

/// Unit vectors around 2,000 centres.
fn clustered() -> Data {
    let mut state = SEED;
    // The sum of four uniform values is near enough to a normal one.
    let mut normal = move || {
        (0..4)
            .map(|_| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                (state >> 40) as f32 / (1 << 24) as f32 - 0.5
            })
            .sum::<f32>()
    };
    let centres: Vec<f32> = (0..2000 * DIMENSION).map(|_| normal()).collect();
    let mut vectors = |count: usize| {
        let mut out = Vec::with_capacity(count * DIMENSION);
        for at in 0..count {
            let centre = &centres[at * 7919 % 2000 * DIMENSION..][..DIMENSION];
            let vector: Vec<f32> = centre.iter().map(|value| value + 0.8 * normal()).collect();
            let norm = dot(&vector, &vector).sqrt();
            out.extend(vector.iter().map(|value| value / norm));
        }
        out
    };
    Data { rows: vectors(ROWS), queries: vectors(QUERIES) }
}
