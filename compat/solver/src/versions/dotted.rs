//! Versions of dot-separated numbers.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::error::VersionError;
use super::number::number;
use super::serde_text::serde_as_text;

/// A version made of dot-separated numbers that keeps its spelling (`570.124.06`) and compares by number.
#[derive(Debug, Clone)]
struct Dotted {
    text: String,
    /// The numbers; those past `count` are 0. No version has more than five, and decoding the matrix allocates less.
    parts: [u32; MOST_PARTS],
    count: usize,
}

/// The most numbers a version has.
const MOST_PARTS: usize = 5;

impl Dotted {
    /// `post`: a last part `postN` counts as the number N, so `2.25.1.post1` is newer than `2.25.1`. `label`: the label of a team's own
    /// build may follow, `2.8.0+corp1`.
    fn parse(
        text: &str,
        counts: std::ops::RangeInclusive<usize>,
        (post, label): (bool, bool),
    ) -> Option<Self> {
        let public = match text.split_once('+') {
            Some((public, own)) if label && is_own_label(own) => public,
            _ => text,
        };
        let plain = match public.rsplit_once(".post") {
            Some((head, number)) if post && !number.contains('.') => Cow::Owned(format!("{head}.{number}")),
            _ => Cow::Borrowed(public),
        };
        let mut parts = [0; MOST_PARTS];
        let mut count = 0;
        for part in plain.split('.') {
            *parts.get_mut(count)? = number(part)?;
            count += 1;
        }
        counts.contains(&count).then(|| Self { text: text.to_owned(), parts, count })
    }
    fn written(&self) -> &[u32] {
        &self.parts[..self.count]
    }
    /// Behind the `+`; empty for a published version.
    fn label(&self) -> &str {
        self.text.split_once('+').map_or("", |(_, label)| label)
    }
    fn cmp(&self, other: &Self) -> Ordering {
        self.parts.cmp(&other.parts).then_with(|| self.label().cmp(other.label()))
    }
}

/// Whether the local part of a version is the label of somebody's own build, and does not say which accelerator the build is for, as
/// `cu128`, `cpu` and `pt27` do.
fn is_own_label(text: &str) -> bool {
    let words = || text.split('.');
    let plain =
        |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    let accelerator = |word: &str| {
        let digit = |rest: &str| rest.starts_with(|c: char| c.is_ascii_digit());
        ["cpu", "rocm", "xpu", "hip"].iter().any(|name| word.starts_with(name))
            || ["cu", "cuda", "torch", "pt"].iter().any(|name| word.strip_prefix(name).is_some_and(digit))
    };
    text.len() <= LONGEST_LABEL
        && text.starts_with(|c: char| c.is_ascii_lowercase())
        && words().all(plain)
        && !words().any(accelerator)
}

/// The most characters of a label: it is part of an image's name.
const LONGEST_LABEL: usize = 32;

macro_rules! dotted_version {
    ($(#[$doc:meta])* $name:ident, $counts:expr, $wanted:expr $(, post = $post:expr)? $(, label = $label:expr)?) => {
        $(#[$doc])*
        #[derive(Debug, Clone)]
        pub struct $name(Dotted);

        impl $name {
            /// Returns the numbers of the version, most significant first, as written.
            pub fn parts(&self) -> &[u32] {
                self.0.written()
            }
            /// Returns the first number.
            pub fn major(&self) -> u32 {
                self.0.parts[0]
            }
            /// Returns the second number, 0 if omitted.
            pub fn minor(&self) -> u32 {
                self.0.parts[1]
            }
        }
        impl FromStr for $name {
            type Err = VersionError;
            fn from_str(text: &str) -> Result<Self, VersionError> {
                let error = || VersionError { wanted: $wanted, found: text.to_owned() };
                let endings = (false $(|| $post)?, false $(|| $label)?);
                Dotted::parse(text, $counts, endings).map(Self).ok_or_else(error)
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0.text)
            }
        }
        impl Ord for $name {
            fn cmp(&self, other: &Self) -> Ordering {
                self.0.cmp(&other.0)
            }
        }
        impl PartialOrd for $name {
            fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
                Some(self.cmp(other))
            }
        }
        impl PartialEq for $name {
            fn eq(&self, other: &Self) -> bool {
                self.cmp(other) == Ordering::Equal
            }
        }
        impl Eq for $name {}
        impl std::hash::Hash for $name {
            fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
                self.0.parts.hash(state);
            }
        }
        serde_as_text!($name);
    };
}

dotted_version!(
    /// The version of an NVIDIA kernel driver: `570.124.06`.
    DriverVersion,
    1..=3,
    "a driver version such as `570.124.06`"
);
dotted_version!(
    /// The version of a CUDA toolkit, the one nvcc and the libraries belong to: `12.8.1` or `12.8`.
    ToolkitVersion,
    2..=3,
    "a CUDA toolkit version such as `12.8.1`"
);
dotted_version!(
    /// The newest CUDA that a driver supports (printed by `nvidia-smi`): `12.8`.
    CudaApiVersion,
    2..=2,
    "a CUDA version such as `12.8`"
);
dotted_version!(
    /// The version of a framework: `2.8.0`, of a package: `10.13.3.9.post1`, or of a team's own build: `2.8.0+corp1`, which follows `2.8.0`
    /// and is not equal to it.
    FrameworkVersion,
    1..=5,
    "a framework version such as `2.8.0`",
    post = true,
    label = true
);
dotted_version!(
    /// The version of a CUDA library such as cuDNN (`9.10.2.21`) or NCCL (`2.27.3`, `2.25.1.post1`).
    LibraryVersion,
    1..=5,
    "a library version such as `9.10.2.21`",
    post = true
);
dotted_version!(
    /// A version of the GNU C library: `2.28`.
    GlibcVersion,
    2..=3,
    "a glibc version such as `2.28`"
);

impl FrameworkVersion {
    /// Whether the version starts with every number of the prefix: `2.8` covers `2.8.0` and `2.8.1`. Labels do not count.
    pub fn starts_with(&self, prefix: &Self) -> bool {
        self.parts().starts_with(prefix.parts())
    }

    /// Whether a request for `asked` means this version: it is equal or starts with it. A build with a label is meant by its label alone.
    pub fn is_meant_by(&self, asked: &Self) -> bool {
        self.label() == asked.label() && (self.starts_with(asked) || self == asked)
    }

    /// Whether a request for `asked` names this very version, number by number: `2.8` does not name `2.8.0`, which it only means.
    pub fn is_named_by(&self, asked: &Self) -> bool {
        self.label() == asked.label() && self.parts() == asked.parts()
    }

    /// Returns the label of a team's own build, `corp1` of `2.8.0+corp1`; empty for a published version.
    pub fn label(&self) -> &str {
        self.0.label()
    }

    /// Returns the published version that an own build is of: `2.8.0` for `2.8.0+corp1`.
    #[must_use]
    pub fn public(&self) -> Self {
        let text = self.0.text.split('+').next().unwrap_or_default();
        Self(Dotted { text: text.to_owned(), parts: self.0.parts, count: self.0.count })
    }
}
