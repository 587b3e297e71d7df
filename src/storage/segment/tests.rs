//! Tests of writer and reader together: round trips, look-ups, latencies. `hostile.rs` builds on the same rows.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::example::{self, simple_terms, write_example};
use super::*;
use crate::error::ErrorKind;
use crate::model::{Body, Frequencies, RowTerms, Shape, pack_vector};
use crate::options::VectorElement;
use crate::storage::vfs::{FileIdentity, LockKind, LockRange, Map, VfsFile};
use crate::storage::wire;

const DATABASE: [u8; 16] = [9; 16];
const ID: SegmentId = SegmentId::new(77);
pub(super) const DIMENSION: usize = 12;

/// Words for texts that compress about as talk does.
const WORDS: &str = "the I you and to a of that it in we is was for have on my with so do just really \
    think know about time going remember yesterday weekend garden sister camping painting mountain \
    appointment Barcelona pottery";

/// A file in memory. Every other write is short, as a disk may do.
#[derive(Debug, Default)]
struct MemoryFile(Mutex<(Vec<u8>, u64)>);

impl VfsFile for MemoryFile {
    fn read_at(&self, _offset: u64, _buffer: &mut [u8]) -> io::Result<usize> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<usize> {
        let (contents, writes) = &mut *self.0.lock().unwrap();
        assert_eq!(offset, contents.len() as u64, "a segment is written front to back");
        *writes += 1;
        let count = if *writes % 2 == 0 { bytes.len() } else { bytes.len().div_ceil(2) };
        contents.extend_from_slice(&bytes[..count]);
        Ok(count)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.0.lock().unwrap().0.len() as u64)
    }

    fn set_len(&self, _len: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn sync_data(&self) -> io::Result<()> {
        panic!("the writer leaves the sync to its caller")
    }

    fn set_read_only(&self) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn identity(&self) -> io::Result<FileIdentity> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn try_lock(&self, _kind: LockKind) -> io::Result<bool> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn unlock(&self) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn try_lock_range(&self, _range: LockRange, _kind: LockKind) -> io::Result<bool> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn lock_range(&self, _range: LockRange, _kind: LockKind, _: Duration) -> io::Result<bool> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn unlock_range(&self, _range: LockRange) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn query_lock_range(&self, _range: LockRange) -> io::Result<bool> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// A small generator (xorshift64*): the same numbers everywhere.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Row {
    pub(super) head: RowHead,
    vector: Vec<u8>,
    pub(super) body: Vec<u8>,
    /// Empty for a row that is no episode.
    lengths: Vec<PassageLength>,
    speaker: Option<String>,
}

impl Row {
    pub(super) fn set_vector(&mut self, values: &[f32]) {
        self.vector = pack_vector(values, VectorElement::F32);
    }

    /// The terms of an episode.
    fn terms(&self) -> Option<RowTerms> {
        // A test that damages the body has no use for its terms.
        let text = wire::decode(&self.body).map_or_else(|_| String::new(), |body: Body| body.text);
        let speaker = self.speaker.as_deref();
        (self.head.kind == RowKind::Episode).then(|| simple_terms(&text, speaker))
    }
}

pub(super) struct Rows(pub(super) Vec<Row>);

impl RowSource for Rows {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn head(&self, row: usize) -> Result<RowHead> {
        Ok(self.0[row].head)
    }

    fn vector(&self, row: usize, out: &mut Vec<u8>) -> Result<()> {
        out.extend_from_slice(&self.0[row].vector);
        Ok(())
    }

    fn code(&self, row: usize, codec: &Codec, out: &mut Vec<u8>) -> Result<Option<f32>> {
        // Every third row has its code at hand.
        if !row.is_multiple_of(3) {
            return Ok(None);
        }
        out.resize(codec.code_bytes(), row as u8);
        Ok(Some(row as f32))
    }

    fn body(&self, row: usize, out: &mut Vec<u8>) -> Result<()> {
        out.extend_from_slice(&self.0[row].body);
        Ok(())
    }

    fn speaker(&self, row: usize) -> Result<Option<&str>> {
        Ok(self.0[row].speaker.as_deref())
    }

