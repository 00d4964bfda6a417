//! The dynamic section, and the program headers that lead to it.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use super::source::{Source, u16_at, u32_at, u64_at};

/// The dynamic section of a 64-bit little-endian ELF file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Dynamic {
    /// Sonames it needs, in order, each once.
    pub needed: Vec<String>,
    /// RPATH entries, unexpanded, in order, each once.
    pub rpath: Vec<String>,
    /// RUNPATH entries, unexpanded, in order, each once.
    pub runpath: Vec<String>,
    /// Its own soname.
    pub soname: Option<String>,
}

/// Bytes of a program header, and of a section header.
const PROGRAM_HEADER: u16 = 56;
pub(super) const SECTION_HEADER: u16 = 64;
const PT_LOAD: u32 = 1;
const PT_DYNAMIC: u32 = 2;
const DT_NEEDED: u64 = 1;
const DT_STRTAB: u64 = 5;
const DT_STRSZ: u64 = 10;
const DT_SONAME: u64 = 14;
const DT_RPATH: u64 = 15;
const DT_RUNPATH: u64 = 29;

/// Larger tables than any real library has are refused.
const LARGEST: u64 = 256 << 20;

/// More sonames, and more folders, than any library names.
const MOST_NAMES: usize = 4096;

/// A program header, as far as it is needed.
pub(super) struct Segment {
    kind: u32,
    offset: u64,
    address: u64,
    size: u64,
}

pub(super) fn segments(file: &(impl Source + ?Sized)) -> Option<Vec<Segment>> {
    let header = file.read(0, 64)?;
    // Magic, 64 bit, little endian.
    if header.get(..6)? != [0x7f, b'E', b'L', b'F', 2, 1] {
        return None;
    }
    let (offset, size, count) = (u64_at(&header, 32)?, u16_at(&header, 54)?, u16_at(&header, 56)?);
    if size != PROGRAM_HEADER {
        return None;
    }
    let table = file.read(offset, usize::from(size) * usize::from(count))?;
    table
        .chunks_exact(usize::from(size))
        .map(|entry| {
            Some(Segment {
                kind: u32_at(entry, 0)?,
                offset: u64_at(entry, 8)?,
                address: u64_at(entry, 16)?,
                size: u64_at(entry, 32)?,
            })
        })
        .collect()
}

/// The dynamic section; `None` for what is no ELF file or is broken, an empty one for a static program.
pub fn dynamic(file: &(impl Source + ?Sized)) -> Option<Dynamic> {
    let segments = segments(file)?;
    let entries = entries(file, &segments)?;
    if entries.0.is_empty() {
        return Some(Dynamic::default());
    }
    entries.dynamic(&entries.strings(file, &segments)?)
}

/// The entries of the dynamic section by tag.
pub(super) struct Entries(BTreeMap<u64, Vec<u64>>);

/// Reads the entries of the dynamic section; a static program has none.
pub(super) fn entries(file: &(impl Source + ?Sized), segments: &[Segment]) -> Option<Entries> {
    let Some(section) = segments.iter().find(|segment| segment.kind == PT_DYNAMIC) else {
        return Some(Entries(BTreeMap::new()));
    };
    if section.size > LARGEST {
        return None;
    }
    let table = file.read(section.offset, usize::try_from(section.size).ok()?)?;
    let mut entries: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for entry in table.chunks_exact(16) {
        let tag = u64_at(entry, 0)?;
        if tag == 0 {
            break;
        }
        entries.entry(tag).or_default().push(u64_at(entry, 8)?);
    }
    Some(Entries(entries))
}

impl Entries {
    pub(super) fn first(&self, tag: u64) -> Option<u64> {
        self.0.get(&tag).and_then(|values| values.first()).copied()
    }

    pub(super) fn strings(&self, file: &(impl Source + ?Sized), segments: &[Segment]) -> Option<Vec<u8>> {
        at_address(file, segments, self.first(DT_STRTAB)?, self.first(DT_STRSZ)?)
    }

    pub(super) fn dynamic(&self, strings: &[u8]) -> Option<Dynamic> {
        let budget = Budget::of(strings);
        let all = |tag: u64| -> Option<Vec<String>> {
            let offsets = self.0.get(&tag).into_iter().flatten();
            offsets.map(|offset| text(strings, *offset).filter(|name| budget.takes(name))).collect()
        };
        let folders = |tag: u64| -> Option<Vec<String>> {
            let lists = all(tag)?;
            let folders = lists.iter().flat_map(|list| list.split(':')).filter(|folder| !folder.is_empty());
            distinct(folders.map(str::to_owned))
        };
        Some(Dynamic {
            needed: distinct(all(DT_NEEDED)?)?,
            rpath: folders(DT_RPATH)?,
            runpath: folders(DT_RUNPATH)?,
            soname: all(DT_SONAME)?.into_iter().next(),
        })
    }
}

