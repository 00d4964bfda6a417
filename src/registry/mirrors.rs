//! Where else a registry's images may be had: rules from the configuration.

use std::collections::BTreeMap;

use super::reference::{DEFAULT_REGISTRY, ImageRef, is_path_part, is_valid_host};

/// For each registry its mirrors, in the order they are asked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImageMirrors(BTreeMap<String, Vec<Mirror>>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Mirror {
    host: String,
    folder: String,
    plain_http: bool,
}

/// A mirror that cannot be used. Its text is not repeated where it may hold a password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the mirror of `{registry}` cannot be used: {reason}")]
pub struct MirrorRuleError {
    /// The registry it is for.
    pub registry: String,
    /// What is wrong.
    pub reason: &'static str,
}

impl ImageMirrors {
    /// Adds a mirror of a registry: `host[:port][/folder]`, with `http://` in front if it speaks no TLS.
    pub fn add(&mut self, registry: &str, mirror: &str) -> Result<(), MirrorRuleError> {
        let bad = |reason| MirrorRuleError { registry: registry.to_owned(), reason };
        if !is_valid_host(registry) {
            return Err(bad("the registry is named as in an image reference, `docker.io` or `host:port`"));
        }
        if mirror.contains('@') {
            return Err(bad("it may not hold credentials: `docker login` keeps them"));
        }
        let (plain_http, rest) = match mirror.split_once("://") {
            Some(("http", rest)) => (true, rest),
            Some(("https", rest)) => (false, rest),
            None => (false, mirror),
            Some(_) => return Err(bad("only http:// and https:// are spoken")),
        };
        let (host, folder) =
            rest.trim_end_matches('/').split_once('/').unwrap_or((rest.trim_end_matches('/'), ""));
        if !is_valid_host(host) || !(folder.is_empty() || folder.split('/').all(is_path_part)) {
            return Err(bad("a mirror is `host`, `host:port` or `host/folder`"));
        }
        let mirror = Mirror { host: host.to_owned(), folder: folder.to_owned(), plain_http };
        let registry = if registry == "index.docker.io" { DEFAULT_REGISTRY } else { registry };
        self.0.entry(registry.to_owned()).or_default().push(mirror);
        Ok(())
    }

    /// The image as each of its registry's mirrors names it.
    pub fn of(&self, image: &ImageRef) -> Vec<ImageRef> {
        let mirrors = self.0.get(image.registry()).into_iter().flatten();
        mirrors.map(|mirror| image.below(&mirror.host, &mirror.folder)).collect()
    }

    /// True if a mirror of that host was named with `http://`.
    pub(super) fn is_plain_http(&self, host: &str) -> bool {
        self.0.values().flatten().any(|mirror| mirror.host == host && mirror.plain_http)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_named_as_each_mirror_names_it() {
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
    fn a_mirror_with_a_password_is_refused_without_repeating_it() {
        for mirror in
            ["https://user:hunter2@mirror.test", "ftp://mirror.test", "", "mirror.test/UPPER", "a b"]
        {
            let error = ImageMirrors::default().add("docker.io", mirror).expect_err("refused");
            assert!(!format!("{error} {error:?}").contains("hunter2"), "{error}");
        }
    }
}
