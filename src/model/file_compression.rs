//! How the blocks of a file that a cluster starts are compressed.

use std::fmt;
use std::str::FromStr;

/// A compression of squashfs blocks: `zstd:1`, `gzip:6`, `lz4`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileCompression {
    /// Zstandard of this level, 1 to 19: read by Linux from 4.14 on, and by squashfuse if it was built with it.
    Zstd(u8),
    /// Deflate of this level, 1 to 9: read everywhere.
    Gzip(u8),
    /// LZ4: the quickest to read, a third larger than Zstandard.
    Lz4,
}

impl FileCompression {
    /// The name of the algorithm.
    pub fn name(self) -> &'static str {
        match self {
            Self::Zstd(_) => "zstd",
            Self::Gzip(_) => "gzip",
            Self::Lz4 => "lz4",
        }
    }
}

impl Default for FileCompression {
    fn default() -> Self {
        Self::Zstd(1)
    }
}

impl fmt::Display for FileCompression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Zstd(level) => write!(f, "zstd:{level}"),
            Self::Gzip(level) => write!(f, "gzip:{level}"),
            Self::Lz4 => f.write_str("lz4"),
        }
    }
}

/// A text that names no compression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("write `zstd`, `zstd:LEVEL` (1 to 19), `gzip`, `gzip:LEVEL` (1 to 9) or `lz4`")]
pub struct UnknownCompression;

impl FromStr for FileCompression {
    type Err = UnknownCompression;

    fn from_str(text: &str) -> Result<Self, UnknownCompression> {
        let (name, level) = text.split_once(':').map_or((text, None), |(name, level)| (name, Some(level)));
        let level = |most: u8, usual: u8| match level {
            None => Ok(usual),
            Some(level) => {
                level.parse().ok().filter(|level| (1..=most).contains(level)).ok_or(UnknownCompression)
            }
        };
        match name {
            "zstd" => level(19, 1).map(Self::Zstd),
            "gzip" => level(9, 6).map(Self::Gzip),
            "lz4" if !text.contains(':') => Ok(Self::Lz4),
            _ => Err(UnknownCompression),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compression_is_a_name_and_a_level_that_it_has() {
        for (text, expected) in [
            ("zstd", FileCompression::Zstd(1)),
            ("zstd:19", FileCompression::Zstd(19)),
            ("gzip", FileCompression::Gzip(6)),
            ("gzip:1", FileCompression::Gzip(1)),
            ("lz4", FileCompression::Lz4),
        ] {
            assert_eq!(text.parse(), Ok(expected), "{text}");
            assert_eq!(expected.to_string().parse(), Ok(expected));
        }
        for text in
            ["", "zstd:", "zstd:0", "zstd:20", "zstd:-1", "gzip:10", "lz4:1", "xz", "ZSTD", "zstd:1:1"]
        {
            assert_eq!(text.parse::<FileCompression>(), Err(UnknownCompression), "{text}");
        }
    }
}
