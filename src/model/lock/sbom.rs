//! The lock as an SPDX 2.3 document: every package of the image with its version and SHA-256.
//!
//! Download locations are unknown and marked `NOASSERTION`, and so are licenses but those that restrict whom the image may be passed on to.

use serde_json::{Value, json};

use super::types::{Lock, LockedDeb};
use crate::model::compat::Matrix;

const NONE: &str = "NOASSERTION";

impl Lock {
    /// Returns the bill of materials of the image with that name, as SPDX JSON. The same lock gives the same document.
    pub fn spdx(&self, name: &str, matrix: &Matrix) -> Value {
        let hash = self.hash();
        let licences = self.restrictive_licences(matrix);
        let mut packages = vec![json!({
            "SPDXID": "SPDXRef-image",
            "name": name,
            "versionInfo": &hash[..12],
            "primaryPackagePurpose": "CONTAINER",
            "downloadLocation": NONE,
            "filesAnalyzed": false,
            "licenseConcluded": NONE,
            "licenseDeclared": NONE,
            "copyrightText": NONE,
        })];
        let distribution = self.base.name.split(':').next().unwrap_or("debian");
        let debs = self.base.packages.iter().chain(self.debs());
        for (number, deb) in debs.enumerate() {
            packages.push(package(
                &format!("deb-{number}"),
                &deb.name,
                &deb.version,
                &deb.sha256,
                &deb_url(deb, distribution),
            ));
        }
        for (number, wheel) in self.wheels.iter().enumerate() {
            let url = format!("pkg:pypi/{}@{}", encoded(&wheel.name), encoded(&wheel.version));
            let id = format!("wheel-{number}");
            let mut package = package(&id, &wheel.name, &wheel.version, &wheel.sha256, &url);
            if licences.iter().any(|(name, _)| *name == wheel.name) {
                package["licenseDeclared"] = json!(licence_id(&wheel.name));
            }
            packages.push(package);
        }
        for (number, tool) in self.tools.iter().enumerate() {
            let url = format!("pkg:pypi/{}@{}", encoded(&tool.name), encoded(&tool.version));
            packages.push(package(&format!("tool-{number}"), &tool.name, &tool.version, &tool.sha256, &url));
        }
        if let Some(digest) = self.base.digest.as_ref().and_then(|digest| digest.strip_prefix("sha256:")) {
            let (base, tag) = self.base.name.split_once(':').unwrap_or((&self.base.name, ""));
            let url =
                format!("pkg:oci/{}@sha256%3A{digest}", encoded(base.rsplit('/').next().unwrap_or(base)));
            packages.push(package("base", base, tag, digest, &url));
        }
        let related = |from: &str, kind: &str, to: &Value| json!({ "spdxElementId": from, "relationshipType": kind, "relatedSpdxElement": to });
        let mut relationships = vec![related("SPDXRef-DOCUMENT", "DESCRIBES", &json!("SPDXRef-image"))];
        relationships.extend(
            packages[1..].iter().map(|package| related("SPDXRef-image", "CONTAINS", &package["SPDXID"])),
        );
        let mut document = json!({
            "spdxVersion": "SPDX-2.3",
            "dataLicense": "CC0-1.0",
            "SPDXID": "SPDXRef-DOCUMENT",
            "name": name,
            "documentNamespace": format!("https://spdx.org/spdxdocs/envforge-{hash}"),
            "creationInfo": {
                "created": self.records.created,
                "creators": [format!("Tool: envforge-{}", self.records.envforge)],
            },
            "packages": packages,
            "relationships": relationships,
        });
        let texts = licences.iter().map(|(name, licence)| {
            let text = format!("The text is in the wheel of {name}: {licence}");
            json!({ "licenseId": licence_id(name), "name": licence, "extractedText": text })
        });
        if !licences.is_empty() {
            document["hasExtractedLicensingInfos"] = texts.collect();
        }
        document
    }
}

/// Returns what the document calls the licence of a package.
fn licence_id(package: &str) -> String {
    format!("LicenseRef-{package}")
}