    fn passages(&self, row: usize, out: &mut Vec<PassageLength>) -> Result<()> {
        out.extend(&self.0[row].lengths);
        Ok(())
    }

    fn terms(&self, rows: Range<usize>, starts: &[u32], put: &mut PutTerm<'_>) -> Result<()> {
        let terms = rows.map(|row| (starts[row], self.0[row].terms().unwrap()));
        let terms: Vec<_> = terms.collect();
        invert(terms.iter().map(|(start, terms)| (*start, terms)), put)
    }
}

pub(super) fn space(dimension: usize) -> VectorSpace {
    let name = "test space".to_owned();
    VectorSpace { name, dimension: dimension as u32, element: VectorElement::F32 }
}

fn encoded_body(text: String, session: u64, speaker: Option<String>) -> Vec<u8> {
    wire::encode(&Body {
        text,
        session: (session > 0).then(|| format!("session {session}")),
        speaker,
        agent: None,
        key: None,
        metadata: String::new(),
        tags: vec!["one".to_owned()],
    })
}

/// Rows of several users, kinds and versions, with bodies whose text has about the given lengths in turn.
pub(super) fn random_rows(
    random: &mut Random,
    count: usize,
    lengths: &[usize],
    dimension: usize,
) -> Rows {
    let words: Vec<&str> = WORDS.split(' ').collect();
    let mut rows: Vec<Row> = (0..count)
        .map(|number| {
            let user = 1 + random.below(4);
            let session = random.below(3) * (user + 10);
            let wanted = lengths[number % lengths.len()];
            let mut text = String::new();
            while text.len() < wanted {
                let word = random.below(30) * random.below(30) / 30;
                text.push_str(words[word as usize]);
                text.push(' ');
            }
            text.truncate(wanted);
            let has_vector = random.below(4) > 0;
            let vector: Vec<f32> =
                (0..dimension).map(|_| random.below(2000) as f32 / 1000.0 - 1.0).collect();
            let kind = RowKind::from_number(random.below(5).saturating_sub(1) as u8).unwrap();
            let speaker = random.below(3).checked_sub(1);
            let speaker = speaker.map(|who| ["Ada", "Bob I"][who as usize].to_owned());
            let terms = (kind == RowKind::Episode).then(|| simple_terms(&text, speaker.as_deref()));
            let shape = terms
                .as_ref()
                .map(RowTerms::shape)
                .unwrap_or_else(|| Shape { words: random.next() as u32, ..Shape::default() });
            let head = RowHead {
                id: EpisodeId::new(100 + number as u64 / 3 * 2),
                version: 1 + number as u32 % 3,
                kind,
                user: UserNumber::new(user),
                cluster: random.below(2) as u32,
                session: SessionNumber::new(session),
                ordinal: random.next(),
                time: random.next() as i64,
                offset_minutes: random.next() as i16,
                record_time: random.next() as i64,
                first_record_time: random.next() as i64,
                expires: random.next() as i64,
                has_vector,
                text_bytes: text.len() as u32,
                shape,
            };
            Row {
                head,
                vector: if has_vector { pack_vector(&vector, VectorElement::F32) } else { vec![] },
                body: encoded_body(text, session, speaker.clone()),
                lengths: terms.iter().flat_map(PassageLength::of).collect(),
                speaker,
            }
        })
        .collect();
    rows.sort_by_key(|Row { head, .. }| {
        (head.user, head.kind, head.cluster, head.id, head.version)
    });
    Rows(rows)
}

