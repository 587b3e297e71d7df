//! A whole bundle in one input: its files one after another, zeros left out.
//!
//! Any bytes are an image. A part: kind (1 byte), number of the file (1), length of the part's data (4, little-endian,
//! cut to what is there), data. The data are runs: zeros to skip in units of 16 bytes (2, little-endian), length of
//! the bytes that follow (2, little-endian), the bytes.

use std::path::Path;
use std::sync::Arc;

use loomdb::internals::ids::{LogId, SegmentId};
use loomdb::internals::storage::bundle::{Bundle, LockName};
use loomdb::internals::storage::vfs::{MemoryVfs, OpenMode, Vfs};

use super::DATABASE;

/// Where the bundle lies.
pub const ROOT: &str = "/f.loom";
/// Bytes of one file of an image, at most.
const FILE_BYTES_MAX: usize = 16 << 20;
/// Bytes that a run of zeros is counted in.
const UNIT: usize = 16;

/// Kinds of files.
const CATALOG: u8 = 0;
const LOG: u8 = 1;
const SEGMENT: u8 = 2;
const STATE: u8 = 3;
const FORMAT: u8 = 4;

/// One part of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    pub kind: u8,
    pub number: u8,
    pub contents: Vec<u8>,
}

/// The parts of an image, at most eight.
pub fn parts(mut data: &[u8]) -> Vec<Part> {
    let mut parts = Vec::new();
    while let Some((head, rest)) = data.split_first_chunk::<6>() {
        let length = u32::from_le_bytes([head[2], head[3], head[4], head[5]]) as usize;
        let (runs, rest) = rest.split_at(length.min(rest.len()));
        data = rest;
        parts.push(Part { kind: head[0] % 5, number: head[1], contents: unpack(runs) });
        if parts.len() == 8 {
            break;
        }
    }
    parts
}

/// The image of some parts.
pub fn pack(parts: &[Part]) -> Vec<u8> {
    let mut out = Vec::new();
    for part in parts {
        let runs = pack_runs(&part.contents);
        out.extend([part.kind, part.number]);
        out.extend((runs.len() as u32).to_le_bytes());
        out.extend(runs);
    }
    out
}

fn unpack(mut runs: &[u8]) -> Vec<u8> {
    let mut contents = Vec::new();
    while let Some((head, rest)) = runs.split_first_chunk::<4>() {
        let zeros = usize::from(u16::from_le_bytes([head[0], head[1]])) * UNIT;
        let length = usize::from(u16::from_le_bytes([head[2], head[3]]));
        let (bytes, rest) = rest.split_at(length.min(rest.len()));
        runs = rest;
        if contents.len() + zeros + bytes.len() > FILE_BYTES_MAX {
            break;
        }
        contents.resize(contents.len() + zeros, 0);
        contents.extend(bytes);
    }
    contents
}

fn pack_runs(contents: &[u8]) -> Vec<u8> {
    let is_zero = |chunk: &[u8]| chunk.len() == UNIT && chunk.iter().all(|byte| *byte == 0);
    let chunks: Vec<&[u8]> = contents.chunks(UNIT).collect();
    let mut out = Vec::new();
    let mut at = 0;
    while at < chunks.len() {
        let start = at;
        while at < chunks.len() && is_zero(chunks[at]) && at - start < usize::from(u16::MAX) {
            at += 1;
        }
        out.extend(((at - start) as u16).to_le_bytes());
        let start = at;
        while at < chunks.len() && !is_zero(chunks[at]) && (at - start + 1) * UNIT < 65_536 {
            at += 1;
        }
        let bytes = chunks[start..at].concat();
        out.extend((bytes.len() as u16).to_le_bytes());
        out.extend(bytes);
    }
    out
}

/// A disk with the bundle of an image. What makes a bundle at all (directories, lock files, `FORMAT`) is there even
/// when the image holds none of it; `TRUST` never is, so that the catalog is checked at the first open.
pub fn disk(data: &[u8]) -> Arc<dyn Vfs> {
    let vfs: Arc<dyn Vfs> = Arc::new(MemoryVfs::new());
    let bundle = Bundle::new(vfs.clone(), Path::new(ROOT), false);
    let locks = bundle.root().join("locks");
    for directory in [bundle.root(), &bundle.log_dir(), &bundle.segment_dir(), &locks] {
        vfs.create_dir(directory).expect("an empty disk takes a directory");
    }
    let put = |path: &Path, contents: &[u8]| {
        let file = vfs.open(path, OpenMode::Create).expect("a directory takes a file");
        file.set_len(0).expect("a file is cut");
        file.write_all_at(0, contents).expect("memory takes every byte");
    };
    for lock in [
        LockName::Writer,
        LockName::Checkpoint,
        LockName::Rewrite,
        LockName::Files,
        LockName::Opening,
        LockName::Open,
    ] {
        put(&bundle.lock(lock), b"");
    }
    let format = bundle.root().join("FORMAT");
    put(&format, format_text().as_bytes());
    for part in parts(data) {
        let number = u64::from(part.number);
        let path = match part.kind {
            CATALOG => bundle.catalog(),
            LOG => bundle.log(LogId::new(number)),
            SEGMENT => bundle.segment(SegmentId::new(number)),
            STATE => bundle.state(),
            FORMAT => format.clone(),
            _ => unreachable!("kinds are read modulo five"),
        };
        put(&path, &part.contents);
    }
    vfs
}

/// The image of the bundle at [`ROOT`] of a disk.
pub fn of_disk(vfs: &Arc<dyn Vfs>) -> Vec<u8> {
    let bundle = Bundle::new(vfs.clone(), Path::new(ROOT), false);
    let read = |path: &Path| {
        let file = vfs.open(path, OpenMode::Read).expect("the file is there");
        let mut contents = vec![0; file.len().expect("it is open") as usize];
        file.read_exact_at(0, &mut contents).expect("memory is read whole");
        contents
    };
    let part = |kind: u8, number: u64, path: &Path| {
        let number = u8::try_from(number).expect("seeds have few files");
        Part { kind, number, contents: read(path) }
    };
    let mut parts = Vec::new();
    for log in bundle.logs().expect("a directory is listed") {
        parts.push(part(LOG, log.get(), &bundle.log(log)));
    }
    for segment in bundle.segments().expect("a directory is listed").0 {
        parts.push(part(SEGMENT, segment.get(), &bundle.segment(segment)));
    }
    parts.push(part(STATE, 0, &bundle.state()));
    parts.push(part(CATALOG, 0, &bundle.catalog()));
    pack(&parts)
}

fn format_text() -> String {
    let database = u128::from_be_bytes(DATABASE);
    let body = format!("LoomDB database\nformat 1\ndatabase {database:032x}\n");
    format!("{body}crc {:08x}\n", crc32fast::hash(body.as_bytes()))
}
