//! Says what is wrong with a segment, as far as its own bytes tell.
//!
//! Invariants: reads everything anew, whatever was checked before; never panics and never stops at the first problem;
//! memory grows with the rows, not with what the bytes claim. Says nothing of a user or a text, only of ids and places.

use std::ops::Range;

use super::Cell;
use super::blocks::{self, BLOCK_BYTES, BodyPlace};
use super::format;
use super::reader::Segment;
use super::section::Section;
use super::tables::Names;
use crate::error::{Error, Result};
use crate::ids::{SessionNumber, UserNumber};
use crate::model::{RowKind, unpack_vector};

/// Problems that one call lists, at most: the rest would say the same.
const PROBLEMS_MAX: usize = 1000;

/// One thing that is wrong.
#[derive(Debug)]
pub struct Problem {
    /// What, and where.
    pub error: Error,
    /// The rows whose contents are in doubt; empty when no row or every row is.
    pub rows: Range<u32>,
}

/// Collects problems up to a limit.
#[derive(Default)]
pub(super) struct Findings(Vec<Problem>);

impl Findings {
    pub(super) fn add(&mut self, error: Error, rows: Range<u32>) {
        if self.0.len() < PROBLEMS_MAX {
            self.0.push(Problem { error, rows });
        }
    }

    /// Takes a value or notes the error.
    pub(super) fn note<T>(&mut self, result: Result<T>, rows: Range<u32>) -> Option<T> {
        result.map_err(|error| self.add(error, rows)).ok()
    }
}

impl Segment {
    /// Checks every checksum, the padding and the block table; with `deep` also reads every row, decodes every body and
    /// compares the sections with one another. One pass over the file, or two. An empty list: nothing is wrong.
    pub fn verify(&self, deep: bool) -> Vec<Problem> {
        let mut findings = Findings::default();
        self.verify_checksums(&mut findings);
        self.verify_padding(&mut findings);
        self.verify_blocks(&mut findings);
        findings.note(self.tombstones(), 0..0);
        let names = findings.note(self.names(), 0..0);
        // Sections whose checksums do not hold are not compared: it would only repeat what is known.
        if deep && findings.0.is_empty() {
            let names = names.unwrap_or_default();
            self.verify_names(&names, &mut findings);
            self.verify_order(&mut findings);
            for cell in &self.cells {
                self.verify_cell(cell, &names, &mut findings);
            }
            self.verify_expiries(&mut findings);
            self.verify_vectors(&mut findings);
            self.verify_clusters(&mut findings);
            self.verify_bodies(&mut findings);
            self.verify_lexical(&mut findings);
        }
        findings.0
    }

    fn verify_checksums(&self, findings: &mut Findings) {
        for (number, entry) in self.columns.entries().iter().enumerate() {
            let is_column = Section::ALL
                .iter()
                .any(|section| *section as u16 == entry.kind && section.is_column());
            self.columns.check_entry(number, |block, error| {
                let row_bytes = u64::from(entry.item_bytes);
                let start = block * format::CHECK_BYTES;
                let rows = if is_column && row_bytes > 0 {
                    let end = (start + format::CHECK_BYTES).min(entry.len);
                    (start / row_bytes) as u32..end.div_ceil(row_bytes) as u32
                } else {
                    0..0
                };
                findings.add(error, rows);
            });
        }
    }

    fn verify_padding(&self, findings: &mut Findings) {
        let file = self.columns.file();
        let starts = self.columns.entries().iter().map(|entry| entry.offset);
        let mut end = format::HEADER_BYTES as u64;
        let lengths = self.columns.entries().iter().map(|entry| entry.len).chain([0]);
        for (start, len) in starts.chain([self.columns.footer_at()]).zip(lengths) {
            if file[end as usize..start as usize].iter().any(|byte| *byte != 0) {
                findings.add(self.columns.corrupt("segment padding is not zero", end), 0..0);
            }
            end = start + len;
        }
    }

    /// Blocks tile their section and have their CRCs.
    fn verify_blocks(&self, findings: &mut Findings) {
        let Some(text) = findings.note(self.columns.require(Section::TextBlocks), 0..0) else {
            return;
        };
        let mut end = text.offset;
        let mut bad = Vec::new();
        for block in 0..self.blocks() {
            let Some(entry) = findings.note(self.block(block), 0..0) else {
                return;
            };
            if entry.offset != end {
                findings.add(self.disagree("block table", Section::BlockTable), 0..0);
                return;
            }
            end += u64::from(entry.stored);
            let checked = self.stored(&entry).and_then(|stored| blocks::check(&entry, stored));
            if let Err(error) = checked
                && bad.len() < PROBLEMS_MAX
            {
                bad.push((block, error.in_file(self.path())));
            }
        }
        if end != text.offset + text.len {
            findings.add(self.disagree("block table", Section::BlockTable), 0..0);
        }
        for (block, error) in bad {
            findings.add(error, self.rows_of_block(block));
        }
    }

