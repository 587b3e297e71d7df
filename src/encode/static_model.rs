//! Static token vectors: a text's vector is the sum of the rows of its tokens, scaled to unit length.
//!
//! A model is one file, `STEMB001`, little-endian, borrowed as it lies:
//!
//! | offset | field |
//! |---|---|
//! | 0 | magic `STEMB001` |
//! | 8 | u32 each: tokens V, dimension D, bits of a value (4 or 8), id of the unknown token, bytes of the vocabulary, bytes of the name |
//! | 32 | name, UTF-8 |
//! | then | vocabulary: V tokens joined by line feeds, in row order; one that continues a word starts with `##` |
//! | then | V f32: the scale of each row |
//! | then | V rows of D values. 8 bits: `i8 * scale`. 4 bits: two to a byte, the low half first, `(value - 8) * scale` |
//!
//! Invariant: every length is checked when the model is opened, so that embedding cannot fail.

use crate::error::{Error, Result};
use crate::options::DIMENSION_MAX;

use super::Embedder;
use super::wordpiece::{Scratch, Vocabulary};

const MAGIC: &[u8] = b"STEMB001";
const HEADER_BYTES: usize = 32;

/// An embedder over a table of token vectors.
pub struct StaticModel<'a> {
    name: &'a str,
    dimension: usize,
    values: Values,
    unknown: u32,
    scales: &'a [[u8; 4]],
    rows: &'a [u8],
    vocabulary: Vocabulary<'a>,
}

/// How a value of a row is kept.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Values {
    Byte,
    Nibble,
}

impl<'a> StaticModel<'a> {
    /// Opens the model that `bytes` hold. About a millisecond for 30,000 tokens; the rows stay where they are.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Version`] for another magic; [`crate::ErrorKind::Corrupt`] when a length, a count or a
    /// scale is impossible.
    pub fn from_bytes(bytes: &'a [u8]) -> Result<StaticModel<'a>> {
        let mut rest = bytes;
        let mut take = |length: usize, what: &'static str| {
            let (part, behind) =
                rest.split_at_checked(length).ok_or_else(|| Error::corrupt(what))?;
            rest = behind;
            Ok::<_, Error>(part)
        };
        if !bytes.starts_with(MAGIC) {
            return Err(Error::version("model is not of format STEMB001"));
        }
        let header = take(HEADER_BYTES, "model header length")?;
        let field = |index: usize| {
            let at = MAGIC.len() + index * 4;
            u32::from_le_bytes(header[at..at + 4].try_into().expect("four bytes of the header"))
        };
        let (tokens, dimension, unknown) = (field(0) as usize, field(1) as usize, field(3));
        let (values, row_bytes) = match field(2) {
            4 if dimension % 2 == 0 => (Values::Nibble, dimension / 2),
            8 => (Values::Byte, dimension),
            _ => return Err(Error::corrupt("model bits of a value")),
        };
        if dimension == 0 || dimension > DIMENSION_MAX {
            return Err(Error::corrupt("model dimension"));
        }
        let vocabulary_bytes = field(4) as usize;
        let name = std::str::from_utf8(take(field(5) as usize, "model name length")?)
            .map_err(|cause| Error::corrupt("model name").because(cause))?;
        let blob = take(vocabulary_bytes, "model vocabulary length")?;
        let scales = take(tokens.saturating_mul(4), "model scales length")?.as_chunks().0;
        let rows = take(tokens.saturating_mul(row_bytes), "model rows length")?;
        if !rest.is_empty() {
            return Err(Error::corrupt("model has bytes behind its rows"));
        }
        if scales.iter().any(|scale| !f32::from_le_bytes(*scale).is_finite()) {
            return Err(Error::corrupt("model scale is not finite"));
        }
        let vocabulary = Vocabulary::new(blob, tokens, unknown)?;
        Ok(StaticModel { name, dimension, values, unknown, scales, rows, vocabulary })
    }

    /// Hands the token ids of `text` to `sink`, the unknown ones too.
    fn tokenise(&self, text: &str, scratch: &mut Scratch, sink: impl FnMut(u32)) {
        self.vocabulary.tokenise(text, scratch, sink);
    }

