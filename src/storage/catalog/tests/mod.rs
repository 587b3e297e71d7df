//! What the catalog promises: a model of its contents, long names, order of negative times, publishes that other
//! handles see, aborted publishes that nobody sees, repairs, and damage that is reported and never believed.

mod damage;
mod measure;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::error::{Error, ErrorKind, Result};
use crate::ids::{EpisodeId, NUMBER_END};
use crate::model::VectorSpace;
use crate::options::VectorElement;
use crate::storage::segment::Counts;
use crate::storage::vfs::{MemoryVfs, OpenMode, RealVfs, Vfs};

const ACCESS: Access = Access { cache_bytes: 8 << 20, busy_timeout: Duration::ZERO };

/// Numbers that look random and are the same in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

fn path() -> PathBuf {
    PathBuf::from("/catalog.redb")
}

fn meta() -> Meta {
    Meta {
        database: *b"0123456789abcdef",
        space: VectorSpace { name: "given".into(), dimension: 3, element: VectorElement::F16 },
        analyser: "words-7".into(),
        generation: 1,
        log_applied: LogId::new(0),
        next_segment: 1,
        next_user: 1,
        next_session: 1,
        codec_mean: None,
        codec_seed: 77,
    }
}

fn created() -> Arc<dyn Vfs> {
    let vfs: Arc<dyn Vfs> = Arc::new(MemoryVfs::new());
    CatalogWriter::create(&vfs, &path(), &meta(), ACCESS).unwrap();
    vfs
}

/// The bytes of the catalog.
fn bytes(vfs: &Arc<dyn Vfs>) -> Vec<u8> {
    let file = vfs.open(&path(), OpenMode::Read).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_exact_at(0, &mut bytes).unwrap();
    bytes
}

/// Puts other bytes in the catalog's place, as a file of its own that nobody has locked.
fn put(vfs: &Arc<dyn Vfs>, bytes: &[u8]) {
    vfs.remove_file(&path()).unwrap();
    vfs.open(&path(), OpenMode::CreateNew).unwrap().write_all_at(0, bytes).unwrap();
}

fn publish<T>(vfs: &Arc<dyn Vfs>, work: impl FnOnce(&mut CatalogTxn<'_>) -> Result<T>) -> T {
    let writer = CatalogWriter::open(vfs, &path(), ACCESS, false).unwrap();
    let value = writer.publish(work).unwrap();
    writer.close().unwrap();
    value
}

fn read(vfs: &Arc<dyn Vfs>) -> CatalogRead {
    CatalogReader::open(vfs, &path(), ACCESS).unwrap().begin().unwrap()
}

fn user(number: u64) -> UserNumber {
    UserNumber::new(number)
}

fn session(number: u64) -> SessionNumber {
    SessionNumber::new(number)
}

fn counts(rows: i64) -> Counts {
    Counts {
        rows,
        vectors: rows - 1,
        text_bytes: rows * 100,
        passages: rows,
        half_terms: rows * 26,
    }
}

fn manifest_row(segment: u64) -> ManifestRow {
    ManifestRow {
        segment: SegmentId::new(segment),
        bytes: 1000 + segment,
        footer_crc: 9,
        rows: 20_000,
        dead_rows: 3,
        deleted_rows: 2,
        dead_version: 1,
        ids: (segment, segment + 10),
    }
}

#[test]
fn handles_may_be_shared_between_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<CatalogReader>();
    shared::<CatalogRead>();
    shared::<CatalogWriter>();
}

#[test]
fn a_new_catalog_holds_its_meta_and_nothing_else() {
    let vfs = created();
    let view = read(&vfs);
    assert_eq!(view.meta().unwrap(), meta());
    assert_eq!(view.publish_state().unwrap(), (1, LogId::new(0)));
    let counts = view.row_counts().unwrap();
    assert_eq!(counts.len(), 23);
    assert!(counts.iter().all(|(name, rows)| *rows == if *name == "meta" { 2 } else { 0 }));
    let again = CatalogWriter::create(&vfs, &path(), &meta(), ACCESS).unwrap_err();
    assert_eq!(again.kind(), ErrorKind::Io);
}

