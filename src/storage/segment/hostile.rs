//! Tests of what damaged and hostile bytes do: an error or the right answer, never a panic, never much memory.

use super::Segment;
use super::blocks::BodyPlace;
use super::format::{CHECK_BYTES, Footer, Header, OWN_CHECKSUMS};
use super::section::Section;
use super::tests::{Contents, DIMENSION, Random, codec, input, open, random_rows, read_all};
use super::tests::{space, write};
use crate::error::ErrorKind;
use crate::ids::UserNumber;
use crate::model::RowKind;

/// A segment with everything in it, small enough to damage byte by byte.
fn small() -> (Vec<u8>, Contents) {
    let lengths = [0, 30, 20, 60, 200, 10, 40, 9000];
    let rows = random_rows(&mut Random(3), 16, &lengths, DIMENSION);
    let (space, codec) = (space(DIMENSION), codec());
    let (bytes, _) = write(&input(&space, Some(&codec)), &rows);
    let contents = read_all(&open(&bytes).unwrap()).unwrap();
    (bytes, contents)
}

#[test]
fn a_flipped_bit_gives_an_error_or_the_right_answer_and_verify_sees_it() {
    let (bytes, contents) = small();
    let mut random = Random(17);
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << random.below(8);
        let Ok(segment) = open(&damaged) else { continue };
        if let Ok(read) = read_all(&segment) {
            assert_eq!(read, contents, "byte {at}");
        }
        assert!(!segment.verify(false).is_empty(), "byte {at} is covered by nothing");
    }
}

#[test]
fn zeroed_regions_give_an_error_or_the_right_answer() {
    let (bytes, contents) = small();
    for start in (0..bytes.len()).step_by(32) {
        for length in [1, 32, 512, 4096] {
            let mut damaged = bytes.clone();
            let end = (start + length).min(bytes.len());
            damaged[start..end].fill(0);
            let Ok(segment) = open(&damaged) else { continue };
            if let Ok(read) = read_all(&segment) {
                assert_eq!(read, contents, "bytes {start}..{end}");
            }
            assert!(damaged == bytes || !segment.verify(false).is_empty());
        }
    }
}

