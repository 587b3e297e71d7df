//! Which kernel computes what on this machine, chosen once.
//!
//! Each kernel is compared with its reference on fixed vectors before its first use, and passed over when it differs.

use std::sync::OnceLock;

use super::scan::Planes;
use super::{portable, reference};

/// Scores codes, given as words, with a factor each: the estimate of each row is written to its place.
pub(super) type ScanKernel = fn(&Planes, &[[u8; 8]], &[[u8; 4]], &mut [f32]);

type DotKernel = fn(&[f32], &[f32]) -> f32;

/// The kernels of this machine.
struct Kernels {
    dot: DotKernel,
    dot_name: &'static str,
    scan: ScanKernel,
    scan_name: &'static str,
}

fn kernels() -> &'static Kernels {
    static KERNELS: OnceLock<Kernels> = OnceLock::new();
    KERNELS.get_or_init(choose)
}

/// The dot product of two vectors of one length. Deterministic on one machine; between machines the last bits differ.
///
/// Within `1e-6 * sum |a_i b_i|` of the double-precision value. A result that is not finite is computed anew by the
/// definition: only a true overflow of the result, or a value that is not finite, gives one.
///
/// # Panics
/// When the lengths differ.
pub fn dot(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len(), "vectors of two lengths");
    (kernels().dot)(a, b)
}

/// The names of the chosen kernels for dot products and for code scans.
pub fn kernel_names() -> [&'static str; 2] {
    [kernels().dot_name, kernels().scan_name]
}

pub(super) fn scan_kernel() -> ScanKernel {
    kernels().scan
}

