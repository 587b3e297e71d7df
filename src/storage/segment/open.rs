//! Opens a segment: decides whether a file is the expected one and has the layout that the accessors rely on.
//!
//! Invariant: opening passes over no row, so that its cost grows with the cells and not with the rows.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use super::clusters;
use super::columns::Columns;
use super::format::{self, CELL_BYTES, Footer, Header, OWN_CHECKSUMS};
use super::reader::Segment;
use super::section::Section;
use super::tables::{self, Info};
use crate::error::{Error, Result};
use crate::ids::SegmentId;
use crate::storage::vfs::Map;

/// Numbers open segments within the process, so that a thread's last block is never taken for another segment's.
static OPENED: AtomicU64 = AtomicU64::new(0);

impl Segment {
    /// Opens the segment whose bytes are `map`. `path` is for messages. `expected` is what the manifest records: id,
    /// length and footer CRC.
    ///
    /// Reads header, footer, info, codec and cell directory; cost grows with the cells, not with the rows.
    ///
    /// # Errors
    /// `Version` for an unknown format; `Corrupt` when the file is not the one that is expected or is not laid out as
    /// format-spec.md 3 says.
    pub fn open(
        map: Map,
        path: impl Into<PathBuf>,
        database: [u8; 16],
        expected: Option<(SegmentId, u64, u32)>,
    ) -> Result<Segment> {
        let path = path.into();
        let (header, footer) =
            decode_frame(&map, database, expected).map_err(|error| error.in_file(&path))?;
        let footer_crc = footer.crc;
        let columns = Columns::new(map, path, footer);
        for section in Section::ALL.iter().filter(|section| section.is_required()) {
            columns.require(*section)?;
        }
        let info = columns.decode(Section::Info, Info::decode)?;
        let cells = columns.decode(Section::Cells, |bytes, at| {
            if !bytes.len().is_multiple_of(CELL_BYTES) {
                return Err(Error::corrupt("segment cell directory length").at_byte(at));
            }
            tables::decode_cells(bytes, at, info.rows)
        })?;
        let code_bytes = read_code_bytes(&columns, &info)?;
        let vector_bytes = info.space.vector_bytes();
        let centroid_bytes = info.space.dimension as usize * size_of::<f32>();
        check_lengths(&columns, info.rows, code_bytes, vector_bytes, centroid_bytes)?;
        let clusters = clusters::open(&columns, code_bytes, centroid_bytes)?;
        Ok(Segment {
            columns,
            info,
            cells,
            clusters,
            code_bytes,
            vector_bytes,
            id: SegmentId::new(header.segment),
            footer_crc,
            unknown_ro_compat: header.ro_compat != 0,
            cache: None,
            opened: OPENED.fetch_add(1, Ordering::Relaxed),
            user_names: std::sync::OnceLock::new(),
            centroids: std::sync::OnceLock::new(),
            speaker_names: std::sync::OnceLock::new(),
        })
    }
}

/// Header and footer, and whether they are the expected ones.
fn decode_frame(
    file: &[u8],
    database: [u8; 16],
    expected: Option<(SegmentId, u64, u32)>,
) -> Result<(Header, Footer)> {
    let header = Header::decode(file)?;
    if header.database != database {
        return Err(Error::corrupt("segment belongs to another database").at_byte(40));
    }
    if let Some((id, bytes, _)) = expected {
        if header.segment != id.get() {
            return Err(Error::corrupt(format!(
                "segment {} where segment {id} belongs",
                header.segment
            ))
            .at_byte(32));
        }
        if file.len() as u64 != bytes {
            return Err(Error::corrupt(format!(
                "segment of {} bytes where {bytes} were written",
                file.len()
            )));
        }
    }
    let footer = Footer::decode(file, header.crc)?;
    if let Some((_, _, crc)) = expected
        && footer.crc != crc
    {
        return Err(format::checksum("segment footer", crc, footer.crc).at_byte(footer.offset));
    }
    Ok((header, footer))
}

/// Codec, codes and factors come together or not at all.
fn read_code_bytes(columns: &Columns, info: &Info) -> Result<Option<usize>> {
    let has = |section| columns.place(section).is_some();
    match (has(Section::Codec), has(Section::Codes), has(Section::Factors)) {
        (false, false, false) => Ok(None),
        (true, true, true) => {
            let dimension = info.space.dimension;
            let decode = |bytes: &[u8], at| tables::decode_codec(bytes, at, dimension);
            Ok(Some(columns.decode(Section::Codec, decode)?.code_bytes as usize))
        }
        _ => Err(columns.corrupt("segment has codes in part only", columns.footer_at())),
    }
}

/// Every known section has the flags and the item width of its kind and holds whole items; every column has one item
/// a row.
fn check_lengths(
    columns: &Columns,
    rows: u32,
    code_bytes: Option<usize>,
    vector_bytes: usize,
    centroid_bytes: usize,
) -> Result<()> {
    for entry in columns.entries() {
        let known = Section::ALL.iter().find(|section| **section as u16 == entry.kind);
        let Some(section) = known else { continue };
        let width = match section {
            Section::Codes | Section::ClusterCodes => code_bytes.unwrap_or(0),
            Section::Vectors => vector_bytes,
            Section::Centroids => centroid_bytes,
            _ => section.item_bytes(),
        } as u64;
        let holds = match (section.is_column(), width) {
            (true, _) => entry.len == u64::from(rows) * width,
            (false, _) if *section == Section::PassageStarts => {
                entry.len == (u64::from(rows) + 1) * width
            }
            (false, _) if *section == Section::PassageLengths => {
                entry.len.is_multiple_of(width) && entry.len / width <= u64::from(u32::MAX)
            }
            (false, 0) => true,
            (false, _) => entry.len.is_multiple_of(width),
        };
        // A flag may not take away the checksums that readers rely on.
        let flags = if *section == Section::TextBlocks { OWN_CHECKSUMS } else { 0 };
        if !holds || u64::from(entry.item_bytes) != width || entry.flags != flags {
            return Err(columns.corrupt(
                format!("segment section of {} does not have its shape", section.name()),
                entry.offset,
            ));
        }
    }
    Ok(())
}
