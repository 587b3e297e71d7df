//! The terms of one user in one segment, and where their posting lists lie (format-spec.md 3.13).
//!
//! Invariants: a lexicon and its lists are of one user; nothing is decoded but the blocks of terms that a look-up passes.

use std::cmp::Ordering;
use std::ops::Range;

use super::format::LEXICON_BYTES;
use super::postings::{Postings, take_varint};
use super::reader::Segment;
use super::section::Section;
use crate::error::{Error, Result};
use crate::ids::UserNumber;
use crate::model::TERM_BYTES_MAX;

/// Terms of one block: the first is whole, each other says how many bytes it shares with the one before.
pub const BLOCK_TERMS: usize = 16;
/// Bytes of one entry of a lexicon's block table: where a block starts, and the list of its first term.
pub const TERM_BLOCK_BYTES: usize = 8;

/// The terms of one user in one segment, sorted by their bytes.
#[derive(Clone)]
pub struct Lexicon<'a> {
    segment: &'a Segment,
    count: u32,
    /// The user's passages.
    passages: Range<u32>,
    /// In section `terms`: the block table, then the blocks.
    table: Range<u64>,
    blocks: Range<u64>,
    /// In section `postings`.
    lists: Range<u64>,
}

/// One entry of the directory of lexicons.
pub struct DirectoryEntry {
    pub user: UserNumber,
    pub terms: u32,
    pub terms_at: u64,
    pub postings_at: u64,
}

impl DirectoryEntry {
    pub fn encode(&self) -> [u8; LEXICON_BYTES] {
        let mut bytes = [0; LEXICON_BYTES];
        bytes[0..8].copy_from_slice(&self.user.get().to_le_bytes());
        bytes[8..12].copy_from_slice(&self.terms.to_le_bytes());
        // 12..16: reserved.
        bytes[16..24].copy_from_slice(&self.terms_at.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.postings_at.to_le_bytes());
        bytes
    }

    fn decode(bytes: [u8; LEXICON_BYTES]) -> DirectoryEntry {
        let u64_at = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight"));
        DirectoryEntry {
            user: UserNumber::new(u64_at(0)),
            terms: u32::from_le_bytes(bytes[8..12].try_into().expect("four")),
            terms_at: u64_at(16),
            postings_at: u64_at(24),
        }
    }
}

impl Segment {
    /// The terms of one user's episodes; `None` when they have none. A binary search over the segment's users.
    ///
    /// # Errors
    /// `Corrupt`.
    pub fn lexicon(&self, user: UserNumber) -> Result<Option<Lexicon<'_>>> {
        let (mut low, mut high) = (0, self.lexicon_count());
        while low < high {
            let middle = low + (high - low) / 2;
            match self.directory_entry(middle)?.user.cmp(&user) {
                Ordering::Less => low = middle + 1,
                Ordering::Greater => high = middle,
                Ordering::Equal => return self.lexicon_at(middle).map(Some),
            }
        }
        Ok(None)
    }

    /// Users with terms.
    pub(super) fn lexicon_count(&self) -> u32 {
        let length = self.columns.place(Section::Lexicons).map_or(0, |place| place.len);
        u32::try_from(length / LEXICON_BYTES as u64).unwrap_or(u32::MAX)
    }

    pub(super) fn directory_entry(&self, place: u32) -> Result<DirectoryEntry> {
        self.columns.item(Section::Lexicons, place).map(DirectoryEntry::decode)
    }

    /// The lexicon of entry `place` of the directory.
    pub(super) fn lexicon_at(&self, place: u32) -> Result<Lexicon<'_>> {
        let entry = self.directory_entry(place)?;
        let ends = if place + 1 < self.lexicon_count() {
            let next = self.directory_entry(place + 1)?;
            (next.terms_at, next.postings_at)
        } else {
            let end = |section| self.columns.require(section).map(|place| place.len);
            (end(Section::Terms)?, end(Section::Postings)?)
        };
        let table_bytes = (entry.terms as usize).div_ceil(BLOCK_TERMS) * TERM_BLOCK_BYTES;
        let blocks_at = entry.terms_at.checked_add(table_bytes as u64);
        match blocks_at.filter(|at| *at <= ends.0 && entry.postings_at <= ends.1) {
            Some(blocks_at) if entry.terms > 0 => Ok(Lexicon {
                segment: self,
                count: entry.terms,
                passages: self.passages_of_user(entry.user)?,
                table: entry.terms_at..blocks_at,
                blocks: blocks_at..ends.0,
                lists: entry.postings_at..ends.1,
            }),
            _ => Err(self.disagree("directory of lexicons", Section::Lexicons)),
        }
    }
}

