//! Frame payloads and encoded values: what decodes survives the way to bytes and back, and nothing is left over.

use loomdb::internals::model::Body;
use loomdb::internals::storage::log::Op;
use loomdb::internals::storage::log::format::{KIND_END, KIND_ROW};
use loomdb::internals::storage::log::frame::{decode, encode_end, encode_row};
use loomdb::internals::storage::segment::Counts;
use loomdb::internals::storage::wire;

/// First byte: what the rest is.
pub fn run(data: &[u8]) {
    let Some((kind, rest)) = data.split_first() else { return };
    match kind % 5 {
        0 => row(rest),
        1 => end(rest),
        2 => body(rest),
        3 => counts(rest),
        _ => {
            let _ = decode(u16::from(*kind), rest);
        }
    }
}

fn row(payload: &[u8]) {
    let Ok(Op::Row(frame)) = decode(KIND_ROW, payload) else { return };
    let body = wire::encode(&frame.record.body);
    let again = encode_row(&frame.record, &body).expect("what was decoded has a legal size");
    let Ok(Op::Row(read)) = decode(KIND_ROW, &again) else { panic!("a row stays a row") };
    assert!(read.record == frame.record, "a row survives the way to bytes and back");
    // Integers may have been written longer than needed; what this program writes is the short form, for good.
    assert!(*read.body == *body && again.len() <= payload.len());
}

fn end(payload: &[u8]) {
    let Ok(Op::End(end)) = decode(KIND_END, payload) else { return };
    let again = encode_end(&end);
    let Ok(Op::End(read)) = decode(KIND_END, &again) else { panic!("an end stays an end") };
    assert!(read == end, "an end survives the way to bytes and back");
}

fn body(bytes: &[u8]) {
    let Ok(body) = wire::decode::<Body>(bytes) else { return };
    let again = wire::encode(&body);
    assert!(again.len() <= bytes.len());
    assert!(wire::decode::<Body>(&again).expect("just encoded") == body);
}

fn counts(bytes: &[u8]) {
    let Ok(counts) = wire::decode::<Counts>(bytes) else { return };
    assert_eq!(wire::decode::<Counts>(&wire::encode(&counts)).expect("just encoded"), counts);
}
