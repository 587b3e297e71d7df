//! Scripts without spaces: overlapping pairs of characters stand for the words.

use super::characters::{is_ignorable, is_mark, is_unspaced};
use super::words::Kind;
use crate::model::TERM_BYTES_MAX;

/// Bytes of one character with its marks that count, at most: two of them make a term.
const UNIT_BYTES_MAX: usize = TERM_BYTES_MAX / 2;

/// Hands the pairs of the run that begins at `at` to `visit` and returns where it ends. A run of one character is one
/// term. `pair` is scratch.
pub(super) fn pairs(
    text: &str,
    at: usize,
    pair: &mut String,
    visit: &mut impl FnMut(&str, Kind),
) -> usize {
    pair.clear();
    let (mut end, mut units, mut unit_start) = (text.len(), 0_usize, 0);
    for (offset, c) in text[at..].char_indices() {
        let begins = is_unspaced(c) && !is_mark(c);
        if begins || units == 0 {
            if units >= 2 {
                visit(pair, Kind::Word);
                pair.drain(..unit_start);
            }
            unit_start = pair.len();
            units += 1;
        } else if !is_mark(c) && !is_ignorable(c) {
            end = at + offset;
            break;
        }
        if !is_ignorable(c) && pair.len() - unit_start + c.len_utf8() <= UNIT_BYTES_MAX {
            pair.push(c);
        }
    }
    if !pair.is_empty() {
        visit(pair, Kind::Word);
    }
    end
}
