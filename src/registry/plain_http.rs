//! Which registries are reached without TLS.

use crate::settings::image_registry::RegistrySettings;

/// Whether a registry is reached without TLS: by a setting, or because it is on this machine and has no certificate
/// authority of its own.
pub(super) fn is_plain_http(settings: &RegistrySettings, registry: &str, has_authority: bool) -> bool {
    (is_loopback(registry) && !has_authority) || is_written(settings, registry)
}

/// Whether a login must not be sent: the registry is reached without TLS, and only because it is on this machine. Any program
/// of this machine may listen there.
pub(super) fn withholds_login(settings: &RegistrySettings, registry: &str, has_authority: bool) -> bool {
    is_plain_http(settings, registry, has_authority) && !is_written(settings, registry)
}

/// Whether the user wrote that this registry is reached without TLS.
fn is_written(settings: &RegistrySettings, registry: &str) -> bool {
    settings.mirrors.is_plain_http(registry) || settings.insecure.iter().any(|insecure| insecure == registry)
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
    fn login_is_withheld_from_loopback_unless_its_address_is_written() {
        let settings = RegistrySettings {
            insecure: vec!["box:5000".to_owned(), "localhost:5001".to_owned()],
            ..RegistrySettings::default()
        };
        for (registry, has_authority, withheld) in [
            ("localhost:5000", false, true),
            ("127.0.0.1:5001", false, true),
            ("localhost:5001", false, false),
            ("localhost:5000", true, false),
            ("box:5000", false, false),
            ("registry.test", false, false),
        ] {
            assert_eq!(withholds_login(&settings, registry, has_authority), withheld, "{registry}");
        }
    }

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
