//! Turns to store: read from a file, or made by a generator; and a database full of them.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::time::Instant;

use loomdb::internals::encode::Embedder;
use loomdb::{Db, Maintenance, OpenOptions, Timestamp, Turn};

/// Values of a vector of the built-in model.
pub const DIMENSION: usize = 256;
/// The one user of the databases that benches fill.
pub const USER: &str = "bench";
/// Turns added at once.
const BATCH: usize = 1000;
/// Turns of one session.
pub const SESSION: usize = 60;
/// Midnight of 2024-01-01, microseconds since the epoch.
pub const FIRST_TIME: i64 = 1_704_067_200_000_000;

/// Speakers and texts, and where they came from.
pub struct Turns {
    pub turns: Vec<(String, String)>,
    pub source: String,
}

impl Turns {
    /// At least `count` turns: of the files that `LOOMDB_TURNS` or the first argument with `.jsonl` in it names, parted by
    /// commas (one JSON object a line, with `speaker` and `text`, or with `turns` that have them), else generated.
    pub fn load(count: usize) -> Turns {
        let argument = std::env::args().skip(1).find(|argument| argument.contains(".jsonl"));
        match std::env::var("LOOMDB_TURNS").ok().or(argument) {
            Some(names) => {
                let mut turns = Vec::new();
                for name in names.split(',') {
                    turns.extend(read(Path::new(name)).expect("the file of turns is readable"));
                }
                assert!(turns.len() >= count, "{} turns are fewer than {count}", turns.len());
                let files = names.split(',').map(|name| {
                    let file = Path::new(name).file_name().unwrap_or_default();
                    file.to_string_lossy().into_owned()
                });
                let files: Vec<String> = files.collect();
                Turns { source: format!("{} turns of {}", turns.len(), files.join(", ")), turns }
            }
            None => Turns {
                turns: (0..count as u64).map(generated).collect(),
                source: "generated sentences (name a file of turns in LOOMDB_TURNS)".into(),
            },
        }
    }
}

fn read(path: &Path) -> std::io::Result<Vec<(String, String)>> {
    let file = fs::File::open(path)?;
    let reader: Box<dyn Read> = if path.extension().is_some_and(|extension| extension == "gz") {
        Box::new(flate2::read::MultiGzDecoder::new(file))
    } else {
        Box::new(file)
    };
    let mut turns = Vec::new();
    for line in BufReader::new(reader).lines() {
        let line: serde_json::Value = serde_json::from_str(&line?)?;
        let one = std::slice::from_ref(&line);
        for turn in line["turns"].as_array().map_or(one, Vec::as_slice) {
            let field = |name: &str| turn[name].as_str().unwrap_or_default().to_owned();
            let (speaker, text) = (field("speaker"), field("text"));
            if !text.trim().is_empty() {
                turns.push((speaker, text));
            }
        }
    }
    Ok(turns)
}

const PEOPLE: [&str; 12] = [
    "Ana", "Ben", "Chloe", "David", "Elif", "Farid", "Grace", "Hugo", "Ines", "Jonas", "Kim",
    "Lena",
];
const VERBS: [&str; 24] = [
    "bought",
    "lost",
    "painted",
    "repaired",
    "borrowed",
    "sold",
    "cooked",
    "planted",
    "found",
    "broke",
    "cleaned",
    "ordered",
    "returned",
    "photographed",
    "forgot",
    "hid",
    "carried",
    "wrapped",
    "measured",
    "drew",
    "tasted",
    "packed",
    "washed",
    "promised",
];
const ADJECTIVES: [&str; 24] = [
    "red",
    "old",
    "heavy",
    "cheap",
    "wooden",
    "strange",
    "frozen",
    "broken",
    "tiny",
    "silver",
    "noisy",
    "sweet",
    "wet",
    "dusty",
    "expensive",
    "green",
    "empty",
    "fragile",
    "warm",
    "sharp",
    "round",
    "foreign",
    "spicy",
    "soft",
];
const THINGS: [&str; 48] = [
    "bicycle", "guitar", "lamp", "ticket", "soup", "garden", "camera", "dress", "letter", "boat",
    "cake", "carpet", "puppy", "novel", "engine", "window", "jacket", "piano", "passport", "tent",
    "kettle", "statue", "painting", "rucksack", "mirror", "bread", "sofa", "umbrella", "necklace",
    "laptop", "violin", "cheese", "map", "bridge", "computer", "medicine", "horse", "tomato",
    "clock", "candle", "balcony", "rose", "blanket", "coffee", "ring", "table", "phone", "fence",
];
const PLACES: [&str; 32] = [
    "Lisbon",
    "the office",
    "school",
    "Berlin",
    "the beach",
    "my sister's house",
    "the hospital",
    "Kyoto",
    "the market",
    "the airport",
    "the gym",
    "Toronto",
    "the library",
    "the mountains",
    "church",
    "the museum",
    "Nairobi",
    "the station",
    "the farm",
    "the harbour",
    "Chicago",
    "the theatre",
    "the bakery",
    "Oslo",
    "the park",
    "the bank",
    "Mumbai",
    "the forest",
    "the cinema",
    "the river",
    "Lima",
    "the stadium",
];
const TIMES: [&str; 16] = [
    "yesterday",
    "last summer",
    "on Monday",
    "before the wedding",
    "after dinner",
    "in the rain",
    "during the exam",
    "at midnight",
    "this morning",
    "two years ago",
    "at Christmas",
    "while running late",
    "next to a stranger",
    "without telling anyone",
    "for the second time",
    "with my brother",
];
const ENDS: [&str; 16] = [
    "and I regret it",
    "so we celebrated",
    "but nobody noticed",
    "and it rained all day",
    "which made her laugh",
    "because the shop was closed",
    "and my boss was furious",
    "so the children were happy",
    "but it was too expensive",
    "and then the power went out",
    "which cost a fortune",
    "so I called the police",
    "and we missed the train",
    "but the doctor was kind",
    "because of the football match",
    "and I slept badly",
];

