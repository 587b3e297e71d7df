//! One slot for each passage of a user: what it holds of the term at hand, and its sum. Slots are used again by later
//! searches, since clearing those that were used is cheaper than new ones.

use std::sync::Mutex;

/// Slots that are kept for later searches at once: about as many as search side by side.
const KEPT_MAX: usize = 4;

/// What is known of one passage.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Slot {
    /// Of all terms so far.
    pub sum: f32,
    /// The length norm; 0 before it is asked for.
    pub norm: f32,
    /// The entry of a rough look, counted from 1; 0 for none.
    pub rough: u32,
    /// The line of a table of frequencies, counted from 1; 0 for none.
    pub line: u32,
    /// Of the term at hand: in the passage itself, the text and the speaker counting 2 and the date 1.
    pub own_halves: u16,
    /// Borrowed, as `Held` of the formula has it.
    pub previous: u8,
    pub before_previous: u8,
    pub next: u8,
    /// Whether anything was ever written.
    pub is_used: bool,
}

/// The slots of all passages.
#[derive(Debug, Default)]
pub(super) struct Slots {
    slots: Vec<Slot>,
    used: Vec<u32>,
}

impl Slots {
    /// The slot of a passage, to write to.
    pub fn write(&mut self, passage: u32) -> &mut Slot {
        let slot = &mut self.slots[passage as usize];
        if !slot.is_used {
            slot.is_used = true;
            self.used.push(passage);
        }
        slot
    }

    /// The slot of a passage.
    pub fn read(&self, passage: u32) -> &Slot {
        &self.slots[passage as usize]
    }

    /// The slots of some passages.
    pub fn range(&self, passages: std::ops::Range<u32>) -> &[Slot] {
        &self.slots[passages.start as usize..passages.end as usize]
    }

    fn clear(&mut self) {
        for passage in self.used.drain(..) {
            self.slots[passage as usize] = Slot::default();
        }
    }
}

/// Slots that no search uses just now. One a handle.
#[derive(Debug, Default)]
pub(crate) struct SlotPool(Mutex<Vec<Slots>>);

impl SlotPool {
    /// Empty slots for so many passages.
    pub(super) fn take(&self, passages: u32) -> Slots {
        let kept = self.0.lock().unwrap_or_else(|poison| poison.into_inner()).pop();
        let mut slots = kept.unwrap_or_default();
        slots.slots.resize(passages as usize, Slot::default());
        slots
    }

    /// Takes slots back, and clears them.
    pub(super) fn give(&self, mut slots: Slots) {
        slots.clear();
        let mut kept = self.0.lock().unwrap_or_else(|poison| poison.into_inner());
        if kept.len() < KEPT_MAX {
            kept.push(slots);
        }
    }
}

/// A set of passages.
pub(super) struct PassageSet(Vec<u64>);

impl PassageSet {
    pub fn new(passages: u32) -> PassageSet {
        PassageSet(vec![0; (passages as usize).div_ceil(64)])
    }

    pub fn insert(&mut self, passage: u32) {
        self.0[passage as usize / 64] |= 1 << (passage % 64);
    }

    pub fn contains(&self, passage: u32) -> bool {
        self.0[passage as usize / 64] & (1 << (passage % 64)) != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_come_back_empty_and_of_the_size_asked_for() {
        let pool = SlotPool::default();
        let mut slots = pool.take(10);
        slots.write(9).sum = 1.0;
        slots.write(3).next = 2;
        pool.give(slots);
        let slots = pool.take(4);
        assert!(slots.range(0..4).iter().all(|slot| slot.sum == 0.0 && !slot.is_used));
        pool.give(slots);
        let slots = pool.take(20);
        assert!(slots.range(0..20).iter().all(|slot| slot.sum == 0.0 && !slot.is_used));
    }
}
