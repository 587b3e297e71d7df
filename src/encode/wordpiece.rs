//! WordPiece tokeniser for lower-cased text.
//!
//! Control and format characters are dropped, characters decompose canonically and lose their marks, letters become
//! small, white space splits, each punctuation or CJK character stands alone. A word is then cut into the longest
//! pieces from the left; one that has no full cut, or is longer than [`WORD_CHARS_MAX`], is the unknown token.
//!
//! Invariant: time and memory are linear in the text, whatever it holds; no word, mark run or token list is gathered
//! beyond its bound.

use unicode_normalization::char::{decompose_canonical, is_combining_mark};

use crate::error::{Error, Result};

/// Characters of a word, at most; a longer one is unknown. From the tokeniser that the model was trained with.
const WORD_CHARS_MAX: usize = 100;
/// Bytes of a piece, at most: bounds the search for the longest one. The longest of the built-in model has 18.
const PIECE_BYTES_MAX: usize = 128;
/// Slots looked at for one token, at most. The table is at most half full, so honest vocabularies stay far below; one
/// that is built to collide is refused.
const PROBES_MAX: usize = 256;
/// What marks a piece that continues a word.
const CONTINUATION: &[u8] = b"##";

/// The tokens of a model, by their bytes: an open-addressing table over the vocabulary's own bytes.
pub(super) struct Vocabulary<'a> {
    blob: &'a [u8],
    /// End of each token in `blob`; the next one starts a byte later.
    ends: Vec<u32>,
    /// High half: the high half of the token's hash. Low half: id + 1, or 0 for an empty slot.
    slots: Vec<u64>,
    longest_piece: usize,
    unknown: u32,
}

/// Buffers of one tokenisation, kept by the caller so that many texts share them.
#[derive(Default)]
pub(super) struct Scratch {
    word: Vec<u8>,
    word_chars: usize,
    hashes: Vec<u64>,
    pieces: Vec<u32>,
}

impl<'a> Vocabulary<'a> {
    /// `blob`: `count` different tokens joined by line feeds; `unknown`: the id of the unknown token.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Corrupt`] when the count differs, a token is too long, stands twice or collides with too
    /// many others, or `unknown` is no token.
    pub(super) fn new(blob: &'a [u8], count: usize, unknown: u32) -> Result<Vocabulary<'a>> {
        // A token takes a byte at least, the separator included, but the last one.
        if count > blob.len() + 1 || blob.len() >= u32::MAX as usize || unknown as usize >= count {
            return Err(Error::corrupt("model vocabulary size"));
        }
        let mut vocabulary = Vocabulary {
            blob,
            ends: Vec::with_capacity(count),
            slots: vec![0; (count * 2).next_power_of_two()],
            longest_piece: 0,
            unknown,
        };
        for token in blob.split(|byte| *byte == b'\n') {
            vocabulary.insert(token)?;
        }
        if vocabulary.ends.len() != count {
            return Err(Error::corrupt("model vocabulary count"));
        }
        Ok(vocabulary)
    }

    fn insert(&mut self, token: &[u8]) -> Result<()> {
        let id = self.ends.len() as u32;
        let piece = token.strip_prefix(CONTINUATION).unwrap_or(token);
        if token.is_empty()
            || piece.len() > PIECE_BYTES_MAX
            || self.ends.len() == self.ends.capacity()
        {
            return Err(Error::corrupt("model token").of(u64::from(id)));
        }
        let start = self.ends.last().map_or(0, |end| *end + 1);
        self.ends.push(start + token.len() as u32);
        self.longest_piece = self.longest_piece.max(piece.len());
        let hash = token.iter().fold(HASH_START, |state, byte| hash_step(state, *byte));
        let mask = self.slots.len() - 1;
        for probe in 0..PROBES_MAX.min(self.slots.len()) {
            let slot = (spread(hash) as usize + probe) & mask;
            if self.slots[slot] == 0 {
                self.slots[slot] = (hash & TAG) | u64::from(id + 1);
                return Ok(());
            }
            if (self.slots[slot] ^ hash) & TAG == 0 && self.token(self.slots[slot]) == token {
                return Err(Error::corrupt("model token stands twice").of(u64::from(id)));
            }
        }
        Err(Error::corrupt("model tokens collide").of(u64::from(id)))
    }

    /// The bytes of the token in a slot that is not empty.
    fn token(&self, slot: u64) -> &'a [u8] {
        let id = (slot as u32 - 1) as usize;
        let start = if id == 0 { 0 } else { self.ends[id - 1] as usize + 1 };
        &self.blob[start..self.ends[id] as usize]
    }

