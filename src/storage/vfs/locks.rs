//! The locks of one file held in memory, with the rules of the locks that the operating system gives.
//!
//! Invariants: a lock belongs to an open file, so two open files of one process meet as two processes do. Whole-file
//! locks and range locks never meet. A refused range lock changes nothing; a refused conversion of the whole-file lock
//! loses the lock held before, as it does under Linux.

use std::io;
use std::ops::Bound;

use super::{LockKind, LockRange};

/// Names an open file as the holder of locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Owner(pub(super) u64);

/// Half-open range of bytes; `u64::MAX` as end means all future growth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    start: u64,
    end: u64,
}

impl Span {
    /// The bytes of a range; `InvalidInput` when it is empty.
    pub(super) fn of(range: LockRange) -> io::Result<Span> {
        let start = match range.0 {
            Bound::Unbounded => 0,
            Bound::Included(start) => start,
            Bound::Excluded(start) => start.saturating_add(1),
        };
        let end = match range.1 {
            Bound::Unbounded => u64::MAX,
            Bound::Included(end) => end.saturating_add(1),
            Bound::Excluded(end) => end,
        };
        if start >= end {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "empty lock range"));
        }
        Ok(Span { start, end })
    }

    fn meets(self, other: Span) -> bool {
        self.start < other.end && other.start < self.end
    }
}

/// All locks of one file.
#[derive(Debug, Default)]
pub(super) struct Locks {
    whole: Vec<(Owner, LockKind)>,
    ranges: Vec<(Owner, Span, LockKind)>,
}

impl Locks {
    /// Takes or converts the whole-file lock. `false`: refused, and `owner` holds none.
    pub(super) fn try_whole(&mut self, owner: Owner, kind: LockKind) -> bool {
        self.whole.retain(|held| held.0 != owner);
        let refused = self.whole.iter().any(|held| conflict(held.1, kind));
        if !refused {
            self.whole.push((owner, kind));
        }
        !refused
    }

    /// Gives up the whole-file lock.
    pub(super) fn unlock_whole(&mut self, owner: Owner) {
        self.whole.retain(|held| held.0 != owner);
    }

    /// Takes a range, replacing the owner's own locks of its bytes. `false`: refused, nothing changed.
    pub(super) fn try_range(&mut self, owner: Owner, span: Span, kind: LockKind) -> bool {
        if self.refuses(owner, span, kind) {
            return false;
        }
        self.unlock_range(owner, span);
        self.ranges.push((owner, span, kind));
        true
    }

    /// Whether a lock of `span` would be refused to `owner`.
    pub(super) fn refuses(&self, owner: Owner, span: Span, kind: LockKind) -> bool {
        let meets = |held: &&(Owner, Span, LockKind)| held.0 != owner && held.1.meets(span);
        self.ranges.iter().filter(meets).any(|held| conflict(held.2, kind))
    }

    /// Gives up the owner's locks of these bytes, cutting locks that reach beyond them.
    pub(super) fn unlock_range(&mut self, owner: Owner, span: Span) {
        let mut kept = Vec::with_capacity(self.ranges.len());
        for held in self.ranges.drain(..) {
            if held.0 != owner || !held.1.meets(span) {
                kept.push(held);
                continue;
            }
            if held.1.start < span.start {
                kept.push((owner, Span { start: held.1.start, end: span.start }, held.2));
            }
            if span.end < held.1.end {
                kept.push((owner, Span { start: span.end, end: held.1.end }, held.2));
            }
        }
        self.ranges = kept;
    }

    /// Gives up all locks of an owner. `false` when it held none.
    pub(super) fn release(&mut self, owner: Owner) -> bool {
        let before = self.whole.len() + self.ranges.len();
        self.whole.retain(|held| held.0 != owner);
        self.ranges.retain(|held| held.0 != owner);
        before != self.whole.len() + self.ranges.len()
    }
}

fn conflict(held: LockKind, wanted: LockKind) -> bool {
    held == LockKind::Exclusive || wanted == LockKind::Exclusive
}

#[cfg(test)]
mod tests {
    use super::LockKind::{Exclusive, Shared};
    use super::*;

    const A: Owner = Owner(1);
    const B: Owner = Owner(2);

    fn span(start: u64, end: u64) -> Span {
        Span::of((Bound::Included(start), Bound::Excluded(end))).unwrap()
    }

    #[test]
    fn shared_locks_meet_and_exclusive_ones_do_not() {
        let mut locks = Locks::default();
        assert!(locks.try_whole(A, Shared) && locks.try_whole(B, Shared));
        assert!(!locks.try_whole(A, Exclusive));
        // The refused conversion lost A's shared lock, so B may have the file alone.
        assert!(locks.try_whole(B, Exclusive));
    }

    #[test]
    fn unlocking_the_middle_leaves_both_ends_locked() {
        let mut locks = Locks::default();
        assert!(locks.try_range(A, span(0, 100), Exclusive));
        locks.unlock_range(A, span(40, 60));
        assert!(locks.try_range(B, span(40, 60), Exclusive));
        assert!(!locks.try_range(B, span(39, 40), Shared));
        assert!(!locks.try_range(B, span(60, 61), Shared));
    }

    #[test]
    fn an_unbounded_range_covers_all_future_bytes() {
        let mut locks = Locks::default();
        let rest = Span::of((Bound::Excluded(9), Bound::Unbounded)).unwrap();
        assert!(locks.try_range(A, rest, Exclusive));
        assert!(locks.refuses(B, span(1 << 62, (1 << 62) + 1), Shared));
        assert!(!locks.refuses(B, span(9, 10), Exclusive));
        assert!(locks.release(A) && !locks.release(A));
    }

    #[test]
    fn an_empty_range_is_refused() {
        assert!(Span::of((Bound::Included(5), Bound::Excluded(5))).is_err());
        assert!(Span::of((Bound::Excluded(u64::MAX), Bound::Unbounded)).is_err());
    }
}
