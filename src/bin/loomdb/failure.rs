//! Why a command failed, what is said of it and the exit code that tells it.

use std::fmt::Write;
use std::io;
use std::process::ExitCode;

use loomdb::{Error, ErrorKind};

/// Why a command failed.
#[derive(Debug)]
pub enum Failure {
    /// The database, an argument or an input.
    Database(Error),
    /// Standard output takes no more.
    Output(io::Error),
    /// `verify` found problems, and has told them.
    Unsound,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Database(error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure::Output(error)
    }
}

impl Failure {
    /// The exit code, as `--help` lists them.
    pub fn code(&self) -> ExitCode {
        ExitCode::from(self.number())
    }

    fn number(&self) -> u8 {
        match self {
            Failure::Database(error) => match error.kind() {
                ErrorKind::Invalid => 2,
                ErrorKind::NotFound => 3,
                ErrorKind::Limit => 4,
                ErrorKind::Locked => 5,
                ErrorKind::Corrupt => 6,
                ErrorKind::Version => 7,
                ErrorKind::Io => 8,
                ErrorKind::Poisoned => 9,
                _ => 1,
            },
            // Who reads our answer has seen enough, as in `loomdb timeline .. | head`.
            Failure::Output(cause) if cause.kind() == io::ErrorKind::BrokenPipe => 0,
            Failure::Output(_) => 8,
            Failure::Unsound => 6,
        }
    }

    /// What to say on stderr, if anything.
    pub fn message(&self) -> Option<String> {
        match self {
            Failure::Database(error) => Some(chain(error)),
            Failure::Output(cause) if cause.kind() == io::ErrorKind::BrokenPipe => None,
            Failure::Output(cause) => Some(format!("io: write the answer: {cause}")),
            Failure::Unsound => None,
        }
    }
}

/// An error and its causes, outermost first. A kind that repeats is told once.
pub fn chain(error: &Error) -> String {
    let kind = format!("{}: ", error.kind().name());
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        // Writing to a string does not fail.
        let inner_text = inner.to_string();
        let _ = write!(text, ": {}", inner_text.strip_prefix(&kind).unwrap_or(&inner_text));
        cause = inner.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_its_exit_code() {
        let number = |kind| Failure::from(Error::new(kind, "x")).number();
        let codes = [
            (ErrorKind::Invalid, 2),
            (ErrorKind::NotFound, 3),
            (ErrorKind::Limit, 4),
            (ErrorKind::Locked, 5),
            (ErrorKind::Corrupt, 6),
            (ErrorKind::Version, 7),
            (ErrorKind::Io, 8),
            (ErrorKind::Poisoned, 9),
        ];
        for (kind, code) in codes {
            assert_eq!(number(kind), code);
        }
    }

    #[test]
    fn a_reader_that_left_is_no_failure() {
        let left = Failure::from(io::Error::from(io::ErrorKind::BrokenPipe));
        assert_eq!((left.number(), left.message()), (0, None));
        let full = Failure::from(io::Error::from(io::ErrorKind::StorageFull));
        assert_eq!(full.number(), 8);
        assert!(full.message().is_some());
    }

    #[test]
    fn causes_are_told_behind_the_error() {
        let error = Error::invalid("line 3").because(Error::limit("text"));
        assert_eq!(chain(&error), "invalid: line 3: limit: text");
        let same = Error::invalid("line 3").because(Error::invalid("text"));
        assert_eq!(chain(&same), "invalid: line 3: text");
    }
}