    fn blocks(&self) -> u32 {
        let table = self.columns.place(Section::BlockTable).map_or(0, |place| place.len);
        u32::try_from(table / format::BLOCK_ENTRY_BYTES as u64).unwrap_or(u32::MAX)
    }

    /// The rows from the first to the last whose bodies need `block`.
    fn rows_of_block(&self, block: u32) -> Range<u32> {
        let mut rows = 0..0;
        for row in 0..self.rows() {
            let Ok(bytes) = self.columns.item(Section::BodyPlaces, row) else { continue };
            let place = BodyPlace::decode(bytes);
            let end = u64::from(place.offset) + u64::from(place.len);
            let after = u64::from(place.block) + end.div_ceil(BLOCK_BYTES as u64);
            if place.len > 0 && (u64::from(place.block)..after).contains(&u64::from(block)) {
                rows = if rows.is_empty() { row..row + 1 } else { rows.start..row + 1 };
            }
        }
        rows
    }

    /// Whoever has a cell, a tombstone or a session has a name.
    fn verify_names(&self, names: &Names, findings: &mut Findings) {
        let tombstones = self.tombstones().unwrap_or_default();
        let users = self
            .cells
            .iter()
            .map(|cell| cell.user)
            .chain(tombstones.iter().map(|tombstone| tombstone.user))
            .chain(names.sessions.iter().map(|session| session.1));
        for user in users {
            if names.users.binary_search_by_key(&user, |(number, _)| *number).is_err() {
                findings.add(self.disagree("user number", Section::Names).of(user.get()), 0..0);
            }
        }
    }

    /// The id order is a permutation of the rows, sorted, and the sorted ids follow it.
    fn verify_order(&self, findings: &mut Findings) {
        let mut seen = vec![false; self.rows() as usize];
        let mut last = None;
        for place in 0..self.rows() {
            let checked = self.order_at(place).and_then(|(row, key, sorted)| {
                let is_new = !std::mem::replace(&mut seen[row as usize], true);
                if is_new && key.0 == sorted && last.is_none_or(|last| last < key) {
                    last = Some(key);
                    return Ok(());
                }
                Err(self.disagree("id order", Section::IdOrder).of(key.0))
            });
            if findings.note(checked, 0..0).is_none() {
                return;
            }
        }
        let first = (self.rows() > 0).then(|| self.order_at(0).map_or(0, |(_, key, _)| key.0));
        if (first.unwrap_or(0), last.map_or(0, |(id, _)| id)) != self.ids() {
            findings.add(self.disagree("id range", Section::Info), 0..0);
        }
    }

    /// Row, (id, version) and sorted id at one place of the id order.
    fn order_at(&self, place: u32) -> Result<(u32, (u64, u32), u64)> {
        let row = u32::from_le_bytes(self.columns.item(Section::IdOrder, place)?);
        let sorted = u64::from_le_bytes(self.columns.item(Section::SortedIds, place)?);
        Ok((row, (self.id_of(row)?.get(), self.version(row)?), sorted))
    }

    fn verify_cell(&self, cell: &Cell, names: &Names, findings: &mut Findings) {
        let mut last = None;
        let (mut min_time, mut max_time) = (i64::MAX, i64::MIN);
        for row in cell.rows.clone() {
            let Some(head) = findings.note(self.head(row), row..row + 1) else { continue };
            let id = head.id.get();
            if last.is_some_and(|last| last >= (head.id, head.version)) {
                findings.add(self.disagree("row order", Section::Ids).of(id), row..row + 1);
            }
            last = Some((head.id, head.version));
            min_time = min_time.min(head.time);
            max_time = max_time.max(head.time);
            if !is_session_of(names, head.session, cell.user) {
                findings.add(self.disagree("session", Section::Sessions).of(id), row..row + 1);
            }
        }
        if (min_time, max_time) != (cell.min_time, cell.max_time) {
            findings.add(self.disagree("cell times", Section::Cells), cell.rows.clone());
        }
    }

    /// A row has the flag of those that expire when it does.
    fn verify_expiries(&self, findings: &mut Findings) {
        let rows = 0..self.rows();
        let columns =
            self.expiries(rows.clone()).and_then(|all| Ok((all, self.flags_column(rows)?)));
        let Some((expiries, flags)) = findings.note(columns, 0..0) else { return };
        for (row, (expires, flags)) in (0..).zip(expiries.iter().zip(flags)) {
            let expires = i64::from_le_bytes(*expires) != i64::MAX;
            if expires != (flags & format::ROW_EXPIRES != 0) {
                findings.add(self.disagree("expiry", Section::Flags), row..row + 1);
            }
        }
    }