#[test]
fn an_open_reader_follows_publishes_and_an_old_read_does_not_move() {
    let vfs = created();
    let reader = CatalogReader::open(&vfs, &path(), ACCESS).unwrap();
    let old = reader.begin().unwrap();
    let writer = CatalogWriter::open(&vfs, &path(), ACCESS, false).unwrap();
    for generation in 2..20 {
        writer
            .publish(|txn| {
                txn.set_publish_state(generation, LogId::new(generation * 10))?;
                txn.manifest_put(&manifest_row(generation))?;
                assert_eq!(txn.publish_state()?.0, generation, "a publish reads its own writes");
                Ok(())
            })
            .unwrap();
        let new = reader.begin().unwrap();
        assert_eq!(new.publish_state().unwrap(), (generation, LogId::new(generation * 10)));
        assert_eq!(new.manifest().unwrap().len() as u64, generation - 1);
        assert_eq!(old.publish_state().unwrap().0, 1);
        assert!(old.manifest().unwrap().is_empty());
    }
    writer.close().unwrap();
    assert_eq!(reader.identity(), vfs.identity(&path()).unwrap());
    assert_eq!(reader.begin().unwrap().meta().unwrap().log_applied, LogId::new(190));
}

#[test]
fn a_publish_that_fails_leaves_nothing_and_the_next_one_works() {
    let vfs = created();
    let writer = CatalogWriter::open(&vfs, &path(), ACCESS, false).unwrap();
    let error = writer
        .publish::<()>(|txn| {
            txn.user_add(user(1), b"a")?;
            txn.timeline_insert(user(1), 5, EpisodeId::new(1))?;
            Err(Error::limit("stop"))
        })
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Limit);
    writer.publish(|txn| txn.user_add(user(2), b"b")).unwrap();
    writer.close().unwrap();
    let view = read(&vfs);
    assert_eq!(view.user_number(b"a").unwrap(), None);
    assert_eq!(view.users(None, 10).unwrap(), [(Arc::from(&b"b"[..]), user(2))]);
    assert!(view.timeline(user(1), i64::MIN..i64::MAX, None, false, 9).unwrap().is_empty());
}

#[test]
fn a_catalog_of_a_dead_writer_says_so_and_a_writable_open_repairs_it() {
    let vfs = created();
    let writer = CatalogWriter::open(&vfs, &path(), ACCESS, false).unwrap();
    writer.publish(|txn| txn.user_add(user(1), b"a")).unwrap();
    // The bytes of this moment, without the locks of the writer: what a killed process leaves.
    put(&vfs, &bytes(&vfs));
    let error = CatalogReader::open(&vfs, &path(), ACCESS).unwrap_err();
    assert!(needs_repair(&error), "{error}");
    CatalogWriter::open(&vfs, &path(), ACCESS, false).unwrap().close().unwrap();
    assert_eq!(read(&vfs).user_number(b"a").unwrap(), Some(user(1)));
}

#[test]
fn names_and_keys_of_any_bytes_and_64_kib_are_found_whole() {
    let vfs = created();
    let long = vec![0xffu8; 64 << 10];
    let mut almost = long.clone();
    *almost.last_mut().unwrap() = 0xfe;
    let names: Vec<Vec<u8>> = vec![
        vec![],
        b"a".to_vec(),
        b"a\0".to_vec(),
        b"a\0b".to_vec(),
        b"a/%*_".to_vec(),
        vec![0xc3, 0x28],
        almost,
        long,
    ];
    let keys: Vec<String> = ["", "k", "k\0", "ключ"]
        .into_iter()
        .map(String::from)
        .chain(["x".repeat(64 << 10), "x".repeat((64 << 10) - 1)])
        .collect();
    publish(&vfs, |txn| {
        for (number, name) in (1..).zip(&names) {
            txn.user_add(user(number), name)?;
            for (id, key) in (1..).zip(&keys) {
                txn.key_set(user(number), key, EpisodeId::new(number * 100 + id))?;
                let number_of_session = session(number * 100 + id);
                let name = key.clone();
                txn.session_add(&SessionName {
                    user: user(number),
                    session: number_of_session,
                    name,
                })?;
            }
        }
        Ok(())
    });
    let view = read(&vfs);
    for (number, name) in (1..).zip(&names) {
        assert_eq!(view.user_number(name).unwrap(), Some(user(number)));
        assert_eq!(&*view.user_name(user(number)).unwrap().unwrap(), &name[..]);
        for (id, key) in (1..).zip(&keys) {
            let expected = number * 100 + id;
            assert_eq!(view.key(user(number), key).unwrap(), Some(EpisodeId::new(expected)));
            assert_eq!(view.session_number(user(number), key).unwrap(), Some(session(expected)));
            assert_eq!(view.session_name(session(expected)).unwrap().unwrap().name, *key);
        }
        let sessions: Vec<String> =
            view.sessions_of(user(number)).unwrap().into_iter().map(|s| s.name).collect();
        let mut sorted = keys.clone();
        sorted.sort();
        assert_eq!(sessions, sorted);
    }
    assert_eq!(view.user_number(b"a\0c").unwrap(), None);
    assert_eq!(view.key(user(1), "x").unwrap(), None);
    let mut listed = Vec::new();
    let mut after: Option<Arc<[u8]>> = None;
    loop {
        let page = view.users(after.as_deref(), 3).unwrap();
        let Some((last, _)) = page.last() else { break };
        after = Some(last.clone());
        listed.extend(page.into_iter().map(|(name, _)| name.to_vec()));
    }
    assert_eq!(listed, names, "the names above are in byte order");
}

