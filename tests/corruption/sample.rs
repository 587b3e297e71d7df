//! Small databases to damage: their files as bytes, and what they answer.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use loomdb::internals::model::{Body, Record, VectorSpace, pack_vector};
use loomdb::internals::options::StorageOptions;
use loomdb::internals::storage::log::format::MARK_FRAME_BYTES;
use loomdb::internals::storage::segment::example::simple_terms;
use loomdb::internals::storage::state::{State, StateFile};
use loomdb::internals::storage::vfs::{MemoryVfs, OpenMode, Vfs};
use loomdb::internals::storage::{Draft, EncodedRow, SpaceChoice, Store};
use loomdb::{EpisodeId, Maintenance, Result, VectorElement};

use super::reading::{Questions, Reading};

const DIMENSION: u32 = 8;
pub const ROOT: &str = "/t.loom";

/// Files of a bundle by their path below it.
pub type Files = BTreeMap<String, Vec<u8>>;

/// One commit of the active log: what the database answers after it, and where it ends.
pub struct Commit {
    pub reading: Reading,
    pub state: State,
}

impl Commit {
    /// Where its mark lies in its log.
    pub fn mark(&self) -> std::ops::Range<usize> {
        let end = self.state.durable_end as usize;
        end - MARK_FRAME_BYTES..end
    }
}

/// A bundle and everything known of it.
pub struct Sample {
    pub files: Files,
    pub questions: Questions,
    /// What lies in the logs, commit by commit; the last is the state of the bundle.
    pub commits: Vec<Commit>,
}

impl Sample {
    pub fn last(&self) -> &Reading {
        &self.commits.last().expect("a sample has commits").reading
    }

    pub fn bytes(&self) -> usize {
        self.files.values().map(Vec::len).sum()
    }

    /// The file name of the active log.
    pub fn active_log(&self) -> String {
        let state = self.commits.last().expect("a sample has commits").state;
        format!("log/{:08x}.log", state.log.get())
    }
}

pub fn open(vfs: &Arc<dyn Vfs>, root: &Path) -> Result<Store> {
    let options = StorageOptions {
        maintenance: Maintenance::Manual,
        // What blocks in damage would otherwise be waited for.
        busy_timeout: std::time::Duration::from_millis(50),
        ..StorageOptions::default()
    };
    let space =
        VectorSpace { name: "test".into(), dimension: DIMENSION, element: VectorElement::F32 };
    Store::open(vfs.clone(), root, options, SpaceChoice::Recorded(space))
}

fn row(user: &str, number: u64, text: String) -> EncodedRow {
    let vector: Vec<f32> =
        (0..u64::from(DIMENSION)).map(|at| ((number * 7 + at * 5) % 13) as f32 - 5.5).collect();
    EncodedRow::new(Draft {
        user: user.as_bytes().into(),
        time: 1_000 + (number * 37 % 101) as i64,
        offset_minutes: 60,
        ordinal: number % 3,
        expires: i64::MAX,
        vector: pack_vector(&vector, VectorElement::F32).into(),
        terms: simple_terms(&text, Some("speaker")),
        body: Body {
            text,
            session: (!number.is_multiple_of(4)).then(|| format!("s{}", number % 3)),
            speaker: Some("speaker".into()),
            agent: None,
            key: Some(format!("k{number}")),
            metadata: "{\"a\":1}".into(),
            tags: vec!["tag".into()],
        },
    })
    .unwrap()
}

/// Text that does not compress to nothing.
fn text(number: u64, words: u64) -> String {
    (0..words)
        .map(|word| format!("{:x} ", (number + 1) * (word + 3) * 2_654_435_761 % 99_991))
        .collect()
}

struct Builder {
    vfs: Arc<dyn Vfs>,
    store: Store,
    next: u64,
}

