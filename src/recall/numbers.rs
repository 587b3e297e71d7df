//! Sets of the numbers of rows or passages, small enough to stay near the processor while postings stream by.

/// A set of numbers below a bound.
pub(super) struct NumberSet(Vec<u64>);

impl NumberSet {
    pub fn new(bound: u32) -> NumberSet {
        NumberSet(vec![0; (bound as usize).div_ceil(64)])
    }

    /// Adds a number; whether it was new.
    pub fn insert(&mut self, number: u32) -> bool {
        let (word, bit) = (&mut self.0[number as usize / 64], 1 << (number % 64));
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }

    pub fn contains(&self, number: u32) -> bool {
        self.0[number as usize / 64] & (1 << (number % 64)) != 0
    }
}

/// A set that tells the place of each of its numbers among them.
pub(super) struct RankedSet {
    set: NumberSet,
    /// Numbers in the words before each word.
    before: Vec<u32>,
    count: usize,
}

impl RankedSet {
    pub fn new(set: NumberSet) -> RankedSet {
        let mut count = 0;
        let before = set.0.iter().map(|word| {
            let before = count;
            count += word.count_ones();
            before
        });
        RankedSet { before: before.collect(), count: count as usize, set }
    }

    pub fn len(&self) -> usize {
        self.count
    }

    /// How many of the set's numbers are below one of them; `None` for a number that is not in it.
    #[inline]
    pub fn rank(&self, number: u32) -> Option<usize> {
        let (word, bit) = (self.set.0[number as usize / 64], 1 << (number % 64));
        let before = self.before[number as usize / 64] + (word & (bit - 1)).count_ones();
        (word & bit != 0).then_some(before as usize)
    }

    /// The numbers, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u32> {
        (0..).zip(&self.set.0).flat_map(|(at, word)| {
            let mut left = *word;
            std::iter::from_fn(move || {
                let bit = (left != 0).then(|| left.trailing_zeros())?;
                left &= left - 1;
                Some(at * 64 + bit)
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_places_in_the_order() {
        let numbers = [0, 1, 63, 64, 127, 128, 500, 999];
        let mut set = NumberSet::new(1000);
        assert!(numbers.iter().all(|number| set.insert(*number)));
        assert!(!set.insert(500));
        let ranked = RankedSet::new(set);
        assert_eq!(ranked.len(), numbers.len());
        assert_eq!(ranked.iter().collect::<Vec<_>>(), numbers);
        for (rank, number) in numbers.into_iter().enumerate() {
            assert_eq!(ranked.rank(number), Some(rank));
        }
        assert!([2, 62, 129, 998].into_iter().all(|number| ranked.rank(number).is_none()));
    }
}
