//! Code distances in portable code, and the frame that every kernel shares.

use super::scan::Planes;

/// Rows whose distances are kept at hand before they become scores.
const STRIP_ROWS: usize = 128;

/// Scores every code, by the distances that `distances` writes: one weighted distance a row.
///
/// Always inlined, so that this part too is compiled for the features of the kernel around it. Each score is rounded in
/// the same order on every machine: Rust fuses no multiplication with an addition.
#[inline(always)]
pub(super) fn strips(
    planes: &Planes,
    codes: &[[u8; 8]],
    factors: &[[u8; 4]],
    out: &mut [f32],
    distances: impl Fn(&Planes, &[[u8; 8]], &mut [u32]),
) {
    let strips = codes.chunks(STRIP_ROWS * planes.words).zip(factors.chunks(STRIP_ROWS));
    let mut buffer = [0; STRIP_ROWS];
    for ((codes, factors), out) in strips.zip(out.chunks_mut(STRIP_ROWS)) {
        let buffer = &mut buffer[..factors.len()];
        distances(planes, codes, buffer);
        for ((score, factor), distance) in out.iter_mut().zip(factors).zip(buffer) {
            let along = (planes.whole - 2 * *distance as i32) as f32;
            *score = planes.base + f32::from_le_bytes(*factor) * planes.step * along;
        }
    }
}

/// The kernel that runs everywhere.
pub(super) fn scan(planes: &Planes, codes: &[[u8; 8]], factors: &[[u8; 4]], out: &mut [f32]) {
    strips(planes, codes, factors, out, distances);
}

/// Weighted distances in portable code, compiled anew for each set of processor features that it is inlined into.
#[inline(always)]
pub(super) fn distances(planes: &Planes, codes: &[[u8; 8]], out: &mut [u32]) {
    match (planes.words, planes.bits) {
        (4, 1) => distances_of::<4, 1>(planes, codes, out),
        (4, 2) => distances_of::<4, 2>(planes, codes, out),
        (4, 3) => distances_of::<4, 3>(planes, codes, out),
        (4, 4) => distances_of::<4, 4>(planes, codes, out),
        _ => distances_any(planes, codes, out),
    }
}

#[inline(always)]
fn distances_of<const WORDS: usize, const BITS: usize>(
    planes: &Planes,
    codes: &[[u8; 8]],
    out: &mut [u32],
) {
    let plane: [[u64; WORDS]; BITS] = std::array::from_fn(|k| {
        std::array::from_fn(|word| planes.planes[k * planes.stride + word])
    });
    for (code, out) in codes.as_chunks::<WORDS>().0.iter().zip(out) {
        let mut sum = 0;
        for (k, plane) in plane.iter().enumerate() {
            for (word, plane) in code.iter().zip(plane) {
                sum += (u64::from_le_bytes(*word) ^ plane).count_ones() << k;
            }
        }
        *out = sum;
    }
}

#[inline(always)]
fn distances_any(planes: &Planes, codes: &[[u8; 8]], out: &mut [u32]) {
    for (code, out) in codes.chunks_exact(planes.words).zip(out) {
        *out = planes.planes.chunks_exact(planes.stride).enumerate().fold(0, |sum, (k, plane)| {
            let differing =
                |(word, plane): (&[u8; 8], &u64)| (u64::from_le_bytes(*word) ^ plane).count_ones();
            sum + (code.iter().zip(plane).map(differing).sum::<u32>() << k)
        });
    }
}
