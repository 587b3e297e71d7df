//! What the catalog costs, printed.

use std::time::Instant;

use super::*;

fn access() -> Access {
    Access { cache_bytes: 32 << 20, ..ACCESS }
}

/// Prints what a checkpoint of 4,096 rows costs on a catalog of 100,000 rows, and what reads cost, without the disk.
#[test]
#[ignore = "a measurement"]
fn publish_of_4096_rows_takes_this_long() {
    let vfs = created();
    publish(&vfs, |txn| {
        for part in 0..25 {
            rows_of_a_checkpoint(txn, part)?;
        }
        Ok(())
    });
    let writer = CatalogWriter::open(&vfs, &path(), access(), false).unwrap();
    for part in 25..33 {
        let start = Instant::now();
        writer
            .publish(|txn| {
                rows_of_a_checkpoint(txn, part)?;
                println!("  rows in after {:?}", start.elapsed());
                txn.set_publish_state(part, LogId::new(part))
            })
            .unwrap();
        println!("publish of 4,096 rows: {:?}", start.elapsed());
    }
    writer.close().unwrap();
    let start = Instant::now();
    let reader = CatalogReader::open(&vfs, &path(), access()).unwrap();
    println!("open: {:?}", start.elapsed());
    measure("begin", || {
        reader.begin().unwrap();
    });
    measure("begin + publish_state", || {
        reader.begin().unwrap().publish_state().unwrap();
    });
    let view = reader.begin().unwrap();
    measure("publish_state", || {
        view.publish_state().unwrap();
    });
    let entry = view.session_entries(session(3)).unwrap()[200];
    measure("session_before", || {
        view.session_before(session(3), entry).unwrap();
    });
    measure("session_after", || {
        view.session_after(session(3), entry).unwrap();
    });
    measure("key", || {
        view.key(user(3), "conversation-3/turn-17").unwrap();
    });
    measure("timeline of 20", || {
        view.timeline(user(3), i64::MIN..i64::MAX, None, true, 20).unwrap();
    });
}

fn measure(name: &str, mut call: impl FnMut()) {
    let rounds = 10_000;
    let start = Instant::now();
    for _ in 0..rounds {
        call();
    }
    println!("{name}: {:?}", start.elapsed() / rounds);
}

fn rows_of_a_checkpoint(txn: &mut CatalogTxn<'_>, part: u64) -> Result<()> {
    const USERS: u64 = 16;
    for number in 1..=USERS {
        let owner = user(number);
        let ids: Vec<u64> = (0..4096 / USERS).map(|n| part * 4096 + n * USERS + number).collect();
        let entry = |id: u64| SessionEntry { time: (id * 1_000_000) as i64, ordinal: 0, id };
        for id in &ids {
            txn.timeline_insert(owner, entry(*id).time, EpisodeId::new(*id))?;
        }
        for id in &ids {
            txn.recorded_insert(owner, 5_000_000_000 + *id as i64, EpisodeId::new(*id))?;
        }
        let mut keys: Vec<(String, u64)> =
            ids.iter().map(|id| (format!("conversation-{number}/turn-{id}"), *id)).collect();
        keys.sort();
        for (key, id) in keys {
            txn.key_set(owner, &key, EpisodeId::new(id))?;
        }
        let entries: Vec<SessionEntry> = ids.iter().map(|id| entry(*id)).collect();
        txn.session_apply(session(number), &entries, &[])?;
        txn.statistics_add(owner, counts(ids.len() as i64))?;
    }
    txn.manifest_put(&manifest_row(part + 1))
}
