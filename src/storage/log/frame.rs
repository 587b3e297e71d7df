//! Payloads of row and end frames. format-spec.md, section 2.3.
//!
//! A row's payload is encoded before any lock is taken; id, version and record times are set under it.

use std::ops::Range;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::ids::{EpisodeId, NUMBER_END};
use crate::model::{Body, Record, RowTerms};
use crate::options::NAME_BYTES_MAX;
use crate::storage::segment::Counts;
use crate::storage::wire;

use super::format::{KIND_END, KIND_ROW, PAYLOAD_BYTES_MAX};

pub const ROW_HEAD_BYTES: usize = 80;
const AT_ID: Range<usize> = 0..8;
const AT_VERSION: Range<usize> = 8..12;
const AT_TIME: Range<usize> = 16..24;
const AT_RECORD_TIME: Range<usize> = 24..32;
const AT_FIRST_RECORD_TIME: Range<usize> = 32..40;
const AT_ORDINAL: Range<usize> = 40..48;
const AT_EXPIRES: Range<usize> = 48..56;
const AT_OFFSET: Range<usize> = 56..58;
const AT_USER_BYTES: Range<usize> = 60..64;
const AT_BODY_BYTES: Range<usize> = 64..68;
const AT_VECTOR_BYTES: Range<usize> = 68..72;
const AT_TERMS_BYTES: Range<usize> = 72..76;

pub const END_HEAD_BYTES: usize = 32;
const END_SUPERSEDED: u32 = 1;

/// What a batch does, one step a frame.
#[derive(Clone, Debug)]
pub enum Op {
    /// A version of a row.
    Row(RowFrame),
    /// The end of a version.
    End(EndFrame),
}

/// A row frame, decoded; the body also as the bytes that a segment stores.
#[derive(Clone, Debug)]
pub struct RowFrame {
    pub record: Arc<Record>,
    pub body: Arc<[u8]>,
}

/// The end of one version of a row (design 2.5: a tombstone names the version it ends).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndFrame {
    pub id: EpisodeId,
    pub version: u32,
    pub user: Arc<[u8]>,
    pub record_time: i64,
    /// A later version replaces it; it stays for `history`.
    pub superseded: bool,
    /// What the version added to its user's statistics, negated.
    pub counts: Counts,
}

/// Encodes a row's payload; `body` are the encoded bytes of `record.body`. The record holds its terms.
///
/// # Errors
/// `Limit` when a part or the whole is larger than a frame may be, or terms are beyond what [`crate::model::RowTerms`]
/// may hold.
pub fn encode_row(record: &Record, body: &[u8]) -> Result<Vec<u8>> {
    let terms = record.terms.as_ref().expect("a row on its way in has its terms");
    if !terms.is_valid() {
        return Err(Error::limit("terms of a text or a speaker's name").of(record.id.get()));
    }
    let terms = wire::encode(&**terms);
    let bytes = ROW_HEAD_BYTES + record.user.len() + body.len() + record.vector.len() + terms.len();
    if record.user.len() > NAME_BYTES_MAX || bytes > PAYLOAD_BYTES_MAX {
        return Err(Error::limit(format!(
            "encoded row of {bytes} bytes, at most {PAYLOAD_BYTES_MAX}"
        )));
    }
    let mut payload = Vec::with_capacity(bytes);
    payload.resize(ROW_HEAD_BYTES, 0);
    payload[AT_TIME].copy_from_slice(&record.time.to_le_bytes());
    payload[AT_ORDINAL].copy_from_slice(&record.ordinal.to_le_bytes());
    payload[AT_EXPIRES].copy_from_slice(&record.expires.to_le_bytes());
    payload[AT_OFFSET].copy_from_slice(&record.offset_minutes.to_le_bytes());
    payload[AT_USER_BYTES].copy_from_slice(&(record.user.len() as u32).to_le_bytes());
    payload[AT_BODY_BYTES].copy_from_slice(&(body.len() as u32).to_le_bytes());
    payload[AT_VECTOR_BYTES].copy_from_slice(&(record.vector.len() as u32).to_le_bytes());
    payload[AT_TERMS_BYTES].copy_from_slice(&(terms.len() as u32).to_le_bytes());
    payload.extend_from_slice(&record.user);
    payload.extend_from_slice(body);
    payload.extend_from_slice(&record.vector);
    payload.extend_from_slice(&terms);
    set_row_identity(&mut payload, record);
    Ok(payload)
}

