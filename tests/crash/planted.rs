//! Bugs planted in the storage code: each must be caught by the images, the faults or the interleavings that find
//! nothing without it. A bug that gets through shows that the harness is blind to it.

use loomdb::internals::storage::vfs::PlantedBug;
use loomdb::internals::storage::vfs::sim::{FaultKind, SimVfs};

use crate::images::{Plan, Tally, crash_everywhere};
use crate::script::{Recording, Script};
use crate::{faults, handles, interleaved, say, workloads};

/// Fewer images than without a bug: those that catch it are many.
const FEW: Plan = Plan { seeds: 6, again: 0, again_seeds: 0 };
/// As many seeds as without a bug.
const ALL: Plan = Plan { seeds: 64, ..FEW };
/// Interleaved runs in which a bug must show: those of the test without a bug.
pub const RUNS: u64 = 1_200;

#[track_caller]
fn caught(bug: PlantedBug, tally: &Tally) {
    let (images, failures) = tally.counts();
    say(&format!("planted {bug:?}: caught by {failures} of {images}"));
    assert!(failures > 0, "{bug:?} was not caught by any of {images}");
}

#[track_caller]
fn caught_by_images(bug: PlantedBug, script: &Script, plan: Plan) {
    let vfs = SimVfs::new();
    vfs.plant(bug);
    let tally = Tally::default();
    crash_everywhere(&Recording::on(vfs, script), script.name, plan, &tally);
    caught(bug, &tally);
}

#[track_caller]
fn caught_by_interleaving(bug: PlantedBug) {
    let tally = Tally::default();
    interleaved::runs(&interleaved::Base::new(), 0..RUNS, Some(bug), 3, &tally);
    caught(bug, &tally);
}

#[test]
fn no_segment_sync_is_caught() {
    caught_by_images(PlantedBug::NoSegmentSync, &workloads::checkpoint(), FEW);
    caught_by_images(PlantedBug::NoSegmentSync, &workloads::merge(), FEW);
}

#[test]
fn a_publish_before_the_sync_is_caught() {
    caught_by_images(PlantedBug::PublishBeforeSync, &workloads::checkpoint(), FEW);
    caught_by_images(PlantedBug::PublishBeforeSync, &workloads::merge(), FEW);
}

#[test]
fn a_state_before_the_sync_is_caught() {
    caught_by_images(PlantedBug::StateBeforeSync, &workloads::ingest(), FEW);
}

#[test]
fn a_new_log_whose_directory_is_not_synced_is_caught() {
    caught_by_images(PlantedBug::NoLogDirSync, &workloads::checkpoint(), FEW);
}

#[test]
fn a_torn_batch_that_is_accepted_is_caught() {
    caught_by_images(PlantedBug::TornBatchAccepted, &workloads::ingest(), ALL);
}

#[test]
fn a_sync_that_is_tried_again_is_caught() {
    let bug = PlantedBug::SyncRetried;
    let tally = Tally::default();
    faults::fail_everywhere(
        &workloads::ingest(),
        &[(FaultKind::SyncEio, false)],
        Some(bug),
        &tally,
    );
    caught(bug, &tally);
}

#[test]
fn a_tail_that_is_overwritten_in_place_is_caught() {
    let bug = PlantedBug::TailOverwritten;
    let tally = Tally::default();
    tally.judge(&|| "failed group".to_owned(), || handles::failed_group(Some(bug)));
    caught(bug, &tally);
}

#[test]
fn cleaning_without_the_files_lock_is_caught() {
    caught_by_interleaving(PlantedBug::CleanWithoutLock);
}

#[test]
fn a_missing_second_look_at_the_catalog_is_caught() {
    caught_by_interleaving(PlantedBug::NoSecondRead);
}

#[test]
fn two_checkpointers_are_caught() {
    caught_by_interleaving(PlantedBug::TwoCheckpointers);
}