#[test]
fn a_number_or_a_name_is_never_given_to_another() {
    let vfs = created();
    let name = |user_number, number, name: &str| SessionName {
        user: user(user_number),
        session: session(number),
        name: name.into(),
    };
    publish(&vfs, |txn| {
        txn.user_add(user(1), b"a")?;
        txn.user_add(user(1), b"a")?;
        assert_eq!(txn.user_add(user(2), b"a").unwrap_err().kind(), ErrorKind::Corrupt);
        assert_eq!(txn.user_add(user(1), b"b").unwrap_err().kind(), ErrorKind::Corrupt);
        txn.session_add(&name(1, 1, "s"))?;
        txn.session_add(&name(2, 2, "s"))?;
        assert!(txn.session_add(&name(1, 3, "s")).is_err());
        assert!(txn.session_add(&name(3, 1, "s")).is_err());
        Ok(())
    });
}

#[test]
fn listings_agree_with_a_sorted_set_for_negative_times_cursors_and_both_directions() {
    let vfs = created();
    let mut random = Random(11);
    let mut model: BTreeSet<(u64, i64, u64)> = BTreeSet::new();
    let times = [i64::MIN, -1_000_000, -2, -1, 0, 1, 2, 1_000_000, i64::MAX - 1];
    for id in 1..400 {
        let time = times[random.below(times.len() as u64) as usize];
        model.insert((1 + random.below(3), time, id));
    }
    let removed: Vec<_> = model.iter().copied().filter(|row| row.2 % 7 == 0).collect();
    publish(&vfs, |txn| {
        for &(owner, time, id) in &model {
            assert!(txn.timeline_insert(user(owner), time, EpisodeId::new(id))?);
            assert!(txn.recorded_insert(user(owner), -time.max(-5), EpisodeId::new(id))?);
        }
        for &(owner, time, id) in &removed {
            assert!(txn.timeline_remove(user(owner), time, EpisodeId::new(id))?);
            assert!(!txn.timeline_remove(user(owner), time, EpisodeId::new(id))?);
        }
        Ok(())
    });
    for row in &removed {
        model.remove(row);
    }
    let view = read(&vfs);
    for _ in 0..3000 {
        let owner = random.below(4);
        let mut pick = || times[random.below(times.len() as u64) as usize];
        let (start, end) = (pick(), pick());
        let after =
            (random.below(2) == 0).then(|| (pick_of(&mut random, &times), random.below(400)));
        let descending = random.below(2) == 0;
        let limit = random.below(30) as usize;
        let mut expected: Vec<(i64, u64)> = model
            .iter()
            .filter(|row| row.0 == owner && (start..end).contains(&row.1))
            .map(|row| (row.1, row.2))
            .filter(|row| {
                after.is_none_or(|after| if descending { *row < after } else { *row > after })
            })
            .collect();
        if descending {
            expected.reverse();
        }
        expected.truncate(limit);
        let found = view.timeline(user(owner), start..end, after, descending, limit).unwrap();
        assert_eq!(found, expected, "{owner} {start}..{end} {after:?} {descending} {limit}");
    }
    let passed: Vec<_> = view
        .timeline_rows()
        .unwrap()
        .map(|row| row.unwrap())
        .map(|(u, t, id)| (u.get(), t, id.get()))
        .collect();
    assert_eq!(passed, model.iter().copied().collect::<Vec<_>>());
    let recorded: Vec<(i64, u64)> = view
        .recorded_rows()
        .unwrap()
        .map(|row| row.unwrap())
        .filter(|(owner, time, _)| owner.get() == 1 && *time < 0)
        .map(|(_, time, id)| (time, id.get()))
        .collect();
    assert!(!recorded.is_empty());
    assert_eq!(view.recorded(user(1), i64::MIN..0, None, false, 999).unwrap(), recorded);
}

fn pick_of(random: &mut Random, times: &[i64]) -> i64 {
    times[random.below(times.len() as u64) as usize]
}

