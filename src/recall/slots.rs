//! Slots for what a search finds out of single rows and passages, by their numbers. They are used again by later
//! searches, since clearing those that were used is cheaper than new ones.

use std::sync::Mutex;

use crate::simd;

/// Slots that are kept for later searches at once: about as many as search side by side.
const KEPT_MAX: usize = 4;

/// How many rows before its turn the processor is told of one: what is known of rows lies far apart.
pub(super) const ROWS_AHEAD: usize = 8;

/// Numbers up to which each has its slot. Where there are more, a search touches a small share of them, and slots in a
/// table are fewer bytes to go through and to keep (`benches/scale`).
const DENSE_MAX: u32 = 1 << 16;
/// Slots of an empty table.
const TABLE_SLOTS: usize = 1 << 10;
/// Slots above which a table is not kept for later searches.
const TABLE_KEPT_MAX: usize = 1 << 17;
/// No number of a row or passage.
const NO_NUMBER: u32 = u32::MAX;

/// What a slot holds.
pub(super) trait Slot: Copy + 'static {
    /// Of which nothing is known.
    const EMPTY: &'static Self;
    /// Whether anything was ever written; from now on it was.
    fn mark_used(&mut self) -> bool;
}

/// A slot for each number up to some bound.
#[derive(Debug)]
pub(super) enum Slots<T> {
    Dense { slots: Vec<T>, used: Vec<u32> },
    Table(Table<T>),
}

/// Slots of the numbers that were written to, by open addressing.
#[derive(Debug)]
pub(super) struct Table<T> {
    numbers: Vec<u32>,
    slots: Vec<T>,
    count: usize,
}

impl<T> Default for Slots<T> {
    fn default() -> Slots<T> {
        Slots::Dense { slots: Vec::new(), used: Vec::new() }
    }
}

impl<T: Slot> Slots<T> {
    /// The slot of a number, to write to.
    pub fn write(&mut self, number: u32) -> &mut T {
        match self {
            Slots::Dense { slots, used } => {
                let slot = &mut slots[number as usize];
                if !slot.mark_used() {
                    used.push(number);
                }
                slot
            }
            Slots::Table(table) => table.write(number),
        }
    }

    /// The slot of a number.
    pub fn read(&self, number: u32) -> &T {
        match self {
            Slots::Dense { slots, .. } => &slots[number as usize],
            Slots::Table(table) => match table.find(number) {
                Ok(at) => &table.slots[at],
                Err(_) => T::EMPTY,
            },
        }
    }

    /// Tells the processor that the slot of a number and those beside it are asked for soon.
    pub fn expect(&self, number: u32) {
        // A table is small enough to be near.
        if let Slots::Dense { slots, .. } = self {
            let number = number as usize;
            let end = slots.len().min(number + 2);
            simd::prefetch(&slots[number.saturating_sub(1)..end]);
        }
    }

    fn clear(&mut self) {
        match self {
            Slots::Dense { slots, used } => {
                for number in used.drain(..) {
                    slots[number as usize] = *T::EMPTY;
                }
            }
            Slots::Table(table) => {
                table.numbers.fill(NO_NUMBER);
                table.count = 0;
            }
        }
    }
}

impl<T: Slot> Table<T> {
    fn new(slots: usize) -> Table<T> {
        Table { numbers: vec![NO_NUMBER; slots], slots: vec![*T::EMPTY; slots], count: 0 }
    }

    /// Where the slot of a number is, or where it would be.
    fn find(&self, number: u32) -> std::result::Result<usize, usize> {
        let mask = self.numbers.len() - 1;
        // Fibonacci hashing: the high bits are mixed best.
        let hash = number.wrapping_mul(0x9e37_79b9);
        let mut at = (hash >> (32 - self.numbers.len().ilog2())) as usize;
        loop {
            match self.numbers[at] {
                known if known == number => return Ok(at),
                NO_NUMBER => return Err(at),
                _ => at = (at + 1) & mask,
            }
        }
    }

    fn write(&mut self, number: u32) -> &mut T {
        let mut found = self.find(number);
        if found.is_err() && self.count * 2 >= self.numbers.len() {
            self.grow();
            found = self.find(number);
        }
        let at = found.unwrap_or_else(|at| {
            self.numbers[at] = number;
            self.slots[at] = *T::EMPTY;
            self.count += 1;
            at
        });
        &mut self.slots[at]
    }

    fn grow(&mut self) {
        let mut larger = Table::new(self.numbers.len() * 2);
        for (number, slot) in self.numbers.iter().zip(&self.slots) {
            if *number != NO_NUMBER {
                *larger.write(*number) = *slot;
            }
        }
        *self = larger;
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
        let wants_table = count > DENSE_MAX;
        let mut slots = {
            let mut kept = self.0.lock().unwrap_or_else(|poison| poison.into_inner());
            let fits = |slots: &Slots<T>| matches!(slots, Slots::Table(_)) == wants_table;
            kept.iter().position(fits).map(|at| kept.swap_remove(at))
        }
        .unwrap_or_else(|| match wants_table {
            true => Slots::Table(Table::new(TABLE_SLOTS)),
            false => Slots::default(),
        });
        if let Slots::Dense { slots, .. } = &mut slots {
            slots.resize(count as usize, *T::EMPTY);
        }
        slots
    }

    /// Takes slots back, and clears them.
    pub fn give(&self, mut slots: Slots<T>) {
        if matches!(&slots, Slots::Table(table) if table.numbers.len() > TABLE_KEPT_MAX) {
            return;
        }
        slots.clear();
        let mut kept = self.0.lock().unwrap_or_else(|poison| poison.into_inner());
        if kept.len() < KEPT_MAX {
            kept.push(slots);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy, Debug, PartialEq)]
    struct Pair(u8, bool);

    impl Slot for Pair {
        const EMPTY: &'static Pair = &Pair(0, false);
        fn mark_used(&mut self) -> bool {
            std::mem::replace(&mut self.1, true)
        }
    }

    #[test]
    fn slots_come_back_empty_and_of_the_size_asked_for() {
        let pool = SlotPool::default();
        for bound in [20, DENSE_MAX, DENSE_MAX + 1, u32::MAX - 1] {
            let mut slots: Slots<Pair> = pool.take(bound);
            assert!((0..20).all(|number| slots.read(number) == Pair::EMPTY));
            slots.write(9).0 = 1;
            slots.write(3).0 = 2;
            slots.write(3).0 += 2;
            assert_eq!((slots.read(3).0, slots.read(9).0, slots.read(4).0), (4, 1, 0));
            pool.give(slots);
        }
        // One that is too small for those that follow is made larger.
        let small = pool.take(4);
        pool.give(small);
        assert_eq!(*pool.take(20).read(19), *Pair::EMPTY);
    }

    #[test]
    fn a_table_holds_every_number_however_they_are_spread() {
        for step in [1, 2, 4, 1 << 12, 1 << 16, 2_654_435_769] {
            let mut table: Table<Pair> = Table::new(TABLE_SLOTS);
            let numbers: Vec<u32> = (0..5000u32).map(|n| n.wrapping_mul(step)).collect();
            for number in &numbers {
                table.write(*number).0 = *number as u8;
            }
            let slots = Slots::Table(table);
            assert!(numbers.iter().all(|number| slots.read(*number).0 == *number as u8));
        }
    }
}
