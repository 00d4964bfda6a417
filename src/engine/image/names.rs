//! Names of images. Pure.

/// Splits a name from its tag: `debian:12` is `debian` and `12`; a port is not a tag.
pub(in crate::engine) fn split_tag(reference: &str) -> (&str, Option<&str>) {
    match reference.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') && !name.is_empty() => (name, Some(tag)),
        _ => (reference, None),
    }
}

/// Returns a name in Docker's short form; Podman writes out the registry.
pub(super) fn familiar(reference: &str) -> String {
    let name = reference.strip_prefix("docker.io/").unwrap_or(reference);
    name.strip_prefix("library/").unwrap_or(name).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn split_tag_skips_a_port() {
        assert_eq!(split_tag("debian:12"), ("debian", Some("12")));
        assert_eq!(split_tag("debian"), ("debian", None));
        assert_eq!(split_tag("box:5000/a/b"), ("box:5000/a/b", None));
        assert_eq!(split_tag("box:5000/a/b:c"), ("box:5000/a/b", Some("c")));
    }

    #[test]
    fn familiar_returns_dockers_names_of_podman_images() {
        assert_eq!(familiar("docker.io/library/envforge-base:1"), "envforge-base:1");
        assert_eq!(familiar("docker.io/team/a:1"), "team/a:1");
        assert_eq!(familiar("box:5000/a:1"), "box:5000/a:1");
    }
}
