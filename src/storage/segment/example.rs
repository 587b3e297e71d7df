//! The segment that format-spec.md shows byte by byte, and the dump that shows it.
//!
//! Invariant: equal bytes on every machine. No codes, since a database of two episodes has none, and no text that
//! zstd would shrink, so that a new version of zstd changes nothing.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::Range;
use std::sync::Arc;

use super::{
    Counts, PassageLength, PutTerm, RowHead, RowSource, SegmentInput, SegmentSummary, Tombstone,
    invert, write_segment,
};
use crate::error::Result;
use crate::ids::{EpisodeId, LogId, SegmentId, SessionNumber, UserNumber};
use crate::model::{Body, HeadTerm, RowKind, RowTerms, TextTerm, VectorSpace, pack_vector};
use crate::options::VectorElement;
use crate::simd::codec::Codec;
use crate::storage::vfs::VfsFile;
use crate::storage::wire;

/// The example's database id.
pub const DATABASE: [u8; 16] = *b"0123456789abcdef";

/// A simple analysis for tests and examples: words parted by spaces, at most eight a passage; the speaker's words and
/// the number 2024 as a date are the head. The text has an expression of time when it holds a digit.
pub fn simple_terms(text: &str, speaker: Option<&str>) -> RowTerms {
    let term = |word: &str| word.to_lowercase().chars().take(16).collect::<String>();
    let words: Vec<&str> = text.split_whitespace().collect();
    let mut head = BTreeMap::from([("2024".to_owned(), (0, 1))]);
    for word in speaker.unwrap_or_default().split_whitespace() {
        head.entry(term(word)).or_default().0 += 1;
    }
    let passage = |words: &[&str]| {
        let mut counts = BTreeMap::<String, u8>::new();
        for word in words {
            *counts.entry(term(word)).or_default() += 1;
        }
        counts.into_iter().map(|(term, frequency)| TextTerm { term, frequency }).collect()
    };
    let mut passages: Vec<Vec<TextTerm>> = words.chunks(8).map(passage).collect();
    if passages.is_empty() {
        passages.push(Vec::new());
    }
    RowTerms {
        words: words.len() as u32,
        content_words: words.iter().filter(|word| word.len() > 3).count() as u32,
        has_time: text.contains(|char: char| char.is_ascii_digit()),
        head: head
            .into_iter()
            .map(|(term, (speaker, date))| HeadTerm { term, speaker, date })
            .collect(),
        passages,
    }
}

const TEXTS: [&str; 2] = ["Hello", "World"];
const SPEAKERS: [&str; 2] = ["Ada", "Bob"];

/// Two turns of one user; the second has no vector.
struct Example;

fn terms_of(row: usize) -> RowTerms {
    simple_terms(TEXTS[row], Some(SPEAKERS[row]))
}

impl RowSource for Example {
    fn len(&self) -> usize {
        2
    }

    fn head(&self, row: usize) -> Result<RowHead> {
        let number = row as u64;
        Ok(RowHead {
            id: EpisodeId::new(1 + number),
            version: 1,
            kind: RowKind::Episode,
            user: UserNumber::new(1),
            cluster: 0,
            session: SessionNumber::new(1),
            ordinal: number,
            time: 1_700_000_000_000_000 + row as i64 * 60_000_000,
            offset_minutes: 60,
            record_time: 1_700_000_100_000_000,
            first_record_time: 1_700_000_100_000_000,
            expires: i64::MAX,
            has_vector: row == 0,
            text_bytes: 5,
            shape: terms_of(row).shape(),
        })
    }

    fn vector(&self, row: usize, out: &mut Vec<u8>) -> Result<()> {
        if row == 0 {
            out.extend(pack_vector(&[1.0, 0.0, 0.0, 0.0], VectorElement::F32));
        }
        Ok(())
    }

    fn code(&self, _row: usize, _codec: &Codec, _out: &mut Vec<u8>) -> Result<Option<f32>> {
        Ok(None)
    }

    fn body(&self, row: usize, out: &mut Vec<u8>) -> Result<()> {
        let body = Body {
            text: TEXTS[row].to_owned(),
            session: Some("s1".to_owned()),
            speaker: Some(SPEAKERS[row].to_owned()),
            agent: None,
            key: None,
            metadata: String::new(),
            tags: Vec::new(),
        };
        wire::append(&body, out);
        Ok(())
    }

    fn speaker(&self, row: usize) -> Result<Option<&str>> {
        Ok(Some(SPEAKERS[row]))
    }

    fn passages(&self, row: usize, out: &mut Vec<PassageLength>) -> Result<()> {
        out.extend(PassageLength::of(&terms_of(row)));
        Ok(())
    }

    fn terms(&self, rows: Range<usize>, starts: &[u32], put: &mut PutTerm<'_>) -> Result<()> {
        let terms: Vec<_> = rows.map(|row| (starts[row], terms_of(row))).collect();
        invert(terms.iter().map(|(start, terms)| (*start, terms)), put)
    }
}

/// Writes the example: two episodes, and the tombstone of a third.
///
/// # Errors
/// `Io`.
pub fn write_example(file: &dyn VfsFile) -> Result<SegmentSummary> {
    let space = VectorSpace { name: "demo".to_owned(), dimension: 4, element: VectorElement::F32 };
    let input = SegmentInput {
        id: SegmentId::new(42),
        database: DATABASE,
        space: &space,
        codec: None,
        clustered_from: usize::MAX,
        logs: (LogId::new(1), LogId::new(1)),
        replaces: Vec::new(),
        users: vec![(UserNumber::new(1), Arc::from(&b"alice"[..]))],
        sessions: vec![(SessionNumber::new(1), UserNumber::new(1), "s1".to_owned())],
        tombstones: vec![Tombstone {
            id: EpisodeId::new(3),
            version: 1,
            user: UserNumber::new(1),
            record_time: 1_700_000_200_000_000,
            superseded: false,
            counts: Counts { rows: -1, vectors: -1, text_bytes: -7, passages: -1, half_terms: -2 },
        }],
    };
    write_segment(file, &input, &Example)
}

/// `bytes` as lines of 16: offset, hex, printable characters. Runs of lines of zeros are one `*`.
pub fn hex_dump(bytes: &[u8]) -> String {
    let mut out = String::new();
    let mut in_zeros = false;
    for (number, line) in bytes.chunks(16).enumerate() {
        let is_last = (number + 1) * 16 >= bytes.len();
        if line.iter().all(|byte| *byte == 0) && number > 0 && !is_last {
            if !in_zeros {
                out.push_str("*\n");
            }
            in_zeros = true;
            continue;
        }
        in_zeros = false;
        let hex: Vec<_> = line.iter().map(|byte| format!("{byte:02x}")).collect();
        let text: String = line
            .iter()
            .map(|byte| if byte.is_ascii_graphic() { char::from(*byte) } else { '.' })
            .collect();
        writeln!(out, "{:08x}  {:<47}  {text}", number * 16, hex.join(" "))
            .expect("a string takes every byte");
    }
    out
}