    /// The id of the token `prefix` + `piece`, whose hash is `hash`.
    fn find(&self, hash: u64, prefix: &[u8], piece: &[u8]) -> Option<u32> {
        let mask = self.slots.len() - 1;
        for probe in 0..PROBES_MAX {
            let slot = self.slots[(spread(hash) as usize + probe) & mask];
            if slot == 0 {
                return None;
            }
            if (slot ^ hash) & TAG == 0 && self.token(slot).strip_prefix(prefix) == Some(piece) {
                return Some(slot as u32 - 1);
            }
        }
        None
    }

    /// Hands the tokens of `text` to `sink`, in order.
    pub(super) fn tokenise(&self, text: &str, scratch: &mut Scratch, mut sink: impl FnMut(u32)) {
        scratch.word.clear();
        scratch.word_chars = 0;
        for given in text.chars() {
            if given.is_ascii() {
                if !is_dropped(given) {
                    self.take(given.to_ascii_lowercase(), scratch, &mut sink);
                }
            } else if !is_dropped(given) {
                // Decomposing character by character equals decomposing the text: canonical order moves marks
                // only, and those are dropped.
                decompose_canonical(given, |part| {
                    if !is_combining_mark(part) {
                        part.to_lowercase().for_each(|small| self.take(small, scratch, &mut sink));
                    }
                });
            }
        }
        self.end_word(scratch, &mut sink);
    }

    fn take(&self, c: char, scratch: &mut Scratch, sink: &mut impl FnMut(u32)) {
        if c.is_whitespace() {
            self.end_word(scratch, sink);
        } else if is_punctuation(c) || is_cjk(c) {
            self.end_word(scratch, sink);
            scratch.push(c);
            self.end_word(scratch, sink);
        } else {
            scratch.push(c);
        }
    }

    /// Cuts the word gathered so far into pieces and begins the next one.
    fn end_word(&self, scratch: &mut Scratch, sink: &mut impl FnMut(u32)) {
        if scratch.word_chars == 0 {
            return;
        }
        if scratch.word_chars <= WORD_CHARS_MAX && self.cut(scratch) {
            scratch.pieces.iter().copied().for_each(sink);
        } else {
            sink(self.unknown);
        }
        scratch.word.clear();
        scratch.word_chars = 0;
    }

    /// Fills `scratch.pieces`; false when some rest of the word is no piece.
    fn cut(&self, scratch: &mut Scratch) -> bool {
        let Scratch { word, hashes, pieces, .. } = scratch;
        pieces.clear();
        let mut rest = word.as_slice();
        let (mut prefix, mut start): (&[u8], u64) = (&[], HASH_START);
        while !rest.is_empty() {
            hashes.clear();
            let mut state = start;
            hashes.extend(rest.iter().take(self.longest_piece).map(|byte| {
                state = hash_step(state, *byte);
                state
            }));
            let longest = (1..=hashes.len()).rev().find_map(|length| {
                let id = self.find(hashes[length - 1], prefix, &rest[..length])?;
                Some((length, id))
            });
            let Some((length, id)) = longest else { return false };
            pieces.push(id);
            rest = &rest[length..];
            (prefix, start) = (CONTINUATION, HASH_CONTINUATION);
        }
        true
    }
}

