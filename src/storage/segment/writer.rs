//! Writes a segment, column by column, front to back.
//!
//! Invariants: the file is written once, in order, and never read; memory holds one buffer, of the rows only ids,
//! versions, codes, speakers and places (about 40 bytes a row and a bit a dimension), and of the lexicons the terms and one
//! user's lists at most. Equal input gives equal bytes. The caller syncs and renames.

use super::blocks::BlockWriter;
use super::clusters;
use super::format::{Header, OWN_CHECKSUMS, ROW_EXPIRES, ROW_HAS_TIME, ROW_HAS_VECTOR};
use super::lexical_writer::LexiconWriter;
use super::passages::PassageLength;
use super::section::Section;
use super::sections::SectionWriter;
use super::speakers::SpeakerColumn;
use super::tables::{self, CODE_BYTES_MAX, Info};
use super::{Cell, PutTerm, RowHead, RowSource, SegmentInput, SegmentSummary};
use crate::error::{Error, Result};
use crate::model::{RowKind, unpack_vector};
use crate::simd::codec::Codec;
use crate::storage::vfs::VfsFile;

/// Writes a segment to `file`, which must be empty. Does not sync.
///
/// # Errors
/// What `rows` answers; `Limit` for more than 4,294,967,295 rows or a body beyond the limit; `Io`.
///
/// # Panics
/// When rows, users, sessions or tombstones are not in the order that [`RowSource`] and [`SegmentInput`] ask for, or
/// a vector or code does not have its length: bugs of the caller that must not reach a disk.
pub fn write_segment(
    file: &dyn VfsFile,
    input: &SegmentInput<'_>,
    rows: &dyn RowSource,
) -> Result<SegmentSummary> {
    assert_input(input);
    let row_count = u32::try_from(rows.len())
        .map_err(|_| Error::limit(format!("segment of {} rows", rows.len())))?;
    let directory = Directory::gather(rows)?;
    let info = Info {
        rows: row_count,
        ids: directory.id_range(),
        logs: input.logs,
        space: input.space.clone(),
        replaces: input.replaces.clone(),
    };

    let mut out = SectionWriter::new(file);
    let header = Header::encode(input.id.get(), input.database);
    out.put(&header)?;
    out.section(Section::Info, &info.encode())?;
    out.section(Section::Cells, &directory.encode_cells())?;
    out.section(Section::Names, &tables::encode_names(input))?;
    let mut tombstones = Vec::new();
    for tombstone in &input.tombstones {
        tables::encode_tombstone(tombstone, &mut tombstones);
    }
    out.section(Section::Tombstones, &tombstones)?;
    if let Some(codec) = input.codec {
        out.section(Section::Codec, &tables::encode_codec(codec))?;
    }
    write_ids(&mut out, &directory)?;
    write_heads(&mut out, rows)?;
    let speakers = SpeakerColumn::gather(rows, |row| Ok(rows.head(row)?.user))?;
    out.column(Section::Speakers, speakers.numbers.iter().map(|number| Ok(number.to_le_bytes())))?;
    let codes = match input.codec {
        Some(codec) => write_codes(&mut out, input, codec, rows)?,
        None => Codes::default(),
    };
    write_vectors(&mut out, input, rows)?;
    if input.codec.is_some() {
        clusters::write(&mut out, &directory.cells, rows, input, &codes)?;
    }
    drop(codes);
    write_bodies(&mut out, rows)?;
    write_terms(&mut out, &directory.cells, rows, &speakers.table)?;

    let header_crc = Header::decode(&header)?.crc;
    let (bytes, footer_crc) = out.finish(header_crc)?;
    Ok(SegmentSummary { bytes, footer_crc, rows: row_count, ids: info.ids })
}

fn assert_input(input: &SegmentInput<'_>) {
    assert!(
        input.users.is_sorted_by(|a, b| a.0 < b.0),
        "users of a segment come in ascending order, each once"
    );
    assert!(
        input.sessions.is_sorted_by(|a, b| a.0 < b.0),
        "sessions of a segment come in ascending order, each once"
    );
    assert!(
        input.tombstones.is_sorted_by(|a, b| (a.id, a.version) < (b.id, b.version)),
        "tombstones of a segment come in ascending order, each once"
    );
    assert!(input.logs.0 <= input.logs.1, "the first log is not behind the last");
}

/// What one pass over the heads finds: the cells, and the ids in both orders.
struct Directory {
    cells: Vec<Cell>,
    ids: Vec<u64>,
    versions: Vec<u32>,
    /// Rows sorted by (id, version).
    order: Vec<u32>,
}

