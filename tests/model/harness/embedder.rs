//! An embedder whose vectors have exact dot products: every score is the same number in whatever order it is summed,
//! so an answer is compared for equality, ties included.

use loomdb::{Embedder, Result};

/// Values of one vector.
pub const DIMENSION: usize = 4;
/// Different vectors.
pub const VECTORS: usize = 24;

/// A vector of exact unit length: the axes, both ways, and all of (±½, ±½, ±½, ±½).
pub fn vector(index: usize) -> [f32; DIMENSION] {
    let index = index % VECTORS;
    let mut vector = [0.0; DIMENSION];
    if index < 2 * DIMENSION {
        vector[index / 2] = if index.is_multiple_of(2) { 1.0 } else { -1.0 };
    } else {
        let signs = index - 2 * DIMENSION;
        for (bit, value) in vector.iter_mut().enumerate() {
            *value = if signs & (1 << bit) == 0 { 0.5 } else { -0.5 };
        }
    }
    vector
}

/// The vector that stands for `text`; none when there is no letter or digit in it.
pub fn vector_of(text: &str) -> Option<usize> {
    if !text.chars().any(char::is_alphanumeric) {
        return None;
    }
    // FNV-1a.
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    Some((hash >> 32) as usize % VECTORS)
}

/// The vector of an episode, as the database is documented to make it: of `Speaker: text`.
pub fn vector_of_episode(speaker: Option<&str>, text: &str) -> Option<usize> {
    match speaker {
        Some(speaker) => vector_of(&format!("{speaker}: {text}")),
        None => vector_of(text),
    }
}

/// The score of two vectors, exact.
pub fn score(one: usize, two: usize) -> f32 {
    vector(one).iter().zip(vector(two)).map(|(one, two)| one * two).sum()
}

/// The embedder.
pub struct ExactEmbedder;

impl Embedder for ExactEmbedder {
    fn name(&self) -> &str {
        "exact-4d"
    }

    fn dimension(&self) -> usize {
        DIMENSION
    }

    fn embed(&self, texts: &[&str], out: &mut Vec<f32>) -> Result<Vec<bool>> {
        let known = texts.iter().map(|text| {
            let known = vector_of(text);
            out.extend(known.map_or([0.0; DIMENSION], vector));
            known.is_some()
        });
        Ok(known.collect())
    }
}
