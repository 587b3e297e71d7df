//! Estimated scores of many codes against one query.
//!
//! A query's rotated values are rounded to symmetric levels `step * (2 u - m)`, `u` in `0..=m`, `m = 2^bits - 1`, and
//! `u` is kept as bit planes. Read as signs, plane `k` weighs `2^k`, so that for a code with signs `s`
//!
//! `sum s_j q'_j  ~=  step * (m d - 2 * sum_k 2^k * differing bits of code and plane k)`:
//!
//! integers until the last step, hence equal bits from every kernel. Bits behind the last value are zero in both.

use super::kernels::{ScanKernel, scan_kernel};
use super::select::Best;

/// Rows that are estimated at a time: their scores stay in the first-level cache until the best are taken.
const BLOCK_ROWS: usize = 1024;
/// A query as bit planes.
#[derive(Clone, Debug)]
pub struct CodeQuery {
    pub(super) planes: Planes,
}

/// What a kernel reads of a query.
#[derive(Clone, Debug)]
pub(super) struct Planes {
    /// Words of 64 bits of a code.
    pub(super) words: usize,
    /// Plane `k` stands at `k * stride`; the words up to the stride are zero.
    pub(super) planes: Vec<u64>,
    /// Words from one plane to the next: whole vector registers of 8 words.
    pub(super) stride: usize,
    /// Number of planes, 1 to 4.
    pub(super) bits: usize,
    /// `m d`: the weighted distance of a code and its complement.
    pub(super) whole: i32,
    /// Half the distance of two levels.
    pub(super) step: f32,
    /// What every score starts from: the query times the mean.
    pub(super) base: f32,
}

impl CodeQuery {
    /// `rotated`: the query's rotated values; `bits` planes; `base`: the query times the mean.
    pub(super) fn new(rotated: &[f32], bits: usize, base: f32) -> CodeQuery {
        // Half the step of the uniform quantiser with the least error for normal values of unit deviation, by bits
        // (Max 1960, table II).
        const HALF_STEPS: [f64; 4] = [0.7979, 0.4979, 0.2930, 0.1676];
        assert!((1..=HALF_STEPS.len()).contains(&bits), "a query has 1 to 4 bits a value");
        let squares: f64 = rotated.iter().map(|value| f64::from(*value) * f64::from(*value)).sum();
        let unit = (squares / rotated.len() as f64).sqrt() * HALF_STEPS[bits - 1];
        let most = (1i32 << bits) - 1;
        let words = rotated.len().div_ceil(64);
        let stride = words.next_multiple_of(8);
        let mut planes = vec![0; stride * bits];
        let mut along = 0.0;
        for (at, value) in rotated.iter().enumerate() {
            let value = f64::from(*value);
            let level = (((value / unit + f64::from(most)) / 2.0).round() as i32).clamp(0, most);
            along += f64::from(2 * level - most) * value;
            for plane in 0..bits {
                planes[plane * stride + at / 64] |= (level as u64 >> plane & 1) << (at % 64);
            }
        }
        // Rounding shortens the query; this step makes up for it along the query's own direction, so that the
        // estimate stays unbiased.
        let step = (squares / along) as f32;
        let step = if step.is_finite() { step } else { 0.0 };
        let whole = most * rotated.len() as i32;
        CodeQuery { planes: Planes { words, planes, stride, bits, whole, step, base } }
    }

    /// Estimates a score for each row: `out` is cleared and gets one score a row, in order.
    ///
    /// `codes`: [`Codec::code_bytes`](super::Codec::code_bytes) bytes a row; `factors`: a little-endian float a row, as
    /// stored. A factor that is not finite gives a score that is not.
    ///
    /// # Panics
    /// When there are not as many codes as factors.
    pub fn scan(&self, codes: &[u8], factors: &[[u8; 4]], out: &mut Vec<f32>) {
        out.clear();
        out.resize(factors.len(), 0.0);
        self.scan_with(scan_kernel(), codes, factors, out);
    }

    /// Estimates every row and offers it to `best` under the name that `name` gives to its index, with a number that
    /// comes back with it; a row that has none is passed over. `name` is asked only for rows that may be among the best.
    ///
    /// # Panics
    /// When there are not as many codes as factors.
    pub fn select(
        &self,
        codes: &[u8],
        factors: &[[u8; 4]],
        best: &mut Best,
        mut name: impl FnMut(usize) -> Option<(u64, u32)>,
    ) {
        let mut scores = [0.0; BLOCK_ROWS];
        let code_bytes = self.planes.words * 8;
        assert_eq!(codes.len(), factors.len() * code_bytes, "a code for each factor");
        let blocks = codes.chunks(BLOCK_ROWS * code_bytes).zip(factors.chunks(BLOCK_ROWS));
        for (block, (codes, factors)) in blocks.enumerate() {
            let scores = &mut scores[..factors.len()];
            self.scan_with(scan_kernel(), codes, factors, scores);
            best.offer(scores, |row| name(block * BLOCK_ROWS + row));
        }
    }

    pub(super) fn scan_with(
        &self,
        kernel: ScanKernel,
        codes: &[u8],
        factors: &[[u8; 4]],
        out: &mut [f32],
    ) {
        let code_bytes = self.planes.words * 8;
        assert_eq!(codes.len(), factors.len() * code_bytes, "a code for each factor");
        assert_eq!(out.len(), factors.len(), "a score for each factor");
        kernel(&self.planes, codes.as_chunks().0, factors, out);
    }
}

/// Timing of single kernels, for benches.
#[cfg(feature = "internals")]
impl CodeQuery {
    /// Names of the kernels that this machine can run, fastest first.
    pub fn kernels() -> Vec<&'static str> {
        super::kernels::scan_kernels().into_iter().map(|(name, _)| name).collect()
    }

    /// [`CodeQuery::scan`] by the kernel at `index` of [`CodeQuery::kernels`].
    pub fn scan_by(&self, index: usize, codes: &[u8], factors: &[[u8; 4]], out: &mut Vec<f32>) {
        out.clear();
        out.resize(factors.len(), 0.0);
        self.scan_with(super::kernels::scan_kernels()[index].1, codes, factors, out);
    }
}
