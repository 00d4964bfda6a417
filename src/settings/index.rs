//! `[index]` and `[indexes]`: where Python packages come from. Addresses may hold credentials.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use secrecy::SecretString;
use serde::Deserialize;

use super::configured_index::ConfiguredIndex;
use super::environment::Environment;
use super::named::{NamedIndexes, indexes};
use super::netrc::{Author, Netrc};
use super::variables;

/// `[index]`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct IndexConfig {
    /// The Python package index (simple API). Default: that of pip on this machine.
    #[schemars(with = "Option<String>")]
    pub default: Option<SecretString>,
    /// The framework's own index; `{cuda}` stands for the variant (`cu118`), `{version}` for the release.
    pub framework: Option<ConfiguredIndex>,
    /// The own index of vLLM, or its release page: `{ url = "https://...", format = "flat" }`.
    pub vllm: Option<ConfiguredIndex>,
    /// The own index of ONNX Runtime.
    pub onnxruntime: Option<ConfiguredIndex>,
    /// The own index of JAX.
    pub jax: Option<ConfiguredIndex>,
    /// The own index of TensorFlow.
    pub tensorflow: Option<ConfiguredIndex>,
}

/// Package indexes.
#[derive(Debug, Clone, Default)]
pub struct PackageIndexes {
    /// The Python package index (simple API).
    pub default: Option<SecretString>,
    /// The framework's own index; `{cuda}` stands for the variant (`cu118`), `{version}` for the release.
    pub framework: Option<SecretString>,
    /// The own index of single frameworks, with the same placeholders.
    pub of_framework: BTreeMap<String, SecretString>,
    /// Further indexes by name.
    pub named: BTreeMap<String, SecretString>,
    /// Logins by host, for addresses without one of their own.
    pub(super) netrc: Netrc,
}

impl PackageIndexes {
    /// Joins environment and configuration.
    pub(super) fn of(environment: &Environment, config: IndexConfig, named: NamedIndexes) -> Self {
        let framework = variables::FRAMEWORK_INDEX.of(environment);
        let own = [
            ("vllm", variables::VLLM_INDEX, config.vllm),
            ("onnxruntime", variables::ONNXRUNTIME_INDEX, config.onnxruntime),
            ("jax", variables::JAX_INDEX, config.jax),
            ("tensorflow", variables::TENSORFLOW_INDEX, config.tensorflow),
        ];
        let of_framework = own.into_iter().filter_map(|(name, variable, configured)| {
            let typed = variable.of(environment).map(SecretString::from);
            Some((name.to_owned(), typed.or(configured.map(ConfiguredIndex::into_text))?))
        });
        Self {
            of_framework: of_framework.collect(),
            default: variables::INDEX.of(environment).map(SecretString::from).or(config.default),
            framework: framework.map(SecretString::from).or(config.framework.map(ConfiguredIndex::into_text)),
            named: indexes(named, environment),
            netrc: Netrc::default(),
        }
    }

    /// Uses pip's index if none is set.
    pub(super) fn add_pip_index(&mut self, environment: &Environment) {
        if self.default.is_none() {
            let home = variables::HOME.of(environment).unwrap_or_default();
            self.default = [format!("{home}/.config/pip/pip.conf"), format!("{home}/.pip/pip.conf")]
                .into_iter()
                .chain(["/etc/pip.conf".to_owned()])
                .filter_map(|path| fs_err::read_to_string(path).ok())
                .find_map(|text| pip_index(&text))
                .map(SecretString::from);
        }
    }

    /// Adds the logins of `NETRC` or `~/.netrc`.
    pub(super) fn add_logins(&mut self, environment: &Environment) {
        let home = || variables::HOME.of(environment).map(|home| format!("{home}/.netrc"));
        let file = variables::NETRC.of(environment).or_else(home);
        let Some(text) = file.and_then(|file| fs_err::read_to_string(file).ok()) else { return };
        self.netrc = Netrc::parse(&text);
        let set = [&mut self.default, &mut self.framework].into_iter().flatten();
        for address in set.chain(self.named.values_mut()).chain(self.of_framework.values_mut()) {
            *address = self.netrc.with_login(address, Author::User);
        }
    }

