//! Stored bytes seen as floats, without a copy, and fetched before they are needed.

/// Bytes that a processor fetches at once: of those that are met today none fetches less.
#[cfg(all(target_arch = "x86_64", not(miri)))]
const CACHE_LINE_BYTES: usize = 64;

/// The little-endian floats that `bytes` hold, in place. `None` when the bytes are no whole floats, do not lie at a
/// multiple of four, or this machine is big-endian: the caller then copies.
pub fn as_floats(bytes: &[u8]) -> Option<&[f32]> {
    if cfg!(target_endian = "big") {
        return None;
    }
    #[expect(unsafe_code, reason = "a copy of every vector would double the cost of re-ranking")]
    // SAFETY: every bit pattern is a valid f32, and `align_to` yields in the middle only what is aligned and in bounds.
    let (head, floats, tail) = unsafe { bytes.align_to::<f32>() };
    (head.is_empty() && tail.is_empty()).then_some(floats)
}

/// Asks the processor to fetch `values` into its nearest cache, a little before they are read. Vectors of a re-ranking
/// lie far apart: asked for four ahead, 400 of them are scored in 77 us in place of 97 (`cargo bench --bench codes`).
#[inline]
pub fn prefetch<T>(values: &[T]) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    for at in (0..size_of_val(values)).step_by(CACHE_LINE_BYTES) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        #[expect(unsafe_code, reason = "the intrinsic takes a pointer")]
        // SAFETY: a prefetch reads nothing that a program can see, wherever it points; here into a slice.
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(values.as_ptr().cast::<i8>().wrapping_add(at));
        }
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = values;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_aligned_floats_are_seen_in_place() {
        let floats = [1.0f32, -2.5, f32::NAN];
        #[repr(align(4))]
        struct Aligned([u8; 13]);
        let mut bytes = Aligned([0; 13]);
        for (to, value) in bytes.0.as_chunks_mut::<4>().0.iter_mut().zip(floats) {
            *to = value.to_le_bytes();
        }
        let seen = as_floats(&bytes.0[..12]).unwrap();
        assert!(seen.iter().zip(floats).all(|(a, b)| a.to_bits() == b.to_bits()));
        assert!(as_floats(&bytes.0[1..13]).is_none());
        assert!(as_floats(&bytes.0[..11]).is_none());
        assert_eq!(as_floats(&[]), Some(&[][..]));
    }
}
