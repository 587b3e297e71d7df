//! The means of cells: section `centroids` (format-spec.md 3.4).

use super::format::Section;
use super::reader::Segment;
use super::{Cell, Centroid, RowSource};
use crate::error::Result;
use crate::model::{VectorSpace, unpack_vector};

/// Sets the centroid of each cell of a cluster, and returns the section's bytes. Cost: one pass over those vectors.
///
/// # Errors
/// What `rows` answers.
pub fn measure(cells: &mut [Cell], rows: &dyn RowSource, space: &VectorSpace) -> Result<Vec<u8>> {
    let (mut out, mut number) = (Vec::new(), 0);
    for cell in cells.iter_mut().filter(|cell| cell.cluster != 0) {
        let (mean, radius) = mean_of(cell, rows, space)?;
        out.extend(mean.iter().flat_map(|value| value.to_le_bytes()));
        cell.centroid = Some(Centroid { number, radius });
        number += 1;
    }
    Ok(out)
}

/// The mean of a cell's vectors, and the root of their mean squared distance from it. Zeros for a cell without any.
fn mean_of(cell: &Cell, rows: &dyn RowSource, space: &VectorSpace) -> Result<(Vec<f32>, f32)> {
    let mut sum = vec![0.0_f64; space.dimension as usize];
    let (mut count, mut squares) = (0_u32, 0.0_f64);
    let (mut stored, mut values) = (Vec::new(), Vec::new());
    for row in cell.rows.clone() {
        if !rows.head(row as usize)?.has_vector {
            continue;
        }
        stored.clear();
        rows.vector(row as usize, &mut stored)?;
        unpack_vector(&stored, space.element, &mut values);
        for (sum, value) in sum.iter_mut().zip(&values) {
            *sum += f64::from(*value);
            squares += f64::from(*value) * f64::from(*value);
        }
        count += 1;
    }
    let count = f64::from(count.max(1));
    let mean: Vec<f64> = sum.iter().map(|sum| sum / count).collect();
    let of_mean: f64 = mean.iter().map(|value| value * value).sum();
    let radius = (squares / count - of_mean).max(0.0).sqrt();
    Ok((mean.iter().map(|value| *value as f32).collect(), radius as f32))
}

impl Segment {
    /// The stored mean of a cell's vectors: little-endian `f32`, one a dimension.
    ///
    /// # Errors
    /// `Corrupt`.
    pub fn centroid(&self, centroid: Centroid) -> Result<&[u8]> {
        let width = u64::from(self.space().dimension) * 4;
        let start = u64::from(centroid.number) * width;
        self.columns.bytes(Section::Centroids, start..start + width)
    }
}
