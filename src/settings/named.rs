//! What projects call by a name and each user configures: package indexes, and secrets of run steps.

use std::collections::BTreeMap;

use camino::Utf8PathBuf;
use schemars::JsonSchema;
use secrecy::SecretString;
use serde::Deserialize;

use super::configured_index::ConfiguredIndex;
use super::variables;

/// `[indexes]`: addresses by name. They may hold credentials.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(transparent)]
pub struct NamedIndexes(pub BTreeMap<String, ConfiguredIndex>);

/// The source of a secret.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum SecretSource {
    /// The value of that environment variable.
    Env(String),
    /// The contents of that file.
    File(#[schemars(with = "String")] Utf8PathBuf),
}

/// A secret of a run step.
#[derive(Debug, Clone)]
pub enum NamedSecret {
    /// Its value, from the environment.
    Value(SecretString),
    /// A file with it.
    File(Utf8PathBuf),
    /// The environment variable that should hold it is not set.
    Unset(String),
}

/// The indexes of the configuration, and those of `ENVFORGE_INDEX_<NAME>`, which win.
pub(super) fn indexes(
    configured: NamedIndexes,
    environment: &BTreeMap<String, String>,
) -> BTreeMap<String, SecretString> {
    let configured = configured.0.into_iter().map(|(name, index)| (name, index.into_text()));
    let mut all: BTreeMap<_, _> = configured.collect();
    let set = environment.iter().filter(|(_, value)| !value.is_empty());
    all.extend(set.filter_map(|(name, value)| {
        let name = variables::NAMED_INDEX
            .names
            .iter()
            .find_map(|known| name.strip_prefix(known.trim_end_matches('*')))?;
        Some((name.to_ascii_lowercase().replace('_', "-"), value.clone().into()))
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
            Some(value) => NamedSecret::Value(value.clone().into()),
            None => NamedSecret::Unset(name),
        },
    };
    configured.into_iter().map(|(name, source)| (name, read(source))).collect()
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret as _;

    use super::*;

    #[test]
    fn environment_wins_and_no_secret_is_printed() {
        let configured: NamedIndexes =
            toml::from_str("own = 'https://u:hunter2@host/simple'").expect("a table");
        assert!(!format!("{configured:?}").contains("hunter2"));
        let environment = BTreeMap::from([
            ("ENVFORGE_INDEX_MY_OWN".to_owned(), "https://other".to_owned()),
            ("HF_TOKEN".to_owned(), "hunter2".to_owned()),
        ]);
        let found = indexes(configured, &environment);
        assert_eq!(found.keys().collect::<Vec<_>>(), ["my-own", "own"]);
        assert!(!format!("{found:?}").contains("hunter2"), "{found:?}");
        let text = "hf = { env = 'HF_TOKEN' }\ngone = { env = 'NOT_SET' }\nkey = { file = '/k' }";
        let found = secrets(toml::from_str(text).expect("a table"), &environment);
        assert!(matches!(&found["hf"], NamedSecret::Value(value) if value.expose_secret() == "hunter2"));
        assert!(matches!(&found["gone"], NamedSecret::Unset(name) if name == "NOT_SET"));
        assert!(matches!(&found["key"], NamedSecret::File(file) if file == "/k"));
        assert!(!format!("{found:?}").contains("hunter2"), "{found:?}");
    }
}
