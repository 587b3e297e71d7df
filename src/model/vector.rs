//! Vectors: checked and normalised on the way in, kept as little-endian bytes.

use crate::error::{Error, Result};
use crate::options::{DIMENSION_MAX, NORM_RANGE, VectorElement};

/// The one vector space of a database: which embedder made the vectors, and their shape. Recorded at creation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VectorSpace {
    /// The embedder's name. Vectors of differently named embedders are never mixed.
    pub name: String,
    /// Values of one vector, 1 to [`DIMENSION_MAX`].
    pub dimension: u32,
    /// How a value is kept.
    pub element: VectorElement,
}

impl VectorSpace {
    /// Bytes of one stored vector.
    pub fn vector_bytes(&self) -> usize {
        self.dimension as usize * self.element.bytes()
    }

    /// Checks the dimension.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Limit`] outside 1 to [`DIMENSION_MAX`].
    pub fn check(&self) -> Result<()> {
        if self.dimension == 0 || self.dimension as usize > DIMENSION_MAX {
            return Err(Error::limit(format!(
                "dimension {} is outside 1 to {DIMENSION_MAX}",
                self.dimension
            )));
        }
        Ok(())
    }

    /// Checks a caller's vector against this space and scales it to unit length.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Invalid`] for another dimension (both are named) and as [`normalise`] says.
    pub fn admit(&self, vector: &mut [f32]) -> Result<()> {
        if vector.len() != self.dimension as usize {
            return Err(Error::invalid(format!(
                "vector has {} values, the space {} of this database has {}",
                vector.len(),
                self.name,
                self.dimension
            )));
        }
        normalise(vector)
    }
}

/// Checks `vector` (finite, norm within [`NORM_RANGE`]) and scales it to unit length.
///
/// # Errors
/// [`crate::ErrorKind::Invalid`] when a value is not finite or the length is zero or outside the range.
pub fn normalise(vector: &mut [f32]) -> Result<()> {
    if vector.iter().any(|value| !value.is_finite()) {
        return Err(Error::invalid("vector holds a value that is not finite"));
    }
    let squares: f64 = vector.iter().map(|value| f64::from(*value).powi(2)).sum();
    let norm = squares.sqrt();
    if !(f64::from(*NORM_RANGE.start())..=f64::from(*NORM_RANGE.end())).contains(&norm) {
        return Err(Error::invalid(format!(
            "vector has length {norm:e}, outside {:e} to {:e}",
            NORM_RANGE.start(),
            NORM_RANGE.end()
        )));
    }
    for value in vector {
        *value = (f64::from(*value) / norm) as f32;
    }
    Ok(())
}

/// The stored bytes of `vector`.
pub fn pack_vector(vector: &[f32], element: VectorElement) -> Vec<u8> {
    match element {
        VectorElement::F32 => vector.iter().flat_map(|value| value.to_le_bytes()).collect(),
        VectorElement::F16 => {
            vector.iter().flat_map(|value| f16_from_f32(*value).to_le_bytes()).collect()
        }
    }
}

/// The values of stored `bytes`, into `out` (cleared first). `bytes` must be whole values.
pub fn unpack_vector(bytes: &[u8], element: VectorElement, out: &mut Vec<f32>) {
    out.clear();
    match element {
        VectorElement::F32 => {
            out.extend(bytes.as_chunks::<4>().0.iter().map(|value| f32::from_le_bytes(*value)));
        }
        VectorElement::F16 => {
            out.extend(
                bytes
                    .as_chunks::<2>()
                    .0
                    .iter()
                    .map(|value| f32_from_f16(u16::from_le_bytes(*value))),
            );
        }
    }
}

/// IEEE 754 half precision, round to nearest even. Values of unit vectors only: no overflow handling beyond infinity.
fn f16_from_f32(value: f32) -> u16 {
    let bits = value.to_bits();
    let sign = ((bits >> 16) & 0x8000) as u16;
    let magnitude = bits & 0x7fff_ffff;
    if magnitude >= 0x4780_0000 {
        return sign | 0x7c00;
    }
    if magnitude < 0x3880_0000 {
        // Subnormal: a half's least step is 2^-24, so adding 0.5 rounds the value to it in the low bits.
        let shifted = f32::from_bits(magnitude) + 0.5;
        return sign | (shifted.to_bits() - 0x3f00_0000) as u16;
    }
    let rounded = magnitude + 0x0fff + ((magnitude >> 13) & 1);
    sign | ((rounded - 0x3800_0000) >> 13) as u16
}

fn f32_from_f16(half: u16) -> f32 {
    let sign = u32::from(half & 0x8000) << 16;
    let magnitude = u32::from(half & 0x7fff);
    let value = match magnitude {
        0x7c00.. => f32::from_bits(0x7f80_0000 | (magnitude << 13)),
        0x0400.. => f32::from_bits((magnitude << 13) + 0x3800_0000),
        _ => magnitude as f32 / 16_777_216.0,
    };
    f32::from_bits(value.to_bits() | sign)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_half_survives_the_way_to_f32_and_back() {
        for half in 0..=u16::MAX {
            let value = f32_from_f16(half);
            if value.is_finite() {
                assert_eq!(f16_from_f32(value), half, "{half:#06x}");
            }
        }
    }

    #[test]
    fn halves_round_to_nearest() {
        assert_eq!(f32_from_f16(f16_from_f32(0.1)), 0.099_975_586);
        assert_eq!(f32_from_f16(f16_from_f32(1.0 + 1.0 / 2048.0)), 1.0);
        assert_eq!(f32_from_f16(f16_from_f32(1.0 + 3.0 / 2048.0)), 1.0 + 2.0 / 1024.0);
    }

    #[test]
    fn a_vector_of_another_dimension_names_both() {
        let space = VectorSpace { name: "m".into(), dimension: 3, element: VectorElement::F32 };
        let message = space.admit(&mut [1.0, 0.0]).unwrap_err().to_string();
        assert!(message.contains("vector has 2 values") && message.contains("has 3"), "{message}");
        let mut good = [0.0, 2.0, 0.0];
        space.admit(&mut good).unwrap();
        assert_eq!(good, [0.0, 1.0, 0.0]);
    }

    #[test]
    fn bad_vectors_are_refused() {
        for bad in [vec![0.0; 4], vec![f32::NAN, 1.0], vec![f32::INFINITY], vec![1e-9], vec![1e20]]
        {
            assert!(normalise(&mut bad.clone()).is_err());
        }
        let mut good = vec![3.0, 4.0];
        normalise(&mut good).unwrap();
        assert_eq!(good, [0.6, 0.8]);
    }
}