#[cfg(test)]
impl Segment {
    /// The stored sections of speakers, passages, terms and postings.
    pub fn lexical_bytes(&self) -> Vec<Vec<u8>> {
        let sections = Section::ALL.iter().filter(|section| **section as u16 >= 49);
        let sections = sections.chain([&Section::Words, &Section::Speakers, &Section::Flags]);
        sections.map(|section| self.columns.whole(*section).unwrap().to_vec()).collect()
    }
}

/// A term on its way out of a block.
struct Cursor<'a> {
    /// The entries that are left.
    rest: &'a [u8],
    term: [u8; TERM_BYTES_MAX],
    length: usize,
    /// Where the list of the next entry starts, from the start of the user's.
    list: u64,
}

impl Cursor<'_> {
    fn term(&self) -> &[u8] {
        &self.term[..self.length]
    }

    /// Goes on to the next term: its number of postings and their place among the user's lists. Nothing when the bytes
    /// are no entry.
    fn step(&mut self) -> Option<(u32, Range<u64>)> {
        let [shared, own, rest @ ..] = self.rest else { return None };
        let (shared, own) = (usize::from(*shared), usize::from(*own));
        let length = shared + own;
        if shared > self.length || own == 0 {
            return None;
        }
        let (suffix, rest) = rest.split_at_checked(own)?;
        self.term.get_mut(shared..length)?.copy_from_slice(suffix);
        self.length = length;
        let (count, at) = take_varint(rest, 0)?;
        let (bytes, at) = take_varint(rest, at)?;
        self.rest = &rest[at..];
        let list = self.list..self.list + bytes;
        self.list = list.end;
        Some((u32::try_from(count).ok()?, list))
    }
}

impl<'a> Lexicon<'a> {
    /// Terms, at least 1.
    #[expect(clippy::len_without_is_empty, reason = "a lexicon is never empty")]
    pub fn len(&self) -> u32 {
        self.count
    }

    /// The user's passages in this segment.
    pub fn passages(&self) -> Range<u32> {
        self.passages.clone()
    }

    /// The postings of `term`, if a passage holds it. A binary search over the blocks' first terms, then one block.
    ///
    /// # Errors
    /// `Corrupt`.
    pub fn find(&self, term: &str) -> Result<Option<Postings<'a>>> {
        let term = term.as_bytes();
        // The first block whose first term is greater.
        let (mut low, mut high) = (0, self.block_count());
        while low < high {
            let middle = low + (high - low) / 2;
            let (_, mut cursor) = self.block(middle)?;
            cursor.step().ok_or_else(|| self.damaged())?;
            if cursor.term() <= term {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        let Some(block) = low.checked_sub(1) else { return Ok(None) };
        let (_, mut cursor) = self.block(block)?;
        for _ in 0..self.terms_of_block(block) {
            let (count, list) = cursor.step().ok_or_else(|| self.damaged())?;
            match cursor.term().cmp(term) {
                Ordering::Less => {}
                Ordering::Equal => return self.postings(count, list).map(Some),
                Ordering::Greater => break,
            }
        }
        Ok(None)
    }

    /// All terms, ascending.
    pub fn terms(&self) -> Terms<'a> {
        let cursor = Cursor { rest: &[], term: [0; TERM_BYTES_MAX], length: 0, list: 0 };
        Terms { lexicon: self.clone(), next: 0, cursor, before: Vec::new() }
    }

