//! The symbol tables of a wheel's libraries, read from the zip as it is.
//!
//! Owns the reading of some parts of a compressed library: it is inflated in a stream, and only the parts that hold tables
//! are kept, so that memory does not grow with a wheel of gigabytes.
#![expect(clippy::disallowed_methods, reason = "edge: reads wheels")]

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs::File;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use camino::Utf8Path;
use envforge_protocol::abi::Table;
use envforge_protocol::elf::{self, ElfError, Source};

use super::entry_reader::{EntryError, EntryReader};
use super::error::AssembleError;
use super::zip_directory::{ZipError, read_entries};
use super::zip_entry::ZipEntry;

/// The beginning of a library that is kept: in most, all tables but the dynamic section are there.
const HEAD: u64 = 64 << 20;
/// The beginning that is read first: it tells where the tables are.
const FIRST: u64 = 4096;
/// Bytes that are kept behind the beginning of a missing part.
const AROUND: u64 = 1 << 20;
/// Passes through one library: its head, its dynamic section, and tables that a tool has moved to its end.
const PASSES: usize = 8;

/// The libraries of a wheel.
#[derive(Debug, Default)]
pub struct LibraryTables {
    /// A table for each library.
    pub tables: Vec<Table>,
    /// The libraries that cannot be read, with the reason.
    pub unreadable: BTreeMap<String, String>,
}

/// Reads the symbol tables of every library of a wheel. The wheel's hash is the caller's concern.
///
/// # Errors
/// An [`AssembleError`] for a file that is not a wheel or cannot be read.
pub fn library_tables(path: &Utf8Path) -> Result<LibraryTables, AssembleError> {
    let file = path.file_name().unwrap_or_default().to_owned();
    let read = |cause| AssembleError::Read { file: file.clone(), cause };
    let source = fs_err::File::open(path).map_err(read)?.into_file();
    let size = source.metadata().map_err(read)?.len();
    let entries = read_entries(&source, size).map_err(|error| match error {
        ZipError::Io(cause) => read(cause),
        ZipError::Refused(reasons) => AssembleError::Refused { file: file.clone(), reasons },
    })?;
    let is_library = |entry: &&ZipEntry| {
        let name = entry.name.rsplit('/').next().unwrap_or_default();
        !entry.is_folder() && name.split('.').skip(1).any(|part| part == "so")
    };
    let mut libraries: Vec<_> = entries.iter().filter(is_library).collect();
    // The largest first, so that no thread begins it last.
    libraries.sort_by_key(|entry| std::cmp::Reverse(entry.size));
    let (next, found) = (AtomicUsize::new(0), Mutex::new(Ok(LibraryTables::default())));
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(libraries.len());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(entry) = libraries.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let one = table(&source, entry);
                    add(&mut found.lock().expect("no thread panics with it"), entry, one);
                }
            });
        }
    });
    let found = found.into_inner().expect("no thread panics with it");
    let mut found = found.map_err(read)?;
    found.tables.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(found)
}

fn add(all: &mut std::io::Result<LibraryTables>, entry: &ZipEntry, one: Result<Table, Unreadable>) {
    let Ok(found) = all else { return };
    match one {
        Ok(table) => found.tables.push(table),
        // Text that is called a library, as linker scripts are; a library of another class or without symbols is for a chip.
        Err(Unreadable::Elf(ElfError::NotElf | ElfError::OtherClass | ElfError::NoSymbols)) => {}
        Err(Unreadable::Elf(error)) => drop(found.unreadable.insert(entry.name.clone(), error.to_string())),
        Err(Unreadable::Zip(reason)) => drop(found.unreadable.insert(entry.name.clone(), reason.to_owned())),
        Err(Unreadable::Io(error)) => *all = Err(error),
    }
}