pub(super) fn input<'a>(space: &'a VectorSpace, codec: Option<&'a Codec>) -> SegmentInput<'a> {
    let user = |number: u64| (UserNumber::new(number), Arc::from(format!("u{number}").as_bytes()));
    let session = |number: u64, user: u64| {
        (SessionNumber::new(number), UserNumber::new(user), format!("session {number}"))
    };
    let tombstone = |id: u64, version: u32| Tombstone {
        id: EpisodeId::new(id),
        version,
        user: UserNumber::new(2),
        record_time: 5,
        superseded: version == 1,
        counts: Counts {
            rows: -1,
            text_bytes: -(id as i64),
            passages: -1,
            half_terms: -(id as i64),
            ..Counts::default()
        },
    };
    let mut sessions: Vec<(SessionNumber, UserNumber, String)> =
        (1..5).flat_map(|u| [session(u + 10, u), session(2 * (u + 10), u)]).collect();
    sessions.sort_by_key(|entry| entry.0);
    SegmentInput {
        id: ID,
        database: DATABASE,
        space,
        codec,
        clustered_from: 8,
        logs: (LogId::new(3), LogId::new(5)),
        replaces: vec![SegmentId::new(70), SegmentId::new(71)],
        users: (1..5).map(user).collect(),
        sessions,
        tombstones: vec![tombstone(7, 1), tombstone(7, 2), tombstone(9, 1)],
    }
}

pub(super) fn write(input: &SegmentInput<'_>, rows: &Rows) -> (Vec<u8>, SegmentSummary) {
    let file = MemoryFile::default();
    let summary = write_segment(&file, input, rows).unwrap();
    let bytes = file.0.into_inner().unwrap().0;
    assert_eq!(summary.bytes, bytes.len() as u64);
    assert_eq!(summary.rows as usize, rows.0.len());
    (bytes, summary)
}

pub(super) fn codec() -> Codec {
    Codec::new(vec![0.25; DIMENSION], 11)
}

pub(super) fn open(bytes: &[u8]) -> Result<Segment> {
    Segment::open(Map::from_bytes(bytes.into()), "/some/0000004d.seg", DATABASE, None)
}

/// The terms of one user, each with all its postings.
type TermLists = Vec<(String, Vec<Posting>)>;

/// All that a segment answers.
#[derive(Debug, PartialEq)]
pub(super) struct Contents {
    rows: Vec<Row>,
    lexicons: Vec<(UserNumber, TermLists)>,
    speakers: Vec<(UserNumber, Vec<Speaker>)>,
    found: Vec<Vec<u32>>,
    codes: Option<Vec<u8>>,
    factors: Option<Vec<[u8; 4]>>,
    codec: Option<CodecParameters>,
    cells: Vec<Cell>,
    tombstones: Vec<Tombstone>,
    users: Vec<(UserNumber, Arc<[u8]>)>,
    sessions: Vec<(SessionNumber, UserNumber, String)>,
    ids: (u64, u64),
    logs: (LogId, LogId),
    replaces: Vec<SegmentId>,
    space: VectorSpace,
}

pub(super) fn read_all(segment: &Segment) -> Result<Contents> {
    let mut rows = Vec::new();
    for row in 0..segment.rows() {
        let mut body = Vec::new();
        segment.body(row, &mut body)?;
        let vector = segment.vector(row)?.unwrap_or_default().to_vec();
        let head = segment.head(row)?;
        let lengths = segment.passage_lengths(segment.passages_of(row..row + 1)?)?;
        let lengths = lengths.iter().map(|length| PassageLength::decode(*length)).collect();
        let speaker = segment.speaker_of(row, head.user)?.map(|speaker| speaker.name.to_string());
        rows.push(Row { head, vector, body, lengths, speaker });
    }
    let (mut lexicons, mut speakers) = (Vec::new(), Vec::new());
    for number in 1..5 {
        let user = UserNumber::new(number);
        lexicons.push((user, read_lexicon(segment, user)?));
        speakers.push((user, segment.speakers(user)?));
    }
    let mut found = Vec::new();
    for id in 95..200 {
        found.push(segment.find(EpisodeId::new(id))?.collect());
    }
    let all = 0..segment.rows();
    Ok(Contents {
        rows,
        lexicons,
        speakers,
        found,
        codes: segment.codes(all.clone())?.map(<[u8]>::to_vec),
        factors: segment.factors(all)?.map(<[[u8; 4]]>::to_vec),
        codec: segment.codec()?,
        cells: segment.cells().to_vec(),
        tombstones: segment.tombstones()?,
        users: segment.users()?,
        sessions: segment.sessions()?,
        ids: segment.ids(),
        logs: segment.logs(),
        replaces: segment.replaces().to_vec(),
        space: segment.space().clone(),
    })
}

