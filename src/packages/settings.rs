//! Sources of packages: addresses, certificates, proxies. They may be secret and are never printed.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use bytes::Bytes;

use crate::engine::Network;
use crate::model::address::{Address, AddressError};
use crate::model::index_address::IndexAddress;
use crate::model::stack::Stack;
use crate::model::versions::CudaVariant;

use super::catalogue::catalogue;

/// Settings of `resolve_packages`.
#[derive(Debug, Clone, Default)]
pub struct PackageSettings {
    /// Package indexes, certificates and proxies.
    pub index: IndexSettings,
    /// Archives apt reads instead of the base's own; if empty, the base's own.
    pub archives: Vec<Archive>,
    /// Whether to accept an expired signed index of a distribution.
    pub accept_expired: bool,
    /// Whether to accept an index older than the newest one seen on its mirror.
    pub accept_older: bool,
    /// Network mode of the temporary container.
    pub network: Network,
    /// The vendor's apt repositories.
    pub vendor: VendorSettings,
}

/// Location and signing key of the vendor's apt repositories.
#[derive(Debug, Clone, Default)]
pub struct VendorSettings {
    /// The directory with one repository per distribution; `None`: the vendor's own.
    pub root: Option<Address>,
    /// The signing key; `None`: the one next to the index.
    pub key: Option<Bytes>,
    /// The expected fingerprint of the key; `None`: the matrix's.
    pub fingerprint: Option<String>,
}

/// One suite of a distribution's archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Archive {
    /// The directory that contains `dists/` and `pool/`.
    pub root: Address,
    /// `bookworm-updates`.
    pub suite: String,
    /// `main`.
    pub components: String,
}

impl Archive {
    /// The suites of a release: itself, its updates and, if a mirror for it is known, its security updates. `more` are
    /// components that are required in addition to `main`.
    pub fn of_release(
        suite: &str,
        main: &Address,
        security: Option<&Address>,
        more: Option<&str>,
    ) -> Vec<Self> {
        let components = more.map_or_else(|| "main".to_owned(), |more| format!("main {more}"));
        let archive = |root: &Address, suite: String| Self {
            root: root.clone(),
            suite,
            components: components.clone(),
        };
        let mut all = vec![archive(main, suite.to_owned()), archive(main, format!("{suite}-updates"))];
        all.extend(security.map(|root| archive(root, format!("{suite}-security"))));
        all
    }
}

/// Sources of wheels and the network settings to reach them.
#[derive(Clone, Default)]
pub struct IndexSettings {
    /// The package index (simple API); `None`: the tools' own default.
    pub default: Option<Address>,
    /// The framework's own index; `None`: its project's index.
    pub framework: Option<FrameworkIndex>,
    /// The own index of single frameworks, which goes before `framework`: `vllm`.
    pub of_framework: BTreeMap<String, FrameworkIndex>,
    /// Further indexes by name, for packages of the project and the user.
    pub further: BTreeMap<String, IndexAddress>,
    /// Whether one of `further` is known by a project alone: its answers are not kept for others.
    pub of_project: bool,
    /// CA certificates to trust, PEM.
    pub ca_bundle: Option<Bytes>,
    /// Proxies.
    pub proxies: Proxies,
}

impl fmt::Debug for IndexSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IndexSettings")
            .field("default", &self.default)
            .field("framework", &self.framework)
            .field("of_framework", &self.of_framework)
            .field("further", &self.further)
            .field("of_project", &self.of_project)
            .field("ca_bundle", &self.ca_bundle.as_ref().map(Bytes::len))
            .field("proxies", &self.proxies)
            .finish()
    }
}

impl IndexSettings {
    /// Returns the indexes with the wheels of a stack that the default index lacks: its framework's own, and PyTorch's if
    /// it contains torch as a companion.
    pub fn framework_indexes(&self, stack: &Stack) -> Vec<IndexAddress> {
        let torch = stack
            .companions
            .get("torch")
            .and_then(|torch| self.framework_index("pytorch", stack.cuda, torch));
        let mut all: Vec<_> = self.own_index(stack).into_iter().chain(torch).collect();
        all.dedup();
        all
    }

    /// Returns the own index of a stack's framework; `None` if neither a setting nor the catalogue specifies one.
    pub fn own_index(&self, stack: &Stack) -> Option<IndexAddress> {
        self.framework_index(&stack.framework, stack.cuda, &stack.version.to_string())
    }