/// The names in their order, each once; `None`: there are more than any library has.
fn distinct(names: impl IntoIterator<Item = String>) -> Option<Vec<String>> {
    let (mut seen, mut all) = (BTreeSet::new(), Vec::new());
    for name in names {
        if !seen.contains(&name) {
            if all.len() == MOST_NAMES {
                return None;
            }
            seen.insert(name.clone());
            all.push(name);
        }
    }
    Some(all)
}

/// The string at that offset of a string table. None has a control character: what is printed and cached has one name a line.
pub(super) fn text(strings: &[u8], offset: u64) -> Option<String> {
    let rest = strings.get(usize::try_from(offset).ok()?..)?;
    let end = rest.iter().position(|byte| *byte == 0)?;
    let name = String::from_utf8_lossy(&rest[..end]);
    (!name.contains(char::is_control)).then(|| name.into_owned())
}

/// The bytes of names that may still be copied out of a string table: names that overlap could fill any memory.
pub(super) struct Budget(Cell<usize>);

impl Budget {
    /// One for that table. Real libraries copy about its size, and some bytes of versions for each symbol.
    pub(super) fn of(strings: &[u8]) -> Self {
        const FACTOR: usize = 4;
        const LEAST: usize = 1 << 20;
        Self(Cell::new(strings.len().saturating_mul(FACTOR).saturating_add(LEAST)))
    }

    /// Whether that name may still be copied. Its end counts, too: there could be any number of empty names.
    pub(super) fn takes(&self, name: &str) -> bool {
        let left = self.0.get().checked_sub(name.len() + 1);
        self.0.set(left.unwrap_or(0));
        left.is_some()
    }
}

/// The place in the file of an address.
pub(super) fn offset_of(segments: &[Segment], address: u64) -> Option<u64> {
    let inside = |segment: &&Segment| {
        segment.kind == PT_LOAD && address >= segment.address && address - segment.address < segment.size
    };
    let segment = segments.iter().find(inside)?;
    segment.offset.checked_add(address - segment.address)
}

pub(super) fn at_address(
    file: &(impl Source + ?Sized),
    segments: &[Segment],
    address: u64,
    size: u64,
) -> Option<Vec<u8>> {
    if size > LARGEST {
        return None;
    }
    file.read(offset_of(segments, address)?, usize::try_from(size).ok()?)
}

/// How long the file must at least be to be loaded; `None` for what is no ELF file or is broken. The loader maps a
/// shorter one all the same, and the process dies of SIGBUS when it touches what is not there.
pub fn extent(file: &(impl Source + ?Sized)) -> Option<u64> {
    let loaded = segments(file)?.into_iter().filter(|segment| segment.kind == PT_LOAD);
    let ends = loaded.map(|segment| segment.offset.checked_add(segment.size)).collect::<Option<Vec<_>>>()?;
    Some(ends.into_iter().max().unwrap_or(0))
}

