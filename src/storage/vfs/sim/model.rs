//! What a power cut may leave of the simulated disk: for every file and directory, what is durable and what is not.
//!
//! The rules are stricter than any one file system: syncing a file makes its contents and length durable but not its
//! name; syncing a directory makes its entries durable but not what they name; everything else may be lost, kept,
//! kept without what came before it, or torn. A directory's entries are lost or kept one by one; a rename is whole.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use super::super::inode::Inode;
use super::super::pages::Pages;
use super::super::tree::{Directory, Entry, Node, ROOT, Tree};
use super::log::Operation;
use super::random::Random;

/// Bytes that a disk writes whole or not at all.
const SECTOR_BYTES: u64 = 512;

type Names = Arc<BTreeMap<Arc<str>, u64>>;

/// The disk. Cheap to clone: contents are shared until written.
#[derive(Clone)]
pub(super) struct Model {
    files: BTreeMap<u64, ModelFile>,
    directories: BTreeMap<u64, ModelDirectory>,
    pending: Vec<PendingEntry>,
    next: u64,
}

#[derive(Clone, Default)]
struct ModelFile {
    durable: Pages,
    live: Pages,
    pending: Vec<PendingChange>,
    read_only: bool,
}

#[derive(Clone, Default)]
struct ModelDirectory {
    durable: Names,
    live: Names,
}

/// A change of a file that is not durable. `clean`: a sync failed on it, so no later one makes it durable.
#[derive(Clone)]
struct PendingChange {
    change: Change,
    clean: bool,
}

#[derive(Clone)]
enum Change {
    Write { offset: u64, bytes: Arc<[u8]> },
    SetLen(u64),
}

/// A change of a directory that is not durable.
#[derive(Clone)]
struct PendingEntry {
    change: EntryChange,
    clean: bool,
}

#[derive(Clone)]
enum EntryChange {
    Link(Entry),
    Unlink(Entry),
    Move { from: Entry, to: Entry },
}

impl EntryChange {
    /// The directory whose sync makes the change durable.
    fn directory(&self) -> u64 {
        match self {
            EntryChange::Link(entry) | EntryChange::Unlink(entry) => entry.directory,
            EntryChange::Move { to, .. } => to.directory,
        }
    }

    fn touches(&self, other: &EntryChange) -> bool {
        self.entries().any(|one| {
            other.entries().any(|two| (one.directory, &one.name) == (two.directory, &two.name))
        })
    }

    fn entries(&self) -> impl Iterator<Item = &Entry> {
        let (first, second) = match self {
            EntryChange::Link(entry) | EntryChange::Unlink(entry) => (entry, None),
            EntryChange::Move { from, to } => (from, Some(to)),
        };
        std::iter::once(first).chain(second)
    }
}

impl Model {
    /// A disk with an empty root directory.
    pub(super) fn empty() -> Model {
        Model {
            files: BTreeMap::new(),
            directories: BTreeMap::from([(ROOT, ModelDirectory::default())]),
            pending: Vec::new(),
            next: ROOT + 1,
        }
    }

    /// Changes that a power cut may lose now.
    pub(super) fn pending(&self) -> usize {
        self.pending.len() + self.files.values().map(|file| file.pending.len()).sum::<usize>()
    }

    /// Takes in the next operation.
    pub(super) fn apply(&mut self, operation: &Operation) {
        match operation {
            Operation::Write { file, offset, bytes } => {
                self.change(*file, Change::Write { offset: *offset, bytes: bytes.clone() });
            }
            Operation::SetLen { file, len } => self.change(*file, Change::SetLen(*len)),
            Operation::SyncData { file, done } => self.files.entry(*file).or_default().sync(*done),
            Operation::Seal { file } => self.files.entry(*file).or_default().read_only = true,
            Operation::CreateFile(entry) => {
                self.files.insert(entry.number, ModelFile::default());
                self.next = self.next.max(entry.number + 1);
                self.rename(EntryChange::Link(entry.clone()));
            }
            Operation::CreateDirectory(entry) => {
                self.directories.insert(entry.number, ModelDirectory::default());
                self.next = self.next.max(entry.number + 1);
                self.rename(EntryChange::Link(entry.clone()));
            }
            Operation::Rename { from, to } => {
                self.rename(EntryChange::Move { from: from.clone(), to: to.clone() });
            }
            Operation::Unlink(entry) => self.rename(EntryChange::Unlink(entry.clone())),
            Operation::SyncDirectory { directory, done } => self.sync_directory(*directory, *done),
        }
    }

