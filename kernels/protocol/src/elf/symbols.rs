//! The dynamic symbols of a shared library: names, versions, and what it asks of others.

use std::collections::BTreeMap;

use super::dynamic::{
    Budget, Dynamic, Entries, SECTION_HEADER, Segment, at_address, entries, offset_of, segments, text,
};
use super::source::{Source, u16_at, u32_at, u64_at};

const DT_HASH: u64 = 4;
const DT_SYMTAB: u64 = 6;
const DT_RELA: u64 = 7;
const DT_RELASZ: u64 = 8;
const DT_PLTRELSZ: u64 = 2;
const DT_JMPREL: u64 = 23;
const DT_GNU_HASH: u64 = 0x6fff_fef5;
const DT_VERSYM: u64 = 0x6fff_fff0;
const DT_VERDEF: u64 = 0x6fff_fffc;
const DT_VERDEFNUM: u64 = 0x6fff_fffd;
const DT_VERNEED: u64 = 0x6fff_fffe;
const DT_VERNEEDNUM: u64 = 0x6fff_ffff;
const SYMBOL: u64 = 24;
/// More symbols than any library has: `libtorch_cpu.so` has some 200,000.
const MOST: u64 = 10_000_000;
/// More versions than any library needs or defines.
const MOST_VERSIONS: u64 = 4096;
const WEAK_VERSION: u16 = 2;
const BASE_VERSION: u16 = 1;

/// Why the symbols of a file are unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ElfError {
    /// Not an ELF file.
    NotElf,
    /// An ELF file of 32 bits or with the other byte order.
    OtherClass,
    /// A table is outside the file or contradicts another.
    Damaged(&'static str),
    /// The file has no dynamic symbols: a static program, or a library stripped of what a loader needs.
    NoSymbols,
}

impl std::fmt::Display for ElfError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotElf => f.write_str("not an ELF file"),
            Self::OtherClass => f.write_str("not a 64-bit little-endian ELF file"),
            Self::Damaged(table) => write!(f, "damaged {table}"),
            Self::NoSymbols => f.write_str("no dynamic symbols: it was stripped of them"),
        }
    }
}

impl std::error::Error for ElfError {}

/// A dynamic symbol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Symbol {
    /// The name, mangled if it is C++.
    pub name: String,
    /// Its version, such as `GLIBC_2.17`.
    pub version: Option<String>,
    /// Whether the library has it; otherwise the library asks for it.
    pub is_defined: bool,
    /// Whether a library without it still loads.
    pub is_weak: bool,
    /// Whether only a reference to exactly its version finds it.
    pub is_hidden_version: bool,
}

/// A version that a library asks another one for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct VersionNeed {
    /// The soname of the other library.
    pub library: String,
    /// The version.
    pub version: String,
}

/// A shared library, as the dynamic loader sees it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Object {
    /// The processor, as ELF numbers it: 62 is `x86_64`, 183 aarch64.
    pub machine: u16,
    /// Its dynamic section.
    pub dynamic: Dynamic,
    /// Its dynamic symbols that others can see or that it asks for.
    pub symbols: Vec<Symbol>,
    /// The versions that it needs; weak needs are left out.
    pub version_needs: Vec<VersionNeed>,
    /// The versions that it defines.
    pub version_definitions: Vec<String>,
}

