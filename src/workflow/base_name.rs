//! What the name of a base of the user's own says, before its image is read.

use crate::base::BaseError;
use crate::model::compat::Matrix;
use crate::model::image_ref::{DEFAULT_REGISTRY, ImageRef};
use crate::workflow::error::CommandError;

/// The namespace of Docker's official images.
const OFFICIAL: &str = "library/";
/// Official images of distributions without apt and dpkg.
const OTHERS: [&str; 12] = [
    "almalinux",
    "alpine",
    "amazonlinux",
    "archlinux",
    "busybox",
    "centos",
    "clearlinux",
    "fedora",
    "opensuse",
    "oraclelinux",
    "photon",
    "rockylinux",
];

/// Refuses a name that no image has, and the official images that are no base.
pub(crate) fn check_base_name(image: &str) -> Result<(), CommandError> {
    let reference: ImageRef = image.parse()?;
    let name = reference.repository().strip_prefix(OFFICIAL);
    let Some(name) = name.filter(|_| reference.registry() == DEFAULT_REGISTRY) else { return Ok(()) };
    // `python:3.12-alpine3.20`, which has musl.
    let of_alpine =
        || reference.tag().is_some_and(|tag| tag.split('-').any(|part| part.starts_with("alpine")));
    if OTHERS.contains(&name) || of_alpine() {
        let why = "it is not Debian- or Ubuntu-based".to_owned();
        return Err(BaseError::NoBase { reference: image.to_owned(), why }.into());
    }
    Ok(())
}

/// Returns the base of the matrix whose name differs in a letter or two.
pub(crate) fn near_base<'a>(image: &str, matrix: &'a Matrix) -> Option<&'a str> {
    let (name, tag) = image.split_once(':')?;
    let is_near = |row: &str| {
        row.split_once(':').is_some_and(|(known, of_row)| {
            of_row == tag && known != name && strsim::osa_distance(known, name) <= 2
        })
    };
    matrix.bases.iter().map(|row| row.name.as_str()).find(|row| is_near(row))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn official_images_of_other_distributions_are_no_base() {
        for image in ["alpine:3.20", "alpine", "docker.io/library/centos:7", "python:3.12-slim-alpine3.20"] {
            let error = check_base_name(image).expect_err(image).to_string();
            assert!(error.contains("not Debian- or Ubuntu-based"), "{error}");
        }
        // What another registry or team calls so may be anything.
        for image in ["registry.test/alpine:3.20", "team/alpine:1", "python:3.12-slim-bookworm", "debian:10"]
        {
            assert!(check_base_name(image).is_ok(), "{image}");
        }
    }

    #[test]
    fn misspelt_name_of_a_known_base_is_near_it() {
        assert_eq!(near_base("debain:12", crate::model::compat::embedded()), Some("debian:12"));
        assert_eq!(near_base("ubunto:22.04", crate::model::compat::embedded()), Some("ubuntu:22.04"));
        for image in ["debian:10", "debain:10", "team/debain:12", "fedora:41", "debian"] {
            assert_eq!(near_base(image, crate::model::compat::embedded()), None, "{image}");
        }
    }
}
