//! The machine that a bench ran on, and the disk under its directory.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use super::Spread;

/// A sync that is faster than this never reached a disk; nothing that depends on one is worth printing.
pub const SYNC_MICROS_MIN: f64 = 50.0;
/// Syncs measured.
const SYNCS: usize = 200;

/// A directory for this bench: in `LOOMDB_BENCH_DIR`, by default in `target` where the build lies.
pub fn bench_dir(name: &str) -> PathBuf {
    let base = std::env::var_os("LOOMDB_BENCH_DIR")
        .map_or_else(|| Path::new(env!("CARGO_TARGET_TMPDIR")).to_owned(), PathBuf::from);
    let directory = base.join(format!("loomdb-bench-{name}-{}", std::process::id()));
    fs::create_dir_all(&directory).expect("the bench directory can be created");
    directory
}

/// Prints processor, cores, file system and the cost of a sync there; returns the median of the last.
pub fn print_machine(directory: &Path) -> f64 {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let sync = sync_micros(directory);
    println!("machine: {}, {cores} cores, {}", processor(), std::env::consts::OS);
    println!("disk: {}, append of 2.6 KB + fdatasync {sync}", file_system(directory));
    sync.p50()
}

/// Appends of 2.6 KB, each with its sync.
pub fn sync_micros(directory: &Path) -> Spread {
    let path = directory.join("sync-probe");
    let mut file = File::create(&path).expect("a file can be created");
    let mut spread = Spread::default();
    for _ in 0..SYNCS {
        spread.time(|| {
            file.write_all(&[7; 2600]).expect("append");
            file.sync_data().expect("sync");
        });
    }
    fs::remove_file(path).expect("the probe is ours");
    spread
}

fn processor() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    model.map_or(std::env::consts::ARCH.to_owned(), |(_, name)| name.trim().to_owned())
}

/// The type of the file system that holds `directory`: that of the longest mount point above it.
fn file_system(directory: &Path) -> String {
    let directory = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let above = mounts.lines().filter_map(|line| {
        let mut fields = line.split(' ').skip(1);
        let (point, kind) = (fields.next()?, fields.next()?);
        directory.starts_with(point).then_some((point.len(), kind))
    });
    above.max().map_or("unknown file system".to_owned(), |(_, kind)| kind.to_owned())
}
