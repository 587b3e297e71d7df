//! Posting lists: how they lie in a file (format-spec.md 3.13), and their decoding.
//!
//! Invariants: a list is of one term of one user; passages ascend strictly within the user's; decoding any bytes gives
//! at most [`BLOCK_POSTINGS`] postings or an error, and reads no byte twice.

use crate::model::Frequencies;

use super::reader::Segment;
use super::section::Section;
use crate::error::{Error, Result};
use std::ops::Range;

/// Postings of one block. A list of more has a skip table, so that a reader passes over blocks it does not need.
pub const BLOCK_POSTINGS: usize = 128;
/// Bytes of one entry of a skip table: last passage and end of a block.
const SKIP_BYTES: usize = 8;
/// The frequencies behind the low two bits of a posting; the fourth value stands for three bytes that follow.
const COMMON: [Frequencies; 3] = [
    Frequencies { text: 1, speaker: 0, date: 0 },
    Frequencies { text: 0, speaker: 0, date: 1 },
    Frequencies { text: 0, speaker: 1, date: 0 },
];
const GENERAL: u64 = 3;

/// What one passage says of one term.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Posting {
    /// The passage's number in its segment.
    pub passage: u32,
    /// How often it holds the term, and where.
    pub frequencies: Frequencies,
}

/// Appends the list of `postings`, which ascend, of a user whose first passage is `first`. `None` when a block would
/// end beyond what its skip entry can say.
///
/// # Panics
/// When the postings do not ascend from `first` on, or one says nothing: bugs of the caller.
pub fn encode_list(first: u32, postings: &[Posting], out: &mut Vec<u8>) -> Option<()> {
    let has_skips = postings.len() > BLOCK_POSTINGS;
    let table = out.len();
    if has_skips {
        out.resize(table + postings.len().div_ceil(BLOCK_POSTINGS) * SKIP_BYTES, 0);
    }
    let blocks_at = out.len();
    // One above the passage before.
    let mut next = first;
    for (number, block) in postings.chunks(BLOCK_POSTINGS).enumerate() {
        for posting in block {
            assert!(posting.passage >= next, "postings ascend within the user's passages");
            encode_posting(u64::from(posting.passage - next) + 1, posting.frequencies, out);
            next = posting.passage.checked_add(1).expect("a passage lies below their count");
        }
        if has_skips {
            let end = u32::try_from(out.len() - blocks_at).ok()?;
            let skip = &mut out[table + number * SKIP_BYTES..][..SKIP_BYTES];
            skip[..4].copy_from_slice(&(next - 1).to_le_bytes());
            skip[4..].copy_from_slice(&end.to_le_bytes());
        }
    }
    Some(())
}

fn encode_posting(delta: u64, frequencies: Frequencies, out: &mut Vec<u8>) {
    assert!(frequencies != Frequencies::default(), "a posting says something");
    let code = COMMON.iter().position(|common| *common == frequencies);
    put_varint(delta << 2 | code.map_or(GENERAL, |code| code as u64), out);
    if code.is_none() {
        out.extend([frequencies.text, frequencies.speaker, frequencies.date]);
    }
}

/// Appends `value`, seven bits a byte, the low ones first; the high bit says that more follow.
pub fn put_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Reads what [`put_varint`] wrote at `at`: the value, below 2^35, and the place behind it. Nothing when the bytes end
/// early or are longer than the value asks for.
#[inline]
pub fn take_varint(bytes: &[u8], at: usize) -> Option<(u64, usize)> {
    let byte = *bytes.get(at)?;
    if byte < 0x80 {
        return Some((u64::from(byte), at + 1));
    }
    let mut value = u64::from(byte & 0x7f);
    for more in 1..5 {
        let byte = *bytes.get(at + more)?;
        value |= u64::from(byte & 0x7f) << (7 * more);
        if byte < 0x80 {
            return (byte > 0).then_some((value, at + more + 1));
        }
    }
    None
}

