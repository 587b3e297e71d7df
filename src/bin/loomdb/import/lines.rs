//! Lines of a file or a stream that nobody vouches for: bounded, decompressed when they are gzip, checked as UTF-8.
//!
//! Invariant: no input makes this hold more than [`DOCUMENT_BYTES_MAX`] bytes, however long its lines are and however
//! well they compress.

use std::io::{self, BufRead, BufReader, Read};

use flate2::bufread::MultiGzDecoder;
use loomdb::{Error, Result};

/// Bytes of a line, at most: a text of 16 MiB, the largest that is stored, and 1 MiB for the rest of its turn.
pub const LINE_BYTES_MAX: usize = 17 << 20;
/// Bytes of a JSON document that spans several lines, at most. A stated guess: some hundred thousand messages.
pub const DOCUMENT_BYTES_MAX: usize = 64 << 20;

const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
const BYTE_ORDER_MARK: &str = "\u{feff}";

/// Reads an input line by line and counts the lines from 1.
pub struct Lines<'a> {
    input: Box<dyn BufRead + 'a>,
    compressed: bool,
    number: u64,
    buffer: Vec<u8>,
}

impl<'a> Lines<'a> {
    /// Lines of `input`, which is decompressed if it starts like gzip.
    ///
    /// # Errors
    /// [`loomdb::ErrorKind::Io`] when the first bytes cannot be read.
    pub fn new(input: impl Read + 'a) -> Result<Lines<'a>> {
        let mut input = BufReader::with_capacity(1 << 16, input);
        // A stream may hand out its first byte alone, so the look ahead goes through a small copy.
        let mut head = Vec::with_capacity(GZIP_MAGIC.len());
        let read = (&mut input).take(GZIP_MAGIC.len() as u64).read_to_end(&mut head);
        read.map_err(|cause| Error::io("read", cause))?;
        let compressed = head == GZIP_MAGIC;
        let whole = io::Cursor::new(head).chain(input);
        let input: Box<dyn BufRead + 'a> = if compressed {
            Box::new(BufReader::with_capacity(1 << 16, MultiGzDecoder::new(whole)))
        } else {
            Box::new(whole)
        };
        Ok(Lines { input, compressed, number: 0, buffer: Vec::new() })
    }

    /// The number of the line that was read last; 0 before the first.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The next line without its end, or `None` behind the last.
    ///
    /// # Errors
    /// `Limit` for a line above [`LINE_BYTES_MAX`], `Invalid` for bytes that are not UTF-8 or a damaged gzip stream,
    /// `Io` when the input cannot be read.
    pub fn next_line(&mut self) -> Result<Option<&str>> {
        self.buffer.clear();
        self.number += 1;
        // Room for the end of the line, `\r\n`.
        let read = self.fill(LINE_BYTES_MAX + 2)?;
        if read == 0 {
            self.number -= 1;
            return Ok(None);
        }
        let mut length = self.buffer.len();
        if self.buffer.ends_with(b"\n") {
            length -= 1;
            if self.buffer[..length].ends_with(b"\r") {
                length -= 1;
            }
        }
        if length > LINE_BYTES_MAX {
            return Err(Error::limit(format!("line is longer than {LINE_BYTES_MAX} bytes")));
        }
        let line = utf8(&self.buffer[..length])?;
        let first = self.number == 1;
        Ok(Some(if first { line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line) } else { line }))
    }

    /// Everything from the line that was read last to the end, as one text.
    ///
    /// # Errors
    /// As [`Lines::next_line`]; `Limit` above [`DOCUMENT_BYTES_MAX`].
    pub fn document(&mut self) -> Result<&str> {
        while self.fill(DOCUMENT_BYTES_MAX + 1 - self.buffer.len())? > 0 {
            if self.buffer.len() > DOCUMENT_BYTES_MAX {
                return Err(Error::limit(format!(
                    "document is longer than {DOCUMENT_BYTES_MAX} bytes: write one conversation a line"
                )));
            }
        }
        let text = utf8(&self.buffer)?;
        Ok(text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text))
    }

    /// Reads on behind what the buffer holds, up to the end of a line and `bytes_max` bytes.
    fn fill(&mut self, bytes_max: usize) -> Result<usize> {
        let mut bounded = (&mut self.input).take(bytes_max as u64);
        bounded.read_until(b'\n', &mut self.buffer).map_err(|cause| {
            let damaged = matches!(
                cause.kind(),
                io::ErrorKind::UnexpectedEof
                    | io::ErrorKind::InvalidInput
                    | io::ErrorKind::InvalidData
            );
            if self.compressed && damaged {
                Error::invalid("gzip stream is damaged or cut off").because(cause)
            } else {
                Error::io("read", cause)
            }
        })
    }
}

