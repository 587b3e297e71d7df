//! What a character is to the analysis.
//!
//! Invariant: the answers depend on the character alone, so that a text may be cut at any place where no character
//! [`continues`].

use unicode_normalization::char::is_combining_mark;

/// Parts texts: white space, controls (NUL too), and the zero-width space of scripts that write none.
pub(super) fn is_separator(c: char) -> bool {
    if c.is_ascii() { c <= ' ' || c == '\x7f' } else { c.is_whitespace() || is_wide_control(c) }
}

fn is_wide_control(c: char) -> bool {
    c == '\u{200b}' || c.is_control()
}

/// A letter or a number of any script. Letters in boxes and circles are pictures.
pub(super) fn is_word(c: char) -> bool {
    if c.is_ascii() {
        c.is_ascii_alphanumeric()
    } else {
        c.is_alphanumeric() && !matches!(c, '\u{1f000}'..='\u{1faff}')
    }
}

/// A letter or a number of a script that parts its words.
pub(super) fn is_spaced_word(c: char) -> bool {
    is_word(c) && !is_unspaced(c)
}

/// A mark that belongs to the character before it.
pub(super) fn is_mark(c: char) -> bool {
    !c.is_ascii() && is_combining_mark(c)
}

/// Says how to show the characters around it and is no part of a term: soft hyphens, joiners, directions, variants,
/// the frame of a key.
pub(super) fn is_ignorable(c: char) -> bool {
    matches!(
        c,
        '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200c}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{20dd}'..='\u{20e4}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

/// Belongs to the character before it, before or after normalisation: nothing is cut in front of it. Half-width
/// voice marks melt into their kana, and the vowel AM of Thai and Lao begins with a mark.
pub(super) fn continues(c: char) -> bool {
    !c.is_ascii()
        && (is_mark(c)
            || is_ignorable(c)
            || matches!(c, '\u{ff9e}' | '\u{ff9f}' | '\u{e33}' | '\u{eb3}'))
}

/// A character of a script that is written without spaces: Han, Hiragana, Katakana, Thai, Lao, Khmer, Myanmar.
/// Their digits are not: a number is a word of its own.
pub(super) fn is_unspaced(c: char) -> bool {
    if c < '\u{e01}' {
        return false;
    }
    matches!(
        c,
        // Thai, Lao.
        '\u{e01}'..='\u{e3a}' | '\u{e40}'..='\u{e4e}'
            | '\u{e81}'..='\u{ebd}' | '\u{ec0}'..='\u{ece}' | '\u{edc}'..='\u{edf}'
            // Myanmar, and its extensions.
            | '\u{1000}'..='\u{103f}' | '\u{1050}'..='\u{108f}' | '\u{109a}'..='\u{109d}'
            | '\u{a9e0}'..='\u{a9ef}' | '\u{a9fa}'..='\u{a9fe}'
            | '\u{aa60}'..='\u{aa76}' | '\u{aa7a}'..='\u{aa7f}'
            // Khmer.
            | '\u{1780}'..='\u{17d3}' | '\u{17d7}' | '\u{17dc}'..='\u{17dd}'
            // Han: marks of repetition, numbers, ideographs.
            | '\u{3005}'..='\u{3007}' | '\u{3021}'..='\u{3029}' | '\u{3038}'..='\u{303b}'
            | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{fad9}'
            | '\u{20000}'..='\u{3fffd}'
            // Hiragana, Katakana, their small, half-width and historic forms.
            | '\u{3041}'..='\u{3096}' | '\u{309d}'..='\u{309f}'
            | '\u{30a1}'..='\u{30fa}' | '\u{30fc}'..='\u{30ff}' | '\u{31f0}'..='\u{31ff}'
            | '\u{ff66}'..='\u{ff9f}' | '\u{1aff0}'..='\u{1affe}' | '\u{1b000}'..='\u{1b16f}'
    )
}

/// Ends a sentence in scripts that put no space behind it.
pub(super) fn is_sentence_mark(c: char) -> bool {
    matches!(c, '。' | '！' | '？' | '｡')
}

/// Cuts a suffix off a word.
pub(super) fn is_apostrophe(c: char) -> bool {
    matches!(c, '\'' | '’')
}

/// Appends a character in small letters, with one form of the Greek sigma.
pub(super) fn push_small(c: char, mut push: impl FnMut(char)) {
    if c.is_ascii() {
        return push(c.to_ascii_lowercase());
    }
    for small in c.to_lowercase() {
        push(if small == 'ς' { 'σ' } else { small });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_character_has_one_role() {
        for c in '\0'..=char::MAX {
            assert!(!(is_separator(c) && (is_word(c) || continues(c))), "{c:?}");
            assert!(!(is_ignorable(c) && is_spaced_word(c)), "{c:?}");
            assert!(!(is_sentence_mark(c) && (is_word(c) || is_mark(c))), "{c:?}");
        }
    }

    #[test]
    fn letters_of_unspaced_scripts_are_known_and_others_are_not() {
        for c in "漢字かなカナｶﾅ々ไทยລາວខ្មែរမြန်မာ㐀𠀀".chars()
        {
            assert!(is_unspaced(c) || is_mark(c), "{c:?}");
        }
        for c in "aé한글अبש1１๑。、・「㍿🙂①".chars() {
            assert!(!is_unspaced(c), "{c:?}");
        }
    }
}
