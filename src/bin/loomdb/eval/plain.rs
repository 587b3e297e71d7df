//! Yardsticks: plain BM25, plain vectors, and their fusion by rank, on the rows of one conversation.
//!
//! Each is what its textbook says and nothing more, over `Speaker: text` of each turn, and keeps everything in memory. Rankings are places of turns, best
//! first; equal scores stand in the order of the turns.

use std::collections::{HashMap, HashSet};

use loomdb::{Embedder, Result};

use crate::import::item::Item;

/// Saturation of term frequency, the customary value.
const K1: f64 = 1.2;
/// Weight of length, the customary value.
const B: f64 = 0.75;
/// Constant of reciprocal rank fusion (Cormack et al. 2009, section 3).
const FUSION: f64 = 60.0;
/// Texts embedded at once.
const TEXTS_PER_CALL: usize = 256;

/// What both yardsticks see of a turn.
fn spoken(turn: &Item) -> String {
    match &turn.speaker {
        Some(speaker) => format!("{speaker}: {}", turn.text),
        None => turn.text.clone(),
    }
}

/// BM25 with k1 1.2 and b 0.75, words as [`words`] cuts them: no list of stop words, as libraries have it by default.
///
/// Source: Robertson and Zaragoza 2009, "The Probabilistic Relevance Framework", Eq. 3.15, with the
/// `ln(1 + ..)` of Lucene that is never negative.
pub struct Bm25 {
    /// The turns that hold a word, with how often.
    postings: HashMap<String, Vec<(usize, f64)>>,
    /// Words of each turn.
    lengths: Vec<f64>,
    mean_length: f64,
}

impl Bm25 {
    pub fn new(turns: &[Item]) -> Bm25 {
        let mut postings: HashMap<String, Vec<(usize, f64)>> = HashMap::new();
        let mut lengths = Vec::new();
        for (turn, item) in turns.iter().enumerate() {
            let words = words(&spoken(item));
            lengths.push(words.len() as f64);
            for word in words {
                let list = postings.entry(word).or_default();
                match list.last_mut() {
                    Some((last, count)) if *last == turn => *count += 1.0,
                    _ => list.push((turn, 1.0)),
                }
            }
        }
        let mean_length = (lengths.iter().sum::<f64>() / lengths.len().max(1) as f64).max(1e-6);
        Bm25 { postings, lengths, mean_length }
    }

    /// The turns that share a word with the question.
    pub fn rank(&self, question: &str) -> Vec<usize> {
        let mut scores = vec![0.0; self.lengths.len()];
        // In the order of their first use, so that sums are the same in every run.
        let mut seen = HashSet::new();
        for word in words(question) {
            let Some(list) = self.postings.get(&word) else { continue };
            if !seen.insert(word) {
                continue;
            }
            let (n, df) = (self.lengths.len() as f64, list.len() as f64);
            let idf = (1.0 + (n - df + 0.5) / (df + 0.5)).ln();
            for (turn, count) in list {
                let length = self.lengths[*turn] / self.mean_length;
                scores[*turn] += idf * count * (K1 + 1.0) / (count + K1 * (1.0 - B + B * length));
            }
        }
        best(&scores, |score| score > 0.0)
    }
}

/// Runs of letters and digits, in lower case and in the singular.
fn words(text: &str) -> Vec<String> {
    let lower = text.to_lowercase();
    let runs = lower.split(|character: char| !character.is_alphanumeric());
    runs.filter(|word| !word.is_empty()).map(|word| singular(word).into_owned()).collect()
}

/// English plurals cut (Harman 1991, "How effective is suffixing?", the S-stemmer).
fn singular(word: &str) -> std::borrow::Cow<'_, str> {
    let ends = |endings: &[&str]| endings.iter().any(|ending| word.ends_with(ending));
    match word {
        _ if word.len() < 4 => word.into(),
        _ if word.ends_with("ies") && !ends(&["eies", "aies"]) => {
            format!("{}y", &word[..word.len() - 3]).into()
        }
        _ if word.ends_with("es") && !ends(&["aes", "ees", "oes"]) => word[..word.len() - 1].into(),
        _ if word.ends_with('s') && !ends(&["us", "ss"]) => word[..word.len() - 1].into(),
        _ => word.into(),
    }
}

/// Cosines of the question with each turn.
pub struct Vectors<'a> {
    embedder: &'a dyn Embedder,
    /// One row a turn, of unit length, or zeros where the embedder knows no word.
    rows: Vec<f32>,
}