fn utf8(bytes: &[u8]) -> Result<&str> {
    std::str::from_utf8(bytes).map_err(|cause| {
        Error::invalid(format!("not UTF-8 at byte {} of the line", cause.valid_up_to()))
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use loomdb::ErrorKind;

    fn all(input: &[u8]) -> Result<Vec<String>> {
        let mut lines = Lines::new(input)?;
        let mut out = Vec::new();
        while let Some(line) = lines.next_line()? {
            out.push(line.to_owned());
        }
        assert_eq!(lines.number(), out.len() as u64);
        Ok(out)
    }

    #[track_caller]
    fn check(input: &[u8], expected: &[&str]) {
        assert_eq!(all(input).unwrap(), expected);
    }

    fn gzip(input: &[u8]) -> Vec<u8> {
        let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        writer.write_all(input).unwrap();
        writer.finish().unwrap()
    }

    #[test]
    fn line_ends_and_the_byte_order_mark_are_taken_off() {
        check(b"", &[]);
        check(b"a", &["a"]);
        check(b"a\nb\n", &["a", "b"]);
        check(b"\xef\xbb\xbfa\r\n\r\nb\r", &["a", "", "b\r"]);
    }

    #[test]
    fn gzip_is_told_by_its_bytes_and_may_have_several_members() {
        let two = [gzip(b"a\nb"), gzip(b"c\n")].concat();
        check(&two, &["a", "bc"]);
        let cut = &two[..two.len() - 9];
        assert_eq!(all(cut).unwrap_err().kind(), ErrorKind::Invalid);
    }

    #[test]
    fn a_stream_that_comes_in_single_bytes_is_told_the_same() {
        struct Drip<'a>(&'a [u8]);
        impl Read for Drip<'_> {
            fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
                let length = out.len().min(1);
                self.0.read(&mut out[..length])
            }
        }
        let packed = gzip(b"a\nb\n");
        let mut lines = Lines::new(Drip(&packed)).unwrap();
        assert_eq!(lines.next_line().unwrap(), Some("a"));
        assert_eq!(lines.next_line().unwrap(), Some("b"));
        assert_eq!(lines.next_line().unwrap(), None);
    }

    #[test]
    fn an_endless_line_is_refused_before_it_is_held() {
        let mut lines = Lines::new(io::repeat(b'x')).unwrap();
        assert_eq!(lines.next_line().unwrap_err().kind(), ErrorKind::Limit);
        assert!(lines.buffer.len() <= LINE_BYTES_MAX + 2);
        let mut lines = Lines::new(io::repeat(b'\n')).unwrap();
        lines.next_line().unwrap();
        assert_eq!(lines.document().unwrap_err().kind(), ErrorKind::Limit);
        assert!(lines.buffer.len() <= DOCUMENT_BYTES_MAX + 1);
    }

    #[test]
    fn the_longest_line_is_taken_with_either_end() {
        for end in ["", "\n", "\r\n"] {
            let line = format!("{}{end}", "x".repeat(LINE_BYTES_MAX));
            assert_eq!(all(line.as_bytes()).unwrap()[0].len(), LINE_BYTES_MAX);
        }
        let line = "x".repeat(LINE_BYTES_MAX + 1);
        assert_eq!(all(line.as_bytes()).unwrap_err().kind(), ErrorKind::Limit);
    }

    #[test]
    fn other_encodings_are_named_by_the_byte() {
        let error = all(b"abc\xff\xfe").unwrap_err();
        assert!(error.to_string().contains("byte 3"), "{error}");
    }

    #[test]
    fn a_document_starts_with_the_line_read_last() {
        let mut lines = Lines::new(&b"\xef\xbb\xbf{\n}\n"[..]).unwrap();
        assert_eq!(lines.next_line().unwrap(), Some("{"));
        assert_eq!(lines.document().unwrap(), "{\n}\n");
    }
}
