//! What a writer says it does and did, kept in a plain file beside the database, and what a listing may hold by it.
//!
//! A writer appends a line before each commit (what it is about to do) and one after it was acknowledged. Only
//! processes die in these tests, never the machine, so what one `write` call has appended is there for good. Lines end
//! in ` .`, so that one cut by a kill is told from a whole one.

use std::collections::{BTreeMap, HashSet};
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// What one commit does to the rows of its writer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// Adds this many rows as one batch, in a session of their own.
    Add(u32),
    /// Gives the row a new text, named by the step.
    Update(String),
    /// Deletes the row.
    Delete(String),
    /// Deletes what is left of the session that this step made, as one batch.
    DeleteSession(u64),
}

/// One commit of a writer.
#[derive(Clone, Debug)]
pub struct Step {
    pub op: Op,
    /// Whether it happened; `None` while nobody knows.
    pub done: Option<bool>,
    /// It was acknowledged to the writer, not found out after a restart.
    pub acknowledged: bool,
    /// The ids that an addition gave out.
    pub ids: Vec<u64>,
}

/// A row as a listing shows it: its name, id and version.
pub type Listing = BTreeMap<String, (u64, u32)>;

/// A live row by the journal. The id is known once the addition is acknowledged or seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    pub id: Option<u64>,
    pub version: u32,
    pub session: u64,
}

/// The live rows of one writer.
#[derive(Clone, Debug, Default)]
pub struct Model {
    pub rows: BTreeMap<String, Row>,
}

impl Model {
    /// Does step `number` of the journal.
    pub fn apply(&mut self, number: u64, step: &Step) {
        match &step.op {
            Op::Add(count) => {
                for place in 0..*count {
                    let id = step.ids.get(place as usize).copied();
                    let row = Row { id, version: 1, session: number };
                    self.rows.insert(format!("{number}.{place}"), row);
                }
            }
            Op::Update(name) => {
                let row = self.rows.remove(name).expect("a writer updates what is live");
                let row = Row { version: row.version + 1, ..row };
                self.rows.insert(format!("{number}.u"), row);
            }
            Op::Delete(name) => {
                self.rows.remove(name).expect("a writer deletes what is live");
            }
            Op::DeleteSession(session) => self.rows.retain(|_, row| row.session != *session),
        }
    }

    /// Whether a listing holds exactly these rows.
    pub fn matches(&self, listing: &Listing) -> bool {
        self.rows.len() == listing.len()
            && self.rows.iter().zip(listing).all(|((name, row), (listed, (id, version)))| {
                name == listed && row.version == *version && row.id.is_none_or(|row| row == *id)
            })
    }

    /// Learns the ids of rows that nobody has acknowledged yet.
    fn adopt(&mut self, listing: &Listing) {
        for (name, row) in &mut self.rows {
            row.id = row.id.or_else(|| listing.get(name).map(|(id, _)| *id));
        }
    }

    /// What is wrong with a listing, in a few words.
    pub fn difference(&self, listing: &Listing) -> String {
        let missing: Vec<_> =
            self.rows.keys().filter(|name| !listing.contains_key(*name)).collect();
        let extra: Vec<_> = listing.keys().filter(|name| !self.rows.contains_key(*name)).collect();
        let show =
            |names: &[&String]| format!("{} {:?}", names.len(), &names[..names.len().min(6)]);
        format!("missing {}, too many {}", show(&missing), show(&extra))
    }
}

/// Where the journal of a writer lies.
pub fn journal_path(directory: &Path, writer: usize) -> PathBuf {
    directory.join(format!("journal-{writer}"))
}

/// A journal being read while its writer goes on.
pub struct Journal {
    path: PathBuf,
    read: u64,
    pub steps: Vec<Step>,
}

impl Journal {
    pub fn new(path: PathBuf) -> Journal {
        Journal { path, read: 0, steps: Vec::new() }
    }

    /// Reads on to the last whole line.
    pub fn refresh(&mut self) {
        let Ok(mut file) = File::open(&self.path) else { return };
        let mut text = String::new();
        file.seek(SeekFrom::Start(self.read)).unwrap();
        file.read_to_string(&mut text).unwrap();
        let whole = text.rfind('\n').map_or(0, |at| at + 1);
        self.read += whole as u64;
        for line in text[..whole].lines() {
            if let Some(line) = line.strip_suffix(" .") {
                self.take(line);
            }
        }
    }