impl Builder {
    fn add(&mut self, count: u64, words: u64) {
        let numbers = self.next..self.next + count;
        self.next += count;
        let rows: Vec<_> = numbers
            .map(|number| row(["u", "v"][number as usize % 2], number, text(number, words)))
            .collect();
        let work = move |transaction: &mut loomdb::internals::storage::Transaction<'_>| {
            rows.into_iter().try_for_each(|row| transaction.insert(row).map(drop))
        };
        self.store.commit(work).unwrap();
    }

    /// Gives one row a new version and deletes another, in one commit.
    fn change(&mut self, updated: u64, deleted: u64) {
        let words = text(updated, 9);
        let work = move |transaction: &mut loomdb::internals::storage::Transaction<'_>| {
            let mut find =
                |id| transaction.get(EpisodeId::new(id)).map(|row| row.expect("is live"));
            let (old, gone): (Arc<Record>, Arc<Record>) = (find(updated)?, find(deleted)?);
            let user = String::from_utf8(old.user.to_vec()).expect("made above");
            // Row numbers are ids less one.
            transaction.replace(&old, row(&user, updated - 1, words))?;
            transaction.delete(&gone)
        };
        self.store.commit(work).unwrap();
    }

    fn state(&self) -> State {
        let path = Path::new(ROOT).join("locks/state");
        let file = self.vfs.open(&path, OpenMode::Read).unwrap();
        StateFile::new(file).read().unwrap().unwrap()
    }
}

/// Builds a bundle: two segments and a third that is `rows` rows long, with updated and deleted rows; one sealed log
/// with bytes behind its end that do not count; an active log.
pub fn build(rows: u64, words: u64) -> Sample {
    let vfs: Arc<dyn Vfs> = Arc::new(MemoryVfs::new());
    let store = open(&vfs, Path::new(ROOT)).unwrap();
    let mut builder = Builder { vfs: vfs.clone(), store, next: 0 };
    builder.add(6, 12);
    builder.store.checkpoint().unwrap();
    builder.add(5, 40);
    builder.change(2, 4);
    builder.store.checkpoint().unwrap();
    builder.add(rows, words);
    builder.change(7, 3);
    builder.store.checkpoint().unwrap();

    let questions = Questions {
        users: vec!["u", "v", "nobody"],
        keys: (0..20).map(|number| format!("k{number}")).collect(),
        sessions: (0..4).map(|number| format!("s{number}")).collect(),
        last_id: rows + 24,
    };
    let mut commits = Vec::new();
    for step in 0..6 {
        match step {
            1 => builder.change(2, 8),
            4 => builder.change(9, 12),
            _ => builder.add(2, 15),
        }
        let reading = Reading::of(&builder.store, &questions).unwrap();
        assert_eq!(reading.errors(), 0);
        let state = builder.state();
        commits.push(Commit { reading, state });
        if step == 2 {
            // Half a batch of a writer that died: the next one begins a new log.
            let log = Path::new(ROOT).join(format!("log/{:08x}.log", state.log.get()));
            let file = vfs.open(&log, OpenMode::ReadWrite).unwrap();
            file.write_all_at(state.visible_end, &[0x5a; 100]).unwrap();
        }
    }
    assert_ne!(commits[2].state.log, commits[3].state.log);
    drop(builder);
    let mut files = Files::new();
    collect(&*vfs, Path::new(ROOT), "", &mut files);
    Sample { files, questions, commits }
}

fn collect(vfs: &dyn Vfs, root: &Path, below: &str, files: &mut Files) {
    for name in vfs.list(&root.join(below)).unwrap() {
        let path = if below.is_empty() { name } else { format!("{below}/{name}") };
        match vfs.open(&root.join(&path), OpenMode::Read) {
            Ok(file) => {
                let mut bytes = vec![0; file.len().unwrap() as usize];
                file.read_exact_at(0, &mut bytes).unwrap();
                files.insert(path, bytes);
            }
            Err(_) => collect(vfs, root, &path, files),
        }
    }
}

/// Writes a bundle, segments sealed as they are.
pub fn materialise(vfs: &dyn Vfs, root: &Path, files: &Files) {
    for directory in ["", "log", "segments", "locks"] {
        vfs.create_dir(&root.join(directory)).unwrap();
    }
    for (path, bytes) in files {
        let path: PathBuf = root.join(path);
        let file = vfs.open(&path, OpenMode::CreateNew).unwrap();
        file.write_all_at(0, bytes).unwrap();
        if path.extension().is_some_and(|extension| extension == "seg") {
            file.set_read_only().unwrap();
        }
    }
}
