//! From turns to rows ready to append: checked, embedded, encoded. Runs before any lock is taken.

use std::sync::Arc;
use std::thread;

use crate::analysis::analyse;
use crate::encode::{Embedder, episode_text};
use crate::error::{Error, Result};
use crate::model::{Body, VectorSpace, normalise, pack_vector};
use crate::options::{EMBED_TURNS_PER_CALL, EMBED_TURNS_PER_THREAD};
use crate::storage::{Draft, EncodedRow};
use crate::time::{ZonedTime, civil_date};

use super::limits;
use super::turn::Turn;

/// Bytes that a frame adds to what a row holds, at most: its head, lengths and scalar fields. Used to refuse a batch
/// before it is encoded.
const FRAME_OVERHEAD_BYTES: usize = 128;

/// What turns text into stored vectors.
#[derive(Clone, Copy)]
pub(crate) struct Encoder<'a> {
    /// The space of the database.
    pub space: &'a VectorSpace,
    /// `None`: every vector comes from the caller.
    pub embedder: Option<&'a dyn Embedder>,
}

/// A turn ready to append, and which of its parts the caller gave where a default exists.
pub(crate) struct Encoded {
    pub row: EncodedRow,
    pub given: Given,
}

/// Parts with a default that the caller gave nevertheless: only these take part in comparing contents.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Given {
    pub time: bool,
    pub ordinal: bool,
    pub vector: bool,
}

/// Turns ready to append together.
pub(crate) struct Batch {
    pub rows: Vec<Encoded>,
}

/// A turn that passed the door; its vector is still as given.
struct Checked {
    turn: Turn,
    metadata: String,
}

impl Encoder<'_> {
    /// The stored bytes of the vector of one episode: the given one, else the embedder's of `Speaker: text`. Empty
    /// when the embedder knows no token of it.
    pub fn vector(
        &self,
        given: Option<Vec<f32>>,
        speaker: Option<&str>,
        text: &str,
    ) -> Result<Arc<[u8]>> {
        match given {
            Some(vector) => self.given(vector),
            None => self.embedded(&[(speaker, text)]).map(|mut made| made.remove(0)),
        }
    }

    /// The stored bytes of a caller's vector.
    fn given(&self, mut vector: Vec<f32>) -> Result<Arc<[u8]>> {
        self.space.admit(&mut vector)?;
        Ok(pack_vector(&vector, self.space.element).into())
    }

    /// The stored bytes of the vectors of some episodes, each told by speaker and text.
    fn embedded(&self, episodes: &[(Option<&str>, &str)]) -> Result<Vec<Arc<[u8]>>> {
        if episodes.is_empty() {
            return Ok(Vec::new());
        }
        let Some(embedder) = self.embedder else {
            return Err(Error::invalid(format!(
                "vector is missing: this database takes the vectors of its space {} from the caller",
                self.space.name
            )));
        };
        let texts: Vec<_> =
            episodes.iter().map(|(speaker, text)| episode_text(*speaker, text)).collect();
        let texts: Vec<&str> = texts.iter().map(|text| text.as_ref()).collect();
        let dimension = self.space.dimension as usize;
        let mut values = Vec::with_capacity(texts.len() * dimension);
        let known = embedder.embed(&texts, &mut values)?;
        if known.len() != texts.len() || values.len() != texts.len() * dimension {
            return Err(Error::invalid(format!(
                "embedder made {} values and {} flags for {} texts of {dimension} dimensions",
                values.len(),
                known.len(),
                texts.len()
            )));
        }
        let rows = values.chunks_exact_mut(dimension).zip(known);
        rows.map(|(row, known)| {
            if !known {
                return Ok([].into());
            }
            normalise(row).map_err(|cause| {
                Error::invalid("vector made by the embedder is unusable").because(cause)
            })?;
            Ok(pack_vector(row, self.space.element).into())
        })
        .collect()
    }

    /// Encodes some turns, embedding those that bring no vector in one call.
    fn encode(
        &self,
        user: &Arc<[u8]>,
        mut turns: Vec<Checked>,
        now: ZonedTime,
    ) -> Result<Vec<Encoded>> {
        let vectors: Vec<Option<Vec<f32>>> =
            turns.iter_mut().map(|checked| checked.turn.vector.take()).collect();
        let without: Vec<_> = turns
            .iter()
            .zip(&vectors)
            .filter(|(_, vector)| vector.is_none())
            .map(|(checked, _)| (checked.turn.speaker.as_deref(), checked.turn.text.as_str()))
            .collect();
        let mut embedded = self.embedded(&without)?.into_iter();
        turns
            .into_iter()
            .zip(vectors)
            .map(|(checked, vector)| {
                let given = Given {
                    time: checked.turn.time.is_some(),
                    ordinal: checked.turn.ordinal.is_some(),
                    vector: vector.is_some(),
                };
                let vector = match vector {
                    Some(vector) => self.given(vector)?,
                    None => embedded.next().expect("one was made for each turn without"),
                };
                Ok(Encoded { row: EncodedRow::new(draft(user, checked, vector, now))?, given })
            })
            .collect()
    }
}

