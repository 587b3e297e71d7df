//! The rows of one user in one segment, all columns at hand.

use std::ops::Range;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::ids::UserNumber;
use crate::simd;
use crate::storage::Part;
use crate::storage::dead::DeadRows;
use crate::storage::segment::{
    Lexicon, PASSAGE_LENGTH_BYTES, PassageLength, ROW_EXPIRES, ROW_HAS_TIME, ROW_HAS_VECTOR,
    Segment,
};

/// The code of one vector, and the factor that corrects what it estimates.
pub(crate) type Code<'s> = (&'s [u8], &'s [[u8; 4]]);

/// The rows of one segment, one behind the other. All indexes count from the first of them.
pub(crate) struct Run<'s> {
    pub segment: &'s Segment,
    pub dead: Arc<DeadRows>,
    /// The rows in the segment.
    pub rows: Range<u32>,
    /// The passages in the segment.
    pub passages: Range<u32>,
    /// The number of the first row among all of the user's.
    pub first: u32,
    /// The number of the first passage among all of the user's.
    pub first_passage: u32,
    /// Whether a row of the segment is dead.
    pub has_dead: bool,
    pub lexicon: Option<Lexicon<'s>>,
    user: UserNumber,
    lengths: &'s [[u8; PASSAGE_LENGTH_BYTES]],
    words: &'s [[u8; 4]],
    content_words: &'s [[u8; 4]],
    flags: &'s [u8],
    ids: &'s [[u8; 8]],
    times: &'s [[u8; 8]],
    offsets: &'s [[u8; 2]],
    expiries: &'s [[u8; 8]],
    sessions: &'s [[u8; 8]],
    ordinals: &'s [[u8; 8]],
    speakers: &'s [[u8; 4]],
}

impl<'s> Run<'s> {
    /// The runs of one user, from the parts of a snapshot.
    ///
    /// # Errors
    /// `Corrupt`.
    pub fn all(user: UserNumber, parts: &[Part<'s>]) -> Result<Vec<Run<'s>>> {
        let mut spans: Vec<(&'s Segment, Range<u32>, &Arc<DeadRows>)> = Vec::new();
        for part in parts {
            let Part::Cell { segment, rows, dead, .. } = part else { continue };
            match spans.last_mut() {
                Some((same, span, _)) if same.id() == segment.id() => {
                    if span.end != rows.start {
                        return Err(Error::corrupt("cells of one user do not follow one another")
                            .in_file(segment.path()));
                    }
                    span.end = rows.end;
                }
                _ => spans.push((segment, rows.clone(), dead)),
            }
        }
        let mut runs: Vec<Run<'s>> = Vec::with_capacity(spans.len());
        for (segment, rows, dead) in spans {
            let (first, first_passage) = runs.last().map_or((0, 0), Run::ends);
            runs.push(Run::new(segment, rows, dead.clone(), user, first, first_passage)?);
        }
        Ok(runs)
    }

    fn new(
        segment: &'s Segment,
        rows: Range<u32>,
        dead: Arc<DeadRows>,
        user: UserNumber,
        first: u32,
        first_passage: u32,
    ) -> Result<Run<'s>> {
        let passages = segment.passages_of(rows.clone())?;
        let too_many = || Error::limit("more rows or passages of one user than 32 bits count");
        first.checked_add(rows.end - rows.start).ok_or_else(too_many)?;
        first_passage.checked_add(passages.end - passages.start).ok_or_else(too_many)?;
        Ok(Run {
            lengths: segment.passage_lengths(passages.clone())?,
            words: segment.words(rows.clone())?,
            content_words: segment.content_words(rows.clone())?,
            flags: segment.flags_column(rows.clone())?,
            ids: segment.id_column(rows.clone())?,
            times: segment.times(rows.clone())?,
            offsets: segment.offsets(rows.clone())?,
            expiries: segment.expiries(rows.clone())?,
            sessions: segment.session_column(rows.clone())?,
            ordinals: segment.ordinals(rows.clone())?,
            speakers: segment.speaker_column(rows.clone())?,
            lexicon: segment.lexicon(user)?,
            has_dead: !dead.is_empty(),
            segment,
            dead,
            user,
            rows,
            passages,
            first,
            first_passage,
        })
    }

    /// The numbers behind the last row and the last passage.
    pub fn ends(&self) -> (u32, u32) {
        let passages = self.passages.end - self.passages.start;
        (self.first + self.len(), self.first_passage + passages)
    }

    pub fn len(&self) -> u32 {
        self.rows.end - self.rows.start
    }

    pub fn is_live(&self, at: u32) -> bool {
        !self.has_dead || !self.dead.contains(self.rows.start + at)
    }

    pub fn id(&self, at: u32) -> u64 {
        u64::from_le_bytes(self.ids[at as usize])
    }

    pub fn time(&self, at: u32) -> i64 {
        i64::from_le_bytes(self.times[at as usize])
    }

    pub fn offset_minutes(&self, at: u32) -> i16 {
        i16::from_le_bytes(self.offsets[at as usize])
    }

    /// Whether the row is gone at `now`.
    pub fn is_expired(&self, at: u32, now: i64) -> bool {
        self.flags[at as usize] & ROW_EXPIRES != 0
            && i64::from_le_bytes(self.expiries[at as usize]) <= now
    }

    pub fn session(&self, at: u32) -> u64 {
        u64::from_le_bytes(self.sessions[at as usize])
    }

    pub fn ordinal(&self, at: u32) -> u64 {
        u64::from_le_bytes(self.ordinals[at as usize])
    }

    /// The number of the speaker in the segment; 0 for none.
    pub fn speaker(&self, at: u32) -> u32 {
        u32::from_le_bytes(self.speakers[at as usize])
    }

    pub fn words(&self, at: u32) -> u32 {
        u32::from_le_bytes(self.words[at as usize])
    }

    pub fn content_words(&self, at: u32) -> u32 {
        u32::from_le_bytes(self.content_words[at as usize])
    }

    pub fn has_time(&self, at: u32) -> bool {
        self.flags[at as usize] & ROW_HAS_TIME != 0
    }

    pub fn length(&self, passage: u32) -> PassageLength {
        PassageLength::decode(self.lengths[passage as usize])
    }

    /// Tells the processor that the length of a passage is asked for soon.
    pub fn expect_length(&self, passage: u32) {
        simd::prefetch(&self.lengths[passage as usize..=passage as usize]);
    }

    /// Tells the processor that the counts of a row's words are asked for soon.
    pub fn expect_words(&self, at: u32) {
        let at = at as usize;
        simd::prefetch(&self.words[at..=at]);
        simd::prefetch(&self.content_words[at..=at]);
    }

    /// The stored vector of a row, if it has one.
    ///
    /// # Errors
    /// `Corrupt`.
    pub fn vector(&self, at: u32) -> Result<Option<&'s [u8]>> {
        if self.flags[at as usize] & ROW_HAS_VECTOR == 0 {
            return Ok(None);
        }
        let row = self.rows.start + at;
        self.segment.vectors(row..row + 1).map(Some)
    }

    /// The code of a row's vector and its factor, if it has one.
    ///
    /// # Errors
    /// `Corrupt`.
    pub fn code(&self, at: u32) -> Result<Option<Code<'s>>> {
        if self.flags[at as usize] & ROW_HAS_VECTOR == 0 {
            return Ok(None);
        }
        let row = self.rows.start + at;
        let code = self.segment.codes(row..row + 1)?;
        Ok(code.zip(self.segment.factors(row..row + 1)?))
    }

