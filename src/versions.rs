//! The versions people mix up, each with its own type: driver, CUDA toolkit, compute capability, variant, Python.
//!
//! Owns parsing, ordering and printing. Must not know any table: which versions exist is data in `compat/`.
//! This file is also compiled into `build.rs`, so it depends on `serde` alone.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A text that is not a version of the wanted kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionError {
    /// What was wanted, in words: "a driver version such as `570.124.06`".
    pub wanted: &'static str,
    /// What was given.
    pub found: String,
}

impl fmt::Display for VersionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not {}", self.found, self.wanted)
    }
}

impl std::error::Error for VersionError {}

/// Implements serde through `FromStr` and `Display` for people's formats, and as the bare numbers for compact ones
/// (the embedded matrix holds thousands of them).
macro_rules! serde_as_text_or_numbers {
    ($type:ident { $major:ident, $minor:ident }) => {
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                if serializer.is_human_readable() {
                    serializer.collect_str(&self.to_text())
                } else {
                    (self.$major, self.$minor).serialize(serializer)
                }
            }
        }
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                if deserializer.is_human_readable() {
                    let text = String::deserialize(deserializer)?;
                    text.parse().map_err(serde::de::Error::custom)
                } else {
                    let ($major, $minor) = Deserialize::deserialize(deserializer)?;
                    Ok(Self { $major, $minor })
                }
            }
        }
    };
}