    fn take(&mut self, line: &str) {
        let mut words = line.split(' ');
        let mut word = || words.next().expect("a whole line");
        let (what, number) = (word(), word().parse::<usize>().unwrap());
        if what == "begin" {
            let op = match word() {
                "add" => Op::Add(word().parse().unwrap()),
                "update" => Op::Update(word().to_owned()),
                "delete" => Op::Delete(word().to_owned()),
                "delete-session" => Op::DeleteSession(word().parse().unwrap()),
                other => panic!("journal says {other}"),
            };
            assert_eq!(number, self.steps.len(), "steps are numbered without a gap");
            self.steps.push(Step { op, done: None, acknowledged: false, ids: Vec::new() });
            return;
        }
        let step = &mut self.steps[number];
        step.done = Some(what != "undone");
        step.acknowledged = what == "acknowledged";
        step.ids = words.map(|id| id.parse().unwrap()).collect();
    }

    /// Steps whose outcome is known: all but perhaps the last.
    pub fn settled(&self) -> usize {
        self.steps.len() - usize::from(self.steps.last().is_some_and(|step| step.done.is_none()))
    }
}

/// A journal being written.
pub struct JournalWriter(File);

impl JournalWriter {
    pub fn new(path: &Path) -> JournalWriter {
        let mut file = OpenOptions::new().create(true).append(true).open(path).unwrap();
        // Ends a line that a kill may have cut.
        file.write_all(b"\n").unwrap();
        JournalWriter(file)
    }

    pub fn begin(&mut self, number: u64, op: &Op) {
        let words = match op {
            Op::Add(count) => format!("add {count}"),
            Op::Update(name) => format!("update {name}"),
            Op::Delete(name) => format!("delete {name}"),
            Op::DeleteSession(session) => format!("delete-session {session}"),
        };
        self.line(format!("begin {number} {words}"));
    }

    /// `what`: `acknowledged`, or after a restart `done` or `undone`.
    pub fn end(&mut self, what: &str, number: u64, ids: &[u64]) {
        let ids: String = ids.iter().map(|id| format!(" {id}")).collect();
        self.line(format!("{what} {number}{ids}"));
    }

    fn line(&mut self, mut line: String) {
        line.push_str(" .\n");
        self.0.write_all(line.as_bytes()).unwrap();
    }
}

/// Follows one writer: every listing must be one state of its journal, none older than the one seen before.
pub struct Follower {
    pub journal: Journal,
    at: usize,
    model: Model,
    /// A step seen done before its writer said so, with the model's ids of its rows.
    ahead: Option<usize>,
}

impl Follower {
    pub fn new(directory: &Path, writer: usize) -> Follower {
        let journal = Journal::new(journal_path(directory, writer));
        Follower { journal, at: 0, model: Model::default(), ahead: None }
    }

    /// Before a listing: what is settled by now must be in it.
    pub fn before(&mut self) -> Result<(), String> {
        self.journal.refresh();
        if let Some(ahead) = self.ahead {
            let step = &self.journal.steps[ahead];
            if step.done == Some(false) {
                return Err(format!("step {ahead} was seen done and then was not"));
            }
            for (place, id) in step.ids.iter().enumerate() {
                let row = self.model.rows.get(&format!("{ahead}.{place}"));
                if row.is_some_and(|row| row.id != Some(*id)) {
                    return Err(format!("step {ahead} was seen with another id than {id}"));
                }
            }
            self.ahead = self.ahead.filter(|_| step.done.is_none());
        }
        while self.at < self.journal.settled() {
            self.step();
        }
        Ok(())
    }

    fn step(&mut self) {
        let step = &self.journal.steps[self.at];
        if step.done != Some(false) {
            self.model.apply(self.at as u64, step);
        }
        self.at += 1;
    }

    /// After a listing: it must be the state of [`Follower::before`] or one that the writer has begun since.
    pub fn after(&mut self, listing: &Listing) -> Result<(), String> {
        let known = self.model.clone();
        self.journal.refresh();
        loop {
            if self.model.matches(listing) {
                self.model.adopt(listing);
                let last = self.at.checked_sub(1);
                self.ahead = last.filter(|last| self.journal.steps[*last].done.is_none());
                return Ok(());
            }
            if self.at == self.journal.steps.len() {
                return Err(format!(
                    "no state up to step {} matches: {}",
                    self.at,
                    known.difference(listing)
                ));
            }
            self.step();
        }
    }

    /// Commits acknowledged so far, and the rows they added.
    pub fn acknowledged(&self) -> (u64, u64) {
        let steps = self.journal.steps.iter().filter(|step| step.acknowledged);
        steps.fold((0, 0), |(steps, rows), step| (steps + 1, rows + step.ids.len() as u64))
    }
}

/// An id that two rows carry.
pub fn first_repeated(listings: &[Listing]) -> Option<u64> {
    let mut seen = HashSet::new();
    listings.iter().flat_map(Listing::values).map(|(id, _)| *id).find(|id| !seen.insert(*id))
}
