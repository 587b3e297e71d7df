//! redb on the simulated disk: what it acknowledged survives every power cut, and a lost sync is seen.

use std::path::Path;
use std::time::{Duration, Instant};

use redb::{Builder, ConcurrencyMode, Database, ReadableDatabase, TableDefinition};

use super::{Fault, FaultKind, SimVfs, Task, TaskEnd};
use crate::storage::vfs::{CatalogBackend, OpenMode, Vfs};

const PATH: &str = "/catalog";
const ROWS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("rows");
const COMMITS: u64 = 12;
const SEEDS: u64 = 20;

fn open(vfs: &SimVfs, check: bool) -> Result<Database, redb::DatabaseError> {
    let file = vfs.open(Path::new(PATH), OpenMode::ReadWrite)?;
    Builder::new()
        .set_concurrency_mode(ConcurrencyMode::MultiWriter)
        .set_cache_size(1 << 20)
        .set_check_integrity_on_open(check)
        .create_with_backend(CatalogBackend::new(file, Duration::ZERO))
}

fn put(database: &Database, key: u64) -> Result<(), redb::Error> {
    let write = database.begin_write()?;
    write.open_table(ROWS)?.insert(key, &[key as u8; 700][..])?;
    Ok(write.commit()?)
}

fn rows(database: &Database) -> Result<Vec<u64>, redb::Error> {
    let table = match database.begin_read()?.open_table(ROWS) {
        Err(redb::TableError::TableDoesNotExist(_)) => return Ok(Vec::new()),
        table => table?,
    };
    table.range::<u64>(..)?.map(|row| Ok(row?.0.value())).collect()
}

/// A disk with a durable empty catalog.
fn created() -> SimVfs {
    let vfs = SimVfs::new();
    vfs.open(Path::new(PATH), OpenMode::CreateNew).unwrap();
    vfs.sync_dir(Path::new("/")).unwrap();
    drop(open(&vfs, false).unwrap());
    vfs
}

/// Commits rows one by one; the operations done when each was acknowledged.
fn write(vfs: &SimVfs) -> Vec<usize> {
    let database = open(vfs, false).unwrap();
    let acknowledged = (0..COMMITS).map(|key| {
        put(&database, key).unwrap();
        vfs.op_count()
    });
    acknowledged.collect()
}

/// Whether an image holds the first rows, at least those acknowledged, and no other.
fn is_whole(image: &SimVfs, acknowledged: usize) -> bool {
    let Ok(database) = open(image, true) else { return false };
    let Ok(rows) = rows(&database) else { return false };
    rows.len() >= acknowledged && rows.iter().copied().eq(0..rows.len() as u64)
}

/// Images built and images that lost something, over all places from `from` on.
fn crash_everywhere(vfs: &SimVfs, from: usize, acknowledged: &[usize]) -> (u64, u64) {
    let mut replay = vfs.replay();
    replay.advance_to(from);
    let (mut images, mut failures) = (0, 0);
    loop {
        let expected = acknowledged.iter().filter(|at| **at <= replay.position()).count();
        for seed in 0..SEEDS {
            images += 1;
            failures += u64::from(!is_whole(&replay.crash_image(seed), expected));
        }
        if !replay.step() {
            return (images, failures);
        }
    }
}

#[test]
fn every_acknowledged_row_survives_a_power_cut_at_any_operation() {
    let vfs = created();
    let from = vfs.op_count();
    let acknowledged = write(&vfs);
    let (images, failures) = crash_everywhere(&vfs, from, &acknowledged);
    assert_eq!(failures, 0, "of {images} images");
    assert!(images > 1_000, "{images} images");
}

#[test]
fn a_lost_sync_is_seen() {
    let vfs = created();
    let from = vfs.op_count();
    vfs.ignore_syncs_of("catalog");
    let acknowledged = write(&vfs);
    let (images, failures) = crash_everywhere(&vfs, from, &acknowledged);
    assert!(failures > images / 4, "{failures} of {images} images failed");
}

#[test]
fn a_power_cut_during_the_repair_after_one_loses_nothing() {
    let vfs = created();
    let from = vfs.op_count();
    let acknowledged = write(&vfs);
    let mut replay = vfs.replay();
    for at in (from..vfs.op_count()).step_by(19) {
        replay.advance_to(at);
        let expected = acknowledged.iter().filter(|done| **done <= at).count();
        let image = replay.crash_image(at as u64 + 2);
        assert!(is_whole(&image, expected));
        let (images, failures) = crash_everywhere(&image, 0, &vec![0; expected]);
        assert_eq!(failures, 0, "of {images} images of the repair of operation {at}");
    }
}

#[test]
fn a_failing_call_anywhere_loses_nothing_that_was_acknowledged() {
    let calls = {
        let vfs = created();
        let before = vfs.call_count();
        write(&vfs);
        before..vfs.call_count()
    };
    for kind in [FaultKind::Eio, FaultKind::ShortWriteThenEio, FaultKind::Enospc] {
        for at_call in calls.clone().step_by(3) {
            let vfs = created();
            vfs.inject(Fault { at_call, kind, sticky: false });
            let mut acknowledged = 0;
            if let Ok(database) = open(&vfs, false) {
                while acknowledged < COMMITS && put(&database, acknowledged).is_ok() {
                    acknowledged += 1;
                }
            }
            assert!(vfs.fault_fired().is_some(), "{kind:?} at {at_call}");
            for image in [vfs.kill_image(vfs.op_count()), vfs.crash_image(vfs.op_count(), at_call)]
            {
                assert!(is_whole(&image, acknowledged as usize), "{kind:?} at {at_call}");
            }
        }
    }
}

#[test]
fn interleaved_writers_share_a_catalog_and_outlive_a_killed_one() {
    for seed in 0..20 {
        let vfs = created();
        let writer = |first: u64| {
            move |vfs: SimVfs| -> Result<(), redb::Error> {
                let database = open(&vfs, false)?;
                (first..first + 4).try_for_each(|key| put(&database, key))
            }
        };
        let tasks: Vec<Task<'_, _>> =
            vec![Box::new(writer(0)), Box::new(writer(10)), Box::new(writer(20))];
        let run = vfs.interleaving(seed).kill_at(2, 20 + seed * 12).run(tasks);
        for end in &run.ends[..2] {
            assert!(matches!(end, TaskEnd::Done(Ok(()))), "seed {seed}: {end:?}");
        }
        let mut found = rows(&open(&vfs, true).unwrap()).unwrap();
        found.retain(|key| *key < 20);
        assert_eq!(found, [0, 1, 2, 3, 10, 11, 12, 13], "seed {seed}");
    }
}

/// Prints what one image costs: `cargo test --lib cost_of_an_image -- --ignored --nocapture`.
#[test]
#[ignore = "a measurement"]
fn cost_of_an_image() {
    let vfs = created();
    let file = vfs.open(Path::new("/segment"), OpenMode::CreateNew).unwrap();
    file.write_all_at(0, &[7; 200_000]).unwrap();
    file.sync_data().unwrap();
    let from = vfs.op_count();
    write(&vfs);
    let mut replay = vfs.replay();
    replay.advance_to(from);
    let started = Instant::now();
    let mut images = 0_u32;
    while replay.step() {
        for seed in 0..SEEDS {
            std::hint::black_box(replay.crash_image(seed));
            images += 1;
        }
    }
    println!("{images} images of 300 KB, {:?} each", started.elapsed() / images);
}
