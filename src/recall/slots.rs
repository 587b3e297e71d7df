//! Slots for what a search finds out of single rows and passages, by their numbers. They are used again by later
//! searches, since clearing those that were used is cheaper than new ones.

use std::sync::Mutex;

use crate::simd;

/// Slots that are kept for later searches at once: about as many as search side by side.
const KEPT_MAX: usize = 4;

/// How many rows before its turn the processor is told of one: what is known of rows lies far apart.
pub(super) const ROWS_AHEAD: usize = 8;

/// What a slot holds.
pub(super) trait Slot: Copy {
    /// Of which nothing is known.
    const EMPTY: Self;
    /// Whether anything was ever written; from now on it was.
    fn mark_used(&mut self) -> bool;
}

/// A slot for each number up to some bound.
#[derive(Debug)]
pub(super) struct Slots<T> {
    slots: Vec<T>,
    used: Vec<u32>,
}

impl<T> Default for Slots<T> {
    fn default() -> Slots<T> {
        Slots { slots: Vec::new(), used: Vec::new() }
    }
}

impl<T: Slot> Slots<T> {
    /// The slot of a number, to write to.
    pub fn write(&mut self, number: u32) -> &mut T {
        let slot = &mut self.slots[number as usize];
        if !slot.mark_used() {
            self.used.push(number);
        }
        slot
    }

    /// The slot of a number.
    pub fn read(&self, number: u32) -> &T {
        &self.slots[number as usize]
    }

    /// Tells the processor that the slot of a number and those beside it are asked for soon.
    pub fn expect(&self, number: u32) {
        let number = number as usize;
        let end = self.slots.len().min(number + 2);
        simd::prefetch(&self.slots[number.saturating_sub(1)..end]);
    }

    /// The slots of some numbers.
    pub fn range(&self, numbers: std::ops::Range<u32>) -> &[T] {
        &self.slots[numbers.start as usize..numbers.end as usize]
    }

    fn clear(&mut self) {
        for number in self.used.drain(..) {
            self.slots[number as usize] = T::EMPTY;
        }
    }
}

/// Slots that no search uses just now.
#[derive(Debug)]
pub(super) struct SlotPool<T>(Mutex<Vec<Slots<T>>>);

impl<T> Default for SlotPool<T> {
    fn default() -> SlotPool<T> {
        SlotPool(Mutex::new(Vec::new()))
    }
}

impl<T: Slot> SlotPool<T> {
    /// So many empty slots.
    pub fn take(&self, count: u32) -> Slots<T> {
        let kept = self.0.lock().unwrap_or_else(|poison| poison.into_inner()).pop();
        let mut slots = kept.unwrap_or_default();
        slots.slots.resize(count as usize, T::EMPTY);
        slots
    }

    /// Takes slots back, and clears them.
    pub fn give(&self, mut slots: Slots<T>) {
        slots.clear();
        let mut kept = self.0.lock().unwrap_or_else(|poison| poison.into_inner());
        if kept.len() < KEPT_MAX {
            kept.push(slots);
        }
    }
}

/// A set of numbers below a bound.
pub(super) struct NumberSet(Vec<u64>);

impl NumberSet {
    pub fn new(bound: u32) -> NumberSet {
        NumberSet(vec![0; (bound as usize).div_ceil(64)])
    }

    pub fn insert(&mut self, number: u32) {
        self.0[number as usize / 64] |= 1 << (number % 64);
    }

    pub fn contains(&self, number: u32) -> bool {
        self.0[number as usize / 64] & (1 << (number % 64)) != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy, Debug, PartialEq)]
    struct Pair(u8, bool);

    impl Slot for Pair {
        const EMPTY: Pair = Pair(0, false);
        fn mark_used(&mut self) -> bool {
            std::mem::replace(&mut self.1, true)
        }
    }

    #[test]
    fn slots_come_back_empty_and_of_the_size_asked_for() {
        let pool = SlotPool::default();
        let mut slots: Slots<Pair> = pool.take(10);
        slots.write(9).0 = 1;
        slots.write(3).0 = 2;
        slots.write(3).0 += 2;
        assert_eq!(slots.read(3).0, 4);
        pool.give(slots);
        let slots = pool.take(4);
        assert!(slots.range(0..4).iter().all(|slot| *slot == Pair::EMPTY));
        pool.give(slots);
        let slots = pool.take(20);
        assert!(slots.range(0..20).iter().all(|slot| *slot == Pair::EMPTY));
    }
}
