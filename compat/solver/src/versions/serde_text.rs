//! Serialization of versions as text.

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

pub(super) use {serde_as_text, serde_as_text_or_numbers};
