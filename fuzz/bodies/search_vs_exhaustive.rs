//! Arbitrary memories and questions: the ordinary search gives what the definition gives.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use loomdb::internals::storage::vfs::MemoryVfs;
use loomdb::{
    Db, EpisodeId, Hit, Maintenance, Memory, OpenOptions, Patch, Query, SearchMode, Timestamp, Turn,
};

/// Operations and questions of one input, at most: more make an input slow, not better.
const STEPS_MAX: usize = 64;
const DAY: i64 = 86_400_000_000;

/// Words that turns and questions share, of all kinds that the analysis tells apart.
const WORDS: [&str; 16] = [
    "lake",
    "hiked",
    "hiking",
    "Ann",
    "Bob's",
    "when",
    "I",
    "POL-358",
    "7 May 1989",
    "yesterday",
    "über",
    "東京タワー",
    "the",
    "?",
    "a@b.ch",
    "kayaks",
];

/// Reads numbers; zeros behind the end.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    fn below(&mut self, end: u8) -> u8 {
        self.byte() % end
    }

    /// Shared words and raw ones, never empty.
    fn text(&mut self) -> String {
        let mut text = String::new();
        for _ in 0..=self.below(6) {
            match self.byte() {
                low @ 0..=199 => text.push_str(WORDS[usize::from(low) % WORDS.len()]),
                _ => {
                    let length = usize::from(self.below(12)).min(self.0.len());
                    let (raw, rest) = self.0.split_at(length);
                    self.0 = rest;
                    text.push_str(&String::from_utf8_lossy(raw));
                }
            }
            text.push(' ');
        }
        // Now and then as many sentences as make several passages.
        if self.below(16) == 0 {
            text = format!("{text}. ").repeat(60);
        }
        text.push('x');
        text
    }

    fn time(&mut self) -> Timestamp {
        Timestamp::from_micros(i64::from(self.below(40)) * DAY).expect("a day of 1970")
    }

    fn name(&mut self, kind: &str) -> Option<String> {
        match self.below(4) {
            0 => None,
            number => Some(format!("{kind}{number}")),
        }
    }
}

/// The bytes are operations and questions.
pub fn run(data: &[u8]) {
    let vfs = Arc::new(MemoryVfs::new());
    let open = || {
        let options = OpenOptions::new().maintenance(Maintenance::Manual);
        Db::open_on(vfs.clone(), Path::new("/f.loom"), options).expect("a sound database opens")
    };
    let mut db = open();
    let mut written: Vec<EpisodeId> = Vec::new();
    let mut input = Input(data);
    for _ in 0..STEPS_MAX {
        if input.0.is_empty() {
            break;
        }
        let memory = db.user("u");
        match input.below(16) {
            0..=6 => written.push(memory.add(turn(&mut input)).expect("a turn is stored").id),
            7 => {
                if let Some(id) = pick(&written, &mut input) {
                    // It may be gone.
                    let _ = memory.update(id, patch(&mut input));
                }
            }
            8 => {
                if let Some(id) = pick(&written, &mut input) {
                    let _ = memory.delete(id);
                }
            }
            9 => drop(db.checkpoint().expect("checkpoint")),
            10 => drop(db.merge().expect("merge")),
            11 => db = open(),
            _ => compare(&memory, &mut input),
        }
    }
    compare(&db.user("u"), &mut input);
}

fn pick(written: &[EpisodeId], input: &mut Input<'_>) -> Option<EpisodeId> {
    let place = usize::from(input.byte()).checked_rem(written.len())?;
    Some(written[place])
}

fn turn(input: &mut Input<'_>) -> Turn {
    let mut turn = Turn::new(input.text()).time(input.time()).ordinal(input.below(3).into());
    if let Some(session) = input.name("s") {
        turn = turn.session(session);
    }
    if let Some(speaker) = input.name("Ann") {
        turn = turn.speaker(speaker);
    }
    turn
}

fn patch(input: &mut Input<'_>) -> Patch {
    let patch = Patch::new().time(input.time());
    match input.below(3) {
        0 => patch.text(input.text()),
        1 => patch.session(input.name("s").as_deref()),
        _ => patch.speaker(input.name("Ann").as_deref()),
    }
}

fn compare(memory: &Memory, input: &mut Input<'_>) {
    let (text, asked) = (input.text(), input.time());
    let mode = match input.below(4) {
        0 => SearchMode::Lexical,
        1 => SearchMode::Vector,
        _ => SearchMode::Hybrid,
    };
    let (session, speaker) = (input.name("s"), input.name("Ann"));
    let query = |filters: bool| {
        let mut query = Query::text(text.as_str()).mode(mode).query_time(asked).top_k(20);
        if let (true, Some(session)) = (filters, &session) {
            query = query.session(session);
        }
        if let (true, Some(speaker)) = (filters, &speaker) {
            query = query.speaker(speaker);
        }
        query
    };
    let told = |query: Query| -> Vec<(EpisodeId, u32)> {
        let told = |hit: &Hit| (hit.episode.id, hit.score.to_bits());
        memory.search(query).expect("a search answers").hits.iter().map(told).collect()
    };
    for filters in [false, true] {
        let defined = told(query(filters).exact(true));
        assert_eq!(told(query(filters)), defined, "the ordinary search differs");
        let all: HashMap<_, _> =
            told(query(filters).exact(true).top_k(10_000)).into_iter().collect();
        let routed = told(query(filters).route_above(0));
        assert_eq!(routed.len(), defined.len(), "a routed search gives fewer");
        for (id, score) in routed {
            assert_eq!(all.get(&id), Some(&score), "a routed search tells another score");
        }
    }
}
