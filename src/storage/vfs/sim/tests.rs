//! What the simulated disk promises to the tests that stand on it.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::*;
use crate::storage::vfs::LockKind::{Exclusive, Shared};

const A: &str = "/a";

fn create(vfs: &SimVfs, path: &str) -> Arc<dyn VfsFile> {
    vfs.open(Path::new(path), OpenMode::CreateNew).unwrap()
}

fn sync_root(vfs: &SimVfs) {
    vfs.sync_dir(Path::new("/")).unwrap();
}

/// The bytes of a file; `None` when it does not exist.
fn contents(vfs: &SimVfs, path: &str) -> Option<Vec<u8>> {
    let file = vfs.open(Path::new(path), OpenMode::Read).ok()?;
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_exact_at(0, &mut bytes).unwrap();
    Some(bytes)
}

/// Everything that a power cut now may leave of a file, over many seeds.
fn outcomes(vfs: &SimVfs, path: &str) -> BTreeSet<Option<Vec<u8>>> {
    let mut replay = vfs.replay();
    replay.advance_to(vfs.op_count());
    (0..200).map(|seed| contents(&replay.crash_image(seed), path)).collect()
}

#[test]
fn what_was_synced_survives_and_the_rest_is_lost_kept_or_reordered() {
    let vfs = SimVfs::new();
    let file = create(&vfs, A);
    sync_root(&vfs);
    file.write_all_at(0, b"1").unwrap();
    file.sync_data().unwrap();
    file.write_all_at(1, b"2").unwrap();
    file.write_all_at(2, b"3").unwrap();
    let expected = [&b"1"[..], b"12", b"1\x003", b"123"];
    assert_eq!(outcomes(&vfs, A), expected.map(|bytes| Some(bytes.to_vec())).into());
    assert_eq!(contents(&vfs.crash_image(vfs.op_count(), 0), A).unwrap(), b"1");
    assert_eq!(contents(&vfs.crash_image(vfs.op_count(), 1), A).unwrap(), b"123");
    file.sync_data().unwrap();
    assert_eq!(outcomes(&vfs, A), [Some(b"123".to_vec())].into());
}

#[test]
fn a_large_write_tears_at_sectors_and_a_small_one_does_not() {
    let vfs = SimVfs::new();
    let file = create(&vfs, A);
    sync_root(&vfs);
    file.set_len(2048).unwrap();
    file.sync_data().unwrap();
    file.write_all_at(100, &[1; 1500]).unwrap();
    let outcomes = outcomes(&vfs, A);
    assert!(outcomes.len() > 4, "{} outcomes", outcomes.len());
    for bytes in outcomes.into_iter().flatten() {
        for sector in [100..512, 512..1024, 1024..1536, 1536..1600] {
            let sector = &bytes[sector];
            assert!(sector.iter().all(|byte| *byte == sector[0]));
        }
        assert!(bytes[..100].iter().chain(&bytes[1600..]).all(|byte| *byte == 0));
    }
}

#[test]
fn a_length_may_be_lost_and_shows_zeros_when_kept() {
    let vfs = SimVfs::new();
    let file = create(&vfs, A);
    file.write_all_at(0, b"abcd").unwrap();
    file.sync_data().unwrap();
    sync_root(&vfs);
    file.set_len(2).unwrap();
    file.set_len(6).unwrap();
    let expected = [&b"abcd"[..], b"ab", b"abcd\0\0", b"ab\0\0\0\0"];
    assert_eq!(outcomes(&vfs, A), expected.map(|bytes| Some(bytes.to_vec())).into());
}

