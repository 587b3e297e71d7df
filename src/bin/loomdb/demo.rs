//! `loomdb demo`: the main job on a conversation that comes with the program. Imports it, asks six questions of which
//! the answers are known, and shows what was found, how and how fast.
//!
//! Invariant: it works from any directory and any number of times, and without `--db` nothing of it stays.

use std::time::Instant;

use loomdb::{Db, Hit, Memory, Query, Recall, Result, Turn, ZonedTime};
use serde_json::{Value, json};

use crate::args::{self, Opening};
use crate::database;
use crate::failure::Failure;
use crate::import::{Counts, Format, Host, Importer, Settings};
use crate::ingest::{counts_json, counts_line, write_batch};
use crate::output::{self, Output};
use crate::search::{explanation, hit};
use crate::temporary::Temporary;

/// A conversation of two people over eight months, one turn a line.
const CONVERSATION: &[u8] = include_bytes!("../../../assets/demo/turns.jsonl");
/// Questions with the turns that answer them, one a line: with the turns a set for `loomdb eval retrieval`.
const QUESTIONS: &str = include_str!("../../../assets/demo/queries.jsonl");
/// When the questions are asked, for words such as "last month" in them: the day after the conversation.
const ASKED: &str = "2025-09-11T09:00:00Z";
/// The user of the memory: the conversation's own name.
const USER: &str = "ruth-owen";

struct Question {
    text: String,
    answer: String,
    /// Keys of the turns that hold the answer.
    evidence: Vec<String>,
}

struct Asked {
    question: Question,
    recall: Recall,
    /// From the call to its return.
    micros: u64,
}

/// `loomdb demo`.
pub fn demo(arguments: &args::Demo, output: &mut Output) -> std::result::Result<(), Failure> {
    let temporary = match arguments.db {
        Some(_) => None,
        None => Some(Temporary::new("demo")?),
    };
    let path = match (&arguments.db, &temporary) {
        (Some(path), _) => path.clone(),
        (None, Some(temporary)) => temporary.path().join("demo.loom"),
        (None, None) => unreachable!("one of the two was made above"),
    };
    let opening = Opening { busy_timeout: std::time::Duration::from_secs(5), ..Opening::default() };
    let db = Db::open_with(&path, database::options(&opening))?;

    let begin = Instant::now();
    let imported = import(&db)?;
    let import_micros = micros(begin);
    let memory = db.user(USER);
    let mut asked = Vec::new();
    for question in questions() {
        asked.push(ask(&memory, question, arguments.top_k)?);
    }
    // Closed before the directory goes.
    drop(memory);
    drop(db);
    drop(temporary);

    let questions: Vec<_> = asked.iter().map(asked_json).collect();
    let value = json!({
        "imported": counts_json(imported),
        "import_microseconds": import_micros,
        "questions": questions,
    });
    output.answer(value, || {
        let mut lines = format!(
            "A conversation of two people over eight months: {}in {:.1} ms\n",
            counts_line(imported).replace('\n', " "),
            import_micros as f64 / 1000.0
        );
        asked.iter().for_each(|asked| lines.push_str(&asked_lines(asked)));
        lines.push_str(&summary(&asked));
        if let Some(path) = &arguments.db {
            lines.push_str(&format!(
                "\nAsk it yourself: loomdb search {} --user {USER} \"..\"\n",
                path.display()
            ));
        }
        lines
    })?;
    Ok(())
}

fn import(db: &Db) -> Result<Counts> {
    let mut host = Quiet { db };
    let settings = Settings { user: None, zone: None, format: Format::Turns, captions: false };
    let mut importer = Importer::new(settings, &mut host)?;
    importer.read("turns.jsonl", CONVERSATION)?;
    Ok(importer.counts())
}

/// Stores what it is given and says nothing.
struct Quiet<'a> {
    db: &'a Db,
}

impl Host for Quiet<'_> {
    fn write(&mut self, user: &[u8], turns: Vec<Turn>) -> Result<Counts> {
        write_batch(self.db, user, turns)
    }

    fn note(&mut self, _: &str) {}

    fn progress(&mut self, _: &Counts) {}
}

/// The bundled questions. They are part of the program, so that a fault in them is a bug.
fn questions() -> Vec<Question> {
    let line = |line| serde_json::from_str(line).expect("the bundled questions are JSON");
    let read: Vec<Value> = QUESTIONS.lines().map(line).collect();
    let text = |value: &Value| value.as_str().expect("a string").to_owned();
    let question = |value: &Value| Question {
        text: text(&value["question"]),
        answer: text(&value["answer"]),
        evidence: value["evidence"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|turn| format!("{USER}/{}", text(turn)))
            .collect(),
    };
    read.iter().map(question).collect()
}

