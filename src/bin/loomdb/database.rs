//! Opens databases, and reads the arguments that name times, vectors and texts.

use std::ffi::OsStr;
use std::io::Read;

use loomdb::{Db, Error, ErrorKind, Maintenance, Memory, OpenOptions, Result, Zone, ZonedTime};
use serde_json::{Map, Value};

use crate::args::{Database, Opening, Whose};
use crate::{json, output};

/// Bytes of a text from stdin, at most: what an episode may have.
const TEXT_BYTES_MAX: usize = 16 << 20;

/// Opens a database that must be there.
pub fn open(database: &Database) -> Result<Db> {
    Db::open_with(&database.path, options(&database.opening).create(false))
}

/// Opens a database that must be there, for a command that only reads. Opening for writing repairs what a killed
/// writer left, so that comes first; where the system lets nobody write, it is opened read-only.
pub fn open_to_read(database: &Database) -> Result<Db> {
    match open(database) {
        Err(error) if !database.opening.read_only && writes_refused(&error) => {
            let options = options(&database.opening).create(false).read_only(true);
            let Ok(db) = Db::open_with(&database.path, options) else { return Err(error) };
            output::say("the database cannot be written, and is opened read-only");
            Ok(db)
        }
        opened => opened,
    }
}

/// Whether the system refused to write: no space, no permission, a read-only file system.
fn writes_refused(error: &Error) -> bool {
    use std::io::ErrorKind::{
        FileTooLarge, PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull,
    };
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        if let Some(inner) = inner.downcast_ref::<std::io::Error>() {
            return matches!(
                inner.kind(),
                FileTooLarge | PermissionDenied | QuotaExceeded | ReadOnlyFilesystem | StorageFull
            );
        }
        cause = inner.source();
    }
    false
}

/// Opens a database, and creates it when there is none.
pub fn open_or_create(database: &Database) -> Result<Db> {
    Db::open_with(&database.path, options(&database.opening))
}

/// The settings of a handle, as the arguments name them.
pub fn options(opening: &Opening) -> OpenOptions {
    OpenOptions::new()
        // A command is over before a thread beside it could end a checkpoint.
        .maintenance(Maintenance::Inline)
        .busy_timeout(opening.busy_timeout)
        .read_only(opening.read_only)
        .allow_remote_fs(opening.allow_remote_fs)
}

/// The memory of a user in a database that must be there.
pub fn memory(whose: &Whose) -> Result<Memory> {
    Ok(user(&open(&whose.database)?, &whose.user))
}

/// The memory of a user in a database that must be there, for a command that only reads.
pub fn memory_to_read(whose: &Whose) -> Result<Memory> {
    Ok(user(&open_to_read(&whose.database)?, &whose.user))
}

/// The memory of the user named on the command line, byte by byte.
pub fn user(db: &Db, name: &OsStr) -> Memory {
    db.user(name.as_encoded_bytes())
}

/// A time from the command line; one without a zone only when `zone` says how to read it.
pub fn time(argument: &str, text: &str, zone: Option<&str>) -> Result<ZonedTime> {
    let read = match zone {
        None => ZonedTime::parse(text),
        Some(zone) => ZonedTime::parse_in_zone(text, &Zone::parse(zone)?).map(|(time, _)| time),
    };
    read.map_err(|cause| Error::new(cause.kind(), format!("--{argument}")).because(cause))
}

/// A JSON object from the command line.
pub fn json_object(argument: &str, text: &str) -> Result<Map<String, Value>> {
    match json::read(text) {
        Ok(Value::Object(map)) => Ok(map),
        Err(cause) if cause.is_data() => {
            Err(Error::invalid(format!("--{argument} has a field twice in one object")))
        }
        _ => Err(Error::invalid(format!("--{argument} is not a JSON object"))),
    }
}

/// A vector from the command line.
pub fn vector(argument: &str, text: &str) -> Result<Vec<f32>> {
    serde_json::from_str(text)
        .map_err(|_| Error::invalid(format!("--{argument} is not a JSON list of numbers")))
}

/// The text of an argument; `-` stands for `stdin`, whose last line break is taken off.
pub fn text(argument: &str, stdin: impl Read) -> Result<String> {
    if argument != "-" {
        return Ok(argument.to_owned());
    }
    let mut text = String::new();
    // Two bytes for a line break, one to tell that there is more.
    let read = stdin.take(TEXT_BYTES_MAX as u64 + 3).read_to_string(&mut text);
    read.map_err(|cause| match cause.kind() {
        std::io::ErrorKind::InvalidData => Error::invalid("text from stdin is not UTF-8"),
        _ => Error::io("read stdin", cause),
    })?;
    if text.ends_with('\n') {
        text.pop();
        if text.ends_with('\r') {
            text.pop();
        }
    }
    if text.len() > TEXT_BYTES_MAX {
        return Err(Error::new(
            ErrorKind::Limit,
            format!("text from stdin is longer than {TEXT_BYTES_MAX} bytes"),
        ));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_without_a_zone_needs_one_named() {
        let error = time("since", "2025-03-01T10:00:00", None).unwrap_err();
        assert_eq!(
            (error.kind(), error.to_string().contains("--since")),
            (ErrorKind::Invalid, true)
        );
        let read = |text| time("since", text, Some("+01:00")).unwrap().to_string();
        assert_eq!(read("2025-03-01T10:00:00"), "2025-03-01T10:00:00+01:00");
        assert_eq!(read("2025-03-01"), "2025-03-01T00:00:00+01:00");
        assert_eq!(read("2025-03-01T10:00:00Z"), "2025-03-01T10:00:00Z");
        assert!(time("since", "2025-03-01", Some("Nowhere/Land")).is_err());
    }

    #[test]
    fn text_from_stdin_loses_one_line_break() {
        assert_eq!(text("-", &b"a\n\r\n"[..]).unwrap(), "a\n");
        assert_eq!(text("as it is\n", &b""[..]).unwrap(), "as it is\n");
        assert!(text("-", &b"\xff"[..]).is_err());
    }

    #[test]
    fn text_from_stdin_is_bounded() {
        let whole = "x".repeat(TEXT_BYTES_MAX) + "\r\n";
        assert_eq!(text("-", whole.as_bytes()).unwrap().len(), TEXT_BYTES_MAX);
        let error = text("-", std::io::repeat(b'x')).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Limit);
    }

    #[test]
    fn json_arguments_are_told_by_name_and_never_shown() {
        assert!(json_object("metadata", r#"{"a":[1]}"#).is_ok());
        let twice = json_object("metadata", r#"{"a":1,"a":2}"#).unwrap_err();
        assert!(twice.to_string().contains("twice"), "{twice}");
        for error in [
            json_object("metadata", "[\"secret-marker\"]").unwrap_err(),
            vector("vector", "secret-marker").unwrap_err(),
        ] {
            assert!(!format!("{error:?}").contains("secret-marker"));
        }
        assert_eq!(vector("vector", "[1, 0.5]").unwrap(), [1.0, 0.5]);
    }
}
