//! The published wheel of a release that fits a stack best, by the names on its page of the package index: what an installer takes
//! for the requirement `NAME==VERSION`.

use std::str::FromStr as _;

use pep440_rs::Version;

use super::download_wheels::WheelSource;
use super::error::PackagesError;
use super::index_page::{Link, links};
use super::wheel_name::{WheelName, normalised};
use crate::model::index_address::IndexAddress;
use crate::model::lock::{DEFAULT_INDEX, IndexKind, LockedWheel, WheelLayer};
use crate::model::versions::GlibcVersion;

/// A release of a package: `sgl-kernel==0.3.21`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Release {
    /// The package, normalized.
    pub package: String,
    /// The version.
    pub version: Version,
}

impl Release {
    /// Parses `NAME==VERSION`.
    pub fn parse(text: &str) -> Result<Self, PackagesError> {
        let invalid = || PackagesError::InvalidRelease { text: text.to_owned() };
        let (package, version) = text.split_once("==").ok_or_else(invalid)?;
        let (package, version) = (package.trim(), version.trim());
        let is_name = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if package.is_empty() || !package.chars().all(is_name) {
            return Err(invalid());
        }
        let version = Version::from_str(version).map_err(|_| invalid())?;
        Ok(Self { package: normalised(package), version })
    }

    /// Whether a file's version is of this release: a local version counts where none is requested (PEP 440).
    fn covers(&self, version: &str) -> bool {
        Version::from_str(version).is_ok_and(|found| {
            found == self.version
                || (self.version.local().is_empty() && found.without_local() == self.version)
        })
    }
}

impl WheelSource<'_> {
    /// Returns the wheel of a release that the stack's Python installs on a base with that glibc, as a lock lists it. It may be
    /// yanked, as for every installer of an exact version.
    pub async fn published(
        &self,
        release: &Release,
        glibc: &GlibcVersion,
    ) -> Result<LockedWheel, PackagesError> {
        let default = self.index.default.clone().map(IndexAddress::from);
        let indexes: Vec<_> = default.into_iter().chain(self.index.further.values().cloned()).collect();
        if indexes.is_empty() {
            return Err(PackagesError::IndexUnset { name: DEFAULT_INDEX.to_owned() });
        }
        let mut reasons = Vec::new();
        for index in indexes {
            let Some((page, text)) = self.page(&index, &release.package).await? else { continue };
            let files: Vec<Link<'_>> = links(&text, &page).collect();
            match self.best(&files, release, glibc) {
                Ok(wheel) => return Ok(wheel),
                Err(more) => reasons.extend(more),
            }
        }
        if reasons.is_empty() {
            reasons.push("the index does not list the package".to_owned());
        }
        Err(PackagesError::NoneCompatible {
            package: release.package.clone(),
            version: release.version.to_string(),
            stack: self.stack.name.clone(),
            reasons,
        })
    }

    /// The best file of a page, or why none of them fits.
    fn best(
        &self,
        files: &[Link<'_>],
        release: &Release,
        glibc: &GlibcVersion,
    ) -> Result<LockedWheel, Vec<String>> {
        let named = files.iter().filter_map(|link| Some((link, link.file.parse::<WheelName>().ok()?)));
        let wheels: Vec<_> = named.filter(|(_, name)| name.package == release.package).collect();
        let mut reasons: Vec<String> = files.iter().filter_map(|link| source_of(link, release)).collect();
        let mut fitting = Vec::new();
        for (link, name) in wheels.iter().filter(|(_, name)| release.covers(&name.version)) {
            let mut misfits = name.misfits(self.stack, Some(glibc));
            if link.sha256().is_none() {
                misfits.push("the index lists no SHA-256 of it".to_owned());
            }
            if misfits.is_empty() {
                fitting.push((*link, name));
            } else {
                reasons.push(format!("`{}`: {}", link.file, misfits.join("; ")));
            }
        }
        if reasons.is_empty() && fitting.is_empty() {
            let versions = wheels.iter().filter_map(|(_, name)| Version::from_str(&name.version).ok());
            let newest = versions.max().map(|newest| format!("; its newest wheel is of {newest}"));
            reasons.push(format!("the index has no file of that release{}", newest.unwrap_or_default()));
        }
        let rank = |(link, name): &(&Link<'_>, &WheelName)| {
            let version = Version::from_str(&name.version).ok();
            (!link.is_yanked(), version, name.specificity(self.stack.python), name.glibc())
        };
        let (link, name) = fitting.into_iter().max_by_key(rank).ok_or(reasons)?;
        Ok(LockedWheel {
            name: name.package.clone(),
            version: name.version.clone(),
            file: link.file.clone(),
            sha256: link.sha256().unwrap_or_default().to_owned(),
            size: None,
            index: IndexKind::Default,
            index_name: None,
            layer: WheelLayer::User,
        })
    }
}