    fn change(&mut self, file: u64, change: Change) {
        let file = self.files.entry(file).or_default();
        change.apply(&mut file.live).expect("the running disk took the same change");
        file.pending.push(PendingChange { change, clean: false });
    }

    fn rename(&mut self, change: EntryChange) {
        let directories = &mut self.directories;
        apply_entry(&change, directories, |directory| &mut directory.live);
        self.pending.push(PendingEntry { change, clean: false });
    }

    fn sync_directory(&mut self, directory: u64, done: bool) {
        if !done {
            let own = self.pending.iter_mut().filter(|one| one.change.directory() == directory);
            own.for_each(|one| one.clean = true);
            return;
        }
        let mut kept: Vec<PendingEntry> = Vec::new();
        for one in std::mem::take(&mut self.pending) {
            if one.clean || one.change.directory() != directory {
                kept.push(one);
                continue;
            }
            // What is durable now settles these names: an older change of them can no longer come to light.
            kept.retain(|older| !older.change.touches(&one.change));
            apply_entry(&one.change, &mut self.directories, |directory| &mut directory.durable);
        }
        self.pending = kept;
    }

    /// The disk after a power cut. Seed 0: all that is not durable is lost; 1: all is kept; others: a choice.
    pub(super) fn crash(&self, seed: u64, salt: u64) -> Model {
        let mut random = Random::new(seed, salt);
        // Low, middle and high shares of survivors: alone, each misses failures that the others show.
        let keep = [32, 128, 224][random.below(3) as usize];
        let mut names: BTreeMap<u64, ModelDirectory> = BTreeMap::new();
        for (number, directory) in &self.directories {
            let survivors = if seed == 1 { &directory.live } else { &directory.durable };
            let (durable, live) = (survivors.clone(), survivors.clone());
            names.insert(*number, ModelDirectory { durable, live });
        }
        if seed > 1 {
            for one in &self.pending {
                if random.chance(keep) {
                    apply_entry(&one.change, &mut names, |directory| &mut directory.live);
                }
            }
            for directory in names.values_mut() {
                directory.durable = directory.live.clone();
            }
        }
        let mut image = Model::empty();
        image.next = self.next;
        let mut walk = vec![ROOT];
        while let Some(number) = walk.pop() {
            let Some(directory) = names.remove(&number) else { continue };
            for number in directory.live.values() {
                match self.files.get(number) {
                    None => walk.push(*number),
                    Some(file) if !image.files.contains_key(number) => {
                        image.files.insert(*number, file.crash(seed, keep, &mut random));
                    }
                    Some(_) => {}
                }
            }
            image.directories.insert(number, directory);
        }
        image
    }

    /// The running form of what programs see now.
    pub(super) fn tree(&self) -> Tree {
        let mut inodes = BTreeMap::new();
        Tree { root: self.grow(ROOT, &mut inodes), next: self.next }
    }

    fn grow(&self, number: u64, inodes: &mut BTreeMap<u64, Arc<Inode>>) -> Directory {
        let mut entries = BTreeMap::new();
        let names = self.directories.get(&number).map(|directory| directory.live.clone());
        for (name, number) in names.unwrap_or_default().iter() {
            let node = match self.files.get(number) {
                None => Node::Directory(self.grow(*number, inodes)),
                Some(file) => {
                    let make = || Inode::new(*number, file.live.clone(), file.read_only);
                    Node::File(inodes.entry(*number).or_insert_with(|| Arc::new(make())).clone())
                }
            };
            entries.insert(name.clone(), node);
        }
        Directory { number, entries }
    }

