//! Mirrors of the distribution's packages: from settings, or the machine's own apt sources.
//!
//! Owns the discovery, as a pure function over texts. Has no address of its own.

use super::apt_source::{AptSource, apt_sources};
use super::distribution::Distribution;
use crate::failure::{Exit, Failure};
use crate::model::address::{Address, AddressError};

/// The mirrors of a distribution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mirrors {
    /// The directory that contains `dists/` and `pool/` of the release and its updates.
    pub main: Address,
    /// The same for security updates; `None`: the base is built without them, with a warning.
    pub security: Option<Address>,
}

/// Sources of mirrors.
#[derive(Debug, Clone, Default)]
pub struct MirrorSources {
    /// `[mirrors] debian` or `ENVFORGE_DEBIAN_MIRROR`.
    pub main: Option<String>,
    /// `[mirrors] debian-security` or `ENVFORGE_DEBIAN_SECURITY_MIRROR`.
    pub security: Option<String>,
    /// `[mirrors] ubuntu` or `ENVFORGE_UBUNTU_MIRROR`.
    pub ubuntu: Option<String>,
    /// `[mirrors] ubuntu-security` or `ENVFORGE_UBUNTU_SECURITY_MIRROR`.
    pub ubuntu_security: Option<String>,
    /// Texts of the machine's apt sources: path and content, sorted by path.
    pub apt: Vec<(String, String)>,
}

/// Why no mirror is available.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MirrorError {
    /// Neither settings nor apt sources list a mirror.
    #[error("{0} mirror not found: none is set, and this machine has no {0} apt sources", .distribution.name())]
    NoneFound {
        /// The distribution.
        distribution: Distribution,
    },
    /// A setting is not an address.
    #[error("invalid mirror in `{setting}`: {cause}")]
    Setting {
        /// The setting.
        setting: &'static str,
        /// The problem.
        cause: AddressError,
    },
}

impl Failure for MirrorError {
    fn exit(&self) -> Exit {
        match self {
            Self::NoneFound { .. } => Exit::Outside,
            Self::Setting { .. } => Exit::Usage,
        }
    }

    fn hints(&self) -> Vec<String> {
        let name = match self {
            Self::NoneFound { distribution } => distribution.settings()[0],
            Self::Setting { setting, .. } => setting,
        };
        let name = name.trim_start_matches("mirrors.");
        let variable = format!("ENVFORGE_{}_MIRROR", name.to_uppercase().replace('-', "_"));
        vec![format!(
            "set `[mirrors] {name} = \"...\"` in ~/.config/envforge/config.toml, or `{variable}`, to the folder that holds \
             `dists/` and `pool/`"
        )]
    }
}

/// An archive of an apt source.
#[derive(Debug, PartialEq, Eq)]
struct Source {
    uri: Address,
    suites: Vec<String>,
}

/// Returns the mirrors of the settings, else of the machine's own apt sources.
pub fn discover(sources: &MirrorSources, distribution: Distribution) -> Result<Mirrors, MirrorError> {
    let setting = |value: &Option<String>, setting: &'static str| {
        let parse = |text: &String| text.parse().map_err(|cause| MirrorError::Setting { setting, cause });
        value.as_ref().map(parse).transpose()
    };
    let (main, security) = match distribution {
        Distribution::Debian => (&sources.main, &sources.security),
        Distribution::Ubuntu => (&sources.ubuntu, &sources.ubuntu_security),
    };
    let [main_setting, security_setting] = distribution.settings();
    let main: Option<Address> = setting(main, main_setting)?;
    let security: Option<Address> = setting(security, security_setting)?;
    // Ubuntu's archive has the security updates, too.
    let or_main = |main: &Address, security: Option<Address>| match distribution {
        Distribution::Ubuntu => security.or_else(|| Some(main.clone())),
        Distribution::Debian => security,
    };
    // A mirror that was set is not mixed with the machine's own: they may differ in age.
    if let Some(main) = main {
        let security = or_main(&main, security);
        return Ok(Mirrors { main, security });
    }
    let found: Vec<Source> = sources.apt.iter().flat_map(|(path, text)| http_sources(path, text)).collect();
    let of = |wanted: fn(Distribution, &str) -> bool| {
        let is_wanted = |suite: &String| wanted(distribution, suite);
        found.iter().find(|source| source.suites.iter().any(is_wanted)).map(|source| source.uri.clone())
    };
    let main = of(is_release).ok_or(MirrorError::NoneFound { distribution })?;
    let security = or_main(&main, security.or_else(|| of(is_security)));
    Ok(Mirrors { main, security })
}

/// Returns every archive of the apt sources once, in their order.
pub(super) fn roots(apt: &[(String, String)]) -> Vec<Address> {
    let mut found: Vec<Address> = Vec::new();
    for source in apt.iter().flat_map(|(path, text)| http_sources(path, text)) {
        if !found.contains(&source.uri) {
            found.push(source.uri);
        }
    }
    found
}

/// Whether the archive of a suite contains every release of the distribution.
fn is_release(distribution: Distribution, suite: &str) -> bool {
    let name = suite.strip_suffix("-updates").or_else(|| suite.strip_suffix("-backports")).unwrap_or(suite);
    distribution.has_release(name)
}

