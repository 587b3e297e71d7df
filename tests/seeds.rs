//! The stored inputs of the fuzz targets, replayed by an ordinary test run, and the program that made them.
//!
//! `cargo test --test seeds -- --ignored` writes the generated inputs again: the same bytes every time, as long as
//! formats and operations stay what they are. Inputs that a fuzzer found carry other names and are left alone.

#[path = "../fuzz/bodies/mod.rs"]
mod bodies;

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bodies::harness::op::{Op, TurnSpec};
use bodies::harness::world::World;
use bodies::image;
use bodies::steady::SteadyVfs;
use loomdb::internals::ids::{EpisodeId, LogId, SegmentId, SessionNumber, UserNumber};
use loomdb::internals::model::{Body, RowKind, RowTerms, VectorSpace};
use loomdb::internals::simd::codec::Codec;
use loomdb::internals::storage::bundle::Bundle;
use loomdb::internals::storage::log::format::{KIND_ROW, LogHeader};
use loomdb::internals::storage::segment::{
    Counts, PassageLength, PutTerm, RowHead, RowSource, Segment, SegmentInput, Tombstone,
};
use loomdb::internals::storage::segment::{example, invert, write_segment};
use loomdb::internals::storage::vfs::{Map, MemoryVfs, OpenMode, Vfs};
use loomdb::internals::storage::wire;
use loomdb::{Result, VectorElement};

/// Bytes of all stored inputs together, at most.
const SEED_BYTES_MAX: u64 = 1 << 20;
/// Names of generated inputs start so.
const GENERATED: &str = "made-";

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/seeds")
}

/// The stored inputs of a target, by name.
fn stored(target: &str) -> Vec<(String, Vec<u8>)> {
    let mut inputs: Vec<_> = fs::read_dir(directory().join(target))
        .unwrap_or_else(|error| panic!("the inputs of {target}: {error}"))
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap()))
        .collect();
    inputs.sort();
    inputs
}

#[test]
fn no_stored_input_breaks_a_promise() {
    for (target, run) in bodies::ALL {
        let inputs = stored(target);
        assert!(!inputs.is_empty(), "{target} has inputs");
        for (name, bytes) in inputs {
            println!("{target}/{name}");
            run(&bytes);
        }
    }
}

#[test]
fn the_stored_inputs_stay_small() {
    let sizes = bodies::ALL.iter().flat_map(|(target, _)| stored(target));
    let bytes: u64 = sizes.map(|(_, bytes)| bytes.len() as u64).sum();
    assert!(bytes < SEED_BYTES_MAX, "{bytes} bytes");
}

#[test]
fn the_program_of_the_inputs_makes_the_same_bytes_every_time() {
    for ((target, inputs), (_, again)) in generated().into_iter().zip(generated()) {
        for ((name, bytes), (_, other)) in inputs.into_iter().zip(again) {
            assert!(bytes == other, "{target}/{name} differs from one run to the next");
        }
    }
}

/// Fails after a change of a format: the inputs are to be made anew, and the old ones are no seeds any more.
#[test]
fn inputs_that_are_called_whole_are_whole() {
    let whole = |target| stored(target).into_iter().filter(|(name, _)| name.contains("whole"));
    for (name, bytes) in whole("log_open") {
        assert!(batches(&bytes) > 0, "{name}");
    }
    for (name, bytes) in whole("segment_open") {
        let problems =
            segment_of(&bytes).unwrap_or_else(|error| panic!("{name}: {error}")).verify(true);
        assert!(problems.is_empty(), "{name}: {problems:?}");
    }
    for (name, bytes) in whole("bundle_open") {
        let opened = bodies::bundle_open::open(&image::disk(&bytes), false);
        let found = opened.unwrap_or_else(|error| panic!("{name}: {error}")).verify().unwrap();
        assert!(found.is_whole(), "{name}: {:?}", found.problems);
    }
}

/// Makes the checksums of a file hold.
type Repair = fn(&mut [u8]);

