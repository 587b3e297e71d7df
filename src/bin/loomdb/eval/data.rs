//! Reads a data set: `turns.jsonl[.gz]` and `queries.jsonl[.gz]` of one folder.
//!
//! Turns are read as `loomdb import` reads them. A question has `conv_id`, `question`, `category` and `evidence`, a list
//! of the `turn_id` of its conversation that hold the answer. Other fields are left out, and so are questions without
//! evidence. Invariant: every gold turn of a [`Question`] is a turn of its [`Conversation`].

use std::collections::HashMap;
use std::fs::File;
use std::io::ErrorKind as Cause;
use std::path::{Path, PathBuf};

use loomdb::{Error, Result, Timestamp, Zone};
use serde_json::{Map, Value};

use super::metrics;
use crate::import::item::{Clock, Item, JsonRefusal, Refusal, head, object, optional_name, string};
use crate::import::lines::Lines;
use crate::import::turns;

/// Microseconds of a day.
const DAY: i64 = 86_400_000_000;

/// A data set.
pub struct Set {
    /// The folder's name.
    pub name: String,
    /// In the order of their first turn.
    pub conversations: Vec<Conversation>,
}

/// One conversation: one user's memory, and what is asked of it.
pub struct Conversation {
    /// The user.
    pub id: String,
    /// In the order of the file.
    pub turns: Vec<Item>,
    /// Tokens of each turn: [`metrics::tokens`].
    pub tokens: Vec<usize>,
    /// Those with evidence, in the order of the file.
    pub questions: Vec<Question>,
    /// When the questions are asked: a day after the last turn, since the sources name no time.
    pub asked_at: Timestamp,
}

/// A question and the turns that hold its answer.
pub struct Question {
    pub text: String,
    pub category: String,
    /// Places in [`Conversation::turns`], ascending.
    pub gold: Vec<usize>,
}

impl Set {
    /// Turns of all conversations.
    pub fn turns(&self) -> usize {
        self.conversations.iter().map(|conversation| conversation.turns.len()).sum()
    }

    /// Questions of all conversations.
    pub fn questions(&self) -> usize {
        self.conversations.iter().map(|conversation| conversation.questions.len()).sum()
    }
}

/// Reads the data set in `folder`. `captions`: ` [image: caption]` is appended to turns with a picture.
///
/// # Errors
/// `NotFound` when a file is missing; `Invalid` for a bad line, naming file, line and field, and for a set without
/// turns or questions; `Limit` and `Io` as the reader of lines has them.
pub fn read(folder: &Path, captions: bool) -> Result<Set> {
    let mut reader = Reader { captions, ..Reader::default() };
    let turns = find(folder, "turns")?;
    each_line(&turns, |map| reader.turn(map))?;
    if reader.conversations.is_empty() {
        return Err(Error::invalid("no turns").in_file(turns));
    }
    let queries = find(folder, "queries")?;
    each_line(&queries, |map| reader.question(map))?;
    let conversations = reader.conversations;
    // `--data .` has no last part of its own.
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let name = folder.file_name().unwrap_or(folder.as_os_str()).to_string_lossy().into_owned();
    let set = Set { name, conversations };
    if set.questions() == 0 {
        return Err(Error::invalid("no question has evidence").in_file(queries));
    }
    Ok(set)
}

/// Reads the turns of `path` as they follow one another, `most` at most.
///
/// # Errors
/// As [`read`].
pub fn turns_of(path: &Path, most: usize) -> Result<Vec<Item>> {
    let mut clock = Clock::new(Zone::utc());
    let mut items = Vec::new();
    each_line(path, |map| {
        if items.len() < most {
            items.push(turns::turn(map, &mut clock, false)?);
        }
        Ok(())
    })?;
    Ok(items)
}

/// The file `name` in `folder`, plain or compressed.
fn find(folder: &Path, name: &str) -> Result<PathBuf> {
    let plain = folder.join(format!("{name}.jsonl"));
    let packed = folder.join(format!("{name}.jsonl.gz"));
    [&plain, &packed].into_iter().find(|path| path.is_file()).cloned().ok_or_else(|| {
        let message = format!("no {name}.jsonl or {name}.jsonl.gz in the data folder");
        Error::not_found(message).in_file(folder)
    })
}

fn each_line(
    path: &Path,
    mut take: impl FnMut(Map<String, Value>) -> std::result::Result<(), Refusal>,
) -> Result<()> {
    let file = File::open(path).map_err(|cause| match cause.kind() {
        Cause::NotFound => Error::not_found("no such file").in_file(path),
        _ => Error::io("open", cause).in_file(path),
    })?;
    let mut lines = Lines::new(file).map_err(|error| error.in_file(path))?;
    loop {
        let number = lines.number() + 1;
        let line = match lines.next_line() {
            Ok(Some(line)) => line,
            Ok(None) => return Ok(()),
            Err(cause) => {
                let message = format!("line {number} cannot be read");
                return Err(Error::new(cause.kind(), message).because(cause).in_file(path));
            }
        };
        if line.trim_ascii().is_empty() {
            continue;
        }
        let map = object(line).map_err(|why| match why {
            JsonRefusal::Unfinished => "JSON is cut off".into(),
            JsonRefusal::Bad(why) => why,
        });
        map.and_then(&mut take)
            .map_err(|why| Error::invalid(format!("line {number}: {why}")).in_file(path))?;
    }
}