    /// The first passage of each row, and the one behind the last, by the user's numbering: ascending, one at least for
    /// each row.
    ///
    /// # Errors
    /// `Corrupt` when the column says otherwise.
    pub fn starts(&self) -> Result<impl Iterator<Item = u32>> {
        let starts = self.segment.passage_starts(self.rows.clone())?;
        let starts: Vec<u32> = starts.iter().map(|start| u32::from_le_bytes(*start)).collect();
        let ascend = starts.is_sorted_by(|a, b| a < b)
            && starts.first() == Some(&self.passages.start)
            && starts.last() == Some(&self.passages.end);
        if !ascend {
            return Err(Error::corrupt("passages of rows do not follow one another")
                .in_file(self.segment.path()));
        }
        let (from, to) = (self.passages.start, self.first_passage);
        Ok(starts.into_iter().map(move |start| start - from + to))
    }

    /// The names of the speakers, and live rows of each. Cost: the dead rows are looked at.
    ///
    /// # Errors
    /// `Corrupt`.
    pub fn live_speakers(&self) -> Result<Vec<(Arc<str>, u64)>> {
        let speakers = self.segment.speakers(self.user)?;
        let mut counts: Vec<u64> = speakers.iter().map(|speaker| speaker.rows.into()).collect();
        let first = speakers.first().map_or(1, |speaker| speaker.number);
        for row in self.dead.rows().into_iter().filter(|row| self.rows.contains(row)) {
            let number = self.speaker(row - self.rows.start);
            if number == 0 {
                continue;
            }
            let place = number.checked_sub(first).map(|place| place as usize);
            let count = place.and_then(|place| counts.get_mut(place));
            let count = count.ok_or_else(|| {
                Error::corrupt("row of a speaker of another user").in_file(self.segment.path())
            })?;
            *count = count.saturating_sub(1);
        }
        let named = speakers.into_iter().zip(counts);
        Ok(named.map(|(speaker, count)| (speaker.name, count)).collect())
    }

    /// The numbers of speakers by name.
    ///
    /// # Errors
    /// `Corrupt`.
    pub fn speaker_number(&self, name: &str) -> Result<Option<u32>> {
        let speakers = self.segment.speakers(self.user)?;
        let place = speakers.binary_search_by(|speaker| (*speaker.name).cmp(name));
        Ok(place.ok().map(|place| speakers[place].number))
    }
}
