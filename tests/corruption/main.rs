//! Damage to any byte of any file: opening and reading give an error or right answers, never a wrong one, a panic or
//! unbounded memory.
//!
//! Every copy lies on another device than the mark in `TRUST` names, so that the catalog is checked whole at each open,
//! as that of any bundle which came from elsewhere.

mod damage;
mod meter;
mod reading;
mod sample;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use loomdb::internals::storage::vfs::{MemoryVfs, RealVfs, Vfs};

use damage::{Damage, sweep};
use reading::Reading;
use sample::{Files, ROOT, Sample, materialise, open};

#[global_allocator]
static METER: meter::Meter = meter::Meter;

/// Bytes that an open and a reading of everything may hold, beside a multiple of the file sizes.
const PEAK_BYTES_MAX: usize = 64 << 20;

/// What came of one damaged copy.
enum Outcome {
    Refused,
    /// It opened; so many answers were errors, and whether `verify` found something.
    Read {
        errors: usize,
        found: bool,
    },
}

/// Opens and reads a copy; panics when an answer is none of the commits' from `floor` on.
#[track_caller]
fn check(
    vfs: Arc<dyn Vfs>,
    root: &Path,
    sample: &Sample,
    files: &Files,
    floor: usize,
    what: &str,
) -> Outcome {
    materialise(&*vfs, root, files);
    let read = || {
        let store = open(&vfs, root)?;
        let reading = Reading::of(&store, &sample.questions);
        let whole = store.verify().map(|found| found.problems.is_empty());
        loomdb::Result::Ok((reading, whole))
    };
    damage::quiet_panics();
    let (caught, peak) =
        meter::measure(|| std::panic::catch_unwind(std::panic::AssertUnwindSafe(read)));
    assert!(peak < PEAK_BYTES_MAX + 8 * sample.bytes(), "{what}: {peak} bytes of memory");
    let Ok(read) = caught else { panic!("{what}: a panic came out") };
    let Ok((reading, whole)) = read else { return Outcome::Refused };
    let found = !matches!(whole, Ok(true));
    let Ok(reading) = reading else {
        assert!(found, "{what}: verify calls whole what cannot be read");
        return Outcome::Refused;
    };
    let right = sample.commits[floor..].iter().any(|commit| reading.agrees_with(&commit.reading));
    assert!(right, "{what}: wrong answers at {:?}", reading.wrong(sample.last()));
    let errors = reading.errors();
    assert!(found || errors == 0, "{what}: verify calls whole what cannot be read");
    Outcome::Read { errors, found }
}

/// Counts by file kind of what came of the copies.
#[derive(Default)]
struct Tally(BTreeMap<String, [usize; 3]>);

impl Tally {
    fn add(&mut self, file: &str, outcome: &Outcome) {
        let place = match outcome {
            Outcome::Refused => 0,
            Outcome::Read { errors: 0, .. } => 2,
            Outcome::Read { .. } => 1,
        };
        self.0.entry(file.to_owned()).or_default()[place] += 1;
    }

    fn print(&self, title: &str) {
        for (file, [refused, partly, whole]) in &self.0 {
            println!(
                "{title}, {file}: {refused} refused, {partly} read in part, {whole} read whole"
            );
        }
    }
}

/// Damages one kind of file in every way of the sweep, one at a time.
fn sweep_files(sample: &Sample, is_meant: impl Fn(&str) -> bool, cases: usize, title: &str) {
    let mut tally = Tally::default();
    let last = sample.commits.len() - 1;
    for file in sample.files.keys().filter(|file| is_meant(file)) {
        for damage in sweep(sample.files[file].len(), cases, file.len() as u64) {
            let Some(files) = damage.apply(&sample.files, file) else { continue };
            let what = format!("{file}, {damage:?}");
            let vfs = Arc::new(MemoryVfs::new());
            let outcome = check(vfs, Path::new(ROOT), sample, &files, last, &what);
            if file.ends_with(".seg")
                && let Outcome::Read { found, .. } = outcome
            {
                assert!(found, "{what}: verify reads every byte of a segment");
            }
            tally.add(file, &outcome);
        }
    }
    tally.print(title);
}

#[test]
fn an_undamaged_copy_reads_whole() {
    let sample = sample::build(8, 700);
    let last = sample.commits.len() - 1;
    let vfs = Arc::new(MemoryVfs::new());
    let outcome = check(vfs, Path::new(ROOT), &sample, &sample.files, last, "no damage");
    assert!(matches!(outcome, Outcome::Read { errors: 0, found: false }));
    for (file, bytes) in &sample.files {
        println!("{file}: {} bytes", bytes.len());
    }
}

