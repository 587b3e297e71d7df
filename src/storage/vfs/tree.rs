//! The names of a file layer held in memory. Shared by the memory layer and the simulated disk.
//!
//! Invariants: paths are read from the root, whether they start with a slash or not; `..` is refused. Numbers are
//! never reused. Every change of a name is reported to the caller as the entries it touched.

use std::collections::BTreeMap;
use std::io;
use std::path::{Component, Path};
use std::sync::Arc;

use super::OpenMode;
use super::inode::Inode;
use super::pages::Pages;

/// Number of the root directory.
pub(super) const ROOT: u64 = 1;

/// A name in a directory and what it names.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) directory: u64,
    pub(super) name: Arc<str>,
    pub(super) number: u64,
}

pub(super) enum Node {
    File(Arc<Inode>),
    Directory(Directory),
}

impl Node {
    fn number(&self) -> u64 {
        match self {
            Node::File(inode) => inode.number,
            Node::Directory(directory) => directory.number,
        }
    }
}

pub(super) struct Directory {
    pub(super) number: u64,
    pub(super) entries: BTreeMap<Arc<str>, Node>,
}

/// All names.
pub(super) struct Tree {
    pub(super) root: Directory,
    pub(super) next: u64,
}

impl Default for Tree {
    fn default() -> Tree {
        Tree { root: Directory { number: ROOT, entries: BTreeMap::new() }, next: ROOT + 1 }
    }
}

impl Tree {
    /// Opens a file, or makes one; the entry is given when it was made.
    pub(super) fn open(
        &mut self,
        path: &Path,
        mode: OpenMode,
    ) -> io::Result<(Arc<Inode>, Option<Entry>)> {
        let (parents, name) = split(path)?;
        let number = self.next;
        let parent = self.directory_mut(&parents)?;
        match (parent.entries.get(name), mode) {
            (Some(_), OpenMode::CreateNew) => Err(io::ErrorKind::AlreadyExists.into()),
            (Some(Node::Directory(_)), _) => Err(io::ErrorKind::IsADirectory.into()),
            (Some(Node::File(inode)), _) => {
                if mode != OpenMode::Read && inode.state().read_only {
                    return Err(io::ErrorKind::PermissionDenied.into());
                }
                Ok((inode.clone(), None))
            }
            (None, OpenMode::Read | OpenMode::ReadWrite) => Err(io::ErrorKind::NotFound.into()),
            (None, OpenMode::Create | OpenMode::CreateNew) => {
                let inode = Arc::new(Inode::new(number, Pages::default(), false));
                let entry = Entry { directory: parent.number, name: name.into(), number };
                parent.entries.insert(entry.name.clone(), Node::File(inode.clone()));
                self.next += 1;
                Ok((inode, Some(entry)))
            }
        }
    }

    /// Makes a directory.
    pub(super) fn create_dir(&mut self, path: &Path) -> io::Result<Entry> {
        let (parents, name) = split(path)?;
        let number = self.next;
        let parent = self.directory_mut(&parents)?;
        if parent.entries.contains_key(name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let entry = Entry { directory: parent.number, name: name.into(), number };
        let made = Directory { number, entries: BTreeMap::new() };
        parent.entries.insert(entry.name.clone(), Node::Directory(made));
        self.next += 1;
        Ok(entry)
    }

    /// The names in a directory.
    pub(super) fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        Ok(self.directory(&parts(path)?)?.entries.keys().map(|name| name.to_string()).collect())
    }

