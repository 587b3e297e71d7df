//! `loomdb import`: reads files of turns or chats into a database, in batches, so that a second run skips what is
//! stored.
//!
//! Invariant: lines are stored in the order of the input and a batch is stored whole or not at all, so that "the last
//! stored line" says all about what an interrupted import left.

mod chat;
pub mod item;
pub mod lines;
pub mod turns;

use std::ffi::OsStr;
use std::io::Read;

use loomdb::{Error, Result, Turn, Zone};

use self::chat::Conversation;
use self::item::{Clock, Item, JsonRefusal, Refusal};
use self::lines::Lines;

/// Empty lines in a row, at most: a few kilobytes of gzip may hold billions of them.
const EMPTY_LINES_MAX: u32 = 1 << 20;
/// Turns of a batch.
const BATCH_TURNS: usize = 4096;
/// Bytes of a batch's strings, unless one turn alone has more: half of what a batch may hold, the rest is for vectors.
const BATCH_BYTES: usize = 32 << 20;

/// How an input is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// Told line by line: an object with "messages" is a chat.
    Auto,
    /// One turn a line.
    Turns,
    /// One conversation a line, or one over several lines.
    Chat,
}

/// What an import is told.
#[derive(Clone, Debug)]
pub struct Settings<'a> {
    /// The user of every turn; without it each conversation is its own user.
    pub user: Option<&'a OsStr>,
    /// The zone of times without one.
    pub zone: Option<&'a str>,
    /// The shape of the input.
    pub format: Format,
    /// Whether captions of pictures join the text.
    pub captions: bool,
}

/// What an import did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// New episodes.
    pub stored: u64,
    /// Turns that were stored already, with the same content.
    pub unchanged: u64,
    /// New versions of episodes that had other content.
    pub new_versions: u64,
    /// Messages without text.
    pub skipped: u64,
}

impl Counts {
    /// Turns handed to the database.
    pub fn turns(&self) -> u64 {
        self.stored + self.unchanged + self.new_versions
    }

    /// Adds what another part did.
    pub fn add(&mut self, other: Counts) {
        self.stored += other.stored;
        self.unchanged += other.unchanged;
        self.new_versions += other.new_versions;
        self.skipped += other.skipped;
    }
}

/// Where turns go and who is told.
pub trait Host {
    /// Stores the turns of one user, all or none.
    fn write(&mut self, user: &[u8], turns: Vec<Turn>) -> Result<Counts>;
    /// Says something to the person at the terminal.
    fn note(&mut self, text: &str);
    /// Hears how far the import is, after each batch.
    fn progress(&mut self, counts: &Counts);
}

/// One import of one or more inputs.
pub struct Importer<'a> {
    settings: Settings<'a>,
    clock: Clock,
    told_zone: bool,
    host: &'a mut dyn Host,
    counts: Counts,
    pending: Vec<Pending>,
    pending_bytes: usize,
    stored_line: u64,
}

struct Pending {
    line: u64,
    user: Vec<u8>,
    item: Item,
}

