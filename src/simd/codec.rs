//! One-bit codes: a vector as the signs of its rotated rest, with one factor.
//!
//! With `r = R (x - mean)` and `s` its signs, the code keeps `s` and the factor `f = |r|^2 / (r . s)`. Then `x . q` is
//! estimated by `mean . q + f * (s . R q)`: the error `r - f s` is orthogonal to `r`, and its direction is random.
//!
//! Source: RaBitQ (arXiv 2405.12497), section 3. Departs: a fast structured rotation in place of a random matrix; the
//! query's values are rounded to the nearest of 16 symmetric levels, not at random; a few signs of values near zero are
//! turned so that the error is orthogonal to the mean too (see `Signs::balance`).
//!
//! Invariant: everything but the factor is fixed by mean and seed, which are recorded once a vector space; equal
//! input gives equal bits on every machine, so that a rewrite may copy codes or make them anew.

use std::fmt;

use super::reference;
use super::rotate::Rotation;
use super::scan::CodeQuery;

/// Bits of a query's value in a scan, by default. Measured on 100,000 turns (`cargo bench --bench codes`).
pub const QUERY_BITS: usize = 4;

/// One of so many signs, at most, is turned to balance a code. 4 and 16 give the same recall (`benches/codes.rs`).
const TURNED_SHARE: usize = 8;
/// Of the vector's product with its signs, at least this share stays. A stated guess: balancing takes about a
/// thousandth, and an odd vector should rather stay unbalanced than lose its direction.
const ALONG_KEPT: f64 = 0.9;

/// Turns vectors of one space into codes and scores codes against a query.
#[derive(Clone)]
pub struct Codec {
    mean: Vec<f32>,
    seed: u64,
    rotation: Rotation,
    /// `mean` after the rotation.
    rotated_mean: Vec<f32>,
}

impl Codec {
    /// A codec for vectors of `mean.len()` values, 1 to 4,096. `mean`: the mean of the space's vectors, or a sample's.
    ///
    /// # Panics
    /// When `mean` is empty.
    pub fn new(mean: Vec<f32>, seed: u64) -> Codec {
        let rotation = Rotation::new(mean.len(), seed);
        let mut rotated_mean = mean.clone();
        rotation.apply(&mut rotated_mean);
        Codec { mean, seed, rotation, rotated_mean }
    }

    /// Values of a vector.
    pub fn dimension(&self) -> usize {
        self.mean.len()
    }

    /// What is taken from a vector before it is rotated.
    pub fn mean(&self) -> &[f32] {
        &self.mean
    }

    /// What the rotation is made from.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Bytes of one code: a bit a value, in whole words of 8 bytes; the bits behind the last value are zero.
    pub fn code_bytes(&self) -> usize {
        self.dimension().div_ceil(64) * 8
    }

    /// Appends the code of `vector` to `out` and returns its factor. Value `j` is bit `j % 8` of byte `j / 8`.
    ///
    /// The factor is finite and not negative; 0 for a vector that is the mean, or not finite.
    ///
    /// # Panics
    /// When `vector` has another dimension.
    pub fn encode(&self, vector: &[f32], out: &mut Vec<u8>) -> f32 {
        assert_eq!(vector.len(), self.dimension(), "a vector of another dimension");
        let mut rest: Vec<f32> =
            vector.iter().zip(&self.mean).map(|(value, mean)| value - mean).collect();
        self.rotation.apply(&mut rest);
        let mut signs = Signs::of(&rest);
        signs.balance(&rest, &self.rotated_mean);
        let start = out.len();
        out.resize(start + self.code_bytes(), 0);
        for (byte, signs) in out[start..].iter_mut().zip(signs.signs.chunks(8)) {
            *byte = (0..).zip(signs).fold(0, |bits, (at, sign)| bits | u8::from(*sign > 0.0) << at);
        }
        let factor = signs.factor() as f32;
        if factor.is_finite() { factor } else { 0.0 }
    }

    /// Prepares `query` for scans.
    ///
    /// # Panics
    /// When `query` has another dimension.
    pub fn query(&self, query: &[f32]) -> CodeQuery {
        self.query_with_bits(query, QUERY_BITS)
    }

    /// [`Codec::query`] with `bits` bits a value, 1 to 4: fewer scan faster and estimate worse.
    ///
    /// # Panics
    /// When `query` has another dimension, or `bits` is out of range.
    pub fn query_with_bits(&self, query: &[f32], bits: usize) -> CodeQuery {
        assert_eq!(query.len(), self.dimension(), "a query of another dimension");
        // By the definition, not by this machine's kernel: estimates have the same bits everywhere.
        let base = reference::dot(query, &self.mean);
        let mut rotated = query.to_vec();
        self.rotation.apply(&mut rotated);
        CodeQuery::new(&rotated, bits, base)
    }
}

