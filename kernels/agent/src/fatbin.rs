//! Which GPUs a library has code for: a walk through its section `.nv_fatbin`, by headers alone.
//!
//! The layout is not documented. It was measured on CUDA 11.8 to 13.x and agrees with `cuobjdump --list-elf`; whatever does
//! not look like it makes the answer "unknown", never "none" and never "all".

use std::collections::BTreeMap;

use envforge_protocol::elf::{self, Source, u16_at, u32_at, u64_at};

use super::kernels::Capability;

const MAGIC: u32 = 0xBA55_ED50;
/// Header of a container: magic, version, own length, length of all entries.
const CONTAINER: u64 = 16;
/// As much of an entry's header as is read: it holds the architecture at 28.
const ENTRY: usize = 32;
const KIND_PTX: u16 = 1;
const KIND_ELF: u16 = 2;
/// More entries than any library has.
const MOST: usize = 4_000_000;

/// Code found: the bytes of each kind for each architecture, with the headers of its entries.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Code {
    /// Machine code.
    pub(crate) cubin: BTreeMap<Capability, u64>,
    /// PTX.
    pub(crate) ptx: BTreeMap<Capability, u64>,
}

/// How a chip would run the code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Coverage {
    /// Nothing in it runs there.
    Nothing,
    /// The driver compiles PTX of this architecture first.
    ByDriver(Capability),
    /// It has machine code of this architecture.
    Native(Capability),
}

impl Code {
    /// Machine code runs on chips of its major version from its minor version on, but for Tegra; PTX on any later chip.
    pub(crate) fn coverage(&self, chip: Capability) -> Coverage {
        let native = self.cubin.keys().filter(|made| envforge_protocol::cubin_runs_on(**made, chip)).max();
        let driver = self.ptx.keys().filter(|made| **made <= chip).max();
        match (native, driver) {
            (Some(made), _) => Coverage::Native(*made),
            (None, Some(made)) => Coverage::ByDriver(*made),
            (None, None) => Coverage::Nothing,
        }
    }

    fn is_empty(&self) -> bool {
        self.cubin.is_empty() && self.ptx.is_empty()
    }
}

/// The code of a library: `Ok(None)` if it has no such section, `Err` with the surprise if the layout is another.
pub(crate) fn code(file: &(impl Source + ?Sized)) -> Result<Option<Code>, String> {
    code_in(file, ".nv_fatbin")
}

/// The code of a library whose device code was linked as a whole, as NCCL's is. For a chip without machine code the
/// driver links it again from the PTX of its parts (CUDA's compiler manual, "implicit JIT linking"), which lie apart.
pub(crate) fn linked_code(file: &(impl Source + ?Sized)) -> Result<Option<Code>, String> {
    let mut found = code(file)?;
    if let (Some(code), Ok(Some(parts))) = (&mut found, code_in(file, "__nv_relfatbin")) {
        code.ptx.extend(parts.ptx);
    }
    Ok(found)
}

/// All code of a library, parts that are linked later included: the bytes it takes in the file.
pub(crate) fn all_code(file: &(impl Source + ?Sized)) -> Result<Option<Code>, String> {
    let (linked, parts) = (code(file)?, code_in(file, "__nv_relfatbin")?);
    let (Some(mut all), Some(parts)) = (linked.clone(), parts.clone()) else { return Ok(linked.or(parts)) };
    for (of_all, of_parts) in [(&mut all.cubin, parts.cubin), (&mut all.ptx, parts.ptx)] {
        for (chip, bytes) in of_parts {
            *of_all.entry(chip).or_default() += bytes;
        }
    }
    Ok(Some(all))
}

