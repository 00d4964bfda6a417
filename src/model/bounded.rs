//! Reading what others made: never more than a bound. A compressed file of a kilobyte may unpack to a terabyte.

use std::io::{Error, ErrorKind, Read, Result};

/// Returns everything of a reader; an error if there is more than `limit` bytes.
pub(crate) fn read_bounded(reader: impl Read, limit: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    Bounded::new(reader, limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Returns the text of a reader; an error if there is more than `limit` bytes, or if they are not UTF-8.
pub(crate) fn read_text_bounded(reader: impl Read, limit: u64) -> Result<String> {
    let mut text = String::new();
    Bounded::new(reader, limit).read_to_string(&mut text)?;
    Ok(text)
}

/// A reader that fails after `limit` bytes, where [`Read::take`] would pretend that the end is there.
pub(crate) struct Bounded<R> {
    reader: R,
    limit: u64,
    left: u64,
}

impl<R: Read> Bounded<R> {
    pub(crate) fn new(reader: R, limit: u64) -> Self {
        Self { reader, limit, left: limit }
    }
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        // One byte more than the rest shows whether there is more.
        let most = usize::try_from(self.left.saturating_add(1)).unwrap_or(usize::MAX).min(buffer.len());
        let count = self.reader.read(&mut buffer[..most])?;
        self.left = self.left.checked_sub(count as u64).ok_or_else(|| too_large(self.limit))?;
        Ok(count)
    }
}

/// The error of content that exceeds its bound.
pub(crate) fn too_large(limit: u64) -> Error {
    Error::new(ErrorKind::FileTooLarge, format!("larger than {limit} bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_up_to_the_bound_is_read_and_more_is_an_error() {
        assert_eq!(read_bounded(&b"12345"[..], 5).expect("fits"), b"12345");
        assert_eq!(read_text_bounded(&b""[..], 0).expect("fits"), "");
        for error in [
            read_bounded(&b"123456"[..], 5).expect_err("too large"),
            read_text_bounded(std::io::repeat(b'x'), 1 << 20).map(drop).expect_err("endless"),
        ] {
            assert_eq!(error.kind(), ErrorKind::FileTooLarge, "{error}");
            assert!(error.to_string().starts_with("larger than "), "{error}");
        }
    }

    #[test]
    fn endless_reader_is_read_no_further_than_its_bound() {
        struct Counted(u64);
        impl Read for Counted {
            fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
                self.0 += buffer.len() as u64;
                Ok(buffer.len())
            }
        }
        let mut endless = Counted(0);
        read_bounded(&mut endless, 1000).expect_err("endless");
        assert_eq!(endless.0, 1001);
    }
}
