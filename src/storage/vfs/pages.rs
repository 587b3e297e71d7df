//! The contents of a file held in memory: pages shared between copies until one of them writes.
//!
//! Invariants: bytes of the last page beyond the length are zero, so that growing a file shows zeros; there is exactly
//! one slot for every page that the length touches. A copy costs one counter, whatever the length.

use std::io;
use std::sync::Arc;

/// Bytes of a page: the usual page of an operating system.
const PAGE_BYTES: usize = 4096;
/// Length of a file in memory, at most. A stated guess: above any database kept in memory, and a wild `set_len` costs
/// a bounded page table.
const FILE_BYTES_MAX: u64 = 1 << 36;

type Page = [u8; PAGE_BYTES];

/// Bytes of one file. A page that was never written is absent and reads as zeros.
#[derive(Clone, Default)]
pub(super) struct Pages {
    len: u64,
    slots: Arc<Vec<Option<Arc<Page>>>>,
}

impl Pages {
    /// Bytes of the file.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Reads at `offset`; fewer bytes only at the end.
    pub(super) fn read_at(&self, offset: u64, buffer: &mut [u8]) -> usize {
        let left = self.len.saturating_sub(offset);
        let count = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
        let mut done = 0;
        while done < count {
            let (slot, at) = place(offset + done as u64);
            let part = (PAGE_BYTES - at).min(count - done);
            let target = &mut buffer[done..done + part];
            match &self.slots[slot] {
                Some(page) => target.copy_from_slice(&page[at..at + part]),
                None => target.fill(0),
            }
            done += part;
        }
        count
    }

    /// Writes all of `bytes` at `offset`; a gap behind the old end becomes zeros.
    pub(super) fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let end = offset.checked_add(bytes.len() as u64).ok_or(io::ErrorKind::FileTooLarge)?;
        if end > self.len {
            self.set_len(end)?;
        }
        let slots = Arc::make_mut(&mut self.slots);
        let mut done = 0;
        while done < bytes.len() {
            let (slot, at) = place(offset + done as u64);
            let part = (PAGE_BYTES - at).min(bytes.len() - done);
            let page = slots[slot].get_or_insert_with(|| Arc::new([0; PAGE_BYTES]));
            Arc::make_mut(page)[at..at + part].copy_from_slice(&bytes[done..done + part]);
            done += part;
        }
        Ok(())
    }

    /// Cuts the file, or extends it with zeros.
    pub(super) fn set_len(&mut self, len: u64) -> io::Result<()> {
        if len > FILE_BYTES_MAX {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let slots = Arc::make_mut(&mut self.slots);
        slots.resize((len as usize).div_ceil(PAGE_BYTES), None);
        if len < self.len {
            let (slot, at) = place(len);
            if at > 0 {
                // What is cut off must not come back when the file grows again.
                if let Some(page) = &mut slots[slot] {
                    Arc::make_mut(page)[at..].fill(0);
                }
            }
        }
        self.len = len;
        Ok(())
    }
}

/// The slot and the place inside it of a byte below [`FILE_BYTES_MAX`].
fn place(offset: u64) -> (usize, usize) {
    let page = PAGE_BYTES as u64;
    ((offset / page) as usize, (offset % page) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(pages: &Pages) -> Vec<u8> {
        let mut bytes = vec![0xEE; pages.len() as usize];
        assert_eq!(pages.read_at(0, &mut bytes), bytes.len());
        bytes
    }

    #[test]
    fn reads_and_writes_agree_with_a_plain_vector() {
        let mut pages = Pages::default();
        let mut model = Vec::new();
        let steps = [(0, 10), (4090, 20), (3, 9000), (20_000, 1), (100, 0)];
        for (round, (offset, len)) in steps.into_iter().enumerate() {
            let bytes = vec![round as u8 + 1; len];
            pages.write_at(offset as u64, &bytes).unwrap();
            if len > 0 && model.len() < offset + len {
                model.resize(offset + len, 0);
            }
            model[offset..offset + len].copy_from_slice(&bytes);
            assert_eq!(all(&pages), model);
        }
        let mut tail = [0; 8];
        assert_eq!(pages.read_at(20_000, &mut tail), 1);
        assert_eq!(pages.read_at(u64::MAX, &mut tail), 0);
    }

    #[test]
    fn what_was_cut_off_reads_as_zeros_when_the_file_grows_again() {
        let mut pages = Pages::default();
        pages.write_at(0, &[7; 9000]).unwrap();
        pages.set_len(4100).unwrap();
        pages.set_len(9000).unwrap();
        let bytes = all(&pages);
        assert!(bytes[..4100].iter().all(|&byte| byte == 7));
        assert!(bytes[4100..].iter().all(|&byte| byte == 0));
    }

    #[test]
    fn a_copy_does_not_see_later_writes() {
        let mut pages = Pages::default();
        pages.write_at(0, &[1; 5000]).unwrap();
        let copy = pages.clone();
        pages.write_at(4999, &[2]).unwrap();
        pages.set_len(6000).unwrap();
        assert_eq!(all(&copy), vec![1; 5000]);
    }

    #[test]
    fn a_wild_length_is_an_error_and_allocates_nothing() {
        let mut pages = Pages::default();
        assert!(pages.set_len(u64::MAX).is_err());
        assert!(pages.write_at(u64::MAX - 1, &[1, 2, 3]).is_err());
        assert_eq!(pages.len(), 0);
    }
}
