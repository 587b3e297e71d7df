//! A directory for the time of one run.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};
use std::{env, fs, process};

use loomdb::{Error, Result};

use crate::output;

/// A directory of this run alone, removed when dropped. What lies in it must be closed by then.
pub struct Temporary(PathBuf);

impl Temporary {
    /// A new directory with `what` in its name, which only this user may read.
    ///
    /// # Errors
    /// `Io` when it cannot be made.
    pub fn new(what: &str) -> Result<Temporary> {
        let nanos = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_nanos());
        let name = format!("loomdb-{what}-{}-{nanos:x}", process::id());
        let path = env::temp_dir().join(name);
        // Fails when the name is taken: nobody's directory is used or removed but our own.
        create(&path).map_err(|cause| Error::io("create directory", cause).in_file(&path))?;
        Ok(Temporary(path))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if let Err(cause) = fs::remove_dir_all(&self.0) {
            output::say(&format!("cannot remove {}: {cause}", self.0.display()));
        }
    }
}

#[cfg(unix)]
fn create(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new().mode(0o700).create(path)
}

#[cfg(not(unix))]
fn create(path: &Path) -> std::io::Result<()> {
    fs::create_dir(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_temporary_directory_goes_with_its_owner() {
        let temporary = Temporary::new("test").unwrap();
        let path = temporary.path().to_owned();
        assert!(path.is_dir());
        drop(temporary);
        assert!(!path.exists());
    }
}
