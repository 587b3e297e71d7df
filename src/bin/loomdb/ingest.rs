//! The commands that write: add, import, update, delete.

use std::fs::{File, Metadata};
use std::io::{self, IsTerminal};
use std::path::Path;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use loomdb::{Added, Db, EpisodeId, Error, Outcome, Patch, Result, Turn};
use serde_json::{Value, json};

use crate::args::{self, Parts};
use crate::database;
use crate::failure::Failure;
use crate::import::{Counts, Host, Importer, Settings};
use crate::output::{self, Output};

/// `loomdb add`.
pub fn add(arguments: args::Add, output: &mut Output) -> std::result::Result<(), Failure> {
    let args::Add { whose, key, parts, text } = arguments;
    let mut turn = Turn::new(database::text(&text, io::stdin().lock())?).tags(parts.tags.clone());
    let given = Given::read(&parts)?;
    if let Some(key) = key {
        turn = turn.key(key);
    }
    if let Some(session) = parts.session {
        turn = turn.session(session);
    }
    if let Some(speaker) = parts.speaker {
        turn = turn.speaker(speaker);
    }
    if let Some(agent) = parts.agent {
        turn = turn.agent(agent);
    }
    if let Some(time) = given.time {
        turn = turn.time(time);
    }
    if let Some(metadata) = given.metadata {
        turn = turn.metadata(metadata);
    }
    if let Some(vector) = given.vector {
        turn = turn.vector(vector);
    }
    let db = database::open_or_create(&whose.database)?;
    written(database::user(&db, &whose.user).add(turn)?, output)
}

/// `loomdb update`.
pub fn update(arguments: args::Update, output: &mut Output) -> std::result::Result<(), Failure> {
    let args::Update { one, text, parts } = arguments;
    let mut patch = Patch::new();
    let given = Given::read(&parts)?;
    if let Some(text) = text {
        patch = patch.text(database::text(&text, io::stdin().lock())?);
    }
    if parts.session.is_some() {
        patch = patch.session(parts.session.as_deref());
    }
    if parts.speaker.is_some() {
        patch = patch.speaker(parts.speaker.as_deref());
    }
    if parts.agent.is_some() {
        patch = patch.agent(parts.agent.as_deref());
    }
    if let Some(time) = given.time {
        patch = patch.time(time);
    }
    if let Some(metadata) = given.metadata {
        patch = patch.metadata(metadata);
    }
    if let Some(vector) = given.vector {
        patch = patch.vector(vector);
    }
    if !parts.tags.is_empty() {
        patch = patch.tags(parts.tags);
    }
    let memory = database::memory(&one.whose)?;
    written(memory.update(EpisodeId::new(one.id), patch)?, output)
}

/// `loomdb delete`.
pub fn delete(arguments: &args::Delete, output: &mut Output) -> std::result::Result<(), Failure> {
    let memory = database::memory(&arguments.whose)?;
    let deleted = match (arguments.id, &arguments.session) {
        (Some(id), _) => {
            memory.delete(EpisodeId::new(id))?;
            1
        }
        (None, Some(session)) => memory.delete_session(session)?,
        (None, None) => return Err(Error::invalid("name an id or a session").into()),
    };
    output.answer(json!({ "deleted": deleted }), || format!("deleted {deleted}\n"))?;
    Ok(())
}

/// `loomdb import`.
pub fn import(arguments: &args::Import, output: &mut Output) -> std::result::Result<(), Failure> {
    let settings = Settings {
        user: arguments.user.as_deref(),
        zone: arguments.zone.as_deref(),
        format: arguments.format,
        captions: arguments.captions,
    };
    // Before a database is created for them.
    for file in arguments.files.iter().filter(|file| *file != Path::new("-")) {
        open_file(file)?;
    }
    let mut host = Terminal { db: database::open_or_create(&arguments.database)?, bar: bar() };
    let bar = host.bar.clone();
    let mut importer = Importer::new(settings, &mut host)?;
    let result = arguments.files.iter().try_for_each(|file| read_file(&mut importer, file, &bar));
    bar.finish_and_clear();
    let counts = importer.counts();
    // Also after a bad line: what was stored before it is stored.
    output.answer(counts_json(counts), || counts_line(counts))?;
    Ok(result?)
}

/// What an import did, as JSON.
pub fn counts_json(counts: Counts) -> Value {
    json!({
        "stored": counts.stored,
        "unchanged": counts.unchanged,
        "new_versions": counts.new_versions,
        "without_text": counts.skipped,
    })
}

