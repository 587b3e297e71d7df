//! What every file layer must do, asked of all three in the same words.

use std::io::ErrorKind;
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use redb::{Builder, ConcurrencyMode, Database, ReadableDatabase, TableDefinition};

use super::LockKind::{Exclusive, Shared};
use super::sim::SimVfs;
use super::{CatalogBackend, LockRange, MemoryVfs, OpenMode, RealVfs, Vfs, VfsFile};

/// Runs `check` on each layer with an empty directory of that layer.
fn on_every_layer(check: fn(&dyn Vfs, &Path)) {
    let dir = tempfile::tempdir().unwrap();
    check(&RealVfs::new(), dir.path());
    let root = Path::new("/base");
    let layers: [&dyn Vfs; 2] = [&MemoryVfs::new(), &SimVfs::new()];
    for layer in layers {
        layer.create_dir(root).unwrap();
        check(layer, root);
    }
}

fn read_all(file: &Arc<dyn VfsFile>) -> Vec<u8> {
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_exact_at(0, &mut bytes).unwrap();
    bytes
}

fn kind<T>(result: std::io::Result<T>) -> ErrorKind {
    result.err().expect("an error").kind()
}

#[test]
fn contents_follow_writes_and_lengths() {
    on_every_layer(|vfs, dir| {
        let path = dir.join("file");
        let file = vfs.open(&path, OpenMode::CreateNew).unwrap();
        file.write_all_at(3, b"abc").unwrap();
        assert_eq!(read_all(&file), b"\0\0\0abc");
        file.set_len(4).unwrap();
        file.set_len(6).unwrap();
        assert_eq!(read_all(&file), b"\0\0\0a\0\0");
        let mut buffer = [9; 4];
        assert_eq!(file.read_at(4, &mut buffer).unwrap(), 2);
        assert_eq!(file.read_at(100, &mut buffer).unwrap(), 0);
        assert_eq!(kind(file.read_exact_at(4, &mut buffer)), ErrorKind::UnexpectedEof);
        file.sync_data().unwrap();
        let reader = vfs.open(&path, OpenMode::Read).unwrap();
        assert_eq!(read_all(&reader), b"\0\0\0a\0\0");
        assert!(reader.write_at(0, b"x").is_err());
        assert!(reader.set_len(0).is_err());
        assert_eq!(&*vfs.map(&path, 6).unwrap(), b"\0\0\0a\0\0");
        assert_eq!(kind(vfs.map(&path, 7)), ErrorKind::InvalidData);
    });
}

#[test]
fn names_behave_as_posix_says() {
    on_every_layer(|vfs, dir| {
        let (a, b, sub) = (dir.join("a"), dir.join("b"), dir.join("sub"));
        assert_eq!(kind(vfs.open(&a, OpenMode::Read)), ErrorKind::NotFound);
        assert_eq!(kind(vfs.open(&a, OpenMode::ReadWrite)), ErrorKind::NotFound);
        assert_eq!(kind(vfs.identity(&a)), ErrorKind::NotFound);
        assert_eq!(kind(vfs.remove_file(&a)), ErrorKind::NotFound);
        assert_eq!(kind(vfs.rename(&a, &b)), ErrorKind::NotFound);
        assert_eq!(kind(vfs.open(&sub.join("x"), OpenMode::Create)), ErrorKind::NotFound);
        let first = vfs.open(&a, OpenMode::CreateNew).unwrap();
        assert_eq!(kind(vfs.open(&a, OpenMode::CreateNew)), ErrorKind::AlreadyExists);
        first.write_all_at(0, b"first").unwrap();
        assert_eq!(vfs.identity(&a).unwrap(), first.identity().unwrap());

        // A replaced file stays readable for those who have it open.
        let second = vfs.open(&b, OpenMode::Create).unwrap();
        second.write_all_at(0, b"second").unwrap();
        assert_ne!(first.identity().unwrap(), second.identity().unwrap());
        vfs.rename(&b, &a).unwrap();
        vfs.sync_dir(dir).unwrap();
        assert_eq!(vfs.identity(&a).unwrap(), second.identity().unwrap());
        assert_eq!(read_all(&first), b"first");
        vfs.remove_file(&a).unwrap();
        second.write_all_at(6, b"!").unwrap();
        assert_eq!(read_all(&second), b"second!");

        vfs.create_dir(&sub).unwrap();
        assert_eq!(kind(vfs.create_dir(&sub)), ErrorKind::AlreadyExists);
        assert!(vfs.open(&sub, OpenMode::Read).is_err());
        vfs.open(&sub.join("x"), OpenMode::Create).unwrap();
        assert_eq!(vfs.list(dir).unwrap(), ["sub"]);
        let other = dir.join("other");
        vfs.create_dir(&other).unwrap();
        vfs.open(&other.join("y"), OpenMode::Create).unwrap();
        assert_eq!(kind(vfs.rename(&other, &sub)), ErrorKind::DirectoryNotEmpty);
        vfs.remove_file(&sub.join("x")).unwrap();
        vfs.rename(&other, &sub).unwrap();
        assert_eq!(vfs.list(&sub).unwrap(), ["y"]);
        vfs.remove_dir_all(&sub).unwrap();
        assert!(vfs.list(dir).unwrap().is_empty());
        assert_eq!(kind(vfs.list(&sub)), ErrorKind::NotFound);
    });
}