/// Reads the dynamic symbols of a shared library.
///
/// # Errors
/// An [`ElfError`] for any other file, and for one whose tables are damaged.
pub fn object(file: &(impl Source + ?Sized)) -> Result<Object, ElfError> {
    let header = file.read(0, 64).ok_or(ElfError::NotElf)?;
    if header[..4] != [0x7f, b'E', b'L', b'F'] {
        return Err(ElfError::NotElf);
    }
    if header[4..6] != [2, 1] {
        return Err(ElfError::OtherClass);
    }
    let machine = u16_at(&header, 18).ok_or(ElfError::NotElf)?;
    let segments = segments(file).ok_or(ElfError::Damaged("program headers"))?;
    let entries = entries(file, &segments).ok_or(ElfError::Damaged("dynamic section"))?;
    let at = entries.first(DT_SYMTAB).ok_or(ElfError::NoSymbols)?;
    let tables = Tables { file, segments: &segments, entries: &entries };
    let count = tables.count(&header, at).ok_or(ElfError::Damaged("symbol count"))?;
    let size = count.checked_mul(SYMBOL).filter(|_| count <= MOST);
    let size = size.ok_or(ElfError::Damaged("symbol count"))?;
    let table = at_address(file, &segments, at, size).ok_or(ElfError::Damaged("symbol table"))?;
    let versions = tables.version_indexes(count)?;
    let strings = entries.strings(file, &segments).ok_or(ElfError::Damaged("string table"))?;
    let dynamic = entries.dynamic(&strings).ok_or(ElfError::Damaged("string table"))?;
    let needs = tables.needs(&strings).ok_or(ElfError::Damaged("version needs"))?;
    let defined = tables.definitions(&strings).ok_or(ElfError::Damaged("version definitions"))?;
    let defined_names = defined.iter().map(|one| (one.index, one.name.clone()));
    let names: BTreeMap<u16, String> = needs.names.into_iter().chain(defined_names).collect();
    let budget = Budget::of(&strings);
    let mut symbols = Vec::new();
    for (index, entry) in table.chunks_exact(24).enumerate().skip(1) {
        let Some(mut one) = symbol(entry, &strings)? else { continue };
        if let Some(version) = versions.as_ref().and_then(|all| u16_at(all, index * 2)) {
            // 0 and 1 are "local" and "unversioned".
            one.version = Some(version & 0x7fff)
                .filter(|index| *index > 1)
                .and_then(|index| names.get(&index).cloned());
            one.is_hidden_version = version & 0x8000 != 0 && one.is_defined;
        }
        if !budget.takes(&one.name) || !one.version.as_ref().is_none_or(|version| budget.takes(version)) {
            return Err(ElfError::Damaged("string table"));
        }
        symbols.push(one);
    }
    let version_definitions = defined.into_iter().filter(|one| !one.is_base).map(|one| one.name).collect();
    Ok(Object { machine, dynamic, symbols, version_needs: needs.strong, version_definitions })
}

/// A symbol of the table; `None` for those that no other library sees.
fn symbol(entry: &[u8], strings: &[u8]) -> Result<Option<Symbol>, ElfError> {
    const DAMAGED: ElfError = ElfError::Damaged("symbol table");
    let (binding, visibility) = (entry[4] >> 4, entry[5] & 3);
    let is_defined = u16_at(entry, 6).ok_or(DAMAGED)? != 0;
    // Global, weak and unique; hidden ones are the library's own.
    if !matches!(binding, 1 | 2 | 10) || (is_defined && matches!(visibility, 1 | 2)) {
        return Ok(None);
    }
    let name = u32_at(entry, 0).and_then(|at| text(strings, u64::from(at))).ok_or(DAMAGED)?;
    let (version, is_weak, is_hidden_version) = (None, binding == 2, false);
    Ok((!name.is_empty()).then_some(Symbol { name, version, is_defined, is_weak, is_hidden_version }))
}

/// The versions that the library needs.
#[derive(Default)]
struct Needs {
    /// Their names by index.
    names: Vec<(u16, String)>,
    /// Those that must be there.
    strong: Vec<VersionNeed>,
}

/// A version that the library defines.
struct Definition {
    index: u16,
    name: String,
    /// The name of the library itself.
    is_base: bool,
}

struct Tables<'a, S: ?Sized> {
    file: &'a S,
    segments: &'a [Segment],
    entries: &'a Entries,
}

