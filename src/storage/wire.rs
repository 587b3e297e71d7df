//! The encoding of everything that is not laid out by hand: bincode 2 (format-spec.md 2), wrapped once.
//!
//! Invariants: a value is decoded under a limit that grows with its bytes, so that a length read from disk never
//! allocates without bound; a value must consume its bytes whole. Never decode a list of zero-sized elements here:
//! no limit bounds those.

use bincode::config;
use bincode::enc::write::Writer;
use bincode::error::EncodeError;
use bincode::{Decode, Encode};

use crate::error::{Error, Result};

/// Bytes of one encoded value, at most. A batch is the largest thing that is ever encoded (design 8: 64 MiB).
pub const WIRE_BYTES_MAX: usize = 64 << 20;

/// Appends to a vector; cannot fail.
struct Appender<'a>(&'a mut Vec<u8>);

impl Writer for Appender<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::result::Result<(), EncodeError> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }
}

/// The bytes of `value`: little-endian, integers of variable length.
pub fn encode<T: Encode>(value: &T) -> Vec<u8> {
    let mut out = Vec::new();
    append(value, &mut out);
    out
}

/// Appends the bytes of `value` to `out`.
pub fn append<T: Encode>(value: &T, out: &mut Vec<u8>) {
    bincode::encode_into_writer(value, Appender(out), config::standard().with_little_endian())
        .expect("stored types have no state that cannot be encoded, and memory takes every byte");
}

/// The value whose encoding is exactly `bytes`.
///
/// The limit counts decoded bytes. No stored type decodes to more than eight times its encoding plus a constant
/// (an integer of one byte becomes eight), so steps of eight above that refuse nothing that was written, and one
/// wrong length reserves at most 64 times the bytes at hand, or 128 KiB. A step is a type parameter of bincode, which
/// is why there are five of them and not a number.
///
/// # Errors
/// [`crate::ErrorKind::Corrupt`] when the bytes are no such value, or hold more than one.
pub fn decode<T: Decode<()>>(bytes: &[u8]) -> Result<T> {
    const STEP_1: usize = 128 << 10;
    const STEP_2: usize = 1 << 20;
    const STEP_3: usize = 8 << 20;
    const STEP_4: usize = 64 << 20;
    const STEP_5: usize = 640 << 20;
    if bytes.len() > WIRE_BYTES_MAX {
        return Err(Error::corrupt(format!("encoded value of {} bytes", bytes.len())));
    }
    let base = config::standard().with_little_endian();
    let needed = bytes.len() * 8 + (64 << 10);
    let decoded = if needed <= STEP_1 {
        bincode::decode_from_slice(bytes, base.with_limit::<STEP_1>())
    } else if needed <= STEP_2 {
        bincode::decode_from_slice(bytes, base.with_limit::<STEP_2>())
    } else if needed <= STEP_3 {
        bincode::decode_from_slice(bytes, base.with_limit::<STEP_3>())
    } else if needed <= STEP_4 {
        bincode::decode_from_slice(bytes, base.with_limit::<STEP_4>())
    } else {
        bincode::decode_from_slice(bytes, base.with_limit::<STEP_5>())
    };
    // The cause is left out: bincode quotes what it met, and that may be somebody's text.
    let (value, consumed) =
        decoded.map_err(|_| Error::corrupt("encoded value cannot be decoded"))?;
    if consumed != bytes.len() {
        return Err(Error::corrupt(format!(
            "encoded value ends at byte {consumed} of {}",
            bytes.len()
        )));
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Body;

    #[test]
    fn a_value_comes_back_from_exactly_its_bytes() {
        let lists = (vec![String::new(); 1000], vec![1u64; 100_000], "text".repeat(1 << 20));
        let bytes = encode(&lists);
        assert_eq!(decode::<(Vec<String>, Vec<u64>, String)>(&bytes).unwrap(), lists);
        assert!(decode::<(Vec<String>, Vec<u64>, String)>(&bytes[..bytes.len() - 1]).is_err());
        let mut longer = bytes;
        longer.push(0);
        assert!(decode::<(Vec<String>, Vec<u64>, String)>(&longer).is_err());
    }

    #[test]
    fn a_length_beyond_the_bytes_is_corrupt_and_allocates_little() {
        let mut bytes = vec![253];
        bytes.extend((1u64 << 40).to_le_bytes());
        assert!(decode::<String>(&bytes).is_err());
        assert!(decode::<Vec<u64>>(&bytes).is_err());
        assert!(decode::<Body>(&bytes).is_err());
    }

    #[test]
    fn integers_have_the_documented_bytes() {
        assert_eq!(encode(&250u64), [250]);
        assert_eq!(encode(&251u64), [251, 251, 0]);
        assert_eq!(encode(&65_536u32), [252, 0, 0, 1, 0]);
        assert_eq!(encode(&(1u64 << 32)), [253, 0, 0, 0, 0, 1, 0, 0, 0]);
        assert_eq!(encode(&-1i64), [1]);
        assert_eq!(encode(&Some("ab".to_owned())), [1, 2, b'a', b'b']);
        assert_eq!(encode(&None::<String>), [0]);
    }
}
