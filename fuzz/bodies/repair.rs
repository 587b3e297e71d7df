//! Makes the checksums of damaged files hold again, so that a fuzzer gets past them to the code behind.
//!
//! Follows the lengths that the damaged bytes state, as far as they make sense; format-spec.md tells the layouts.

/// Bytes of a log's header, a frame's header, and a mark's payload.
const LOG_HEADER: usize = 128;
const FRAME_HEADER: usize = 24;
const MARK: usize = 48;
const KIND_MARK: u16 = 1;

/// Bytes of a segment's header, of a row of its section table, and of its trailer.
const SEGMENT_HEADER: usize = 64;
const ENTRY: usize = 24;
const TRAILER: usize = 32;
/// Bytes of a section that share a checksum.
const CHECK: usize = 64 << 10;
/// The section whose bytes are covered by the block table instead, and the table itself.
const TEXT_BLOCKS: u16 = 40;
const BLOCK_TABLE: u16 = 41;
const OWN_CHECKSUMS: u16 = 1;

/// Repairs a log: header, frames, and what marks say of their batches.
pub fn log(bytes: &mut [u8]) {
    if bytes.len() < LOG_HEADER {
        return;
    }
    put(bytes, 124, crc32fast::hash(&bytes[..124]));
    let salt = u32_at(bytes, 72).unwrap_or(0);
    let first_seq = u64_at(bytes, 40).unwrap_or(0);
    let (mut at, mut batch, mut frames, mut seq) = (LOG_HEADER, LOG_HEADER, 0_u32, first_seq);
    while let Some(length) = u32_at(bytes, at) {
        let body = at + FRAME_HEADER;
        if body > bytes.len() {
            break;
        }
        let Some(end) = body.checked_add(length as usize).filter(|end| *end <= bytes.len()) else {
            break;
        };
        bytes[at + 8..at + 16].copy_from_slice(&seq.to_le_bytes());
        let is_mark = u16::from_le_bytes([bytes[at + 16], bytes[at + 17]]) == KIND_MARK;
        if is_mark && length as usize == MARK {
            let crc = seeded(salt, &[&bytes[batch..at]]);
            bytes[body..body + 8].copy_from_slice(&(batch as u64).to_le_bytes());
            bytes[body + 8..body + 16].copy_from_slice(&((at - batch) as u64).to_le_bytes());
            put(bytes, body + 16, crc);
            put(bytes, body + 20, frames);
        }
        let crc = seeded(salt, &[&bytes[at..at + 4], &bytes[at + 8..end]]);
        put(bytes, at + 4, crc);
        let next = at + (FRAME_HEADER + length as usize).next_multiple_of(8);
        if is_mark {
            (batch, frames, seq) = (next, 0, seq.wrapping_add(1));
        } else {
            frames += 1;
        }
        at = next;
    }
}

/// Repairs the slots of `locks/state` that were ever written.
pub fn state(bytes: &mut [u8]) {
    for slot in bytes.as_chunks_mut::<64>().0.iter_mut().filter(|slot| slot[..4] == *b"LST1") {
        let crc = crc32fast::hash(&slot[..60]);
        slot[60..].copy_from_slice(&crc.to_le_bytes());
    }
}

/// Repairs a segment: header, blocks of text, sections, footer.
pub fn segment(bytes: &mut [u8]) {
    if bytes.len() < SEGMENT_HEADER + TRAILER {
        return;
    }
    let header = crc32fast::hash(&bytes[..60]);
    put(bytes, 60, header);
    let trailer = bytes.len() - TRAILER;
    put(bytes, trailer + 8, header);
    sections(bytes, trailer);
    let length = u32_at(bytes, trailer + 16).unwrap_or(0) as usize;
    if let Some(start) = bytes.len().checked_sub(length).filter(|start| *start <= trailer) {
        put(bytes, trailer + 20, crc32fast::hash(&bytes[start..trailer + 20]));
    }
}

/// Repairs the checksums of the sections that the table before the trailer names.
fn sections(bytes: &mut [u8], trailer: usize) -> Option<()> {
    let count = u32_at(bytes, trailer)? as usize;
    let length = u32_at(bytes, trailer + 16)? as usize;
    let table = bytes.len().checked_sub(length)?;
    let mut check = table.checked_add(count.checked_mul(ENTRY)?)?;
    if check > trailer {
        return None;
    }
    let entry = |bytes: &[u8], number: usize| {
        let at = table + number * ENTRY;
        let kind = u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let flags = u16::from_le_bytes([bytes[at + 2], bytes[at + 3]]);
        let start = usize::try_from(u64_at(bytes, at + 8)?).ok()?;
        let end = start.checked_add(usize::try_from(u64_at(bytes, at + 16)?).ok()?)?;
        (end <= table).then_some((kind, flags, start..end))
    };
    // The block table first: it is a section too.
    for number in 0..count {
        let Some((BLOCK_TABLE, _, range)) = entry(bytes, number) else { continue };
        for at in range.step_by(24) {
            let place = u64_at(bytes, at)? as usize;
            let stored = u32_at(bytes, at + 8)? as usize;
            let end = place.checked_add(stored)?;
            if let Some(block) = bytes.get(place..end) {
                put(bytes, at + 16, crc32fast::hash(block));
            }
        }
    }
    for number in 0..count {
        let (kind, flags, range) = entry(bytes, number)?;
        if kind == TEXT_BLOCKS || flags & OWN_CHECKSUMS != 0 {
            continue;
        }
        for start in range.clone().step_by(CHECK) {
            if check + 4 > trailer {
                return None;
            }
            put(bytes, check, crc32fast::hash(&bytes[start..range.end.min(start + CHECK)]));
            check += 4;
        }
    }
    Some(())
}

/// Repairs the logs and states of an image, see [`super::image`]. Segments are left: the catalog holds their
/// checksums, and its own pages hold theirs.
pub fn image(data: &[u8]) -> Vec<u8> {
    let mut parts = super::image::parts(data);
    for part in &mut parts {
        match part.kind {
            1 => log(&mut part.contents),
            3 => state(&mut part.contents),
            _ => {}
        }
    }
    super::image::pack(&parts)
}

fn seeded(salt: u32, pieces: &[&[u8]]) -> u32 {
    let mut hasher = crc32fast::Hasher::new_with_initial(salt);
    pieces.iter().for_each(|piece| hasher.update(piece));
    hasher.finalize()
}

fn put(bytes: &mut [u8], at: usize, crc: u32) {
    if let Some(place) = bytes.get_mut(at..).and_then(|rest| rest.first_chunk_mut()) {
        *place = crc.to_le_bytes();
    }
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
}
