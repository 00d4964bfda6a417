//! The C library of an image, found by the files of the image alone.
//!
//! Pure: reads tars of the paths below.

use crate::model::bounded::read_bounded;
use crate::model::bounded_tar::BoundedTar;
use crate::model::versions::{GlibcVersion, Machine};

/// The C library of an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Libc {
    /// glibc of that version.
    Glibc(GlibcVersion),
    /// musl.
    Musl,
    /// No known C library.
    Unknown,
}

impl std::fmt::Display for Libc {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Glibc(version) => write!(f, "glibc {version}"),
            Self::Musl => f.write_str("musl"),
            Self::Unknown => f.write_str("unknown C library"),
        }
    }
}

/// Paths of C libraries.
pub fn libc_paths(machine: Machine) -> [&'static str; 4] {
    match machine {
        Machine::X86_64 => [
            "/lib/x86_64-linux-gnu/libc.so.6",
            "/lib64/libc.so.6",
            "/usr/lib/libc.so.6",
            "/lib/ld-musl-x86_64.so.1",
        ],
        Machine::Aarch64 => [
            "/lib/aarch64-linux-gnu/libc.so.6",
            "/lib64/libc.so.6",
            "/usr/lib/libc.so.6",
            "/lib/ld-musl-aarch64.so.1",
        ],
    }
}

/// Returns the C library that the tars of those paths contain.
pub fn libc_of<'a>(found: impl IntoIterator<Item = (&'a String, &'a Vec<u8>)>) -> Libc {
    let mut musl = false;
    for (path, tar) in found {
        if path.contains("ld-musl") {
            musl = true;
        } else if let Some(version) = glibc_in(tar) {
            return Libc::Glibc(version);
        }
    }
    if musl { Libc::Musl } else { Libc::Unknown }
}

/// Returns the version in a link's target (`libc-2.31.so`) or in the library's own greeting.
fn glibc_in(tar: &[u8]) -> Option<GlibcVersion> {
    let mut archive = BoundedTar::new(tar);
    let mut entry = archive.entries().ok()?.next()?.ok()?;
    if let Some(target) = entry.link_name().ok().flatten() {
        let name = target.file_name()?.to_str()?;
        return name.strip_prefix("libc-")?.strip_suffix(".so")?.parse().ok();
    }
    let bytes = read_bounded(&mut entry, tar.len() as u64).ok()?;
    let greeting = b"GNU C Library";
    let at = bytes.windows(greeting.len()).position(|window| window == greeting)?;
    let line: String = bytes[at..].iter().take(200).map(|byte| char::from(*byte)).collect();
    let (_, rest) = line.split_once("release version ")?;
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    rest[..end].trim_end_matches('.').parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tar_of(entry: impl FnOnce(&mut tar::Builder<Vec<u8>>)) -> Vec<u8> {
        let mut tar = tar::Builder::new(Vec::new());
        entry(&mut tar);
        tar.into_inner().expect("in memory")
    }

    fn file(bytes: &[u8]) -> Vec<u8> {
        tar_of(|tar| {
            let mut header = tar::Header::new_gnu();
            header.set_size(bytes.len() as u64);
            tar.append_data(&mut header, "libc.so.6", bytes).expect("in memory");
        })
    }

    fn link(target: &str) -> Vec<u8> {
        tar_of(|tar| {
            let mut header = tar::Header::new_gnu();
            header.set_entry_type(tar::EntryType::Symlink);
            header.set_size(0);
            tar.append_link(&mut header, "libc.so.6", target).expect("in memory");
        })
    }

    fn of(path: &str, tar: &[u8]) -> Libc {
        libc_of([(&path.to_owned(), &tar.to_vec())])
    }

    #[test]
    fn reads_version_from_link_or_greeting() {
        let version = |text: &str| Libc::Glibc(text.parse().expect("a version"));
        assert_eq!(of("/lib/x86_64-linux-gnu/libc.so.6", &link("libc-2.31.so")), version("2.31"));
        let greeting =
            b"\0\x01GNU C Library (Debian GLIBC 2.36-9+deb12u10) stable release version 2.36.\nCopyright";
        assert_eq!(of("/lib/x86_64-linux-gnu/libc.so.6", &file(greeting)), version("2.36"));
    }

    #[test]
    fn distinguishes_musl_from_unknown() {
        assert_eq!(of("/lib/ld-musl-x86_64.so.1", &file(b"\x7fELF")), Libc::Musl);
        assert_eq!(of("/lib64/libc.so.6", &file(b"\x7fELF")), Libc::Unknown);
        assert_eq!(libc_of([]), Libc::Unknown);
    }
}