impl<'a> Importer<'a> {
    /// An import into `host`.
    ///
    /// # Errors
    /// `Invalid` when there is no such zone.
    pub fn new(settings: Settings<'a>, host: &'a mut dyn Host) -> Result<Importer<'a>> {
        let zone = settings.zone.map_or(Ok(Zone::utc()), Zone::parse)?;
        Ok(Importer {
            settings,
            clock: Clock::new(zone),
            told_zone: false,
            host,
            counts: Counts::default(),
            pending: Vec::new(),
            pending_bytes: 0,
            stored_line: 0,
        })
    }

    /// What was done so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Reads one input to its end and stores it.
    ///
    /// # Errors
    /// `Invalid` or `Limit` for a bad line: names `name`, the line and the last stored line. Lines of the batch that
    /// holds it are not stored. Errors of the database keep their kind and say the same of the lines.
    pub fn read(&mut self, name: &str, input: impl Read) -> Result<()> {
        self.stored_line = 0;
        let result = self.read_lines(input);
        self.pending.clear();
        self.pending_bytes = 0;
        result.map_err(|error| error.in_file(name))
    }

    fn read_lines(&mut self, input: impl Read) -> Result<()> {
        let mut lines = Lines::new(input)?;
        let (mut begun, mut empty) = (false, 0);
        loop {
            let line = match lines.next_line() {
                Ok(Some(line)) => line,
                Ok(None) => break,
                Err(error) => return Err(self.bad_line(lines.number(), error)),
            };
            if line.trim_ascii().is_empty() {
                empty += 1;
                if empty > EMPTY_LINES_MAX {
                    let why = format!("more than {EMPTY_LINES_MAX} empty lines in a row");
                    return Err(self.refused(lines.number(), why.into()));
                }
                continue;
            }
            empty = 0;
            let map = match item::object(line) {
                // Only the first text may go on in the next lines: a conversation printed for people.
                Err(JsonRefusal::Unfinished) if !begun && self.settings.format != Format::Turns => {
                    let number = lines.number();
                    let document =
                        lines.document().map_err(|error| self.bad_line(number, error))?;
                    item::object(document)
                }
                other => other,
            };
            begun = true;
            let number = lines.number();
            let map = map.map_err(|why| match why {
                JsonRefusal::Unfinished => self.refused(number, "JSON is cut off".into()),
                JsonRefusal::Bad(why) => self.refused(number, why),
            })?;
            self.take(number, map)?;
            // A full batch does not wait for the next line, which may be a bad one.
            if self.pending.len() >= BATCH_TURNS {
                self.flush(number + 1)?;
            }
        }
        self.flush(u64::MAX)
    }

    fn take(&mut self, line: u64, map: serde_json::Map<String, serde_json::Value>) -> Result<()> {
        let chat = match self.settings.format {
            Format::Auto => chat::is_chat(&map),
            Format::Turns => false,
            Format::Chat => true,
        };
        if !chat {
            let item = turns::turn(map, &mut self.clock, self.settings.captions)
                .map_err(|why| self.refused(line, why))?;
            return self.push(line, item);
        }
        let mut conversation = Conversation::new(map).map_err(|why| self.refused(line, why))?;
        loop {
            match conversation.next(&mut self.clock) {
                Ok(None) => return Ok(()),
                Ok(Some(None)) => self.counts.skipped += 1,
                Ok(Some(Some(item))) => self.push(line, item)?,
                Err(why) => return Err(self.refused(line, why)),
            }
        }
    }

    fn push(&mut self, line: u64, item: Item) -> Result<()> {
        let user = match (self.settings.user, &item.user) {
            (Some(user), _) => user.as_encoded_bytes().to_vec(),
            (None, Some(user)) => user.clone().into_bytes(),
            (None, None) => {
                let why = "conversation has no id: name its user with --user";
                return Err(self.refused(line, why.into()));
            }
        };
        if self.clock.assumed && !self.told_zone {
            self.told_zone = true;
            let zone = self.settings.zone.unwrap_or("UTC");
            self.host.note(&format!("times without a zone are read in {zone}"));
        }
        let bytes = item.bytes() + user.len();
        if self.pending.len() >= BATCH_TURNS || self.pending_bytes + bytes > BATCH_BYTES {
            self.flush(line)?;
        }
        self.pending_bytes += bytes;
        self.pending.push(Pending { line, user, item });
        Ok(())
    }

    /// Stores what is pending, one batch for each run of one user. `open`: the line that is being read; a long
    /// conversation may have some messages in this batch and some in the next, and is not yet a stored line.
    fn flush(&mut self, open: u64) -> Result<()> {
        let mut pending = std::mem::take(&mut self.pending).into_iter().peekable();
        self.pending_bytes = 0;
        while let Some(Pending { line: first, user, item }) = pending.next() {
            let mut last = first;
            let mut turns = vec![item.into_turn()];
            while let Some(next) = pending.next_if(|next| next.user == user) {
                last = next.line;
                turns.push(next.item.into_turn());
            }
            let written = self.host.write(&user, turns).map_err(|error| {
                let stored = self.stored_line;
                Error::new(
                    error.kind(),
                    format!("lines {first} to {last} are not stored; last stored line: {stored}"),
                )
                .because(error)
            })?;
            self.counts.add(written);
            self.stored_line = last.min(open - 1);
        }
        self.host.progress(&self.counts);
        Ok(())
    }

    fn refused(&self, line: u64, why: Refusal) -> Error {
        Error::invalid(format!("line {line}: {why}; last stored line: {}", self.stored_line))
    }

    fn bad_line(&self, line: u64, error: Error) -> Error {
        let stored = self.stored_line;
        Error::new(error.kind(), format!("line {line} cannot be read; last stored line: {stored}"))
            .because(error)
    }
}

#[cfg(test)]
mod tests;
