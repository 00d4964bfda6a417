//! The name of an image, read as Docker reads it.

use std::fmt;
use std::str::FromStr;

use crate::failure::{Exit, Failure};
use crate::model::image_digest::Digest;
use crate::model::typed_path::looks_like_path;

/// The registry that a name without host means.
pub(crate) const DEFAULT_REGISTRY: &str = "docker.io";
/// The namespace of one-part names in the default registry.
const OFFICIAL: &str = "library/";

/// `debian:12`, `registry.example.com:5000/team/torch:2.8`, `debian@sha256:…`. Printed in its short form.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ImageRef {
    registry: String,
    repository: String,
    tag: Option<String>,
    digest: Option<Digest>,
    names_registry: bool,
}

/// An invalid image reference.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid image reference `{text}`: {reason}")]
pub struct ReferenceError {
    /// The text.
    pub text: String,
    /// The problem.
    pub reason: &'static str,
}

impl Failure for ReferenceError {
    fn exit(&self) -> Exit {
        Exit::Usage
    }

    fn hints(&self) -> Vec<String> {
        if looks_like_path(&self.text) {
            return vec![
                "this is a path: name an image; `envforge import FILE NAME` makes one of an archive"
                    .to_owned(),
            ];
        }
        vec!["write `NAME`, `NAME:TAG` or `REGISTRY/NAME@sha256:…`".to_owned()]
    }
}

impl ImageRef {
    /// The registry's host, with its port if it has one: `docker.io`.
    pub fn registry(&self) -> &str {
        &self.registry
    }
    /// The name below the registry: `library/debian`.
    pub fn repository(&self) -> &str {
        &self.repository
    }
    /// The tag, if one was written.
    pub fn tag(&self) -> Option<&str> {
        self.tag.as_deref()
    }
    /// The digest, if one was written.
    pub fn digest(&self) -> Option<&Digest> {
        self.digest.as_ref()
    }
    /// Whether the registry was written, as opposed to meant.
    pub fn names_registry(&self) -> bool {
        self.names_registry
    }
    /// The short name without tag and digest: `debian`.
    pub fn name(&self) -> String {
        if self.registry != DEFAULT_REGISTRY {
            return format!("{}/{}", self.registry, self.repository);
        }
        self.repository.strip_prefix(OFFICIAL).unwrap_or(&self.repository).to_owned()
    }
    /// The same name pinned to a digest, without tag.
    #[must_use]
    pub fn pinned(&self, digest: &Digest) -> Self {
        Self { tag: None, digest: Some(digest.clone()), ..self.clone() }
    }
    /// Returns the requested version: the digest, the tag, or `latest`.
    pub(crate) fn wanted(&self) -> &str {
        self.digest.as_ref().map(Digest::as_str).or(self.tag()).unwrap_or("latest")
    }
    /// The same image below another root: `host` and a directory, which may be empty.
    #[must_use]
    pub(crate) fn below(&self, host: &str, folder: &str) -> Self {
        let repository =
            if folder.is_empty() { self.repository.clone() } else { format!("{folder}/{}", self.repository) };
        Self { registry: host.to_owned(), repository, names_registry: true, ..self.clone() }
    }
}

impl FromStr for ImageRef {
    type Err = ReferenceError;
    fn from_str(text: &str) -> Result<Self, ReferenceError> {
        let bad = |reason| ReferenceError { text: text.to_owned(), reason };
        let (rest, digest) = match text.split_once('@') {
            Some((rest, digest)) => {
                let digest =
                    digest.parse().map_err(|_| bad("expected `sha256:` and 64 hex digits after `@`"))?;
                (rest, Some(digest))
            }
            None => (text, None),
        };
        let (name, tag) = match rest.rsplit_once(':') {
            Some((name, tag)) if !tag.contains('/') => (name, Some(tag)),
            _ => (rest, None),
        };
        if tag.is_some_and(|tag| !is_tag(tag)) {
            return Err(bad(
                "a tag has at most 128 letters, digits, `_`, `.` and `-`, and does not start with `.` or `-`",
            ));
        }
        let (host, path) = match name.split_once('/') {
            Some((host, path)) if is_host(host) => (Some(host), path),
            _ => (None, name),
        };
        let registry = match host {
            None | Some("index.docker.io" | "registry-1.docker.io") => DEFAULT_REGISTRY,
            Some(host) if is_valid_host(host) => host,
            Some(_) => return Err(bad("the registry is `host` or `host:port`")),
        };
        if path.is_empty() || !path.split('/').all(is_path_part) {
            return Err(bad(
                "a name is made of lower-case letters and digits, with `.`, `_` and `-` only between them",
            ));
        }
        let official = registry == DEFAULT_REGISTRY && !path.contains('/');
        let repository = if official { format!("{OFFICIAL}{path}") } else { path.to_owned() };
        Ok(Self {
            registry: registry.to_owned(),
            repository,
            tag: tag.map(str::to_owned),
            digest,
            names_registry: host.is_some(),
        })
    }
}