fn code_in(file: &(impl Source + ?Sized), section: &str) -> Result<Option<Code>, String> {
    let Some((start, size)) = elf::section(file, section)? else { return Ok(None) };
    let end = start.checked_add(size).ok_or("the section has no end")?;
    let mut code = Code::default();
    let (mut at, mut seen) = (start, 0);
    while end - at >= CONTAINER {
        let header = file.read(at, 16).ok_or("the section is cut short")?;
        if u32_at(&header, 0) != Some(MAGIC) {
            // Containers are aligned; what lies between them is zero.
            if header[..8] != [0; 8] {
                return Err(format!("unknown bytes at {:#x} of the section", at - start));
            }
            at += 8;
            continue;
        }
        let (own, length) = (u16_at(&header, 6), u64_at(&header, 8));
        let body = own.and_then(|own| at.checked_add(u64::from(own))).ok_or("a header has no length")?;
        let after = length.and_then(|length| body.checked_add(length)).ok_or("a container has no length")?;
        if body < at + CONTAINER || after > end {
            return Err(format!("the container at {:#x} exceeds the section", at - start));
        }
        entries(file, body, after, &mut code, &mut seen)?;
        at = after;
    }
    if code.is_empty() { Err("the section holds no code".to_owned()) } else { Ok(Some(code)) }
}