    /// Adds the row of token `id` to `sum`. Rows of nibbles are summed apart, first halves before second ones, so that
    /// neighbouring values of a row meet neighbouring sums.
    fn add_row(&self, id: u32, sum: &mut [f32]) {
        let row_bytes = self.rows.len() / self.scales.len();
        let row = &self.rows[id as usize * row_bytes..][..row_bytes];
        let scale = f32::from_le_bytes(self.scales[id as usize]);
        match self.values {
            Values::Byte => {
                for (value, code) in sum.iter_mut().zip(row) {
                    *value += scale * f32::from(*code as i8);
                }
            }
            Values::Nibble => {
                let (low, high) = sum.split_at_mut(row_bytes);
                for ((low, high), code) in low.iter_mut().zip(high).zip(row) {
                    *low += scale * f32::from((code & 15) as i8 - 8);
                    *high += scale * f32::from((code >> 4) as i8 - 8);
                }
            }
        }
    }

    /// Appends the vector of `text`, or zeros; tells which.
    fn embed_text(&self, text: &str, buffers: &mut Buffers, out: &mut Vec<f32>) -> bool {
        let Buffers { scratch, sum } = buffers;
        sum.clear();
        sum.resize(self.dimension, 0.0);
        self.tokenise(text, scratch, |id| {
            if id != self.unknown {
                self.add_row(id, sum);
            }
        });
        let norm =
            sum.iter().map(|value| f64::from(*value) * f64::from(*value)).sum::<f64>().sqrt();
        let known = norm.is_finite() && norm > f64::from(f32::MIN_POSITIVE);
        let scaled = |value: f32| if known { (f64::from(value) / norm) as f32 } else { 0.0 };
        match self.values {
            Values::Byte => out.extend(sum.iter().map(|value| scaled(*value))),
            Values::Nibble => {
                let (low, high) = sum.split_at(self.dimension / 2);
                out.extend(
                    low.iter().zip(high).flat_map(|(low, high)| [scaled(*low), scaled(*high)]),
                );
            }
        }
        known
    }
}

/// What the texts of one call share.
#[derive(Default)]
struct Buffers {
    scratch: Scratch,
    sum: Vec<f32>,
}

impl Embedder for StaticModel<'_> {
    fn name(&self) -> &str {
        self.name
    }

    fn dimension(&self) -> usize {
        self.dimension
    }

    fn embed(&self, texts: &[&str], out: &mut Vec<f32>) -> Result<Vec<bool>> {
        let mut buffers = Buffers::default();
        out.reserve(texts.len() * self.dimension);
        Ok(texts.iter().map(|text| self.embed_text(text, &mut buffers, out)).collect())
    }
}

impl std::fmt::Debug for StaticModel<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StaticModel")
            .field("name", &self.name)
            .field("dimension", &self.dimension)
            .finish()
    }
}