impl Scratch {
    fn push(&mut self, c: char) {
        self.word_chars = self.word_chars.saturating_add(1);
        // Past the limit the word is unknown whatever follows, so nothing more is kept.
        if self.word_chars <= WORD_CHARS_MAX {
            self.word.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }
}

// FNV-1a: one multiplication a byte, and a prefix's hash is at hand when the next byte comes.
const HASH_START: u64 = 0xcbf2_9ce4_8422_2325;
const HASH_CONTINUATION: u64 = hash_step(hash_step(HASH_START, b'#'), b'#');
const TAG: u64 = 0xffff_ffff_0000_0000;

const fn hash_step(state: u64, byte: u8) -> u64 {
    (state ^ byte as u64).wrapping_mul(0x0100_0000_01b3)
}

/// Where a hash's search begins. FNV's high bits lie in the tag; the low ones mix too little on their own.
fn spread(hash: u64) -> u64 {
    hash ^ (hash >> 29)
}

/// Control, format, private and replacement characters.
fn is_dropped(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_control() && !matches!(c, '\t' | '\n' | '\r');
    }
    c.is_control()
        || matches!(c as u32, 0xFFFD | 0xAD | 0x600..=0x605 | 0x61C | 0x6DD | 0x70F | 0x180E | 0x200B..=0x200F
            | 0x202A..=0x202E | 0x2060..=0x2064 | 0x2066..=0x206F | 0xFEFF | 0xFFF9..=0xFFFB | 0xE0001
            | 0xE0020..=0xE007F | 0xE000..=0xF8FF)
}

/// General category P, and the ASCII symbols, as the model's tokeniser has it.
fn is_punctuation(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_punctuation();
    }
    matches!(c as u32, 0xA1 | 0xA7 | 0xAB | 0xB6 | 0xB7 | 0xBB | 0xBF | 0x37E | 0x387 | 0x55A..=0x55F | 0x589 | 0x58A
        | 0x5BE | 0x5C0 | 0x5C3 | 0x5C6 | 0x5F3 | 0x5F4 | 0x60C | 0x60D | 0x61B | 0x61E | 0x61F | 0x66A..=0x66D | 0x6D4
        | 0x964 | 0x965 | 0x970 | 0xE4F | 0xE5A | 0xE5B | 0x2010..=0x2027 | 0x2030..=0x2043 | 0x2045..=0x2051
        | 0x2053..=0x205E | 0x207D | 0x207E | 0x208D | 0x208E | 0x2308..=0x230B | 0x2329 | 0x232A | 0x2768..=0x2775
        | 0x27E6..=0x27EF | 0x2983..=0x2998 | 0x2E00..=0x2E5D | 0x3001..=0x3003 | 0x3008..=0x3011 | 0x3014..=0x301F
        | 0x3030 | 0x303D | 0x30A0 | 0x30FB | 0xFE10..=0xFE19 | 0xFE30..=0xFE52 | 0xFE54..=0xFE61 | 0xFE63 | 0xFE68
        | 0xFE6A | 0xFE6B | 0xFF01..=0xFF03 | 0xFF05..=0xFF0A | 0xFF0C..=0xFF0F | 0xFF1A | 0xFF1B | 0xFF1F | 0xFF20
        | 0xFF3B..=0xFF3D | 0xFF3F | 0xFF5B | 0xFF5D | 0xFF5F..=0xFF65)
}