#[test]
fn a_repair_changes_nothing_that_is_whole() {
    let repairs: [(&str, Repair); 2] =
        [("log_open", bodies::repair::log), ("segment_open", bodies::repair::segment)];
    for (target, repair) in repairs {
        for (name, bytes) in stored(target) {
            if name.starts_with(GENERATED) && name.contains("whole") {
                let mut repaired = bytes.clone();
                repair(&mut repaired);
                assert!(repaired == bytes, "{target}/{name}");
            }
        }
    }
    for (name, bytes) in stored("bundle_open") {
        if name.contains("whole") {
            assert!(bodies::repair::image(&bytes) == bytes, "{name}");
        }
    }
}

#[test]
fn a_repaired_file_gets_past_its_checksums() {
    let whole = |target: &str| {
        let mut inputs = stored(target).into_iter();
        inputs.find(|(name, _)| name.contains("whole")).expect("a whole one").1
    };
    let mut log = whole("log_open");
    // In the text of the first row.
    log[128 + 24 + 72 + 4] ^= 1;
    let damaged = batches(&log);
    bodies::repair::log(&mut log);
    assert!(damaged == 0 && batches(&log) > 0);

    let mut segment = whole("segment_open");
    // Reserved bytes of the header.
    segment[30] ^= 1;
    assert!(segment_of(&segment).is_err());
    bodies::repair::segment(&mut segment);
    assert!(segment_of(&segment).unwrap().verify(false).is_empty());
}

#[test]
fn a_disk_that_loses_syncs_is_noticed() {
    use loomdb::internals::storage::vfs::sim::SimVfs;
    let mut caught = 0;
    for seed in 0..40 {
        let disk = SimVfs::new();
        disk.ignore_syncs_of(".log");
        let data = noise(100 + seed, 160);
        let run = std::panic::AssertUnwindSafe(|| bodies::crash_ops::run_on(&disk, &data));
        caught += usize::from(std::panic::catch_unwind(run).is_err());
    }
    assert!(caught > 0, "lost acknowledgements went unseen");
}

fn segment_of(bytes: &[u8]) -> Result<Segment> {
    Segment::open(Map::from_bytes(bytes.into()), "s", bodies::DATABASE, None)
}

/// Whole batches of a log; none when it is damaged.
fn batches(bytes: &[u8]) -> usize {
    let vfs: Arc<dyn Vfs> = Arc::new(MemoryVfs::new());
    let bundle = Bundle::new(vfs.clone(), Path::new("/f.loom"), false);
    vfs.create_dir(bundle.root()).unwrap();
    vfs.create_dir(&bundle.log_dir()).unwrap();
    let log = LogHeader::decode(bytes, bodies::log_open::LOG, &bodies::DATABASE).unwrap();
    let file = vfs.open(&bundle.log(log.log), OpenMode::CreateNew).unwrap();
    file.write_all_at(0, bytes).unwrap();
    let open = loomdb::internals::storage::log::LogFile::open;
    let log = open(&bundle, log.log, OpenMode::Read, &bodies::DATABASE).unwrap();
    log.read_tail(128, 0).map_or(0, |tail| tail.batches.len())
}

#[test]
#[ignore = "writes into the source tree"]
fn write_the_generated_inputs() {
    for (target, inputs) in generated() {
        let directory = directory().join(target);
        fs::create_dir_all(&directory).unwrap();
        for entry in fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap()) {
            if entry.file_name().to_str().unwrap().starts_with(GENERATED) {
                fs::remove_file(entry.path()).unwrap();
            }
        }
        for (name, bytes) in inputs {
            fs::write(directory.join(name), bytes).unwrap();
        }
    }
}

type Inputs = Vec<(String, Vec<u8>)>;

