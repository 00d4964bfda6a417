//! Which registries are reached without TLS.

use crate::settings::image_registry::RegistrySettings;

/// Whether a registry is reached without TLS: by a setting, or because it is on this machine and has no certificate
/// authority of its own.
pub(super) fn is_plain_http(settings: &RegistrySettings, registry: &str, has_authority: bool) -> bool {
    (is_loopback(registry) && !has_authority)
        || settings.mirrors.is_plain_http(registry)
        || settings.insecure.iter().any(|insecure| insecure == registry)
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
    fn plain_http_requires_loopback_or_setting() {
        let settings =
            RegistrySettings { insecure: vec!["box:5000".to_owned()], ..RegistrySettings::default() };
        for registry in
            ["localhost", "localhost:5000", "127.0.0.1:5000", "127.1.2.3", "[::1]:5000", "box:5000"]
        {
            assert!(is_plain_http(&settings, registry, false), "{registry}");
        }
        assert!(
            is_plain_http(&settings, "box:5000", true) && !is_plain_http(&settings, "localhost:5000", true)
        );
        for registry in ["docker.io", "box", "10.0.0.1:5000", "127.0.0.1.test:5000", "localhost.test"] {
            assert!(!is_plain_http(&settings, registry, false), "{registry}");
        }
    }
}
