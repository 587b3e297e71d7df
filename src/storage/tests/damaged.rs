//! Verify of a database that was damaged while it was open.

use super::super::vfs::OpenMode;
use super::*;

/// Puts a copy with one flipped bit in a file's place.
fn flip(vfs: &Arc<dyn Vfs>, path: &Path) {
    let file = vfs.open(path, OpenMode::Read).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_exact_at(0, &mut bytes).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    vfs.remove_file(path).unwrap();
    vfs.open(path, OpenMode::CreateNew).unwrap().write_all_at(0, &bytes).unwrap();
}

#[test]
fn verify_goes_on_behind_a_catalog_that_cannot_be_read() {
    let vfs = memory();
    let store = open(&vfs);
    insert(&store, "u", "one", 1, None);
    assert!(store.checkpoint().unwrap());
    insert(&store, "u", "two", 2, None);
    let segments = Path::new("/db.loom/segments");
    let names = vfs.list(segments).unwrap();
    assert_eq!(names.len(), 1);
    let segment = segments.join(&names[0]);
    flip(&vfs, &segment);
    let catalog = Path::new("/db.loom/catalog.redb");
    vfs.remove_file(catalog).unwrap();
    vfs.open(catalog, OpenMode::CreateNew).unwrap().write_all_at(0, b"no catalog").unwrap();

    let found = store.verify().unwrap();
    for path in [catalog, &segment] {
        let told = found.problems.iter().filter(|problem| problem.file() == Some(path)).count();
        assert!(told > 0, "{}: {:?}", path.display(), found.problems);
    }
    assert_eq!(found.rows, 1, "the row in the log was read");
}