#[test]
fn a_sessions_order_agrees_with_a_sorted_set_through_splits_and_removals() {
    let vfs = created();
    let mut random = Random(5);
    let mut model: BTreeMap<u64, BTreeSet<SessionEntry>> = BTreeMap::new();
    let writer = CatalogWriter::open(&vfs, &path(), ACCESS, false).unwrap();
    for round in 0..60u64 {
        writer
            .publish(|txn| {
                for number in 1..4u64 {
                    let set = model.entry(number).or_default();
                    let size = [1, 3, 40, 700][random.below(4) as usize];
                    let live = number == 1;
                    let inserts: Vec<SessionEntry> = (0..size)
                        .map(|n| SessionEntry {
                            time: if live {
                                (round * 1000 + n) as i64
                            } else {
                                random.below(2000) as i64 - 1000
                            },
                            ordinal: random.below(3),
                            id: random.below(1000),
                        })
                        .collect();
                    let removes: Vec<SessionEntry> = set
                        .iter()
                        .copied()
                        .filter(|_| round % 3 == 2 && random.below(3) == 0)
                        .chain([SessionEntry { time: 12345, ordinal: 9, id: 9 }])
                        .collect();
                    let mut expected = SessionChange::default();
                    for entry in &removes {
                        if !inserts.contains(entry) {
                            expected.removed += usize::from(set.remove(entry));
                        }
                    }
                    for entry in &inserts {
                        expected.inserted += usize::from(set.insert(*entry));
                    }
                    let done = txn.session_apply(session(number), &inserts, &removes)?;
                    assert_eq!(done, expected);
                }
                Ok(())
            })
            .unwrap();
    }
    let all: Vec<SessionEntry> = model[&3].iter().copied().collect();
    publish_on(&writer, |txn| {
        txn.session_apply(session(3), &[], &all)?;
        assert!(txn.session_insert(session(4), all[0])?);
        assert!(!txn.session_insert(session(4), all[0])?);
        assert!(txn.session_remove(session(4), all[0])?);
        assert!(!txn.session_remove(session(4), all[0])?);
        Ok(())
    });
    model.get_mut(&3).unwrap().clear();
    writer.close().unwrap();

    let view = read(&vfs);
    let mut chunks = 0;
    for row in view.session_order_rows().unwrap() {
        assert!((1..=256).contains(&row.unwrap().1.len()));
        chunks += 1;
    }
    let rows: usize = model.values().map(BTreeSet::len).sum();
    assert!(chunks < rows / 20, "{chunks} chunks for {rows} entries");
    for (number, set) in &model {
        assert_eq!(
            view.session_entries(session(*number)).unwrap(),
            set.iter().copied().collect::<Vec<_>>()
        );
        for _ in 0..2000 {
            let known = set.iter().nth(random.below(set.len().max(1) as u64) as usize).copied();
            let probe = match known {
                Some(known) if random.below(3) > 0 => known,
                _ => SessionEntry { time: random.below(60_000) as i64 - 2000, ordinal: 1, id: 500 },
            };
            let before = set.range(..probe).next_back().copied();
            let after = set
                .range((std::ops::Bound::Excluded(probe), std::ops::Bound::Unbounded))
                .next()
                .copied();
            assert_eq!(view.session_before(session(*number), probe).unwrap(), before);
            assert_eq!(view.session_after(session(*number), probe).unwrap(), after);
            let chunk = view.session_chunk(session(*number), probe).unwrap();
            assert_eq!(chunk.contains(&probe), set.contains(&probe));
            assert_eq!(chunk.is_empty(), set.is_empty());
        }
    }
}

