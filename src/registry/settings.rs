//! What decides how registries are reached. Plain values made by the settings.

use camino::Utf8PathBuf;

use super::hidden::Hidden;
use super::mirrors::ImageMirrors;

/// A login that the environment gives.
#[derive(Debug, Clone)]
pub struct EnvironmentLogin {
    /// The registry it is for, as in an image reference.
    pub registry: String,
    /// The user.
    pub user: String,
    /// The password.
    pub password: Hidden,
}

/// How registries are reached.
#[derive(Debug, Clone, Default)]
pub struct RegistrySettings {
    /// Where else images may be had.
    pub mirrors: ImageMirrors,
    /// Registries spoken to without TLS, beside those on this machine itself.
    pub insecure: Vec<String>,
    /// A login from the environment; wins over the rest.
    pub login: Option<EnvironmentLogin>,
    /// The text of `DOCKER_AUTH_CONFIG`; wins over Docker's file.
    pub auth_config: Option<Hidden>,
    /// Docker's configuration folder.
    pub docker_config: Option<Utf8PathBuf>,
    /// Folders as `/etc/docker/certs.d`: a folder for each registry, with the authorities (`*.crt`) trusted for it.
    pub certificates: Vec<Utf8PathBuf>,
}

impl RegistrySettings {
    /// True if a registry is spoken to without TLS: a setting says so, or it is on this machine and no certificate
    /// authority is kept for it.
    pub(super) fn is_plain_http(&self, registry: &str, has_authority: bool) -> bool {
        (is_loopback(registry) && !has_authority)
            || self.mirrors.is_plain_http(registry)
            || self.insecure.iter().any(|insecure| insecure == registry)
    }
}

fn is_loopback(registry: &str) -> bool {
    let host = match registry.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => host,
        _ => registry,
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_and_what_is_named_goes_without_tls() {
        let settings =
            RegistrySettings { insecure: vec!["box:5000".to_owned()], ..RegistrySettings::default() };
        for registry in
            ["localhost", "localhost:5000", "127.0.0.1:5000", "127.1.2.3", "[::1]:5000", "box:5000"]
        {
            assert!(settings.is_plain_http(registry, false), "{registry}");
        }
        assert!(settings.is_plain_http("box:5000", true) && !settings.is_plain_http("localhost:5000", true));
        for registry in ["docker.io", "box", "10.0.0.1:5000", "127.0.0.1.test:5000", "localhost.test"] {
            assert!(!settings.is_plain_http(registry, false), "{registry}");
        }
    }
}
