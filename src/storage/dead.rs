//! The rows of one segment that are ended: deleted, or superseded and kept for history.

/// A set of row numbers of one segment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeadRows {
    words: Vec<u64>,
    count: u32,
}

impl DeadRows {
    /// The set of `rows`, of a segment with `total` rows. Rows beyond are ignored.
    pub fn new(total: u32, rows: &[u32]) -> DeadRows {
        let mut dead = DeadRows { words: vec![0; (total as usize).div_ceil(64)], count: 0 };
        for row in rows {
            dead.insert(*row);
        }
        dead
    }

    /// Adds a row; whether it was new.
    pub fn insert(&mut self, row: u32) -> bool {
        let Some(word) = self.words.get_mut(row as usize / 64) else { return false };
        let bit = 1 << (row % 64);
        let new = *word & bit == 0;
        *word |= bit;
        self.count += u32::from(new);
        new
    }

    pub fn contains(&self, row: u32) -> bool {
        self.words.get(row as usize / 64).is_some_and(|word| word & (1 << (row % 64)) != 0)
    }

    /// Rows in the set.
    pub fn len(&self) -> u32 {
        self.count
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The rows, ascending.
    pub fn rows(&self) -> Vec<u32> {
        let words = self.words.iter().enumerate();
        words
            .flat_map(|(index, word)| {
                (0..64)
                    .filter(move |bit| word & (1 << bit) != 0)
                    .map(move |bit| index as u32 * 64 + bit)
            })
            .collect()
    }

    /// The bits, 64 rows a word, lowest row in the lowest bit.
    pub fn words(&self) -> &[u64] {
        &self.words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_back_once_and_in_order() {
        let mut dead = DeadRows::new(130, &[129, 0, 64, 64, 500]);
        assert_eq!(dead.rows(), [0, 64, 129]);
        assert_eq!(dead.len(), 3);
        assert!(dead.contains(64) && !dead.contains(65) && !dead.contains(500));
        assert!(dead.insert(65) && !dead.insert(65));
    }
}
