//! Episodes with a rare name each, among many that speak of other things: routing finds each by its name, as the exhaustive
//! path does.

use std::collections::HashSet;

use loomdb::{Db, EpisodeId, Maintenance, Memory, OpenOptions, Query, Turn};

/// Episodes with a name of their own.
const NAMED: usize = 500;
const TOP: usize = 10;
/// Turns added at once.
const BATCH: usize = 1000;

const SUBJECTS: [&str; 12] = [
    "My brother",
    "The neighbour",
    "Our teacher",
    "A colleague",
    "The doctor",
    "My aunt",
    "The plumber",
    "A friend",
    "The driver",
    "Her boss",
    "The librarian",
    "Our guide",
];
const VERBS: [&str; 12] = [
    "painted",
    "borrowed",
    "repaired",
    "ordered",
    "described",
    "found",
    "cleaned",
    "sold",
    "packed",
    "photographed",
    "forgot",
    "measured",
];
const THINGS: [&str; 16] = [
    "the bicycle",
    "a guitar",
    "the lamp",
    "two tickets",
    "some soup",
    "the garden",
    "a camera",
    "the letter",
    "a carpet",
    "the engine",
    "the window",
    "a jacket",
    "the piano",
    "the tent",
    "a kettle",
    "the map",
];
const PLACES: [&str; 10] = [
    "in Lisbon",
    "at the office",
    "near the school",
    "at the beach",
    "in the hospital",
    "at the market",
    "behind the station",
    "on the farm",
    "at the harbour",
    "in the library",
];
const WHEN: [&str; 8] = [
    "yesterday",
    "last summer",
    "on Monday",
    "after dinner",
    "in the rain",
    "at midnight",
    "this morning",
    "two years ago",
];

/// Random numbers by SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % bound as u64) as usize
    }

    fn pick(&mut self, words: &[&'static str]) -> &'static str {
        words[self.below(words.len())]
    }
}

/// A made name, another for each number.
fn name(number: usize) -> String {
    const STARTS: [&str; 10] =
        ["Bal", "Dro", "Fen", "Gur", "Hax", "Jol", "Kiv", "Mur", "Pex", "Tov"];
    const MIDDLES: [&str; 10] = ["a", "e", "i", "o", "u", "ar", "el", "in", "os", "un"];
    const ENDS: [&str; 5] = ["dric", "mond", "vane", "zell", "qist"];
    format!("{}{}{}", STARTS[number / 50], MIDDLES[number / 5 % 10], ENDS[number % 5])
}

fn sentence(random: &mut Random) -> String {
    let (subject, verb, thing) =
        (random.pick(&SUBJECTS), random.pick(&VERBS), random.pick(&THINGS));
    format!("{subject} {verb} {thing} {} {}", random.pick(&PLACES), random.pick(&WHEN))
}

/// Fills a memory with `rows` episodes; returns the ids of those with a name, by its number.
fn fill(db: &Db, memory: &Memory, rows: usize) -> Vec<EpisodeId> {
    let mut random = Random(500);
    let mut named = Vec::with_capacity(NAMED);
    let every = rows / NAMED;
    let texts: Vec<String> = (0..rows)
        .map(|row| match row % every == every / 2 && row / every < NAMED {
            true => {
                format!("{} {} {}", name(row / every), random.pick(&VERBS), random.pick(&THINGS))
            }
            false => sentence(&mut random),
        })
        .collect();
    for (batch, texts) in texts.chunks(BATCH).enumerate() {
        let turn = |(at, text): (usize, &String)| {
            Turn::new(text.as_str()).session(format!("session-{}", (batch * BATCH + at) / 20))
        };
        let added = memory.add_many(texts.iter().enumerate().map(turn).collect()).unwrap();
        for (at, one) in added.iter().enumerate() {
            let row = batch * BATCH + at;
            if row % every == every / 2 && row / every < NAMED {
                named.push(one.id);
            }
        }
    }
    db.checkpoint().unwrap();
    named
}

fn found(memory: &Memory, question: &str, route_above: u32) -> Vec<EpisodeId> {
    let query = Query::text(question).top_k(TOP).route_above(route_above);
    memory.search(query).unwrap().hits.iter().map(|hit| hit.episode.id).collect()
}

fn check(rows: usize) {
    let directory = tempfile::tempdir().unwrap();
    let options = OpenOptions::new().maintenance(Maintenance::Inline);
    let db = Db::open_with(directory.path().join("names.loom"), options).unwrap();
    let memory = db.user("reader");
    let named = fill(&db, &memory, rows);
    assert_eq!(named.len(), NAMED);
    assert_eq!((0..NAMED).map(name).collect::<HashSet<_>>().len(), NAMED);
    let (mut routed, mut exhaustive) = (0, 0);
    for (number, id) in named.iter().enumerate() {
        let question = format!("What did {} do?", name(number));
        routed += usize::from(found(&memory, &question, 0).contains(id));
        exhaustive += usize::from(found(&memory, &question, u32::MAX).contains(id));
    }
    println!("{rows} rows: recall@{TOP} routed {routed} of {NAMED}, exhaustive {exhaustive}");
    assert_eq!((routed, exhaustive), (NAMED, NAMED));
}

#[test]
fn rare_names_are_found_among_thousands() {
    check(6_000);
}

#[test]
#[ignore = "a minute; cargo test --release --test rare_names -- --ignored --nocapture"]
fn rare_names_are_found_among_a_hundred_thousand() {
    check(100_000);
}
