//! The rows of one episode in a segment.

/// Rows of one episode, ascending by version.
#[derive(Clone, Debug)]
pub struct Rows<'a> {
    pub(super) rows: std::slice::Iter<'a, [u8; 4]>,
}

impl Iterator for Rows<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        self.rows.next().map(|row| u32::from_le_bytes(*row))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.rows.size_hint()
    }
}

impl DoubleEndedIterator for Rows<'_> {
    fn next_back(&mut self) -> Option<u32> {
        self.rows.next_back().map(|row| u32::from_le_bytes(*row))
    }
}

impl ExactSizeIterator for Rows<'_> {}
