//! The columns of the analysis: words, flags, passages and their lengths.
//!
//! Invariant: lengths are exact, so that statistics of a row never need its terms.

use std::ops::Range;

use super::format::{PASSAGE_LENGTH_BYTES, ROW_HAS_TIME};
use super::reader::Segment;
use super::section::Section;
use crate::error::Result;
use crate::ids::UserNumber;
use crate::model::{HEAD_HALF_TERMS_MAX, RowKind, RowTerms, Shape};

const _: () = assert!(HEAD_HALF_TERMS_MAX == u16::MAX, "a head's length is stored in two bytes");

/// What one passage adds up to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PassageLength {
    /// Terms of the text, repeats counted. A run of characters without spaces may be one passage of millions of terms.
    pub text: u32,
    /// What speaker and date add, in halves of a term; at most [`HEAD_HALF_TERMS_MAX`].
    pub head_halves: u32,
}

impl PassageLength {
    /// The lengths of a row's passages.
    pub fn of(terms: &RowTerms) -> impl Iterator<Item = PassageLength> {
        let head_halves = terms.head_half_terms();
        terms
            .passages
            .iter()
            .map(move |passage| PassageLength { text: RowTerms::text_length(passage), head_halves })
    }

    /// As it is stored.
    ///
    /// # Panics
    /// When the head is beyond its limit, which every row was held against on its way in.
    pub fn encode(self) -> [u8; PASSAGE_LENGTH_BYTES] {
        let head = u16::try_from(self.head_halves).expect("a head is within its limit");
        let ([a, b, c, d], [e, f]) = (self.text.to_le_bytes(), head.to_le_bytes());
        [a, b, c, d, e, f]
    }

    /// From what is stored.
    #[inline]
    pub fn decode([a, b, c, d, e, f]: [u8; PASSAGE_LENGTH_BYTES]) -> PassageLength {
        PassageLength {
            text: u32::from_le_bytes([a, b, c, d]),
            head_halves: u16::from_le_bytes([e, f]).into(),
        }
    }

    /// The whole length, in halves of a term.
    #[inline]
    pub fn half_terms(self) -> u64 {
        2 * u64::from(self.text) + u64::from(self.head_halves)
    }
}

impl Segment {
    /// The words of `rows`, little-endian `u32`.
    ///
    /// # Errors
    /// `Corrupt`, as every column.
    pub fn words(&self, rows: Range<u32>) -> Result<&[[u8; 4]]> {
        self.columns.items(Section::Words, rows)
    }

    /// The content words of `rows`, little-endian `u32`.
    ///
    /// # Errors
    /// `Corrupt`.
    pub fn content_words(&self, rows: Range<u32>) -> Result<&[[u8; 4]]> {
        self.columns.items(Section::ContentWords, rows)
    }

    /// The first passages of `rows` and, one item more, of the row behind them; little-endian `u32`.
    ///
    /// # Errors
    /// `Corrupt`.
    pub fn passage_starts(&self, rows: Range<u32>) -> Result<&[[u8; 4]]> {
        // At the highest number the reference lies beyond the column, as it must.
        self.columns.items(Section::PassageStarts, rows.start..rows.end.saturating_add(1))
    }

    /// The lengths of `passages`, for [`PassageLength::decode`].
    ///
    /// # Errors
    /// `Corrupt`.
    pub fn passage_lengths(&self, passages: Range<u32>) -> Result<&[[u8; PASSAGE_LENGTH_BYTES]]> {
        self.columns.items(Section::PassageLengths, passages)
    }

    /// Passages of all rows.
    pub fn passage_count(&self) -> u32 {
        let lengths = self.columns.place(Section::PassageLengths).map_or(0, |place| place.len);
        (lengths / PASSAGE_LENGTH_BYTES as u64) as u32
    }

    /// The passages of `rows`: not beyond the segment's, and not ending before they start.
    ///
    /// # Errors
    /// `Corrupt`.
    pub fn passages_of(&self, rows: Range<u32>) -> Result<Range<u32>> {
        let at = |row: u32| -> Result<u32> {
            Ok(u32::from_le_bytes(self.columns.item(Section::PassageStarts, row)?))
        };
        let passages = at(rows.start)?..at(rows.end)?;
        if passages.start > passages.end || passages.end > self.passage_count() {
            return Err(self.disagree("passage numbers", Section::PassageStarts));
        }
        Ok(passages)
    }

    /// The passages of the episodes of one user.
    ///
    /// # Errors
    /// `Corrupt`.
    pub fn passages_of_user(&self, user: UserNumber) -> Result<Range<u32>> {
        let cells = self.cells_of(user, RowKind::Episode);
        match (cells.first(), cells.last()) {
            (Some(first), Some(last)) => self.passages_of(first.rows.start..last.rows.end),
            _ => Ok(0..0),
        }
    }

    /// The analysis of one row in numbers.
    pub(super) fn shape(&self, row: u32) -> Result<Shape> {
        let columns = &self.columns;
        let passages = self.passages_of(row..row.saturating_add(1))?;
        let lengths = self.passage_lengths(passages.clone())?;
        Ok(Shape {
            words: u32::from_le_bytes(columns.item(Section::Words, row)?),
            content_words: u32::from_le_bytes(columns.item(Section::ContentWords, row)?),
            has_time: columns.item::<1>(Section::Flags, row)?[0] & ROW_HAS_TIME != 0,
            passages: passages.end - passages.start,
            half_terms: lengths.iter().map(|l| PassageLength::decode(*l).half_terms()).sum(),
        })
    }
}
