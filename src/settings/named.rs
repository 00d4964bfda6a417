//! What projects call by a name and each user configures: package indexes, and secrets of run steps.

use std::collections::BTreeMap;

use camino::Utf8PathBuf;
use serde::Deserialize;

/// `[indexes]`: addresses by name. They may hold credentials, so only names are printed.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct NamedIndexes(pub BTreeMap<String, String>);

impl std::fmt::Debug for NamedIndexes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// Where the value of a secret is found.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum SecretSource {
    /// In an environment variable of that name.
    Env(String),
    /// In a file.
    File(Utf8PathBuf),
}

/// A secret of a run step, read; its value is never printed.
#[derive(Clone, PartialEq, Eq)]
pub enum NamedSecret {
    /// Its value, from the environment.
    Value(String),
    /// A file with it.
    File(Utf8PathBuf),
    /// The environment variable that should hold it is not set.
    Unset(String),
}

impl std::fmt::Debug for NamedSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Value(_) => f.write_str("***"),
            Self::File(file) => write!(f, "File({file})"),
            Self::Unset(name) => write!(f, "Unset({name})"),
        }
    }
}

/// The indexes of the configuration, and those of `ENVFORGE_INDEX_<NAME>`, which win.
pub(super) fn indexes(
    configured: NamedIndexes,
    environment: &BTreeMap<String, String>,
) -> BTreeMap<String, String> {
    let mut all = configured.0;
    let set = environment.iter().filter(|(_, value)| !value.is_empty());
    all.extend(set.filter_map(|(name, value)| {
        let name = name.strip_prefix("ENVFORGE_INDEX_")?;
        Some((name.to_ascii_lowercase().replace('_', "-"), value.clone()))
    }));
    all
}

/// The secrets of the configuration, with the values of those that lie in the environment.
pub(super) fn secrets(
    configured: BTreeMap<String, SecretSource>,
    environment: &BTreeMap<String, String>,
) -> BTreeMap<String, NamedSecret> {
    let read = |source| match source {
        SecretSource::File(file) => NamedSecret::File(file),
        SecretSource::Env(name) => match environment.get(&name).filter(|value| !value.is_empty()) {
            Some(value) => NamedSecret::Value(value.clone()),
            None => NamedSecret::Unset(name),
        },
    };
    configured.into_iter().map(|(name, source)| (name, read(source))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_wins_and_nothing_secret_is_printed() {
        let configured: NamedIndexes =
            toml::from_str("own = 'https://u:hunter2@host/simple'").expect("a table");
        assert!(!format!("{configured:?}").contains("hunter2"));
        let environment = BTreeMap::from([
            ("ENVFORGE_INDEX_MY_OWN".to_owned(), "https://other".to_owned()),
            ("HF_TOKEN".to_owned(), "hunter2".to_owned()),
        ]);
        let found = indexes(configured, &environment);
        assert_eq!(found.keys().collect::<Vec<_>>(), ["my-own", "own"]);
        let text = "hf = { env = 'HF_TOKEN' }\ngone = { env = 'NOT_SET' }\nkey = { file = '/k' }";
        let found = secrets(toml::from_str(text).expect("a table"), &environment);
        assert_eq!(found["hf"], NamedSecret::Value("hunter2".to_owned()));
        assert_eq!(found["gone"], NamedSecret::Unset("NOT_SET".to_owned()));
        assert!(!format!("{found:?}").contains("hunter2"), "{found:?}");
    }
}