    /// Renames; answers the entry before and the entry after.
    pub(super) fn rename(&mut self, from: &Path, to: &Path) -> io::Result<(Entry, Entry)> {
        let (from_parents, from_name) = split(from)?;
        let (to_parents, to_name) = split(to)?;
        let source = self.directory(&from_parents)?;
        let moved = source.entries.get(from_name).ok_or(io::ErrorKind::NotFound)?;
        let target = self.directory(&to_parents)?;
        let before =
            Entry { directory: source.number, name: from_name.into(), number: moved.number() };
        let after =
            Entry { directory: target.number, name: to_name.into(), number: moved.number() };
        if (before.directory, &before.name) == (after.directory, &after.name) {
            return Ok((before, after));
        }
        match (moved, target.entries.get(to_name)) {
            (Node::Directory(_), Some(Node::File(_))) => {
                return Err(io::ErrorKind::NotADirectory.into());
            }
            (Node::File(_), Some(Node::Directory(_))) => {
                return Err(io::ErrorKind::IsADirectory.into());
            }
            (Node::Directory(_), Some(Node::Directory(there))) if !there.entries.is_empty() => {
                return Err(io::ErrorKind::DirectoryNotEmpty.into());
            }
            _ => {}
        }
        let below = matches!(moved, Node::Directory(_)) && {
            let mut own = from_parents.clone();
            own.push(from_name);
            to_parents.starts_with(&own)
        };
        if below {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let moved = self.directory_mut(&from_parents)?.entries.remove(from_name);
        let moved = moved.expect("found above, under the same borrow of the tree");
        self.directory_mut(&to_parents)?.entries.insert(after.name.clone(), moved);
        Ok((before, after))
    }

    /// Unlinks a file.
    pub(super) fn remove_file(&mut self, path: &Path) -> io::Result<Entry> {
        let (parents, name) = split(path)?;
        let parent = self.directory_mut(&parents)?;
        match parent.entries.get(name) {
            None => Err(io::ErrorKind::NotFound.into()),
            Some(Node::Directory(_)) => Err(io::ErrorKind::IsADirectory.into()),
            Some(Node::File(inode)) => {
                let number = inode.number;
                parent.entries.remove(name);
                Ok(Entry { directory: parent.number, name: name.into(), number })
            }
        }
    }

    /// Removes a directory and all below it; answers the entries removed, children before their directory.
    pub(super) fn remove_dir_all(&mut self, path: &Path) -> io::Result<Vec<Entry>> {
        let (parents, name) = split(path)?;
        let parent = self.directory_mut(&parents)?;
        match parent.entries.get(name) {
            None => return Err(io::ErrorKind::NotFound.into()),
            Some(Node::File(_)) => return Err(io::ErrorKind::NotADirectory.into()),
            Some(Node::Directory(_)) => {}
        }
        let mut removed = Vec::new();
        if let Some(Node::Directory(directory)) = parent.entries.remove(name) {
            let number = directory.number;
            list_below(&directory, &mut removed);
            removed.push(Entry { directory: parent.number, name: name.into(), number });
        }
        Ok(removed)
    }

    /// The number of what `path` names.
    pub(super) fn number(&self, path: &Path) -> io::Result<u64> {
        let parts = parts(path)?;
        match parts.split_last() {
            None => Ok(ROOT),
            Some((name, parents)) => {
                let parent = self.directory(parents)?;
                Ok(parent.entries.get(*name).ok_or(io::ErrorKind::NotFound)?.number())
            }
        }
    }

    /// The number of the directory at `path`.
    pub(super) fn directory_number(&self, path: &Path) -> io::Result<u64> {
        Ok(self.directory(&parts(path)?)?.number)
    }

    /// A name of a file or directory, looked for everywhere.
    pub(super) fn name(&self, number: u64) -> Option<Arc<str>> {
        let mut walk = vec![&self.root];
        while let Some(directory) = walk.pop() {
            for (name, node) in &directory.entries {
                if node.number() == number {
                    return Some(name.clone());
                }
                if let Node::Directory(below) = node {
                    walk.push(below);
                }
            }
        }
        None
    }

    fn directory(&self, parts: &[&str]) -> io::Result<&Directory> {
        let mut at = &self.root;
        for part in parts {
            at = match at.entries.get(*part) {
                None => return Err(io::ErrorKind::NotFound.into()),
                Some(Node::File(_)) => return Err(io::ErrorKind::NotADirectory.into()),
                Some(Node::Directory(directory)) => directory,
            };
        }
        Ok(at)
    }

    fn directory_mut(&mut self, parts: &[&str]) -> io::Result<&mut Directory> {
        let mut at = &mut self.root;
        for part in parts {
            at = match at.entries.get_mut(*part) {
                None => return Err(io::ErrorKind::NotFound.into()),
                Some(Node::File(_)) => return Err(io::ErrorKind::NotADirectory.into()),
                Some(Node::Directory(directory)) => directory,
            };
        }
        Ok(at)
    }
}

fn list_below(directory: &Directory, removed: &mut Vec<Entry>) {
    for (name, node) in &directory.entries {
        if let Node::Directory(below) = node {
            list_below(below, removed);
        }
        let number = node.number();
        removed.push(Entry { directory: directory.number, name: name.clone(), number });
    }
}

/// The parts of a path, from the root.
fn parts(path: &Path) -> io::Result<Vec<&str>> {
    let mut parts = Vec::new();
    for component in path.components() {
        match component {
            Component::RootDir | Component::CurDir => {}
            Component::Normal(part) => {
                parts.push(part.to_str().ok_or(io::ErrorKind::InvalidInput)?)
            }
            Component::ParentDir | Component::Prefix(_) => {
                return Err(io::ErrorKind::InvalidInput.into());
            }
        }
    }
    Ok(parts)
}

/// The parts before the last, and the last.
fn split(path: &Path) -> io::Result<(Vec<&str>, &str)> {
    let mut parts = parts(path)?;
    let name = parts.pop().ok_or(io::ErrorKind::InvalidInput)?;
    Ok((parts, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_does_not_move_below_itself() {
        let mut tree = Tree::default();
        tree.create_dir(Path::new("/a")).unwrap();
        tree.create_dir(Path::new("/a/b")).unwrap();
        assert!(tree.rename(Path::new("/a"), Path::new("/a/b/c")).is_err());
        assert!(tree.number(Path::new("/a/b")).is_ok());
    }

    #[test]
    fn removing_a_tree_reports_children_before_their_directory() {
        let mut tree = Tree::default();
        tree.create_dir(Path::new("/a")).unwrap();
        tree.create_dir(Path::new("/a/b")).unwrap();
        tree.open(Path::new("/a/b/f"), OpenMode::CreateNew).unwrap();
        let removed = tree.remove_dir_all(Path::new("/a")).unwrap();
        let names: Vec<_> = removed.iter().map(|entry| &*entry.name).collect();
        assert_eq!(names, ["f", "b", "a"]);
    }

    #[test]
    fn a_path_that_climbs_is_refused() {
        let mut tree = Tree::default();
        assert!(tree.open(Path::new("/a/../b"), OpenMode::Create).is_err());
    }
}
