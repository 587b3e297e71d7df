//! Puts an answer together from ranked items: near-duplicates are folded, and what is left is packed into a token budget.
//!
//! Pure: plain numbers in, plain numbers out; what an item is and how its tokens are counted is the caller's to know.
//! Invariant: the order of ranks is kept, and nothing disappears in silence.

use std::collections::HashMap;

use crate::options::{
    BUDGET_RANKS_MAX, BUDGET_TOKENS_LEFT_MIN, NEAR_DUPLICATE_OVERLAP, PASSAGE_ABOVE_TOKENS,
};

/// What an item would take of a budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size {
    /// Tokens of the whole item.
    pub tokens: usize,
    /// Tokens of its best passage, where it has one that is less than the whole.
    pub passage_tokens: Option<usize>,
}

/// An item and what it takes, or would have taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Portion {
    /// Its place among the items given, from 0.
    pub rank: usize,
    /// Its tokens, in the form that `passage` names.
    pub tokens: usize,
    /// Whether it is its best passage instead of the whole.
    pub passage: bool,
}

/// How items fill a budget. Every item given is in one of the three.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Packed {
    /// Those that are in, in the order of ranks.
    pub taken: Vec<Portion>,
    /// Those that do not fit or came when the budget was full, in the order of ranks.
    pub omitted: Vec<Portion>,
    /// Items behind the last rank that is looked at.
    pub unseen: usize,
    /// Tokens of all in `taken`.
    pub tokens: usize,
}

/// Fills a budget of `max_tokens` greedily: each item of `sizes`, best first, is taken if it fits into what is left. One
/// of more than [`PASSAGE_ABOVE_TOKENS`] tokens enters as its best passage. Nothing is taken any more once fewer than
/// [`BUDGET_TOKENS_LEFT_MIN`] tokens are left, or behind [`BUDGET_RANKS_MAX`] ranks.
pub(super) fn pack(sizes: impl IntoIterator<Item = Size>, max_tokens: usize) -> Packed {
    let mut packed = Packed::default();
    for (rank, size) in sizes.into_iter().enumerate() {
        if rank >= BUDGET_RANKS_MAX {
            packed.unseen += 1;
            continue;
        }
        let portion = portion(rank, size);
        let left = max_tokens - packed.tokens;
        if left >= BUDGET_TOKENS_LEFT_MIN && portion.tokens <= left {
            packed.tokens += portion.tokens;
            packed.taken.push(portion);
        } else {
            packed.omitted.push(portion);
        }
    }
    packed
}

fn portion(rank: usize, size: Size) -> Portion {
    match size.passage_tokens {
        Some(tokens) if size.tokens > PASSAGE_ABOVE_TOKENS && tokens < size.tokens => {
            Portion { rank, tokens, passage: true }
        }
        _ => Portion { rank, tokens: size.tokens, passage: false },
    }
}

/// An item that stays, and how many near-duplicates of lower rank it stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kept {
    /// Its place among the items given, from 0.
    pub rank: usize,
    /// Items folded into it.
    pub folded: usize,
}

/// Folds near-duplicates: an item whose set of terms overlaps that of one kept before it by
/// [`NEAR_DUPLICATE_OVERLAP`] (Jaccard) or more is folded into the first such. Returns the items that stay, in order.
///
/// `items`: the terms of each item, best first, strictly ascending. Items without a term are never folded.
///
/// Cost: an item is compared only with those that share one of its first terms. Two sets of which the larger has n
/// terms can overlap by t only if they have t n terms in common, so that all but t n of the terms of each, plus one, in
/// one order for all, hold a common one (prefix filtering: Chaudhuri et al. 2006, "A primitive operator for similarity
/// joins in data cleaning"; Bayardo et al. 2007, "Scaling up all pairs similarity search").
///
/// # Panics
/// In builds with debug assertions, when terms are not strictly ascending.
pub(super) fn fold<'a>(items: impl IntoIterator<Item = &'a [u64]>) -> Vec<Kept> {
    let mut kept: Vec<(Kept, &[u64])> = Vec::new();
    let mut by_term: HashMap<u64, Vec<usize>> = HashMap::new();
    let mut candidates = Vec::new();
    for (rank, terms) in items.into_iter().enumerate() {
        debug_assert!(terms.is_sorted_by(|a, b| a < b), "terms of an item are sorted and differ");
        candidates.clear();
        for term in prefix(terms) {
            candidates.extend(by_term.get(term).into_iter().flatten().copied());
        }
        // The first kept wins, so that the answer does not depend on which term led to it.
        candidates.sort_unstable();
        candidates.dedup();
        let near = candidates.iter().copied().find(|at| is_near_duplicate(terms, kept[*at].1));
        if let Some(at) = near {
            kept[at].0.folded += 1;
            continue;
        }
        for term in prefix(terms) {
            by_term.entry(*term).or_default().push(kept.len());
        }
        kept.push((Kept { rank, folded: 0 }, terms));
    }
    kept.into_iter().map(|(kept, _)| kept).collect()
}

/// Terms that a near-duplicate must share one of.
fn prefix(terms: &[u64]) -> &[u64] {
    // Rounding down may leave one term more than needed, never one less.
    let common = (terms.len() as f64 * NEAR_DUPLICATE_OVERLAP).floor() as usize;
    &terms[..terms.len().min(terms.len() - common + 1)]
}

fn is_near_duplicate(a: &[u64], b: &[u64]) -> bool {
    let (short, long) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    // At best, all of the shorter are in the longer.
    if (short.len() as f64) < NEAR_DUPLICATE_OVERLAP * long.len() as f64 {
        return false;
    }
    let common = common_terms(a, b);
    let either = a.len() + b.len() - common;
    common > 0 && common as f64 >= NEAR_DUPLICATE_OVERLAP * either as f64
}

