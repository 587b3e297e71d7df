//! A random rotation that costs `d log d` and needs no matrix.
//!
//! A few rounds of random signs and a fast Hadamard transform. Where the dimension is no power of two, the transform
//! takes the first and the last power-of-two block in turn, and each round ends with a step that turns the pairs
//! `(i, i + d/2)` by 45 degrees, so that every value comes to depend on every other.
//!
//! Invariant: orthogonal up to rounding, and equal bits for equal dimension, seed and input on every machine: only
//! additions, subtractions and multiplications in a fixed order, signs from our own generator. Codes on disk depend on
//! it, so nothing here may change under a codec id.

/// Rounds when the dimension is a power of two: three give the spread of a random rotation (as in the fast transforms
/// of cross-polytope hashing, arXiv 1509.02897).
const ROUNDS_WHOLE: usize = 3;
/// Rounds when it is not: each block is transformed three times. With four, an axis next to the blocks' seam stayed
/// visible at 4,095 dimensions (largest value 0.25 where 0.06 is expected).
const ROUNDS_SPLIT: usize = 6;

/// One rotation of vectors of one dimension.
#[derive(Clone, Debug)]
pub(super) struct Rotation {
    dimension: usize,
    /// Values of a transformed block: the largest power of two up to the dimension.
    block: usize,
    /// What makes the transform of a block orthonormal.
    scale: f32,
    /// 1 or -1 for each value of each round.
    signs: Vec<f32>,
}

impl Rotation {
    pub(super) fn new(dimension: usize, seed: u64) -> Rotation {
        assert!(dimension > 0, "a vector has values");
        let levels = dimension.ilog2();
        let rounds = if dimension.is_power_of_two() { ROUNDS_WHOLE } else { ROUNDS_SPLIT };
        let mut generator = SplitMix64(seed);
        let signs =
            (0..rounds * dimension).map(|_| if generator.next() >> 63 == 0 { 1.0 } else { -1.0 });
        let odd = if levels % 2 == 1 { std::f32::consts::FRAC_1_SQRT_2 } else { 1.0 };
        Rotation {
            dimension,
            block: 1 << levels,
            scale: odd / (1u32 << (levels / 2)) as f32,
            signs: signs.collect(),
        }
    }

    /// Turns `vector` in place.
    pub(super) fn apply(&self, vector: &mut [f32]) {
        assert_eq!(vector.len(), self.dimension, "a vector of another dimension");
        for (round, signs) in self.signs.chunks_exact(self.dimension).enumerate() {
            vector.iter_mut().zip(signs).for_each(|(value, sign)| *value *= sign);
            let last = self.dimension - self.block;
            let start = if round % 2 == 0 { 0 } else { last };
            let block = &mut vector[start..start + self.block];
            hadamard(block);
            block.iter_mut().for_each(|value| *value *= self.scale);
            if last > 0 {
                turn_halves(vector);
            }
        }
    }
}

/// The fast Hadamard transform, without its scale. The length is a power of two.
fn hadamard(values: &mut [f32]) {
    let mut half = 1;
    while half < values.len() {
        for pair in values.chunks_exact_mut(2 * half) {
            let (low, high) = pair.split_at_mut(half);
            low.iter_mut().zip(high).for_each(|(a, b)| (*a, *b) = (*a + *b, *a - *b));
        }
        half *= 2;
    }
}

/// Turns each pair of the first and the second half by 45 degrees. Of an odd number of values the middle one stays.
fn turn_halves(values: &mut [f32]) {
    const COSINE: f32 = std::f32::consts::FRAC_1_SQRT_2;
    let (low, high) = values.split_at_mut(values.len().div_ceil(2));
    low.iter_mut().zip(high).for_each(|(a, b)| (*a, *b) = ((*a + *b) * COSINE, (*a - *b) * COSINE));
}

/// The generator of the signs (Steele, Lea, Flood: splitmix64).
struct SplitMix64(u64);

impl SplitMix64 {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIMENSIONS: [usize; 16] =
        [1, 2, 3, 4, 5, 7, 63, 100, 256, 300, 384, 768, 1000, 1536, 4095, 4096];

    fn random(dimension: usize, seed: u64) -> Vec<f32> {
        let mut generator = SplitMix64(seed);
        (0..dimension).map(|_| (generator.next() >> 40) as f32 / (1 << 23) as f32 - 1.0).collect()
    }

    fn dot(a: &[f32], b: &[f32]) -> f64 {
        a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
    }

    #[test]
    fn lengths_and_angles_survive_at_every_dimension() {
        for dimension in (1..=200).chain(DIMENSIONS) {
            let rotation = Rotation::new(dimension, 7);
            let (mut a, mut b) = (random(dimension, 1), random(dimension, 2));
            let before = (dot(&a, &a), dot(&b, &b), dot(&a, &b));
            rotation.apply(&mut a);
            rotation.apply(&mut b);
            let scale = (before.0 * before.1).sqrt();
            assert!((dot(&a, &a) / before.0 - 1.0).abs() < 2e-6, "{dimension}");
            assert!((dot(&a, &b) - before.2).abs() < 2e-6 * scale, "{dimension}");
        }
    }

    #[test]
    fn one_axis_spreads_over_all_values() {
        // The largest of d values of a random unit vector is about sqrt(2 ln d / d).
        for dimension in [100, 256, 300, 384, 768, 1000, 4095, 4096] {
            let rotation = Rotation::new(dimension, 7);
            let expected = (2.0 * (dimension as f32).ln() / dimension as f32).sqrt();
            for axis in [0, 1, dimension / 2, dimension - 1] {
                let mut vector = vec![0.0; dimension];
                vector[axis] = 1.0;
                rotation.apply(&mut vector);
                let largest = vector.iter().fold(0.0f32, |largest, value| largest.max(value.abs()));
                assert!(largest < 2.0 * expected, "dimension {dimension}, axis {axis}: {largest}");
            }
        }
    }

    #[test]
    fn the_bits_of_a_rotation_never_change() {
        // FNV-1a over the bits of one rotated vector. Codes on disk were made with these rotations.
        let print = |dimension| {
            let mut vector = random(dimension, 3);
            Rotation::new(dimension, 42).apply(&mut vector);
            vector
                .iter()
                .flat_map(|value| value.to_le_bytes())
                .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
                    (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
                })
        };
        assert_eq!(
            [3, 256, 384, 4095].map(print),
            [0x7519ee6f5c9aa424, 0xebc63e398ed8afdd, 0x6c95a90ec1590aed, 0x0a4d386c9650815c]
        );
    }

    #[test]
    fn another_seed_is_another_rotation() {
        let (mut a, mut b) = (random(256, 1), random(256, 1));
        Rotation::new(256, 1).apply(&mut a);
        Rotation::new(256, 2).apply(&mut b);
        assert!(dot(&a, &b).abs() < 0.3 * dot(&a, &a));
    }
}
