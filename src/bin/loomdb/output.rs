//! What stdout shows: one JSON object on a line with `--json`, lines for people without.
//!
//! Invariant: stored text never reaches a terminal with control characters in it, except line breaks and tabs.

use std::io::{self, BufWriter, Write};

use loomdb::Episode;
use serde_json::{Map, Value, json};

/// Standard output.
pub struct Output {
    /// Whether the answer is JSON.
    pub json: bool,
    out: BufWriter<io::StdoutLock<'static>>,
}

impl Output {
    /// Standard output, locked.
    pub fn new(json: bool) -> Output {
        Output { json, out: BufWriter::new(io::stdout().lock()) }
    }

    /// Writes the answer: `value` as JSON, or the lines of `text`.
    pub fn answer(&mut self, value: Value, text: impl FnOnce() -> String) -> io::Result<()> {
        if self.json { self.line(&value.to_string()) } else { self.lines(&text()) }
    }

    /// Writes one line.
    pub fn line(&mut self, line: &str) -> io::Result<()> {
        self.out.write_all(line.as_bytes())?;
        self.out.write_all(b"\n")
    }

    /// Writes lines that end by themselves.
    pub fn lines(&mut self, lines: &str) -> io::Result<()> {
        self.out.write_all(lines.as_bytes())
    }

    /// Hands everything to the system.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Says something on stderr. A stderr that is closed is no reason to fail.
pub fn say(text: &str) {
    let _ = writeln!(io::stderr(), "loomdb: {text}");
}

/// An episode as a JSON object.
pub fn episode(episode: &Episode) -> Map<String, Value> {
    let fields = json!({
        "id": episode.id.get(),
        "version": episode.version,
        "key": episode.key,
        "session": episode.session,
        "speaker": episode.speaker,
        "agent": episode.agent,
        "time": episode.time.to_string(),
        "record_time": episode.record_time.to_string(),
        "updated": episode.updated.to_string(),
        "expires": episode.expires.map(|time| time.to_string()),
        "ordinal": episode.ordinal,
        "tags": episode.tags,
        "metadata": episode.metadata,
        "has_vector": episode.has_vector,
        "text": episode.text,
    });
    let Value::Object(fields) = fields else { unreachable!("built as an object") };
    let mut whole = user(&episode.user);
    whole.extend(fields);
    whole
}

/// A user as a JSON object: `user`, or `user_hex` when the name is not UTF-8.
pub fn user(name: &[u8]) -> Map<String, Value> {
    let (field, text) = match std::str::from_utf8(name) {
        Ok(name) => ("user", name.to_owned()),
        Err(_) => ("user_hex", name.iter().map(|byte| format!("{byte:02x}")).collect()),
    };
    Map::from_iter([(field.to_owned(), Value::String(text))])
}

/// An episode as a line for people: id, time, session, speaker and text.
pub fn episode_line(episode: &Episode) -> String {
    episode_line_of(episode, &episode.text)
}

/// The same with `text`, a part of the episode's.
pub fn episode_line_of(episode: &Episode, text: &str) -> String {
    let session = episode.session.as_deref().map(|session| format!("[{}] ", name(session)));
    let speaker = episode.speaker.as_deref().map(|speaker| format!("{}: ", name(speaker)));
    format!(
        "{:>6}  {}  {}{}{}\n",
        episode.id,
        episode.time,
        session.unwrap_or_default(),
        speaker.unwrap_or_default(),
        indented(text)
    )
}

/// An episode for people, with every part on its own line.
pub fn episode_lines(episode: &Episode) -> String {
    let mut lines = format!("id           {}, version {}\n", episode.id, episode.version);
    let mut part = |title: &str, value: Option<&str>| {
        if let Some(value) = value {
            lines.push_str(&format!("{title:<12} {}\n", indented(value)));
        }
    };
    part("key", episode.key.as_deref().map(name).as_deref());
    part("user", Some(&name(&String::from_utf8_lossy(&episode.user))));
    part("session", episode.session.as_deref().map(name).as_deref());
    part("speaker", episode.speaker.as_deref().map(name).as_deref());
    part("agent", episode.agent.as_deref().map(name).as_deref());
    part("time", Some(&episode.time.to_string()));
    part("written", Some(&episode.updated.to_string()));
    part("expires", episode.expires.map(|time| time.to_string()).as_deref());
    part("tags", (!episode.tags.is_empty()).then(|| name(&episode.tags.join(", "))).as_deref());
    if !episode.metadata.is_empty() {
        part("metadata", Some(&Value::Object(episode.metadata.clone()).to_string()));
    }
    part("text", Some(&episode.text));
    lines
}

/// A text whose further lines stand below the first.
fn indented(text: &str) -> String {
    plain(text).replace('\n', "\n        ")
}

/// A text that does nothing to a terminal: control characters other than line breaks and tabs are written as `\u{1b}`.
pub fn plain(text: &str) -> String {
    escaped(text, |character| !matches!(character, '\n' | '\t'))
}

/// A name on one line: a line break in it would look like another name.
pub fn name(text: &str) -> String {
    escaped(text, |_| true)
}

fn escaped(text: &str, which: impl Fn(char) -> bool) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_control() && which(character) {
            out.extend(character.escape_unicode());
        } else {
            out.push(character);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_do_not_reach_a_terminal() {
        assert_eq!(plain("a\u{1b}[2Jb\tc\r\u{9b}"), "a\\u{1b}[2Jb\tc\\u{d}\\u{9b}");
        assert_eq!(indented("a\nb"), "a\n        b");
        assert_eq!(name("a\nb\tc\u{1b}"), "a\\u{a}b\\u{9}c\\u{1b}");
        assert_eq!(plain("ünï 漢字 🎻"), "ünï 漢字 🎻");
    }

    #[test]
    fn a_user_that_is_not_utf_8_is_named_in_hexadecimal() {
        assert_eq!(Value::Object(user(b"al\"ice")), json!({ "user": "al\"ice" }));
        assert_eq!(Value::Object(user(b"\xff\x00")), json!({ "user_hex": "ff00" }));
    }
}