    fn verify_vectors(&self, findings: &mut Findings) {
        let mut values = Vec::new();
        for row in 0..self.rows() {
            let problem = self.vector_problem(row, &mut values);
            match problem {
                Ok(None) => {}
                Ok(Some(section)) => findings.add(self.disagree("vector", section), row..row + 1),
                Err(error) => findings.add(error, row..row + 1),
            }
        }
    }

    /// The section in which a row's vector is not what its flag says: finite where there is one, else zeros.
    fn vector_problem(&self, row: u32, values: &mut Vec<f32>) -> Result<Option<Section>> {
        let stored = self.vectors(row..row + 1)?;
        let has_vector = self.has_vector(row)?;
        if has_vector {
            unpack_vector(stored, self.space().element, values);
        }
        // No vector of length zero is ever taken in, so zeros stand for a missing one.
        let is_zero = stored.iter().all(|byte| *byte == 0);
        if is_zero == has_vector || (has_vector && values.iter().any(|value| !value.is_finite())) {
            return Ok(Some(Section::Vectors));
        }
        let Some(code) = self.codes(row..row + 1)? else { return Ok(None) };
        let factor =
            self.factors(row..row + 1)?.map_or(0.0, |factors| f32::from_le_bytes(factors[0]));
        if !factor.is_finite() || (!has_vector && factor != 0.0) {
            return Ok(Some(Section::Factors));
        }
        let is_zero = code.iter().all(|byte| *byte == 0);
        Ok((!has_vector && !is_zero).then_some(Section::Codes))
    }

    /// Bodies decode and tile the blocks: each byte of text belongs to one row, each block to one user.
    ///
    /// A body that does not start behind the one before is not read: many rows that claim the same blocks would take
    /// time without bound.
    fn verify_bodies(&self, findings: &mut Findings) {
        // Block and byte where the next body must start, and whose the last one was.
        let mut next = (0u64, 0u64);
        let mut owner: Option<UserNumber> = None;
        let mut body = Vec::new();
        for cell in &self.cells {
            for row in cell.rows.clone() {
                let place = self.columns.item(Section::BodyPlaces, row).map(BodyPlace::decode);
                let Some(place) = findings.note(place, row..row + 1) else { continue };
                let start = (u64::from(place.block), u64::from(place.offset));
                let is_apart = owner == Some(cell.user) || start.1 == 0;
                if place.len > 0 && (start != next || !is_apart) {
                    let error = self.disagree("body place", Section::BodyPlaces);
                    findings.add(error, row..row + 1);
                    if start < next {
                        continue;
                    }
                }
                if place.len > 0 {
                    next = self.behind(start, place.len);
                    owner = Some(cell.user);
                }
                body.clear();
                let read = self.body(row, &mut body);
                if findings.note(read, row..row + 1).is_some() && cell.kind == RowKind::Episode {
                    self.verify_text(row, &body, findings);
                }
            }
        }
        if next != (u64::from(self.blocks()), 0) {
            findings.add(self.disagree("text without a row", Section::TextBlocks), 0..0);
        }
    }

    /// Block and byte behind a body.
    fn behind(&self, start: (u64, u64), len: u32) -> (u64, u64) {
        let end = start.1 + u64::from(len);
        let spans = (end - 1) / BLOCK_BYTES as u64;
        let (block, offset) = (start.0 + spans, end - spans * BLOCK_BYTES as u64);
        match self.block(block as u32) {
            Ok(entry) if u64::from(entry.raw) == offset => (block + 1, 0),
            _ => (block, offset),
        }
    }

    fn verify_text(&self, row: u32, body: &[u8], findings: &mut Findings) {
        let decoded = self.decode_body(row, body);
        let Some(decoded) = findings.note(decoded, row..row + 1) else { return };
        let stated = self.head(row).map_or(0, |head| head.text_bytes as usize);
        if stated != decoded.text.len() {
            findings.add(self.disagree("text length", Section::TextBytes), row..row + 1);
        }
        let Ok(head) = self.head(row) else { return };
        let speaker = self.speaker_of(row, head.user);
        let speaker = findings.note(speaker, row..row + 1).flatten();
        if speaker.map(|speaker| &*speaker.name) != decoded.speaker.as_deref() {
            findings.add(self.speakers_disagree().of(head.id.get()), row..row + 1);
        }
    }
}

fn is_session_of(names: &Names, session: SessionNumber, user: UserNumber) -> bool {
    session == SessionNumber::NONE
        || names
            .sessions
            .binary_search_by_key(&session, |(number, ..)| *number)
            .is_ok_and(|place| names.sessions[place].1 == user)
}