fn is_security(distribution: Distribution, suite: &str) -> bool {
    let name = suite.strip_suffix("-security").or_else(|| suite.strip_suffix("/updates"));
    name.is_some_and(|name| is_release(distribution, name))
}

/// The HTTP archives of the sources of a file; discs, local files and mirror lists are ignored.
fn http_sources(path: &str, text: &str) -> Vec<Source> {
    let source = |source: AptSource| {
        let suites: Vec<_> = source.suites.iter().map(|suite| suite_name(suite)).collect();
        let parse = move |uri: &String| Some(Source { uri: uri.parse().ok()?, suites: suites.clone() });
        source.uris.iter().filter_map(parse).collect::<Vec<_>>()
    };
    apt_sources(path, text).into_iter().flat_map(source).collect()
}

fn suite_name(word: &str) -> String {
    word.trim_end_matches('/').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn apt(path: &str, text: &str) -> MirrorSources {
        MirrorSources { apt: vec![(path.to_owned(), text.to_owned())], ..MirrorSources::default() }
    }

    fn texts(mirrors: &Mirrors) -> (String, Option<String>) {
        (mirrors.main.to_string(), mirrors.security.as_ref().map(ToString::to_string))
    }

    #[test]
    fn one_line_sources_are_read() {
        let text = "# deb http://commented.test/debian bookworm main\n\
             deb-src http://source.test/debian bookworm main\n\
             deb cdrom:[Debian]/ bookworm main\n\
             deb https://other.test/node nodistro main\n\
             deb [arch=amd64 signed-by=/k.gpg] http://mirror.test/debian/ bookworm main # why\n\
             deb http://mirror.test/debian-security bookworm-security main\n";
        let mirrors = discover(&apt("/etc/apt/sources.list", text), Distribution::Debian).expect("found");
        let security = Some("http://mirror.test/debian-security".to_owned());
        assert_eq!(texts(&mirrors), ("http://mirror.test/debian/".to_owned(), security));
    }

    #[test]
    fn deb822_sources_are_read() {
        let text = "Types: deb\nURIs: http://off.test/debian\nSuites: trixie\nEnabled: no\n\n\
             Types: deb deb-src\n# a comment between\nURIs: http://mirror.test/debian\nSuites: trixie\n trixie-updates\n\
             Components: main\n\nTypes: deb\nURIs: http://mirror.test/sec\nSuites: trixie-security/\n";
        let mirrors = discover(&apt("/etc/apt/sources.list.d/debian.sources", text), Distribution::Debian)
            .expect("found");
        assert_eq!(
            texts(&mirrors),
            ("http://mirror.test/debian".into(), Some("http://mirror.test/sec".into()))
        );
    }

    #[test]
    fn setting_overrides_apt_sources() {
        let mut sources = apt("/etc/apt/sources.list", "deb http://apt.test/s bookworm-security main");
        sources.main = Some("http://set.test/debian".to_owned());
        assert_eq!(
            texts(&discover(&sources, Distribution::Debian).expect("set")),
            ("http://set.test/debian".into(), None)
        );
    }

    #[test]
    fn missing_mirror_error_names_setting_and_exits_3() {
        for sources in [MirrorSources::default(), apt("a.list", "deb http://u.test/ubuntu jammy main")] {
            let error = discover(&sources, Distribution::Debian).expect_err("none");
            assert_eq!(
                (&error, error.exit()),
                (&MirrorError::NoneFound { distribution: Distribution::Debian }, Exit::Outside)
            );
            assert!(error.hints()[0].contains("ENVFORGE_DEBIAN_MIRROR"));
        }
    }

    #[test]
    fn invalid_setting_is_reported_and_exits_2() {
        let sources = MirrorSources { main: Some("/srv/mirror".to_owned()), ..MirrorSources::default() };
        let error = discover(&sources, Distribution::Debian).expect_err("no address");
        assert!(error.to_string().contains("mirrors.debian"), "{error}");
        assert_eq!(error.exit(), Exit::Usage);
    }

    #[test]
    fn mirror_of_ubuntu_is_not_taken_for_debian_and_has_its_security_updates() {
        let text = "deb http://d.test/debian bookworm main\ndeb http://u.test/ubuntu noble-updates main\n";
        let sources = apt("/etc/apt/sources.list", text);
        let found = discover(&sources, Distribution::Ubuntu).expect("found");
        let ubuntu = "http://u.test/ubuntu".to_owned();
        assert_eq!(texts(&found), (ubuntu.clone(), Some(ubuntu)));
        let debian = discover(&sources, Distribution::Debian).expect("found");
        assert_eq!(texts(&debian), ("http://d.test/debian".to_owned(), None));
        let set = MirrorSources { ubuntu: Some("http://set.test/u".to_owned()), ..sources };
        assert_eq!(texts(&discover(&set, Distribution::Ubuntu).expect("set")).0, "http://set.test/u");
        let error = discover(&apt("a.list", "deb http://d.test/debian trixie main"), Distribution::Ubuntu);
        assert!(error.expect_err("none").hints()[0].contains("ENVFORGE_UBUNTU_MIRROR"));
    }
}
