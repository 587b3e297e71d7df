//! One opaque error type: a kind to act on, a place to look at, a cause behind `source()`.
//!
//! Invariant: a message never holds memory text, a tag, a vector or a user's name; it carries ids, offsets, lengths.

use std::borrow::Cow;
use std::fmt;
use std::path::{Path, PathBuf};

/// Shorthand for results of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// What went wrong, told by whose move it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// An argument is not acceptable. The caller's move: fix it.
    Invalid,
    /// The named thing does not exist.
    NotFound,
    /// An argument is larger than a documented limit.
    Limit,
    /// Another process or handle held a lock for longer than the busy timeout.
    Locked,
    /// Bytes on disk are not what was written. The operator's move: verify, restore.
    Corrupt,
    /// The database was written by an unknown version, or with another vector space or analyser.
    Version,
    /// The machine refused: disk full, permission, an input/output error.
    Io,
    /// The handle can no longer be used: reopen the database.
    Poisoned,
}

impl ErrorKind {
    /// The lower-case name of the kind, as it stands at the head of a message.
    pub fn name(self) -> &'static str {
        match self {
            ErrorKind::Invalid => "invalid",
            ErrorKind::NotFound => "not found",
            ErrorKind::Limit => "limit",
            ErrorKind::Locked => "locked",
            ErrorKind::Corrupt => "corrupt",
            ErrorKind::Version => "version",
            ErrorKind::Io => "io",
            ErrorKind::Poisoned => "poisoned",
        }
    }
}

/// The one error of this crate.
pub struct Error(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    message: Cow<'static, str>,
    file: Option<PathBuf>,
    offset: Option<u64>,
    id: Option<u64>,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

macro_rules! constructors {
    ($($(#[$doc:meta])* $name:ident => $kind:ident;)*) => {
        $($(#[$doc])* pub fn $name(message: impl Into<Cow<'static, str>>) -> Error {
            Error::new(ErrorKind::$kind, message)
        })*
    };
}

impl Error {
    /// An error of `kind`.
    pub fn new(kind: ErrorKind, message: impl Into<Cow<'static, str>>) -> Error {
        Error(Box::new(Inner {
            kind,
            message: message.into(),
            file: None,
            offset: None,
            id: None,
            source: None,
        }))
    }

    constructors! {
        /// [`ErrorKind::Invalid`].
        invalid => Invalid;
        /// [`ErrorKind::NotFound`].
        not_found => NotFound;
        /// [`ErrorKind::Limit`].
        limit => Limit;
        /// [`ErrorKind::Locked`].
        locked => Locked;
        /// [`ErrorKind::Corrupt`].
        corrupt => Corrupt;
        /// [`ErrorKind::Version`].
        version => Version;
        /// [`ErrorKind::Poisoned`].
        poisoned => Poisoned;
    }

    /// [`ErrorKind::Io`], with the operation and the cause.
    pub fn io(operation: impl Into<Cow<'static, str>>, cause: std::io::Error) -> Error {
        Error::new(ErrorKind::Io, operation).because(cause)
    }

    /// Names the file.
    #[must_use]
    pub fn in_file(mut self, path: impl AsRef<Path>) -> Error {
        self.0.file = Some(path.as_ref().to_path_buf());
        self
    }

    /// Names the byte offset in the file.
    #[must_use]
    pub fn at_byte(mut self, offset: u64) -> Error {
        self.0.offset = Some(offset);
        self
    }

    /// Names the id that the error is about.
    #[must_use]
    pub fn of(mut self, id: u64) -> Error {
        self.0.id = Some(id);
        self
    }

    /// Attaches the cause.
    #[must_use]
    pub fn because(mut self, cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
        self.0.source = Some(cause.into());
        self
    }

    /// The same error for another caller of the same failed operation; the cause is kept as its text.
    pub(crate) fn duplicate(&self) -> Error {
        let source = self.0.source.as_ref().map(|cause| cause.to_string().into());
        Error(Box::new(Inner {
            kind: self.0.kind,
            message: self.0.message.clone(),
            file: self.0.file.clone(),
            offset: self.0.offset,
            id: self.0.id,
            source,
        }))
    }

    /// What to act on.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The file that the error is about.
    pub fn file(&self) -> Option<&Path> {
        self.0.file.as_deref()
    }

    /// The byte offset in [`Error::file`].
    pub fn offset(&self) -> Option<u64> {
        self.0.offset
    }

    /// The id that the error is about.
    pub fn id(&self) -> Option<u64> {
        self.0.id
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = &self.0;
        write!(f, "{}: {}", inner.kind.name(), inner.message)?;
        let file = inner.file.as_deref().and_then(Path::file_name);
        match (file, inner.offset) {
            (Some(name), Some(byte)) => write!(f, " ({}, byte {byte})", name.display())?,
            (Some(name), None) => write!(f, " ({})", name.display())?,
            (None, Some(byte)) => write!(f, " (byte {byte})")?,
            (None, None) => {}
        }
        if let Some(id) = inner.id {
            write!(f, " [id {id}]")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")?;
        if let Some(cause) = &self.0.source {
            write!(f, ": {cause}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_deref().map(|cause| cause as _)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn display_tells_kind_message_and_place() {
        let error = Error::corrupt("frame checksum").in_file("/a/b/0c.log").at_byte(81_920).of(7);
        assert_eq!(error.to_string(), "corrupt: frame checksum (0c.log, byte 81920) [id 7]");
        assert_eq!(error.kind(), ErrorKind::Corrupt);
    }
}
