//! `[matrix]`: another matrix than the built-in one, and rows in addition to it.

use camino::Utf8PathBuf;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};

use super::error::SettingsError;
use crate::model::sha256::is_sha256_hex;

/// `[matrix]` of the configuration.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct MatrixConfig {
    /// A matrix in place of the built-in one, by an absolute path: an archive (`tar -C compat -cf matrix.tar .`), or one TOML file.
    #[serde(deserialize_with = "absolute")]
    #[schemars(with = "Option<String>")]
    pub file: Option<Utf8PathBuf>,
    /// Its SHA-256: another file is an error.
    #[serde(deserialize_with = "sha256")]
    #[schemars(with = "Option<String>")]
    pub sha256: Option<String>,
    /// `[[variant]]` rows in addition to those of the matrix, for builds of your own, by an absolute path.
    #[serde(deserialize_with = "absolute")]
    #[schemars(with = "Option<String>")]
    pub local: Option<Utf8PathBuf>,
}

/// The matrix that a configuration names.
#[derive(Debug, Clone, Default)]
pub struct MatrixSettings {
    /// The file in place of the built-in matrix, with its SHA-256.
    pub file: Option<(Utf8PathBuf, String)>,
    /// The file with further rows.
    pub local: Option<Utf8PathBuf>,
}

impl MatrixSettings {
    /// Checks that a file has its hash and a hash its file.
    pub(super) fn of(config: MatrixConfig) -> Result<Self, SettingsError> {
        let file = match (config.file, config.sha256) {
            (Some(file), Some(sha256)) => Some((file, sha256)),
            (None, None) => None,
            (Some(_), None) => {
                return Err(SettingsError::MatrixWithout { missing: "sha256", present: "file" });
            }
            (None, Some(_)) => {
                return Err(SettingsError::MatrixWithout { missing: "file", present: "sha256" });
            }
        };
        Ok(Self { file, local: config.local })
    }
}

/// A relative path would be another file in each working directory.
pub(super) fn absolute<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Utf8PathBuf>, D::Error> {
    let path = Utf8PathBuf::deserialize(from)?;
    if path.is_absolute() {
        return Ok(Some(path));
    }
    Err(serde::de::Error::custom(format_args!("`{path}` is not an absolute path")))
}

fn sha256<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let text = String::deserialize(from)?.to_ascii_lowercase();
    if is_sha256_hex(&text) {
        return Ok(Some(text));
    }
    let message = format_args!("invalid `sha256` `{text}` (expected the 64 hex digits of a SHA-256)");
    Err(serde::de::Error::custom(message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Failure as _;
    use crate::settings::parse_config;

    #[test]
    fn file_and_hash_come_together() {
        let hash = "a".repeat(64);
        let of = |text: &str| {
            let config = parse_config("c.toml".into(), &format!("[matrix]\n{text}\n"))
                .map_err(|error| error.to_string())?;
            MatrixSettings::of(config.matrix).map_err(|error| format!("{error} {}", error.hints().join(" ")))
        };
        let both = of(&format!("file = '/m.tar'\nsha256 = '{}'", hash.to_uppercase())).expect("valid");
        assert_eq!(both.file, Some(("/m.tar".into(), hash.clone())));
        assert_eq!(of("local = '/l.toml'").expect("valid").local.as_deref(), Some("/l.toml".into()));
        for (text, says) in [
            ("file = '/m.tar'".to_owned(), "`[matrix] file` requires `[matrix] sha256`"),
            (format!("sha256 = '{hash}'"), "`[matrix] sha256` requires `[matrix] file`"),
            ("local = 'l.toml'".to_owned(), "`l.toml` is not an absolute path"),
            ("file = '/m.tar'\nsha256 = 'abc'".to_owned(), "invalid `sha256` `abc`"),
        ] {
            let error = of(&text).expect_err("refused");
            assert!(error.contains(says), "{says}: {error}");
        }
    }
}