/// The entries of one container.
fn entries(
    file: &(impl Source + ?Sized),
    start: u64,
    end: u64,
    code: &mut Code,
    seen: &mut usize,
) -> Result<(), String> {
    let mut at = start;
    while at < end {
        *seen += 1;
        let fault = || format!("an entry {} bytes into its container is not as expected", at - start);
        let header = file.read(at, ENTRY).ok_or_else(fault)?;
        let fields =
            || Some((u16_at(&header, 0)?, u32_at(&header, 4)?, u64_at(&header, 8)?, u32_at(&header, 28)?));
        let (kind, own, length, arch) = fields().ok_or_else(fault)?;
        let after = at.checked_add(u64::from(own)).and_then(|body| body.checked_add(length));
        let after = after.filter(|after| *after <= end).ok_or_else(fault)?;
        let plausible = (20..1000).contains(&arch) && own as usize >= ENTRY && *seen <= MOST;
        let images = match kind {
            KIND_PTX => &mut code.ptx,
            KIND_ELF => &mut code.cubin,
            _ => return Err(fault()),
        };
        if !plausible {
            return Err(fault());
        }
        *images.entry((arch / 10, arch % 10)).or_default() += after - at;
        at = after;
    }
    Ok(())
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// An ELF file with nothing but a `.nv_fatbin` section that holds these entries: kind and architecture.
    pub(crate) fn library(images: &[(u16, u32)]) -> Vec<u8> {
        library_of(&[(".nv_fatbin", images)])
    }

    /// An ELF file with those sections of entries.
    pub(crate) fn library_of(sections: &[(&str, &[(u16, u32)])]) -> Vec<u8> {
        let mut names = b"\0".to_vec();
        let mut file = vec![0_u8; 64];
        // Name, offset and size of each; the first is always empty.
        let mut table = vec![(0, 0, 0)];
        for (name, images) in sections {
            let section = section(images);
            table.push((names.len(), file.len(), section.len()));
            names.extend(name.bytes().chain([0]));
            file.extend(section);
        }
        let name = names.len();
        names.extend(b".names\0");
        table.push((name, file.len(), names.len()));
        file.extend(names);
        file[..6].copy_from_slice(&[0x7f, b'E', b'L', b'F', 2, 1]);
        let start = file.len() as u64;
        file[40..48].copy_from_slice(&start.to_le_bytes());
        file[54..58].copy_from_slice(&[56, 0, 0, 0]);
        let count = u8::try_from(table.len()).expect("few");
        file[58..64].copy_from_slice(&[64, 0, count, 0, count - 1, 0]);
        for (name, offset, size) in table {
            let mut entry = [0_u8; 64];
            entry[..4].copy_from_slice(&u32::try_from(name).expect("few").to_le_bytes());
            entry[24..32].copy_from_slice(&(offset as u64).to_le_bytes());
            entry[32..40].copy_from_slice(&(size as u64).to_le_bytes());
            file.extend(entry);
        }
        file
    }

    fn section(images: &[(u16, u32)]) -> Vec<u8> {
        let mut body = Vec::new();
        for (kind, arch) in images {
            let mut entry = vec![0_u8; 64];
            entry[..2].copy_from_slice(&kind.to_le_bytes());
            entry[4..8].copy_from_slice(&64_u32.to_le_bytes());
            entry[8..16].copy_from_slice(&24_u64.to_le_bytes());
            entry[28..32].copy_from_slice(&arch.to_le_bytes());
            body.extend(entry);
            body.extend([7; 24]);
        }
        let mut section = MAGIC.to_le_bytes().to_vec();
        section.extend([1, 0, 16, 0]);
        section.extend((body.len() as u64).to_le_bytes());
        section.extend(body);
        section.extend([0; 8]);
        section
    }

    #[test]
    fn bytes_are_summed_by_kind_and_architecture() {
        let file = library(&[(2, 70), (2, 90), (2, 90), (1, 120)]);
        let code = code(file.as_slice()).expect("as measured").expect("a section");
        assert_eq!(code.cubin, BTreeMap::from([((7, 0), 88), ((9, 0), 176)]));
        assert_eq!(code.ptx, BTreeMap::from([((12, 0), 88)]));
        assert_eq!(code.coverage((7, 5)), Coverage::Native((7, 0)));
        assert_eq!(
            code.coverage((8, 0)),
            Coverage::Nothing,
            "machine code of another major version does not run"
        );
        assert_eq!(code.coverage((12, 1)), Coverage::ByDriver((12, 0)));
        assert_eq!(code.coverage((6, 1)), Coverage::Nothing);
    }

    #[test]
    fn the_ptx_of_parts_counts_where_all_is_linked() {
        // As in NCCL 2.21.5 for CUDA 11: machine code to 8.0, and PTX of the parts alone.
        let file =
            library_of(&[("__nv_relfatbin", &[(2, 80), (1, 80)]), (".nv_fatbin", &[(2, 70), (2, 80)])]);
        let whole = code(file.as_slice()).expect("as measured").expect("a section");
        assert_eq!(whole.coverage((9, 0)), Coverage::Nothing);
        let linked = linked_code(file.as_slice()).expect("as measured").expect("a section");
        assert_eq!(linked.coverage((9, 0)), Coverage::ByDriver((8, 0)));
        assert_eq!(linked.cubin, whole.cubin);
        let all = all_code(file.as_slice()).expect("as measured").expect("a section");
        assert_eq!(all.cubin, BTreeMap::from([((7, 0), 88), ((8, 0), 176)]), "both sections take room");
        let strange = library_of(&[("__nv_relfatbin", &[(9, 80)]), (".nv_fatbin", &[(2, 80)])]);
        let linked = linked_code(strange.as_slice()).expect("as measured").expect("a section");
        assert_eq!(linked.coverage((9, 0)), Coverage::Nothing, "what is not understood counts for nothing");
        assert!(all_code(strange.as_slice()).is_err(), "the bytes of a strange section are unknown");
    }

    #[test]
    fn any_surprise_is_unknown() {
        let good = library(&[(2, 90)]);
        for (at, value, what) in [
            (64, 0, "the magic"),
            (64 + 8, 0xff, "the length of a container"),
            (64 + 16, 9, "the kind"),
            (64 + 16 + 4, 1, "the length of a header"),
            (64 + 16 + 28, 3, "the architecture"),
        ] {
            let mut file = good.clone();
            file[at] = value;
            assert!(code(file.as_slice()).is_err(), "{what}");
        }
        assert!(code(library(&[]).as_slice()).is_err(), "an empty section is no answer");
        assert!(code(&b"no library"[..]).is_err());
    }

    proptest! {
        #[test]
        fn no_file_makes_it_panic(
            cut in 0_usize..600, changes in prop::collection::vec((0_usize..600, any::<u8>()), 0..6)
        ) {
            let mut file = library(&[(2, 70), (1, 90)]);
            for (at, value) in changes {
                let at = at % file.len();
                file[at] = value;
            }
            for end in [file.len(), cut.min(file.len())] {
                let _ = code(&file[..end]);
                let _ = elf::dynamic(&file[..end]);
                let _ = elf::extent(&file[..end]);
            }
        }
    }
}