/// The embedder in the binary: English, 256 dimensions (`assets/memstatic-en-v1`). The first call opens it.
#[cfg(feature = "builtin-model")]
pub fn builtin() -> &'static StaticModel<'static> {
    static MODEL: std::sync::OnceLock<StaticModel<'static>> = std::sync::OnceLock::new();
    MODEL.get_or_init(|| {
        StaticModel::from_bytes(include_bytes!("../../assets/memstatic-en-v1/model.stemb"))
            .expect("the model in the binary is whole: a test opens it")
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::error::ErrorKind;

    /// A model of 3 tokens and 4 dimensions.
    fn small(bits: u32) -> Vec<u8> {
        let (name, vocabulary) = (b"small-4d", b"[UNK]\na\n##b");
        let mut bytes = MAGIC.to_vec();
        for field in [3, 4, bits, 0, vocabulary.len() as u32, name.len() as u32] {
            bytes.extend(field.to_le_bytes());
        }
        bytes.extend(name);
        bytes.extend(vocabulary);
        bytes.extend([0.0f32, 0.5, 2.0].iter().flat_map(|scale| scale.to_le_bytes()));
        match bits {
            4 => bytes.extend([0x88, 0x88, 0x9b, 0x87, 0x88, 0xf8]),
            _ => bytes.extend([0i8, 0, 0, 0, 3, 1, -1, 0, 0, 0, 0, 7].map(|value| value as u8)),
        }
        bytes
    }

    #[test]
    fn a_vector_is_the_scaled_sum_of_rows_at_both_widths() {
        for bits in [4, 8] {
            let bytes = small(bits);
            let model = StaticModel::from_bytes(&bytes).unwrap();
            let vector = model.embed_one("AB").unwrap().unwrap();
            let sum = [1.5f64, 0.5, -0.5, 14.0];
            let norm = sum.iter().map(|value| value * value).sum::<f64>().sqrt();
            assert_eq!(vector, sum.map(|value| (value / norm) as f32), "{bits} bits");
            assert_eq!(model.embed_one("c").unwrap(), None);
            let mut out = vec![9.0];
            assert_eq!(model.embed(&["a", "c", ""], &mut out).unwrap(), [true, false, false]);
            assert_eq!((out.len(), out[0]), (13, 9.0));
            assert!(out[5..].iter().all(|value| *value == 0.0));
        }
    }

    #[test]
    fn a_model_cut_anywhere_or_longer_is_refused() {
        let bytes = small(4);
        for length in 0..bytes.len() {
            let error = StaticModel::from_bytes(&bytes[..length]).unwrap_err();
            assert!(matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Version), "{length}");
        }
        let longer = [bytes.as_slice(), &[0]].concat();
        assert_eq!(StaticModel::from_bytes(&longer).unwrap_err().kind(), ErrorKind::Corrupt);
    }

    proptest! {
        #[test]
        fn hostile_model_bytes_never_panic(
            bits in prop_oneof![Just(4u32), Just(8)],
            edits in prop::collection::vec((0usize..90, any::<u8>()), 1..6),
            text in "[abAB# ]{0,20}",
        ) {
            let mut bytes = small(bits);
            for (at, byte) in edits {
                let at = at % bytes.len();
                bytes[at] = byte;
            }
            if let Ok(model) = StaticModel::from_bytes(&bytes)
                && let Some(vector) = model.embed_one(&text).unwrap()
            {
                prop_assert_eq!(vector.len(), model.dimension());
                prop_assert!(vector.iter().all(|value| value.is_finite()));
            }
        }
    }

    #[cfg(feature = "builtin-model")]
    mod with_the_builtin_model {
        use std::time::{Duration, Instant};

        use serde_json::Value;

        use super::*;

        fn golden() -> Value {
            let text = include_str!("../../assets/memstatic-en-v1/golden.json");
            serde_json::from_str(text).unwrap()
        }

        fn number(value: &Value) -> f32 {
            value.as_f64().unwrap() as f32
        }

        #[test]
        fn tokens_and_vectors_are_those_of_the_golden_file() {
            let (model, golden) = (builtin(), golden());
            assert_eq!((model.name(), model.dimension()), ("memstatic-en-v1-256d", 256));
            for case in golden["texts"].as_array().unwrap() {
                let text = case["text"].as_str().unwrap();
                let mut ids = Vec::new();
                model.tokenise(text, &mut Scratch::default(), |id| ids.push(u64::from(id)));
                let expected: Vec<u64> =
                    case["ids"].as_array().unwrap().iter().map(|id| id.as_u64().unwrap()).collect();
                assert_eq!(ids, expected, "{text:?}");
                let vector = model.embed_one(text).unwrap();
                assert_eq!(vector.is_some(), number(&case["norm"]) == 1.0, "{text:?}");
                let vector = vector.unwrap_or_else(|| vec![0.0; 256]);
                for (value, expected) in vector.iter().zip(case["head"].as_array().unwrap()) {
                    assert!((value - number(expected)).abs() < 1e-5, "{text:?}");
                }
            }
            for pair in golden["cosines"].as_array().unwrap() {
                let [a, b] =
                    [0, 1].map(|at| model.embed_one(pair[at].as_str().unwrap()).unwrap().unwrap());
                let cosine: f32 = a.iter().zip(&b).map(|(a, b)| a * b).sum();
                assert!((cosine - number(&pair[2])).abs() < 1e-4, "{cosine}");
            }
        }

        #[track_caller]
        fn check_unit_or_none(text: &str) {
            let started = Instant::now();
            if let Some(vector) = builtin().embed_one(text).unwrap() {
                let norm = vector.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>().sqrt();
                assert!((norm - 1.0).abs() < 1e-5, "length {norm}");
            }
            // Generous for a busy machine: 100 kB take about a millisecond.
            assert!(started.elapsed() < Duration::from_secs(5), "{} bytes", text.len());
        }

        #[test]
        fn long_and_strange_texts_embed_in_bounded_time() {
            let units = [
                "a",
                "a ",
                "\0",
                "\u{301}",
                "e\u{301}",
                "\u{1f642}",
                "\u{1f3f4}\u{e0067}",
                "你",
                "한",
                "ﷺ",
                "#",
                "\u{fffd}",
                "zx",
                "antidisestablishmentarianism",
                "\u{200d}",
                "\u{202e}x",
                "İ",
                "ß",
                "[UNK] ",
                "\u{10ffff}",
            ];
            for unit in units {
                check_unit_or_none(unit);
                check_unit_or_none(&unit.repeat(100_000 / unit.len()));
            }
        }

        proptest! {
            #[test]
            fn any_text_embeds_to_unit_length_or_none(text in any::<String>(), times in 1usize..50) {
                check_unit_or_none(&text.repeat(times));
            }
        }
    }
}
