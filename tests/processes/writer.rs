//! A child process that writes rows of its own user, and keeps the journal of it.

use std::path::Path;
use std::time::Instant;

use loomdb::{Db, EpisodeId, ErrorKind, Maintenance, Patch};

use super::oracle::{Journal, JournalWriter, Model, Op, journal_path};
use super::random::Random;
use super::roles::{DIMENSION, Outcome, database, list, options, text_of, told, turn, user};

/// Live rows at which a writer turns to deleting, so that listings stay short however long the test runs.
const LIVE_ROWS_MAX: usize = 150;

struct Writer {
    number: usize,
    db: Db,
    journal: Journal,
    out: JournalWriter,
    model: Model,
}

/// Adds, updates and deletes rows of its own user until `deadline`.
pub fn write(directory: &Path, number: usize, seed: u64, deadline: Instant) -> Outcome {
    let maintenance =
        if number.is_multiple_of(2) { Maintenance::Background } else { Maintenance::Manual };
    let db = told("open", Db::open_with(database(directory), options(maintenance)))?;
    let mut writer = Writer::start(db, directory, number)?;
    let mut random = Random::new(seed);
    while Instant::now() < deadline {
        match writer.step(&mut random)? {
            None => {}
            Some(error) if error.kind() == ErrorKind::Locked => writer.settle()?,
            Some(error) => return Err(format!("commit: {error:?}")),
        }
        if random.below(20) == 0 {
            writer.check()?;
        }
    }
    Ok(())
}

/// Writes, checkpoints and merges while the system refuses to let any file grow beyond a limit, and leaves word of how
/// often it refused. Whatever is refused, what was acknowledged stays readable, and the handle usable.
pub fn fill(directory: &Path, number: usize, seed: u64) -> Outcome {
    let db = told("open", Db::open_with(database(directory), options(Maintenance::Manual)))?;
    let mut writer = Writer::start(db, directory, number)?;
    let mut random = Random::new(seed);
    let (mut commits, mut maintenance) = (0, 0);
    for round in 0..120 {
        if let Some(error) = writer.step(&mut random)? {
            check_refused(&error)?;
            commits += 1;
            writer.settle()?;
        }
        if round % 12 == 11 {
            for result in [writer.db.checkpoint().map(drop), writer.db.merge().map(drop)] {
                if let Err(error) = result {
                    check_refused(&error)?;
                    maintenance += 1;
                }
            }
            writer.check()?;
        }
    }
    // A refused step may leave a log behind. What is tried again before every commit may not.
    let logs = told("stats", writer.db.stats())?.logs;
    if logs > commits + maintenance + 8 {
        return Err(format!("{logs} logs after {commits} refused commits"));
    }
    let words = format!("{commits} commits and {maintenance} steps of maintenance were refused");
    std::fs::write(directory.join(format!("refused-{number}")), words).unwrap();
    Ok(())
}

fn check_refused(error: &loomdb::Error) -> Outcome {
    if error.kind() == ErrorKind::Io { Ok(()) } else { Err(format!("refused as {error:?}")) }
}
impl Writer {
    fn start(db: Db, directory: &Path, number: usize) -> Result<Writer, String> {
        let path = journal_path(directory, number);
        let out = JournalWriter::new(&path);
        let mut journal = Journal::new(path);
        journal.refresh();
        let mut model = Model::default();
        for (number, step) in journal.steps.iter().enumerate() {
            if step.done == Some(true) {
                model.apply(number as u64, step);
            }
        }
        let mut writer = Writer { number, db, journal, out, model };
        writer.settle()?;
        Ok(writer)
    }

    /// One commit, with its lines in the journal. Of one that failed nobody knows yet whether it happened.
    fn step(&mut self, random: &mut Random) -> Result<Option<loomdb::Error>, String> {
        let step = self.journal.steps.len() as u64;
        let op = self.choose(random);
        self.out.begin(step, &op);
        match self.commit(step, &op) {
            Ok(ids) => {
                self.out.end("acknowledged", step, &ids);
                self.journal.refresh();
                self.model.apply(step, &self.journal.steps[step as usize]);
                Ok(None)
            }
            Err(error) => Ok(Some(error)),
        }
    }

