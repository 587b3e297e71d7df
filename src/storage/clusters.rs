//! Gathers the rows of a new segment into clusters by meaning: k-means from the top down, until no cluster is too large.
//!
//! Invariants: equal rows give equal clusters; memory holds a sample and the rows' numbers, never all vectors. Clusters
//! are of one user, kind and segment: a merge gathers the rows of its inputs anew, which splits and joins cells by size.
//!
//! Source: inverted lists after Jegou, Douze and Schmid (2011); spherical k-means after Dhillon and Modha (2001).

use std::ops::Range;

use crate::error::Result;
use crate::model::{VectorSpace, unpack_vector};
use crate::options::{CELL_ROWS, CELL_ROWS_MAX, CELL_ROWS_MIN};
use crate::simd;

use super::segment::RowSource;

/// Clusters that one step makes, at most.
const FAN_OUT: usize = 16;
/// Vectors of the sample on which a step learns, for each of its clusters.
const SAMPLE_ROWS: usize = 64;
/// Rounds in which it learns. A stated guess: the assignment of a sample changes little after that.
const ROUNDS: usize = 8;

/// The rows of `range`, which are one user's, in clusters; those without a vector are in none. Empty for fewer than
/// `least` rows.
///
/// # Errors
/// What `rows` answers.
pub fn clusters(
    rows: &dyn RowSource,
    range: Range<u32>,
    space: &VectorSpace,
    least: usize,
) -> Result<Vec<Vec<u32>>> {
    let mut members = Vec::new();
    for row in range {
        members.extend(rows.head(row as usize)?.has_vector.then_some(row));
    }
    if members.len() < least.max(1) {
        return Ok(Vec::new());
    }
    let vectors = Vectors { rows, space };
    let (mut clusters, mut waiting) = (Vec::new(), vec![members]);
    while let Some(members) = waiting.pop() {
        match split(&vectors, &members)? {
            Some(children) => waiting.extend(children.into_iter().rev()),
            None => clusters.push(members),
        }
    }
    Ok(clusters)
}

struct Vectors<'a> {
    rows: &'a dyn RowSource,
    space: &'a VectorSpace,
}

impl Vectors<'_> {
    /// Calls `each` with the vector of each member, in order.
    fn each(&self, members: &[u32], mut each: impl FnMut(usize, &[f32])) -> Result<()> {
        let (mut stored, mut values) = (Vec::new(), Vec::new());
        for (at, row) in members.iter().enumerate() {
            stored.clear();
            self.rows.vector(*row as usize, &mut stored)?;
            unpack_vector(&stored, self.space.element, &mut values);
            each(at, &values);
        }
        Ok(())
    }
}

/// Parts `members` into nearer ones; `None` when there is no need to or nothing to part them by.
fn split(vectors: &Vectors<'_>, members: &[u32]) -> Result<Option<Vec<Vec<u32>>>> {
    if members.len() <= CELL_ROWS_MAX {
        return Ok(None);
    }
    let dimension = vectors.space.dimension as usize;
    let count = members.len().div_ceil(CELL_ROWS).clamp(2, FAN_OUT);
    let step = members.len().div_ceil(count * SAMPLE_ROWS).max(1);
    let sampled: Vec<u32> = members.iter().copied().step_by(step).collect();
    let mut sample = Vec::with_capacity(sampled.len() * dimension);
    vectors.each(&sampled, |_, values| sample.extend_from_slice(values))?;
    let mut centroids = Centroids::learn(&sample, dimension, count);

    let mut nearest = vec![0; members.len()];
    vectors.each(members, |at, values| nearest[at] = centroids.nearest(values))?;
    // The smallest one below the least size gives its rows to the others, until none is left.
    loop {
        let mut sizes = vec![0; centroids.len()];
        nearest.iter().for_each(|at| sizes[*at] += 1);
        let smallest = (0..sizes.len()).min_by_key(|at| sizes[*at]).expect("there is one");
        if centroids.len() == 1 {
            return Ok(None);
        }
        if sizes[smallest] >= CELL_ROWS_MIN {
            break;
        }
        centroids.remove(smallest);
        let homeless: Vec<usize> =
            (0..members.len()).filter(|at| nearest[*at] == smallest).collect();
        nearest.iter_mut().filter(|at| **at > smallest).for_each(|at| *at -= 1);
        let rows: Vec<u32> = homeless.iter().map(|at| members[*at]).collect();
        vectors.each(&rows, |at, values| nearest[homeless[at]] = centroids.nearest(values))?;
    }
    let mut children = vec![Vec::new(); centroids.len()];
    for (row, at) in members.iter().zip(nearest) {
        children[at].push(*row);
    }
    Ok(Some(children))
}

/// Unit vectors, one behind the other.
struct Centroids {
    dimension: usize,
    values: Vec<f32>,
}

impl Centroids {
    /// Learns `count` centroids of `sample`, which holds at least as many vectors.
    fn learn(sample: &[f32], dimension: usize, count: usize) -> Centroids {
        let rows = sample.len() / dimension;
        let row = |at: usize| &sample[at * dimension..(at + 1) * dimension];
        let mut made = Centroids { dimension, values: Vec::with_capacity(count * dimension) };
        for at in 0..count {
            made.values.extend_from_slice(row(at * rows / count));
        }
        for _ in 0..ROUNDS {
            let mut sums = vec![0.0; made.values.len()];
            for at in 0..rows {
                let range = made.range(made.nearest(row(at)));
                sums[range].iter_mut().zip(row(at)).for_each(|(sum, value)| *sum += value);
            }
            for at in 0..count {
                let sum = &mut sums[made.range(at)];
                let length = simd::dot(sum, sum).sqrt();
                // One that nothing is nearest to stays where it was.
                if length > 0.0 {
                    sum.iter_mut().for_each(|value| *value /= length);
                    let range = made.range(at);
                    made.values[range].copy_from_slice(sum);
                }
            }
        }
        made
    }

    fn len(&self) -> usize {
        self.values.len() / self.dimension
    }

    fn range(&self, at: usize) -> Range<usize> {
        at * self.dimension..(at + 1) * self.dimension
    }

    /// The nearest centroid; the first of equal ones.
    fn nearest(&self, values: &[f32]) -> usize {
        let mut best = (f32::NEG_INFINITY, 0);
        for (at, centroid) in self.values.chunks_exact(self.dimension).enumerate() {
            let score = simd::dot(centroid, values);
            if score > best.0 {
                best = (score, at);
            }
        }
        best.1
    }

    fn remove(&mut self, at: usize) {
        self.values.drain(self.range(at));
    }
}