#[test]
fn a_name_is_durable_only_once_its_directory_is_synced() {
    let vfs = SimVfs::new();
    let file = create(&vfs, A);
    file.write_all_at(0, b"x").unwrap();
    file.sync_data().unwrap();
    assert_eq!(outcomes(&vfs, A), [None, Some(b"x".to_vec())].into());
    sync_root(&vfs);
    assert_eq!(outcomes(&vfs, A), [Some(b"x".to_vec())].into());
    vfs.rename(Path::new(A), Path::new("/b")).unwrap();
    assert_eq!(outcomes(&vfs, A), [None, Some(b"x".to_vec())].into());
    let image = vfs.crash_image(vfs.op_count(), 0);
    assert_eq!(image.list(Path::new("/")).unwrap(), ["a"]);
    sync_root(&vfs);
    vfs.remove_file(Path::new("/b")).unwrap();
    assert_eq!(outcomes(&vfs, "/b"), [None, Some(b"x".to_vec())].into());
    sync_root(&vfs);
    assert_eq!(outcomes(&vfs, "/b"), [None].into());
}

#[test]
fn a_rename_is_whole_and_a_tree_comes_with_its_name() {
    let vfs = SimVfs::new();
    vfs.create_dir(Path::new("/tmp")).unwrap();
    create(&vfs, "/tmp/f").write_all_at(0, b"x").unwrap();
    vfs.sync_dir(Path::new("/tmp")).unwrap();
    vfs.rename(Path::new("/tmp"), Path::new("/db")).unwrap();
    let mut seen = BTreeSet::new();
    for seed in 0..100 {
        let image = vfs.crash_image(vfs.op_count(), seed);
        let names = image.list(Path::new("/")).unwrap();
        for name in &names {
            assert_eq!(image.list(&Path::new("/").join(name)).unwrap(), ["f"]);
        }
        seen.insert(names);
    }
    let expected = [vec![], vec!["tmp".to_owned()], vec!["db".to_owned()]];
    assert_eq!(seen, expected.into());
}

#[test]
fn what_a_failed_sync_was_about_is_never_made_durable_by_a_later_one() {
    let vfs = SimVfs::new();
    let file = create(&vfs, A);
    sync_root(&vfs);
    file.write_all_at(0, b"1").unwrap();
    vfs.inject(Fault { at_call: 0, kind: FaultKind::SyncEio, sticky: false });
    assert_eq!(file.sync_data().unwrap_err().raw_os_error(), Some(5));
    assert_eq!(vfs.fault_fired(), Some(vfs.call_count() - 1));
    file.write_all_at(1, b"2").unwrap();
    file.sync_data().unwrap();
    assert_eq!(contents(&vfs, A).unwrap(), b"12");
    let expected = [Some(b"\x002".to_vec()), Some(b"12".to_vec())];
    assert_eq!(outcomes(&vfs, A), expected.into());
    // It is known across a kill: the pages stay clean as long as the machine lives.
    let image = vfs.kill_image(vfs.op_count());
    image.open(Path::new(A), OpenMode::ReadWrite).unwrap().sync_data().unwrap();
    assert_eq!(contents(&image.crash_image(image.op_count(), 0), A).unwrap(), b"\x002");
}

#[test]
fn a_kill_keeps_everything_but_locks_and_makes_nothing_durable() {
    let vfs = SimVfs::new();
    let file = create(&vfs, A);
    sync_root(&vfs);
    file.write_all_at(0, b"1").unwrap();
    assert!(file.try_lock(Exclusive).unwrap());
    let image = vfs.kill_image(vfs.op_count());
    assert_eq!(contents(&image, A).unwrap(), b"1");
    let again = image.open(Path::new(A), OpenMode::ReadWrite).unwrap();
    assert!(again.try_lock(Exclusive).unwrap());
    assert_eq!(again.identity().unwrap(), file.identity().unwrap());
    assert_eq!(contents(&image.crash_image(0, 0), A).unwrap(), b"");
}

