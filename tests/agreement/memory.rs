//! A database and what happens to it: small memories of turns that share words, people and days.

use loomdb::{Db, Durability, EpisodeId, Maintenance, Memory, OpenOptions, Patch, Turn, ZonedTime};
use proptest::prelude::*;
use serde_json::json;
use tempfile::TempDir;

/// What is said. Several share words; one is long enough for several passages.
pub const TEXTS: &[&str] = &[
    "We hiked around the lake in May",
    "My dog swims in the lake, yesterday he swam for an hour",
    "Ticket POL-358 is about the kayak rental",
    "Über den See nach Osten",
    "東京タワーに行きました",
    "I was born on 7 May 1989 and got a dog last year",
    "Ann bought the kayak",
    "ok",
    "!!!",
    "Long",
];

/// The text behind the word `Long`.
fn long() -> String {
    let sentence = |number: usize| {
        format!(
            "Sentence {number} tells of a hike, a dog and of kayak number {number} on the lake. "
        )
    };
    (0..40).map(sentence).collect()
}

/// One turn in small numbers.
#[derive(Clone, Debug)]
pub struct Said {
    pub user: bool,
    pub text: String,
    pub session: u8,
    pub speaker: u8,
    pub day: u8,
    pub ordinal: u64,
    pub number: u8,
}

#[derive(Clone, Debug)]
pub enum Op {
    Add(Said),
    /// The turn at this place of all that were written, with another text, speaker, session or day.
    Update(usize, Said),
    Delete(usize),
    DeleteSession(bool, u8),
    Checkpoint,
    Merge,
    /// Goes on with a new handle.
    Reopen,
}

pub fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        12 => said().prop_map(Op::Add),
        2 => (any::<usize>(), said()).prop_map(|(place, said)| Op::Update(place, said)),
        2 => any::<usize>().prop_map(Op::Delete),
        1 => (any::<bool>(), 0..4u8).prop_map(|(user, session)| Op::DeleteSession(user, session)),
        1 => Just(Op::Checkpoint),
        1 => Just(Op::Merge),
        1 => Just(Op::Reopen),
    ];
    prop::collection::vec(op, 1..40)
}

fn said() -> impl Strategy<Value = Said> {
    let text = prop::collection::vec(prop::sample::select(TEXTS.to_vec()), 1..3);
    let user = prop_oneof![4 => Just(true), 1 => Just(false)];
    (user, text, 0..4u8, 0..5u8, 0..6u8, 0..3u64, 0..5u8).prop_map(
        |(user, texts, session, speaker, day, ordinal, number)| {
            let texts =
                texts.into_iter().map(|text| if text == "Long" { long() } else { text.into() });
            let text = texts.collect::<Vec<_>>().join(". ");
            Said { user, text, session, speaker, day, ordinal, number }
        },
    )
}

/// A text that nobody in particular said in no session.
pub fn plain(text: &str) -> Said {
    let text = text.to_owned();
    Said { user: true, text, session: 0, speaker: 0, day: 0, ordinal: 0, number: 0 }
}

/// One of many short turns with a few rare words each.
pub fn generated(number: u32) -> Said {
    Said {
        user: true,
        text: format!("{} {}", question(number), question(number / 7)),
        session: (number / 40 % 200) as u8 + 1,
        speaker: (number % 2) as u8 + 1,
        day: (number / 300) as u8,
        ordinal: u64::from(number),
        number: 0,
    }
}

/// Words of which few turns say several.
pub fn question(number: u32) -> String {
    let words = ["garden", "piano", "violin", "soup", "train", "letter", "winter", "market"];
    let word = |at: u32| words[(number / 8u32.pow(at) % 8) as usize];
    format!("the {} and {} near {} on street{}", word(0), word(1), word(2), number % 211)
}

/// A database on disk.
pub struct Life {
    directory: TempDir,
    db: Db,
    written: Vec<(bool, EpisodeId)>,
}

impl Life {
    pub fn begin() -> Life {
        let directory = TempDir::new().unwrap();
        let db = open(&directory);
        Life { directory, db, written: Vec::new() }
    }

    pub fn memory(&self, user: &str) -> Memory {
        self.db.user(user)
    }

    pub fn take(&mut self, op: Op) {
        match op {
            Op::Add(said) => {
                let added = self.of(said.user).add(turn(&said)).unwrap();
                self.written.push((said.user, added.id));
            }
            Op::Update(place, said) => {
                if let Some((user, id)) = self.at(place) {
                    // A deleted one is not there to be changed.
                    let _ = self.of(user).update(id, patch(&said));
                }
            }
            Op::Delete(place) => {
                if let Some((user, id)) = self.at(place) {
                    let _ = self.of(user).delete(id);
                }
            }
            Op::DeleteSession(user, session) => {
                self.of(user).delete_session(&format!("s{session}")).unwrap();
            }
            Op::Checkpoint => drop(self.db.checkpoint().unwrap()),
            Op::Merge => drop(self.db.merge().unwrap()),
            Op::Reopen => self.db = open(&self.directory),
        }
    }

    fn of(&self, user: bool) -> Memory {
        self.db.user(if user { "u" } else { "v" })
    }

    fn at(&self, place: usize) -> Option<(bool, EpisodeId)> {
        let place = place.checked_rem(self.written.len())?;
        Some(self.written[place])
    }
}

fn open(directory: &TempDir) -> Db {
    let options =
        OpenOptions::new().durability(Durability::Relaxed).maintenance(Maintenance::Manual);
    Db::open_with(directory.path().join("agreement.loom"), options).unwrap()
}

fn time(said: &Said) -> ZonedTime {
    ZonedTime::parse(&format!("2023-05-{:02}T0{}:00:00+02:00", said.day + 1, said.number)).unwrap()
}

fn speaker(said: &Said) -> Option<&'static str> {
    [None, Some("Ann Lee"), Some("Bob"), Some("user"), Some("Ann Moor")][said.speaker as usize]
}

fn turn(said: &Said) -> Turn {
    let mut turn = Turn::new(said.text.as_str())
        .time(time(said))
        .ordinal(said.ordinal)
        .metadata(json!({ "n": said.number }));
    if said.session > 0 {
        turn = turn.session(format!("s{}", said.session));
    }
    if let Some(speaker) = speaker(said) {
        turn = turn.speaker(speaker);
    }
    if said.number == 4 {
        // Gone from answers, but still a neighbour.
        turn = turn.expires(ZonedTime::parse("2023-06-01T00:00:00Z").unwrap().time);
    }
    turn
}

fn patch(said: &Said) -> Patch {
    let session = format!("s{}", said.session);
    let patch = Patch::new().speaker(speaker(said)).time(time(said));
    match said.number {
        0 => patch,
        1 => patch.session(Some(&session)),
        _ => patch.session(None).text(said.text.as_str()),
    }
}