/// Fills `out` with the postings of one block, whose passages start at `next`; one above the last, or nothing when the
/// bytes are not exactly these.
fn decode_block(bytes: &[u8], mut next: u64, out: &mut [Posting]) -> Option<u64> {
    let mut at = 0;
    for slot in out {
        // One byte or two, without asking which: lists of middling terms mix them as chance has it.
        let (value, behind) = match bytes.get(at..at + 2) {
            Some(&[low, high]) if low & high < 0x80 => {
                let more = u64::from(low >> 7);
                if more == 1 && high == 0 {
                    return None;
                }
                let value = u64::from(low & 0x7f) | ((u64::from(high) << 7) * more);
                (value, at + 1 + more as usize)
            }
            _ => take_varint(bytes, at)?,
        };
        at = behind;
        let delta = value >> 2;
        if delta == 0 {
            return None;
        }
        next += delta;
        let frequencies = match COMMON.get((value & 3) as usize) {
            Some(common) => *common,
            None => {
                let [text, speaker, date] = *bytes.get(at..)?.first_chunk()?;
                at += 3;
                let frequencies = Frequencies { text, speaker, date };
                if frequencies == Frequencies::default() || COMMON.contains(&frequencies) {
                    return None;
                }
                frequencies
            }
        };
        *slot = Posting { passage: (next - 1) as u32, frequencies };
    }
    (at == bytes.len()).then_some(next)
}

/// The postings of one term of one user in one segment.
#[derive(Clone, Copy)]
pub struct Postings<'a> {
    segment: &'a Segment,
    /// The user's passages, from the first to one behind the last.
    passages: (u32, u32),
    count: u32,
    skips: &'a [[u8; SKIP_BYTES]],
    blocks: &'a [u8],
}

