//! The commands about the database itself: init, stats, verify, checkpoint.

use loomdb::{Db, Embedding, Error, ErrorKind, VectorElement};
use serde_json::{Value, json};

use crate::args::{self, Element, EmbedderChoice};
use crate::database;
use crate::failure::{Failure, chain};
use crate::output::Output;

/// `loomdb init`.
pub fn init(arguments: &args::Init, output: &mut Output) -> std::result::Result<(), Failure> {
    let args::Init { database, embedder, dimension, space, element } = arguments;
    // Whoever creates it between the two opens wins, and this call then opens theirs: both asked for a database here.
    match database::open(database) {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(error.into()),
        Ok(_) => return Err(Error::invalid("there is a database already").into()),
    }
    let mut options = database::options(&database.opening).vector_element(match element {
        Element::F32 => VectorElement::F32,
        Element::F16 => VectorElement::F16,
    });
    match (embedder, dimension) {
        (EmbedderChoice::None, Some(dimension)) => {
            options = options
                .embedding(Embedding::External { name: space.clone(), dimension: *dimension });
        }
        (EmbedderChoice::None, None) => return Err(Error::invalid("--dimension is missing").into()),
        (EmbedderChoice::Builtin, None) => {}
        (EmbedderChoice::Builtin, Some(_)) => {
            let message = "--dimension is the model's own, unless --embedder is none";
            return Err(Error::invalid(message).into());
        }
    }
    let db = Db::open_with(&database.path, options)?;
    let stats = db.stats()?;
    let (name, dimension) = (stats.space_name, stats.space_dimension);
    output.answer(json!({ "space": name, "dimension": dimension }), || {
        format!("created; vectors: {name}, {dimension} values\n")
    })?;
    Ok(())
}

/// `loomdb stats`.
pub fn stats(arguments: &args::Stats, output: &mut Output) -> std::result::Result<(), Failure> {
    let db = database::open_to_read(&arguments.database)?;
    let stats = db.stats()?;
    let user = match &arguments.user {
        None => None,
        Some(name) => Some(database::user(&db, name).stats()?),
    };
    let mut value = json!({
        "episodes": stats.episodes,
        "episodes_with_vector": stats.episodes_with_vector,
        "text_bytes": stats.text_bytes,
        "users": stats.users,
        "dead_rows": stats.dead_rows,
        "space": stats.space_name,
        "dimension": stats.space_dimension,
        "bytes": stats.bytes,
        "log_bytes": stats.log_bytes,
        "segment_bytes": stats.segment_bytes,
        "catalog_bytes": stats.catalog_bytes,
        "other_bytes": stats.other_bytes,
        "files": stats.files,
        "logs": stats.logs,
        "segments": stats.segments,
    });
    if let Some(user) = user {
        value["user"] = json!({
            "episodes": user.episodes,
            "episodes_with_vector": user.episodes_with_vector,
            "text_bytes": user.text_bytes,
        });
    }
    let text = table(&value);
    output.answer(value, || text)?;
    Ok(())
}

/// `loomdb verify`.
pub fn verify(arguments: &args::Database, output: &mut Output) -> std::result::Result<(), Failure> {
    // What keeps a damaged database from opening is a finding as well.
    let found = match database::open_to_read(arguments).and_then(|db| db.verify()) {
        Err(error) if error.kind() == ErrorKind::Corrupt => {
            let found = Db::inspect(&arguments.path)?;
            let (rows, bytes, mut problems) = (found.rows, found.bytes, found.problems);
            if problems.iter().all(|problem| problem.to_string() != error.to_string()) {
                problems.insert(0, error);
            }
            Findings { rows, bytes, problems }
        }
        found => {
            let found = found?;
            Findings { rows: found.rows, bytes: found.bytes, problems: found.problems }
        }
    };
    let problems: Vec<_> = found.problems.iter().map(problem).collect();
    let value = json!({
        "whole": found.problems.is_empty(),
        "rows": found.rows,
        "bytes": found.bytes,
        "problems": problems,
    });
    output.answer(value, || {
        let mut lines = format!("{} rows and {} bytes checked\n", found.rows, found.bytes);
        for error in &found.problems {
            lines.push_str(&format!("{}\n", chain(error)));
        }
        lines.push_str(match found.problems.len() {
            0 => "whole\n",
            _ => "not whole\n",
        });
        lines
    })?;
    if found.problems.is_empty() { Ok(()) } else { Err(Failure::Unsound) }
}

/// What a check found, or what kept it from being made.
struct Findings {
    rows: u64,
    bytes: u64,
    problems: Vec<Error>,
}

/// `loomdb checkpoint`.
pub fn checkpoint(
    arguments: &args::Database,
    output: &mut Output,
) -> std::result::Result<(), Failure> {
    let moved = database::open(arguments)?.checkpoint()?;
    output.answer(json!({ "moved": moved }), || {
        let said = if moved { "done" } else { "nothing to do, or another process is at it" };
        format!("{said}\n")
    })?;
    Ok(())
}

fn problem(error: &Error) -> Value {
    json!({
        "kind": error.kind().name(),
        "message": chain(error),
        "file": error.file().map(|file| file.to_string_lossy()),
        "offset": error.offset(),
        "id": error.id(),
    })
}

/// The fields of an object as lines of name and value.
fn table(value: &Value) -> String {
    let mut lines = String::new();
    let Value::Object(fields) = value else { return lines };
    for (name, value) in fields {
        match value {
            Value::Object(inner) => {
                for (part, value) in inner {
                    let name = format!("{name}.{part}");
                    lines.push_str(&format!("{name:<26}{value}\n"));
                }
            }
            Value::String(text) => lines.push_str(&format!("{name:<26}{text}\n")),
            other => lines.push_str(&format!("{name:<26}{other}\n")),
        }
    }
    lines
}
