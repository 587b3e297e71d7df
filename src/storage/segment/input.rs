//! Bytes, read from front to back.

use crate::error::{Error, Result};

/// Reads bytes from front to back. Running out of them is [`crate::ErrorKind::Corrupt`] at the byte where it happened.
pub struct Input<'a> {
    bytes: &'a [u8],
    position: usize,
    /// Where `bytes` lie in the file, for messages.
    offset: u64,
    what: &'static str,
}

macro_rules! integers {
    ($($name:ident: $type:ty,)*) => {
        $(
            pub fn $name(&mut self) -> Result<$type> {
                Ok(<$type>::from_le_bytes(self.array()?))
            }
        )*
    };
}

impl<'a> Input<'a> {
    pub fn new(bytes: &'a [u8], offset: u64, what: &'static str) -> Input<'a> {
        Input { bytes, position: 0, offset, what }
    }

    integers! { u8: u8, u16: u16, u32: u32, u64: u64, i64: i64, f32: f32, }

    /// The next `count` bytes.
    pub fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let taken = self.bytes[self.position..].get(..count);
        let taken = taken.ok_or_else(|| self.corrupt("ends early"))?;
        self.position += count;
        Ok(taken)
    }

    pub fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        Ok(self.take(N)?.try_into().expect("take gives as many bytes as asked"))
    }

    /// A count of things that take at least `item_bytes` each, checked against the bytes that are left.
    pub fn count(&mut self, item_bytes: usize) -> Result<usize> {
        let count = self.u32()? as usize;
        match count.checked_mul(item_bytes) {
            Some(bytes) if bytes <= self.left() => Ok(count),
            _ => Err(self.corrupt("holds a count beyond its length")),
        }
    }

    /// Bytes not read yet.
    pub fn left(&self) -> usize {
        self.bytes.len() - self.position
    }

    /// Checks that everything was read.
    pub fn finish(self) -> Result<()> {
        if self.left() == 0 { Ok(()) } else { Err(self.corrupt("is longer than its contents")) }
    }

    /// An error about what is read, at the byte reached.
    pub fn corrupt(&self, problem: &str) -> Error {
        Error::corrupt(format!("segment {} {problem}", self.what))
            .at_byte(self.offset + self.position as u64)
    }
}
