//! The questions of an audit: those of a file, or made of stored turns.
//!
//! Invariant: equal memories, files and seeds give equal questions, asked at the same time.

use std::fs::File;
use std::io::ErrorKind as Cause;
use std::path::Path;

use loomdb::{
    Direction, EpisodeId, Error, Memory, Query, Result, TimelineOptions, Timestamp, ZonedTime,
};

use crate::import::item::{JsonRefusal, object, string};
use crate::import::lines::Lines;

/// Words with a meaning that a question made of a turn has, at least. A stated guess: with fewer, hardly any turn is
/// better than another.
const WORDS_MIN: usize = 3;
/// Words of a turn that a question is made of, at most: people ask short questions, of long turns too. A stated guess.
const WORDS_MAX: usize = 24;
/// Of so many words with a meaning one is left out, so that a question is not the turn itself.
const LEFT_OUT_OF: usize = 3;
/// Turns read at once.
const PAGE_TURNS: usize = 1000;

/// A question, and the turn that it was made of.
#[derive(Debug)]
pub struct Question {
    pub query: Query,
    /// Does not count as an answer.
    pub own: Option<EpisodeId>,
}

/// Reads the questions of a file, plain or gzip: on each line a text, or a JSON object with the field `question`. Empty
/// lines are passed over.
///
/// # Errors
/// `NotFound` when there is no such file; `Invalid` for a bad line, naming file and line, and for a file without
/// questions; `Limit` and `Io` as the reader of lines has them.
pub fn read(path: &Path) -> Result<Vec<String>> {
    let file = File::open(path).map_err(|cause| match cause.kind() {
        Cause::NotFound => Error::not_found("no such file").in_file(path),
        _ => Error::io("open", cause).in_file(path),
    })?;
    let mut lines = Lines::new(file).map_err(|error| error.in_file(path))?;
    let mut texts = Vec::new();
    loop {
        let number = lines.number() + 1;
        let line = lines.next_line().map_err(|cause| {
            let message = format!("line {number} cannot be read");
            Error::new(cause.kind(), message).because(cause).in_file(path)
        })?;
        let Some(line) = line.map(str::trim) else { break };
        if line.is_empty() {
            continue;
        }
        let text = match line.starts_with('{') {
            true => question_of(line)
                .map_err(|why| Error::invalid(format!("line {number}: {why}")).in_file(path))?,
            false => line.to_owned(),
        };
        texts.push(text);
    }
    match texts.is_empty() {
        true => Err(Error::invalid("no questions").in_file(path)),
        false => Ok(texts),
    }
}

fn question_of(line: &str) -> std::result::Result<String, String> {
    let mut map = object(line).map_err(|why| match why {
        JsonRefusal::Unfinished => "JSON is cut off".to_owned(),
        JsonRefusal::Bad(why) => why.into_owned(),
    })?;
    let text = string(&mut map, "question")?;
    // An empty question would list the newest turns, which chooses nothing.
    if text.trim().is_empty() { Err("\"question\" is empty".into()) } else { Ok(text) }
}

/// The questions `texts`, asked when the newest turn was said.
///
/// # Errors
/// Those of a listing.
pub fn asked(memory: &Memory, texts: &[String]) -> Result<Vec<Question>> {
    let asked_at = newest(memory)?;
    let query = |text: &String| Query::text(text.as_str()).query_time(asked_at);
    Ok(texts.iter().map(|text| Question { query: query(text), own: None }).collect())
}

/// Questions made of `count` turns at most, drawn evenly from all that have words enough. Cost: reads all turns.
///
/// # Errors
/// Those of a listing.
pub fn sampled(memory: &Memory, count: usize, seed: u64) -> Result<Vec<Question>> {
    let asked_at = newest(memory)?;
    let mut random = Random(seed);
    let mut questions: Vec<Question> = Vec::new();
    let (mut options, mut seen) = (TimelineOptions::default().limit(PAGE_TURNS), 0);
    loop {
        let page = memory.timeline(options.clone())?;
        for episode in &page.episodes {
            let Some(text) = question_from(&episode.text, random.below(LEFT_OUT_OF)) else {
                continue;
            };
            // Of all turns that were seen each is among those drawn with the same chance (Vitter's algorithm R).
            seen += 1;
            let place = if seen <= count { seen - 1 } else { random.below(seen) };
            if place >= count {
                continue;
            }
            let query = Query::text(text).query_time(asked_at);
            let question = Question { query, own: Some(episode.id) };
            match questions.get_mut(place) {
                Some(drawn) => *drawn = question,
                None => questions.push(question),
            }
        }
        match page.next {
            Some(next) => options = options.cursor(next),
            None => return Ok(questions),
        }
    }
}