/// Offset and size of the section of that name; `Ok(None)` if the file has none, `Err` if it cannot be told.
pub fn section(file: &(impl Source + ?Sized), name: &str) -> Result<Option<(u64, u64)>, String> {
    let header = file.read(0, 64).ok_or("it is shorter than a header")?;
    if header[..6] != [0x7f, b'E', b'L', b'F', 2, 1] {
        return Err("not a 64-bit ELF file".to_owned());
    }
    let table = || -> Option<Vec<Vec<u8>>> {
        let (offset, size, count) = (u64_at(&header, 40)?, u16_at(&header, 58)?, u16_at(&header, 60)?);
        let table = file.read(offset, usize::from(size) * usize::from(count))?;
        (size == SECTION_HEADER && count > 0)
            .then(|| table.chunks_exact(usize::from(size)).map(<[u8]>::to_vec).collect())
    };
    let table = table().ok_or("it has no table of sections")?;
    let place = |entry: &[u8]| Some((u64_at(entry, 24)?, u64_at(entry, 32)?));
    let names = || -> Option<Vec<u8>> {
        let (offset, size) = place(table.get(usize::from(u16_at(&header, 62)?))?)?;
        (size <= LARGEST).then(|| file.read(offset, usize::try_from(size).ok()?)).flatten()
    };
    let names = names().ok_or("the names of its sections cannot be read")?;
    let wanted = [name.as_bytes(), &[0]].concat();
    let found = table.iter().find(|entry| {
        let at = u32_at(entry, 0).and_then(|at| usize::try_from(at).ok());
        at.and_then(|at| names.get(at..)).is_some_and(|rest| rest.starts_with(&wanted))
    });
    Ok(found.and_then(|entry| place(entry)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::disallowed_methods, reason = "reads this test program")]
    fn own() -> Vec<u8> {
        std::fs::read(std::env::current_exe().expect("a program")).expect("readable")
    }

    #[test]
    fn a_real_program_needs_the_c_library() {
        let dynamic = dynamic(own().as_slice()).expect("this test is an ELF file");
        assert!(dynamic.needed.iter().any(|name| name == "libc.so.6"), "{dynamic:?}");
    }

    #[test]
    fn a_cut_file_is_shorter_than_its_extent_and_sections_are_found_by_name() {
        let whole = own();
        let extent = extent(whole.as_slice()).expect("an ELF file");
        assert!(extent > 4096 && extent <= whole.len() as u64);
        let (offset, size) = section(whole.as_slice(), ".text").expect("readable").expect("it has code");
        assert!(offset + size <= extent);
        assert_eq!(section(whole.as_slice(), ".nv_fatbin"), Ok(None));
        assert!(section(&whole[..4096], ".text").is_err(), "unknown, not absent");
    }

    /// What a library with those entries of a tag says, whose strings are `text`.
    fn dynamic_of(tag: u64, offsets: Vec<u64>, text: &str) -> Option<Dynamic> {
        Entries(BTreeMap::from([(tag, offsets)])).dynamic(text.as_bytes())
    }

    /// The strings `lib0\0lib1\0…` and the offset of each.
    fn names(count: usize) -> (String, Vec<u64>) {
        let (mut text, mut offsets) = (String::new(), Vec::new());
        for number in 0..count {
            offsets.push(text.len() as u64);
            text.extend(["lib", &number.to_string(), "\0"]);
        }
        (text, offsets)
    }

    #[test]
    fn repeated_names_count_once_in_their_order() {
        let needed = dynamic_of(DT_NEEDED, vec![5, 0, 5, 0, 5], "lib0\0lib1\0").expect("whole").needed;
        assert_eq!(needed, ["lib1", "lib0"]);
        let runpath = dynamic_of(DT_RUNPATH, vec![0, 0], "/b:/a::/b\0").expect("whole").runpath;
        assert_eq!(runpath, ["/b", "/a"]);
    }

    #[test]
    fn more_names_or_folders_than_any_library_has_are_damage() {
        let needed = |count| {
            let (text, offsets) = names(count);
            dynamic_of(DT_NEEDED, offsets, &text).map(|dynamic| dynamic.needed.len())
        };
        assert_eq!(needed(MOST_NAMES), Some(MOST_NAMES));
        assert_eq!(needed(MOST_NAMES + 1), None);
        let list = |count: usize| {
            let folders: Vec<_> = (0..count).map(|number| format!("/{number}")).collect();
            folders.join(":") + "\0"
        };
        for tag in [DT_RPATH, DT_RUNPATH] {
            assert!(dynamic_of(tag, vec![0], &list(MOST_NAMES)).is_some());
            assert_eq!(dynamic_of(tag, vec![0], &list(MOST_NAMES + 1)), None);
        }
    }

    #[test]
    fn empty_names_are_bounded_by_the_budget() {
        let empty = |count| dynamic_of(DT_NEEDED, vec![0; count], "\0");
        assert!(empty(1000).is_some());
        assert_eq!(empty(2 << 20), None);
    }

    #[test]
    fn cut_and_flipped_files_never_panic() {
        let whole = own();
        let head = &whole[..4096.min(whole.len())];
        assert_eq!(dynamic(&b"#!/bin/sh\n"[..]), None);
        for length in 0..head.len() {
            let _ = dynamic(&head[..length]);
        }
        let mut broken = whole.clone();
        for at in (0..1024).step_by(3) {
            let kept = broken[at];
            for value in [0, 0xff, 0x80, kept.wrapping_add(1)] {
                broken[at] = value;
                let _ = dynamic(broken.as_slice());
            }
            broken[at] = kept;
        }
    }
}
