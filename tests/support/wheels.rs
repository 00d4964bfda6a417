//! Small wheels with a chosen name, tag, requirements and files; the bytes depend on nothing else.

use std::fmt::Write as _;
use std::io::{Cursor, Write as _};

use sha2::{Digest, Sha256};
use zip::write::SimpleFileOptions;

/// A wheel ready to be served.
#[derive(Debug, Clone)]
pub(crate) struct Wheel {
    /// Its project, normalised.
    pub(crate) project: String,
    /// Its file name.
    pub(crate) file: String,
    /// Its bytes.
    pub(crate) bytes: Vec<u8>,
    /// Its METADATA, which an index can serve beside it.
    pub(crate) metadata: String,
}

/// SHA-256 in hex.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a string takes all");
        text
    })
}

/// A wheel being described.
#[derive(Debug, Clone)]
pub(crate) struct WheelSpec {
    name: String,
    version: String,
    tag: String,
    requires: Vec<String>,
    files: Vec<(String, String)>,
}

impl WheelSpec {
    /// A pure Python wheel of that project and version with no file and no requirement.
    pub(crate) fn new(name: &str, version: &str) -> Self {
        Self {
            name: name.to_owned(),
            version: version.to_owned(),
            tag: "py3-none-any".to_owned(),
            requires: Vec::new(),
            files: Vec::new(),
        }
    }

    /// Another tag, such as `cp311-cp311-manylinux_2_28_x86_64`.
    pub(crate) fn tag(mut self, tag: &str) -> Self {
        tag.clone_into(&mut self.tag);
        self
    }

    /// One more `Requires-Dist`.
    pub(crate) fn requires(mut self, requirement: &str) -> Self {
        self.requires.push(requirement.to_owned());
        self
    }

    /// One more file, by its path below site-packages.
    pub(crate) fn file(mut self, path: &str, text: &str) -> Self {
        self.files.push((path.to_owned(), text.to_owned()));
        self
    }

    /// Packs it.
    pub(crate) fn build(self) -> Wheel {
        let stem = self.name.replace('-', "_");
        let dist_info = format!("{stem}-{}.dist-info", self.version);
        let metadata = self.metadata();
        let pure = self.tag.ends_with("-any");
        let wheel =
            format!("Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: {pure}\nTag: {}\n", self.tag);
        let mut files = self.files;
        files.push((format!("{dist_info}/METADATA"), metadata.clone()));
        files.push((format!("{dist_info}/WHEEL"), wheel));
        let record = format!("{dist_info}/RECORD");
        let mut lines: String = files.iter().map(|(path, text)| record_line(path, text)).collect();
        lines.push_str(&record);
        lines.push_str(",,\n");
        files.push((record, lines));
        Wheel {
            project: self.name.to_lowercase().replace(['_', '.'], "-"),
            file: format!("{stem}-{}-{}.whl", self.version, self.tag),
            bytes: zipped(&files),
            metadata,
        }
    }

    fn metadata(&self) -> String {
        let mut text = format!("Metadata-Version: 2.1\nName: {}\nVersion: {}\n", self.name, self.version);
        text.push_str("Summary: made by a test\n");
        for requirement in &self.requires {
            text.push_str("Requires-Dist: ");
            text.push_str(requirement);
            text.push('\n');
        }
        text
    }
}

fn zipped(files: &[(String, String)]) -> Vec<u8> {
    let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default()
        .last_modified_time(zip::DateTime::default())
        .unix_permissions(0o644)
        .compression_method(zip::CompressionMethod::Deflated);
    for (path, text) in files {
        archive.start_file(path.as_str(), options).expect("a new entry");
        archive.write_all(text.as_bytes()).expect("memory takes all");
    }
    archive.finish().expect("memory takes all").into_inner()
}

fn record_line(path: &str, text: &str) -> String {
    format!("{path},sha256={},{}\n", base64_url(&Sha256::digest(text.as_bytes())), text.len())
}

/// URL-safe base 64 without padding, as RECORD has it.
fn base64_url(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let mut group = [0; 3];
        group[..chunk.len()].copy_from_slice(chunk);
        let bits = u32::from(group[0]) << 16 | u32::from(group[1]) << 8 | u32::from(group[2]);
        for place in 0..=chunk.len() {
            text.push(char::from(ALPHABET[(bits >> (18 - 6 * place) & 63) as usize]));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_the_rfc() {
        for (plain, encoded) in [("", ""), ("f", "Zg"), ("fo", "Zm8"), ("foo", "Zm9v"), ("foob", "Zm9vYg")] {
            assert_eq!(base64_url(plain.as_bytes()), encoded);
        }
        assert_eq!(base64_url(&[0xfb, 0xff]), "-_8");
    }

    #[test]
    fn a_wheel_holds_what_was_described_and_is_the_same_each_time() {
        let spec = WheelSpec::new("nvidia-nccl-cu11", "2.21.5")
            .tag("py3-none-manylinux2014_x86_64")
            .requires("numpy")
            .file("nvidia/nccl/__init__.py", "x = 1\n");
        let wheel = spec.clone().build();
        assert_eq!(wheel.file, "nvidia_nccl_cu11-2.21.5-py3-none-manylinux2014_x86_64.whl");
        assert_eq!(wheel.project, "nvidia-nccl-cu11");
        assert!(wheel.metadata.contains("Requires-Dist: numpy\n"));
        assert_eq!(wheel.bytes, spec.build().bytes);
        let archive = zip::ZipArchive::new(Cursor::new(wheel.bytes)).expect("a readable archive");
        let names: Vec<_> = archive.file_names().collect();
        assert!(names.contains(&"nvidia/nccl/__init__.py"), "{names:?}");
        assert!(names.contains(&"nvidia_nccl_cu11-2.21.5.dist-info/RECORD"), "{names:?}");
    }
}