#[test]
fn an_image_records_on_its_own_and_may_crash_again() {
    let vfs = SimVfs::new();
    let file = create(&vfs, A);
    file.write_all_at(0, b"1").unwrap();
    let image = vfs.crash_image(vfs.op_count(), 1);
    assert_eq!((image.op_count(), image.call_count()), (0, 0));
    let again = image.open(Path::new(A), OpenMode::ReadWrite).unwrap();
    assert_eq!(again.identity().unwrap(), file.identity().unwrap());
    again.write_all_at(1, b"2").unwrap();
    let second = image.crash_image(image.op_count(), 0);
    assert_eq!(contents(&second, A).unwrap(), b"1");
    let fresh = create(&second, "/b").identity().unwrap();
    assert_ne!(fresh, file.identity().unwrap());
    assert_eq!(contents(&vfs, A).unwrap(), b"1");
}

#[test]
fn faults_hit_the_first_call_they_apply_to() {
    let vfs = SimVfs::new();
    let file = create(&vfs, A);
    vfs.inject(Fault { at_call: 0, kind: FaultKind::ShortWriteThenEio, sticky: false });
    assert_eq!(file.write_at(0, b"abcd").unwrap(), 2);
    assert_eq!(file.write_at(2, b"cd").unwrap_err().raw_os_error(), Some(5));
    assert_eq!(contents(&vfs, A).unwrap(), b"ab");
    vfs.inject(Fault { at_call: 0, kind: FaultKind::Eintr, sticky: false });
    file.write_all_at(2, b"cd").unwrap();
    vfs.inject(Fault { at_call: 0, kind: FaultKind::Enospc, sticky: true });
    assert_eq!(contents(&vfs, A).unwrap(), b"abcd");
    for _ in 0..2 {
        assert_eq!(file.write_at(0, b"x").unwrap_err().kind(), ErrorKind::StorageFull);
        assert_eq!(file.set_len(9).unwrap_err().kind(), ErrorKind::StorageFull);
        let made = vfs.open(Path::new("/b"), OpenMode::CreateNew);
        assert_eq!(made.unwrap_err().kind(), ErrorKind::StorageFull);
    }
    vfs.clear_faults();
    vfs.inject(Fault { at_call: vfs.call_count() + 1, kind: FaultKind::Eio, sticky: false });
    assert_eq!(file.len().unwrap(), 4);
    assert!(file.len().is_err());
    assert_eq!(file.len().unwrap(), 4);
}

#[test]
fn an_ignored_sync_is_lost() {
    let vfs = SimVfs::new();
    let file = create(&vfs, A);
    vfs.ignore_syncs_of("a");
    sync_root(&vfs);
    file.write_all_at(0, b"1").unwrap();
    file.sync_data().unwrap();
    assert_eq!(contents(&vfs.crash_image(vfs.op_count(), 0), A).unwrap(), b"");
    assert_eq!(vfs.operation(0).unwrap(), "a: create file");
    assert_eq!(vfs.operation(2).unwrap(), "a: write 1 bytes at 0");
}

/// Adds 1 to the number in a file `rounds` times, under its lock or not.
fn count_up(vfs: &SimVfs, rounds: u64, locked: bool) {
    let file = vfs.open(Path::new(A), OpenMode::ReadWrite).unwrap();
    for _ in 0..rounds {
        while locked && !file.try_lock(Exclusive).unwrap() {
            vfs.pause(Duration::from_millis(1));
        }
        let mut number = [0; 8];
        file.read_exact_at(0, &mut number).unwrap();
        let number = u64::from_le_bytes(number) + 1;
        file.write_all_at(0, &number.to_le_bytes()).unwrap();
        if locked {
            file.unlock().unwrap();
        }
    }
}