    /// Returns an address of the user with the login of its host.
    pub fn with_login(&self, address: &SecretString) -> SecretString {
        self.netrc.with_login(address, Author::User)
    }

    /// Returns an address that a project names with the login of its host, if it may have that: over TLS, at the usual port or
    /// at a server that these settings name.
    pub fn with_login_of_project(&self, address: &SecretString) -> SecretString {
        let set = self.default.iter().chain(&self.framework);
        let own: Vec<&SecretString> =
            set.chain(self.named.values()).chain(self.of_framework.values()).collect();
        self.netrc.with_login(address, Author::Project(&own))
    }
}

/// `index-url` of a pip configuration file's `[global]` or `[install]` section.
fn pip_index(text: &str) -> Option<String> {
    let mut section = "";
    for line in text.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            section = name;
        } else if let Some((key, value)) = line.split_once('=')
            && matches!(section, "global" | "install")
            && matches!(key.trim(), "index-url" | "index_url")
        {
            return Some(value.trim().to_owned());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;

    use super::*;

    #[test]
    fn a_framework_has_its_own_index_and_variable() {
        let config: IndexConfig =
            toml::from_str("vllm = \"http://x/vllm\"\njax = \"http://x/jax\"").expect("TOML");
        let environment = Environment::from([("ENVFORGE_JAX_INDEX".to_owned(), "http://y/jax".to_owned())]);
        let indexes = PackageIndexes::of(&environment, config, NamedIndexes::default());
        let shown = |name: &str| indexes.of_framework.get(name).map(ExposeSecret::expose_secret);
        assert_eq!(
            (shown("vllm"), shown("jax"), shown("cupy")),
            (Some("http://x/vllm"), Some("http://y/jax"), None)
        );
        assert!(toml::from_str::<IndexConfig>("caffe = \"http://x\"").is_err());
    }

    #[test]
    fn index_of_one_page_has_its_form_before_its_address() {
        let text = "vllm = { url = \"http://u:hunter2@x/v{version}\", format = \"flat\" }\n\
                    jax = { url = \"http://x/jax\" }";
        let config: IndexConfig = toml::from_str(text).expect("TOML");
        assert!(!format!("{config:?}").contains("hunter2"));
        let named: NamedIndexes =
            toml::from_str("pages = { url = 'http://x/p.html', format = 'flat' }").expect("TOML");
        let environment =
            Environment::from([("ENVFORGE_ONNXRUNTIME_INDEX".to_owned(), "flat+http://y".to_owned())]);
        let all = PackageIndexes::of(&environment, config, named);
        let of = |name: &str| all.of_framework[name].expose_secret();
        assert_eq!(
            (of("vllm"), of("jax"), of("onnxruntime")),
            ("flat+http://u:hunter2@x/v{version}", "http://x/jax", "flat+http://y")
        );
        assert_eq!(all.named["pages"].expose_secret(), "flat+http://x/p.html");
        for wrong in
            ["vllm = { url = 'http://x', format = 'round' }", "vllm = { adress = 'http://x' }", "vllm = 1"]
        {
            let error = toml::from_str::<IndexConfig>(wrong).expect_err(wrong).to_string();
            assert!(error.contains("expected an address, or `{ url = "), "{error}");
        }
    }

    #[test]
    fn every_framework_with_a_setting_is_known() {
        let names = crate::model::index_address::WITH_OWN_SETTING;
        let environment =
            names.map(|name| (format!("ENVFORGE_{}_INDEX", name.to_uppercase()), "http://x".to_owned()));
        let all = PackageIndexes::of(&environment.into(), IndexConfig::default(), NamedIndexes::default());
        let mut known = names;
        known.sort_unstable();
        assert_eq!(all.of_framework.keys().collect::<Vec<_>>(), known);
    }

    #[test]
    fn pip_configuration_has_the_index() {
        assert_eq!(pip_index("[global]\nindex-url = http://x/simple\n").as_deref(), Some("http://x/simple"));
        assert_eq!(pip_index("[search]\nindex-url = http://x/simple\n"), None);
    }
}
