//! `locks/state`: how far the log counts, for every process of this machine (design 2.2).
//!
//! Two slots are written in turn, each with its own checksum, so that a reader always finds one whole. The file is
//! never synced: it is written after the sync that it tells of, and after a power cut it is only a hint.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::ids::{LogId, NUMBER_END};

use super::vfs::VfsFile;

/// Bytes of one slot. format-spec.md, section 5.2.
const SLOT_BYTES: usize = 64;
const MAGIC: [u8; 4] = *b"LST1";

/// How far the log counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// Grows by one with every write; the higher of two valid slots holds.
    pub generation: u64,
    /// The active log.
    pub log: LogId,
    /// Readers read to here.
    pub visible_end: u64,
    /// Synced to here.
    pub durable_end: u64,
    /// The batch that ends at `visible_end`.
    pub visible_seq: u64,
    /// The batch that ends at `durable_end`.
    pub durable_seq: u64,
    /// A writer began a new log, or a sync of what was only visible, and has not said how it ended: the next writer
    /// must begin another log.
    pub rotating: bool,
}

impl State {
    fn encode(&self) -> [u8; SLOT_BYTES] {
        let mut bytes = [0; SLOT_BYTES];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4] = u8::from(self.rotating);
        let words = [
            self.generation,
            self.log.get(),
            self.visible_end,
            self.durable_end,
            self.visible_seq,
            self.durable_seq,
        ];
        for (slot, word) in bytes[8..56].as_chunks_mut::<8>().0.iter_mut().zip(words) {
            *slot = word.to_le_bytes();
        }
        let crc = crc32fast::hash(&bytes[..60]);
        bytes[60..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8; SLOT_BYTES]) -> Option<State> {
        let crc = u32::from_le_bytes(bytes[60..].try_into().expect("four"));
        if bytes[..4] != MAGIC || crc != crc32fast::hash(&bytes[..60]) {
            return None;
        }
        let words = bytes[8..56].as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word));
        if words.clone().any(|word| word >= NUMBER_END) {
            return None;
        }
        let mut words = words;
        let mut word = || words.next().expect("six words");
        Some(State {
            generation: word(),
            log: LogId::new(word()),
            visible_end: word(),
            durable_end: word(),
            visible_seq: word(),
            durable_seq: word(),
            rotating: bytes[4] != 0,
        })
    }
}

/// The open file.
#[derive(Clone, Debug)]
pub struct StateFile(Arc<dyn VfsFile>);

impl StateFile {
    pub fn new(file: Arc<dyn VfsFile>) -> StateFile {
        StateFile(file)
    }

    /// The newer valid slot; `None` when neither holds.
    ///
    /// # Errors
    /// `Io`.
    pub fn read(&self) -> Result<Option<State>> {
        let mut bytes = [0; 2 * SLOT_BYTES];
        self.0.read_up_to(0, &mut bytes).map_err(|error| Error::io("read locks/state", error))?;
        let slots = bytes.as_chunks::<SLOT_BYTES>().0.iter().filter_map(State::decode);
        Ok(slots.max_by_key(|state| state.generation))
    }

    /// Writes `state` into the slot that the state before it does not hold.
    ///
    /// # Errors
    /// `Io`; the slot before still holds.
    pub fn write(&self, state: &State) -> Result<()> {
        let at = (state.generation % 2) * SLOT_BYTES as u64;
        self.0
            .write_all_at(at, &state.encode())
            .map_err(|error| Error::io("write locks/state", error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_survives_and_any_flipped_bit_is_noticed() {
        let state = State {
            generation: 9,
            log: LogId::new(3),
            visible_end: 400,
            durable_end: 300,
            visible_seq: 12,
            durable_seq: 10,
            rotating: true,
        };
        let bytes = state.encode();
        assert_eq!(State::decode(&bytes), Some(state));
        for bit in 0..SLOT_BYTES * 8 {
            let mut broken = bytes;
            broken[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(State::decode(&broken), None, "bit {bit}");
        }
        let beyond = State { durable_seq: NUMBER_END, ..state };
        assert_eq!(State::decode(&beyond.encode()), None);
    }
}