/// When the newest turn was said.
fn newest(memory: &Memory) -> Result<ZonedTime> {
    let page = memory.timeline(TimelineOptions::new().direction(Direction::Descending).limit(1))?;
    let newest = page.episodes.first().map(|episode| episode.time);
    Ok(newest.unwrap_or_else(|| ZonedTime::utc(Timestamp::now())))
}

/// A question about a turn: its first words, without the `left_out`-th of every three that have a meaning.
fn question_from(text: &str, left_out: usize) -> Option<String> {
    let (mut meant, mut kept) = (0, 0);
    let words = text.split_whitespace().take(WORDS_MAX).filter(|word| {
        if loomdb::terms(word).is_empty() {
            return true;
        }
        meant += 1;
        let is_kept = (meant - 1) % LEFT_OUT_OF != left_out;
        kept += usize::from(is_kept);
        is_kept
    });
    let text = words.collect::<Vec<_>>().join(" ");
    (kept >= WORDS_MIN).then_some(text)
}

/// SplitMix64 (Steele, Lea and Flood 2014): enough to draw a sample.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, which is at least 1; a bias of one in 2^64 / `bound` does no harm.
    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use loomdb::{Db, ErrorKind, Turn};

    use super::*;

    #[test]
    fn a_third_of_the_words_with_a_meaning_is_left_out() {
        let text = "We sailed to the green harbour with seven hungry seagulls";
        // sailed, green, harbour, seven, hungry, seagulls.
        let without_first = question_from(text, 0).unwrap();
        assert_eq!(without_first, "We to the green harbour with hungry seagulls");
        assert_eq!(question_from(text, 2).unwrap(), "We sailed to the green with seven hungry");
        assert_eq!(question_from("Thanks, see you later!", 0), None);
        let long = "harbour ".repeat(1000);
        assert_eq!(question_from(&long, 1).unwrap().split(' ').count(), 16);
    }

    #[test]
    fn equal_seeds_draw_equal_turns_and_never_one_twice() {
        let folder = tempfile::tempdir().unwrap();
        let memory = Db::open(folder.path().join("db")).unwrap().user("u");
        let text = |number: usize| format!("green harbour number{number} seagull lighthouse ferry");
        memory.add_many((0..300).map(|number| Turn::new(text(number))).collect()).unwrap();
        memory.add(Turn::new("Hello!")).unwrap();
        let drawn = |count, seed| -> Vec<EpisodeId> {
            let questions = sampled(&memory, count, seed).unwrap();
            questions.iter().map(|question| question.own.unwrap()).collect()
        };
        let some = drawn(40, 1);
        assert_eq!((some.len(), &some), (40, &drawn(40, 1)));
        assert_ne!(some, drawn(40, 2));
        let mut distinct = some.clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), 40);
        // From all over the memory.
        assert!(distinct[10].get() - distinct[0].get() > 10);
        assert_eq!((drawn(1000, 1).len(), drawn(0, 1).len()), (300, 0));
    }

    #[test]
    fn a_file_has_texts_or_objects_and_faults_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("q");
        let read = |contents: &str| {
            std::fs::write(&path, contents).unwrap();
            read(&path)
        };
        let texts = read("Where is it?\n\n{\"question\": \"Who?\", \"x\": 1}\n").unwrap();
        assert_eq!(texts, ["Where is it?", "Who?"]);
        for (contents, part) in [
            ("a\n{\"text\": \"secret\"}", "line 2: no \"question\""),
            ("{\"question\": \" \"}", "empty"),
            ("{\"question\"", "cut off"),
            ("\n \n", "no questions"),
        ] {
            let error = read(contents).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid);
            assert!(error.to_string().contains(part) && !format!("{error:?}").contains("secret"));
        }
        let missing = super::read(&folder.path().join("none")).unwrap_err();
        assert_eq!(missing.kind(), ErrorKind::NotFound);
    }
}