/// All generated inputs by target.
fn generated() -> Vec<(&'static str, Inputs)> {
    let named = |inputs: Vec<(&str, Vec<u8>)>| -> Inputs {
        inputs.into_iter().map(|(name, bytes)| (format!("{GENERATED}{name}"), bytes)).collect()
    };
    let cut = |bytes: &[u8], share: usize| bytes[..bytes.len() * share / 8].to_vec();
    let bundle = bundle(6);
    let log = log();
    let large = segment(300, 32);
    vec![
        ("analyse_text", named(turns())),
        ("bundle_open", named(bundles())),
        ("crash_ops", named((0..12).map(|seed| (SEEDS[seed], noise(seed, 160))).collect())),
        ("embed_text", named(texts())),
        (
            "log_open",
            named(vec![
                ("whole", log.clone()),
                ("cut", cut(&log, 7)),
                ("half", cut(&log, 4)),
                ("header", log[..128].to_vec()),
            ]),
        ),
        ("ops_vs_model", named((0..12).map(|seed| (SEEDS[seed], noise(seed, 360))).collect())),
        ("record_decode", named(records(&bundle))),
        (
            "search_vs_exhaustive",
            named((0..12).map(|seed| (SEEDS[seed], noise(seed, 700))).collect()),
        ),
        (
            "segment_open",
            named(vec![
                ("example-whole", small_segment()),
                ("empty-whole", segment(0, 4)),
                ("one-whole", segment(1, 4)),
                ("three-whole", segment(3, 8)),
                ("large-whole", large.clone()),
                ("large-cut", cut(&large, 6)),
            ]),
        ),
    ]
}

const SEEDS: [&str; 12] = ["00", "01", "02", "03", "04", "05", "06", "07", "08", "09", "10", "11"];