/// Three tasks count in one file; the number at the end, and what was done.
fn count_interleaved(seed: u64, locked: bool) -> (u64, Vec<String>) {
    let vfs = SimVfs::new();
    create(&vfs, A).set_len(8).unwrap();
    let task = |vfs: SimVfs| count_up(&vfs, 5, locked);
    let tasks = (0..3).map(|_| Box::new(task) as Task<'_, ()>).collect();
    vfs.interleaving(seed).run(tasks);
    let number = u64::from_le_bytes(contents(&vfs, A).unwrap().try_into().unwrap());
    (number, (0..vfs.op_count()).map(|at| vfs.operation(at).unwrap()).collect())
}

#[test]
fn interleaved_counters_agree_under_a_lock_and_lose_without_one() {
    let mut losses = 0;
    for seed in 0..40 {
        assert_eq!(count_interleaved(seed, true).0, 15, "seed {seed}");
        let (number, done) = count_interleaved(seed, false);
        losses += u32::from(number < 15);
        assert_eq!(count_interleaved(seed, false), (number, done), "seed {seed} ran twice");
    }
    assert!(losses > 10, "{losses} of 40 seeds lost an update");
}

#[test]
fn a_killed_task_frees_its_locks_at_once_and_only_gets_errors() {
    for seed in 0..20 {
        let vfs = SimVfs::new();
        create(&vfs, A).set_len(8).unwrap();
        let byte = (std::ops::Bound::Included(0), std::ops::Bound::Included(0));
        let lock = |vfs: &SimVfs| {
            let file = vfs.open(Path::new(A), OpenMode::ReadWrite).unwrap();
            file.lock_range(byte, Exclusive, Duration::ZERO).map(|_| file)
        };
        let held = Mutex::new(None);
        let hold = |vfs: SimVfs| {
            let file = lock(&vfs).unwrap();
            while file.len().is_ok() {}
            let error = file.try_lock(Shared).unwrap_err();
            assert!(is_killed(&error) && is_killed(&std::io::Error::other(error)));
            // The dead process never closes its file.
            *held.lock().unwrap() = Some(file);
        };
        let wait = |vfs: SimVfs| {
            vfs.pause(Duration::from_micros(10));
            lock(&vfs).unwrap();
        };
        let run = vfs.interleaving(seed).kill_at(0, 30).run(vec![Box::new(hold), Box::new(wait)]);
        assert_eq!(run.ends, [TaskEnd::Killed(Some(())), TaskEnd::Done(())]);
        assert_eq!(run.calls[0], 31, "the call that died and one more");
    }
}

#[test]
fn a_run_that_does_not_end_fails_with_its_seed() {
    let message = |tasks: Vec<Task<'_, ()>>| {
        let vfs = SimVfs::new();
        create(&vfs, A);
        let run = move || vfs.interleaving(7).steps_max(500).run(tasks);
        let panic = catch_unwind(AssertUnwindSafe(run)).unwrap_err();
        panic.downcast_ref::<String>().unwrap().clone()
    };
    let spin = |vfs: SimVfs| while vfs.identity(Path::new(A)).is_ok() {};
    let spinning = message(vec![Box::new(spin), Box::new(spin)]);
    assert!(spinning.contains("seed 7") && spinning.contains("spin"), "{spinning}");
    let cross = |first: u64| {
        move |vfs: SimVfs| {
            let file = vfs.open(Path::new(A), OpenMode::ReadWrite).unwrap();
            let byte = |at| (std::ops::Bound::Included(at), std::ops::Bound::Included(at));
            if file.lock_range(byte(first), Exclusive, Duration::ZERO).is_ok() {
                vfs.pause(Duration::from_secs(1));
                let _ = file.lock_range(byte(1 - first), Exclusive, Duration::ZERO);
            }
        }
    };
    let stuck = message(vec![Box::new(cross(0)), Box::new(cross(1))]);
    assert!(stuck.contains("seed 7") && stuck.contains("wait"), "{stuck}");
}

#[test]
fn pauses_cost_virtual_time_only() {
    let vfs = SimVfs::new();
    let started = std::time::Instant::now();
    let late = AtomicU64::new(0);
    let sleep = |vfs: SimVfs| {
        let before = vfs.monotonic();
        vfs.pause(Duration::from_secs(3600));
        late.fetch_add((vfs.monotonic() - before).as_secs(), Ordering::Relaxed);
    };
    vfs.interleaving(1).run(vec![Box::new(sleep), Box::new(sleep)]);
    assert_eq!(late.into_inner(), 7200);
    assert!(started.elapsed() < Duration::from_secs(60));
}