fn draft(user: &Arc<[u8]>, checked: Checked, vector: Arc<[u8]>, now: ZonedTime) -> Draft {
    let Checked { turn, metadata } = checked;
    let time = turn.time.unwrap_or(now);
    Draft {
        user: Arc::clone(user),
        time: time.time.micros(),
        offset_minutes: time.offset_minutes,
        ordinal: turn.ordinal.unwrap_or(0),
        expires: turn.expires.map_or(i64::MAX, |expires| expires.micros()),
        vector,
        terms: analyse(
            turn.speaker.as_deref(),
            &turn.text,
            civil_date(time.time.micros(), time.offset_minutes),
        ),
        body: Body {
            text: turn.text,
            session: turn.session,
            speaker: turn.speaker,
            agent: turn.agent,
            key: turn.key,
            metadata,
            tags: turn.tags,
        },
    }
}

/// Checks and encodes `turns` of one user. A turn without a time gets `now`. A large batch is embedded by several
/// threads, at most one a processor; the result does not depend on how many.
///
/// # Errors
/// `Invalid` and `Limit` as the public calls document; the first turn that fails decides.
pub(crate) fn encode_batch(
    encoder: Encoder<'_>,
    user: &Arc<[u8]>,
    turns: Vec<Turn>,
    now: ZonedTime,
) -> Result<Batch> {
    limits::check_batch_episodes(turns.len())?;
    let mut bytes = 0usize;
    let mut checked = Vec::with_capacity(turns.len());
    for mut turn in turns {
        limits::check_turn(&turn)?;
        let metadata = std::mem::take(&mut turn.metadata);
        let metadata = limits::metadata_text(&limits::metadata_object(metadata)?)?;
        bytes += encoded_bytes(&turn, encoder.space, user.len()) + metadata.len();
        limits::check_batch_bytes(bytes)?;
        checked.push(Checked { turn, metadata });
    }
    let threads = thread_count(checked.len());
    let rows = map_chunks(checked, threads, |part| encoder.encode(user, part, now))?;
    Ok(Batch { rows })
}

/// An upper bound of the bytes of a turn's frame, without its metadata.
fn encoded_bytes(turn: &Turn, space: &VectorSpace, user_bytes: usize) -> usize {
    let names = [&turn.session, &turn.speaker, &turn.agent, &turn.key];
    let names: usize = names.into_iter().flatten().map(|name| name.len()).sum();
    let tags: usize = turn.tags.iter().map(|tag| tag.len() + 8).sum();
    turn.text.len() + names + tags + user_bytes + space.vector_bytes() + FRAME_OVERHEAD_BYTES
}

fn thread_count(items: usize) -> usize {
    let processors = thread::available_parallelism().map_or(1, |count| count.get());
    processors.min(items / EMBED_TURNS_PER_THREAD).max(1)
}