    fn framework_index(&self, framework: &str, cuda: CudaVariant, version: &str) -> Option<IndexAddress> {
        if let Some(index) = self.of_framework.get(framework).or(self.framework.as_ref()) {
            return Some(index.of(cuda, version));
        }
        let known = catalogue().framework_index.iter().find(|index| index.framework == framework)?;
        let index: FrameworkIndex =
            known.address.parse().expect("templates/packages/packages.toml is tested");
        Some(index.of(cuda, version))
    }
}

/// The address of a framework's own index, with placeholders: `{cuda}` for the variant, `{version}` for the release.
#[derive(Clone, PartialEq, Eq)]
pub struct FrameworkIndex(String);

impl FrameworkIndex {
    /// The index of one variant and release.
    pub fn of(&self, cuda: CudaVariant, version: &str) -> IndexAddress {
        let text = filled(&self.0, &cuda.to_string(), version);
        text.parse().expect("parsed once with a variant and a release in it")
    }
}

impl FromStr for FrameworkIndex {
    type Err = AddressError;
    fn from_str(text: &str) -> Result<Self, AddressError> {
        let _: IndexAddress = filled(text, "cu128", "1.0").parse()?;
        Ok(Self(text.trim().to_owned()))
    }
}

impl fmt::Debug for FrameworkIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown: Result<IndexAddress, _> = self.0.parse();
        write!(
            f,
            "FrameworkIndex({})",
            shown.map_or_else(|_| "***".to_owned(), |address| address.to_string())
        )
    }
}

fn filled(address: &str, cuda: &str, version: &str) -> String {
    address.replace("{cuda}", cuda).replace("{version}", version)
}

/// Proxy variables by their upper-case names (`HTTPS_PROXY`). Only the names are printed.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Proxies(pub BTreeMap<String, String>);

impl fmt::Debug for Proxies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_secret_is_printed() {
        let settings = PackageSettings {
            index: IndexSettings {
                default: Some("https://u:hunter2@index.example.test/simple".parse().unwrap()),
                framework: Some("https://u:hunter2@index.example.test/{cuda}?t=hunter2".parse().unwrap()),
                of_project: false,
                ca_bundle: Some(Bytes::from_static(b"hunter2")),
                of_framework: BTreeMap::new(),
                further: BTreeMap::from([(
                    "own".to_owned(),
                    "https://u:hunter2@own.test/s".parse().unwrap(),
                )]),
                proxies: Proxies(BTreeMap::from([(
                    "HTTPS_PROXY".to_owned(),
                    "http://u:hunter2@p".to_owned(),
                )])),
            },
            archives: Archive::of_release(
                "bookworm",
                &"http://u:hunter2@m.example.test/".parse().unwrap(),
                None,
                None,
            ),
            ..PackageSettings::default()
        };
        let shown = format!("{settings:?}");
        assert!(!shown.contains("hunter2"), "{shown}");
        assert!(shown.contains("HTTPS_PROXY") && shown.contains("index.example.test"), "{shown}");
    }

    #[test]
    fn framework_index_depends_on_variant_and_setting() {
        let cuda = "cu118".parse().unwrap();
        let mut settings = IndexSettings::default();
        let default = settings.framework_index("pytorch", cuda, "2.8.0").expect("known");
        assert!(default.to_string().ends_with("/cu118"), "{default}");
        assert_eq!(settings.framework_index("unheard-of", cuda, "1.0"), None);
        settings.framework = Some("http://index.example.test/whl/{cuda}/".parse().unwrap());
        let set = settings.framework_index("pytorch", cuda, "2.8.0").expect("set");
        assert_eq!(set.to_string(), "http://index.example.test/whl/cu118/");
        let page = "flat+https://forge.example.test/vllm/v{version}/{cuda}".parse().unwrap();
        settings.of_framework = BTreeMap::from([("vllm".to_owned(), page)]);
        let page = settings.framework_index("vllm", cuda, "0.10.0").expect("set");
        assert_eq!(page.to_string(), "flat+https://forge.example.test/vllm/v0.10.0/cu118");
        assert!("no address".parse::<FrameworkIndex>().is_err());
    }

    #[test]
    fn security_suite_requires_a_security_mirror() {
        let main = "http://m.example.test/debian".parse().unwrap();
        let suites = |security| -> Vec<String> {
            Archive::of_release("trixie", &main, security, None)
                .into_iter()
                .map(|archive| archive.suite)
                .collect()
        };
        assert_eq!(suites(None), ["trixie", "trixie-updates"]);
        assert_eq!(suites(Some(&main)), ["trixie", "trixie-updates", "trixie-security"]);
    }
}