impl Directory {
    fn gather(rows: &dyn RowSource) -> Result<Directory> {
        let mut cells: Vec<Cell> = Vec::new();
        let (mut ids, mut versions) = (Vec::new(), Vec::new());
        let mut last = None;
        for row in 0..rows.len() as u32 {
            let head = rows.head(row as usize)?;
            let place = (head.user, head.kind, head.cluster, head.id, head.version);
            assert!(
                last.is_none_or(|last| last < place),
                "rows of a segment come in order of user, kind, cluster, id and version"
            );
            last = Some(place);
            ids.push(head.id.get());
            versions.push(head.version);
            match cells.last_mut() {
                Some(cell)
                    if (cell.user, cell.kind, cell.cluster)
                        == (head.user, head.kind, head.cluster) =>
                {
                    cell.rows.end = row + 1;
                    cell.min_time = cell.min_time.min(head.time);
                    cell.max_time = cell.max_time.max(head.time);
                }
                _ => cells.push(Cell {
                    user: head.user,
                    kind: head.kind,
                    cluster: head.cluster,
                    rows: row..row + 1,
                    min_time: head.time,
                    max_time: head.time,
                }),
            }
        }
        let key = |row: &u32| (ids[*row as usize], versions[*row as usize]);
        let mut order: Vec<u32> = (0..ids.len() as u32).collect();
        order.sort_unstable_by_key(key);
        assert!(
            order.is_sorted_by(|a, b| key(a) < key(b)),
            "each version of an episode is in a segment once"
        );
        Ok(Directory { cells, ids, versions, order })
    }

    fn id_range(&self) -> (u64, u64) {
        match (self.order.first(), self.order.last()) {
            (Some(first), Some(last)) => (self.ids[*first as usize], self.ids[*last as usize]),
            _ => (0, 0),
        }
    }

    fn encode_cells(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for cell in &self.cells {
            tables::encode_cell(cell, &mut bytes);
        }
        bytes
    }
}

fn write_ids(out: &mut SectionWriter<'_>, directory: &Directory) -> Result<()> {
    let Directory { ids, versions, order, .. } = directory;
    out.column(Section::Ids, ids.iter().map(|id| Ok(id.to_le_bytes())))?;
    out.column(Section::Versions, versions.iter().map(|version| Ok(version.to_le_bytes())))?;
    let sorted = order.iter().map(|row| Ok(ids[*row as usize].to_le_bytes()));
    out.column(Section::SortedIds, sorted)?;
    out.column(Section::IdOrder, order.iter().map(|row| Ok(row.to_le_bytes())))
}

fn write_heads(out: &mut SectionWriter<'_>, rows: &dyn RowSource) -> Result<()> {
    write_head(out, rows, Section::Times, |head| head.time.to_le_bytes())?;
    write_head(out, rows, Section::RecordTimes, |head| head.record_time.to_le_bytes())?;
    write_head(out, rows, Section::FirstRecordTimes, |head| head.first_record_time.to_le_bytes())?;
    write_head(out, rows, Section::Expires, |head| head.expires.to_le_bytes())?;
    write_head(out, rows, Section::Sessions, |head| head.session.get().to_le_bytes())?;
    write_head(out, rows, Section::Ordinals, |head| head.ordinal.to_le_bytes())?;
    write_head(out, rows, Section::Offsets, |head| head.offset_minutes.to_le_bytes())?;
    write_head(out, rows, Section::TextBytes, |head| head.text_bytes.to_le_bytes())?;
    write_head(out, rows, Section::Flags, |head| {
        let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
        [flag(head.has_vector, ROW_HAS_VECTOR)
            | flag(head.shape.has_time, ROW_HAS_TIME)
            | flag(head.expires != i64::MAX, ROW_EXPIRES)]
    })?;
    write_head(out, rows, Section::Words, |head| head.shape.words.to_le_bytes())?;
    write_head(out, rows, Section::ContentWords, |head| head.shape.content_words.to_le_bytes())
}

fn write_head<const W: usize>(
    out: &mut SectionWriter<'_>,
    rows: &dyn RowSource,
    section: Section,
    field: impl Fn(&RowHead) -> [u8; W],
) -> Result<()> {
    out.column(section, (0..rows.len()).map(|row| Ok(field(&rows.head(row)?))))
}

/// The codes of all rows, which their clusters repeat in another order.
#[derive(Default)]
pub(super) struct Codes {
    pub code_bytes: usize,
    pub codes: Vec<u8>,
    pub factors: Vec<f32>,
}