/// Implements serde through `FromStr` and `Display`, so that text is parsed in one place.
macro_rules! serde_as_text {
    ($type:ty) => {
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

fn number(part: &str) -> Option<u32> {
    let digits = !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    if digits { part.parse().ok() } else { None }
}

fn numbers(text: &str) -> Option<Vec<u32>> {
    text.split('.').map(number).collect()
}

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
    /// `post`: a last part `postN` counts as the number N, so `2.25.1.post1` lies above `2.25.1`.
    fn parse(text: &str, counts: std::ops::RangeInclusive<usize>, post: bool) -> Option<Self> {
        let plain = match text.rsplit_once(".post") {
            Some((head, number)) if post && !number.contains('.') => Cow::Owned(format!("{head}.{number}")),
            _ => Cow::Borrowed(text),
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
}

macro_rules! dotted_version {
    ($(#[$doc:meta])* $name:ident, $counts:expr, $wanted:expr $(, post = $post:expr)?) => {
        $(#[$doc])*
        #[derive(Debug, Clone)]
        pub struct $name(Dotted);

        impl $name {
            /// The numbers of the version, most significant first, as many as were written.
            pub fn parts(&self) -> &[u32] {
                self.0.written()
            }
            /// The first number.
            pub fn major(&self) -> u32 {
                self.0.parts[0]
            }
            /// The second number, 0 if not written.
            pub fn minor(&self) -> u32 {
                self.0.parts[1]
            }
        }
        impl FromStr for $name {
            type Err = VersionError;
            fn from_str(text: &str) -> Result<Self, VersionError> {
                let error = || VersionError { wanted: $wanted, found: text.to_owned() };
                Dotted::parse(text, $counts, false $(|| $post)?).map(Self).ok_or_else(error)
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0.text)
            }
        }
        impl Ord for $name {
            fn cmp(&self, other: &Self) -> Ordering {
                self.0.parts.cmp(&other.0.parts)
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
    /// The newest CUDA a driver supports (what `nvidia-smi` prints): `12.8`.
    CudaApiVersion,
    2..=2,
    "a CUDA version such as `12.8`"
);
dotted_version!(
    /// The released version of a framework: `2.8.0`.
    FrameworkVersion,
    1..=4,
    "a framework version such as `2.8.0`",
    post = true
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
    /// True if every number the prefix wrote is the same here: `2.8` covers `2.8.0` and `2.8.1`.
    pub fn starts_with(&self, prefix: &Self) -> bool {
        self.parts().starts_with(prefix.parts())
    }
}

/// A GPU's compute capability. Prints as `sm_89`; [`ComputeCapability::dotted`] and serde give `8.9`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ComputeCapability {
    /// The generation: 9 for Hopper.
    pub major: u8,
    /// The member of the generation.
    pub minor: u8,
}

impl ComputeCapability {
    /// The form NVIDIA's tables use: `8.9`.
    pub fn dotted(self) -> String {
        format!("{}.{}", self.major, self.minor)
    }
    fn to_text(self) -> String {
        self.dotted()
    }
    /// True if a cubin built for `self` runs on a GPU of `device`: same major, and no newer minor.
    pub fn cubin_runs_on(self, device: Self) -> bool {
        self.major == device.major && self.minor <= device.minor
    }
}

impl fmt::Display for ComputeCapability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("sm_{}{}", self.major, self.minor))
    }
}

impl FromStr for ComputeCapability {
    type Err = VersionError;
    /// Reads `9.0`, `sm_90` and `sm90`.
    fn from_str(text: &str) -> Result<Self, VersionError> {
        let error = || VersionError {
            wanted: "a compute capability such as `9.0` or `sm_90`",
            found: text.to_owned(),
        };
        let lower = text.to_ascii_lowercase();
        if let Some(digits) = lower.strip_prefix("sm_").or_else(|| lower.strip_prefix("sm")) {
            let plain = digits.len() >= 2 && digits.len() <= 3 && digits.bytes().all(|b| b.is_ascii_digit());
            let (major, minor) = digits.split_at_checked(digits.len().saturating_sub(1)).ok_or_else(error)?;
            return match (plain, major.parse(), minor.parse()) {
                (true, Ok(major), Ok(minor)) => Ok(Self { major, minor }),
                _ => Err(error()),
            };
        }
        match numbers(&lower).as_deref() {
            Some([major, minor]) if *major < 100 && *minor < 10 => Ok(Self {
                major: u8::try_from(*major).map_err(|_| error())?,
                minor: u8::try_from(*minor).map_err(|_| error())?,
            }),
            _ => Err(error()),
        }
    }
}

serde_as_text_or_numbers!(ComputeCapability { major, minor });

/// The CUDA a wheel was built for, as its tag says it: `cu128` is 12.8. Ordered by CUDA version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CudaVariant {
    /// 12 of `cu128`.
    pub major: u8,
    /// 8 of `cu128`; `None` in `cu12`, which promises the major only.
    pub minor: Option<u8>,
}

impl CudaVariant {
    /// The version in words: `12.8`, or `12` where only the major is promised.
    pub fn dotted(self) -> String {
        self.minor.map_or_else(|| self.major.to_string(), |minor| format!("{}.{minor}", self.major))
    }
    fn to_text(self) -> String {
        self.to_string()
    }
}

impl fmt::Display for CudaVariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.minor {
            Some(minor) => f.pad(&format!("cu{}{minor}", self.major)),
            None => f.pad(&format!("cu{}", self.major)),
        }
    }
}

impl FromStr for CudaVariant {
    type Err = VersionError;
    /// Reads the tag form only: `cu128`, `cu92` would be a major, so two digits are one (`cu12`).
    fn from_str(text: &str) -> Result<Self, VersionError> {
        let error = || VersionError { wanted: "a CUDA variant such as `cu128`", found: text.to_owned() };
        let digits = text.strip_prefix("cu").ok_or_else(error)?;
        if !digits.is_ascii() || !(2..=4).contains(&digits.len()) {
            return Err(error());
        }
        let (major, minor) = digits.split_at(2);
        let number = |part: &str| {
            if part.bytes().all(|b| b.is_ascii_digit()) { part.parse().ok() } else { None }
        };
        let major = number(major).ok_or_else(error)?;
        let minor = if minor.is_empty() { None } else { Some(number(minor).ok_or_else(error)?) };
        Ok(Self { major, minor })
    }
}

serde_as_text_or_numbers!(CudaVariant { major, minor });

/// A CPython minor version: `3.11`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PythonVersion {
    /// 3 of `3.11`.
    pub major: u8,
    /// 11 of `3.11`.
    pub minor: u8,
}

