//! The system refuses to write: real short writes, at a limit of file sizes that the shell sets.

use loomdb::{Db, Maintenance};

use super::fleet::{Task, shell};
use super::roles;
use super::storm::check_at_rest;

/// Bytes of one of the shell's units of file size, as POSIX has it. Shells that count in KiB only make the limits
/// wider.
const BLOCK_BYTES: u64 = 512;

#[test]
fn nothing_acknowledged_is_lost_when_files_may_not_grow() {
    // Below a log's checkpoint threshold, below a segment's size, and just above the catalog's.
    for (number, limit) in [24 << 10, 96 << 10, 512 << 10].into_iter().enumerate() {
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path();
        let path = roles::database(directory);
        drop(Db::open_with(&path, roles::options(Maintenance::Manual)).unwrap());
        let catalog = std::fs::metadata(path.join("catalog.redb")).unwrap().len();
        let limit = if number == 2 { catalog + (4 << 10) } else { limit };
        // An ignored signal stays ignored in what the shell turns into: writes fail instead of killing.
        let first = format!("trap '' XFSZ; ulimit -f {}", limit / BLOCK_BYTES);
        let task = Task { role: "fill", number: 0 };
        let status = shell(&first, directory, &task, number as u64, 60).spawn().unwrap().wait();
        let said = std::fs::read_to_string(directory.join("failure-fill-0"));
        let log = std::fs::read_to_string(directory.join("stderr-fill-0"));
        assert!(status.unwrap().success(), "{} {}", said.unwrap_or_default(), log.unwrap());
        let refused = std::fs::read_to_string(directory.join("refused-0")).unwrap();
        let (commits, rows) = check_at_rest(directory);
        println!("{limit} bytes: {refused}; acknowledged: {commits} commits, {rows} rows, lost: 0");
        assert!(number > 0 || !refused.starts_with("0 commits"), "{refused}");
    }
}