fn publish_on<T>(writer: &CatalogWriter, work: impl FnOnce(&mut CatalogTxn<'_>) -> Result<T>) -> T {
    writer.publish(work).unwrap()
}

#[test]
fn turns_that_come_in_order_fill_their_chunks() {
    let vfs = created();
    publish(&vfs, |txn| {
        for n in 0..1024 {
            txn.session_insert(session(1), SessionEntry { time: n, ordinal: 0, id: n as u64 })?;
        }
        Ok(())
    });
    let lengths: Vec<usize> =
        read(&vfs).session_order_rows().unwrap().map(|row| row.unwrap().1.len()).collect();
    assert_eq!(lengths, [256; 4]);
}

#[test]
fn ended_rows_are_replaced_whole() {
    let vfs = created();
    let segment = SegmentId::new(7);
    let many: Vec<u32> = (0..50_000).filter(|row| row % 3 != 1).collect();
    for rows in [vec![0], many, vec![4095, 4096, u32::MAX - 1], vec![], vec![100_000]] {
        publish(&vfs, |txn| txn.dead_set(segment, &rows));
        let view = read(&vfs);
        assert_eq!(view.dead(segment).unwrap(), rows);
        assert!(view.dead(SegmentId::new(6)).unwrap().is_empty());
        let passed: Vec<u32> = view.dead_rows().unwrap().flat_map(|row| row.unwrap().1).collect();
        assert_eq!(passed, rows);
    }
    publish(&vfs, |txn| txn.dead_remove(segment));
    assert!(read(&vfs).dead(segment).unwrap().is_empty());
}

#[test]
fn statistics_add_up_and_a_row_of_zeros_is_removed() {
    let vfs = created();
    let negative = counts(5).negated();
    publish(&vfs, |txn| {
        txn.statistics_add(user(1), counts(5))?;
        txn.statistics_add(user(2), counts(9))?;
        txn.statistics_add(user(1), negative)
    });
    let view = read(&vfs);
    assert_eq!(view.statistics(user(1)).unwrap(), Counts::default());
    assert_eq!(view.statistics(user(2)).unwrap(), counts(9));
    assert_eq!(view.statistics_total().unwrap(), counts(9));
    let rows: Vec<_> = view.statistics_rows().unwrap().map(|row| row.unwrap()).collect();
    assert_eq!(rows, [(Some(user(2)), counts(9)), (None, counts(9))]);
    let writer = CatalogWriter::open(&vfs, &path(), ACCESS, false).unwrap();
    let huge = Counts { rows: i64::MAX, ..Counts::default() };
    let error = writer.publish(|txn| txn.statistics_add(user(2), huge)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
}

#[test]
fn a_tombstone_only_grows() {
    let vfs = created();
    let id = EpisodeId::new(3);
    publish(&vfs, |txn| {
        for (put, expected) in [
            ((1, true), (1, true)),
            ((2, false), (2, false)),
            ((2, true), (2, false)),
            ((1, false), (2, false)),
            ((3, true), (3, true)),
            ((3, false), (3, false)),
        ] {
            txn.tombstone_put(id, put.0, put.1)?;
            assert_eq!(txn.tombstone(id)?, Some(expected));
        }
        assert!(txn.tombstone_remove(id)?);
        assert!(!txn.tombstone_remove(id)?);
        Ok(())
    });
    assert_eq!(read(&vfs).tombstone(id).unwrap(), None);
}

#[test]
fn meta_with_a_mean_of_the_largest_dimension_survives() {
    let vfs = created();
    let mut large = meta();
    large.space.dimension = 4096;
    large.space.name = "n".repeat(1000);
    large.codec_mean = Some((0..4096).map(|n| n as f32 * 0.5).collect());
    large.generation = 5;
    large.log_applied = LogId::new(NUMBER_END - 1);
    large.next_user = NUMBER_END - 1;
    publish(&vfs, |txn| txn.set_meta(&large));
    assert_eq!(read(&vfs).meta().unwrap(), large);
    for beyond in
        [Meta { next_user: NUMBER_END, ..large.clone() }, Meta { generation: u64::MAX, ..large }]
    {
        publish(&vfs, |txn| txn.set_meta(&beyond));
        assert!(read(&vfs).meta().is_err());
    }
}

#[test]
fn a_catalog_on_a_real_disk_serves_readers_beside_a_writer() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("catalog.redb");
    let vfs: Arc<dyn Vfs> = Arc::new(RealVfs::new());
    CatalogWriter::create(&vfs, &path, &meta(), ACCESS).unwrap();
    let reader = CatalogReader::open(&vfs, &path, ACCESS).unwrap();
    let writer = CatalogWriter::open(&vfs, &path, ACCESS, true).unwrap();
    let beside = CatalogReader::open(&vfs, &path, ACCESS).unwrap();
    for generation in 2..6 {
        writer
            .publish(|txn| {
                txn.user_add(user(generation), &generation.to_le_bytes())?;
                txn.set_publish_state(generation, LogId::new(generation))
            })
            .unwrap();
        for reader in [&reader, &beside] {
            let view = reader.begin().unwrap();
            assert_eq!(view.publish_state().unwrap().0, generation);
            assert_eq!(view.users(None, 9).unwrap().len() as u64, generation - 1);
        }
    }
    writer.close().unwrap();
    assert_eq!(reader.begin().unwrap().publish_state().unwrap().0, 5);
    assert_eq!(reader.identity(), vfs.identity(&path).unwrap());
    let missing = directory.path().join("missing.redb");
    assert_eq!(CatalogReader::open(&vfs, &missing, ACCESS).unwrap_err().kind(), ErrorKind::Io);
}