/// The terms of one user, each with all its postings.
pub(super) fn read_lexicon(segment: &Segment, user: UserNumber) -> Result<TermLists> {
    let Some(lexicon) = segment.lexicon(user)? else { return Ok(Vec::new()) };
    let (mut terms, mut block) = (Vec::new(), Vec::new());
    let mut cursor = lexicon.terms();
    while let Some((term, postings)) = cursor.next()? {
        let mut all = Vec::new();
        for number in 0..postings.block_count() {
            postings.decode(number, &mut block)?;
            all.extend_from_slice(&block);
        }
        terms.push((term.to_owned(), all));
    }
    Ok(terms)
}

#[test]
fn every_row_comes_back_from_what_was_written() {
    let lengths = [0, 1, 40, 8191 - 60, 300, 7000, 8192, 8193, 2, 1 << 20, 100, 3 * 8192 - 35, 500];
    for (seed, with_codes) in [(1, true), (2, false)] {
        let rows = random_rows(&mut Random(seed), 130, &lengths, DIMENSION);
        let (space, codec) = (space(DIMENSION), codec());
        let input = input(&space, with_codes.then_some(&codec));
        let (bytes, summary) = write(&input, &rows);
        let expected = Some((ID, summary.bytes, summary.footer_crc));
        let map = Map::from_bytes(bytes.as_slice().into());
        let segment = Segment::open(map, "/some/0000004d.seg", DATABASE, expected).unwrap();
        let contents = read_all(&segment).unwrap();
        assert_eq!(contents.rows, rows.0);
        assert_eq!(contents.lexicons, expected_lexicons(&rows));
        assert_eq!(contents.tombstones, input.tombstones);
        assert_eq!(contents.users, input.users);
        assert_eq!(contents.sessions, input.sessions);
        assert_eq!(segment.id(), ID);
        assert_eq!(contents.ids, (100, 100 + 129 / 3 * 2));
        assert_eq!(contents.logs, input.logs);
        assert_eq!(contents.replaces, input.replaces);
        assert_eq!(contents.space, space);
        assert_eq!(contents.codes.is_some(), with_codes);
        if let (Some(codes), Some(factors)) = (contents.codes, contents.factors) {
            check_codes(&rows, &codec, &codes, &factors);
        }
        let problems = segment.verify(true);
        assert!(problems.is_empty(), "seed {seed}: {problems:?}");
        assert_eq!(write(&input, &rows).0, bytes, "equal input gives equal bytes");
    }
}

/// The lexicons of `rows`, by the slow way: each passage says what it holds.
fn expected_lexicons(rows: &Rows) -> Vec<(UserNumber, TermLists)> {
    let mut lexicons: BTreeMap<u64, BTreeMap<String, Vec<Posting>>> =
        (1..5).map(|user| (user, BTreeMap::new())).collect();
    let mut passage = 0;
    for row in &rows.0 {
        let lexicon = lexicons.get_mut(&row.head.user.get()).unwrap();
        let Some(terms) = row.terms() else { continue };
        for texts in &terms.passages {
            let mut all: BTreeMap<&str, Frequencies> = BTreeMap::new();
            for term in texts {
                all.entry(&term.term).or_default().text = term.frequency;
            }
            for term in &terms.head {
                let frequencies = all.entry(&term.term).or_default();
                (frequencies.speaker, frequencies.date) = (term.speaker, term.date);
            }
            for (term, frequencies) in all {
                let list = lexicon.entry(term.to_owned()).or_default();
                list.push(Posting { passage, frequencies });
            }
            passage += 1;
        }
    }
    let pairs = lexicons.into_iter();
    pairs.map(|(user, terms)| (UserNumber::new(user), terms.into_iter().collect())).collect()
}

