//! What the kernels compute, written for reading. The definition in tests, and the fallback where a kernel fails its
//! self-check.

/// The dot product: products and sums in double precision, rounded once. A vector that is longer than the other is
/// read to the shorter one's end.
pub(super) fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>() as f32
}

/// Weighted distance of a code to the planes of a query: the sum over planes `k` of `2^k` times the number of bits in
/// which the code and plane `k` differ. A plane has as many words as the code.
pub(super) fn plane_distance<'a>(code: &[[u8; 8]], planes: impl Iterator<Item = &'a [u64]>) -> u32 {
    planes
        .enumerate()
        .map(|(weight, plane)| {
            let differing =
                |(word, plane): (&[u8; 8], &u64)| (u64::from_le_bytes(*word) ^ plane).count_ones();
            code.iter().zip(plane).map(differing).sum::<u32>() << weight
        })
        .sum()
}
