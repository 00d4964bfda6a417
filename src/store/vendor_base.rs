//! Base images in a vendor directory: their records and archives.
#![expect(clippy::disallowed_methods, reason = "edge: reads the directory")]

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use serde::{Deserialize, Serialize};

use super::limits::LARGEST_RECORD;
use super::regular_file::read_regular_text;
use super::vendor_dir::{VendorProblem, verify_file};
use crate::model::bounded::read_bounded;
use crate::model::bounded_tar::BoundedTar;
use crate::model::entry_name::{collisions, problem, quoted};
use crate::model::lock::{BaseProvider, Lock, LockedBase};
use crate::model::sha256::is_sha256_hex;
use crate::model::versions::Machine;

/// The directory of the records, by the digests in locks.
const BASES: &str = "bases";

/// The archive of a base image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Record {
    /// The digest in the lock.
    pub(crate) digest: String,
    /// `debian:12`.
    pub(crate) name: String,
    /// The architecture: one digest may have several.
    pub(crate) machine: Machine,
    /// SHA-256 of the archive as `docker save` writes it, hex.
    pub(crate) archive: String,
}

/// Returns the digest of a base that is an image.
pub(crate) fn digest(base: &LockedBase) -> Option<&str> {
    base.digest.as_deref().filter(|_| base.provider == BaseProvider::Image)
}

/// Returns the path of a record.
pub(crate) fn record_path(folder: &Utf8Path, digest: &str, machine: Machine) -> Utf8PathBuf {
    let hex = digest.strip_prefix("sha256:").unwrap_or(digest);
    folder.join(BASES).join(format!("{hex}-{machine}.toml"))
}

/// Parses a record; one without a valid digest and hash counts as missing.
fn parse(text: &str) -> Option<Record> {
    let record: Record = toml::from_str(text).ok()?;
    let digest = record.digest.strip_prefix("sha256:")?;
    (is_sha256_hex(digest) && is_sha256_hex(&record.archive)).then_some(record)
}

/// Returns the record of a digest.
pub(crate) fn read(folder: &Utf8Path, digest: &str, machine: Machine) -> Option<Record> {
    let text = read_regular_text(&record_path(folder, digest, machine), LARGEST_RECORD).ok()?;
    parse(&text).filter(|record| record.digest == digest && record.machine == machine)
}

/// Returns the records of a directory, except invalid ones.
pub(crate) fn records(folder: &Utf8Path) -> Vec<Record> {
    let entries = fs_err::read_dir(folder.join(BASES)).into_iter().flatten().flatten();
    let paths = entries.filter_map(|entry| Utf8PathBuf::from_path_buf(entry.path()).ok());
    let mut paths: Vec<_> = paths.collect();
    // Of several records of one name the first counts, on every machine the same.
    paths.sort();
    paths.into_iter().filter_map(|path| parse(&read_regular_text(&path, LARGEST_RECORD).ok()?)).collect()
}

/// Returns the problem of a directory's copy of a base image: `missing` or `damaged`.
pub(crate) fn fault(folder: &Utf8Path, lock: &Lock) -> Option<VendorProblem> {
    let digest = digest(&lock.base)?;
    let file = format!("{}@{digest}", lock.base.name);
    let Some(record) = read(folder, digest, lock.stack.machine) else {
        return Some(VendorProblem { what: "missing", file, path: None });
    };
    let what = verify_file(folder, &record.archive).err()?;
    Some(VendorProblem::of(what, file, &record.archive))
}

/// Checks that an archive has one image with that tag and nothing else: one `manifest.json`, no other list that an engine
/// reads instead, and no path that is another one for who cleans paths or follows links. The error says what was found.
pub(crate) fn check_tags(archive: &Utf8Path, tag: &str) -> std::io::Result<Result<(), String>> {
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Image {
        #[serde(default)]
        repo_tags: Option<Vec<String>>,
    }
    let (mut manifests, mut names) = (0, Vec::new());
    for entry in BoundedTar::new(fs_err::File::open(archive)?).entries()? {
        let entry = entry?;
        let path = match name_of(&entry.path_bytes(), entry.header().entry_type()) {
            Ok(None) => continue,
            Ok(Some(path)) => path,
            Err(found) => return Ok(Err(found)),
        };
        names.push(path.clone());
        let mut text = Vec::new();
        if matches!(path.as_str(), "manifest.json" | "index.json" | "repositories") {
            if !entry.header().entry_type().is_file() {
                return Ok(Err(format!("`{path}` is a link")));
            }
            let named =
                |error: std::io::Error| std::io::Error::new(error.kind(), format!("`{path}`: {error}"));
            text = read_bounded(entry, LARGEST_RECORD).map_err(named)?;
        }
        let found = match path.as_str() {
            "manifest.json" => {
                manifests += 1;
                let images: Vec<Image> = serde_json::from_slice(&text)?;
                let tags = |image: Image| image.repo_tags.unwrap_or_default();
                let all: Vec<Vec<String>> = images.into_iter().map(tags).collect();
                (all != [[tag]]).then(|| format!("`manifest.json` lists {all:?}"))
            }
            "index.json" => names_of_index(&text, tag)?,
            "repositories" => names_of_repositories(&text, tag)?,
            _ => None,
        };
        if let Some(found) = found {
            return Ok(Err(found));
        }
    }
    // A link is a file here: a path below it leads elsewhere for who follows links.
    if let Some(found) = collisions(names.iter().map(String::as_str)).into_iter().next() {
        return Ok(Err(found));
    }
    Ok(if manifests == 1 { Ok(()) } else { Err(format!("`manifest.json` is there {manifests} times")) })
}

