//! Vectors rounded to a byte a value: a quarter of the bytes to go through, where many are compared roughly.

/// Vectors of one dimension, each with values `scale * byte`.
#[derive(Debug, Default)]
pub struct Rounded {
    dimension: usize,
    bytes: Vec<i8>,
    scales: Vec<f32>,
}

impl Rounded {
    /// None yet, of `dimension` values each.
    pub fn new(dimension: usize) -> Rounded {
        Rounded { dimension, ..Rounded::default() }
    }

    /// Adds one. Of a vector with a value that is not finite nothing is told but that.
    ///
    /// # Panics
    /// When it has another dimension.
    pub fn push(&mut self, values: impl ExactSizeIterator<Item = f32> + Clone) {
        assert_eq!(values.len(), self.dimension, "vectors of two lengths");
        let most = values.clone().map(f32::abs).fold(0.0, f32::max);
        let is_finite = values.clone().all(f32::is_finite);
        let scale = most / f32::from(i8::MAX);
        let unit = if scale > 0.0 && is_finite { scale.recip() } else { 0.0 };
        self.bytes.extend(values.map(|value| (value * unit).round() as i8));
        self.scales.push(if is_finite { scale } else { f32::NAN });
    }

    /// The dot product of one with the first of `other`: within about one in a hundred of the product of their lengths.
    ///
    /// # Panics
    /// When there is no such vector, or the dimensions differ.
    pub fn dot(&self, at: usize, other: &Rounded) -> f32 {
        let bytes = &self.bytes[at * self.dimension..][..self.dimension];
        let others = &other.bytes[..other.dimension];
        assert_eq!(bytes.len(), others.len(), "vectors of two lengths");
        // Whole numbers: at most 127 * 127 * 65,536 values fit.
        let product = |(a, b): (&i8, &i8)| i32::from(*a) * i32::from(*b);
        let sum: i32 = bytes.iter().zip(others).map(product).sum();
        sum as f32 * self.scales[at] * other.scales[0]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounded(vectors: &[&[f32]]) -> Rounded {
        let mut rounded = Rounded::new(vectors[0].len());
        vectors.iter().for_each(|values| rounded.push(values.iter().copied()));
        rounded
    }

    #[test]
    fn dot_products_are_near() {
        let vector = |seed: u32| -> Vec<f32> {
            let value = |n: u32| ((n * seed) % 97) as f32 / 48.5 - 1.0;
            let values: Vec<f32> = (1..=256).map(value).collect();
            let length = super::super::dot(&values, &values).sqrt();
            values.iter().map(|value| value / length).collect()
        };
        let (a, b, c) = (vector(31), vector(57), vector(12));
        let stored = rounded(&[&a, &b]);
        let query = rounded(&[&c]);
        for (at, values) in [a, b].iter().enumerate() {
            let exact = super::super::dot(values, &c);
            assert!((stored.dot(at, &query) - exact).abs() < 0.01, "{exact}");
        }
    }

    #[test]
    fn what_cannot_be_rounded_is_no_number() {
        let query = rounded(&[&[1.0, 0.0]]);
        let stored =
            rounded(&[&[0.0, 0.0], &[f32::INFINITY, 0.0], &[f32::NAN, 1.0], &[1e-40, 0.0]]);
        assert_eq!(stored.dot(0, &query), 0.0);
        assert!(stored.dot(1, &query).is_nan() && stored.dot(2, &query).is_nan());
        assert!(stored.dot(3, &query).is_finite());
    }
}
