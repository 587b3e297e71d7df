//! Code distances on x86-64: whole vector registers of codes at a time.
//!
//! A lane of a register gathers, over the planes from the heaviest down, twice what it holds plus the bits in which
//! code and plane differ. The lanes of a row are added up for eight rows (four with AVX2) at once.

use std::arch::x86_64::*;

use super::kernels::ScanKernel;
use super::portable::{distances, strips};
use super::scan::Planes;

/// The kernels that this processor runs, fastest first.
pub(super) fn scan_kernels() -> Vec<(&'static str, ScanKernel)> {
    let mut kernels: Vec<(&'static str, ScanKernel)> = Vec::new();
    let popcnt = is_x86_feature_detected!("popcnt");
    if popcnt && is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vpopcntdq")
    {
        kernels.push(("avx512vpopcntdq", scan_avx512));
    }
    if popcnt && is_x86_feature_detected!("avx2") {
        kernels.push(("avx2", scan_avx2));
    }
    if popcnt {
        kernels.push(("popcnt", scan_popcnt));
    }
    kernels
}

fn scan_avx512(planes: &Planes, codes: &[[u8; 8]], factors: &[[u8; 4]], out: &mut [f32]) {
    #[target_feature(enable = "avx512f,avx512vpopcntdq,popcnt")]
    fn scan(planes: &Planes, codes: &[[u8; 8]], factors: &[[u8; 4]], out: &mut [f32]) {
        strips(planes, codes, factors, out, |planes, codes, out| avx512(planes, codes, out));
    }
    #[expect(unsafe_code, reason = "calls a function compiled for more features")]
    // SAFETY: `scan_kernels` names this function only where the processor has the features.
    unsafe {
        scan(planes, codes, factors, out)
    }
}

fn scan_avx2(planes: &Planes, codes: &[[u8; 8]], factors: &[[u8; 4]], out: &mut [f32]) {
    #[target_feature(enable = "avx2,popcnt")]
    fn scan(planes: &Planes, codes: &[[u8; 8]], factors: &[[u8; 4]], out: &mut [f32]) {
        strips(planes, codes, factors, out, |planes, codes, out| avx2(planes, codes, out));
    }
    #[expect(unsafe_code, reason = "calls a function compiled for more features")]
    // SAFETY: `scan_kernels` names this function only where the processor has the features.
    unsafe {
        scan(planes, codes, factors, out)
    }
}

fn scan_popcnt(planes: &Planes, codes: &[[u8; 8]], factors: &[[u8; 4]], out: &mut [f32]) {
    #[target_feature(enable = "popcnt")]
    fn scan(planes: &Planes, codes: &[[u8; 8]], factors: &[[u8; 4]], out: &mut [f32]) {
        strips(planes, codes, factors, out, |planes, codes, out| popcnt(planes, codes, out));
    }
    #[expect(unsafe_code, reason = "calls a function compiled for more features")]
    // SAFETY: `scan_kernels` names this function only where the processor has the features.
    unsafe {
        scan(planes, codes, factors, out)
    }
}

#[target_feature(enable = "popcnt")]
fn popcnt(planes: &Planes, codes: &[[u8; 8]], out: &mut [u32]) {
    distances(planes, codes, out);
}

#[target_feature(enable = "avx512f,avx512vpopcntdq,popcnt")]
fn avx512(planes: &Planes, codes: &[[u8; 8]], out: &mut [u32]) {
    match (planes.words, planes.bits) {
        (4, 1) => avx512_of_4_words::<1>(planes, codes, out),
        (4, 2) => avx512_of_4_words::<2>(planes, codes, out),
        (4, 3) => avx512_of_4_words::<3>(planes, codes, out),
        (4, 4) => avx512_of_4_words::<4>(planes, codes, out),
        // One register holds a row and more is empty than full.
        (..4, _) => distances(planes, codes, out),
        _ => avx512_of_any(planes, codes, out),
    }
}

/// Codes of 256 bits: two to a register, eight at a time.
#[target_feature(enable = "avx512f,avx512vpopcntdq,popcnt")]
fn avx512_of_4_words<const BITS: usize>(planes: &Planes, codes: &[[u8; 8]], out: &mut [u32]) {
    let plane: [__m512i; BITS] = std::array::from_fn(|k| {
        let words = &planes.planes[k * planes.stride..][..4];
        _mm512_broadcast_i64x4(load_256(words))
    });
    // Sums of even rows stand in the low half, of odd rows in the high one.
    let interleave = _mm512_setr_epi32(0, 8, 1, 9, 2, 10, 3, 11, 0, 0, 0, 0, 0, 0, 0, 0);
    let (eights, rest) = codes.as_chunks::<32>();
    let (out, out_rest) = out.split_at_mut(eights.len() * 8);
    for (eight, out) in eights.iter().zip(out.as_chunks_mut::<8>().0) {
        let [a, b, c, d] = std::array::from_fn(|pair| {
            let code = load_512(&eight[pair * 8..][..8]);
            let mut sum = _mm512_popcnt_epi64(_mm512_xor_si512(code, plane[BITS - 1]));
            for plane in plane[..BITS - 1].iter().rev() {
                let differing = _mm512_popcnt_epi64(_mm512_xor_si512(code, *plane));
                sum = _mm512_add_epi64(_mm512_add_epi64(sum, sum), differing);
            }
            sum
        });
        // Sums are below 2^32: one pair's take the low halves of the lanes, the next pair's the high ones.
        let ab = _mm512_or_si512(a, _mm512_slli_epi64::<32>(b));
        let cd = _mm512_or_si512(c, _mm512_slli_epi64::<32>(d));
        let halves = _mm512_add_epi32(_mm512_unpacklo_epi64(ab, cd), _mm512_unpackhi_epi64(ab, cd));
        let swapped = _mm512_shuffle_i64x2::<0b10_11_00_01>(halves, halves);
        let rows = _mm512_permutexvar_epi32(interleave, _mm512_add_epi32(halves, swapped));
        store_256(out, _mm512_castsi512_si256(rows));
    }
    distances(planes, rest, out_rest);
}

/// Codes of any length, one at a time.
#[target_feature(enable = "avx512f,avx512vpopcntdq,popcnt")]
fn avx512_of_any(planes: &Planes, codes: &[[u8; 8]], out: &mut [u32]) {
    for (code, out) in codes.chunks_exact(planes.words).zip(out) {
        let mut sum = _mm512_setzero_si512();
        for (at, words) in code.chunks(8).enumerate() {
            let code = load_words(words);
            let mut part = _mm512_setzero_si512();
            for plane in planes.planes.chunks_exact(planes.stride).rev() {
                let plane = load_512(&plane[at * 8..][..8]);
                let differing = _mm512_popcnt_epi64(_mm512_xor_si512(code, plane));
                part = _mm512_add_epi64(_mm512_add_epi64(part, part), differing);
            }
            sum = _mm512_add_epi64(sum, part);
        }
        *out = _mm512_reduce_add_epi64(sum) as u32;
    }
}

#[target_feature(enable = "avx2,popcnt")]
fn avx2(planes: &Planes, codes: &[[u8; 8]], out: &mut [u32]) {
    match (planes.words, planes.bits) {
        (4, 1) => avx2_of_4_words::<1>(planes, codes, out),
        (4, 2) => avx2_of_4_words::<2>(planes, codes, out),
        (4, 3) => avx2_of_4_words::<3>(planes, codes, out),
        (4, 4) => avx2_of_4_words::<4>(planes, codes, out),
        _ => popcnt(planes, codes, out),
    }
}

/// Codes of 256 bits, one to a register, four at a time. Bits are counted by look-up of half bytes (Mula, Kurz, Lemire:
/// arXiv 1611.07612); a byte's weighted sum is at most 8 * 15.
#[target_feature(enable = "avx2,popcnt")]
fn avx2_of_4_words<const BITS: usize>(planes: &Planes, codes: &[[u8; 8]], out: &mut [u32]) {
    let plane: [__m256i; BITS] =
        std::array::from_fn(|k| load_256(&planes.planes[k * planes.stride..][..4]));
    let counts =
        _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4));
    let low = _mm256_set1_epi8(15);
    let (fours, rest) = codes.as_chunks::<16>();
    let (out, out_rest) = out.split_at_mut(fours.len() * 4);
    for (four, out) in fours.iter().zip(out.as_chunks_mut::<4>().0) {
        let [a, b, c, d] = std::array::from_fn(|row| {
            let code = load_256(&four[row * 4..][..4]);
            let mut sum = _mm256_setzero_si256();
            for plane in plane.iter().rev() {
                let bits = _mm256_xor_si256(code, *plane);
                let lows = _mm256_shuffle_epi8(counts, _mm256_and_si256(bits, low));
                let highs = _mm256_and_si256(_mm256_srli_epi16::<4>(bits), low);
                let differing = _mm256_add_epi8(lows, _mm256_shuffle_epi8(counts, highs));
                sum = _mm256_add_epi8(_mm256_add_epi8(sum, sum), differing);
            }
            _mm256_sad_epu8(sum, _mm256_setzero_si256())
        });
        let ab = _mm256_or_si256(a, _mm256_slli_epi64::<32>(b));
        let cd = _mm256_or_si256(c, _mm256_slli_epi64::<32>(d));
        let halves = _mm256_add_epi32(_mm256_unpacklo_epi64(ab, cd), _mm256_unpackhi_epi64(ab, cd));
        let rows =
            _mm_add_epi32(_mm256_castsi256_si128(halves), _mm256_extracti128_si256::<1>(halves));
        store_128(out, rows);
    }
    distances(planes, rest, out_rest);
}

