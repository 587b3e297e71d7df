//! Creation of a database: built beside its place, and moved there whole (design 2).
//!
//! Invariants: a bundle appears under its name whole or not at all. Who builds a draft holds the draft's opening lock
//! from before there is anything else in it until it has its place or is removed, so that a draft whose lock is free
//! belongs to nobody.

use std::io::ErrorKind as IoKind;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::ids::LogId;

use super::bundle::{Bundle, LockName, format_text, is_absent};
use super::catalog::{Access, CatalogWriter, Meta};
use super::lock::{self, Lock};
use super::log::format::{HEADER_BYTES, LogHeader};
use super::state::{State, StateFile};
use super::vfs::{LockKind, OpenMode};

/// Digits of the random number in a draft's name.
const DRAFT_DIGITS: usize = 16;
/// Drafts begun before giving up: each is lost only when another creator comes between two calls.
const DRAFT_TRIES: usize = 8;

impl Bundle {
    /// Builds the database beside its place and moves it there. The loser of a race discards its copy.
    ///
    /// # Errors
    /// `NotFound` when there is no directory to hold it; `Invalid` when something else has the place; `Io`. The place is
    /// then as it was.
    pub fn create(&self, meta: &Meta, access: Access, salt: u32) -> Result<()> {
        let parent = self.parent();
        self.remove_dead_drafts();
        let (draft, lock) = self.begin(&parent)?;
        let moved =
            draft.build(meta, access, salt).and_then(|()| draft.move_to(self, &parent, lock));
        if !matches!(moved, Ok(true)) {
            // The draft is ours alone; what of it cannot be removed is not in anyone's way.
            let _ = self.vfs.remove_dir_all(draft.root());
        }
        moved.map(drop)
    }

    /// An empty draft, and its lock.
    fn begin(&self, parent: &Path) -> Result<(Bundle, Lock)> {
        let (head, tail) = self.draft_name()?;
        for _ in 0..DRAFT_TRIES {
            let mut unique = [0; DRAFT_DIGITS / 2];
            self.vfs.random(&mut unique).map_err(|error| Error::io("random name", error))?;
            let unique = u64::from_le_bytes(unique);
            let tmp = parent.join(format!("{head}{unique:0DRAFT_DIGITS$x}{tail}"));
            let draft = Bundle::new(self.vfs.clone(), &tmp, false);
            self.vfs.create_dir(&tmp).map_err(|error| match error.kind() {
                IoKind::NotFound => {
                    Error::not_found("there is no directory to hold the database").in_file(parent)
                }
                IoKind::NotADirectory => {
                    Error::invalid("a file stands where a directory is to hold the database")
                        .in_file(parent)
                }
                _ => Error::io("create database", error).in_file(self.root()),
            })?;
            match draft.take_lock() {
                Ok(Some(lock)) => return Ok((draft, lock)),
                Ok(None) => {}
                Err(error) => {
                    let _ = self.vfs.remove_dir_all(&tmp);
                    return Err(Error::io("create database", error).in_file(self.root()));
                }
            }
        }
        Err(Error::locked("other creators of this database took every draft for a dead one's"))
    }

    /// Makes the draft's opening lock and takes it. `None`: another creator took the draft for a dead one's before it
    /// had its lock, and removes it.
    fn take_lock(&self) -> std::io::Result<Option<Lock>> {
        let path = self.lock(LockName::Opening);
        self.vfs.create_dir(&self.locks_dir())?;
        let file = self.vfs.open(&path, OpenMode::CreateNew)?;
        if !file.try_lock(LockKind::Exclusive)? {
            return Ok(None);
        }
        match self.vfs.identity(&path) {
            Ok(identity) if identity == file.identity()? => Ok(Some(Lock::held(file))),
            Err(error) if !is_absent(&error) => Err(error),
            _ => Ok(None),
        }
    }

    /// Removes what creators of this database left when they were killed. What cannot be removed is in nobody's way; a
    /// draft that was stopped before it had a lock stays, since nobody can tell whether its creator lives.
    pub fn remove_dead_drafts(&self) {
        let Ok((head, tail)) = self.draft_name() else { return };
        let parent = self.parent();
        for name in self.vfs.list(&parent).unwrap_or_default() {
            let digits = name.strip_prefix(&head).and_then(|rest| rest.strip_suffix(&tail));
            let is_draft = |digits: &str| {
                let hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
                digits.len() == DRAFT_DIGITS && digits.bytes().all(hex)
            };
            if digits.is_some_and(is_draft) {
                let draft = Bundle::new(self.vfs.clone(), &parent.join(&name), false);
                draft.remove_if_dead();
            }
        }
    }

    /// A draft that was moved to its place meanwhile has left this name, so that nothing is removed then.
    fn remove_if_dead(&self) {
        let lock = lock::try_acquire(self, LockName::Opening, LockKind::Exclusive);
        if let Ok(Some(_lock)) = lock {
            let _ = self.vfs.remove_dir_all(self.root());
        }
    }

    /// What a draft's name begins and ends with.
    fn draft_name(&self) -> Result<(String, String)> {
        let name = self.root().file_name().ok_or_else(|| Error::invalid("path names no file"))?;
        Ok((format!(".{}.", name.display()), ".tmp".to_owned()))
    }