#[test]
fn a_term_is_found_among_its_users_terms_and_no_others() {
    let rows = random_rows(&mut Random(6), 900, &[60, 200, 10], DIMENSION);
    let space = space(DIMENSION);
    let segment = open(&write(&input(&space, None), &rows).0).unwrap();
    let mut longest = 0;
    for (user, terms) in expected_lexicons(&rows) {
        let lexicon = segment.lexicon(user).unwrap().unwrap();
        assert_eq!(lexicon.len() as usize, terms.len());
        let mut block = Vec::new();
        for (term, expected) in &terms {
            let postings = lexicon.find(term).unwrap().unwrap();
            longest = longest.max(postings.len());
            assert_eq!(postings.len() as usize, expected.len());
            let blocks = expected.chunks(BLOCK_POSTINGS);
            assert_eq!(postings.block_count() as usize, blocks.len());
            for (number, expected) in (0..).zip(blocks) {
                postings.decode(number, &mut block).unwrap();
                assert_eq!(block, expected);
                let last = postings.block_last(number).unwrap();
                assert_eq!(last, expected.last().unwrap().passage);
            }
            assert!(postings.decode(postings.block_count(), &mut block).is_err());
            assert!(postings.block_last(postings.block_count()).is_err() && block.is_empty());
            for absent in [format!("{term}x"), term[1..].to_owned(), term.replace('a', "z")] {
                let is_held = terms.iter().any(|(term, _)| *term == absent);
                assert_eq!(lexicon.find(&absent).unwrap().is_some(), is_held);
            }
        }
        assert!(
            lexicon.find("").unwrap().is_none() && lexicon.find("\u{10ffff}").unwrap().is_none()
        );
    }
    assert!(longest > 2 * BLOCK_POSTINGS as u32, "{longest} postings need no skip table");
    assert!(segment.lexicon(UserNumber::new(9)).unwrap().is_none());
}

#[test]
fn speakers_are_counted_per_user() {
    let rows = random_rows(&mut Random(5), 200, &[10], DIMENSION);
    let space = space(DIMENSION);
    let segment = open(&write(&input(&space, None), &rows).0).unwrap();
    for number in 1..5 {
        let user = UserNumber::new(number);
        let speakers = segment.speakers(user).unwrap();
        let names: Vec<&str> = speakers.iter().map(|speaker| &*speaker.name).collect();
        assert_eq!(names, ["Ada", "Bob I"]);
        for speaker in &speakers {
            let is_theirs = |row: &&Row| {
                row.head.user == user && row.speaker.as_deref() == Some(&*speaker.name)
            };
            assert_eq!(speaker.rows as usize, rows.0.iter().filter(is_theirs).count());
            assert_eq!(u64::from(speaker.number).div_ceil(2), number, "an entry is of one user");
        }
    }
}

#[track_caller]
fn check_codes(rows: &Rows, codec: &Codec, codes: &[u8], factors: &[[u8; 4]]) {
    let mut values = Vec::new();
    for (number, (row, code)) in rows.0.iter().zip(codes.chunks(codec.code_bytes())).enumerate() {
        let (mut expected, mut factor) = (Vec::new(), 0.0);
        if !row.head.has_vector {
            expected.resize(codec.code_bytes(), 0);
        } else if let Some(known) = rows.code(number, codec, &mut expected).unwrap() {
            factor = known;
        } else {
            crate::model::unpack_vector(&row.vector, VectorElement::F32, &mut values);
            factor = codec.encode(&values, &mut expected);
        }
        assert_eq!(code, expected, "row {number}");
        assert_eq!(f32::from_le_bytes(factors[number]), factor, "row {number}");
    }
}

#[test]
fn texts_that_were_read_lately_are_not_decompressed_again() {
    let rows = random_rows(&mut Random(5), 60, &[2000], DIMENSION);
    let space = space(DIMENSION);
    let bytes = write(&input(&space, None), &rows).0;
    let read = |segment: &Segment| {
        let before = blocks::unpacked();
        // Far apart, so that no two rows share a block.
        for row in (0..60).step_by(6) {
            segment.body_decoded(row).unwrap();
        }
        blocks::unpacked() - before
    };
    let cache = TextCache::new(4 << 20);
    let cached = open(&bytes).unwrap().with_cache(cache.clone());
    assert_eq!((read(&cached), read(&cached)), (10, 0));
    let plain = open(&bytes).unwrap();
    assert_eq!((read(&plain), read(&plain)), (10, 10));
    // Another opening of the same file has blocks of its own.
    let again = open(&bytes).unwrap().with_cache(cache);
    assert_eq!((read(&again), read(&again)), (10, 0));
}