/// Terms of both, by one pass over the two sorted lists.
fn common_terms(a: &[u64], b: &[u64]) -> usize {
    let (mut at, mut other, mut common) = (0, 0, 0);
    while let (Some(x), Some(y)) = (a.get(at), b.get(other)) {
        common += usize::from(x == y);
        at += usize::from(x <= y);
        other += usize::from(y <= x);
    }
    common
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn whole(tokens: usize) -> Size {
        Size { tokens, passage_tokens: None }
    }

    fn cut(tokens: usize, passage: usize) -> Size {
        Size { tokens, passage_tokens: Some(passage) }
    }

    fn ranks(portions: &[Portion]) -> Vec<(usize, usize, bool)> {
        portions.iter().map(|portion| (portion.rank, portion.tokens, portion.passage)).collect()
    }

    #[test]
    fn what_does_not_fit_is_skipped_and_told() {
        let packed = pack([whole(60), whole(50), whole(30), whole(11), whole(10)], 100);
        assert_eq!(ranks(&packed.taken), [(0, 60, false), (2, 30, false), (4, 10, false)]);
        assert_eq!(ranks(&packed.omitted), [(1, 50, false), (3, 11, false)]);
        assert_eq!((packed.tokens, packed.unseen), (100, 0));
    }

    #[test]
    fn a_long_item_enters_as_its_best_passage() {
        let packed = pack([cut(151, 90), cut(150, 90), cut(151, 200), whole(400)], 300);
        assert_eq!(ranks(&packed.taken), [(0, 90, true), (1, 150, false)]);
        // A passage of the length of the whole is no passage.
        assert_eq!(ranks(&packed.omitted), [(2, 151, false), (3, 400, false)]);
    }

    #[test]
    fn a_budget_with_less_than_five_tokens_left_is_full() {
        let packed = pack([whole(96), whole(1)], 100);
        assert_eq!((packed.taken.len(), packed.omitted.len()), (1, 1));
        assert_eq!(pack([whole(95), whole(1)], 100).taken.len(), 2);
        assert_eq!(pack([whole(0), whole(1)], 4), pack([whole(0), whole(1)], 0));
    }

    #[test]
    fn ranks_behind_the_last_looked_at_are_counted() {
        let packed = pack(std::iter::repeat_n(whole(1), BUDGET_RANKS_MAX + 7), usize::MAX);
        assert_eq!((packed.taken.len(), packed.unseen), (BUDGET_RANKS_MAX, 7));
    }

    #[test]
    fn near_duplicates_fold_into_the_first_of_them() {
        let ten: Vec<u64> = (0..10).collect();
        // Without the first term of the ten, so that the next ones must lead to it.
        let nine: Vec<u64> = (1..10).collect();
        let eight: Vec<u64> = (0..8).collect();
        let other: Vec<u64> = (20..30).collect();
        let items = [&ten[..], &other, &nine, &ten, &eight, &[], &[], &other];
        let kept = fold(items);
        let expected = [(0, 2), (1, 1), (4, 0), (5, 0), (6, 0)];
        let expected = expected.map(|(rank, folded)| Kept { rank, folded });
        assert_eq!(kept, expected);
    }

    #[test]
    fn short_texts_fold_only_when_they_say_the_same() {
        assert_eq!(fold([&[1][..], &[1], &[1, 2], &[2]]).len(), 3);
    }

    /// Every pair, by sets.
    fn fold_slowly(items: &[Vec<u64>]) -> Vec<Kept> {
        let sets: Vec<BTreeSet<u64>> =
            items.iter().map(|terms| terms.iter().copied().collect()).collect();
        let mut kept: Vec<Kept> = Vec::new();
        for (rank, set) in sets.iter().enumerate() {
            let near = kept.iter_mut().find(|kept| {
                let other = &sets[kept.rank];
                let common = set.intersection(other).count();
                // In whole numbers: the overlap is nine tenths.
                common > 0 && common * 10 >= set.union(other).count() * 9
            });
            match near {
                Some(kept) => kept.folded += 1,
                None => kept.push(Kept { rank, folded: 0 }),
            }
        }
        kept
    }

    /// Sets of which many differ by a term or two.
    fn items() -> impl Strategy<Value = Vec<Vec<u64>>> {
        let length = prop_oneof![1_u64..45, prop::sample::select(vec![9_u64, 10, 19, 20])];
        let item =
            (length, prop::collection::btree_set(0_u64..22, 0..3)).prop_map(|(length, changed)| {
                let whole: BTreeSet<u64> = (0..length).collect();
                whole.symmetric_difference(&changed).copied().collect()
            });
        prop::collection::vec(item, 0..40)
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(500) })]

        #[test]
        fn folding_by_prefixes_misses_no_pair(items in items()) {
            prop_assert_eq!(fold(items.iter().map(Vec::as_slice)), fold_slowly(&items));
        }

        #[test]
        fn a_budget_is_kept_and_every_item_is_told_of(
            sizes in prop::collection::vec((0_usize..400, 0_usize..400), 0..450),
            max_tokens in 0_usize..5_000,
        ) {
            let packed = pack(sizes.iter().map(|(tokens, passage)| cut(*tokens, *passage)), max_tokens);
            let told = packed.taken.len() + packed.omitted.len() + packed.unseen;
            prop_assert_eq!(told, sizes.len());
            prop_assert!(packed.tokens <= max_tokens);
            prop_assert_eq!(packed.tokens, packed.taken.iter().map(|taken| taken.tokens).sum::<usize>());
        }
    }
}
