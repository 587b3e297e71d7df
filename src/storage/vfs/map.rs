//! The bytes of a sealed file: mapped, or held in memory.
//!
//! Invariants: the bytes start at a 64-byte boundary, so that columns of numbers can be borrowed from them. This is
//! the one file outside `simd` with `unsafe`. A map covers a published file only.

use std::fmt::{self, Debug};
use std::fs::File;
use std::io;
use std::ops::Deref;
use std::sync::Arc;

/// Alignment of the first byte of every map: a cache line, and the alignment of a segment's columns.
pub const MAP_ALIGNMENT: usize = 64;

/// The bytes of a sealed file. Cheap to clone; clones share the bytes.
#[derive(Clone)]
pub struct Map(MapKind);

#[derive(Clone)]
enum MapKind {
    Mapped(Arc<memmap2::Mmap>),
    Heap(Arc<HeapBytes>),
}

/// Bytes in memory at an aligned place inside a buffer with room to spare.
struct HeapBytes {
    buffer: Box<[u8]>,
    start: usize,
    len: usize,
}

impl Map {
    /// Bytes held in memory, copied to an aligned place.
    pub fn from_bytes(bytes: Arc<[u8]>) -> Map {
        Map::filled(bytes.len(), |buffer| buffer.copy_from_slice(&bytes))
    }

    /// `len` bytes held in memory, zero where `fill` leaves them.
    pub fn filled(len: usize, fill: impl FnOnce(&mut [u8])) -> Map {
        let mut buffer = vec![0; len + MAP_ALIGNMENT - 1].into_boxed_slice();
        // Only an interpreter that hides addresses answers with more than the spare bytes.
        let start = Some(buffer.as_ptr().align_offset(MAP_ALIGNMENT));
        let start = start.filter(|&start| start < MAP_ALIGNMENT).unwrap_or(0);
        fill(&mut buffer[start..start + len]);
        Map(MapKind::Heap(Arc::new(HeapBytes { buffer, start, len })))
    }

    /// Maps a sealed file, which must be exactly `len` bytes long.
    ///
    /// # Errors
    /// `InvalidData` when the length differs; what the system says otherwise, such as `OutOfMemory` at the limit of
    /// maps of a process, which is no sign of damage.
    pub(super) fn of_sealed_file(file: &File, len: u64) -> io::Result<Map> {
        let found = file.metadata()?.len();
        if found != len {
            return Err(wrong_length(len, found));
        }
        if len == 0 {
            return Ok(Map::filled(0, |_| {}));
        }
        let len = usize::try_from(len).map_err(|_| io::ErrorKind::OutOfMemory)?;
        let mut options = memmap2::MmapOptions::new();
        options.len(len);
        // SAFETY: the file is published and sealed: no process of ours writes or cuts it again (design 2.3), so the
        // bytes behind the borrowed slices never change. Its length was checked just now against `len`, so no page
        // of the map lies beyond its end. An unlinked file stays readable while the map lives. That other programs
        // must not write these files is told to the user in the public documentation.
        #[expect(unsafe_code, reason = "a read-only map of a sealed file, see the proof above")]
        let map = unsafe { options.map(file) }?;
        Ok(Map(MapKind::Mapped(Arc::new(map))))
    }
}

/// The error of a file whose length is not the expected one.
pub(super) fn wrong_length(expected: u64, found: u64) -> io::Error {
    let message = format!("file length {found}, expected {expected}");
    io::Error::new(io::ErrorKind::InvalidData, message)
}

impl Deref for Map {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.0 {
            MapKind::Mapped(map) => map,
            MapKind::Heap(heap) => &heap.buffer[heap.start..heap.start + heap.len],
        }
    }
}

impl Debug for Map {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Map({} bytes)", self.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_in_memory_start_at_a_64_byte_boundary() {
        for len in [0, 1, 63, 64, 65, 5000] {
            let bytes: Vec<u8> = (0..len).map(|at| at as u8).collect();
            let map = Map::from_bytes(bytes.clone().into());
            assert_eq!(&*map, &bytes[..]);
            assert_eq!(map.as_ptr() as usize % MAP_ALIGNMENT, 0);
        }
    }

    #[test]
    fn a_mapped_file_is_aligned_and_outlives_its_name() {
        let file = tempfile::tempfile().unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, &[5; 10_000], 0).unwrap();
        let map = Map::of_sealed_file(&file, 10_000).unwrap();
        drop(file);
        assert_eq!(map.as_ptr() as usize % MAP_ALIGNMENT, 0);
        assert!(map.len() == 10_000 && map.iter().all(|&byte| byte == 5));
    }

    #[test]
    fn a_file_of_another_length_is_not_mapped() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(99).unwrap();
        let error = Map::of_sealed_file(&file, 100).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        file.set_len(0).unwrap();
        assert!(Map::of_sealed_file(&file, 0).unwrap().is_empty());
    }
}
