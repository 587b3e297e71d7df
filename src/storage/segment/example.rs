//! The segment that format-spec.md shows byte by byte, and the dump that shows it.
//!
//! Invariant: equal bytes on every machine. No codes, since a database of two episodes has none, and no text that
//! zstd would shrink, so that a new version of zstd changes nothing.

use std::fmt::Write;
use std::sync::Arc;

use super::{Counts, RowHead, RowSource, SegmentInput, SegmentSummary, Tombstone, write_segment};
use crate::error::Result;
use crate::ids::{EpisodeId, LogId, SegmentId, SessionNumber, UserNumber};
use crate::model::{Body, RowKind, VectorSpace, pack_vector};
use crate::options::VectorElement;
use crate::simd::codec::Codec;
use crate::storage::vfs::VfsFile;
use crate::storage::wire;

/// The example's database id.
pub const DATABASE: [u8; 16] = *b"0123456789abcdef";

/// Two turns of one user; the second has no vector.
struct Example;

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
            text: ["Hello", "World"][row].to_owned(),
            session: Some("s1".to_owned()),
            speaker: Some(["Ada", "Bob"][row].to_owned()),
            agent: None,
            key: None,
            metadata: String::new(),
            tags: Vec::new(),
        };
        wire::append(&body, out);
        Ok(())
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
            counts: Counts { rows: -1, vectors: -1, text_bytes: -7 },
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