/// Sets what is known only under the writer lock.
pub fn set_row_identity(payload: &mut [u8], record: &Record) {
    payload[AT_ID].copy_from_slice(&record.id.get().to_le_bytes());
    payload[AT_VERSION].copy_from_slice(&record.version.to_le_bytes());
    payload[AT_RECORD_TIME].copy_from_slice(&record.record_time.to_le_bytes());
    payload[AT_FIRST_RECORD_TIME].copy_from_slice(&record.first_record_time.to_le_bytes());
}

/// Encodes an end frame's payload.
pub fn encode_end(end: &EndFrame) -> Vec<u8> {
    let counts = wire::encode(&end.counts);
    let mut payload = Vec::with_capacity(END_HEAD_BYTES + end.user.len() + counts.len());
    payload.extend_from_slice(&end.id.get().to_le_bytes());
    payload.extend_from_slice(&end.version.to_le_bytes());
    payload.extend_from_slice(&u32::from(end.superseded).to_le_bytes());
    payload.extend_from_slice(&end.record_time.to_le_bytes());
    payload.extend_from_slice(&(end.user.len() as u32).to_le_bytes());
    payload.extend_from_slice(&(counts.len() as u32).to_le_bytes());
    payload.extend_from_slice(&end.user);
    payload.extend_from_slice(&counts);
    payload
}

/// Decodes the payload of a frame of `kind`.
///
/// # Errors
/// `Corrupt` when lengths, ids or encodings do not hold; `Version` for an unknown kind.
pub fn decode(kind: u16, payload: &[u8]) -> Result<Op> {
    match kind {
        KIND_ROW => decode_row(payload).map(Op::Row),
        KIND_END => decode_end(payload).map(Op::End),
        other => Err(Error::version(format!("frame of unknown kind {other}"))),
    }
}

fn decode_row(payload: &[u8]) -> Result<RowFrame> {
    let Some((head, rest)) = payload.split_first_chunk::<ROW_HEAD_BYTES>() else {
        return Err(Error::corrupt(format!("row frame of {} bytes", payload.len())));
    };
    let u32_at = |at: Range<usize>| u32::from_le_bytes(head[at].try_into().expect("four"));
    let i64_at = |at: Range<usize>| i64::from_le_bytes(head[at].try_into().expect("eight"));
    let id = EpisodeId::new(i64_at(AT_ID) as u64);
    let lengths = [AT_USER_BYTES, AT_BODY_BYTES, AT_VECTOR_BYTES, AT_TERMS_BYTES]
        .map(|at| u32_at(at) as usize);
    let total = lengths.iter().try_fold(0_usize, |sum, bytes| sum.checked_add(*bytes));
    if total != Some(rest.len()) || lengths[0] > NAME_BYTES_MAX {
        return Err(Error::corrupt("lengths in a row frame").of(id.get()));
    }
    let (user, rest) = rest.split_at(lengths[0]);
    let (body, rest) = rest.split_at(lengths[1]);
    let (vector, terms) = rest.split_at(lengths[2]);
    let version = u32_at(AT_VERSION);
    if !are_numbers(id, version) {
        return Err(Error::corrupt("id or version of a row frame"));
    }
    let decoded: Body = wire::decode(body).map_err(|error| error.of(id.get()))?;
    let terms: RowTerms = wire::decode(terms).map_err(|error| error.of(id.get()))?;
    if !terms.is_valid() {
        return Err(Error::corrupt("terms of a row frame").of(id.get()));
    }
    Ok(RowFrame {
        record: Arc::new(Record {
            id,
            version,
            user: user.into(),
            time: i64_at(AT_TIME),
            offset_minutes: i16::from_le_bytes(head[AT_OFFSET].try_into().expect("two")),
            record_time: i64_at(AT_RECORD_TIME),
            first_record_time: i64_at(AT_FIRST_RECORD_TIME),
            ordinal: i64_at(AT_ORDINAL) as u64,
            expires: i64_at(AT_EXPIRES),
            vector: vector.into(),
            shape: terms.shape(),
            terms: Some(Arc::new(terms)),
            body: decoded,
        }),
        body: body.into(),
    })
}