/// The code of one vector in the making.
struct Signs {
    /// 1 or -1 a value.
    signs: Vec<f32>,
    /// The squared length of the vector.
    squares: f64,
    /// The vector times its signs: the sum of its magnitudes, less what balancing took.
    along: f64,
}

impl Signs {
    fn of(rest: &[f32]) -> Signs {
        Signs {
            signs: rest.iter().map(|value| if *value >= 0.0 { 1.0 } else { -1.0 }).collect(),
            squares: rest.iter().map(|value| f64::from(*value) * f64::from(*value)).sum(),
            along: rest.iter().map(|value| f64::from(value.abs())).sum(),
        }
    }

    fn factor(&self) -> f64 {
        self.squares / self.along
    }

    /// Turns a few signs where they matter least, until the code estimates the vector's product with the mean right.
    ///
    /// Queries share the mean with the vectors, so its part of the error would enter every estimate. Taking it out
    /// raised recall_at_10 of the best 400 of 100,000 turns from 0.982 to 0.991 (`benches/codes.rs`), for nothing at
    /// query time. Signs that move the estimate most for the magnitude of their value go first.
    fn balance(&mut self, rest: &[f32], mean: &[f32]) {
        let exact: f64 =
            rest.iter().zip(mean).map(|(value, mean)| f64::from(*value) * f64::from(*mean)).sum();
        let mut coded: f64 =
            self.signs.iter().zip(mean).map(|(sign, mean)| f64::from(sign * mean)).sum();
        let too_high = self.factor() * coded > exact;
        // The ratio is not negative, so that its bits sort as it does; the place breaks ties.
        let mut turns: Vec<u64> = (0..rest.len())
            .filter(|&at| mean[at] != 0.0 && (self.signs[at] * mean[at] > 0.0) == too_high)
            .map(|at| u64::from((rest[at] / mean[at]).abs().to_bits()) << 32 | at as u64)
            .collect();
        let most = rest.len() / TURNED_SHARE;
        if turns.len() > most {
            turns.select_nth_unstable(most);
            turns.truncate(most);
        }
        turns.sort_unstable();
        let least = self.along * ALONG_KEPT;
        for at in turns.into_iter().map(|turn| turn as u32 as usize) {
            let along = self.along - 2.0 * f64::from(rest[at].abs());
            let turned = coded - 2.0 * f64::from(self.signs[at] * mean[at]);
            let error = (self.factor() * coded - exact).abs();
            if along >= least && (self.squares / along * turned - exact).abs() < error {
                (self.along, coded) = (along, turned);
                self.signs[at] = -self.signs[at];
            }
        }
    }
}

