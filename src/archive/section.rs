//! Parts of an archive, read without moving its position: several are open at once.

use std::io::{BufRead as _, BufReader, Read, Result, Seek, SeekFrom};
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

/// Bytes that are read ahead: most files of a system are smaller.
const AHEAD: usize = 64 << 10;

/// A part of a file.
#[derive(Debug, Clone)]
pub(crate) struct Section {
    file: Arc<std::fs::File>,
    start: u64,
    size: u64,
    at: u64,
}

impl Section {
    /// A part of a file that starts at a position.
    pub(super) fn new(file: Arc<std::fs::File>, start: u64, size: u64) -> Self {
        Self { file, start, size, at: 0 }
    }

    /// All of a file.
    pub(crate) fn whole(file: std::fs::File) -> Result<Self> {
        let size = file.metadata()?.len();
        Ok(Self::new(Arc::new(file), 0, size))
    }

    /// A part of this part, from its beginning.
    pub(super) fn part(&self, start: u64, size: u64) -> Self {
        let size = size.min(self.size.saturating_sub(start));
        Self { file: Arc::clone(&self.file), start: self.start.saturating_add(start), size, at: 0 }
    }

    /// Its size in bytes.
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// The same bytes for a reader of small pieces.
    pub(crate) fn ahead(&self) -> Ahead {
        Ahead(BufReader::with_capacity(AHEAD, Self { at: 0, ..self.clone() }))
    }

    /// Whether two parts have the same bytes.
    pub(super) fn equals(&self, other: &Self) -> Result<bool> {
        if self.size != other.size {
            return Ok(false);
        }
        if Arc::ptr_eq(&self.file, &other.file) && self.start == other.start {
            return Ok(true);
        }
        let (mut one, mut two) = (self.ahead().0, other.ahead().0);
        loop {
            let (left, right) = (one.fill_buf()?, two.fill_buf()?);
            let count = left.len().min(right.len());
            if count == 0 {
                return Ok(left.len() == right.len());
            }
            if left[..count] != right[..count] {
                return Ok(false);
            }
            one.consume(count);
            two.consume(count);
        }
    }
}

impl Read for Section {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let left = usize::try_from(self.size.saturating_sub(self.at)).unwrap_or(usize::MAX);
        let most = left.min(buffer.len());
        let count = self.file.read_at(&mut buffer[..most], self.start.saturating_add(self.at))?;
        self.at += count as u64;
        Ok(count)
    }
}

impl Seek for Section {
    fn seek(&mut self, position: SeekFrom) -> Result<u64> {
        let at = match position {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => self.size.checked_add_signed(by),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
        };
        self.at = at.ok_or(std::io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}

/// A reader that keeps what it has read ahead when it skips a little.
pub(crate) struct Ahead(BufReader<Section>);

impl Read for Ahead {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        self.0.read(buffer)
    }
}

impl Seek for Ahead {
    fn seek(&mut self, position: SeekFrom) -> Result<u64> {
        match position {
            SeekFrom::Current(by) => {
                self.0.seek_relative(by)?;
                self.0.stream_position()
            }
            position => self.0.seek(position),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn section(bytes: &[u8]) -> Section {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(bytes).expect("written");
        Section::whole(file).expect("a file")
    }

    fn read(mut reader: impl Read) -> Vec<u8> {
        let mut bytes = Vec::new();
        reader.read_to_end(&mut bytes).expect("readable");
        bytes
    }

    #[test]
    fn part_ends_where_it_ends_and_others_do_not_move_it() {
        let whole = section(b"0123456789");
        let (mut one, two) = (whole.part(2, 5), whole.part(4, 100));
        let mut first = [0];
        one.read_exact(&mut first).expect("readable");
        assert_eq!((&first, read(two.clone()), read(&mut one)), (b"2", b"456789".to_vec(), b"3456".to_vec()));
        assert_eq!((two.size(), whole.part(11, 1).size()), (6, 0));
        let mut ahead = whole.part(1, 8).ahead();
        assert_eq!(ahead.seek(SeekFrom::Current(3)).expect("sought"), 3);
        assert_eq!(ahead.seek(SeekFrom::Current(-1)).expect("sought"), 2);
        assert_eq!(read(&mut ahead), b"345678");
        assert_eq!(ahead.seek(SeekFrom::Start(7)).expect("sought"), 7);
        assert_eq!(read(ahead), b"8");
        assert!(one.seek(SeekFrom::Current(-9)).is_err());
    }

    #[test]
    fn parts_are_equal_by_their_bytes() {
        let large = vec![7; 3 * AHEAD + 5];
        let mut other = large.clone();
        other[3 * AHEAD + 4] = 8;
        let (one, two, other) = (section(&large), section(&large), section(&other));
        let equals = |one: &Section, two: &Section| one.equals(two).expect("readable");
        assert!(equals(&one, &one) && equals(&one, &two));
        assert!(!equals(&one, &other) && !equals(&one, &two.part(0, 5)));
        assert!(equals(&one.part(1, 5), &two.part(9, 5)) && equals(&one.part(0, 0), &other.part(1, 0)));
    }
}