fn ask(memory: &Memory, question: Question, top_k: usize) -> Result<Asked> {
    let asked = ZonedTime::parse(ASKED)?;
    let begin = Instant::now();
    let query = Query::text(question.text.as_str()).top_k(top_k).query_time(asked);
    let recall = memory.search(query)?;
    Ok(Asked { question, recall, micros: micros(begin) })
}

impl Asked {
    /// Whether a turn found is one that holds the answer.
    fn known(&self, hit: &Hit) -> bool {
        hit.episode.key.as_ref().is_some_and(|key| self.question.evidence.contains(key))
    }

    /// Turns found that hold the answer.
    fn found(&self) -> usize {
        self.recall.hits.iter().filter(|hit| self.known(hit)).count()
    }
}

fn asked_json(asked: &Asked) -> Value {
    let hits = asked.recall.hits.iter().map(|found| {
        let mut value = hit(found);
        value.insert("known_answer".into(), json!(asked.known(found)));
        value
    });
    json!({
        "question": asked.question.text,
        "answer": asked.question.answer,
        "evidence": asked.question.evidence,
        "hits": hits.collect::<Vec<_>>(),
        "explain": explanation(&asked.recall.explain),
        "microseconds": asked.micros,
    })
}

fn asked_lines(asked: &Asked) -> String {
    let Asked { question, recall, micros } = asked;
    let mut lines = format!("\n? {}\n  known answer: {}\n", question.text, question.answer);
    for found in &recall.hits {
        let mark = if asked.known(found) { '*' } else { ' ' };
        let episode = &found.episode;
        // The day is the first ten characters of RFC 3339.
        let time = episode.time.to_string();
        let day = time.get(..10).unwrap_or(&time);
        let speaker = episode.speaker.as_deref().unwrap_or("?");
        let text = output::plain(&episode.text);
        lines.push_str(&format!("  {mark} {day}  {speaker}: {text}  ({})\n", found.why));
    }
    for line in recall.explain.to_string().lines() {
        lines.push_str(&format!("    {line}\n"));
    }
    lines.push_str(&format!("    answered in {:.2} ms\n", *micros as f64 / 1000.0));
    lines
}

fn summary(asked: &[Asked]) -> String {
    let answered = asked.iter().filter(|asked| asked.found() > 0).count();
    let found: usize = asked.iter().map(Asked::found).sum();
    let known: usize = asked.iter().map(|asked| asked.question.evidence.len()).sum();
    let mut times: Vec<u64> = asked.iter().map(|asked| asked.micros).collect();
    times.sort_unstable();
    let median = times.get(times.len() / 2).copied().unwrap_or(0) as f64 / 1000.0;
    format!(
        "\n* marks a turn that holds the answer. {answered} of {} questions with such a turn, \
         {found} of {known} such turns; median {median:.2} ms\n",
        asked.len()
    )
}

fn micros(begin: Instant) -> u64 {
    u64::try_from(begin.elapsed().as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_known_answer_is_a_turn_of_the_conversation() {
        let lines = std::str::from_utf8(CONVERSATION).unwrap().lines();
        let turns: Vec<Value> = lines.map(|line| serde_json::from_str(line).unwrap()).collect();
        let key = |turn: &Value| {
            format!("{}/{}", turn["conv_id"].as_str().unwrap(), turn["turn_id"].as_str().unwrap())
        };
        let keys: std::collections::HashSet<_> = turns.iter().map(key).collect();
        assert_eq!(keys.len(), turns.len());
        assert!(turns.iter().all(|turn| turn["conv_id"] == USER));
        let questions = questions();
        assert_eq!(questions.len(), 6);
        for question in questions {
            assert!(!question.evidence.is_empty());
            assert!(question.evidence.iter().all(|turn| keys.contains(turn)), "{}", question.text);
        }
    }

    #[test]
    fn the_conversation_is_long_and_in_order() {
        let lines = std::str::from_utf8(CONVERSATION).unwrap().lines();
        let turns: Vec<Value> = lines.map(|line| serde_json::from_str(line).unwrap()).collect();
        let time = |turn: &Value| loomdb::ZonedTime::parse(turn["time"].as_str().unwrap()).unwrap();
        let times: Vec<_> = turns.iter().map(|turn| time(turn).time).collect();
        assert!(turns.len() >= 300 && times.is_sorted());
        let days = (times[times.len() - 1].micros() - times[0].micros()) / 86_400_000_000;
        assert!((230..260).contains(&days), "{days} days");
        let sessions: std::collections::HashSet<_> =
            turns.iter().map(|turn| turn["session_id"].as_str().unwrap()).collect();
        assert!(sessions.len() >= 30);
    }
}