impl PythonVersion {
    fn to_text(self) -> String {
        self.to_string()
    }
}

impl fmt::Display for PythonVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}.{}", self.major, self.minor))
    }
}

impl FromStr for PythonVersion {
    type Err = VersionError;
    fn from_str(text: &str) -> Result<Self, VersionError> {
        let error = || VersionError { wanted: "a Python version such as `3.11`", found: text.to_owned() };
        match numbers(text).as_deref() {
            Some([major, minor]) => Ok(Self {
                major: u8::try_from(*major).map_err(|_| error())?,
                minor: u8::try_from(*minor).map_err(|_| error())?,
            }),
            _ => Err(error()),
        }
    }
}

serde_as_text_or_numbers!(PythonVersion { major, minor });

/// The processor of the image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Machine {
    /// 64-bit x86, `linux/amd64`.
    #[serde(rename = "x86_64")]
    X86_64,
    /// 64-bit Arm of the server class, `linux/arm64`.
    #[serde(rename = "aarch64")]
    Aarch64,
}

impl Machine {
    /// Docker's name of the platform: `linux/amd64`.
    pub fn platform(self) -> &'static str {
        match self {
            Self::X86_64 => "linux/amd64",
            Self::Aarch64 => "linux/arm64",
        }
    }
    /// Debian's name of the architecture: `amd64`.
    pub fn debian(self) -> &'static str {
        match self {
            Self::X86_64 => "amd64",
            Self::Aarch64 => "arm64",
        }
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::X86_64 => "x86_64",
            Self::Aarch64 => "aarch64",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted<T: FromStr + Ord + fmt::Display>(texts: &[&str]) -> Vec<String>
    where
        T::Err: fmt::Debug,
    {
        let mut all: Vec<T> = texts.iter().map(|text| text.parse().unwrap()).collect();
        all.sort();
        all.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn versions_are_ordered_by_number_not_by_text() {
        assert_eq!(
            sorted::<DriverVersion>(&["570.9", "570.124.06", "99.1"]),
            ["99.1", "570.9", "570.124.06"]
        );
        assert_eq!(sorted::<FrameworkVersion>(&["2.10.0", "2.9.1", "2.9"]), ["2.9", "2.9.1", "2.10.0"]);
        assert_eq!(sorted::<CudaVariant>(&["cu130", "cu128", "cu12"]), ["cu12", "cu128", "cu130"]);
        assert_eq!(sorted::<ComputeCapability>(&["10.0", "9.0", "sm_120"]), ["sm_90", "sm_100", "sm_120"]);
        assert_eq!(sorted::<PythonVersion>(&["3.10", "3.9"]), ["3.9", "3.10"]);
    }

    #[test]
    fn trailing_zeros_make_no_difference_but_the_spelling_stays() {
        let (short, long): (ToolkitVersion, ToolkitVersion) =
            ("12.8".parse().unwrap(), "12.8.0".parse().unwrap());
        assert_eq!(short, long);
        assert_eq!((short.to_string(), long.to_string()), ("12.8".to_owned(), "12.8.0".to_owned()));
        assert_eq!((short.parts(), long.parts()), ([12, 8].as_slice(), [12, 8, 0].as_slice()));
        let hash = |version: &ToolkitVersion| {
            use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
            BuildHasherDefault::<DefaultHasher>::default().hash_one(version)
        };
        assert_eq!(hash(&short), hash(&long));
        assert_eq!("570.124.06".parse::<DriverVersion>().unwrap(), "570.124.6".parse().unwrap());
    }

    #[test]
    fn a_post_release_lies_above_its_release() {
        let sorted = sorted::<LibraryVersion>(&["2.25.1.post1", "2.25.2", "2.25.1"]);
        assert_eq!(sorted, ["2.25.1", "2.25.1.post1", "2.25.2"]);
        assert!("12.8.post1".parse::<ToolkitVersion>().is_err());
        assert!("2.25.post1.2".parse::<LibraryVersion>().is_err());
        assert!("2.25.postx".parse::<LibraryVersion>().is_err());
    }

    #[test]
    fn what_is_no_version_is_refused_with_what_was_wanted() {
        for text in ["", ".", "570.", ".1", "570.124.06.1", "v570", "5 70", "570.-1", "4294967296", "57O.1"] {
            let error = text.parse::<DriverVersion>().unwrap_err();
            assert_eq!(error.found, text);
            assert!(error.to_string().ends_with("is not a driver version such as `570.124.06`"), "{error}");
        }
        assert!("12".parse::<ToolkitVersion>().is_err());
        assert!("12.8.1".parse::<CudaApiVersion>().is_err());
        assert!("3".parse::<PythonVersion>().is_err());
        assert!("3.11.2".parse::<PythonVersion>().is_err());
        assert!("3.256".parse::<PythonVersion>().is_err());
    }

    #[test]
    fn a_prefix_covers_what_it_wrote() {
        let version: FrameworkVersion = "2.10.1".parse().unwrap();
        let covers = |prefix: &str| version.starts_with(&prefix.parse().unwrap());
        assert!(covers("2") && covers("2.10") && covers("2.10.1"));
        assert!(!covers("2.1") && !covers("2.10.0") && !covers("3"));
    }

    #[test]
    fn capabilities_are_read_in_every_spelling() {
        for text in ["8.9", "sm_89", "sm89", "SM_89"] {
            assert_eq!(
                text.parse::<ComputeCapability>().unwrap(),
                ComputeCapability { major: 8, minor: 9 },
                "{text}"
            );
        }
        assert_eq!("sm_121".parse::<ComputeCapability>().unwrap().dotted(), "12.1");
        for text in [
            "",
            "sm_",
            "sm_9",
            "sm_1210",
            "9",
            "9.10",
            "100.0",
            "sm_9a",
            "9.0a",
            "compute_90",
            "8.9.0",
            "sm_+9",
        ] {
            assert!(text.parse::<ComputeCapability>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_cubin_runs_upward_within_its_major() {
        let cc = |text: &str| text.parse::<ComputeCapability>().unwrap();
        assert!(cc("8.0").cubin_runs_on(cc("8.9")));
        assert!(!cc("8.9").cubin_runs_on(cc("8.6")));
        assert!(!cc("8.0").cubin_runs_on(cc("9.0")));
    }

    #[test]
    fn variants_are_read_as_their_tags_are_written() {
        let read = |text: &str| text.parse::<CudaVariant>().unwrap();
        assert_eq!(read("cu128"), CudaVariant { major: 12, minor: Some(8) });
        assert_eq!(read("cu12"), CudaVariant { major: 12, minor: None });
        assert_eq!(read("cu1210").minor, Some(10));
        assert_eq!((read("cu128").dotted(), read("cu12").dotted()), ("12.8".to_owned(), "12".to_owned()));
        for text in ["", "cu", "cu1", "cu12810", "128", "cuda128", "cu12.8", "cu1x", "CU128"] {
            assert!(text.parse::<CudaVariant>().is_err(), "{text}");
        }
    }

    #[test]
    fn people_and_the_compact_form_read_back_the_same() {
        type All = (DriverVersion, LibraryVersion, ComputeCapability, CudaVariant, PythonVersion, Machine);
        let all: All = (
            "570.124.06".parse().unwrap(),
            "2.25.1.post1".parse().unwrap(),
            "9.0".parse().unwrap(),
            "cu12".parse().unwrap(),
            "3.11".parse().unwrap(),
            Machine::Aarch64,
        );
        let json = serde_json::to_string(&all).unwrap();
        assert_eq!(json, r#"["570.124.06","2.25.1.post1","9.0","cu12","3.11","aarch64"]"#);
        assert_eq!(serde_json::from_str::<All>(&json).unwrap(), all);
        let bytes = postcard::to_stdvec(&all).unwrap();
        assert_eq!(postcard::from_bytes::<All>(&bytes).unwrap(), all);
        assert!(serde_json::from_str::<PythonVersion>("\"three\"").is_err());
    }
}
