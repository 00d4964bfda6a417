//! How the layers of an image are compressed in a registry.

use std::fmt;
use std::str::FromStr;

/// The compression of layers: `gzip`, `zstd`, `zstd:19`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LayerCompression {
    /// Read by every engine. What wheels have compressed stays as it is.
    #[default]
    Gzip,
    /// Zstandard of this level, 1 to 19: unpacked in less than half the time; Docker reads it from version 23 on.
    Zstd(u8),
}

impl LayerCompression {
    /// The media type of a layer.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Gzip => "application/vnd.oci.image.layer.v1.tar+gzip",
            Self::Zstd(_) => "application/vnd.oci.image.layer.v1.tar+zstd",
        }
    }
}

impl fmt::Display for LayerCompression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gzip => f.write_str("gzip"),
            Self::Zstd(level) => write!(f, "zstd:{level}"),
        }
    }
}

/// A text that names no compression of layers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("write `gzip`, `zstd` or `zstd:LEVEL` (1 to 19)")]
pub struct UnknownLayerCompression;

impl FromStr for LayerCompression {
    type Err = UnknownLayerCompression;

    fn from_str(text: &str) -> Result<Self, UnknownLayerCompression> {
        let level = |level: &str| level.parse().ok().filter(|level| (1..=19).contains(level));
        match text {
            "gzip" => Some(Self::Gzip),
            "zstd" => Some(Self::Zstd(3)),
            text => text.strip_prefix("zstd:").and_then(level).map(Self::Zstd),
        }
        .ok_or(UnknownLayerCompression)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compression_is_gzip_or_zstd_of_a_level() {
        for (text, expected) in [
            ("gzip", LayerCompression::Gzip),
            ("zstd", LayerCompression::Zstd(3)),
            ("zstd:1", LayerCompression::Zstd(1)),
            ("zstd:19", LayerCompression::Zstd(19)),
        ] {
            assert_eq!(text.parse(), Ok(expected), "{text}");
            assert_eq!(expected.to_string().parse(), Ok(expected));
        }
        for text in ["", "gzip:6", "zstd:", "zstd:0", "zstd:20", "lz4", "none"] {
            assert_eq!(text.parse::<LayerCompression>(), Err(UnknownLayerCompression), "{text}");
        }
    }
}
