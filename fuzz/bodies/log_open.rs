//! A log file of arbitrary bytes: the lenient read and the strict one agree on what is whole.

use std::path::Path;
use std::sync::Arc;

use loomdb::internals::ids::LogId;
use loomdb::internals::storage::bundle::Bundle;
use loomdb::internals::storage::log::LogFile;
use loomdb::internals::storage::log::format::HEADER_BYTES;
use loomdb::internals::storage::vfs::{MemoryVfs, OpenMode, Vfs};

use super::DATABASE;

/// The log's number.
pub const LOG: LogId = LogId::new(12);

/// The bytes are the file.
pub fn run(data: &[u8]) {
    let vfs: Arc<dyn Vfs> = Arc::new(MemoryVfs::new());
    let bundle = Bundle::new(vfs.clone(), Path::new("/f.loom"), false);
    for directory in [bundle.root().to_path_buf(), bundle.log_dir()] {
        vfs.create_dir(&directory).expect("an empty disk takes a directory");
    }
    let file = vfs.open(&bundle.log(LOG), OpenMode::CreateNew).expect("a new file");
    file.write_all_at(0, data).expect("memory takes every byte");

    let Ok(log) = LogFile::open(&bundle, LOG, OpenMode::Read, &DATABASE) else { return };
    let start = HEADER_BYTES as u64;
    let length = log.len().expect("the file is open");
    let marked = log.marked_end().expect("the file is open");
    assert!((start..=length.max(start)).contains(&marked));
    let seq = log.header.first_seq.saturating_sub(1);
    let _ = log.read_to(start, marked, seq);
    let _ = log.read_to(start, length, seq);
    // An end from elsewhere, such as the next log's header.
    let _ = log.read_to(start, log.header.previous_end, seq);
    let Ok(tail) = log.read_tail(start, seq) else { return };
    assert!((start..=length).contains(&tail.end));
    assert_eq!(tail.torn, tail.end < length);
    let strict = log.read_to(start, tail.end, seq).expect("what is whole is read strictly too");
    assert_eq!(strict.len(), tail.batches.len());
    for (strict, lenient) in strict.iter().zip(&tail.batches) {
        assert_eq!((strict.seq, strict.end), (lenient.seq, lenient.end));
        assert_eq!(strict.ops.len(), lenient.ops.len());
    }
}
