//! Reading tar archives of others. The `tar` crate reads long names, PAX records and the maps of sparse files of an entry
//! whole: here they have a bound, whatever the archive says about them. It takes the end of a file for the end of the archive:
//! here an archive ends with its mark, a block of zeros, and one that was cut is an error.

use std::cell::Cell;
use std::io::{Error, ErrorKind, Read, Result, Seek, SeekFrom};
use std::rc::Rc;

/// Everything of an entry but its content, bytes. A path has 4 KiB, an extended attribute 64 KiB at most.
const LARGEST_HEADERS: u64 = 1 << 20;
/// The unit of an archive, bytes.
const BLOCK: u64 = 512;

/// An archive whose entries have bounded headers.
pub(crate) struct BoundedTar<R: Read> {
    archive: tar::Archive<Metered<R>>,
    meter: Rc<Meter>,
}

/// How far an archive was read, and how far it may be.
#[derive(Default)]
struct Meter {
    position: Cell<u64>,
    end: Cell<u64>,
}

/// A reader that fails beyond the end that its meter has.
pub(crate) struct Metered<R> {
    reader: R,
    meter: Rc<Meter>,
}

/// The entries of a [`BoundedTar`].
pub(crate) struct BoundedEntries<'a, R: Read> {
    entries: tar::Entries<'a, Metered<R>>,
    meter: Rc<Meter>,
    /// Where the next header or the mark is expected, from the beginning of the archive.
    expected: u64,
}

impl<R: Read> BoundedTar<R> {
    /// An archive at the beginning of a reader.
    pub(crate) fn new(reader: R) -> Self {
        let meter = Rc::<Meter>::default();
        meter.end.set(LARGEST_HEADERS);
        Self { archive: tar::Archive::new(Metered { reader, meter: Rc::clone(&meter) }), meter }
    }

    /// The entries in their order.
    pub(crate) fn entries(&mut self) -> Result<BoundedEntries<'_, R>> {
        Ok(BoundedEntries { meter: Rc::clone(&self.meter), entries: self.archive.entries()?, expected: 0 })
    }

    /// The same where content that is not read is skipped by seeking.
    pub(crate) fn entries_with_seek(&mut self) -> Result<BoundedEntries<'_, R>>
    where
        R: Seek,
    {
        let meter = Rc::clone(&self.meter);
        Ok(BoundedEntries { meter, entries: self.archive.entries_with_seek()?, expected: 0 })
    }
}

impl<'a, R: Read> Iterator for BoundedEntries<'a, R> {
    type Item = Result<tar::Entry<'a, Metered<R>>>;

    fn next(&mut self) -> Option<Self::Item> {
        let entry = match self.entries.next() {
            Some(Ok(entry)) => entry,
            Some(Err(error)) => return Some(Err(if is_end_of_file(&error) { cut() } else { error })),
            // The mark is read before the end is told.
            None if self.meter.position.get() >= self.expected.saturating_add(BLOCK) => return None,
            None if self.expected == u64::MAX => return None,
            None => {
                self.expected = u64::MAX;
                return Some(Err(cut()));
            }
        };
        let kind = entry.header().entry_type();
        // The size of a sparse file counts its holes, which the archive does not have.
        let size = if kind.is_gnu_sparse() { entry.header().entry_size() } else { Ok(entry.size()) };
        let size = match size {
            // The records of an entry are read whole, too.
            Ok(size) if kind.is_pax_global_extensions() || kind.is_pax_local_extensions() => {
                if size > LARGEST_HEADERS {
                    return Some(Err(too_large()));
                }
                size
            }
            Ok(size) => size,
            Err(error) => return Some(Err(error)),
        };
        let padded = size.checked_next_multiple_of(BLOCK).unwrap_or(u64::MAX);
        self.expected = entry.raw_file_position().saturating_add(padded);
        let content = size.saturating_add(BLOCK);
        let end = self.meter.position.get().saturating_add(content).saturating_add(LARGEST_HEADERS);
        self.meter.end.set(end);
        Some(Ok(entry))
    }
}

impl<R: Read> Read for Metered<R> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let Meter { position, end } = &*self.meter;
        let left = end.get().saturating_sub(position.get());
        if left == 0 && !buffer.is_empty() {
            return Err(too_large());
        }
        let most = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
        let count = self.reader.read(&mut buffer[..most])?;
        position.set(position.get() + count as u64);
        Ok(count)
    }
}

impl<R: Seek> Seek for Metered<R> {
    fn seek(&mut self, to: SeekFrom) -> Result<u64> {
        let position = self.reader.seek(to)?;
        self.meter.position.set(position);
        Ok(position)
    }
}

/// Whether the `tar` crate says that the file ended inside an entry.
fn is_end_of_file(error: &Error) -> bool {
    let texts = ["failed to read entire block", "unexpected EOF"];
    error.kind() == ErrorKind::UnexpectedEof || texts.iter().any(|text| error.to_string().contains(text))
}

fn cut() -> Error {
    Error::new(ErrorKind::UnexpectedEof, "the archive is cut: its end is missing")
}