fn package(id: &str, name: &str, version: &str, sha256: &str, url: &str) -> Value {
    json!({
        "SPDXID": format!("SPDXRef-{id}"),
        "name": name,
        "versionInfo": version,
        "downloadLocation": NONE,
        "filesAnalyzed": false,
        "licenseConcluded": NONE,
        "licenseDeclared": NONE,
        "copyrightText": NONE,
        "checksums": [{ "algorithm": "SHA256", "checksumValue": sha256 }],
        "externalRefs": [{
            "referenceCategory": "PACKAGE-MANAGER",
            "referenceType": "purl",
            "referenceLocator": url,
        }],
    })
}

fn deb_url(deb: &LockedDeb, distribution: &str) -> String {
    format!(
        "pkg:deb/{distribution}/{}@{}?arch={}",
        encoded(&deb.name),
        encoded(&deb.version),
        deb.architecture
    )
}

/// A part of a package URL: everything but letters, digits and `-._~` is percent-encoded.
fn encoded(text: &str) -> String {
    use std::fmt::Write as _;
    text.bytes().fold(String::new(), |mut out, byte| {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
        out
    })
}

#[cfg(test)]
mod tests {
    use crate::model::lock::sample;

    #[test]
    fn document_lists_every_package_once_with_hash_and_purl() {
        let mut lock = sample::lock();
        lock.wheels[0].version = "2.8.0+cu128".to_owned();
        lock.apt.push(sample::deb("libstdc++6", "1:12~rc1"));
        let document = lock.spdx("x", crate::model::compat::embedded());
        let packages = document["packages"].as_array().expect("a list");
        let urls: Vec<_> =
            packages.iter().filter_map(|one| one["externalRefs"][0]["referenceLocator"].as_str()).collect();
        assert_eq!(
            urls,
            [
                "pkg:deb/debian/libc6@2.36-9%2Bdeb12u14?arch=amd64",
                "pkg:deb/debian/python3@3.11.2-1%2Bb1?arch=amd64",
                "pkg:deb/debian/libstdc%2B%2B6@1%3A12~rc1?arch=amd64",
                "pkg:pypi/torch@2.8.0%2Bcu128",
                "pkg:pypi/uv@0.13.9",
            ]
        );
        assert_eq!(packages[4]["checksums"][0]["checksumValue"], lock.wheels[0].sha256.as_str());
        assert_eq!(document["relationships"].as_array().expect("a list").len(), packages.len());
        assert_eq!(lock.spdx("x", crate::model::compat::embedded()), document, "the same each time");
        assert!(!document.to_string().contains("LicenseRef"), "{document}");
    }

    #[test]
    fn restrictive_licence_is_declared_for_its_wheel_alone() {
        let mut lock = sample::lock();
        lock.wheels.push(lock.wheels[0].clone());
        lock.wheels[1].name = "another".to_owned();
        lock.stack.licence = Some("Agreement for Torch".to_owned());
        let document = lock.spdx("x", crate::model::compat::embedded());
        let packages = document["packages"].as_array().expect("a list");
        let declared: Vec<_> =
            packages.iter().filter(|package| package["licenseDeclared"] != "NOASSERTION").collect();
        assert_eq!(declared.len(), 1, "{declared:?}");
        assert_eq!(
            (&declared[0]["name"], &declared[0]["licenseDeclared"]),
            (&"torch".into(), &"LicenseRef-torch".into())
        );
        let text = &document["hasExtractedLicensingInfos"][0];
        assert_eq!(
            (&text["licenseId"], &text["name"]),
            (&"LicenseRef-torch".into(), &"Agreement for Torch".into())
        );
        assert!(
            text["extractedText"].as_str().is_some_and(|text| text.contains("in the wheel of torch")),
            "{text}"
        );
    }

    /// `tensorrt` in `[packages]` of a PyTorch project puts the same library into the image as `tensorrt-cuda` does.
    #[test]
    fn licence_of_a_users_package_is_declared() {
        let mut lock = sample::lock();
        lock.wheels.push(lock.wheels[0].clone());
        lock.wheels[1].name = "tensorrt".to_owned();
        let document = lock.spdx("x", crate::model::compat::embedded());
        let packages = document["packages"].as_array().expect("a list");
        let declared: Vec<_> =
            packages.iter().filter(|package| package["licenseDeclared"] != "NOASSERTION").collect();
        assert_eq!(declared.len(), 1, "{declared:?}");
        assert_eq!(declared[0]["licenseDeclared"], "LicenseRef-tensorrt");
        assert_eq!(document["hasExtractedLicensingInfos"][0]["licenseId"], "LicenseRef-tensorrt");
    }
}