    fn choose(&self, random: &mut Random) -> Op {
        let rows = &self.model.rows;
        if rows.is_empty() {
            return Op::Add(1 + random.below(5) as u32);
        }
        let (name, row) =
            rows.iter().nth(random.below(rows.len() as u64) as usize).expect("below the length");
        let full = rows.len() > LIVE_ROWS_MAX;
        match random.below(10) {
            0..5 if !full => Op::Add(1 + random.below(5) as u32),
            5..7 => Op::Update(name.clone()),
            7 | 8 if !full => Op::Delete(name.clone()),
            _ => Op::DeleteSession(row.session),
        }
    }

    fn id(&self, name: &str) -> EpisodeId {
        EpisodeId::new(self.model.rows[name].id.expect("acknowledged or seen"))
    }

    fn commit(&self, step: u64, op: &Op) -> loomdb::Result<Vec<u64>> {
        let memory = self.db.user(user(self.number));
        match op {
            Op::Add(count) => {
                let names = (0..*count).map(|place| format!("{step}.{place}"));
                let turns = names.map(|name| turn(self.number, step, &name)).collect();
                let added = memory.add_many(turns)?;
                return Ok(added.iter().map(|added| added.id.get()).collect());
            }
            Op::Update(name) => {
                let text = text_of(self.number, &format!("{step}.u"));
                let vector = vec![1.0; DIMENSION as usize];
                memory.update(self.id(name), Patch::new().text(text).vector(vector))?;
            }
            Op::Delete(name) => memory.delete(self.id(name))?,
            Op::DeleteSession(session) => {
                memory.delete_session(&format!("s{session}"))?;
            }
        }
        Ok(Vec::new())
    }

    /// Finds out what became of a last step without an answer: all of it is there, or nothing.
    fn settle(&mut self) -> Outcome {
        self.journal.refresh();
        if self.journal.settled() == self.journal.steps.len() {
            return self.check();
        }
        let listing = list(&self.db, self.number)?;
        let step = self.journal.steps.len() as u64 - 1;
        let begun = &self.journal.steps[step as usize];
        let mut after = self.model.clone();
        after.apply(step, begun);
        if self.model.matches(&listing) {
            self.out.end("undone", step, &[]);
        } else if after.matches(&listing) {
            let count = if let Op::Add(count) = begun.op { count } else { 0 };
            let ids: Vec<u64> =
                (0..count).map(|place| listing[&format!("{step}.{place}")].0).collect();
            self.out.end("done", step, &ids);
            after = self.model.clone();
            self.journal.refresh();
            after.apply(step, &self.journal.steps[step as usize]);
            self.model = after;
        } else {
            let difference = self.model.difference(&listing);
            return Err(format!("step {step} {:?} is there by half: {difference}", begun.op));
        }
        self.check()
    }

    /// Nobody else writes this user's rows: every call must agree with the journal.
    fn check(&self) -> Outcome {
        let listing = list(&self.db, self.number)?;
        if !self.model.matches(&listing) {
            return Err(format!("own rows: {}", self.model.difference(&listing)));
        }
        let memory = self.db.user(user(self.number));
        let count = told("count", memory.count())?;
        if count != listing.len() as u64 {
            return Err(format!("count {count} of {} rows", listing.len()));
        }
        for (name, (id, version)) in listing.iter().take(5) {
            let history = told("history", memory.history(EpisodeId::new(*id)))?;
            let versions: Vec<u32> = history.iter().map(|episode| episode.version).collect();
            if versions != (1..=*version).collect::<Vec<_>>() {
                return Err(format!("versions {versions:?} of row {name}"));
            }
        }
        Ok(())
    }
}