fn write_codes(
    out: &mut SectionWriter<'_>,
    input: &SegmentInput<'_>,
    codec: &Codec,
    rows: &dyn RowSource,
) -> Result<Codes> {
    let code_bytes = codec.code_bytes();
    assert!(
        codec.dimension() == input.space.dimension as usize && code_bytes <= CODE_BYTES_MAX,
        "the codec is made for the vector space"
    );
    let mut codes = Codes { code_bytes, ..Codes::default() };
    let (mut code, mut stored, mut values) = (Vec::new(), Vec::new(), Vec::new());
    out.begin(Section::Codes, code_bytes, 0)?;
    for row in 0..rows.len() {
        code.clear();
        let mut factor = 0.0;
        if rows.head(row)?.has_vector {
            factor = match rows.code(row, codec, &mut code)? {
                Some(factor) => factor,
                None => {
                    code.clear();
                    stored.clear();
                    rows.vector(row, &mut stored)?;
                    unpack_vector(&stored, input.space.element, &mut values);
                    codec.encode(&values, &mut code)
                }
            };
            assert!(code.len() == code_bytes, "a code has the codec's length");
        }
        code.resize(code_bytes, 0);
        out.put(&code)?;
        codes.codes.extend_from_slice(&code);
        codes.factors.push(factor);
    }
    out.end()?;
    out.column(Section::Factors, codes.factors.iter().map(|factor| Ok(factor.to_le_bytes())))?;
    Ok(codes)
}

fn write_vectors(
    out: &mut SectionWriter<'_>,
    input: &SegmentInput<'_>,
    rows: &dyn RowSource,
) -> Result<()> {
    let vector_bytes = input.space.vector_bytes();
    let mut stored = Vec::with_capacity(vector_bytes);
    out.begin(Section::Vectors, vector_bytes, 0)?;
    for row in 0..rows.len() {
        stored.clear();
        if rows.head(row)?.has_vector {
            rows.vector(row, &mut stored)?;
            assert!(stored.len() == vector_bytes, "a vector has the length of its space");
        }
        stored.resize(vector_bytes, 0);
        out.put(&stored)?;
    }
    out.end()
}

fn write_bodies(out: &mut SectionWriter<'_>, rows: &dyn RowSource) -> Result<()> {
    out.begin(Section::TextBlocks, 0, OWN_CHECKSUMS)?;
    let mut blocks = BlockWriter::new(out.position())?;
    let mut places = Vec::with_capacity(rows.len());
    let mut body = Vec::new();
    for row in 0..rows.len() {
        body.clear();
        rows.body(row, &mut body)?;
        let head = rows.head(row)?;
        let place = blocks
            .push(head.user, &body, &mut |bytes| out.put(bytes))
            .map_err(|error| error.of(head.id.get()))?;
        places.push(place.encode());
    }
    let table = blocks.finish(&mut |bytes| out.put(bytes))?;
    out.end()?;
    out.section(Section::BlockTable, &table)?;
    out.column(Section::BodyPlaces, places.into_iter().map(Ok))
}

/// Posting lists, passages, speakers' names and lexicons.
fn write_terms(
    out: &mut SectionWriter<'_>,
    cells: &[Cell],
    rows: &dyn RowSource,
    speaker_names: &[u8],
) -> Result<()> {
    let starts = passage_starts(cells, rows)?;
    let mut lexicons = LexiconWriter::default();
    out.begin(Section::Postings, 0, 0)?;
    let mut at = 0;
    while let Some(first) = cells.get(at) {
        let is_same = |cell: &&Cell| (cell.user, cell.kind) == (first.user, first.kind);
        at += cells[at..].iter().take_while(is_same).count();
        let range = first.rows.start as usize..cells[at - 1].rows.end as usize;
        let passages = starts[range.start]..starts[range.end];
        if passages.is_empty() {
            continue;
        }
        let terms = |put: &mut PutTerm<'_>| rows.terms(range, &starts, put);
        lexicons.user(first.user, passages, terms, &mut |list| out.put(list))?;
    }
    out.end()?;
    out.column(Section::PassageStarts, starts.iter().map(|start| Ok(start.to_le_bytes())))?;
    let mut lengths: Vec<PassageLength> = Vec::new();
    out.begin(Section::PassageLengths, Section::PassageLengths.item_bytes(), 0)?;
    for row in 0..rows.len() {
        lengths.clear();
        rows.passages(row, &mut lengths)?;
        for length in &lengths {
            out.put(&length.encode())?;
        }
    }
    out.end()?;
    out.section(Section::SpeakerNames, speaker_names)?;
    let (directory, terms) = lexicons.finish();
    out.section(Section::Lexicons, &directory)?;
    out.section(Section::Terms, &terms)
}

/// The numbers of the rows' first passages and, at the end, the number of passages.
fn passage_starts(cells: &[Cell], rows: &dyn RowSource) -> Result<Vec<u32>> {
    let mut starts = Vec::with_capacity(rows.len() + 1);
    let (mut next, mut lengths) = (0, Vec::new());
    starts.push(next);
    for cell in cells {
        for row in cell.rows.clone() {
            lengths.clear();
            rows.passages(row as usize, &mut lengths)?;
            assert!(
                lengths.is_empty() || cell.kind == RowKind::Episode,
                "only episodes have passages"
            );
            next = u32::try_from(lengths.len())
                .ok()
                .and_then(|count| count.checked_add(next))
                .ok_or_else(|| Error::limit("segment of more than 4294967295 passages"))?;
            starts.push(next);
        }
    }
    Ok(starts)
}