/// The path of an entry, with `/` at the end of a directory; `None` for the root. The error is for paths that engines clean, so
/// that they may be another file than they say, and for kinds of entries that no engine writes.
fn name_of(path: &[u8], kind: tar::EntryType) -> Result<Option<String>, String> {
    let Ok(path) = std::str::from_utf8(path) else { return Err("a name that is not UTF-8".to_owned()) };
    if !(kind.is_file() || kind.is_dir() || kind.is_symlink()) {
        return Err(format!("{} is neither a file nor a directory nor a link", quoted(path)));
    }
    let plain = path.strip_prefix("./").unwrap_or(path);
    if kind.is_dir() && matches!(plain, "" | ".") {
        return Ok(None);
    }
    let plain = if kind.is_dir() { plain.strip_suffix('/').unwrap_or(plain) } else { plain };
    // A file with `/` at its end is a directory for some.
    let trailing = plain.ends_with('/').then_some("the path ends with `/`");
    match problem(plain).or(trailing) {
        Some(problem) => Err(format!("{}: {problem}", quoted(path))),
        None if kind.is_dir() => Ok(Some(format!("{plain}/"))),
        None => Ok(Some(plain.to_owned())),
    }
}

/// What an OCI index says besides that tag.
fn names_of_index(text: &[u8], tag: &str) -> serde_json::Result<Option<String>> {
    #[derive(Deserialize)]
    struct Index {
        manifests: Vec<Manifest>,
    }
    #[derive(Deserialize)]
    struct Manifest {
        #[serde(default)]
        annotations: BTreeMap<String, String>,
    }
    let index: Index = serde_json::from_slice(text)?;
    let version = tag.rsplit_once(':').map_or(tag, |(_, version)| version);
    let is_ours =
        |value: &str| value == tag || value == version || value == format!("docker.io/library/{tag}");
    let names = ["io.containerd.image.name", "org.opencontainers.image.ref.name"];
    let annotations = index.manifests.iter().flat_map(|manifest| &manifest.annotations);
    let mut other = annotations.filter(|(name, value)| names.contains(&name.as_str()) && !is_ours(value));
    let count = index.manifests.len();
    Ok(match other.next() {
        Some((_, value)) => Some(format!("`index.json` names `{value}`")),
        None => (count != 1).then(|| format!("`index.json` lists {count} images")),
    })
}