fn is_cjk(c: char) -> bool {
    matches!(c as u32, 0x4E00..=0x9FFF | 0x3400..=0x4DBF | 0x20000..=0x2A6DF | 0x2A700..=0x2B81F | 0x2B920..=0x2CEAF
        | 0xF900..=0xFAFF | 0x2F800..=0x2FA1F)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use unicode_normalization::UnicodeNormalization;

    use super::*;
    use crate::error::ErrorKind;

    const TOKENS: &str = "[UNK]\nun\n##known\n##kn\n##ow\n##n\na\n##a\nb\n!\ncafe\n\u{4f60}\ni\n#";

    fn vocabulary() -> Vocabulary<'static> {
        Vocabulary::new(TOKENS.as_bytes(), 14, 0).unwrap()
    }

    fn ids(text: &str) -> Vec<u32> {
        let mut ids = Vec::new();
        vocabulary().tokenise(text, &mut Scratch::default(), |id| ids.push(id));
        ids
    }

    #[track_caller]
    fn check(text: &str, expected: &[u32]) {
        assert_eq!(ids(text), expected, "{text:?}");
    }

    #[test]
    fn a_word_is_cut_into_its_longest_pieces() {
        check("unknown", &[1, 2]);
        check("unknow", &[1, 3, 4]);
        check("unq", &[0]);
        check("known", &[0]);
        check("", &[]);
        check(" \t\n", &[]);
    }

    #[test]
    fn marks_controls_and_case_do_not_change_a_word() {
        check("CAF\u{c9}", &[10]);
        check("cafe\u{301}", &[10]);
        check("c\0a\u{200b}fe", &[10]);
        check("\u{301}\u{302}", &[]);
        check("\u{130}", &[12]);
    }

    #[test]
    fn punctuation_and_cjk_stand_alone() {
        check("a!b", &[6, 9, 8]);
        check("a\u{4f60}a", &[6, 11, 6]);
        check("##known", &[13, 13, 0]);
    }

    #[test]
    fn a_word_is_unknown_from_its_101st_character() {
        let (longest, over) = ("a".repeat(100), "a".repeat(101));
        assert_eq!(ids(&longest).len(), 100);
        check(&over, &[0]);
        check(&format!("{over} b"), &[0, 8]);
    }

    #[test]
    fn a_bad_vocabulary_is_corrupt() {
        for (blob, count, unknown) in [
            ("a\nb", 3, 0),
            ("a\nb", 1, 0),
            ("a\nb", 2, 2),
            ("a\na", 2, 0),
            ("a\n\nb", 3, 0),
            ("", 1, 0),
            ("", 0, 0),
            (&"a".repeat(PIECE_BYTES_MAX + 1), 1, 0),
            ("a", usize::MAX, 0),
        ] {
            let error = Vocabulary::new(blob.as_bytes(), count, unknown).err().unwrap();
            assert_eq!(error.kind(), ErrorKind::Corrupt);
        }
    }

    /// The words of `text` by the book: decompose the whole text, drop marks, small letters.
    fn words_by_the_book(text: &str) -> Vec<String> {
        let (mut words, mut word) = (Vec::new(), String::new());
        let plain =
            text.chars().filter(|c| !is_dropped(*c)).nfd().filter(|c| !is_combining_mark(*c));
        for c in plain.flat_map(char::to_lowercase) {
            if c.is_whitespace() || is_punctuation(c) || is_cjk(c) {
                words.push(std::mem::take(&mut word));
                words.push(if c.is_whitespace() { String::new() } else { c.to_string() });
            } else {
                word.push(c);
            }
        }
        words.push(word);
        words.retain(|word| !word.is_empty());
        words
    }

    proptest! {
        #[test]
        fn tokens_are_those_of_the_decomposed_text(text in "(\\PC|[\u{300}-\u{36f}]|[a-c ]|[가-힣]|[\u{c0}-\u{17f}])*") {
            let words = words_by_the_book(&text);
            let mut blob = String::from("[UNK]");
            let mut distinct: Vec<&str> = Vec::new();
            for word in words.iter().filter(|word| word.len() <= PIECE_BYTES_MAX && word.chars().count() <= 100) {
                if !distinct.contains(&word.as_str()) {
                    distinct.push(word);
                    blob.push('\n');
                    blob.push_str(word);
                }
            }
            let vocabulary = Vocabulary::new(blob.as_bytes(), distinct.len() + 1, 0).unwrap();
            let expected: Vec<u32> = words
                .iter()
                .map(|word| distinct.iter().position(|known| known == word).map_or(0, |at| at as u32 + 1))
                .collect();
            let mut ids = Vec::new();
            vocabulary.tokenise(&text, &mut Scratch::default(), |id| ids.push(id));
            prop_assert_eq!(ids, expected);
        }
    }
}