impl fmt::Debug for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Codec")
            .field("dimension", &self.dimension())
            .field("seed", &self.seed)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIMENSIONS: [usize; 13] = [1, 2, 3, 8, 63, 64, 65, 100, 256, 384, 768, 1000, 4096];

    /// A vector of unit length with about `share` of its length along the first axis.
    fn unit(dimension: usize, seed: u64, share: f32) -> Vec<f32> {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut uniform = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 40) as f32 / (1 << 23) as f32 - 1.0
        };
        let mut vector: Vec<f32> = (0..dimension).map(|_| uniform() + uniform()).collect();
        vector[0] += share * (dimension as f32).sqrt();
        let norm = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
        vector.iter_mut().for_each(|value| *value /= norm);
        vector
    }

    fn mean_of(vectors: &[Vec<f32>]) -> Vec<f32> {
        (0..vectors[0].len())
            .map(|at| vectors.iter().map(|vector| vector[at]).sum::<f32>() / vectors.len() as f32)
            .collect()
    }

    /// Mean error of the estimates and their root mean square, over 200 rows and 20 queries.
    fn errors(dimension: usize, bits: usize) -> (f64, f64) {
        let rows: Vec<Vec<f32>> = (0..200).map(|at| unit(dimension, at, 0.5)).collect();
        let codec = Codec::new(mean_of(&rows), 42);
        let (mut codes, mut factors, mut out) = (Vec::new(), Vec::new(), Vec::new());
        for row in &rows {
            factors.push(codec.encode(row, &mut codes).to_le_bytes());
        }
        let mut errors = Vec::new();
        for query in (0..20).map(|at| unit(dimension, 1000 + at, 0.5)) {
            codec.query_with_bits(&query, bits).scan(&codes, &factors, &mut out);
            errors.extend(
                rows.iter()
                    .zip(&out)
                    .map(|(row, score)| f64::from(score - super::super::dot(row, &query))),
            );
        }
        let mean = errors.iter().sum::<f64>() / errors.len() as f64;
        (mean, (errors.iter().map(|error| error * error).sum::<f64>() / errors.len() as f64).sqrt())
    }

    #[test]
    fn estimates_are_right_on_average_and_near() {
        for dimension in [64, 100, 256, 384, 768, 1000] {
            let deviation = 1.0 / (dimension as f64).sqrt();
            let (mean, root) = errors(dimension, QUERY_BITS);
            assert!(mean.abs() < 0.1 * deviation, "{dimension}: {mean}");
            // Theory for unit vectors: 0.75 of a deviation; less here, since the mean takes its part.
            assert!(root < 0.75 * deviation, "{dimension}: {root}");
            assert!(errors(dimension, 1).1 > 1.1 * root, "one bit of a query estimates worse");
        }
    }

    #[test]
    fn a_code_estimates_the_product_with_the_mean_right() {
        let rows: Vec<Vec<f32>> = (0..50).map(|at| unit(256, at, 0.5)).collect();
        let codec = Codec::new(mean_of(&rows), 42);
        let (mut before, mut after) = (0.0, 0.0);
        for row in &rows {
            let mut rest: Vec<f32> = row.iter().zip(codec.mean()).map(|(a, b)| a - b).collect();
            codec.rotation.apply(&mut rest);
            let error = |signs: &Signs| {
                let times = |values: &[f32]| super::super::dot(values, &codec.rotated_mean);
                (signs.factor() as f32 * times(&signs.signs) - times(&rest)).abs()
            };
            let mut signs = Signs::of(&rest);
            let along = signs.along;
            before += error(&signs);
            signs.balance(&rest, &codec.rotated_mean);
            after += error(&signs);
            assert!(signs.along > 0.98 * along);
        }
        assert!(after < 0.15 * before, "{before} became {after}");
    }

    #[test]
    fn every_dimension_encodes_and_the_bits_behind_are_zero() {
        for dimension in DIMENSIONS {
            let codec = Codec::new(vec![0.01; dimension], 1);
            let mut code = vec![7];
            let vector = unit(dimension, 5, 0.0);
            let factor = codec.encode(&vector, &mut code);
            assert_eq!((code.len(), code[0]), (1 + codec.code_bytes(), 7));
            assert!(factor.is_finite() && factor >= 0.0);
            for bit in dimension..codec.code_bytes() * 8 {
                assert_eq!(code[1 + bit / 8] >> (bit % 8) & 1, 0, "{dimension}");
            }
            let mut out = Vec::new();
            codec.query(&vector).scan(&code[1..], &[factor.to_le_bytes()], &mut out);
            assert!(
                out[0].is_finite() && (dimension < 64 || out[0] > 0.8),
                "{dimension}: {}",
                out[0]
            );
        }
    }

    #[test]
    fn the_bits_of_a_code_never_change() {
        // FNV-1a over codes and factors. Databases hold codes that were made with these.
        let print = |dimension| {
            let mean = unit(dimension, 9, 0.3).iter().map(|value| value * 0.5).collect();
            let codec = Codec::new(mean, 42);
            let mut bytes = Vec::new();
            for seed in 0..20 {
                let factor = codec.encode(&unit(dimension, seed, 0.3), &mut bytes);
                bytes.extend(factor.to_le_bytes());
            }
            bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
                (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
            })
        };
        assert_eq!(
            [3, 256, 384].map(print),
            [0x27b3df904c051bbb, 0x550930044d054dee, 0x3ffd7a4024d48b7a]
        );
    }

    #[test]
    fn the_mean_and_what_is_not_finite_have_no_factor() {
        let codec = Codec::new(vec![0.5; 70], 1);
        let (mut code, mut out) = (Vec::new(), Vec::new());
        assert_eq!(codec.encode(&[0.5; 70], &mut code), 0.0);
        codec.query(&unit(70, 1, 0.0)).scan(&code, &[[0; 4]], &mut out);
        assert_eq!(out[0], reference::dot(&unit(70, 1, 0.0), &[0.5; 70]));
        for value in [f32::NAN, f32::INFINITY, f32::MAX] {
            let factor = codec.encode(&[value; 70], &mut code);
            assert!(factor.is_finite() && factor >= 0.0);
            codec.query(&[value; 70]).scan(&code[..16], &[[0; 4]], &mut out);
        }
        codec.query(&[0.0; 70]).scan(&code[..16], &[1.0f32.to_le_bytes()], &mut out);
        assert_eq!(out, [0.0]);
    }
}