/// What the list of the oldest engines says besides that tag.
fn names_of_repositories(text: &[u8], tag: &str) -> serde_json::Result<Option<String>> {
    let all: BTreeMap<String, BTreeMap<String, String>> = serde_json::from_slice(text)?;
    let mut names =
        all.iter().flat_map(|(name, tags)| tags.keys().map(move |version| format!("{name}:{version}")));
    Ok(names.find(|name| name != tag).map(|name| format!("`repositories` names `{name}`")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_record_counts_as_missing() {
        let record = |digest: &str, archive: &str| {
            let text = format!(
                "digest = \"{digest}\"\nname = \"debian:12\"\nmachine = \"x86_64\"\narchive = \"{archive}\"\n"
            );
            parse(&text).is_some()
        };
        let hex = "ab".repeat(32);
        assert!(record(&format!("sha256:{hex}"), &hex));
        for (digest, archive) in [
            (format!("sha256:{hex}"), String::new()),
            (format!("sha256:{hex}"), "a".to_owned()),
            (format!("sha256:{hex}"), "\u{e9}".repeat(32)),
            (hex.clone(), hex.clone()),
        ] {
            assert!(!record(&digest, &archive), "{digest} {archive}");
        }
        assert_eq!(parse("no record"), None);
    }

    #[test]
    fn file_that_is_larger_than_any_record_is_not_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = Utf8Path::from_path(folder.path()).expect("UTF-8").join("a");
        let size = usize::try_from(LARGEST_RECORD).expect("small");
        for (length, is_read) in [(size, true), (size + 1, false)] {
            fs_err::write(&path, "#".repeat(length)).expect("written");
            assert_eq!(read_regular_text(&path, LARGEST_RECORD).is_ok(), is_read, "{length}");
            let mut tar = tar::Builder::new(fs_err::File::create(&path).expect("created"));
            let mut header = tar::Header::new_gnu();
            header.set_size(length as u64);
            let content = format!("[{}]", " ".repeat(length - 2));
            tar.append_data(&mut header, "manifest.json", content.as_bytes()).expect("an entry");
            tar.into_inner().expect("written");
            match check_tags(&path, "envforge-base:ab") {
                Ok(found) => assert!(is_read, "{found:?}"),
                Err(error) => {
                    assert!(
                        !is_read && error.to_string().starts_with("`manifest.json`: larger than"),
                        "{error}"
                    );
                }
            }
        }
    }

    #[test]
    fn archive_that_brings_another_tag_is_refused() {
        use tar::EntryType as T;

        const TAG: &str = "envforge-base:ab";
        let fine = r#"[{"Config":"x.json","RepoTags":["envforge-base:ab"]}]"#;
        let index = |name: &str| {
            format!(r#"{{"manifests":[{{"annotations":{{"io.containerd.image.name":"{name}"}}}}]}}"#)
        };
        let own_index = index("docker.io/library/envforge-base:ab");
        let other_index = index("docker.io/library/debian:12");
        let repositories = |name: &str| format!(r#"{{"{name}":{{"ab":"0"}}}}"#);
        let (own, other) = (repositories("envforge-base"), repositories("debian"));
        let check = |files: &[(&str, &str)]| {
            let folder = tempfile::tempdir().expect("a folder");
            let path = Utf8PathBuf::from_path_buf(folder.path().join("image.tar")).expect("UTF-8");
            let mut tar = tar::Builder::new(fs_err::File::create(&path).expect("ours").into_file());
            for (name, content) in files {
                let mut header = tar::Header::new_gnu();
                header.set_size(content.len() as u64);
                tar.append_data(&mut header, name, content.as_bytes()).expect("written");
            }
            drop(tar.into_inner().expect("written"));
            check_tags(&path, TAG).map_err(|error| error.to_string()).and_then(|found| found)
        };
        let ok: [&[(&str, &str)]; 2] = [
            &[("x.json", "{}"), ("manifest.json", fine)],
            &[("index.json", &own_index), ("repositories", &own), ("manifest.json", fine)],
        ];
        for files in ok {
            assert_eq!(check(files), Ok(()), "{files:?}");
        }
        let two = r#"[{"RepoTags":["envforge-base:ab","debian:12"]}]"#;
        let images = r#"[{"RepoTags":["envforge-base:ab"]},{"RepoTags":null}]"#;
        let bad: [(&[(&str, &str)], &str); 8] = [
            (&[("manifest.json", two)], "lists"),
            (&[("manifest.json", images)], "lists"),
            (&[("manifest.json", fine), ("manifest.json", fine)], "2 entries"),
            (&[("manifest.json", fine), ("./manifest.json", two)], "lists"),
            (&[("x.json", "{}")], "0 times"),
            (&[("manifest.json", fine), ("index.json", &other_index)], "debian:12"),
            (&[("manifest.json", fine), ("index.json", r#"{"manifests":[]}"#)], "0 images"),
            (&[("manifest.json", fine), ("repositories", &other)], "debian:ab"),
        ];
        for (files, says) in bad {
            let found = check(files).expect_err("refused");
            assert!(found.contains(says), "{found}");
        }
        for (path, kind) in [
            ("/manifest.json", T::Regular),
            (".//manifest.json", T::Regular),
            ("././manifest.json", T::Regular),
            ("d/../manifest.json", T::Regular),
            ("manifest.json/", T::Regular),
            ("./", T::Regular),
            ("a/.wh.layer.tar", T::Regular),
            ("a//", T::Directory),
            ("a", T::Link),
            ("a", T::Fifo),
        ] {
            assert!(name_of(path.as_bytes(), kind).is_err(), "{path}");
        }
        assert_eq!(name_of(b"./", T::Directory), Ok(None));
        assert_eq!(name_of(b"./blobs/sha256/", T::Directory), Ok(Some("blobs/sha256/".to_owned())));
        assert_eq!(name_of(b"a/layer.tar", T::Symlink), Ok(Some("a/layer.tar".to_owned())));
        assert!(check(&[("manifest.json", "no list")]).is_err());
    }
}