/// Bytes that look random (SplitMix64), equal for equal seeds.
fn noise(seed: usize, length: usize) -> Vec<u8> {
    let mut state = seed as u64;
    let mut bytes = Vec::new();
    while bytes.len() < length {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bytes.extend((mixed ^ (mixed >> 31)).to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}

fn turns() -> Vec<(&'static str, Vec<u8>)> {
    let turn = |text: &str| [&[231, 7, 4, 24, 3][..], b"Ada", text.as_bytes()].concat();
    let kana = "\u{65e5}\u{672c}\u{8a9e}\u{3067}\u{3059}";
    vec![
        (
            "english",
            turn("Don't wait: Ada's running late. See POL-358, a.b@c.org and /usr/lib/x.so!"),
        ),
        (
            "times",
            turn(
                "Last May, two weeks ago, on 2023-05-07, 5/7/2022, midmay or the day before yesterday",
            ),
        ),
        ("unspaced", turn(&format!("{}\u{3002}v1.2\u{ff01}", kana.repeat(60)))),
        (
            "marks",
            turn(
                "\0\u{301}\u{200b}e\u{315}\u{301}\u{ad}x \u{ff76}\u{ff9e} \u{e01}\u{e33} \u{1f170}",
            ),
        ),
        ("passages", turn(&"it was a long day, and we walked on. ".repeat(30))),
        (
            "calendar",
            [&[15, 39, 11, 27, 0], &b"next year, in 12 months, december 9999"[..]].concat(),
        ),
    ]
}

fn texts() -> Vec<(&'static str, Vec<u8>)> {
    let text = |text: &str| [&[0], text.as_bytes()].concat();
    vec![
        ("english", text("Ada's flight to Lisbon leaves at 9:45, gate POL-358.")),
        ("mixed", text("na\u{ef}ve caf\u{e9} \u{1f600} \u{65e5}\u{672c}\u{8a9e} \u{5e9}\u{5dc}")),
        ("marks", text("\0\u{301}\u{200d}\u{fffd} e\u{301}\u{301}\u{301} \u{fb03} \u{1d54f}")),
        ("long", text(&"internationalisation".repeat(200))),
        ("model", [&[1], &b"STEMB"[..]].concat()),
    ]
}

/// Bundles with 0, 1, 3 and more episodes, with and without segments, cut in the log and in the catalog.
fn bundles() -> Vec<(&'static str, Vec<u8>)> {
    let whole = bundle(6);
    let mut parts = image::parts(&whole);
    let log = parts.iter_mut().find(|part| part.kind == 1).expect("a log");
    log.contents.truncate(log.contents.len() - 40);
    let torn = image::pack(&parts);
    let mut parts = image::parts(&whole);
    parts.retain(|part| part.kind != 3);
    vec![
        ("empty-whole", bundle(0)),
        ("one-whole", bundle(1)),
        ("segments-whole", whole),
        ("torn", torn),
        ("no-state", image::pack(&parts)),
        ("nothing", Vec::new()),
    ]
}

/// The image of a bundle after some operations.
fn bundle(steps: usize) -> Vec<u8> {
    let vfs: Arc<dyn Vfs> = Arc::new(SteadyVfs::default());
    let mut world = World::new(vfs.clone(), image::ROOT).unwrap();
    let turn =
        |text| TurnSpec { text, key: text + 1, session: 1, time: text, ..Default::default() };
    let ops = [
        Op::Add { handle: 0, user: 0, turns: vec![turn(0)] },
        Op::Add { handle: 0, user: 1, turns: vec![turn(1), turn(2)] },
        Op::Checkpoint { handle: 0 },
        Op::Delete { handle: 0, user: 0, target: 3 },
        Op::Add { handle: 0, user: 0, turns: vec![turn(3), turn(4)] },
        Op::Add { handle: 0, user: 1, turns: vec![turn(1), turn(5)] },
    ];
    world.run(&ops[..steps]).unwrap();
    drop(world);
    image::of_disk(&vfs)
}

/// The log of a bundle, as if it were the log that `log_open` reads.
fn log() -> Vec<u8> {
    let parts = image::parts(&bundle(2));
    let part = parts.into_iter().find(|part| part.kind == 1).expect("a log");
    let mut bytes = part.contents;
    let number = LogId::new(u64::from(part.number));
    let header = LogHeader::decode(&bytes, number, &bodies::DATABASE).unwrap();
    let header = LogHeader { log: bodies::log_open::LOG, ..header };
    bytes[..128].copy_from_slice(&header.encode());
    bytes
}

/// Row and end payloads, bodies and counts.
fn records(image: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    let parts = image::parts(image);
    let log = parts.iter().find(|part| part.kind == 1).expect("a log");
    // The frames of the last log: an end, rows, marks.
    let (mut row, mut end) = (vec![0], vec![1]);
    let mut at = 128;
    while let Some(head) = log.contents.get(at..at + 24) {
        let length = u32::from_le_bytes(head[..4].try_into().unwrap()) as usize;
        let kind = u16::from_le_bytes(head[16..18].try_into().unwrap());
        let payload = &log.contents[at + 24..at + 24 + length];
        match kind {
            KIND_ROW if row.len() == 1 => row.extend(payload),
            3 if end.len() == 1 => end.extend(payload),
            _ => {}
        }
        at += (24 + length).next_multiple_of(8);
    }
    assert!(row.len() > 1 && end.len() > 1);
    let body = Body {
        text: "text".into(),
        session: Some("s".into()),
        speaker: Some("Ada".into()),
        agent: None,
        key: Some("k".into()),
        metadata: "{}".into(),
        tags: vec!["x".into(), "y".into()],
    };
    let counts =
        Counts { rows: -1, vectors: 300, text_bytes: i64::MIN, passages: -1, half_terms: -77 };
    vec![
        ("row", row),
        ("end", end),
        ("body", [vec![2], wire::encode(&body)].concat()),
        ("counts", [vec![3], wire::encode(&counts)].concat()),
    ]
}

fn small_segment() -> Vec<u8> {
    file_of(|file| example::write_example(file).map(drop))
}

/// What `write` puts into a file.
fn file_of(
    write: impl FnOnce(&dyn loomdb::internals::storage::vfs::VfsFile) -> Result<()>,
) -> Vec<u8> {
    let vfs = MemoryVfs::new();
    let file = vfs.open(Path::new("/s"), OpenMode::CreateNew).unwrap();
    write(&*file).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_exact_at(0, &mut bytes).unwrap();
    bytes
}

/// Rows of a made-up segment: three users, one of boxes, every fifth row without a vector.
struct Rows {
    count: usize,
    dimension: usize,
}

impl RowSource for Rows {
    fn len(&self) -> usize {
        self.count
    }

    fn head(&self, row: usize) -> Result<RowHead> {
        let user = 1 + row / self.count.div_ceil(3);
        Ok(RowHead {
            id: EpisodeId::new(10 + row as u64),
            version: 1 + row as u32 % 3,
            kind: if user == 2 { RowKind::Box } else { RowKind::Episode },
            user: UserNumber::new(user as u64),
            cluster: 0,
            session: SessionNumber::new(u64::from(user == 2)),
            ordinal: row as u64,
            time: row as i64 * 1000 - 5000,
            offset_minutes: 60,
            record_time: 7,
            first_record_time: 6,
            expires: i64::MAX,
            has_vector: !row.is_multiple_of(5),
            text_bytes: text_of(row).len() as u32,
            shape: self.terms_of(row).map(|terms| terms.shape()).unwrap_or_default(),
        })
    }

    fn vector(&self, row: usize, out: &mut Vec<u8>) -> Result<()> {
        if !row.is_multiple_of(5) {
            for place in 0..self.dimension {
                let value = ((row * 31 + place * 17) % 64) as f32 / 64.0 - 0.5;
                out.extend(value.to_le_bytes());
            }
        }
        Ok(())
    }

    fn code(&self, _row: usize, _codec: &Codec, _out: &mut Vec<u8>) -> Result<Option<f32>> {
        Ok(None)
    }

    fn body(&self, row: usize, out: &mut Vec<u8>) -> Result<()> {
        let body = Body {
            text: text_of(row),
            session: None,
            speaker: Some("Ada".into()),
            agent: None,
            key: None,
            metadata: String::new(),
            tags: Vec::new(),
        };
        wire::append(&body, out);
        Ok(())
    }

    fn speaker(&self, _row: usize) -> Result<Option<&str>> {
        Ok(Some("Ada"))
    }

    fn passages(&self, row: usize, out: &mut Vec<PassageLength>) -> Result<()> {
        out.extend(self.terms_of(row).iter().flat_map(PassageLength::of));
        Ok(())
    }

    fn terms(&self, rows: Range<usize>, starts: &[u32], put: &mut PutTerm<'_>) -> Result<()> {
        let terms = rows.filter_map(|row| Some((starts[row], self.terms_of(row)?)));
        let terms: Vec<_> = terms.collect();
        invert(terms.iter().map(|(start, terms)| (*start, terms)), put)
    }
}

impl Rows {
    /// Boxes have no terms.
    fn terms_of(&self, row: usize) -> Option<RowTerms> {
        let is_box = 1 + row / self.count.div_ceil(3) == 2;
        (!is_box).then(|| example::simple_terms(&text_of(row), Some("Ada")))
    }
}

fn text_of(row: usize) -> String {
    format!("turn {row} ").repeat(1 + row % 40)
}

fn segment(count: usize, dimension: usize) -> Vec<u8> {
    let space = VectorSpace {
        name: "made".into(),
        dimension: dimension as u32,
        element: VectorElement::F32,
    };
    let codec = Codec::new(vec![0.25; dimension], 11);
    let users = (1..4_u64).map(|user| (UserNumber::new(user), Arc::from(&[user as u8][..])));
    let input = SegmentInput {
        id: SegmentId::new(42),
        database: bodies::DATABASE,
        space: &space,
        codec: (count > 1).then_some(&codec),
        clustered_from: 8,
        logs: (LogId::new(3), LogId::new(5)),
        replaces: vec![SegmentId::new(7)],
        users: users.collect(),
        sessions: vec![(SessionNumber::new(1), UserNumber::new(2), "s".into())],
        tombstones: vec![Tombstone {
            id: EpisodeId::new(4),
            version: 1,
            user: UserNumber::new(1),
            record_time: 9,
            superseded: true,
            counts: Counts { rows: -1, text_bytes: -5, passages: -1, ..Counts::default() },
        }],
    };
    let rows = Rows { count, dimension };
    file_of(|file| write_segment(file, &input, &rows).map(drop))
}