#[test]
fn whole_file_locks_belong_to_open_files() {
    on_every_layer(|vfs, dir| {
        let path = dir.join("lock");
        let open = || vfs.open(&path, OpenMode::Create).unwrap();
        let (one, two) = (open(), open());
        assert!(one.try_lock(Exclusive).unwrap());
        assert!(one.try_lock(Exclusive).unwrap());
        assert!(!two.try_lock(Shared).unwrap());
        assert!(one.try_lock(Shared).unwrap());
        assert!(two.try_lock(Shared).unwrap());
        // Refused, and the shared lock is lost with it.
        assert!(!one.try_lock(Exclusive).unwrap());
        assert!(two.try_lock(Exclusive).unwrap());
        two.unlock().unwrap();
        assert!(one.try_lock(Exclusive).unwrap());
        drop(one);
        assert!(two.try_lock(Exclusive).unwrap());
    });
}

fn byte(at: u64) -> LockRange {
    (Bound::Included(at), Bound::Included(at))
}

#[test]
fn range_locks_belong_to_open_files() {
    on_every_layer(|vfs, dir| {
        let path = dir.join("ranges");
        let open = || vfs.open(&path, OpenMode::Create).unwrap();
        let (one, two) = (open(), open());
        let far = (1 << 62) + 5;
        assert!(one.try_lock_range(byte(far), Shared).unwrap());
        assert!(two.try_lock_range(byte(far), Shared).unwrap());
        assert!(two.query_lock_range((Bound::Included(0), Bound::Unbounded)).unwrap());
        assert!(!two.query_lock_range((Bound::Included(0), Bound::Excluded(far))).unwrap());
        one.unlock_range(byte(far)).unwrap();
        two.unlock_range(byte(far)).unwrap();
        assert!(one.lock_range(byte(far), Exclusive, PATIENCE).unwrap());
        assert!(!two.try_lock_range(byte(far), Shared).unwrap());
        assert!(two.try_lock_range(byte(far + 1), Exclusive).unwrap());
        let reader = vfs.open(&path, OpenMode::Read).unwrap();
        assert!(reader.try_lock_range(byte(0), Shared).unwrap());
        assert!(reader.try_lock_range(byte(1), Exclusive).is_err());
        assert!(one.try_lock_range((Bound::Included(9), Bound::Excluded(9)), Shared).is_err());
        drop(one);
        assert!(two.lock_range(byte(far), Exclusive, PATIENCE).unwrap());
    });
}

/// Longer than any lock of these tests is held.
const PATIENCE: Duration = Duration::from_secs(20);
const ROWS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("rows");

fn builder() -> Builder {
    let mut builder = Database::builder();
    builder.set_concurrency_mode(ConcurrencyMode::MultiWriter).set_cache_size(1 << 20);
    builder
}

fn backend(vfs: &dyn Vfs, path: &Path, mode: OpenMode) -> CatalogBackend {
    CatalogBackend::new(vfs.open(path, mode).unwrap(), PATIENCE)
}

fn put(database: &Database, key: u64) {
    let write = database.begin_write().unwrap();
    write.open_table(ROWS).unwrap().insert(key, &[key as u8; 300][..]).unwrap();
    write.commit().unwrap();
}

fn rows(database: &impl ReadableDatabase) -> Vec<u64> {
    let table = database.begin_read().unwrap().open_table(ROWS).unwrap();
    let keys = table.range::<u64>(..).unwrap();
    keys.map(|row| row.unwrap().0.value()).collect()
}

#[test]
fn redb_shares_one_file_between_writers_and_readers() {
    on_every_layer(|vfs, dir| {
        let path = dir.join("catalog");
        let create = |mode| builder().create_with_backend(backend(vfs, &path, mode)).unwrap();
        let writer = create(OpenMode::CreateNew);
        put(&writer, 1);
        let read = backend(vfs, &path, OpenMode::Read);
        let reader = builder().open_read_only_with_backend(read).unwrap();
        assert_eq!(rows(&reader), [1]);
        put(&writer, 2);
        assert_eq!(rows(&reader), [1, 2]);
        let second = create(OpenMode::ReadWrite);
        put(&second, 3);
        put(&writer, 4);
        assert_eq!(rows(&reader), [1, 2, 3, 4]);

        // A single writer is refused while others have the file, and gets it once they have closed.
        let alone =
            Database::builder().create_with_backend(backend(vfs, &path, OpenMode::ReadWrite));
        assert!(matches!(alone, Err(redb::DatabaseError::DatabaseAlreadyOpen)));
        drop((writer, second, reader));
        let alone = Database::builder()
            .create_with_backend(backend(vfs, &path, OpenMode::ReadWrite))
            .unwrap();
        assert_eq!(rows(&alone), [1, 2, 3, 4]);
    });
}

#[test]
fn a_range_lock_that_is_never_given_up_is_waited_for_so_long_and_no_longer() {
    let layers: [(Arc<dyn Vfs>, &Path); 2] =
        [(Arc::new(MemoryVfs::new()), Path::new("/f")), (Arc::new(RealVfs::new()), Path::new("f"))];
    let dir = tempfile::tempdir().unwrap();
    for (vfs, name) in layers {
        let path = if name.is_absolute() { name.to_path_buf() } else { dir.path().join(name) };
        let holder = vfs.open(&path, OpenMode::CreateNew).unwrap();
        assert!(holder.try_lock_range(byte(0), Exclusive).unwrap());
        let waiter = vfs.open(&path, OpenMode::ReadWrite).unwrap();
        let patience = Duration::from_millis(60);
        for kind in [Shared, Exclusive] {
            let start = std::time::Instant::now();
            assert!(!waiter.lock_range(byte(0), kind, patience).unwrap());
            let waited = start.elapsed();
            assert!(waited >= patience && waited < PATIENCE, "{waited:?}");
        }
        holder.unlock_range(byte(0)).unwrap();
        assert!(waiter.lock_range(byte(0), Exclusive, patience).unwrap());
    }
}
