//! Crash tests on a simulated disk: whatever a power cut, a kill, a failing disk or another process does, what was
//! acknowledged is there, whole, and nothing else.
//!
//! Run by `cargo test --test crash`. The lines that it prints go past the test harness's capture on purpose.

mod check;
mod faults;
mod handles;
mod images;
mod interleaved;
mod model;
mod oracle;
mod planted;
mod script;
mod workloads;

use std::io::Write;
use std::time::Instant;

use loomdb::internals::storage::vfs::sim::FaultKind;

use images::{Plan, Tally, crash_everywhere};
use script::Recording;

/// Prints a line that is seen without `--nocapture` too.
fn say(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}

#[test]
fn every_crash_image_holds_what_was_acknowledged() {
    let plan = Plan { seeds: 48, again: 61, again_seeds: 6 };
    let tally = Tally::default();
    for script in workloads::all() {
        let started = Instant::now();
        let before = tally.counts();
        let recording = Recording::new(&script);
        crash_everywhere(&recording, script.name, plan, &tally);
        let (images, failures) = tally.counts();
        say(&format!(
            "{}: {} operations, {} images, {} failures, {:.1} s",
            script.name,
            recording.vfs.op_count() - recording.from,
            images - before.0,
            failures - before.1,
            started.elapsed().as_secs_f64()
        ));
    }
    let (images, failures) = tally.counts();
    say(&format!("crash images: {images}, failures: {failures}"));
    assert_eq!(failures, 0, "{}", tally.told());
    assert!(images >= 100_000, "{images} images");
}

/// Every kind of fault, once and from then on. An interrupted call is tried again without an end if it always is.
const FAULTS: [(FaultKind, bool); 11] = [
    (FaultKind::Eio, false),
    (FaultKind::Eio, true),
    (FaultKind::ShortWriteThenEio, false),
    (FaultKind::ShortWriteThenEio, true),
    (FaultKind::ShortWriteThenEnospc, false),
    (FaultKind::ShortWriteThenEnospc, true),
    (FaultKind::Enospc, false),
    (FaultKind::Enospc, true),
    (FaultKind::SyncEio, false),
    (FaultKind::SyncEio, true),
    (FaultKind::Eintr, false),
];

#[test]
fn a_failing_call_anywhere_loses_nothing_that_was_acknowledged() {
    let tally = Tally::default();
    for script in workloads::all() {
        let started = Instant::now();
        let before = tally.counts();
        faults::fail_everywhere(&script, &FAULTS, None, &tally);
        let (runs, failures) = tally.counts();
        say(&format!(
            "{}: {} runs with a fault, {} failures, {:.1} s",
            script.name,
            runs - before.0,
            failures - before.1,
            started.elapsed().as_secs_f64()
        ));
    }
    let (runs, failures) = tally.counts();
    say(&format!("runs with a failing disk: {runs}, failures: {failures}"));
    assert_eq!(failures, 0, "{}", tally.told());
}

#[test]
fn interleaved_processes_see_every_acknowledged_batch_and_never_go_back() {
    let started = Instant::now();
    let tally = Tally::default();
    interleaved::runs(&interleaved::Base::new(), 0..planted::RUNS, None, u64::MAX, &tally);
    let (runs, failures) = tally.counts();
    let seconds = started.elapsed().as_secs_f64();
    say(&format!("interleaved runs: {runs}, failures: {failures}, {seconds:.1} s"));
    assert_eq!(failures, 0, "{}", tally.told());
}

#[test]
fn a_group_whose_sync_failed_is_excluded_for_everyone() {
    handles::failed_group(None).unwrap();
}

#[test]
fn a_writer_that_dies_behind_a_failed_sync_leaves_no_trap() {
    let mut call = 1;
    while handles::killed_after_a_failed_sync(call)
        .unwrap_or_else(|why| panic!("call {call}: {why}"))
    {
        call += 1;
    }
    assert!(call > 20, "{call} calls");
}

#[test]
fn a_read_only_handle_that_is_open_first_takes_nothing_from_a_writer() {
    handles::read_only_first().unwrap();
}