/// The reason that a file of a release is not a wheel.
fn source_of(link: &Link<'_>, release: &Release) -> Option<String> {
    let stem = link.file.strip_suffix(".tar.gz").or_else(|| link.file.strip_suffix(".zip"))?;
    let (_, version) = stem.rsplit_once('-')?;
    release.covers(version).then(|| format!("`{}` is a source distribution", link.file))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::{Exit, Failure as _};
    use crate::model::lock::sample;
    use crate::packages::settings::IndexSettings;
    use crate::packages::test_downloads::TestDownloads;

    /// What is chosen of the files of a page, which have SHA-256 `number` times 64, for Python 3.11 on glibc 2.36.
    async fn chosen(release: &str, files: &[&str]) -> Result<LockedWheel, PackagesError> {
        let downloads = TestDownloads::start().await;
        let link = |(number, file): (usize, &&str)| {
            let (file, yanked) = match file.strip_prefix('!') {
                Some(file) => (file, " data-yanked=\"\""),
                None => (*file, ""),
            };
            format!("<a href=\"/f/{file}#sha256={}\"{yanked}>x</a>", number.to_string().repeat(64))
        };
        let page: String = files.iter().enumerate().map(link).collect();
        downloads.serve("/simple/my-extension/", page.as_bytes()).await;
        let default = Some(format!("{}/simple", downloads.server.uri()).parse().expect("an address"));
        let index = IndexSettings { default, ..IndexSettings::default() };
        let stack = sample::stack();
        let source = WheelSource { stack: &stack, index: &index, fetcher: &downloads.fetcher, known: None };
        let glibc = "2.36".parse().expect("a version");
        source.published(&Release::parse(release)?, &glibc).await
    }

    #[tokio::test]
    async fn wheel_of_the_release_with_the_closest_tags_is_chosen() {
        let files = [
            "my_extension-1.0-py3-none-any.whl",
            "my_extension-1.0-cp39-abi3-manylinux_2_28_x86_64.whl",
            "my_extension-1.0-cp311-cp311-manylinux_2_17_x86_64.whl",
            "my_extension-1.0-cp311-cp311-manylinux_2_28_x86_64.whl",
            "my_extension-1.0-cp311-cp311-manylinux_2_39_x86_64.whl",
            "my_extension-1.0-cp312-cp312-manylinux_2_28_x86_64.whl",
            "my_extension-1.1-cp311-cp311-manylinux_2_28_x86_64.whl",
            "other-1.0-cp311-cp311-manylinux_2_28_x86_64.whl",
        ];
        for (left, number) in [(8, 3), (3, 2), (2, 1), (1, 0)] {
            let wheel = chosen("My.Extension == 1.0", &files[..left]).await.expect("one fits");
            assert_eq!((wheel.file.as_str(), wheel.name.as_str()), (files[number], "my-extension"));
            assert_eq!(wheel.sha256, number.to_string().repeat(64));
        }
    }

    #[tokio::test]
    async fn local_versions_count_and_a_yanked_wheel_is_the_last() {
        let local = ["my_extension-1.0+cu118-py3-none-any.whl", "my_extension-1.0+cu128-py3-none-any.whl"];
        let of = async |release: &str, files: &[&str]| chosen(release, files).await.map(|wheel| wheel.file);
        assert_eq!(of("my-extension==1.0", &local).await.expect("the newest"), local[1]);
        assert_eq!(of("my-extension==1.0+cu118", &local).await.expect("that one"), local[0]);
        let plain = "my_extension-1.0-py3-none-any.whl";
        let yanked = "!my_extension-1.0-cp311-cp311-linux_x86_64.whl";
        assert_eq!(of("my-extension==1.0", &[plain, yanked]).await.expect("the other"), plain);
        assert_eq!(of("my-extension==1.0", &[yanked]).await.expect("the only one"), yanked[1..]);
    }

    #[tokio::test]
    async fn every_file_that_does_not_fit_has_its_reason() {
        let files = [
            "my_extension-1.0-cp312-cp312-manylinux_2_28_x86_64.whl",
            "my_extension-1.0-cp311-cp311-manylinux_2_39_aarch64.whl",
            "my_extension-1.0.tar.gz",
            "my_extension-0.9-py3-none-any.whl",
        ];
        let error = chosen("my-extension==1.0", &files).await.expect_err("none fits");
        assert_eq!(error.exit(), Exit::No);
        insta::assert_snapshot!(error, @r"
        no wheel of `my-extension 1.0` is compatible with `pytorch-cuda:2.8.0-cu128-py3.11`:
          - `my_extension-1.0.tar.gz` is a source distribution
          - `my_extension-1.0-cp312-cp312-manylinux_2_28_x86_64.whl`: it is for Python cp312-cp312; the stack has 3.11
          - `my_extension-1.0-cp311-cp311-manylinux_2_39_aarch64.whl`: it is for manylinux_2_39_aarch64; the stack is for Linux on x86_64; it needs glibc 2.39; debian:12 has 2.36
        ");
        let error = chosen("my-extension==2.0", &files).await.expect_err("no such release");
        let reason = "the index has no file of that release; its newest wheel is of 1.0";
        assert!(error.to_string().ends_with(reason), "{error}");
        let error = chosen("another==1.0", &files).await.expect_err("no such package");
        assert!(error.to_string().ends_with("the index does not list the package"), "{error}");
    }

    #[test]
    fn release_is_a_name_and_an_exact_version() {
        let release = Release::parse("My_Ext==1.0+cu128").expect("a release");
        assert_eq!(
            (release.package.as_str(), release.version.to_string()),
            ("my-ext", "1.0+cu128".to_owned())
        );
        for text in
            ["my-ext", "my-ext==", "==1.0", "my-ext==new", "my ext==1", "../my-ext==1.0", "my-ext==1.*"]
        {
            let error = Release::parse(text).expect_err(text);
            assert_eq!(error.exit(), Exit::Usage);
            assert!(error.to_string().contains("NAME==VERSION"), "{error}");
        }
    }
}