impl<'a> Vectors<'a> {
    pub fn new(embedder: &'a dyn Embedder, turns: &[Item]) -> Result<Vectors<'a>> {
        let mut rows = Vec::with_capacity(turns.len() * embedder.dimension());
        for part in turns.chunks(TEXTS_PER_CALL) {
            let texts: Vec<String> = part.iter().map(spoken).collect();
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            embedder.embed(&texts, &mut rows)?;
        }
        Ok(Vectors { embedder, rows })
    }

    /// All turns with a vector; none when the embedder knows no word of the question.
    pub fn rank(&self, question: &str) -> Result<Vec<usize>> {
        let Some(vector) = self.embedder.embed_one(question)? else { return Ok(Vec::new()) };
        let cosine = |row: &[f32]| match row.iter().all(|value| *value == 0.0) {
            true => f64::NEG_INFINITY,
            false => row.iter().zip(&vector).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum(),
        };
        let scores: Vec<f64> = self.rows.chunks_exact(vector.len()).map(cosine).collect();
        Ok(best(&scores, f64::is_finite))
    }
}

/// Reciprocal rank fusion: a turn scores 1 / (60 + rank) for each ranking that has it.
pub fn fuse(rankings: [&[usize]; 2], turns: usize) -> Vec<usize> {
    let mut scores = vec![0.0; turns];
    for ranking in rankings {
        for (rank, turn) in (1_u32..).zip(ranking) {
            scores[*turn] += 1.0 / (FUSION + f64::from(rank));
        }
    }
    best(&scores, |score| score > 0.0)
}

/// The places whose score counts, best first.
fn best(scores: &[f64], counts: impl Fn(f64) -> bool) -> Vec<usize> {
    let mut places: Vec<usize> = (0..scores.len()).filter(|at| counts(scores[*at])).collect();
    places.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]).then(a.cmp(b)));
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(text: &str) -> Item {
        Item {
            user: None,
            key: text.into(),
            session: None,
            speaker: Some("Ana".into()),
            time: loomdb::ZonedTime::parse("2025-01-01T10:00:00Z").unwrap(),
            ordinal: None,
            text: text.into(),
            caption: None,
        }
    }

    #[test]
    fn words_are_lower_case_and_singular() {
        let cut = words("The Ponies' boxes, dishes & bus-stops: 42 was");
        assert_eq!(cut, ["the", "pony", "boxe", "dishe", "bus", "stop", "42", "was"]);
        assert_eq!(words("Straße 漢字s?"), ["straße", "漢字"]);
    }

    #[test]
    fn bm25_ranks_as_computed_by_hand() {
        let bm25 = Bm25::new(&["red boat", "red red kite far", "nothing here"].map(turn));
        // With the speaker, the turns have 3, 5 and 3 words.
        assert_eq!((bm25.lengths.as_slice(), bm25.mean_length), (&[3.0, 5.0, 3.0][..], 11.0 / 3.0));
        // idf of "red" ln 1.6 = 0.470, of "boat" ln 2.667 = 0.981. "red" weighs 1.080 in the first turn and 1.247, twice,
        // in the longer second one: 0.508 and 1.060 with the boat against 0.586.
        assert_eq!(bm25.rank("Red boats?"), [0, 1]);
        assert_eq!(bm25.rank("red"), [1, 0]);
        assert_eq!(bm25.rank("Ana").len(), 3);
        assert!(bm25.rank("zebra").is_empty());
    }

    #[test]
    fn a_repeated_word_of_a_question_counts_once() {
        let bm25 = Bm25::new(&["boat", "kite kite kite"].map(turn));
        assert_eq!(bm25.rank("boat kite"), [1, 0]);
        assert_eq!(bm25.rank("boat boat boat kite"), [1, 0]);
    }

    #[test]
    fn fusion_prefers_what_both_found() {
        // 1/61 + 1/62 for turn 1, 1/61 for turn 0, 1/62 for turn 2, 1/63 for turn 3.
        assert_eq!(fuse([&[0, 1, 3], &[1, 2]], 5), [1, 0, 2, 3]);
    }

    #[test]
    fn plain_vectors_rank_by_cosine_and_pass_over_unknown_texts() {
        struct Letters;
        impl Embedder for Letters {
            fn name(&self) -> &str {
                "letters"
            }
            fn dimension(&self) -> usize {
                2
            }
            fn embed(&self, texts: &[&str], out: &mut Vec<f32>) -> Result<Vec<bool>> {
                let row = |text: &&str| match text.rsplit(' ').next() {
                    Some("east") => [1.0, 0.0],
                    Some("north") => [0.0, 1.0],
                    Some("northeast") => [0.6, 0.8],
                    _ => [0.0, 0.0],
                };
                let rows: Vec<[f32; 2]> = texts.iter().map(row).collect();
                out.extend(rows.iter().flatten());
                Ok(rows.iter().map(|row| row != &[0.0, 0.0]).collect())
            }
        }
        let turns = ["north", "nowhere", "east", "northeast"].map(turn);
        let vectors = Vectors::new(&Letters, &turns).unwrap();
        assert_eq!(vectors.rank("east").unwrap(), [2, 3, 0]);
        assert!(vectors.rank("nowhere").unwrap().is_empty());
    }
}