    fn locks_dir(&self) -> PathBuf {
        self.root().join("locks")
    }

    /// Renames the whole bundle, and back when the new name cannot be made durable. Whoever opens it waits for `lock`
    /// until that is decided, so that nobody relies on a name that may be lost. `false`: another one is there already.
    fn move_to(&self, place: &Bundle, parent: &Path, _opening: Lock) -> Result<bool> {
        if let Err(error) = self.vfs.rename(self.root(), place.root()) {
            let taken = match error.kind() {
                IoKind::DirectoryNotEmpty | IoKind::NotADirectory if place.leads_nowhere() => {
                    Some("the path is a symlink that leads nowhere")
                }
                IoKind::DirectoryNotEmpty | IoKind::NotADirectory => {
                    Some("the path is taken by something that is no database")
                }
                IoKind::ResourceBusy => Some(
                    "the path is a mount point, which cannot be replaced: name a path below it",
                ),
                _ => None,
            };
            let error = match taken {
                Some(message) => Error::invalid(message).because(error),
                None => Error::io("create database", error),
            };
            let error = error.in_file(place.root());
            return if place.exists()? { Ok(false) } else { Err(error) };
        }
        if let Err(error) = place.sync_name(parent) {
            // When this fails as well, the first opener tries to make the name durable.
            let _ = self.vfs.rename(place.root(), self.root());
            return Err(error);
        }
        Ok(true)
    }

    /// Fills the draft, and makes all of it durable.
    fn build(&self, meta: &Meta, access: Access, salt: u32) -> Result<()> {
        let io = |error| Error::io("create database", error).in_file(self.root());
        for directory in [self.log_dir(), self.segment_dir()] {
            self.vfs.create_dir(&directory).map_err(io)?;
        }
        for name in LockName::ALL.into_iter().filter(|name| *name != LockName::Opening) {
            self.vfs.open(&self.lock(name), OpenMode::CreateNew).map_err(io)?;
        }
        CatalogWriter::create(&self.vfs, &self.catalog(), meta, access)?;
        let header = LogHeader {
            log: LogId::new(1),
            previous: LogId::new(0),
            previous_end: 0,
            first_seq: 1,
            next_id: 1,
            database: meta.database,
            salt,
        };
        let log = self.vfs.open(&self.log(header.log), OpenMode::CreateNew).map_err(io)?;
        log.write_all_at(0, &header.encode()).map_err(io)?;
        log.sync_data().map_err(io)?;
        let state = self.vfs.open(&self.state(), OpenMode::CreateNew).map_err(io)?;
        StateFile::new(state).write(&State {
            generation: 1,
            log: header.log,
            visible_end: HEADER_BYTES as u64,
            durable_end: HEADER_BYTES as u64,
            visible_seq: 0,
            durable_seq: 0,
            rotating: false,
        })?;
        self.write_trust(self.vfs.identity(&self.catalog()).map_err(io)?)?;
        self.write_text(&self.root().join("FORMAT"), &format_text(&meta.database))?;
        for directory in [&self.log_dir(), &self.segment_dir(), &self.locks_dir(), self.root()] {
            self.vfs.sync_dir(directory).map_err(io)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::model::VectorSpace;
    use crate::options::StorageOptions;
    use crate::storage::vfs::{MemoryVfs, Vfs};
    use crate::storage::{SpaceChoice, Store};

    use super::*;

    #[test]
    fn drafts_of_dead_creators_are_removed_and_no_others() {
        let vfs: Arc<dyn Vfs> = Arc::new(MemoryVfs::new());
        let make = |name: &str| {
            let draft = Bundle::new(vfs.clone(), Path::new(name), false);
            vfs.create_dir(draft.root()).unwrap();
            draft.take_lock().unwrap().unwrap()
        };
        let dead = ["/.db.loom.0123456789abcdef.tmp", "/.db.loom.0000000000000000.tmp"];
        let others = [
            "/.db.loom.0123456789abcde.tmp",
            "/.db.loom.0123456789ABCDEF.tmp",
            "/.db.loo.0123456789abcdef.tmp",
            "/.db.loom.0123456789abcdef",
        ];
        dead.into_iter().chain(others).for_each(|name| drop(make(name)));
        let alive = make("/.db.loom.ffffffffffffffff.tmp");
        let young = "/.db.loom.1111111111111111.tmp";
        vfs.create_dir(Path::new(young)).unwrap();

        let open = || {
            let space =
                VectorSpace { name: "test".into(), dimension: 4, element: Default::default() };
            let choice = SpaceChoice::Recorded(space);
            let options = StorageOptions::default();
            Store::open(vfs.clone(), Path::new("/db.loom"), options, choice).unwrap()
        };
        let there = |name: &str| vfs.identity(Path::new(name)).is_ok();
        drop(open());
        assert!(!dead.into_iter().any(there));
        assert!(others.into_iter().all(there) && there("/.db.loom.ffffffffffffffff.tmp"));
        assert!(there(young), "nobody can tell whether its creator lives");

        // The loser of a race may be killed with its draft in its hands: whoever opens first next looks again.
        drop(alive);
        drop(open());
        assert!(!there("/.db.loom.ffffffffffffffff.tmp"));
    }
}
