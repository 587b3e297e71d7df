//! What the child processes that read and checkpoint do until they are killed, and the rows that all agree on.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use loomdb::internals::options::StorageOptions;
use loomdb::internals::storage::vfs::RealVfs;
use loomdb::internals::storage::{SpaceChoice, Store};
use loomdb::{
    Db, Direction, Embedding, ErrorKind, Maintenance, OpenOptions, TimelineOptions, Turn,
};

use super::oracle::{Follower, Listing, first_repeated};
use super::random::Random;

pub const WRITERS: usize = 8;
pub const READERS: usize = 4;
pub const CHECKPOINTERS: usize = 2;
/// Values of a vector.
pub const DIMENSION: u32 = 16;

/// A failure of the promise under test, in words.
pub type Outcome = Result<(), String>;

pub fn database(directory: &Path) -> PathBuf {
    directory.join("t.loom")
}

/// Small thresholds, so that logs roll over and segments are merged all the time.
pub fn options(maintenance: Maintenance) -> OpenOptions {
    OpenOptions::new()
        .maintenance(maintenance)
        .checkpoint_rows(300)
        .busy_timeout(Duration::from_secs(20))
        .embedding(Embedding::External { name: "test".into(), dimension: DIMENSION })
}

pub fn user(writer: usize) -> String {
    format!("writer {writer}")
}

/// The text of a row: its name and a filler that the name decides, so that a row put together of two is noticed.
pub fn text_of(writer: usize, name: &str) -> String {
    let seed = name.bytes().fold(writer as u64, |sum, byte| sum * 31 + u64::from(byte));
    let mut random = Random::new(seed);
    let words = random.below(60) * random.below(6);
    let filler: String = (0..words).map(|_| format!(" {:x}", random.below(1 << 20))).collect();
    format!("{name}{filler}")
}

pub fn turn(writer: usize, number: u64, name: &str) -> Turn {
    let mut vector = vec![0.0; DIMENSION as usize];
    vector[number as usize % DIMENSION as usize] = 1.0;
    Turn::new(text_of(writer, name))
        .session(format!("s{number}"))
        .key(format!("k{name}"))
        .vector(vector)
}

fn add_to(listing: &mut Listing, writer: usize, text: &str, id: u64, version: u32) -> Outcome {
    let name = text.split(' ').next().unwrap_or_default().to_owned();
    if text != text_of(writer, &name) {
        return Err(format!("text of row {id} of writer {writer} is not what was written"));
    }
    match listing.insert(name.clone(), (id, version)) {
        None => Ok(()),
        Some((other, _)) => Err(format!("row {name} is there twice, as {other} and {id}")),
    }
}

pub fn told<T>(what: &str, result: loomdb::Result<T>) -> Result<T, String> {
    result.map_err(|error| format!("{what}: {error:?}"))
}

/// All rows of a writer, in one view, by the public calls.
pub fn list(db: &Db, writer: usize) -> Result<Listing, String> {
    let page = db.user(user(writer)).timeline(TimelineOptions::new().limit(65_536));
    let mut listing = Listing::new();
    for episode in told("timeline", page)?.episodes {
        add_to(&mut listing, writer, &episode.text, episode.id.get(), episode.version)?;
    }
    Ok(listing)
}

/// Holds what it reads against the writers' journals until `deadline`, by the public calls and by one view of
/// everything in turn.
pub fn read(directory: &Path, number: usize, deadline: Instant) -> Outcome {
    let path = database(directory);
    let read_only = number + 1 == READERS;
    while read_only && !path.exists() {
        std::thread::sleep(Duration::from_millis(1));
    }
    let db = told("open", Db::open_with(&path, options(Maintenance::Manual).read_only(read_only)))?;
    let choice = {
        let space = loomdb::internals::model::VectorSpace {
            name: "test".into(),
            dimension: DIMENSION,
            element: Default::default(),
        };
        SpaceChoice::Exactly(space)
    };
    let settings = StorageOptions {
        read_only,
        maintenance: Maintenance::Manual,
        busy_timeout: Duration::from_secs(20),
        ..StorageOptions::default()
    };
    let store = told("open", Store::open(Arc::new(RealVfs::new()), &path, settings, choice))?;
    let mut followers: Vec<_> =
        (0..WRITERS).map(|writer| Follower::new(directory, writer)).collect();
    let mut last_seq = 0;
    while Instant::now() < deadline {
        for (writer, follower) in followers.iter_mut().enumerate() {
            follower.before()?;
            let listing = list(&db, writer)?;
            follower.after(&listing).map_err(|error| format!("writer {writer}: {error}"))?;
        }
        for follower in &mut followers {
            follower.before()?;
        }
        let (seq, listings) = list_all(&store)?;
        if seq < last_seq {
            return Err(format!("back from commit {last_seq} to {seq}"));
        }
        last_seq = seq;
        for (writer, follower) in followers.iter_mut().enumerate() {
            let seen = follower.after(&listings[writer]);
            seen.map_err(|error| format!("writer {writer} in commit {seq}: {error}"))?;
        }
        if let Some(id) = first_repeated(&listings) {
            return Err(format!("two rows have id {id}"));
        }
    }
    Ok(())
}

/// The rows of all writers in one view, with its number.
fn list_all(store: &Store) -> Result<(u64, Vec<Listing>), String> {
    let snapshot = told("snapshot", store.snapshot())?;
    let mut listings = Vec::new();
    for writer in 0..WRITERS {
        let (name, all) = (user(writer), i64::MIN..i64::MAX);
        let times = snapshot.timeline(name.as_bytes(), all, None, Direction::Ascending, usize::MAX);
        let mut listing = Listing::new();
        for (_, id) in told("timeline", times)? {
            let record = told("get", snapshot.get(id))?;
            let record = record.ok_or_else(|| format!("listed row {id} cannot be got"))?;
            add_to(&mut listing, writer, &record.body.text, id.get(), record.version)?;
        }
        listings.push(listing);
    }
    Ok((snapshot.seq().get(), listings))
}

/// Checkpoints and merges until `deadline`.
pub fn checkpoint(directory: &Path, seed: u64, deadline: Instant) -> Outcome {
    let db = told("open", Db::open_with(database(directory), options(Maintenance::Manual)))?;
    let mut random = Random::new(seed);
    while Instant::now() < deadline {
        for result in [db.checkpoint().map(drop), db.merge().map(drop)] {
            match result {
                Err(error) if error.kind() == ErrorKind::Locked => {}
                other => told("maintenance", other)?,
            }
        }
        std::thread::sleep(Duration::from_millis(random.below(30)));
    }
    Ok(())
}