impl<S: Source + ?Sized> Tables<'_, S> {
    fn at(&self, address: u64, size: u64) -> Option<Vec<u8>> {
        at_address(self.file, self.segments, address, size)
    }

    /// The number of symbols, which no entry of the dynamic section tells: the hash tables know it. That of GNU knows none if
    /// nothing is exported; then the section headers do, or the relocations, where those are stripped.
    fn count(&self, header: &[u8], symbols: u64) -> Option<u64> {
        if let Some(at) = self.entries.first(DT_HASH) {
            return Some(u64::from(u32_at(&self.at(at, 8)?, 4)?));
        }
        let hashed = self.entries.first(DT_GNU_HASH).map_or(Some(0), |at| self.hashed(at))?;
        if hashed > 0 {
            return Some(hashed);
        }
        self.in_sections(header, symbols).or_else(|| self.in_relocations())
    }

    /// The end of the last chain of GNU's hash table; 0 for an empty table.
    fn hashed(&self, at: u64) -> Option<u64> {
        let head = self.at(at, 16)?;
        let (buckets, first, bloom) = (u32_at(&head, 0)?, u32_at(&head, 4)?, u32_at(&head, 8)?);
        let buckets_at = at.checked_add(16)?.checked_add(u64::from(bloom).checked_mul(8)?)?;
        let table = self.at(buckets_at, u64::from(buckets).checked_mul(4)?)?;
        let last = table.chunks_exact(4).filter_map(|entry| u32_at(entry, 0)).max().unwrap_or(0);
        if last == 0 {
            return Some(0);
        }
        let chains = buckets_at.checked_add(u64::from(buckets) * 4)?;
        let mut index = u64::from(last);
        let mut place = chains.checked_add(index.checked_sub(u64::from(first))?.checked_mul(4)?)?;
        // A chain ends at an odd hash; it is read in pieces, since most are short.
        while index < MOST {
            let entry = u32_at(&self.at(place, 4)?, 0)?;
            index += 1;
            place = place.checked_add(4)?;
            if entry & 1 == 1 {
                return Some(index);
            }
        }
        None
    }

    /// The size of the section that begins where the symbols do.
    fn in_sections(&self, header: &[u8], symbols: u64) -> Option<u64> {
        const DYNSYM: u32 = 11;
        let (offset, size, count) = (u64_at(header, 40)?, u16_at(header, 58)?, u16_at(header, 60)?);
        if size != SECTION_HEADER || count == 0 {
            return None;
        }
        let table = self.file.read(offset, usize::from(size) * usize::from(count))?;
        let is_it = |entry: &&[u8]| u32_at(entry, 4) == Some(DYNSYM) && u64_at(entry, 16) == Some(symbols);
        let section = table.chunks_exact(usize::from(size)).find(is_it)?;
        Some(u64_at(section, 32)? / SYMBOL)
    }

    /// One more than the last symbol that a relocation names.
    fn in_relocations(&self) -> Option<u64> {
        let mut last = 0;
        for (at, size) in [(DT_RELA, DT_RELASZ), (DT_JMPREL, DT_PLTRELSZ)] {
            let Some(at) = self.entries.first(at) else { continue };
            let table = self.at(at, self.entries.first(size)?)?;
            last = table.chunks_exact(24).filter_map(|one| u32_at(one, 12)).max().unwrap_or(0).max(last);
        }
        Some(u64::from(last) + 1)
    }

    /// The version of each symbol, as an index; `None` if the library has no versions.
    fn version_indexes(&self, count: u64) -> Result<Option<Vec<u8>>, ElfError> {
        let Some(at) = self.entries.first(DT_VERSYM) else { return Ok(None) };
        self.at(at, count * 2).map(Some).ok_or(ElfError::Damaged("table of versions"))
    }

    fn needs(&self, strings: &[u8]) -> Option<Needs> {
        let mut needs = Needs::default();
        let Some(start) = self.entries.first(DT_VERNEED) else { return Some(needs) };
        let budget = Budget::of(strings);
        let mut at = offset_of(self.segments, start)?;
        for _ in 0..self.entries.first(DT_VERNEEDNUM)?.min(MOST_VERSIONS) {
            let head = self.file.read(at, 16)?;
            let (count, library) = (u16_at(&head, 2)?, text(strings, u64::from(u32_at(&head, 4)?))?);
            let mut inner = at.checked_add(u64::from(u32_at(&head, 8)?))?;
            for _ in 0..count {
                let entry = self.file.read(inner, 16)?;
                let version =
                    text(strings, u64::from(u32_at(&entry, 8)?)).filter(|name| budget.takes(name))?;
                needs.names.push((u16_at(&entry, 6)? & 0x7fff, version.clone()));
                if needs.names.len() > usize::from(u16::MAX) {
                    return None;
                }
                if u16_at(&entry, 4)? & WEAK_VERSION == 0 {
                    // Each need copies the library's name, and the version's once more.
                    if !budget.takes(&library) || !budget.takes(&version) {
                        return None;
                    }
                    needs.strong.push(VersionNeed { library: library.clone(), version });
                }
                let next = u64::from(u32_at(&entry, 12)?);
                if next == 0 {
                    break;
                }
                inner = inner.checked_add(next)?;
            }
            let next = u64::from(u32_at(&head, 12)?);
            if next == 0 {
                break;
            }
            at = at.checked_add(next)?;
        }
        Some(needs)
    }

    fn definitions(&self, strings: &[u8]) -> Option<Vec<Definition>> {
        let mut defined = Vec::new();
        let Some(start) = self.entries.first(DT_VERDEF) else { return Some(defined) };
        let budget = Budget::of(strings);
        let mut at = offset_of(self.segments, start)?;
        for _ in 0..self.entries.first(DT_VERDEFNUM)?.min(MOST_VERSIONS) {
            let head = self.file.read(at, 20)?;
            let names = self.file.read(at.checked_add(u64::from(u32_at(&head, 12)?))?, 8)?;
            let (name, is_base) =
                (text(strings, u64::from(u32_at(&names, 0)?))?, u16_at(&head, 2)? & BASE_VERSION != 0);
            if !budget.takes(&name) {
                return None;
            }
            defined.push(Definition { index: u16_at(&head, 4)? & 0x7fff, name, is_base });
            let next = u64::from(u32_at(&head, 16)?);
            if next == 0 {
                break;
            }
            at = at.checked_add(next)?;
        }
        Some(defined)
    }
}