/// What an import did, for people.
pub fn counts_line(counts: Counts) -> String {
    let Counts { stored, unchanged, new_versions, skipped } = counts;
    let skipped = match skipped {
        0 => String::new(),
        _ => format!(", {skipped} without text left out"),
    };
    format!("{stored} stored, {unchanged} unchanged, {new_versions} new versions{skipped}\n")
}

/// Writes one batch and counts what each turn became.
pub fn write_batch(db: &Db, user: &[u8], turns: Vec<Turn>) -> Result<Counts> {
    let mut counts = Counts::default();
    for added in db.user(user).add_many(turns)? {
        match added.outcome {
            Outcome::Stored => counts.stored += 1,
            Outcome::Unchanged => counts.unchanged += 1,
            Outcome::NewVersion => counts.new_versions += 1,
            _ => {}
        }
    }
    Ok(counts)
}

fn read_file(importer: &mut Importer<'_>, file: &Path, bar: &ProgressBar) -> Result<()> {
    if file == Path::new("-") {
        bar.unset_length();
        return importer.read("stdin", bar.wrap_read(io::stdin().lock()));
    }
    let (metadata, input) = open_file(file)?;
    bar.set_position(0);
    match metadata.len() {
        // A pipe, or a device: nobody knows how much comes.
        0 => bar.unset_length(),
        bytes => bar.set_length(bytes),
    }
    let name = file.to_string_lossy();
    importer.read(&name, bar.wrap_read(input))
}

fn open_file(file: &Path) -> Result<(Metadata, File)> {
    let failed = |cause: io::Error| {
        match cause.kind() {
            io::ErrorKind::NotFound => Error::not_found("no such file").because(cause),
            _ => Error::io("open", cause),
        }
        .in_file(file)
    };
    let input = File::open(file).map_err(failed)?;
    let metadata = input.metadata().map_err(failed)?;
    if metadata.is_dir() {
        return Err(Error::invalid("a directory where a file of turns belongs").in_file(file));
    }
    Ok((metadata, input))
}

/// A bar over the bytes of the input; nothing is drawn unless stderr is a terminal.
fn bar() -> ProgressBar {
    let style = ProgressStyle::with_template(
        "{bar:30} {decimal_bytes}/{decimal_total_bytes} {decimal_bytes_per_sec} {msg}",
    )
    .expect("the template is a constant and sound");
    let bar = if io::stderr().is_terminal() { ProgressBar::new(0) } else { ProgressBar::hidden() };
    bar.set_style(style);
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

/// The database, and the person at the terminal.
struct Terminal {
    db: Db,
    bar: ProgressBar,
}

impl Host for Terminal {
    fn write(&mut self, user: &[u8], turns: Vec<Turn>) -> Result<Counts> {
        write_batch(&self.db, user, turns)
    }

    fn note(&mut self, text: &str) {
        self.bar.suspend(|| output::say(text));
    }

    fn progress(&mut self, counts: &Counts) {
        self.bar.set_message(format!("{} turns", counts.turns()));
    }
}

/// The parts of a turn that have to be read.
struct Given {
    time: Option<loomdb::ZonedTime>,
    metadata: Option<Value>,
    vector: Option<Vec<f32>>,
}

impl Given {
    fn read(parts: &Parts) -> Result<Given> {
        let Parts { time, zone, metadata, vector, .. } = parts;
        let read_time = |text: &String| database::time("time", text, zone.as_deref());
        let read_metadata = |text: &String| database::json_object("metadata", text);
        let read_vector = |text: &String| database::vector("vector", text);
        Ok(Given {
            time: time.as_ref().map(read_time).transpose()?,
            metadata: metadata.as_ref().map(read_metadata).transpose()?.map(Value::Object),
            vector: vector.as_ref().map(read_vector).transpose()?,
        })
    }
}

fn written(added: Added, output: &mut Output) -> std::result::Result<(), Failure> {
    let outcome = match added.outcome {
        Outcome::Stored => "stored",
        Outcome::Unchanged => "unchanged",
        Outcome::NewVersion => "new_version",
        _ => "unknown",
    };
    let (id, version) = (added.id.get(), added.version);
    output.answer(json!({ "id": id, "version": version, "outcome": outcome }), || {
        format!("{id}  version {version}  {}\n", outcome.replace('_', " "))
    })?;
    Ok(())
}