#[test]
fn threads_share_a_segment() {
    fn check<T: Send + Sync + 'static>() {}
    check::<Segment>();
}

#[test]
fn an_empty_segment_carries_tombstones_alone() {
    let space = space(DIMENSION);
    let input = input(&space, None);
    let (bytes, _) = write(&input, &Rows(vec![]));
    let segment = open(&bytes).unwrap();
    assert_eq!((segment.rows(), segment.ids()), (0, (0, 0)));
    assert_eq!(segment.tombstones().unwrap(), input.tombstones);
    assert_eq!(segment.find(EpisodeId::new(0)).unwrap().len(), 0);
    assert!(segment.verify(true).is_empty());
}

#[test]
fn find_gives_every_version_in_order_and_nothing_else() {
    let rows = random_rows(&mut Random(5), 200, &[10], DIMENSION);
    let space = space(DIMENSION);
    let segment = open(&write(&input(&space, None), &rows).0).unwrap();
    for id in 95..240 {
        let mut expected: Vec<(u32, u32)> = (0u32..)
            .zip(&rows.0)
            .filter(|(_, row)| row.head.id.get() == id)
            .map(|(place, row)| (row.head.version, place))
            .collect();
        expected.sort_unstable();
        let id = EpisodeId::new(id);
        let found: Vec<_> =
            segment.find(id).unwrap().map(|row| (segment.version(row).unwrap(), row)).collect();
        assert_eq!(found, expected, "{id}");
        for version in 0..6 {
            let row = expected.iter().find(|entry| entry.0 == version).map(|entry| entry.1);
            assert_eq!(segment.row_of(id, version).unwrap(), row, "{id} version {version}");
        }
    }
    let user = UserNumber::new(2);
    let cells = segment.cells_of(user, RowKind::Episode);
    assert!(!cells.is_empty());
    assert!(cells.iter().all(|cell| cell.user == user && cell.kind == RowKind::Episode));
    assert!(segment.cells_of(UserNumber::new(9), RowKind::Episode).is_empty());
}

#[test]
fn a_row_beyond_the_segment_is_an_error() {
    let rows = random_rows(&mut Random(5), 10, &[10], DIMENSION);
    let (space, codec) = (space(DIMENSION), codec());
    let segment = open(&write(&input(&space, Some(&codec)), &rows).0).unwrap();
    for row in [10, u32::MAX] {
        assert!(segment.head(row).is_err());
        assert!(segment.vector(row).is_err());
        assert!(segment.body(row, &mut Vec::new()).is_err());
        assert!(segment.times(5..row.saturating_add(1)).is_err());
        assert!(segment.codes(5..row.saturating_add(1)).is_err());
    }
    #[expect(clippy::reversed_empty_ranges, reason = "what a confused caller would ask")]
    let reversed = segment.times(7..3);
    assert!(reversed.is_err());
}

#[test]
fn another_segment_is_not_taken_for_the_expected_one() {
    let rows = random_rows(&mut Random(5), 10, &[10], DIMENSION);
    let space = space(DIMENSION);
    let (bytes, summary) = write(&input(&space, None), &rows);
    let check = |database, id: u64, len, crc, contains: &str| {
        let map = Map::from_bytes(bytes.as_slice().into());
        let error = Segment::open(map, "/a/b.seg", database, Some((SegmentId::new(id), len, crc)))
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        assert!(error.to_string().contains(contains), "{error}");
        assert!(error.file().is_some());
    };
    let (len, crc) = (summary.bytes, summary.footer_crc);
    check([8; 16], 77, len, crc, "another database");
    check(DATABASE, 78, len, crc, "segment 77 where segment 78 belongs");
    check(DATABASE, 77, len + 1, crc, "bytes where");
    check(DATABASE, 77, len, crc ^ 1, "footer checksum");
}