/// Whether a writer can have given `id` and `version`.
fn are_numbers(id: EpisodeId, version: u32) -> bool {
    (1..NUMBER_END).contains(&id.get()) && (1..u32::MAX).contains(&version)
}

fn decode_end(payload: &[u8]) -> Result<EndFrame> {
    let Some((head, rest)) = payload.split_first_chunk::<END_HEAD_BYTES>() else {
        return Err(Error::corrupt(format!("end frame of {} bytes", payload.len())));
    };
    let u32_at = |at: usize| u32::from_le_bytes(head[at..at + 4].try_into().expect("four"));
    let i64_at = |at: usize| i64::from_le_bytes(head[at..at + 8].try_into().expect("eight"));
    let id = EpisodeId::new(i64_at(0) as u64);
    let (user_bytes, counts_bytes) = (u32_at(24) as usize, u32_at(28) as usize);
    if user_bytes.checked_add(counts_bytes) != Some(rest.len()) || user_bytes > NAME_BYTES_MAX {
        return Err(Error::corrupt("lengths in an end frame").of(id.get()));
    }
    let (user, counts) = rest.split_at(user_bytes);
    if !are_numbers(id, u32_at(8)) || u32_at(12) > END_SUPERSEDED {
        return Err(Error::corrupt("id, version or flags of an end frame"));
    }
    Ok(EndFrame {
        id,
        version: u32_at(8),
        user: user.into(),
        record_time: i64_at(16),
        superseded: u32_at(12) & END_SUPERSEDED != 0,
        counts: wire::decode(counts).map_err(|error| error.of(id.get()))?,
    })
}

/// What a live version adds to its user's statistics.
pub fn counts_of(record: &Record) -> Counts {
    Counts {
        rows: 1,
        vectors: i64::from(!record.vector.is_empty()),
        text_bytes: record.body.text.len() as i64,
        passages: i64::from(record.shape.passages),
        half_terms: record.shape.half_terms as i64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Record {
        let terms = crate::storage::segment::example::simple_terms("hello", None);
        Record {
            id: EpisodeId::new(5),
            version: 2,
            user: b"u\0x"[..].into(),
            time: -7,
            offset_minutes: -90,
            record_time: 11,
            first_record_time: 10,
            ordinal: 3,
            expires: i64::MAX,
            vector: [1, 2, 3, 4][..].into(),
            shape: terms.shape(),
            terms: Some(terms.into()),
            body: Body {
                text: "hello".into(),
                session: Some("s".into()),
                speaker: None,
                agent: None,
                key: Some("k".into()),
                metadata: "{}".into(),
                tags: vec!["t".into()],
            },
        }
    }

    #[test]
    fn an_id_or_version_that_cannot_be_counted_on_from_is_refused() {
        for (id, version) in [(NUMBER_END, 1), (u64::MAX, 1), (1, u32::MAX), (0, 1), (1, 0)] {
            let bad = Record { id: EpisodeId::new(id), version, ..record() };
            let payload = encode_row(&bad, &wire::encode(&bad.body)).unwrap();
            assert!(decode(KIND_ROW, &payload).is_err(), "{id} {version}");
        }
    }

    #[test]
    fn a_row_survives_the_way_to_bytes_and_back() {
        let body = wire::encode(&record().body);
        let payload = encode_row(&record(), &body).unwrap();
        let Op::Row(frame) = decode(KIND_ROW, &payload).unwrap() else { panic!("a row") };
        assert_eq!(*frame.record, record());
        assert_eq!(*frame.body, *body);
    }

    #[test]
    fn an_end_survives_the_way_to_bytes_and_back() {
        let end = EndFrame {
            id: EpisodeId::new(9),
            version: 1,
            user: b"u"[..].into(),
            record_time: 4,
            superseded: true,
            counts: Counts {
                rows: -1,
                vectors: -1,
                text_bytes: -300,
                passages: -2,
                half_terms: -40,
            },
        };
        let Op::End(read) = decode(KIND_END, &encode_end(&end)).unwrap() else { panic!("an end") };
        assert_eq!(read, end);
    }

    #[test]
    fn cut_payloads_are_errors() {
        let payload = encode_row(&record(), &wire::encode(&record().body)).unwrap();
        for length in 0..payload.len() {
            assert!(decode(KIND_ROW, &payload[..length]).is_err(), "{length}");
        }
        assert!(decode(99, &payload).is_err());
    }
}
