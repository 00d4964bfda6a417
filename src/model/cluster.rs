//! The cluster whose nodes start a project's image from a file: its container runtime, and the names of such files. Pure.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::model::request::FileKind;

/// Hex digits of the lock's hash in the name of a file.
const DIGITS: usize = 12;
/// The ends of the names of files.
const SQUASHFS: &str = "sqsh";
const SIF: &str = "sif";

/// The container runtime of a cluster's nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ClusterRuntime {
    /// Slurm's plug-in pyxis with enroot, which start a squashfs.
    Pyxis,
    /// Apptainer or Singularity, which start a SIF.
    Apptainer,
}

impl ClusterRuntime {
    /// Returns its name, as `[cluster] runtime` has it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pyxis => "pyxis",
            Self::Apptainer => "apptainer",
        }
    }

    /// Returns the kind of file that it starts.
    pub fn kind(self) -> FileKind {
        match self {
            Self::Pyxis => FileKind::Squashfs,
            Self::Apptainer => FileKind::Sif,
        }
    }
}

/// Returns the name of the file with the image `name` of the lock with that hash.
pub fn file_name(name: &str, hash: &str, kind: FileKind) -> String {
    let end = match kind {
        FileKind::Squashfs => SQUASHFS,
        FileKind::Sif => SIF,
    };
    format!("{name}-{}.{end}", &hash[..DIGITS])
}

/// Returns the digits of the lock's hash in a file's name, if it is that of a file with the image `name`.
pub fn digits_of<'a>(file: &'a str, name: &str) -> Option<&'a str> {
    let (digits, end) = file.strip_prefix(name)?.strip_prefix('-')?.split_once('.')?;
    let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    let is_one = digits.len() == DIGITS && digits.bytes().all(is_hex) && [SQUASHFS, SIF].contains(&end);
    is_one.then_some(digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_are_read_back_and_no_other_name_is_one() {
        let hash = "0123456789abcdef".repeat(4);
        for runtime in [ClusterRuntime::Pyxis, ClusterRuntime::Apptainer] {
            let file = file_name("vision", &hash, runtime.kind());
            assert_eq!(digits_of(&file, "vision"), Some("0123456789ab"), "{file}");
        }
        assert_eq!(file_name("vision", &hash, FileKind::Squashfs), "vision-0123456789ab.sqsh");
        for file in [
            "vision-train-0123456789ab.sqsh",
            "vision-0123456789ab.sqsh.part",
            "vision-0123456789ab.img",
            "vision-0123456789AB.sqsh",
            "vision-0123456789a.sqsh",
            "vision-0123456789abc.sqsh",
            "vision-final.sqsh",
            "vision.sqsh",
            "other-0123456789ab.sqsh",
        ] {
            assert_eq!(digits_of(file, "vision"), None, "{file}");
        }
    }
}