#[test]
fn the_example_of_the_specification_is_whole_and_always_the_same() {
    let file = MemoryFile::default();
    write_example(&file).unwrap();
    let bytes = file.0.into_inner().unwrap().0;
    let map = Map::from_bytes(bytes.as_slice().into());
    let segment = Segment::open(map, "/a/0000002a.seg", example::DATABASE, None).unwrap();
    assert!(segment.verify(true).is_empty());
    assert_eq!(segment.body_decoded(1).unwrap().text, "World");
    let dump = example::hex_dump(&bytes);
    assert!(dump.starts_with("00000000  89 4c 4f 4d 0d 0a 1a 0a 01 00 00 00 40 00 00 00  .LOM"));
    let second = MemoryFile::default();
    write_example(&second).unwrap();
    assert!(second.0.into_inner().unwrap().0 == bytes);
}

#[test]
#[ignore = "prints latencies: cargo test --lib segment -- --ignored --nocapture"]
fn latencies_of_find_and_body() {
    let dimension = 256;
    let mut random = Random(1);
    let mut rows = random_rows(&mut random, 100_000, &[120, 40, 300, 80], dimension);
    for (number, row) in rows.0.iter_mut().enumerate() {
        (row.head.id, row.head.version) = (EpisodeId::new(number as u64), 1);
    }
    let space = space(dimension);
    let codec = Codec::new(vec![0.0; dimension], 1);
    let clock = std::time::Instant::now();
    let (bytes, _) = write(&input(&space, Some(&codec)), &rows);
    println!("write: {} bytes in {:?}", bytes.len(), clock.elapsed());
    let map = Map::from_bytes(bytes.into());
    let clock = std::time::Instant::now();
    let segment = Segment::open(map, "/a/b.seg", DATABASE, None).unwrap();
    println!("open: {:?}", clock.elapsed());
    let picks: Vec<u64> = (0..20_000).map(|_| random.below(100_000)).collect();
    for round in ["cold", "warm"] {
        let clock = std::time::Instant::now();
        for id in &picks {
            assert_eq!(segment.find(EpisodeId::new(*id)).unwrap().count(), 1);
        }
        println!("find, {round}: {:?}", clock.elapsed() / picks.len() as u32);
        let clock = std::time::Instant::now();
        for id in &picks {
            std::hint::black_box(segment.head(*id as u32).unwrap());
        }
        println!("head, {round}: {:?}", clock.elapsed() / picks.len() as u32);
        let mut body = Vec::new();
        let clock = std::time::Instant::now();
        for id in &picks {
            body.clear();
            segment.body(*id as u32, &mut body).unwrap();
        }
        println!("body, {round}: {:?}", clock.elapsed() / picks.len() as u32);
    }
    let lexicon = segment.lexicon(UserNumber::new(1)).unwrap().unwrap();
    let mut block = Vec::new();
    for term in ["2024", "ada", "the"] {
        let clock = std::time::Instant::now();
        for _ in 0..1000 {
            std::hint::black_box(lexicon.find(term).unwrap());
        }
        let found = clock.elapsed() / 1000;
        let postings = lexicon.find(term).unwrap().unwrap();
        let clock = std::time::Instant::now();
        for number in (0..10).flat_map(|_| 0..postings.block_count()) {
            postings.decode(number, &mut block).unwrap();
            std::hint::black_box(&block);
        }
        let posting = clock.elapsed().as_secs_f64() * 1e8 / f64::from(postings.len());
        println!("{term}: find {found:?}, decode {posting:.2} ns of {}", postings.len());
    }
    println!("{:?}", segment.parts());
    let mut raw = Vec::new();
    for row in 0..1000 {
        segment.body(row, &mut raw).unwrap();
    }
    for level in [1, 3] {
        let clock = std::time::Instant::now();
        let stored: usize =
            raw.chunks(8192).map(|part| zstd::bulk::compress(part, level).unwrap().len()).sum();
        println!("zstd {level}: {} to {stored} bytes in {:?}", raw.len(), clock.elapsed());
    }
    let clock = std::time::Instant::now();
    println!("verify: {} problems in {:?}", segment.verify(true).len(), clock.elapsed());
}