#[test]
fn a_truncated_or_longer_file_does_not_open() {
    let (bytes, _) = small();
    for length in 0..bytes.len() {
        let error = open(&bytes[..length]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{length}");
    }
    let mut longer = bytes;
    longer.push(0);
    assert!(open(&longer).is_err());
}

/// Makes all checksums of a damaged segment hold, where `intact` has them.
fn repair(bytes: &mut [u8], intact: &[u8]) {
    let header_crc = crc32fast::hash(&bytes[..60]);
    bytes[60..64].copy_from_slice(&header_crc.to_le_bytes());
    let footer = Footer::decode(intact, Header::decode(intact).unwrap().crc).unwrap();
    let segment = open(intact).unwrap();
    let table = segment.columns.place(Section::BlockTable).unwrap();
    for block in 0..(table.len / 24) as u32 {
        let entry = segment.block(block).unwrap();
        let start = entry.offset as usize;
        let crc = crc32fast::hash(&bytes[start..start + entry.stored as usize]);
        let at = table.offset as usize + block as usize * 24 + 16;
        bytes[at..at + 4].copy_from_slice(&crc.to_le_bytes());
    }
    let mut check_at = footer.checks.0;
    for entry in footer.entries.iter().filter(|entry| entry.flags & OWN_CHECKSUMS == 0) {
        let section = entry.offset as usize..(entry.offset + entry.len) as usize;
        for start in section.clone().step_by(CHECK_BYTES as usize) {
            let crc = crc32fast::hash(&bytes[start..section.end.min(start + (64 << 10))]);
            bytes[check_at..check_at + 4].copy_from_slice(&crc.to_le_bytes());
            check_at += 4;
        }
    }
    let end = bytes.len();
    bytes[end - 24..end - 20].copy_from_slice(&header_crc.to_le_bytes());
    let crc = crc32fast::hash(&bytes[footer.offset as usize..end - 12]);
    bytes[end - 12..end - 8].copy_from_slice(&crc.to_le_bytes());
}

/// Looks up terms that may not be there, and decodes what is found.
fn search(segment: &Segment, user: UserNumber) {
    let Ok(Some(lexicon)) = segment.lexicon(user) else { return };
    let mut block = Vec::new();
    for term in ["2024", "ada", "bob", "the", "i", "zz"] {
        let Ok(Some(postings)) = lexicon.find(term) else { continue };
        for number in 0..postings.block_count() {
            let _ = postings.block_last(number);
            if postings.decode(number, &mut block).is_ok() {
                let passages = block.iter().map(|posting| posting.passage);
                assert!(passages.clone().is_sorted_by(|a, b| a < b));
                assert!(passages.clone().all(|passage| lexicon.passages().contains(&passage)));
            }
            assert!(block.capacity() <= 4 * 128);
        }
    }
}

#[test]
fn hostile_bytes_under_right_checksums_never_panic() {
    let (bytes, contents) = small();
    let mut undamaged = bytes.clone();
    repair(&mut undamaged, &bytes);
    assert!(undamaged == bytes, "repair changes nothing that is whole");

    let mut random = Random(23);
    let (mut opened, mut read, mut changed) = (0, 0, 0);
    for at in (0..bytes.len() - 4).step_by(2) {
        let old = u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        let values = [0, u32::MAX, old.wrapping_add(1), random.next() as u32, 1 << 31];
        let mut damaged = bytes.clone();
        let value = values[random.below(values.len() as u64) as usize];
        damaged[at..at + 4].copy_from_slice(&value.to_le_bytes());
        repair(&mut damaged, &bytes);
        let Ok(segment) = open(&damaged) else { continue };
        opened += 1;
        segment.verify(true);
        for user in 1..5 {
            search(&segment, UserNumber::new(user));
        }
        for row in 0..segment.rows() {
            let mut body = Vec::new();
            let _ = segment.body(row, &mut body);
            let _ = segment.body_decoded(row);
            assert!(body.capacity() < 1 << 20, "byte {at} made a body of {}", body.capacity());
        }
        if let Ok(answer) = read_all(&segment) {
            read += 1;
            changed += u32::from(answer != contents);
        }
    }
    // The damage must get past the checksums, or this tests nothing.
    assert!(opened > 1000 && read > 1000 && changed > 300, "{opened} {read} {changed}");
}

#[test]
fn a_damaged_skip_table_or_block_is_refused_or_stays_within_the_user() {
    // Without codes and vectors, so that the file is small.
    let rows = random_rows(&mut Random(6), 2000, &[60], DIMENSION);
    let space = space(DIMENSION);
    let (bytes, _) = write(&input(&space, None), &rows);
    let intact = open(&bytes).unwrap();
    let at = intact.columns.place(Section::Postings).unwrap().offset as usize;
    // The second user's first term is in every passage of theirs.
    let user = UserNumber::new(2);
    let start = at + intact.directory_entry(1).unwrap().postings_at as usize;
    let list = intact.lexicon(user).unwrap().unwrap().find("2024").unwrap().unwrap();
    assert!(list.block_count() > 3);
    let mut random = Random(29);
    let (mut refused, mut decoded) = (0, 0);
    for at in start..start + 8 * list.block_count() as usize + 300 {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << random.below(8);
        repair(&mut damaged, &bytes);
        let segment = open(&damaged).unwrap();
        let lexicon = segment.lexicon(user).unwrap().unwrap();
        let postings = lexicon.find("2024").unwrap().unwrap();
        let mut block = Vec::new();
        let all = 0..postings.block_count();
        let is_read = all.clone().all(|number| postings.decode(number, &mut block).is_ok());
        (refused, decoded) = (refused + u32::from(!is_read), decoded + u32::from(is_read));
        search(&segment, user);
        assert!(!segment.verify(true).is_empty(), "byte {at} says something else unnoticed");
    }
    assert!(refused > 200 && decoded > 20, "{refused} refused, {decoded} decoded");
}

#[test]
fn verify_tells_rows_and_contradictions() {
    let (bytes, _) = small();
    let segment = open(&bytes).unwrap();
    let place = |section| segment.columns.place(section).unwrap().offset as usize;
    let text = segment.block(1).unwrap();

    let mut damaged = bytes.clone();
    damaged[text.offset as usize] ^= 1;
    let problems = open(&damaged).unwrap().verify(false);
    assert_eq!(problems.len(), 1);
    assert!(!problems[0].rows.is_empty() && problems[0].rows.len() < 16, "{problems:?}");
    assert_eq!(problems[0].error.offset(), Some(text.offset));

    // A change that only the comparison of sections can see.
    let check = |at: usize, contains: &str| {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1;
        repair(&mut damaged, &bytes);
        let segment = open(&damaged).unwrap();
        assert!(segment.verify(false).is_empty(), "{contains}");
        let problems = segment.verify(true);
        let found = problems.iter().any(|problem| problem.error.to_string().contains(contains));
        assert!(found, "{contains}: {problems:?}");
    };
    check(place(Section::SortedIds), "id order");
    check(place(Section::IdOrder), "id order");
    check(place(Section::Ids) + 7, "id order");
    check(place(Section::Sessions) + 3, "session");
    check(place(Section::TextBytes) + 1, "text length");
    // The flip must lower the smallest time, or the directory refuses it at open.
    let odd = segment.cells().iter().position(|cell| cell.min_time % 2 != 0).unwrap();
    check(place(Section::Cells) + odd * 64 + 24, "cell times");
    check(place(Section::Names) + 8, "user number");
    check(place(Section::BodyPlaces) + 4, "");
    check(place(Section::Flags), "");
    check(place(Section::Speakers), "speaker");
    check(place(Section::SpeakerNames) + 12, "speaker count");
    check(place(Section::PassageStarts) + 1, "passage numbers");
    check(place(Section::PassageLengths), "passage length");
    check(place(Section::PassageLengths) + 4, "passage length");
    check(place(Section::Lexicons), "directory of lexicons");
    check(place(Section::Lexicons) + 24, "directory of lexicons");
    // The frequencies in the first posting's low bits.
    check(place(Section::Postings), "");
    // The first letter of the first user's first term behind its block table.
    let first = segment.directory_entry(0).unwrap();
    let table = (first.terms as usize).div_ceil(16) * 8;
    check(place(Section::Terms) + table, "lexicon");
}

#[test]
fn a_bad_64_kib_costs_its_own_rows_and_no_others() {
    let rows = random_rows(&mut Random(8), 20_000, &[5], DIMENSION);
    let (space, codec) = (space(DIMENSION), codec());
    let (mut bytes, _) = write(&input(&space, Some(&codec)), &rows);
    let whole = open(&bytes).unwrap();
    assert!(whole.verify(true).is_empty());
    let times = whole.columns.place(Section::Times).unwrap();
    // Row 10,000 lies in the second 64 KiB of its times: rows 8,192 to 16,383.
    bytes[times.offset as usize + 10_000 * 8] ^= 4;
    let segment = open(&bytes).unwrap();
    for (row, is_good) in [(0, true), (8191, true), (8192, false), (16_383, false), (16_384, true)]
    {
        assert_eq!(segment.time(row).is_ok(), is_good, "{row}");
        assert_eq!(segment.head(row).is_ok(), is_good, "{row}");
    }
    assert_eq!(segment.time(16_384).unwrap(), rows.0[16_384].head.time);
    assert!(segment.times(8000..8193).is_err() && segment.times(0..8192).is_ok());
    let error = segment.time(9000).unwrap_err();
    assert_eq!(error.offset(), Some(times.offset + (64 << 10)));
    let problems = segment.verify(true);
    assert_eq!(problems.len(), 1);
    assert_eq!(problems[0].rows, 8192..16_384);
}

#[test]
fn a_body_never_runs_on_from_within_a_block() {
    let (bytes, _) = small();
    let segment = open(&bytes).unwrap();
    let places = segment.columns.place(Section::BodyPlaces).unwrap().offset as usize;
    let place =
        |row: u32| BodyPlace::decode(segment.columns.item(Section::BodyPlaces, row).unwrap());
    // A row in the middle of a block that another block follows: the next bytes may be another user's.
    let row = (0..segment.rows()).find(|row| place(*row).offset > 0).unwrap();
    let mut damaged = bytes.clone();
    let long = BodyPlace { len: 8192, ..place(row) }.encode();
    damaged[places + row as usize * 12..][..12].copy_from_slice(&long);
    repair(&mut damaged, &bytes);
    let damaged = open(&damaged).unwrap();
    let error = damaged.body(row, &mut Vec::new()).unwrap_err();
    assert_eq!(error.id(), Some(damaged.id_of(row).unwrap().get()));
}

#[test]
fn two_rows_with_one_body_are_found_by_verify() {
    let (bytes, _) = small();
    let segment = open(&bytes).unwrap();
    let places = segment.columns.place(Section::BodyPlaces).unwrap().offset as usize;
    // Of a kind whose bodies verify does not decode, so that only the tiling can tell.
    let is_box = |row: u32| segment.head(row).unwrap().kind != RowKind::Episode;
    let row = (1..segment.rows()).find(|row| is_box(*row) && is_box(row - 1)).unwrap() as usize;
    let mut damaged = bytes.clone();
    damaged.copy_within(places + (row - 1) * 12..places + row * 12, places + row * 12);
    repair(&mut damaged, &bytes);
    let problems = open(&damaged).unwrap().verify(true);
    let message = "body place contradicts";
    assert!(problems.iter().any(|problem| problem.error.to_string().contains(message)));
}

#[test]
fn a_header_and_a_footer_of_two_files_do_not_go_together() {
    let (mut bytes, _) = small();
    // A compatible flag: the header is whole, but it is not the one that the footer closes.
    bytes[24] = 1;
    let crc = crc32fast::hash(&bytes[..60]);
    bytes[60..64].copy_from_slice(&crc.to_le_bytes());
    let error = open(&bytes).unwrap_err();
    assert!(error.to_string().contains("another header"), "{error}");
}

#[test]
fn a_flag_cannot_take_a_column_out_of_the_checksums() {
    let (bytes, _) = small();
    let header_crc = Header::decode(&bytes).unwrap().crc;
    let mut footer = Footer::decode(&bytes, header_crc).unwrap();
    let checks = bytes[footer.checks.0..].as_chunks::<4>().0[..footer.checks.1].iter();
    let mut checks: Vec<u32> = checks.map(|crc| u32::from_le_bytes(*crc)).collect();
    // Each section of this small segment has one CRC, but the text blocks, which come later, have none.
    let times = Section::Times as u16;
    let place = footer.entries.iter().position(|entry| entry.kind == times).unwrap();
    footer.entries[place].flags = OWN_CHECKSUMS;
    checks.remove(place);
    let mut damaged = bytes[..footer.offset as usize].to_vec();
    damaged.extend(Footer::encode(&footer.entries, &checks, header_crc).0);
    let error = open(&damaged).unwrap_err();
    assert!(error.to_string().contains("section of times"), "{error}");
}

#[test]
fn verify_reads_a_body_once_however_many_rows_claim_it() {
    // One body of 1 MiB that is no body, and many small ones; then all rows claim the large one. Reading it for each
    // would take minutes in a larger file, and would show as a body that cannot be decoded.
    let mut rows = random_rows(&mut Random(4), 200, &[3], DIMENSION);
    rows.0[0].body = vec![b'x'; 1 << 20];
    let space = space(DIMENSION);
    let (bytes, _) = write(&input(&space, None), &rows);
    let intact = open(&bytes).unwrap();
    let places = intact.columns.place(Section::BodyPlaces).unwrap().offset as usize;
    let mut damaged = bytes.clone();
    for row in 1..200 {
        damaged.copy_within(places..places + 12, places + row * 12);
    }
    repair(&mut damaged, &bytes);
    let problems = open(&damaged).unwrap().verify(true);
    let of_rows = problems.iter().filter(|problem| problem.rows.start > 0);
    let messages: Vec<_> = of_rows.map(|problem| problem.error.to_string()).collect();
    assert_eq!(messages.len(), 199);
    assert!(messages.iter().all(|message| message.contains("body place")), "{messages:?}");
}