impl fmt::Display for ImageRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = self.name();
        if let Some(tag) = &self.tag {
            text.extend([":", tag]);
        }
        if let Some(digest) = &self.digest {
            text.extend(["@", digest.as_str()]);
        }
        f.pad(&text)
    }
}

/// Whether the part before the first slash is a host and no directory: Docker's own rule.
fn is_host(part: &str) -> bool {
    part == "localhost"
        || part.contains(['.', ':', '['])
        || part.bytes().any(|byte| byte.is_ascii_uppercase())
}

/// Whether a text is a valid `host` or `host:port`, with IPv6 addresses in brackets.
pub(crate) fn is_valid_host(text: &str) -> bool {
    let (name, port) = match text.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') => (name, Some(port)),
        _ => (text, None),
    };
    let name_is_fine = match name.strip_prefix('[') {
        Some(rest) => rest.strip_suffix(']').is_some_and(|ip| ip.parse::<std::net::Ipv6Addr>().is_ok()),
        None => name.split('.').all(|part| {
            let inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
            !part.is_empty() && part.bytes().all(inner) && !part.starts_with('-') && !part.ends_with('-')
        }),
    };
    name_is_fine && port.is_none_or(|port| port.parse::<u16>().is_ok())
}

fn is_tag(text: &str) -> bool {
    let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let first = text.bytes().next().is_some_and(word);
    first && text.len() <= 128 && text.bytes().all(|byte| word(byte) || byte == b'.' || byte == b'-')
}

/// `[a-z0-9]+` parts joined by `.`, `_`, `__` or any number of `-`.
pub(crate) fn is_path_part(text: &str) -> bool {
    let letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let ends = text.bytes().next().is_some_and(letter) && text.bytes().last().is_some_and(letter);
    ends && text.split(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit()).all(|separator| {
        matches!(separator, "" | "." | "_" | "__") || separator.bytes().all(|byte| byte == b'-')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> (String, String, Option<String>, String) {
        let image: ImageRef = text.parse().expect(text);
        (image.registry.clone(), image.repository.clone(), image.tag.clone(), image.to_string())
    }

    #[test]
    fn references_are_parsed_as_in_docker() {
        let table = [
            ("debian", "docker.io", "library/debian", None, "debian"),
            ("debian:12", "docker.io", "library/debian", Some("12"), "debian:12"),
            ("docker.io/debian:12", "docker.io", "library/debian", Some("12"), "debian:12"),
            ("index.docker.io/a/b", "docker.io", "a/b", None, "a/b"),
            ("team/torch:2.8", "docker.io", "team/torch", Some("2.8"), "team/torch:2.8"),
            ("localhost/torch", "localhost", "torch", None, "localhost/torch"),
            ("box:5000/a/b_c", "box:5000", "a/b_c", None, "box:5000/a/b_c"),
            ("[::1]:5000/a:b", "[::1]:5000", "a", Some("b"), "[::1]:5000/a:b"),
            ("r.test/a/b--c:1-x", "r.test", "a/b--c", Some("1-x"), "r.test/a/b--c:1-x"),
        ];
        for (text, registry, repository, tag, shown) in table {
            let wanted =
                (registry.to_owned(), repository.to_owned(), tag.map(str::to_owned), shown.to_owned());
            assert_eq!(parts(text), wanted, "{text}");
        }
    }

    #[test]
    fn invalid_reference_is_rejected() {
        let long = format!("a:{}", "x".repeat(129));
        for text in [
            "",
            ":",
            "a:",
            "A",
            "a/",
            "/a",
            "a//b",
            "a:-x",
            "a@sha256:beef",
            "a@",
            "box:port/a",
            "-x.test/a",
            "a.-b",
            "a__.b",
            "a___b",
            "https://r.test/a",
            "r.test/a b",
            "user:secret@r.test/a",
            &long,
        ] {
            assert!(text.parse::<ImageRef>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_pinned_name_has_no_tag() {
        let digest = Digest::of(b"x");
        let image: ImageRef = "box:5000/a:1".parse().expect("parses");
        assert_eq!(image.pinned(&digest).to_string(), format!("box:5000/a@{digest}"));
        assert_eq!(image.wanted(), "1");
        assert_eq!(image.pinned(&digest).wanted(), digest.as_str());
        let both: ImageRef = format!("debian:12@{digest}").parse().expect("parses");
        assert_eq!((both.tag(), both.wanted()), (Some("12"), digest.as_str()));
    }

    proptest::proptest! {
        #[test]
        fn printed_reference_parses_to_the_same_value(text in "([a-z]{1,4}(\\.test|:50)?/)?[a-z]{1,3}([._-][a-z]{1,2})?(/[a-z]{1,3})?(:[A-Za-z0-9_][a-z.-]{0,4})?") {
            if let Ok(image) = text.parse::<ImageRef>() {
                let again: ImageRef = image.to_string().parse().expect("what we print");
                proptest::prop_assert_eq!((again.registry(), again.repository(), again.tag()), (image.registry(), image.repository(), image.tag()));
            }
        }
        #[test]
        fn parser_never_panics_on_references(text in ".{0,60}") {
            let _ = text.parse::<ImageRef>();
        }
    }
}
