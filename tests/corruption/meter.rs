//! An allocator that counts what each thread holds, so that a test can say how much memory bad bytes may cost.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// Counts, and lets the system allocate.
pub struct Meter;

thread_local! {
    /// Bytes that this thread has allocated and not freed. Below zero when it frees what another one allocated.
    static HELD: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

fn count(bytes: isize) {
    // A thread that is ending has no counters any more, and nobody asks for them.
    let _ = HELD.try_with(|held| {
        held.set(held.get() + bytes);
        PEAK.with(|peak| peak.set(peak.get().max(held.get())));
    });
}

// SAFETY: every call is the system allocator's own; counting neither allocates nor unwinds.
#[expect(unsafe_code, reason = "the trait is unsafe to implement")]
unsafe impl GlobalAlloc for Meter {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size as isize - layout.size() as isize);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

/// Runs `work`; its answer, and the bytes that this thread held at most above what it held before.
pub fn measure<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = HELD.get();
    PEAK.set(before);
    let answer = work();
    (answer, (PEAK.get() - before).unsigned_abs())
}

#[test]
fn a_large_allocation_is_noticed() {
    let (vector, peak) = measure(|| vec![1_u8; 5 << 20]);
    assert!(peak >= vector.len() && peak < 6 << 20);
}