/// The kernels for code scans that run on this machine, fastest first. The portable one is always there.
pub(super) fn scan_kernels() -> Vec<(&'static str, ScanKernel)> {
    let mut kernels: Vec<(&'static str, ScanKernel)> = Vec::new();
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    kernels.extend(super::x86::scan_kernels());
    kernels.push(("portable", portable::scan));
    kernels
}

fn choose() -> Kernels {
    let (dot_name, dot): (_, DotKernel) = if !cfg!(miri) && dot_agrees(dot_library) {
        ("simsimd", dot_library)
    } else {
        ("reference", reference::dot)
    };
    let (scan_name, scan) = scan_kernels()
        .into_iter()
        .find(|(_, kernel)| scan_agrees(*kernel))
        .unwrap_or(("reference", scan_reference));
    Kernels { dot, dot_name, scan, scan_name }
}

fn dot_library(a: &[f32], b: &[f32]) -> f32 {
    match <f32 as simsimd::SpatialSimilarity>::dot(a, b) {
        Some(value) if value.is_finite() => value as f32,
        _ => reference::dot(a, b),
    }
}

fn scan_reference(planes: &Planes, codes: &[[u8; 8]], factors: &[[u8; 4]], out: &mut [f32]) {
    portable::strips(planes, codes, factors, out, |planes, codes, out| {
        for (code, out) in codes.chunks_exact(planes.words).zip(out) {
            *out = reference::plane_distance(code, planes.planes.chunks_exact(planes.stride));
        }
    });
}

/// Compares at lengths around whole registers, on values of both signs and several sizes.
fn dot_agrees(kernel: DotKernel) -> bool {
    let value = |at: usize, turn: usize| ((at * turn % 31) as f32 - 15.0) / (1 << (at % 4)) as f32;
    [0, 1, 3, 4, 7, 8, 15, 16, 17, 31, 33, 64, 100, 256, 384, 1023].iter().all(|&length| {
        let a: Vec<f32> = (0..length).map(|at| value(at, 7)).collect();
        let b: Vec<f32> = (0..length).map(|at| value(at + 3, 11)).collect();
        within_tolerance(kernel(&a, &b), &a, &b)
    })
}

/// Whether `value` is the dot product up to the stated tolerance.
fn within_tolerance(value: f32, a: &[f32], b: &[f32]) -> bool {
    let magnitude: f64 =
        a.iter().zip(b).map(|(a, b)| f64::from(*a).abs() * f64::from(*b).abs()).sum();
    let error = f64::from(value) - f64::from(reference::dot(a, b));
    error.abs() <= 1e-6 * magnitude + f64::from(f32::MIN_POSITIVE)
}

/// Compares on 19 codes of each of several lengths, at every number of planes.
fn scan_agrees(kernel: ScanKernel) -> bool {
    const ROWS: usize = 19;
    let scrambled =
        |at: usize| (at as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(at as u32);
    [1, 3, 4, 6, 8, 9, 16].iter().all(|&words| {
        (1..=4).all(|bits| {
            let stride = 8 * usize::div_ceil(words, 8);
            let word = |at: usize| if at % stride < words { scrambled(at) } else { 0 };
            let planes = (0..bits * stride).map(word).collect();
            let planes = Planes { words, planes, stride, bits, whole: 0, step: 1.0, base: 0.0 };
            let codes: Vec<[u8; 8]> =
                (7..7 + ROWS * words).map(|at| scrambled(at * 5).to_le_bytes()).collect();
            let (mut found, mut expected) = ([0.0; ROWS], [0.0; ROWS]);
            let factors = [1.0f32.to_le_bytes(); ROWS];
            kernel(&planes, &codes, &factors, &mut found);
            scan_reference(&planes, &codes, &factors, &mut expected);
            found == expected
        })
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Both are no number, or their bits are equal.
    fn same(a: f32, b: f32) -> bool {
        (a.is_nan() && b.is_nan()) || a.to_bits() == b.to_bits()
    }

    #[track_caller]
    fn check_dot(a: &[f32], b: &[f32]) {
        let (value, expected) = (dot(a, b), reference::dot(a, b));
        if expected.is_finite() {
            assert!(within_tolerance(value, a, b), "length {}: {value} for {expected}", a.len());
        } else {
            assert!(same(value, expected), "length {}: {value} for {expected}", a.len());
        }
    }

    /// Every length from nothing to four vector registers of 16 floats and one, and common dimensions.
    fn lengths() -> impl Strategy<Value = usize> {
        prop_oneof![
            0usize..=65,
            prop::sample::select(vec![100, 128, 256, 384, 768, 1024, 1536, 4096])
        ]
    }

    proptest! {
        #[test]
        fn dot_is_within_a_millionth_of_the_reference(
            (a, b) in lengths().prop_flat_map(|length| {
                let values = || prop::collection::vec(-1.0f32..1.0, length);
                (values(), values())
            }),
        ) {
            check_dot(&a, &b);
        }

        #[test]
        fn dot_of_any_floats_is_the_reference_where_that_is_not_finite(
            pairs in prop::collection::vec((special(), special()), 0..=65),
        ) {
            let (a, b): (Vec<f32>, Vec<f32>) = pairs.into_iter().unzip();
            check_dot(&a, &b);
        }

        #[test]
        fn every_scan_kernel_has_the_bits_of_the_reference(
            words in 1usize..=33,
            rows in 0usize..150,
            bits in 1usize..=4,
            factor in special(),
            seed in any::<u64>(),
        ) {
            let mut state = seed;
            let mut random = move || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (state ^ (state >> 29)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
            };
            let stride = words.next_multiple_of(8);
            let planes = (0..bits * stride).map(|at| if at % stride < words { random() } else { 0 });
            let planes: Vec<u64> = planes.collect();
            let whole = ((1 << bits) - 1) * 64 * words as i32;
            let planes = Planes { words, planes, stride, bits, whole, step: 0.03, base: 0.2 };
            let codes: Vec<[u8; 8]> = (0..rows * words).map(|_| random().to_le_bytes()).collect();
            let factors: Vec<[u8; 4]> =
                (0..rows).map(|row| if row == 3 { factor } else { 0.01 * row as f32 }.to_le_bytes()).collect();
            let mut expected = vec![0.0; rows];
            scan_reference(&planes, &codes, &factors, &mut expected);
            for (name, kernel) in scan_kernels() {
                let mut found = vec![0.0; rows];
                kernel(&planes, &codes, &factors, &mut found);
                prop_assert!(found.iter().zip(&expected).all(|(a, b)| same(*a, *b)), "{}", name);
            }
        }
    }

    fn special() -> impl Strategy<Value = f32> {
        prop_oneof![
            8 => -1.0f32..1.0,
            1 => prop::sample::select(vec![
                0.0, -0.0, f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, f32::MIN, 1e30, -1e30, 1e-30,
            ]),
        ]
    }

    #[test]
    fn a_kernel_that_differs_is_found_out() {
        assert!(!dot_agrees(|a, b| reference::dot(a, b) * 1.001));
        assert!(!dot_agrees(|a, b| if a.len() == 17 { 0.0 } else { reference::dot(a, b) }));
        assert!(!scan_agrees(|planes, codes, factors, out| {
            scan_reference(planes, codes, factors, out);
            out[18] += 1.0;
        }));
        assert!(dot_agrees(reference::dot) && scan_agrees(scan_reference));
    }

    #[test]
    fn the_reference_counts_differing_bits_by_weight() {
        let code = [0b1011u64.to_le_bytes(), u64::MAX.to_le_bytes()];
        let planes: [[u64; 2]; 2] = [[0b0011, u64::MAX], [0b1011, 0]];
        assert_eq!(
            reference::plane_distance(&code, planes.iter().map(|plane| &plane[..])),
            1 + 2 * 64
        );
    }

    #[test]
    #[should_panic(expected = "two lengths")]
    fn vectors_of_two_lengths_are_a_bug() {
        dot(&[1.0], &[1.0, 2.0]);
    }
}
