//! Mirrors of image registries: rules from the configuration.

use std::collections::BTreeMap;

use crate::model::image_ref::{DEFAULT_REGISTRY, ImageRef, is_path_part, is_valid_host};

/// The mirrors of each registry, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImageMirrors(BTreeMap<String, Vec<Mirror>>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Mirror {
    host: String,
    folder: String,
    plain_http: bool,
}

/// An invalid mirror. The error omits its text, which may contain a password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid mirror of `{registry}`: {reason}")]
pub struct MirrorRuleError {
    /// The registry it is for.
    pub registry: String,
    /// The problem.
    pub reason: &'static str,
}

impl ImageMirrors {
    /// Adds a mirror of a registry: `host[:port][/folder]`, with `http://` in front if it speaks no TLS.
    pub fn add(&mut self, registry: &str, mirror: &str) -> Result<(), MirrorRuleError> {
        let bad = |reason| MirrorRuleError { registry: registry.to_owned(), reason };
        if !is_valid_host(registry) {
            return Err(bad("expected a registry such as `docker.io` or `host:port`"));
        }
        if mirror.contains('@') {
            return Err(bad("credentials are not supported (use `docker login`)"));
        }
        let (plain_http, rest) = match mirror.split_once("://") {
            Some(("http", rest)) => (true, rest),
            Some(("https", rest)) => (false, rest),
            None => (false, mirror),
            Some(_) => return Err(bad("unsupported scheme: use http:// or https://")),
        };
        let (host, folder) =
            rest.trim_end_matches('/').split_once('/').unwrap_or((rest.trim_end_matches('/'), ""));
        if !is_valid_host(host) || !(folder.is_empty() || folder.split('/').all(is_path_part)) {
            return Err(bad("expected `host`, `host:port` or `host/path`"));
        }
        let mirror = Mirror { host: host.to_owned(), folder: folder.to_owned(), plain_http };
        let registry = if registry == "index.docker.io" { DEFAULT_REGISTRY } else { registry };
        self.0.entry(registry.to_owned()).or_default().push(mirror);
        Ok(())
    }

    /// Returns the image's reference on each mirror of its registry.
    pub fn of(&self, image: &ImageRef) -> Vec<ImageRef> {
        let mirrors = self.0.get(image.registry()).into_iter().flatten();
        mirrors.map(|mirror| image.below(&mirror.host, &mirror.folder)).collect()
    }

    /// Whether a mirror of that host is configured with `http://`.
    pub fn is_plain_http(&self, host: &str) -> bool {
        self.0.values().flatten().any(|mirror| mirror.host == host && mirror.plain_http)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn image_gets_a_reference_on_each_mirror() {
        let mut mirrors = ImageMirrors::default();
        mirrors.add("docker.io", "https://mirror.test/hub/").expect("a mirror");
        mirrors.add("docker.io", "http://box:5000").expect("a mirror");
        let names = |text: &str| -> Vec<String> {
            mirrors.of(&text.parse().expect("a reference")).iter().map(ToString::to_string).collect()
        };
        assert_eq!(names("debian:12"), ["mirror.test/hub/library/debian:12", "box:5000/library/debian:12"]);
        assert_eq!(names("ghcr.test/a:1"), [""; 0]);
        assert!(mirrors.is_plain_http("box:5000") && !mirrors.is_plain_http("mirror.test"));
    }

    #[test]
    fn mirror_with_password_is_rejected_without_repeating_it() {
        for mirror in
            ["https://user:hunter2@mirror.test", "ftp://mirror.test", "", "mirror.test/UPPER", "a b"]
        {
            let error = ImageMirrors::default().add("docker.io", mirror).expect_err("refused");
            assert!(!format!("{error} {error:?}").contains("hunter2"), "{error}");
        }
    }
}