    /// The name of a file or directory, if it has one now.
    pub(super) fn name(&self, number: u64) -> Option<Arc<str>> {
        let entries = self.directories.values().flat_map(|directory| directory.live.iter());
        entries.filter(|entry| *entry.1 == number).map(|entry| entry.0.clone()).next()
    }
}

/// Applies a change to one side, durable or live, of the directories.
fn apply_entry(
    change: &EntryChange,
    directories: &mut BTreeMap<u64, ModelDirectory>,
    side: fn(&mut ModelDirectory) -> &mut Names,
) {
    let mut set = |entry: &Entry, present: bool| {
        let Some(directory) = directories.get_mut(&entry.directory) else { return };
        let names = side(directory);
        if present {
            Arc::make_mut(names).insert(entry.name.clone(), entry.number);
        } else if names.get(&entry.name) == Some(&entry.number) {
            Arc::make_mut(names).remove(&entry.name);
        }
    };
    match change {
        EntryChange::Link(entry) => set(entry, true),
        EntryChange::Unlink(entry) => set(entry, false),
        EntryChange::Move { from, to } => {
            set(from, false);
            set(to, true);
        }
    }
}

impl ModelFile {
    fn sync(&mut self, done: bool) {
        if !done {
            self.pending.iter_mut().for_each(|one| one.clean = true);
            return;
        }
        let mut kept: Vec<PendingChange> = Vec::new();
        for one in std::mem::take(&mut self.pending) {
            if one.clean {
                kept.push(one);
                continue;
            }
            // A clean change may still have reached the disk, but never over what is durable now.
            kept.retain(|older| !older.change.meets(&one.change));
            one.change.apply(&mut self.durable).expect("the running disk took the same change");
        }
        self.pending = kept;
    }

    fn crash(&self, seed: u64, keep: u64, random: &mut Random) -> ModelFile {
        let mut contents = if seed == 1 { self.live.clone() } else { self.durable.clone() };
        if seed > 1 {
            for one in &self.pending {
                if random.chance(keep) {
                    let kept = one.change.apply_torn(&mut contents, random);
                    kept.expect("the running disk took the same change");
                }
            }
        }
        let (durable, live) = (contents.clone(), contents);
        ModelFile { durable, live, pending: Vec::new(), read_only: self.read_only }
    }
}

impl Change {
    fn apply(&self, pages: &mut Pages) -> io::Result<()> {
        match self {
            Change::Write { offset, bytes } => pages.write_at(*offset, bytes),
            Change::SetLen(len) => pages.set_len(*len),
        }
    }

    /// Applies the change, one time in four without some of its sectors.
    fn apply_torn(&self, pages: &mut Pages, random: &mut Random) -> io::Result<()> {
        let Change::Write { offset, bytes } = self else { return self.apply(pages) };
        if !random.chance(64) {
            return self.apply(pages);
        }
        let prefix = random.chance(128);
        let mut alive = true;
        let mut at = 0;
        while at < bytes.len() {
            let place = offset + at as u64;
            let room = SECTOR_BYTES - place % SECTOR_BYTES;
            let end = at.saturating_add(room as usize).min(bytes.len());
            // A torn prefix ends somewhere and stays ended; otherwise each sector lives or dies alone. A write within
            // one sector is never torn.
            let lives = random.chance(160);
            alive = if prefix { alive && lives } else { lives };
            if alive || end - at == bytes.len() {
                pages.write_at(place, &bytes[at..end])?;
            }
            at = end;
        }
        Ok(())
    }

    /// Whether the changes may touch the same bytes or the length.
    fn meets(&self, other: &Change) -> bool {
        match (self, other) {
            (
                Change::Write { offset: one, bytes: left },
                Change::Write { offset: two, bytes: right },
            ) => *one < two + right.len() as u64 && *two < one + left.len() as u64,
            _ => true,
        }
    }
}