/// A word of a code or of a plane: 8 plain bytes. On this little-endian architecture both are read as they lie.
trait Word: Copy {}
impl Word for [u8; 8] {}
impl Word for u64 {}

#[target_feature(enable = "avx")]
#[expect(unsafe_code, reason = "loads through a pointer")]
fn load_256(words: &[impl Word]) -> __m256i {
    assert_eq!(words.len(), 4, "words of one register");
    // SAFETY: four words are 32 readable bytes, any bits are a value, and the load asks for no alignment.
    unsafe { _mm256_loadu_si256(words.as_ptr().cast()) }
}

#[target_feature(enable = "avx512f")]
#[expect(unsafe_code, reason = "loads through a pointer")]
fn load_512(words: &[impl Word]) -> __m512i {
    assert_eq!(words.len(), 8, "words of one register");
    // SAFETY: eight words are 64 readable bytes, any bits are a value, and the load asks for no alignment.
    unsafe { _mm512_loadu_si512(words.as_ptr().cast()) }
}

/// Up to eight words; the lanes behind them are zero.
#[target_feature(enable = "avx512f")]
#[expect(unsafe_code, reason = "loads through a pointer")]
fn load_words(words: &[impl Word]) -> __m512i {
    assert!(words.len() <= 8, "words of one register");
    let mask = ((1u32 << words.len()) - 1) as __mmask8;
    // SAFETY: the mask covers as many words as there are, lanes outside a mask are not read, any bits are a value, and
    // the load asks for no alignment.
    unsafe { _mm512_maskz_loadu_epi64(mask, words.as_ptr().cast()) }
}

#[target_feature(enable = "avx")]
#[expect(unsafe_code, reason = "stores through a pointer")]
fn store_256(out: &mut [u32; 8], values: __m256i) {
    // SAFETY: the array has 32 writable bytes, and the store asks for no alignment.
    unsafe { _mm256_storeu_si256(out.as_mut_ptr().cast(), values) }
}

#[target_feature(enable = "sse2")]
#[expect(unsafe_code, reason = "stores through a pointer")]
fn store_128(out: &mut [u32; 4], values: __m128i) {
    // SAFETY: the array has 16 writable bytes, and the store asks for no alignment.
    unsafe { _mm_storeu_si128(out.as_mut_ptr().cast(), values) }
}
