//! Word stems: Snowball's English stemmer behind a small cache of each thread.
//!
//! The stemmer takes 0.4 us a word, two thirds of the analysis of a turn; a few hundred words make up most of what is
//! said. The cache changes no answer.

use std::cell::RefCell;

use snowball_stemmers_rs::{Algorithm, Stemmer};

/// Bytes of a word that is kept, at most: longer ones are rare.
const KEPT_BYTES_MAX: usize = 20;
/// Words kept a thread, 84 KiB. The turns of LoCoMo hold 3,900 different words, and the 2,048 most common of them are
/// 96 % of what is said.
const SLOTS: usize = 2048;

/// A word and its stem; an empty slot holds the empty word.
#[derive(Clone, Copy)]
struct Slot {
    word: [u8; KEPT_BYTES_MAX],
    stem: [u8; KEPT_BYTES_MAX],
    word_bytes: u8,
    stem_bytes: u8,
}

const EMPTY: Slot =
    Slot { word: [0; KEPT_BYTES_MAX], stem: [0; KEPT_BYTES_MAX], word_bytes: 0, stem_bytes: 0 };

thread_local! {
    static KEPT: RefCell<Vec<Slot>> = RefCell::new(vec![EMPTY; SLOTS]);
}

/// Puts the stem of a word in small letters in its place. Only words of ASCII have one: the rules are English, and what
/// they do to other letters is nobody's grammar.
pub(super) fn stem(word: &mut String) {
    // Shorter words are their own stems.
    if word.len() < 3 || !word.is_ascii() {
        return;
    }
    if word.len() > KEPT_BYTES_MAX {
        return stem_anew(word);
    }
    // While a thread ends there is no cache any more.
    let kept = KEPT.try_with(|kept| {
        let slot = &mut kept.borrow_mut()[slot_of(word.as_bytes())];
        if &slot.word[..usize::from(slot.word_bytes)] != word.as_bytes() {
            let mut stem = word.clone();
            stem_anew(&mut stem);
            if stem.len() > KEPT_BYTES_MAX {
                *word = stem;
                return;
            }
            slot.word[..word.len()].copy_from_slice(word.as_bytes());
            slot.stem[..stem.len()].copy_from_slice(stem.as_bytes());
            (slot.word_bytes, slot.stem_bytes) = (word.len() as u8, stem.len() as u8);
        }
        word.clear();
        // A stem of ASCII is ASCII.
        word.extend(slot.stem[..usize::from(slot.stem_bytes)].iter().map(|byte| char::from(*byte)));
    });
    if kept.is_err() {
        stem_anew(word);
    }
}

fn stem_anew(word: &mut String) {
    let stem = Stemmer::create(Algorithm::English).stem(word);
    // No word vanishes.
    if !stem.is_empty() && stem != *word {
        *word = stem.into_owned();
    }
}

/// FNV-1a.
fn slot_of(word: &[u8]) -> usize {
    let hash = word
        .iter()
        .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193));
    (hash ^ (hash >> 15)) as usize % SLOTS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_a_word_share_a_stem() {
        for (word, expected) in [
            ("running", "run"),
            ("stories", "stori"),
            ("story", "stori"),
            ("as", "as"),
            ("90s", "90s"),
            ("caf\u{e9}s", "caf\u{e9}s"),
            ("internationalisations", "internationalis"),
        ] {
            // The second time the cache answers.
            for _ in 0..2 {
                let mut stemmed = word.to_owned();
                stem(&mut stemmed);
                assert_eq!(stemmed, expected);
            }
        }
    }

    #[test]
    fn the_cache_changes_no_answer() {
        // Four times as many words as there are slots.
        for number in 0..4 * SLOTS {
            let letter = |place: u32| char::from(b'a' + (number / 6_usize.pow(place) % 6) as u8);
            let ending = ["ing", "ed", "s", "ly", "ation", "y", "ful"][number % 7];
            let word = format!("{}{}{}{}r{ending}", letter(3), letter(2), letter(1), letter(0));
            let (mut kept, mut anew) = (word.clone(), word);
            stem(&mut kept);
            stem_anew(&mut anew);
            assert_eq!(kept, anew);
        }
    }
}