enum Unreadable {
    Elf(ElfError),
    Zip(&'static str),
    Io(std::io::Error),
}

fn table(source: &File, entry: &ZipEntry) -> Result<Table, Unreadable> {
    let mut parts = Parts { size: entry.size, kept: BTreeMap::new(), missed: Cell::new(None) };
    let mut reader = EntryReader::default();
    parts.fetch(&mut reader, source, entry, &[(0, FIRST.min(entry.size))])?;
    for pass in 0..PASSES {
        parts.missed.set(None);
        let read = elf::object(&parts);
        let Some((at, length)) = parts.missed.get() else {
            return read.map(|object| Table::new(installed(&entry.name), object)).map_err(Unreadable::Elf);
        };
        // What lies around a missing part is asked for next: tables that a tool has moved lie together. Whatever lies in the
        // head is kept on the way to the first of them.
        let mut wanted = vec![(at, length.max(AROUND.min(entry.size - at)))];
        if pass == 0 {
            wanted.push((0, HEAD.min(entry.size)));
        }
        parts.fetch(&mut reader, source, entry, &wanted)?;
    }
    Err(Unreadable::Elf(ElfError::Damaged("layout")))
}

/// Where a wheel's file is installed, below site-packages.
fn installed(name: &str) -> &str {
    let inner = name.split_once(".data/").and_then(|(folder, rest)| {
        let of_data = !folder.contains('/');
        let rest = rest.strip_prefix("purelib/").or_else(|| rest.strip_prefix("platlib/"));
        rest.filter(|_| of_data)
    });
    inner.unwrap_or(name)
}

/// A library of which some parts are known; a read elsewhere fails and is remembered.
struct Parts {
    size: u64,
    /// Bytes by their offset.
    kept: BTreeMap<u64, Vec<u8>>,
    missed: Cell<Option<(u64, u64)>>,
}

impl Source for Parts {
    fn read(&self, offset: u64, len: usize) -> Option<Vec<u8>> {
        let length = u64::try_from(len).ok()?;
        if offset.checked_add(length)? > self.size {
            return None;
        }
        for (start, bytes) in self.kept.range(..=offset) {
            let from = usize::try_from(offset - start).ok()?;
            if let Some(part) = from.checked_add(len).and_then(|to| bytes.get(from..to)) {
                return Some(part.to_vec());
            }
        }
        self.missed.set(self.missed.get().or(Some((offset, length))));
        None
    }
}

impl Parts {
    /// Inflates the library up to the end of the last of these parts, and keeps them.
    fn fetch(
        &mut self,
        reader: &mut EntryReader,
        source: &File,
        entry: &ZipEntry,
        wanted: &[(u64, u64)],
    ) -> Result<(), Unreadable> {
        /// The last part is there.
        struct Enough;
        let end = wanted.iter().map(|(at, length)| at + length).max().unwrap_or(0);
        let mut found = vec![Vec::new(); wanted.len()];
        let mut passed = 0_u64;
        let read = reader.read(source, entry, |part| {
            let here = passed..passed + part.plain.len() as u64;
            for ((at, length), bytes) in wanted.iter().zip(&mut found) {
                let (from, to) = (here.start.max(*at), here.end.min(at + length));
                if from < to {
                    let inside = |place: u64| usize::try_from(place - here.start).unwrap_or(usize::MAX);
                    bytes.extend_from_slice(part.plain.get(inside(from)..inside(to)).unwrap_or_default());
                }
            }
            passed = here.end;
            if passed >= end { Err(Enough) } else { Ok(()) }
        });
        match read {
            Ok(()) | Err(EntryError::Receiver(Enough)) => {}
            Err(EntryError::Damaged(reason)) => return Err(Unreadable::Zip(reason)),
            Err(EntryError::Io(error)) => return Err(Unreadable::Io(error)),
        }
        for ((at, _), bytes) in wanted.iter().zip(found) {
            self.kept.insert(*at, bytes);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Seek as _, SeekFrom, Write as _};
    use std::process::Command;

    use camino::Utf8PathBuf;

    use super::*;
    use crate::assemble::made_wheel::{MadeEntry, MadeWheel};

    struct Folder {
        _folder: tempfile::TempDir,
        path: Utf8PathBuf,
    }

    impl Folder {
        fn new() -> Self {
            let folder = tempfile::tempdir().expect("a folder");
            let path = Utf8PathBuf::from_path_buf(folder.path().to_owned()).expect("UTF-8");
            Self { _folder: folder, path }
        }

        /// The bytes of a library that is compiled from that text.
        fn library(&self, source: &str) -> Vec<u8> {
            let (text, out) = (self.path.join("a.c"), self.path.join("a.so"));
            fs_err::write(&text, source).expect("written");
            let output = Command::new("cc")
                .args(["-shared", "-fPIC", "-nostdlib", "-Wl,-soname,liba.so", "-o"])
                .args([&out, &text])
                .output()
                .expect("a C compiler");
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            fs_err::read(out).expect("read")
        }

        fn wheel(&self, entries: Vec<MadeEntry>) -> Utf8PathBuf {
            let path = self.path.join("a-1.0-py3-none-linux_x86_64.whl");
            let wheel = entries.into_iter().fold(MadeWheel::new("a"), MadeWheel::entry);
            fs_err::write(&path, wheel.build()).expect("written");
            path
        }
    }

    const SOURCE: &str = "extern int asked(void); int given(void) { return asked(); }";

    fn expected(path: &str) -> Table {
        let folder = Folder::new();
        Table::new(path, elf::object(folder.library(SOURCE).as_slice()).expect("a library"))
    }

    #[test]
    fn libraries_are_read_where_they_are_installed() {
        let folder = Folder::new();
        let library = folder.library(SOURCE);
        let wheel = folder.wheel(vec![
            MadeEntry::new("a/_C.cpython-311-x86_64-linux-gnu.so", &library),
            MadeEntry::new("a-1.0.data/platlib/a.libs/liba.so.3", &library).stored(),
            MadeEntry::new("a/script.so", b"INPUT(liba.so)"),
            MadeEntry::new("a/cut.so", &library[..2000]),
            MadeEntry::new("a/__init__.py", b""),
        ]);
        let found = library_tables(&wheel).expect("a wheel");
        let paths = ["a.libs/liba.so.3", "a/_C.cpython-311-x86_64-linux-gnu.so"];
        assert_eq!(found.tables, paths.map(expected));
        let unreadable: Vec<_> = found.unreadable.into_iter().collect();
        assert_eq!(unreadable.len(), 1, "{unreadable:?}");
        assert!(unreadable[0].0 == "a/cut.so" && unreadable[0].1.starts_with("damaged"), "{unreadable:?}");
    }

    #[test]
    fn tables_behind_the_kept_head_are_found() {
        let folder = Folder::new();
        let far = HEAD + (1 << 20);
        let library = folder.library(&format!("{SOURCE} const char far[{far}] = {{1}};"));
        let wheel = folder.wheel(vec![MadeEntry::new("a.so", &library)]);
        let found = library_tables(&wheel).expect("a wheel").tables;
        let whole = Table::new("a.so", elf::object(library.as_slice()).expect("a library"));
        assert_eq!(found, [whole]);
    }

    /// Its content does not have the CRC-32 that it lists: who reads all of it fails.
    #[test]
    fn wheel_of_two_gigabytes_is_not_read_whole() {
        const SIZE: u32 = 2 << 30;
        let folder = Folder::new();
        let library = folder.library(SOURCE);
        let path = folder.path.join("large-1.0-py3-none-linux_x86_64.whl");
        let mut file = fs_err::File::create(&path).expect("created");
        let name = b"a.so";
        // Version, flags, method 0, time, date, CRC-32, both sizes, length of the name.
        let mut fields = [[10_u8, 0].as_slice(), &[0; 8], &1_u32.to_le_bytes()].concat();
        fields.extend([SIZE.to_le_bytes(), SIZE.to_le_bytes()].concat());
        fields.extend([4, 0, 0, 0]);
        let local = [b"PK\x03\x04".as_slice(), &fields, name].concat();
        file.write_all(&[local.as_slice(), &library].concat()).expect("written");
        let directory = local.len() as u64 + u64::from(SIZE);
        file.seek(SeekFrom::Start(directory)).expect("sparse");
        let central = [b"PK\x01\x02\x14\x03".as_slice(), &fields, &[0; 14], name].concat();
        let at = u32::try_from(directory).expect("below 4 GB").to_le_bytes();
        let length = u32::try_from(central.len()).expect("small").to_le_bytes();
        let end = [b"PK\x05\x06\0\0\0\0\x01\0\x01\0".as_slice(), &length, &at, &[0, 0]].concat();
        file.write_all(&[central, end].concat()).expect("written");
        let found = library_tables(&path).expect("a wheel");
        assert_eq!((found.tables, found.unreadable.len()), (vec![expected("a.so")], 0));
    }
}
