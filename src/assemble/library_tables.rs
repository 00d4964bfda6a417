//! The symbol tables of a wheel's libraries, read from the zip as it is.
//!
//! Owns the reading of some parts of a compressed library: it is inflated in a stream up to its last table, and only the parts
//! that hold tables are kept, so that memory does not grow with a wheel of gigabytes.
#![expect(clippy::disallowed_methods, reason = "edge: reads wheels")]

use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fs::File;

use camino::{Utf8Path, Utf8PathBuf};
use envforge_protocol::abi::Table;
use envforge_protocol::elf::{self, ElfError, Object, Source};

use super::all_cores::on_all_cores;
use super::entry_reader::{EntryError, EntryReader};
use super::error::AssembleError;
use super::zip_directory::{ZipError, read_entries};
use super::zip_entry::ZipEntry;

/// The most that is kept from the beginning on: in most libraries all tables but the dynamic section are there. As much
/// is kept from a missing part on: tables that a tool has moved lie together.
const WINDOW: u64 = 64 << 20;
/// The beginning that is read first: it tells where the tables are.
const FIRST: u64 = 4096;
/// Bytes from a missing part on that are inflated before the tables are tried again.
const AROUND: u64 = 8 << 20;
/// Windows that are kept of one library, and passes through it: most need one pass.
const MOST: usize = 8;

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
    Ok(tables_of_wheels(&[path.to_owned()])?.pop().unwrap_or_default())
}

/// Reads the symbol tables of every library of these wheels, several at a time. The result has their order.
///
/// # Errors
/// As [`library_tables`].
pub fn tables_of_wheels(paths: &[Utf8PathBuf]) -> Result<Vec<LibraryTables>, AssembleError> {
    let wheels: Vec<_> = paths.iter().map(|path| Wheel::open(path)).collect::<Result<_, _>>()?;
    let of_wheel = |(at, wheel)| wheel_libraries(wheel).map(move |entry| (at, entry));
    let mut libraries: Vec<(usize, &ZipEntry)> = wheels.iter().enumerate().flat_map(of_wheel).collect();
    libraries.sort_by_key(|(_, entry)| Reverse(entry.packed));
    let read = on_all_cores(&libraries, |(at, entry)| {
        let Wheel { file, source, .. } = &wheels[*at];
        match table(source, entry) {
            Err(Unreadable::Io(cause)) => Err(AssembleError::Read { file: file.clone(), cause }),
            Err(Unreadable::Library(reason)) => Ok(Err(reason)),
            Ok(table) => Ok(Ok(table)),
        }
    })?;
    let mut all: Vec<_> = wheels.iter().map(|_| LibraryTables::default()).collect();
    for ((at, entry), one) in libraries.into_iter().zip(read) {
        match one {
            Ok(table) => all[at].tables.extend(table),
            Err(reason) => drop(all[at].unreadable.insert(entry.name.clone(), reason)),
        }
    }
    for found in &mut all {
        found.tables.sort_by(|one, other| one.path.cmp(&other.path));
    }
    Ok(all)
}

/// An open wheel.
struct Wheel {
    file: String,
    source: File,
    entries: Vec<ZipEntry>,
}

impl Wheel {
    fn open(path: &Utf8Path) -> Result<Self, AssembleError> {
        let file = path.file_name().unwrap_or_default().to_owned();
        let read = |cause| AssembleError::Read { file: file.clone(), cause };
        let source = fs_err::File::open(path).map_err(read)?.into_file();
        let size = source.metadata().map_err(read)?.len();
        let entries = read_entries(&source, size).map_err(|error| match error {
            ZipError::Io(cause) => read(cause),
            ZipError::Refused(reasons) => AssembleError::Refused { file: file.clone(), reasons },
        })?;
        Ok(Self { file, source, entries })
    }
}

fn wheel_libraries(wheel: &Wheel) -> impl Iterator<Item = &ZipEntry> {
    wheel.entries.iter().filter(|entry| {
        let name = entry.name.rsplit('/').next().unwrap_or_default();
        !entry.is_folder() && name.split('.').skip(1).any(|part| part == "so")
    })
}

enum Unreadable {
    Library(String),
    Io(std::io::Error),
}