impl<'a> Postings<'a> {
    /// A list of `count` postings in `bytes`, whose checksums were checked.
    pub(super) fn new(
        segment: &'a Segment,
        passages: &Range<u32>,
        count: u32,
        bytes: &'a [u8],
    ) -> Result<Postings<'a>> {
        let block_count = (count as usize).div_ceil(BLOCK_POSTINGS);
        let table = if block_count > 1 { block_count * SKIP_BYTES } else { 0 };
        // A posting takes a byte and names a passage of its own.
        let fits = count > 0 && count <= passages.end - passages.start;
        match bytes.split_at_checked(table) {
            Some((skips, blocks)) if fits && count as usize <= blocks.len() => Ok(Postings {
                segment,
                passages: (passages.start, passages.end),
                count,
                skips: skips.as_chunks().0,
                blocks,
            }),
            _ => Err(segment.disagree("posting count", Section::Terms)),
        }
    }

    /// Passages that hold the term, those of ended rows included; at least 1.
    #[expect(clippy::len_without_is_empty, reason = "a list is never empty")]
    pub fn len(&self) -> u32 {
        self.count
    }

    /// Blocks of at most [`BLOCK_POSTINGS`] postings; at least 1.
    pub fn block_count(&self) -> u32 {
        self.skips.len().max(1) as u32
    }

    /// The last passage of block `block`. Decodes the block when it is the only one.
    ///
    /// # Errors
    /// `Corrupt`, also for a block that the list does not have.
    pub fn block_last(&self, block: u32) -> Result<u32> {
        if self.skips.is_empty() && block == 0 {
            let mut postings = [Posting::default(); BLOCK_POSTINGS];
            let postings = &mut postings[..self.count as usize];
            self.fill(0, postings).ok_or_else(|| self.damaged())?;
            return Ok(postings[postings.len() - 1].passage);
        }
        self.skip(block).map(|(last, _)| last).ok_or_else(|| self.damaged())
    }

    /// Fills `out`, which is cleared first, with the postings of block `block`.
    ///
    /// # Errors
    /// `Corrupt`, also for a block that the list does not have; `out` is empty then.
    pub fn decode(&self, block: u32, out: &mut Vec<Posting>) -> Result<()> {
        out.clear();
        let before = u64::from(block) * BLOCK_POSTINGS as u64;
        let count = u64::from(self.count).saturating_sub(before).min(BLOCK_POSTINGS as u64);
        out.resize(count as usize, Posting::default());
        if count > 0 && self.fill(block, out).is_some() {
            return Ok(());
        }
        out.clear();
        Err(self.damaged())
    }

    fn fill(&self, block: u32, out: &mut [Posting]) -> Option<()> {
        // What the block before it says of itself is compared with that block when it is read.
        let (next, start) = match block.checked_sub(1) {
            Some(before) => {
                let (last, end) = self.skip(before)?;
                (u64::from(last) + 1, end)
            }
            None => (u64::from(self.passages.0), 0),
        };
        let (last, end) = match self.skips.is_empty() {
            true => (None, self.blocks.len()),
            false => self.skip(block).map(|(last, end)| (Some(last), end))?,
        };
        let is_last = block as usize + 1 >= self.skips.len();
        if next < u64::from(self.passages.0) {
            return None;
        }
        let bytes = self.blocks.get(start..end)?;
        let reached = decode_block(bytes, next, out)?;
        let is_told = last.is_none_or(|last| u64::from(last) + 1 == reached);
        let is_whole = !is_last || end == self.blocks.len();
        (is_told && is_whole && reached <= u64::from(self.passages.1)).then_some(())
    }

    /// Last passage and end of one block.
    fn skip(&self, block: u32) -> Option<(u32, usize)> {
        let [a, b, c, d, end @ ..] = *self.skips.get(block as usize)?;
        Some((u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes(end) as usize))
    }

    #[cold]
    fn damaged(&self) -> Error {
        self.segment.disagree("posting list", Section::Postings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_common_posting_takes_one_byte_and_any_other_comes_back() {
        let general = Frequencies { text: 2, speaker: 0, date: 255 };
        let frequencies = [COMMON[0], COMMON[1], COMMON[2], general];
        let postings: Vec<Posting> = (0..100u32)
            .map(|n| Posting { passage: 7 + n * 31, frequencies: frequencies[n as usize % 3] })
            .collect();
        let mut bytes = Vec::new();
        encode_list(7, &postings, &mut bytes).unwrap();
        assert_eq!(bytes.len(), 100);
        let wide: Vec<Posting> = [0, 1, 40, 1 << 20, u32::MAX - 1]
            .iter()
            .zip(frequencies.iter().cycle())
            .map(|(passage, frequencies)| Posting { passage: *passage, frequencies: *frequencies })
            .collect();
        for (first, postings) in [(7, postings), (0, wide)] {
            let mut bytes = Vec::new();
            encode_list(first, &postings, &mut bytes).unwrap();
            let mut read = vec![Posting::default(); postings.len()];
            decode_block(&bytes, first.into(), &mut read).unwrap();
            assert_eq!(read, postings);
            // Neither fewer nor more bytes, nor fewer postings, are taken for it.
            assert_eq!(decode_block(&bytes[..bytes.len() - 1], first.into(), &mut read), None);
            let fewer = read.len() - 1;
            assert_eq!(decode_block(&bytes, first.into(), &mut read[..fewer]), None);
        }
    }

    #[test]
    fn hostile_blocks_are_refused() {
        let decode = |bytes: &[u8]| decode_block(bytes, 5, &mut [Posting::default()]);
        assert_eq!(decode(&[4]), Some(6));
        assert_eq!(decode(&[0]), None, "a delta of zero");
        assert_eq!(decode(&[0x84, 0]), None, "a varint longer than its value");
        assert_eq!(decode(&[0xff; 6]), None, "a varint without end");
        assert_eq!(decode(&[7, 0, 0, 0]), None, "a posting that says nothing");
        assert_eq!(decode(&[7, 1, 0, 0]), None, "three bytes for what two bits say");
        assert_eq!(decode(&[7, 1]), None, "bytes that end early");
        assert_eq!(decode(&[7, 2, 0, 0]), Some(6));
    }
}