/// Applies `work` to `threads` contiguous chunks side by side, in pieces of at most [`EMBED_TURNS_PER_CALL`]. The
/// order is kept; of several failures the first in order is returned.
fn map_chunks<T: Send, U: Send>(
    items: Vec<T>,
    threads: usize,
    work: impl Fn(Vec<T>) -> Result<Vec<U>> + Sync,
) -> Result<Vec<U>> {
    let by_pieces = |items: Vec<T>| {
        let mut done = Vec::with_capacity(items.len());
        for piece in split(items, EMBED_TURNS_PER_CALL) {
            done.append(&mut work(piece)?);
        }
        Ok(done)
    };
    if threads <= 1 {
        return by_pieces(items);
    }
    let chunk = items.len().div_ceil(threads);
    let by_pieces = &by_pieces;
    let done: Vec<Result<Vec<U>>> = thread::scope(|scope| {
        let workers: Vec<_> =
            split(items, chunk).map(|part| scope.spawn(move || by_pieces(part))).collect();
        workers
            .into_iter()
            .map(|worker| match worker.join() {
                Ok(result) => result,
                // A caller's embedder panicked: its panic goes on in the thread that called.
                Err(panic) => std::panic::resume_unwind(panic),
            })
            .collect()
    });
    let mut all = Vec::new();
    for part in done {
        all.append(&mut part?);
    }
    Ok(all)
}

/// The items in contiguous parts of `size`, the last one as long as is left.
fn split<T>(items: Vec<T>, size: usize) -> impl Iterator<Item = Vec<T>> {
    let mut items = items.into_iter();
    std::iter::from_fn(move || {
        let part: Vec<T> = items.by_ref().take(size).collect();
        (!part.is_empty()).then_some(part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use crate::options::VectorElement;

    /// Counts letters.
    struct Letters;

    impl Embedder for Letters {
        fn name(&self) -> &str {
            "letters"
        }
        fn dimension(&self) -> usize {
            26
        }
        fn embed(&self, texts: &[&str], out: &mut Vec<f32>) -> Result<Vec<bool>> {
            let one = |text: &&str| {
                let mut row = [0.0; 26];
                for letter in text.bytes().filter(u8::is_ascii_lowercase) {
                    row[usize::from(letter - b'a')] += 1.0;
                }
                out.extend(row);
                row.iter().any(|value| *value > 0.0)
            };
            Ok(texts.iter().map(one).collect())
        }
    }

    fn space() -> VectorSpace {
        VectorSpace { name: "letters".into(), dimension: 26, element: VectorElement::F32 }
    }

    fn values(bytes: &[u8]) -> Vec<f32> {
        let mut out = Vec::new();
        crate::model::unpack_vector(bytes, VectorElement::F32, &mut out);
        out
    }

    #[test]
    fn the_speaker_is_part_of_what_is_embedded() {
        let space = space();
        let encoder = Encoder { space: &space, embedder: Some(&Letters) };
        let alone = values(&encoder.vector(None, None, "aa").unwrap());
        assert_eq!(alone[0], 1.0);
        let spoken = values(&encoder.vector(None, Some("bb"), "aa").unwrap());
        assert!((spoken[0] - spoken[1]).abs() < 1e-6 && spoken[1] > 0.7);
    }

    #[test]
    fn a_given_vector_wins_and_is_scaled() {
        let space = space();
        let encoder = Encoder { space: &space, embedder: Some(&Letters) };
        let mut given = vec![0.0; 26];
        given[3] = 5.0;
        assert_eq!(values(&encoder.vector(Some(given), None, "aa").unwrap())[3], 1.0);
        assert!(encoder.vector(Some(vec![1.0; 25]), None, "aa").is_err());
    }

    #[test]
    fn text_without_known_tokens_has_no_vector_and_a_missing_one_is_refused() {
        let space = space();
        let encoder = Encoder { space: &space, embedder: Some(&Letters) };
        assert!(encoder.vector(None, None, "123").unwrap().is_empty());
        let caller = Encoder { space: &space, embedder: None };
        let error = caller.vector(None, None, "aa").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().contains("vector is missing"));
    }

    #[test]
    fn the_result_does_not_depend_on_the_number_of_threads() {
        let items: Vec<u32> = (0..1000).collect();
        let square = |part: Vec<u32>| Ok(part.into_iter().map(|item| item * item).collect());
        let late = |part: Vec<u32>| match part.iter().find(|item| **item >= 20) {
            Some(item) => Err::<Vec<u32>, _>(Error::invalid("late").of(u64::from(*item))),
            None => Ok(part),
        };
        for threads in [1, 2, 3, 7, 1000] {
            let squares: Vec<u32> = map_chunks(items.clone(), threads, square).unwrap();
            assert!(squares.iter().enumerate().all(|(i, square)| *square as usize == i * i));
            let error = map_chunks(items.clone(), threads, late).unwrap_err();
            assert_eq!(error.id(), Some(20));
        }
    }
}
