//! Damaged catalogs: an error or right values with the integrity check, no panic and no endless pass without it.

use super::*;

/// Everything that can be read, in one comparable value.
fn everything(view: &impl CatalogView) -> Result<String> {
    fn all<T: std::fmt::Debug>(rows: Result<Rows<'_, T>>) -> Result<String> {
        Ok(format!("{:?}", rows?.collect::<Result<Vec<T>>>()?))
    }
    let mut dead = Vec::new();
    for row in view.manifest()? {
        dead.push(view.dead(row.segment)?);
    }
    Ok([
        format!("{:?} {:?} {dead:?}", view.meta()?, view.manifest()?),
        all(view.user_rows())?,
        all(view.user_name_rows())?,
        all(view.session_rows())?,
        all(view.session_name_rows())?,
        all(view.session_order_rows())?,
        all(view.key_rows())?,
        all(view.timeline_rows())?,
        all(view.recorded_rows())?,
        all(view.tombstone_rows())?,
        all(view.dead_rows())?,
        all(view.statistics_rows())?,
        format!("{:?}", view.row_counts()?),
    ]
    .concat())
}

fn fill(txn: &mut CatalogTxn<'_>, users: u64, rows: u64) -> Result<()> {
    for number in 1..=users {
        let owner = user(number);
        txn.user_add(owner, format!("user {number}").as_bytes())?;
        let name = format!("session {number}");
        txn.session_add(&SessionName { user: owner, session: session(number), name })?;
        let entries: Vec<SessionEntry> = (0..rows)
            .map(|n| SessionEntry { time: n as i64 - 50, ordinal: n % 2, id: number * 100_000 + n })
            .collect();
        txn.session_apply(session(number), &entries, &[])?;
        for entry in entries {
            let id = EpisodeId::new(entry.id);
            txn.timeline_insert(owner, entry.time, id)?;
            txn.recorded_insert(owner, entry.time * 3, id)?;
            txn.key_set(owner, &format!("key {}", entry.id), id)?;
        }
        txn.statistics_add(owner, counts(rows as i64))?;
        txn.tombstone_put(EpisodeId::new(number), 1, number % 2 == 0)?;
        txn.manifest_put(&manifest_row(number))?;
        txn.dead_set(SegmentId::new(number), &[1, 2, 9000])?;
    }
    Ok(())
}

/// Opens with the integrity check and reads everything, as `verify` does.
fn checked(vfs: &Arc<dyn Vfs>) -> Result<String> {
    let writer = CatalogWriter::open(vfs, &path(), ACCESS, true)?;
    let inside = writer.publish(|txn| everything(txn))?;
    writer.close()?;
    let outside = everything(&CatalogReader::open(vfs, &path(), ACCESS)?.begin()?)?;
    assert_eq!(inside, outside);
    Ok(outside)
}

#[test]
fn damaged_bytes_give_an_error_or_right_values() {
    let vfs = created();
    publish(&vfs, |txn| fill(txn, 4, 120));
    let before = everything(&read(&vfs)).unwrap();
    publish(&vfs, |txn| {
        txn.set_publish_state(2, LogId::new(4))?;
        txn.manifest_put(&manifest_row(77))
    });
    let good = bytes(&vfs);
    let expected = everything(&read(&vfs)).unwrap();
    assert_eq!(checked(&vfs).unwrap(), expected);
    assert_ne!(before, expected);

    let mut random = Random(99);
    let (mut errors, mut right) = (0, 0);
    let mut try_bytes = |bytes: Vec<u8>, what: String| {
        put(&vfs, &bytes);
        match checked(&vfs) {
            Ok(found) => {
                assert!(found == expected, "wrong values: {what}");
                right += 1;
            }
            Err(error) => {
                assert!(!format!("{error:?}").contains("user 1"), "{what}");
                errors += 1;
            }
        }
    };
    let somewhere: Vec<usize> =
        (0..1500).map(|_| random.below(good.len() as u64) as usize).collect();
    for byte in (0..640).chain(somewhere.iter().copied()) {
        let mut bad = good.clone();
        bad[byte] ^= 1 << random.below(8);
        try_bytes(bad, format!("bit of byte {byte}"));
    }
    for _ in 0..150 {
        let from = (random.below(good.len() as u64) & !511) as usize;
        let end = (from + 512 * (1 + random.below(16) as usize)).min(good.len());
        let fill = [0, 0xff][random.below(2) as usize];
        let mut bad = good.clone();
        bad[from..end].fill(fill);
        try_bytes(bad, format!("{fill:#x} from {from} to {end}"));
    }
    for cut in (0..128).chain(somewhere.into_iter().take(100)) {
        try_bytes(good[..cut].to_vec(), format!("cut at {cut}"));
    }
    println!("{} bytes: {errors} errors, {right} right", good.len());
    assert!(errors > 100 && right > 0);
}

#[test]
fn a_plain_open_of_damaged_bytes_lets_no_panic_out() {
    let vfs = created();
    publish(&vfs, |txn| fill(txn, 4, 120));
    let good = bytes(&vfs);
    let mut random = Random(3);
    for _ in 0..400 {
        let mut bad = good.clone();
        let from = random.below(good.len() as u64) as usize;
        let end = (from + 1 + random.below(64) as usize).min(good.len());
        for byte in &mut bad[from..end] {
            *byte = random.next() as u8;
        }
        put(&vfs, &bad);
        let _ = CatalogReader::open(&vfs, &path(), ACCESS)
            .and_then(|reader| everything(&reader.begin()?));
        if let Ok(writer) = CatalogWriter::open(&vfs, &path(), ACCESS, false) {
            let _ = writer.publish(|txn| fill(txn, 5, 20));
            let _ = writer.close();
        }
    }
}

#[test]
fn an_empty_file_is_never_made_a_catalog() {
    let vfs = created();
    for damaged in [vec![], vec![0; 5], vec![0; 4096], b"text".to_vec()] {
        put(&vfs, &damaged);
        for error in [
            CatalogWriter::open(&vfs, &path(), ACCESS, false).unwrap_err(),
            CatalogWriter::open(&vfs, &path(), ACCESS, true).unwrap_err(),
            CatalogReader::open(&vfs, &path(), ACCESS).unwrap_err(),
        ] {
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{error:?}");
        }
        assert_eq!(bytes(&vfs), damaged);
    }
}