    fn block_count(&self) -> u32 {
        (self.count as usize).div_ceil(BLOCK_TERMS) as u32
    }

    fn terms_of_block(&self, block: u32) -> u32 {
        (self.count - block * BLOCK_TERMS as u32).min(BLOCK_TERMS as u32)
    }

    /// Where one block starts among the blocks, and a cursor before its first term.
    fn block(&self, block: u32) -> Result<(u64, Cursor<'a>)> {
        let table = |block: u32| -> Result<(u64, u64)> {
            let at = self.table.start + u64::from(block) * TERM_BLOCK_BYTES as u64;
            let bytes = self.segment.columns.bytes(Section::Terms, at..at + 8)?;
            let (start, list) = bytes.split_at(4);
            let number = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().expect("four"));
            Ok((number(start).into(), number(list).into()))
        };
        let (start, list) = table(block)?;
        let all = self.blocks.end - self.blocks.start;
        let end = if block + 1 < self.block_count() { table(block + 1)?.0 } else { all };
        if start > end || end > all {
            return Err(self.damaged());
        }
        let bytes = self.blocks.start + start..self.blocks.start + end;
        let rest = self.segment.columns.bytes(Section::Terms, bytes)?;
        Ok((start, Cursor { rest, term: [0; TERM_BYTES_MAX], length: 0, list }))
    }

    /// The list at `list` among the user's.
    fn postings(&self, count: u32, list: Range<u64>) -> Result<Postings<'a>> {
        if list.end > self.lists.end - self.lists.start {
            return Err(self.damaged());
        }
        let bytes = self.lists.start + list.start..self.lists.start + list.end;
        let bytes = self.segment.columns.bytes(Section::Postings, bytes)?;
        Postings::new(self.segment, &self.passages, count, bytes)
    }

    #[cold]
    fn damaged(&self) -> Error {
        self.segment.disagree("lexicon", Section::Terms)
    }
}

/// Goes through the terms of a lexicon. No [`Iterator`], since a term lasts until the next one only.
pub struct Terms<'a> {
    lexicon: Lexicon<'a>,
    next: u32,
    cursor: Cursor<'a>,
    before: Vec<u8>,
}

impl<'a> Terms<'a> {
    /// The next term and its postings; checks that terms ascend and that terms and lists lie one behind the other.
    ///
    /// # Errors
    /// `Corrupt`; what follows is then undefined, but never a panic.
    #[expect(clippy::should_implement_trait, reason = "a lending iterator")]
    pub fn next(&mut self) -> Result<Option<(&str, Postings<'a>)>> {
        let lexicon = &self.lexicon;
        let place = self.next;
        let is_last = place == lexicon.count;
        self.before.clear();
        self.before.extend_from_slice(self.cursor.term());
        if is_last || (place as usize).is_multiple_of(BLOCK_TERMS) {
            let list = self.cursor.list;
            let end = lexicon.lists.end - lexicon.lists.start;
            if !self.cursor.rest.is_empty() || (is_last && list != end) {
                return Err(lexicon.damaged());
            }
            if is_last {
                return Ok(None);
            }
            let (start, cursor) = lexicon.block(place / BLOCK_TERMS as u32)?;
            // A block ends where the next one starts, so only the first can leave something out.
            if cursor.list != list || (place == 0 && start != 0) {
                return Err(lexicon.damaged());
            }
            self.cursor = cursor;
        }
        self.next += 1;
        let (count, list) = self.cursor.step().ok_or_else(|| lexicon.damaged())?;
        if place > 0 && *self.before >= *self.cursor.term() {
            return Err(lexicon.damaged());
        }
        let postings = lexicon.postings(count, list)?;
        let term = std::str::from_utf8(self.cursor.term()).map_err(|_| lexicon.damaged())?;
        Ok(Some((term, postings)))
    }
}
