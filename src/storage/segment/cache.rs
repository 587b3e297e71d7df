//! Decompressed text blocks that were read lately, of all segments of one handle.
//!
//! Invariants: a block is kept only after its checksum held; the bytes kept stay within the limit; the block not read
//! for the longest goes first; blocks of a segment that is closed go with it.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The number of an open segment within the process, and a block.
pub type BlockKey = (u64, u32);

/// What an entry takes beside its bytes: two map entries and the counts of an `Arc`, roughly.
const ENTRY_BYTES: usize = 128;

/// The cache.
#[derive(Debug)]
pub struct TextCache {
    bytes_max: usize,
    // One lock: it is held for two look-ups, the decompression that it saves takes a hundred times as long.
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    blocks: HashMap<BlockKey, Block>,
    /// Keys by the clock of their last use.
    order: BTreeMap<u64, BlockKey>,
    clock: u64,
    bytes: usize,
}

#[derive(Debug)]
struct Block {
    bytes: Arc<[u8]>,
    used: u64,
}

impl TextCache {
    /// A cache of at most `bytes_max` bytes; `None` for zero.
    pub fn new(bytes_max: usize) -> Option<Arc<TextCache>> {
        (bytes_max > 0).then(|| Arc::new(TextCache { bytes_max, held: Mutex::default() }))
    }

    /// The contents of a block, if they are here.
    pub fn get(&self, key: BlockKey) -> Option<Arc<[u8]>> {
        let held = &mut *self.lock();
        let block = held.blocks.get_mut(&key)?;
        held.order.remove(&block.used);
        held.clock += 1;
        block.used = held.clock;
        held.order.insert(block.used, key);
        Some(block.bytes.clone())
    }

    /// Keeps the contents of a block.
    pub fn put(&self, key: BlockKey, bytes: &[u8]) {
        let cost = bytes.len() + ENTRY_BYTES;
        if cost > self.bytes_max {
            return;
        }
        let bytes = Arc::from(bytes);
        let held = &mut *self.lock();
        held.remove(key);
        while held.bytes + cost > self.bytes_max
            && let Some((_, oldest)) = held.order.first_key_value()
        {
            held.remove(*oldest);
        }
        held.clock += 1;
        held.blocks.insert(key, Block { bytes, used: held.clock });
        held.order.insert(held.clock, key);
        held.bytes += cost;
    }

    /// Drops the blocks of one open segment.
    pub fn forget(&self, segment: u64) {
        let held = &mut *self.lock();
        let blocks: Vec<BlockKey> =
            held.blocks.keys().filter(|key| key.0 == segment).copied().collect();
        blocks.into_iter().for_each(|key| held.remove(key));
    }

    // What a panicking thread leaves is at worst a count that is off: the cache holds no truth of its own.
    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    fn remove(&mut self, key: BlockKey) {
        if let Some(block) = self.blocks.remove(&key) {
            self.order.remove(&block.used);
            self.bytes -= block.bytes.len() + ENTRY_BYTES;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_block_not_read_for_the_longest_goes_first() {
        let cache = TextCache::new(3 * (100 + ENTRY_BYTES)).unwrap();
        for block in 0..3 {
            cache.put((1, block), &[block as u8; 100]);
        }
        assert_eq!(*cache.get((1, 0)).unwrap(), [0; 100]);
        cache.put((1, 3), &[3; 100]);
        let held: Vec<bool> = (0..4).map(|block| cache.get((1, block)).is_some()).collect();
        assert_eq!(held, [true, false, true, true]);
    }

    #[test]
    fn the_limit_holds_whatever_is_put_and_a_block_beyond_it_is_not_kept() {
        let cache = TextCache::new(1000).unwrap();
        for round in 0..50 {
            cache.put((round % 3, 7), &vec![1; (round as usize * 37) % 400]);
            let held = cache.lock();
            let real = held.blocks.values().map(|block| block.bytes.len() + ENTRY_BYTES);
            assert_eq!(held.bytes, real.sum::<usize>());
            assert!(held.bytes <= 1000 && held.order.len() == held.blocks.len());
        }
        cache.put((9, 9), &[0; 1000]);
        assert!(cache.get((9, 9)).is_none());
        assert!(TextCache::new(0).is_none());
    }

    #[test]
    fn blocks_of_a_closed_segment_are_gone() {
        let cache = TextCache::new(10_000).unwrap();
        cache.put((1, 0), &[1]);
        cache.put((2, 0), &[2]);
        cache.forget(1);
        assert!(cache.get((1, 0)).is_none() && cache.get((2, 0)).is_some());
        assert_eq!(cache.lock().bytes, 1 + ENTRY_BYTES);
    }
}