#[derive(Default)]
struct Reader {
    captions: bool,
    conversations: Vec<Conversation>,
    by_id: HashMap<String, usize>,
    /// The conversation and the place in it of each key.
    by_key: HashMap<String, (usize, usize)>,
}

impl Reader {
    fn turn(&mut self, map: Map<String, Value>) -> std::result::Result<(), Refusal> {
        let item = turns::turn(map, &mut Clock::new(Zone::utc()), self.captions)?;
        let id = item.user.clone().ok_or("no \"conv_id\"")?;
        let asked_at = Timestamp::from_micros(item.time.time.micros().saturating_add(DAY))
            .map_err(|_| "the day after its time is outside the calendar")?;
        let at = *self.by_id.entry(id).or_insert_with_key(|id| {
            self.conversations.push(Conversation {
                id: id.clone(),
                turns: Vec::new(),
                tokens: Vec::new(),
                questions: Vec::new(),
                asked_at,
            });
            self.conversations.len() - 1
        });
        let conversation = &mut self.conversations[at];
        let place = conversation.turns.len();
        if self.by_key.insert(item.key.clone(), (at, place)).is_some() {
            return Err("\"turn_id\" is that of an earlier turn of the conversation".into());
        }
        conversation.asked_at = conversation.asked_at.max(asked_at);
        conversation.tokens.push(metrics::tokens(&item.text));
        conversation.turns.push(item);
        Ok(())
    }

    fn question(&mut self, mut map: Map<String, Value>) -> std::result::Result<(), Refusal> {
        let id = optional_name(&mut map, "conv_id")?.ok_or("no \"conv_id\"")?;
        let at = *self.by_id.get(&id).ok_or("\"conv_id\" names a conversation without turns")?;
        let text = string(&mut map, "question")?;
        let category = string(&mut map, "category")?;
        let evidence = map.remove("evidence").ok_or("no \"evidence\"")?;
        let evidence = evidence.as_array().ok_or("\"evidence\" is not a list")?;
        let mut gold = Vec::with_capacity(evidence.len());
        for turn in evidence {
            let turn = match turn {
                Value::String(name) => name.clone(),
                Value::Number(number) => number.to_string(),
                _ => return Err("\"evidence\" holds something that is no turn_id".into()),
            };
            let key = format!("{}/{turn}", head(&id));
            let (_, place) = self.by_key.get(&key).ok_or("\"evidence\" names an unknown turn")?;
            gold.push(*place);
        }
        gold.sort_unstable();
        gold.dedup();
        if !gold.is_empty() {
            self.conversations[at].questions.push(Question { text, category, gold });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn map(value: Value) -> Map<String, Value> {
        let Value::Object(map) = value else { panic!("an object") };
        map
    }

    fn turn(conversation: &str, id: &str, time: &str) -> Map<String, Value> {
        map(json!({
            "conv_id": conversation, "turn_id": id, "time": time, "text": "a b", "caption": "c d",
        }))
    }

    fn question(conversation: &str, evidence: Value) -> Map<String, Value> {
        map(json!({
            "conv_id": conversation, "question": "q", "category": "x", "evidence": evidence,
        }))
    }

    fn reader() -> Reader {
        let mut reader = Reader::default();
        for (conversation, id, time) in [
            ("a", "1", "2024-01-02T00:00:00"),
            ("b", "1", "2024-01-01T00:00:00Z"),
            ("a", "2", "2024-01-01T00:00:00"),
        ] {
            reader.turn(turn(conversation, id, time)).unwrap();
        }
        reader
    }

    #[test]
    fn questions_find_the_turns_of_their_own_conversation() {
        let mut reader = reader();
        reader.question(question("a", json!(["2", "1", "2"]))).unwrap();
        reader.question(question("b", json!([1]))).unwrap();
        reader.question(question("b", json!([]))).unwrap();
        let [a, b] = &reader.conversations[..] else { panic!("two") };
        assert_eq!((a.questions.len(), b.questions.len()), (1, 1));
        assert_eq!((&a.questions[0].gold[..], &b.questions[0].gold[..]), (&[0, 1][..], &[0][..]));
    }

    #[test]
    fn questions_are_asked_a_day_after_the_latest_turn() {
        let reader = reader();
        let asked = reader.conversations[0].asked_at;
        assert_eq!(loomdb::ZonedTime::from(asked).to_string(), "2024-01-03T00:00:00Z");
    }

    #[test]
    fn captions_count_when_they_are_stored() {
        let mut reader = Reader { captions: true, ..Reader::default() };
        reader.turn(turn("a", "1", "2024-01-02T00:00:00")).unwrap();
        // "a b [image: c d]": five words, 6.5 tokens.
        assert_eq!(reader.conversations[0].tokens, [7]);
        assert_eq!(self::reader().conversations[0].tokens, [3, 3]);
    }

    #[test]
    fn what_does_not_fit_together_is_refused() {
        let mut reader = reader();
        assert!(reader.turn(turn("a", "1", "2024-01-02T00:00:00")).is_err());
        assert!(reader.question(question("c", json!(["1"]))).is_err());
        assert!(reader.question(question("b", json!(["2"]))).is_err());
        assert!(reader.question(question("b", json!("1"))).is_err());
        assert!(reader.question(question("b", json!([null]))).is_err());
        for field in ["conv_id", "question", "category", "evidence"] {
            let mut question = question("b", json!(["1"]));
            question.remove(field);
            let why = reader.question(question).unwrap_err();
            assert!(why.contains(&format!("\"{field}\"")), "{why}");
        }
    }
}