fn too_large() -> Error {
    Error::new(ErrorKind::FileTooLarge, format!("headers of an entry larger than {LARGEST_HEADERS} bytes"))
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    /// A header of that kind for content of that size.
    fn header(kind: tar::EntryType, size: u64) -> Vec<u8> {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(kind);
        header.set_path("x").expect("short");
        header.set_size(size);
        header.set_cksum();
        header.as_bytes().to_vec()
    }

    /// A header and so many bytes of content.
    fn member(kind: tar::EntryType, size: u64) -> Box<dyn Read> {
        let padding = size.next_multiple_of(BLOCK) - size;
        let content = std::io::repeat(b'x').take(size).chain(std::io::repeat(0).take(padding));
        Box::new(Cursor::new(header(kind, size)).chain(content))
    }

    /// Members and the mark of the end.
    fn archive(members: &[(tar::EntryType, u64)]) -> Box<dyn Read> {
        let all = members.iter().map(|(kind, size)| member(*kind, *size));
        let end: Box<dyn Read> = Box::new(std::io::repeat(0).take(2 * BLOCK));
        all.chain([end])
            .fold(Box::new(std::io::empty()) as Box<dyn Read>, |before, next| Box::new(before.chain(next)))
    }

    #[test]
    fn archive_that_ends_without_its_mark_is_cut() {
        let mut whole = Vec::new();
        archive(&[(T::Regular, 700), (T::GNULongName, 100), (T::Regular, 512), (T::Regular, 0)])
            .read_to_end(&mut whole)
            .expect("in memory");
        let blocks = whole.len() as u64 / BLOCK;
        for end in 0..=blocks {
            let bytes = &whole[..usize::try_from(end * BLOCK).expect("small")];
            let streamed = list(Box::new(Cursor::new(bytes.to_vec()))).map(drop);
            let sought = || {
                let mut tar = BoundedTar::new(Cursor::new(bytes));
                tar.entries_with_seek()?.try_for_each(|entry| entry.map(drop))
            };
            for result in [streamed, sought()] {
                // One block of the mark suffices.
                assert_eq!(result.is_ok(), end >= blocks - 1, "{end} of {blocks} blocks: {result:?}");
            }
        }
        for end in [512 + 1024, 512 + 900, 512 + 1024 + 100] {
            let error = list(Box::new(Cursor::new(whole[..end].to_vec()))).expect_err("cut");
            assert_eq!(error.to_string(), "the archive is cut: its end is missing", "{end}");
        }
    }

    /// Paths and sizes of all entries; their content is not read.
    fn list(archive: Box<dyn Read>) -> Result<Vec<(usize, u64)>> {
        let mut tar = BoundedTar::new(archive);
        tar.entries()?.map(|entry| entry.map(|entry| (entry.path_bytes().len(), entry.size()))).collect()
    }

    use tar::EntryType as T;

    #[test]
    fn long_names_and_large_files_are_read() {
        let name = 64 << 10;
        let read = list(archive(&[
            (T::Regular, 3 << 20),
            (T::GNULongName, name),
            (T::Regular, 5 << 20),
            (T::XGlobalHeader, 100),
            (T::Regular, 1),
        ]));
        let expected = [(1, 3 << 20), (64 << 10, 5 << 20), (1, 100), (1, 1)];
        assert_eq!(read.expect("read"), expected);
    }

    #[test]
    fn name_link_and_records_beyond_the_bound_are_an_error_before_they_are_read() {
        for kind in [T::GNULongName, T::GNULongLink, T::XHeader, T::XGlobalHeader] {
            // A terabyte: whoever reads it whole does not come back.
            let error = list(archive(&[(T::Regular, 5), (kind, 1 << 40), (T::Regular, 5)]));
            let error = error.expect_err("too large");
            assert_eq!(error.kind(), ErrorKind::FileTooLarge, "{kind:?}: {error}");
        }
    }

    #[test]
    fn map_of_a_sparse_file_without_end_is_an_error() {
        let mut sparse = tar::Header::new_gnu();
        sparse.set_entry_type(T::GNUSparse);
        sparse.set_path("x").expect("short");
        sparse.set_size(0);
        sparse.as_gnu_mut().expect("made as such").isextended[0] = 1;
        sparse.set_cksum();
        // Each block of the map says that another one follows, and lists empty parts.
        let mut block = [b'0'; 512];
        block[504] = 1;
        let blocks = Repeated(block, 0);
        let error = list(Box::new(Cursor::new(sparse.as_bytes().to_vec()).chain(blocks)));
        assert_eq!(error.expect_err("without end").kind(), ErrorKind::FileTooLarge);
    }

    /// Blocks without end.
    struct Repeated([u8; 512], usize);

    impl Read for Repeated {
        fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
            for byte in buffer.iter_mut() {
                *byte = self.0[self.1 % self.0.len()];
                self.1 += 1;
            }
            Ok(buffer.len())
        }
    }

    #[test]
    fn skipping_by_seek_gives_no_room_to_headers() {
        let mut bytes = Vec::new();
        archive(&[(T::Regular, 4 << 20), (T::GNULongName, 3 << 20), (T::Regular, 5)])
            .read_to_end(&mut bytes)
            .expect("in memory");
        let mut tar = BoundedTar::new(Cursor::new(bytes));
        let mut entries = tar.entries_with_seek().expect("entries");
        assert_eq!(entries.next().expect("one").expect("read").size(), 4 << 20);
        let error = entries.next().expect("an error").map(drop).expect_err("too large");
        assert_eq!(error.kind(), ErrorKind::FileTooLarge, "{error}");
    }
}