/// The table of a library; `None` for what only has the name of one.
fn table(source: &File, entry: &ZipEntry) -> Result<Option<Table>, Unreadable> {
    match Parts::new(entry.size).object(source, entry)? {
        Ok(object) => Ok(Some(Table::new(installed(&entry.name), object))),
        // Text that is called a library, as linker scripts are; a library of another class or without symbols is for a chip.
        Err(ElfError::NotElf | ElfError::OtherClass | ElfError::NoSymbols) => Ok(None),
        Err(error) => Err(Unreadable::Library(error.to_string())),
    }
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
    windows: Vec<Window>,
    /// Where the tables are tried again.
    goal: u64,
    missed: Cell<Option<(u64, u64)>>,
}

/// A part that is kept, or will be.
struct Window {
    start: u64,
    length: u64,
    bytes: Vec<u8>,
}

impl Window {
    fn has(&self, at: u64, length: u64) -> bool {
        self.start <= at && at + length <= self.start + self.length
    }

    /// The next byte that it lacks.
    fn next(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }
}

impl Source for Parts {
    fn read(&self, offset: u64, len: usize) -> Option<Vec<u8>> {
        let length = u64::try_from(len).ok()?;
        if offset.checked_add(length)? > self.size {
            return None;
        }
        for window in self.windows.iter().filter(|window| window.start <= offset) {
            let from = usize::try_from(offset - window.start).ok()?;
            if let Some(part) = from.checked_add(len).and_then(|to| window.bytes.get(from..to)) {
                return Some(part.to_vec());
            }
        }
        self.missed.set(self.missed.get().or(Some((offset, length))));
        None
    }
}

/// Why inflating stops.
enum Stop {
    /// The tables were read, or cannot be.
    Done(Box<Result<Object, ElfError>>),
    /// A table lies before.
    Passed,
}

impl Parts {
    fn new(size: u64) -> Self {
        let head = Window { start: 0, length: WINDOW.min(size), bytes: Vec::new() };
        Self { size, windows: vec![head], goal: FIRST.min(size), missed: Cell::new(None) }
    }

    /// Inflates the library until all of its tables are there.
    fn object(&mut self, source: &File, entry: &ZipEntry) -> Result<Result<Object, ElfError>, Unreadable> {
        let mut reader = EntryReader::default();
        for _ in 0..MOST {
            let mut passed = 0;
            let read = reader.read(source, entry, |part| {
                let from = passed;
                passed += part.plain.len() as u64;
                self.receive(from, part.plain)
            });
            match read {
                Err(EntryError::Receiver(Stop::Done(object))) => return Ok(*object),
                Err(EntryError::Receiver(Stop::Passed)) => {}
                Err(EntryError::Damaged(reason)) => return Err(Unreadable::Library(reason.to_owned())),
                Err(EntryError::Io(error)) => return Err(Unreadable::Io(error)),
                // An empty one.
                Ok(()) => return Ok(elf::object(self)),
            }
        }
        Ok(Err(ElfError::Damaged("layout")))
    }

    /// Takes the bytes from an offset on, and tries to read the tables where enough is there.
    fn receive(&mut self, from: u64, plain: &[u8]) -> Result<(), Stop> {
        let end = from + plain.len() as u64;
        loop {
            for window in &mut self.windows {
                let next = window.next();
                let to = (window.start + window.length).min(end);
                if (from..to).contains(&next) {
                    let inside = |place: u64| usize::try_from(place - from).unwrap_or(usize::MAX);
                    window.bytes.extend_from_slice(plain.get(inside(next)..inside(to)).unwrap_or_default());
                }
            }
            if end < self.goal {
                return Ok(());
            }
            self.missed.set(None);
            let object = elf::object(self);
            let Some((at, length)) = self.missed.get() else { return Err(Stop::Done(Box::new(object))) };
            if self.want(at, length)? < from {
                return Err(Stop::Passed);
            }
        }
    }

    /// Keeps a missing part from now on; returns the first byte of it and its surroundings that is not there.
    fn want(&mut self, at: u64, length: u64) -> Result<u64, Stop> {
        if !self.windows.iter().any(|window| window.has(at, length)) {
            if self.windows.len() == MOST {
                return Err(Stop::Done(Box::new(Err(ElfError::Damaged("layout")))));
            }
            let kept = length.max(WINDOW).min(self.size - at);
            self.windows.push(Window { start: at, length: kept, bytes: Vec::new() });
        }
        let window = self.windows.iter().find(|window| window.has(at, length));
        let (next, end) = window.map_or((at, self.size), |one| (one.next(), one.start + one.length));
        self.goal = (at + length.max(AROUND)).min(end);
        Ok(next)
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
        let far = WINDOW + (1 << 20);
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