/// Random numbers by SplitMix64: small, and the same everywhere.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// A number below `bound`, which is not 0.
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % bound as u64) as usize
    }
}

/// Sentence `number` of the generator: about twelve words out of small lists, so that many are alike.
fn generated(number: u64) -> (String, String) {
    let mut random =
        Random::new(number.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d);
    let mut pick = |words: &[&str]| words[random.below(words.len())].to_owned();
    let speaker = pick(&PEOPLE);
    let text = format!(
        "{} {} the {} {} from {} {} {}",
        pick(&PEOPLE),
        pick(&VERBS),
        pick(&ADJECTIVES),
        pick(&THINGS),
        pick(&PLACES),
        pick(&TIMES),
        pick(&ENDS)
    );
    (speaker, text)
}

/// Vectors and texts of at most `count` of the texts behind the first `stored`, spread over them; a text without a
/// known word is passed over.
pub fn embed_queries(turns: &Turns, stored: usize, count: usize) -> Vec<(String, Vec<f32>)> {
    let others = &turns.turns[stored..];
    let model = loomdb::internals::encode::builtin();
    let embed = |(_, text): &(String, String)| {
        let vector = model.embed_one(text).expect("the built-in model never fails");
        vector.map(|vector| (text.clone(), vector))
    };
    others.iter().step_by((others.len() / count).max(1)).filter_map(embed).take(count).collect()
}

/// Adds `turns` to the database at `path`, numbered from `first`, embedded by the built-in model, and checkpoints when
/// asked, as background maintenance would. Prints what it made.
pub fn build(path: &Path, turns: &[(String, String)], first: usize, checkpoint: bool) {
    let maintenance = if checkpoint { Maintenance::Inline } else { Maintenance::Manual };
    let started = Instant::now();
    let options = OpenOptions::new().maintenance(maintenance);
    let db = Db::open_with(path, options).expect("the database opens");
    let memory = db.user(USER);
    for (at, batch) in turns.chunks(BATCH).enumerate() {
        let turn = |(place, (speaker, text)): (usize, &(String, String))| {
            let number = first + at * BATCH + place;
            let time = Timestamp::from_micros(FIRST_TIME + number as i64 * 20_000_000);
            Turn::new(text.as_str())
                .speaker(speaker.as_str())
                .session(format!("session-{}", number / SESSION))
                .time(time.expect("within the calendar"))
        };
        memory.add_many(batch.iter().enumerate().map(turn).collect()).expect("add");
    }
    if checkpoint {
        db.checkpoint().expect("checkpoint");
        db.merge().expect("merge");
    }
    let seconds = started.elapsed().as_secs_f64();
    println!("stored {} turns x {DIMENSION} in {seconds:.1} s: {}", turns.len(), files(path));
}

/// Files and bytes of the bundle by directory.
fn files(path: &Path) -> String {
    let part = |name: &str| {
        let files: Vec<u64> = fs::read_dir(path.join(name))
            .map(|entries| entries.flatten().filter_map(|entry| entry.metadata().ok()))
            .map(|entries| entries.map(|entry| entry.len()).collect())
            .unwrap_or_default();
        format!("{} {name} {:.2} MB", files.len(), files.iter().sum::<u64>() as f64 / 1e6)
    };
    let catalog = fs::metadata(path.join("catalog.redb")).map_or(0, |file| file.len());
    format!("{}, {}, catalog {:.2} MB", part("segments"), part("log"), catalog as f64 / 1e6)
}

/// Removes a bench's directory, unless `LOOMDB_BENCH_KEEP` is set, for a profiler to look at the database.
pub fn remove(directory: &Path) {
    if std::env::var_os("LOOMDB_BENCH_KEEP").is_some() {
        return;
    }
    // What is left over lies in `target`, or where the user said.
    let _ = fs::remove_dir_all(directory);
}