#[test]
fn damaged_logs_and_small_files_give_errors_or_right_answers() {
    let sample = sample::build(8, 700);
    let is_meant = |file: &str| !file.ends_with(".seg") && file != "catalog.redb";
    sweep_files(&sample, is_meant, 700, "small bundle");
}

#[test]
fn damaged_segments_give_errors_or_right_answers() {
    let sample = sample::build(8, 700);
    sweep_files(&sample, |file| file.ends_with(".seg"), 900, "small bundle");
}

#[test]
fn a_damaged_segment_with_codes_gives_errors_or_right_answers() {
    let sample = sample::build(1030, 2);
    sweep_files(&sample, |file| file.ends_with("3.seg"), 400, "bundle with codes");
}

#[test]
fn a_damaged_catalog_gives_errors_or_right_answers() {
    let sample = sample::build(8, 20);
    sweep_files(&sample, |file| file == "catalog.redb", 2500, "small bundle");
}

/// As after a power cut, which takes `locks/state` back: only then may the log's last commit be lost, and only where
/// no mark names it durable.
#[test]
fn without_a_state_the_log_falls_back_to_a_whole_commit_that_nothing_names_durable() {
    let sample = sample::build(8, 20);
    let active = sample.active_log();
    let mut tally = Tally::default();
    let mut fallen = 0;
    for file in sample.files.keys().filter(|file| file.ends_with(".log")) {
        for damage in sweep(sample.files[file].len(), 900, 5) {
            let Some(mut files) = damage.apply(&sample.files, file) else { continue };
            let state = files.get_mut("locks/state").expect("every bundle has one");
            state.fill(0);
            let floor =
                if *file == active { floor(&sample, &damage) } else { sample.commits.len() - 1 };
            let what = format!("no state; {file}, {damage:?}");
            let vfs = Arc::new(MemoryVfs::new());
            let outcome = check(vfs, Path::new(ROOT), &sample, &files, floor, &what);
            fallen += usize::from(matches!(outcome, Outcome::Read { .. }));
            tally.add(file, &outcome);
        }
    }
    assert!(fallen > 0, "a cut tail is no reason to refuse");
    tally.print("no state");
}

/// The last commit that a mark which survives the damage of the active log names durable: the one before its own.
fn floor(sample: &Sample, damage: &Damage) -> usize {
    let log = sample.commits.last().expect("a sample has commits").state.log;
    let in_log = |commit: &sample::Commit| commit.state.log == log;
    let first = sample.commits.iter().position(in_log).expect("the active log has commits");
    if damage.touches(0..loomdb::internals::storage::log::format::HEADER_BYTES) {
        // Nothing names the end of the log before, but its own last mark names the batch before that.
        return first - 2;
    }
    let survives = |place: &usize| !damage.touches(sample.commits[*place].mark());
    let last = (first..sample.commits.len()).filter(survives).max();
    last.map_or(first - 1, |last| last - 1)
}

#[test]
fn a_damaged_mark_of_trust_only_costs_a_check() {
    let sample = sample::build(8, 20);
    let last = sample.commits.len() - 1;
    for step in 0..60 {
        let vfs: Arc<dyn Vfs> = Arc::new(MemoryVfs::new());
        let root = Path::new(ROOT);
        materialise(&*vfs, root, &sample.files);
        drop(open(&vfs, root).unwrap());
        let trust =
            vfs.open(&root.join("TRUST"), loomdb::internals::storage::vfs::OpenMode::ReadWrite);
        let (trust, len) = trust.map(|file| (file.clone(), file.len().unwrap())).unwrap();
        match step {
            0 => trust.set_len(0).unwrap(),
            1 => trust.set_len(len / 2).unwrap(),
            2 => trust.write_all_at(len, &[b'x'; 10_000]).unwrap(),
            _ => trust.write_all_at(step * 7919 % len, &[0xff]).unwrap(),
        }
        let store = open(&vfs, root).unwrap();
        let reading = Reading::of(&store, &sample.questions).unwrap();
        assert!(reading.errors() == 0 && reading.agrees_with(&sample.commits[last].reading));
    }
}

/// The same on the operating system's files, where segments are mapped.
#[test]
fn damaged_files_of_the_system_give_errors_or_right_answers() {
    let sample = sample::build(8, 700);
    let last = sample.commits.len() - 1;
    let mut tally = Tally::default();
    for file in sample.files.keys() {
        for damage in sweep(sample.files[file].len(), 8, 3) {
            let Some(files) = damage.apply(&sample.files, file) else { continue };
            let directory = tempfile::tempdir().unwrap();
            let root = directory.path().join("t.loom");
            let what = format!("on disk: {file}, {damage:?}");
            tally.add(file, &check(Arc::new(RealVfs::new()), &root, &sample, &files, last, &what));
        }
    }
    tally.print("on disk");
}
