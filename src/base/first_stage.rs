//! The first stage of a bootstrap: all packages' files in one tar, enough for dpkg to run in it.
//!
//! Owns the merged /usr, the excluded files, and the few files dpkg requires. Decides nothing about packages.

use std::collections::BTreeSet;
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use super::deb::{DebError, data_tar};
use super::limits::LARGEST_SOURCES;
use crate::archive::canonical_tar::HardLinks;
use crate::archive::content_digest::relative;
use crate::model::bounded::read_bounded;
use crate::model::bounded_tar::BoundedTar;
use crate::model::versions::Machine;
use crate::model::whiteout::{DELETES, deletes};

/// The directory of the packages while dpkg works.
pub(crate) const DEB_FOLDER: &str = "/var/cache/envforge-base";

/// Paths that dpkg does not unpack, in the base and in every image based on it: documentation that containers do
/// not need. Licenses (`copyright`) are kept.
const DPKG_EXCLUDES: &str = "\
# Documentation is left out of images; licences stay. Remove this file and reinstall a package to get its pages.
path-exclude /usr/share/doc/*
path-include /usr/share/doc/*/copyright
path-exclude /usr/share/groff/*
path-exclude /usr/share/info/*
path-exclude /usr/share/linda/*
path-exclude /usr/share/lintian/*
path-exclude /usr/share/locale/*
path-exclude /usr/share/man/*
";

/// Directories of `/usr` with links in `/`, created before their first file.
fn merged(machine: Machine) -> &'static [&'static str] {
    match machine {
        Machine::X86_64 => &["bin", "lib", "lib64", "sbin"],
        Machine::Aarch64 => &["bin", "lib", "sbin"],
    }
}

/// Writes the first-stage tar, package by package.
pub(crate) struct FirstStage<W: Write> {
    tar: tar::Builder<W>,
    machine: Machine,
    written: BTreeSet<Vec<u8>>,
    links: HardLinks,
    /// apt's own example of its sources: name and content.
    sources: Option<(&'static str, Vec<u8>)>,
}

/// A finished first-stage tar.
pub(crate) struct Finished<W> {
    /// Where it was written to.
    pub(crate) out: W,
    /// Names of files by the name that their package gives them too.
    pub(crate) links: HardLinks,
    /// Whether apt's sources were found.
    pub(crate) has_sources: bool,
}

impl<W: Write> FirstStage<W> {
    /// Starts with the merged /usr and an empty package database.
    pub(crate) fn start(out: W, machine: Machine) -> std::io::Result<Self> {
        let (tar, written) = (tar::Builder::new(out), BTreeSet::new());
        let mut stage = Self { tar, machine, written, links: HardLinks::new(), sources: None };
        stage.folder("usr")?;
        for name in merged(machine) {
            stage.folder(&format!("usr/{name}"))?;
            let mut header = plain_header(tar::EntryType::Symlink, 0o777, 0);
            stage.tar.append_link(&mut header, name, format!("usr/{name}"))?;
            stage.written.insert(name.as_bytes().to_owned());
        }
        for folder in
            ["etc", "etc/dpkg", "etc/dpkg/dpkg.cfg.d", "var", "var/cache", "var/lib", "var/lib/dpkg"]
        {
            stage.folder(folder)?;
        }
        for folder in ["var/lib/dpkg/info", "var/lib/dpkg/updates"] {
            stage.folder(folder)?;
        }
        stage.file("var/lib/dpkg/status", b"")?;
        stage.file("var/lib/dpkg/available", b"")?;
        stage.file("etc/dpkg/dpkg.cfg.d/envforge-slim", DPKG_EXCLUDES.as_bytes())?;
        Ok(stage)
    }

    /// Adds a package: its files, and itself for dpkg.
    pub(crate) fn add(&mut self, name: &str, deb: &mut (impl Read + Seek)) -> Result<(), DebError> {
        let mut data = BoundedTar::new(data_tar(deb)?);
        for entry in data.entries()? {
            self.add_entry(&mut entry?)?;
        }
        drop(data);
        let size = deb.seek(SeekFrom::End(0))?;
        deb.rewind()?;
        self.stream(&format!("{}/{name}.deb", &DEB_FOLDER[1..]), size, deb)?;
        Ok(())
    }

    /// Writes apt's sources and the end of the archive.
    pub(crate) fn finish(mut self) -> std::io::Result<Finished<W>> {
        let sources = self.sources.take();
        if let Some((name, content)) = &sources {
            let folder = if *name == "sources.list" { "etc/apt" } else { "etc/apt/sources.list.d" };
            self.file(&format!("{folder}/{name}"), content)?;
        }
        Ok(Finished { out: self.tar.into_inner()?, links: self.links, has_sources: sources.is_some() })
    }

    fn add_entry(&mut self, entry: &mut tar::Entry<'_, impl Read>) -> std::io::Result<()> {
        let original = relative(&entry.path_bytes()).to_owned();
        let refused = |what: &str| {
            let text = format!("`{}`: {what}", String::from_utf8_lossy(&original).escape_debug());
            std::io::Error::new(std::io::ErrorKind::InvalidData, text)
        };
        if deletes(&original) {
            return Err(refused(DELETES));
        }
        // Its zeros are not in the package: a kilobyte may stand for a terabyte.
        if entry.header().entry_type().is_gnu_sparse() {
            return Err(refused("it is a sparse file"));
        }
        match original.as_slice() {
            b"usr/share/doc/apt/examples/sources.list" => self.keep_sources("sources.list", entry)?,
            b"usr/share/doc/apt/examples/debian.sources" => self.keep_sources("debian.sources", entry)?,
            b"usr/share/doc/apt/examples/ubuntu.sources" => self.keep_sources("ubuntu.sources", entry)?,
            _ => {}
        }
        let path = self.merge(&original);
        if path.is_empty() || is_excluded(&path) || !self.written.insert(path.clone()) {
            return Ok(());
        }
        self.parents(&path)?;
        if let Some(copy) = first_accounts(&path) {
            let content = read_bounded(&mut *entry, LARGEST_SOURCES)?;
            self.file(copy, &content)?;
            let path = Path::new(std::ffi::OsStr::from_bytes(&path));
            return self.tar.append_data(&mut entry.header().clone(), path, content.as_slice());
        }
        let mut header = entry.header().clone();
        let path = Path::new(std::ffi::OsStr::from_bytes(&path));
        match header.entry_type() {
            tar::EntryType::Link => {
                let target = entry.link_name_bytes().map(|t| self.merge(relative(&t))).unwrap_or_default();
                self.tar.append_link(&mut header, path, Path::new(std::ffi::OsStr::from_bytes(&target)))?;
                self.links.insert(path.as_os_str().as_bytes().to_owned(), target);
                Ok(())
            }
            tar::EntryType::Symlink => {
                let target = entry.link_name_bytes().map(std::borrow::Cow::into_owned).unwrap_or_default();
                self.tar.append_link(&mut header, path, Path::new(std::ffi::OsStr::from_bytes(&target)))
            }
            _ => self.tar.append_data(&mut header, path, entry),
        }
    }

    fn keep_sources(&mut self, name: &'static str, entry: &mut impl Read) -> std::io::Result<()> {
        self.sources = Some((name, read_bounded(entry, LARGEST_SOURCES)?));
        Ok(())
    }

    /// Returns a path of the merged system: `bin/sh` is `usr/bin/sh`.
    fn merge(&self, path: &[u8]) -> Vec<u8> {
        let first = path.split(|byte| *byte == b'/').next().unwrap_or_default();
        let inside = path.len() > first.len();
        if inside && merged(self.machine).iter().any(|name| name.as_bytes() == first) {
            return [b"usr/", path].concat();
        }
        path.to_owned()
    }

    /// Writes the folders of a path that are not there: storage drivers give them different modes where an archive lacks them,
    /// as those of excluded documentation that holds a licence.
    fn parents(&mut self, path: &[u8]) -> std::io::Result<()> {
        for (end, _) in path.iter().enumerate().filter(|(_, byte)| **byte == b'/') {
            if !self.written.contains(&path[..end]) {
                self.folder(&String::from_utf8_lossy(&path[..end]))?;
            }
        }
        Ok(())
    }

    fn folder(&mut self, path: &str) -> std::io::Result<()> {
        if !self.written.insert(path.as_bytes().to_owned()) {
            return Ok(());
        }
        let mut header = plain_header(tar::EntryType::Directory, 0o755, 0);
        self.tar.append_data(&mut header, path, std::io::empty())
    }

    fn file(&mut self, path: &str, content: &[u8]) -> std::io::Result<()> {
        self.stream(path, content.len() as u64, content)
    }

    fn stream(&mut self, path: &str, size: u64, content: impl Read) -> std::io::Result<()> {
        self.written.insert(path.as_bytes().to_owned());
        let mut header = plain_header(tar::EntryType::Regular, 0o644, size);
        self.tar.append_data(&mut header, path, content)
    }
}

fn plain_header(kind: tar::EntryType, mode: u32, size: u64) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(size);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header
}

/// Where base-passwd copies a file to unless there is one. Without any, Podman puts one of its own over it.
fn first_accounts(path: &[u8]) -> Option<&'static str> {
    match path {
        b"usr/share/base-passwd/passwd.master" => Some("etc/passwd"),
        b"usr/share/base-passwd/group.master" => Some("etc/group"),
        _ => None,
    }
}

/// Whether a path is excluded, as in [`DPKG_EXCLUDES`], for files that dpkg does not install.
fn is_excluded(path: &[u8]) -> bool {
    const FOLDERS: [&[u8]; 7] = [
        b"usr/share/doc/",
        b"usr/share/groff/",
        b"usr/share/info/",
        b"usr/share/linda/",
        b"usr/share/lintian/",
        b"usr/share/locale/",
        b"usr/share/man/",
    ];
    let licence = path.starts_with(b"usr/share/doc/") && path.ends_with(b"/copyright");
    !licence && FOLDERS.iter().any(|folder| path.starts_with(folder))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::base::deb::tests::ar;

    fn deb(files: &[(&str, tar::EntryType, &str)]) -> Vec<u8> {
        let mut builder = tar::Builder::new(Vec::new());
        for (path, kind, content) in files {
            let mut header = plain_header(*kind, 0o755, 0);
            match kind {
                tar::EntryType::Symlink | tar::EntryType::Link => {
                    builder.append_link(&mut header, path, content).expect("link");
                }
                _ => {
                    header.set_size(content.len() as u64);
                    builder.append_data(&mut header, path, content.as_bytes()).expect("file");
                }
            }
        }
        ar(&[("debian-binary", b"2.0\n"), ("data.tar", &builder.into_inner().expect("tar"))])
    }

    /// Path to content or link target; a path written twice is a failure.
    fn listing(debs: &[(&str, Vec<u8>)]) -> BTreeMap<String, String> {
        let mut stage = FirstStage::start(Vec::new(), Machine::X86_64).expect("start");
        for (name, deb) in debs {
            stage.add(name, &mut std::io::Cursor::new(deb)).expect("package");
        }
        let finished = stage.finish().expect("end");
        let mut found = BTreeMap::new();
        for (path, target) in &finished.links {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            found.insert(format!("link {}", text(path)), text(target));
        }
        for entry in tar::Archive::new(finished.out.as_slice()).entries().expect("tar") {
            let mut entry = entry.expect("entry");
            let path = entry.path().expect("path").to_string_lossy().trim_end_matches('/').to_owned();
            let mut content = String::new();
            match entry.link_name().expect("link") {
                Some(target) => content = target.to_string_lossy().into_owned(),
                None => drop(entry.read_to_string(&mut content)),
            }
            assert_eq!(found.insert(path.clone(), content), None, "{path} is there twice");
        }
        found
    }

    #[test]
    fn files_of_unmerged_packages_land_in_usr() {
        use tar::EntryType as T;
        let found = listing(&[
            (
                "bash",
                deb(&[
                    ("./bin/", T::Directory, ""),
                    ("./bin/bash", T::Regular, "shell"),
                    ("./bin/rbash", T::Symlink, "bash"),
                    ("./sbin/hard", T::Link, "./bin/bash"),
                    ("./lib64/ld.so", T::Symlink, "/lib/x/ld.so"),
                    ("./binary", T::Regular, "not merged"),
                ]),
            ),
            ("base-files", deb(&[("./bin", T::Symlink, "usr/bin"), ("./usr/", T::Directory, "")])),
        ]);
        assert_eq!(found["bin"], "usr/bin");
        assert_eq!(found["usr/bin/bash"], "shell");
        assert_eq!(found["usr/bin/rbash"], "bash");
        assert_eq!(found["usr/sbin/hard"], "usr/bin/bash");
        assert_eq!(found["link usr/sbin/hard"], "usr/bin/bash");
        assert_eq!(found["usr/lib64/ld.so"], "/lib/x/ld.so");
        assert_eq!(found["binary"], "not merged");
        assert!(!found.contains_key("bin/bash"));
    }

    #[test]
    fn accounts_are_there_before_an_engine_makes_some() {
        let master = |name| (name, tar::EntryType::Regular, "root:x:0:\n");
        let found = listing(&[(
            "base-passwd",
            deb(&[
                master("./usr/share/base-passwd/passwd.master"),
                master("./usr/share/base-passwd/group.master"),
            ]),
        )]);
        for path in ["etc/passwd", "etc/group", "usr/share/base-passwd/group.master"] {
            assert_eq!(found[path], "root:x:0:\n", "{path}");
        }
    }

    #[test]
    fn sparse_file_is_refused() {
        let mut header = plain_header(tar::EntryType::GNUSparse, 0o644, 0);
        let gnu = header.as_gnu_mut().expect("a GNU header");
        let megabyte = *b"00004000000\0";
        (gnu.realsize, gnu.sparse[0].offset, gnu.sparse[0].numbytes) =
            (megabyte, megabyte, *b"00000000000\0");
        let mut builder = tar::Builder::new(Vec::new());
        builder.append_data(&mut header, "./usr/lib/zeros", std::io::empty()).expect("an entry");
        let deb = ar(&[("debian-binary", b"2.0\n"), ("data.tar", &builder.into_inner().expect("tar"))]);
        let mut stage = FirstStage::start(Vec::new(), Machine::X86_64).expect("start");
        let error = stage.add("demo", &mut std::io::Cursor::new(deb)).expect_err("refused");
        assert!(error.to_string().contains("`usr/lib/zeros`: it is a sparse file"), "{error}");
    }

    #[test]
    fn name_that_deletes_files_is_refused() {
        for path in ["./usr/lib/.wh.libc.so.6", "./usr/share/doc/.wh..wh..opq", "./.wh.etc/x"] {
            let mut stage = FirstStage::start(Vec::new(), Machine::X86_64).expect("start");
            let package = deb(&[(path, tar::EntryType::Regular, "")]);
            let error = stage.add("demo", &mut std::io::Cursor::new(package)).expect_err(path).to_string();
            assert!(error.contains(&path[2..]) && error.contains("deletes files of an image"), "{error}");
        }
    }

    #[test]
    fn documentation_is_excluded_but_licenses_are_kept() {
        use tar::EntryType as T;
        let found = listing(&[(
            "apt",
            deb(&[
                ("./usr/share/doc/apt/copyright", T::Regular, "GPL"),
                ("./usr/share/doc/apt/changelog", T::Regular, "long"),
                ("./usr/share/man/man8/apt.8", T::Regular, "page"),
                ("./usr/share/doc/apt/examples/sources.list", T::Regular, "deb …"),
            ]),
        )]);
        assert_eq!(found["usr/share/doc/apt/copyright"], "GPL");
        assert!(found.contains_key("usr/share/doc/apt"), "without it, storage drivers make one as they like");
        assert_eq!(found["etc/apt/sources.list"], "deb …");
        assert!(!found.keys().any(|path| path.contains("changelog") || path.contains("man8")));
        assert!(found["etc/dpkg/dpkg.cfg.d/envforge-slim"].contains("path-exclude /usr/share/doc/*"));
        assert!(found.contains_key("var/cache/envforge-base/apt.deb"));
    }

    #[test]
    fn excludes_match_those_of_dpkg() {
        for line in DPKG_EXCLUDES.lines().filter_map(|line| line.strip_prefix("path-exclude /")) {
            assert!(is_excluded(line.replace('*', "x").as_bytes()), "{line}");
        }
        assert!(!is_excluded(b"usr/share/doc/x/copyright"));
        assert!(!is_excluded(b"usr/bin/x"));
    }
}
