//! Projects that may use this machine without a question, for CI, and keys whose evidence counts.

use camino::{Utf8Path, Utf8PathBuf};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::model::sha256::is_sha256_hex;

/// `[trust]` of the configuration.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct TrustConfig {
    /// Directories of projects, or digests that envforge printed: `["/home/me/vision"]`.
    #[schemars(with = "Vec<String>")]
    pub projects: Vec<TrustedProject>,
    /// Public keys whose evidence counts: `[{ file = "/etc/envforge/keys/gpu-lab.pub", not-after = "2027-06-30" }]`. Without one its
    /// evidence counts for nothing.
    pub keys: Vec<TrustedKey>,
    /// Whether the site lists the projects: then no question and no `--trust` adds one.
    #[serde(skip)]
    pub is_closed: bool,
}

/// A public key whose evidence counts.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct TrustedKey {
    /// The key, P-256 in PEM form, by an absolute path.
    #[serde(deserialize_with = "absolute")]
    #[schemars(with = "String")]
    pub file: Utf8PathBuf,
    /// The last day whose signatures count: `2027-06-30`.
    #[serde(default)]
    #[schemars(with = "Option<String>")]
    pub not_after: Option<jiff::civil::Date>,
    /// The purposes of its signature: `"tests"`, `"provenance"`; both by default.
    #[serde(default, rename = "for")]
    pub purposes: Option<Vec<KeyPurpose>>,
    /// Whether the site's configuration names it: then root alone may be able to change the file.
    #[serde(skip)]
    pub is_of_site: bool,
}

/// A purpose of a key's signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum KeyPurpose {
    /// That an image was built from a lock: it is ours then.
    Provenance,
    /// That an image ran on a GPU.
    Tests,
}

impl TrustedKey {
    /// Whether its signature counts for that.
    pub fn is_for(&self, purpose: KeyPurpose) -> bool {
        self.purposes.as_ref().is_none_or(|purposes| purposes.contains(&purpose))
    }
}

/// A relative path would select another key in each working directory.
fn absolute<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Utf8PathBuf, D::Error> {
    let path = Utf8PathBuf::deserialize(from)?;
    if path.is_absolute() {
        return Ok(path);
    }
    Err(serde::de::Error::custom(format_args!("key file `{path}` is not an absolute path")))
}

/// A project that is trusted.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum TrustedProject {
    /// The project in that directory, whatever it requests.
    Folder(Utf8PathBuf),
    /// Exactly the requests with that SHA-256.
    Requests(String),
}

impl std::fmt::Display for TrustedProject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Folder(folder) => f.write_str(folder.as_str()),
            Self::Requests(digest) => f.write_str(digest),
        }
    }
}

impl TryFrom<String> for TrustedProject {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        if is_sha256_hex(&text) {
            Ok(Self::Requests(text))
        } else if Utf8Path::new(&text).is_absolute() {
            Ok(Self::Folder(text.into()))
        } else {
            Err(format!("invalid trusted project `{text}` (expected an absolute path or a SHA-256)"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::parse_config;

    #[test]
    fn keys_are_absolute_paths() {
        let keys = |text: &str| parse_config("c.toml".into(), &format!("[trust]\nkeys = [{text}]\n"));
        let read = keys("{ file = '/k.pub', not-after = '2027-06-30' }").expect("valid").trust.keys;
        assert!(read[0].is_for(KeyPurpose::Tests) && read[0].is_for(KeyPurpose::Provenance));
        let tests = keys("{ file = '/k.pub', for = ['tests'] }").expect("valid").trust.keys;
        assert!(tests[0].is_for(KeyPurpose::Tests) && !tests[0].is_for(KeyPurpose::Provenance));
        assert_eq!(read[0].not_after, Some(jiff::civil::date(2027, 6, 30)));
        let error = keys("{ file = 'k.pub' }").expect_err("refused").to_string();
        assert!(error.contains("`k.pub` is not an absolute path"), "{error}");
    }

    #[test]
    fn projects_are_absolute_directories_or_digests() {
        let digest = "a".repeat(64);
        let text = format!("[trust]\nprojects = ['/work/p', '{digest}']\n");
        let trust = parse_config("c.toml".into(), &text).expect("valid").trust;
        let folder = TrustedProject::Folder("/work/p".into());
        assert_eq!(trust.projects, [folder, TrustedProject::Requests(digest)]);
        for wrong in ["p", "../p", "~/p", ""] {
            let text = format!("[trust]\nprojects = ['{wrong}']\n");
            let error = parse_config("c.toml".into(), &text).expect_err("refused").to_string();
            assert!(error.contains("absolute path or a SHA-256"), "{error}");
        }
    }
}
