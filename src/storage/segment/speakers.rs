//! Who spoke: one number a row, and a table of names (format-spec.md 3.12).
//!
//! Invariant: an entry is of one user; two users who speak with people of one name have an entry each.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use super::RowSource;
use super::input::Input;
use super::reader::Segment;
use super::section::Section;
use crate::error::{Error, Result};
use crate::ids::UserNumber;
use crate::options::NAME_BYTES_MAX;

/// A speaker of one user's rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Speaker {
    /// As in the column of speakers.
    pub number: u32,
    /// The name.
    pub name: Arc<str>,
    /// Rows of the segment with it, ended ones included.
    pub rows: u32,
}

/// The decoded table, ascending by user and name.
#[derive(Debug)]
pub struct Speakers(Vec<(UserNumber, Speaker)>);

impl Speakers {
    /// Reads section `speaker names`.
    pub fn decode(bytes: &[u8], offset: u64) -> Result<Speakers> {
        let mut input = Input::new(bytes, offset, "speaker names");
        let count = input.count(16)?;
        let mut speakers: Vec<(UserNumber, Speaker)> = Vec::with_capacity(count);
        for number in 1..=count as u32 {
            let user = UserNumber::new(input.u64()?);
            let rows = input.u32()?;
            let length = input.u32()? as usize;
            if length > NAME_BYTES_MAX || rows == 0 {
                return Err(input.corrupt("hold an impossible length or count"));
            }
            let name = std::str::from_utf8(input.take(length)?)
                .map_err(|_| input.corrupt("hold a name that is not UTF-8"))?;
            if speakers.last().is_some_and(|(u, s)| (*u, &*s.name) >= (user, name)) {
                return Err(input.corrupt("are not in order"));
            }
            speakers.push((user, Speaker { number, name: name.into(), rows }));
        }
        input.finish()?;
        Ok(Speakers(speakers))
    }

    /// All entries; the first has number 1.
    pub fn all(&self) -> &[(UserNumber, Speaker)] {
        &self.0
    }
}

/// Numbers of the speakers of new rows.
pub struct SpeakerColumn {
    /// One a row.
    pub numbers: Vec<u32>,
    /// Section `speaker names`.
    pub table: Vec<u8>,
}

impl SpeakerColumn {
    /// Numbers the speakers of `rows`; `user` gives the user of a row.
    pub fn gather(
        rows: &dyn RowSource,
        user: impl Fn(usize) -> Result<UserNumber>,
    ) -> Result<SpeakerColumn> {
        let mut entries: BTreeMap<(UserNumber, &str), (u32, u32)> = BTreeMap::new();
        for row in 0..rows.len() {
            if let Some(name) = rows.speaker(row)? {
                entries.entry((user(row)?, name)).or_default().1 += 1;
            }
        }
        let mut table = (entries.len() as u32).to_le_bytes().to_vec();
        for (number, ((user, name), entry)) in (1..).zip(&mut entries) {
            entry.0 = number;
            table.extend(user.get().to_le_bytes());
            table.extend(entry.1.to_le_bytes());
            table.extend((name.len() as u32).to_le_bytes());
            table.extend(name.as_bytes());
        }
        let mut numbers = Vec::with_capacity(rows.len());
        for row in 0..rows.len() {
            numbers.push(match rows.speaker(row)? {
                Some(name) => entries[&(user(row)?, name)].0,
                None => 0,
            });
        }
        Ok(SpeakerColumn { numbers, table })
    }
}

impl Segment {
    /// The speakers of `rows`, little-endian `u32`: 0 for none, else a [`Speaker::number`].
    ///
    /// # Errors
    /// `Corrupt`.
    pub fn speaker_column(&self, rows: Range<u32>) -> Result<&[[u8; 4]]> {
        self.columns.items(Section::Speakers, rows)
    }

    /// The speakers of one user's rows, by name, ascending. Decoded at the first call and kept.
    ///
    /// # Errors
    /// `Corrupt`.
    pub fn speakers(&self, user: UserNumber) -> Result<Vec<Speaker>> {
        let all = self.all_speakers()?.all();
        let start = all.partition_point(|(owner, _)| *owner < user);
        let of_user = all[start..].iter().take_while(|(owner, _)| *owner == user);
        Ok(of_user.map(|(_, speaker)| speaker.clone()).collect())
    }

    /// The speaker of one row, which is of `user`.
    ///
    /// # Errors
    /// `Corrupt`.
    pub fn speaker_of(&self, row: u32, user: UserNumber) -> Result<Option<&Speaker>> {
        let number = u32::from_le_bytes(self.columns.item(Section::Speakers, row)?);
        let Some(place) = (number as usize).checked_sub(1) else { return Ok(None) };
        match self.all_speakers()?.all().get(place) {
            Some((owner, speaker)) if *owner == user => Ok(Some(speaker)),
            _ => Err(self.speakers_disagree()),
        }
    }

    pub(super) fn all_speakers(&self) -> Result<&Speakers> {
        if let Some(speakers) = self.speaker_names.get() {
            return Ok(speakers);
        }
        let speakers = self.columns.decode(Section::SpeakerNames, Speakers::decode)?;
        Ok(self.speaker_names.get_or_init(|| speakers))
    }

    #[cold]
    pub(super) fn speakers_disagree(&self) -> Error {
        self.disagree("speaker", Section::Speakers)
    }
}
