//! Which passages each row has, and which row has a passage.

use std::ops::Range;

use crate::simd;

/// Passages of one block, whose first row is written down: the row of a passage is then one of few.
const BLOCK_PASSAGES: u32 = 64;

/// The passages of rows that follow one another.
#[derive(Debug)]
pub struct Passages {
    /// The first passage of each row, and the one behind the last: ascending.
    starts: Vec<u32>,
    /// The row of the first passage of each block.
    rows: Vec<u32>,
}

impl Passages {
    /// `starts`: the first passage of each row and the one behind the last, from 0 on, ascending strictly.
    pub fn new(starts: Vec<u32>) -> Passages {
        let count = starts.last().copied().unwrap_or(0);
        let mut rows = Vec::with_capacity(count.div_ceil(BLOCK_PASSAGES) as usize);
        for (row, ends) in (0..).zip(starts.iter().skip(1)) {
            while rows.len() as u32 * BLOCK_PASSAGES < *ends {
                rows.push(row);
            }
        }
        Passages { starts, rows }
    }

    /// The passages of a row.
    pub fn of(&self, row: u32) -> Range<u32> {
        let row = row as usize;
        self.starts[row]..self.starts[row + 1]
    }

    /// The row of a passage.
    pub fn row_of(&self, passage: u32) -> u32 {
        let (first, last) = self.rows_of_block(passage);
        let within = &self.starts[first as usize..=last as usize];
        first + within.partition_point(|start| *start <= passage).saturating_sub(1) as u32
    }

    /// The rows that may have a passage: from the first to the last of its block.
    fn rows_of_block(&self, passage: u32) -> (u32, u32) {
        let block = (passage / BLOCK_PASSAGES) as usize;
        let last = self.rows.get(block + 1).copied().unwrap_or(self.starts.len() as u32 - 1);
        (self.rows[block], last)
    }

    /// Tells the processor that the passages of a row are asked for soon.
    pub fn expect(&self, row: u32) {
        simd::prefetch(&self.starts[row as usize..=row as usize + 1]);
    }

    /// Tells the processor that the row of a passage is asked for soon.
    pub fn expect_row_of(&self, passage: u32) {
        let (first, last) = self.rows_of_block(passage);
        simd::prefetch(&self.starts[first as usize..=last as usize]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_passage_leads_to_its_row() {
        let mut starts = vec![0, 1, 4, 5, 6, 10, 11, 12, 13, 20];
        starts.extend((1..200).map(|row| 20 + row * row));
        starts.extend((1..300).map(|row| 20 + 199 * 199 + row));
        let passages = Passages::new(starts.clone());
        for row in 0..starts.len() as u32 - 1 {
            for passage in passages.of(row) {
                assert_eq!(passages.row_of(passage), row);
            }
        }
        assert_eq!(Passages::new(vec![0]).rows.len(), 0);
    }
}
