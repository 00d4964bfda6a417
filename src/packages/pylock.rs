//! `pylock.toml` as uv writes it: one wheel per package. Its addresses are dropped here.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Deserialize;

use super::error::PackagesError;
use super::local_wheel::LocalWheel;
use super::percent::decoded;
use super::request::PackageRequest;
use super::settings::IndexSettings;
use super::wheel_name::{WheelName, normalised};
use crate::model::address::Address;
use crate::model::index_address::IndexAddress;
use crate::model::lock::{AllowedSource, LockedSource};
use crate::model::sha256::is_sha256_hex;
use crate::model::stack::Stack;

/// One wheel, as the resolver chose it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Resolution {
    pub(super) name: String,
    pub(super) version: String,
    pub(super) file: String,
    pub(super) sha256: String,
    pub(super) size: Option<u64>,
    /// Whether it is a prebuilt wheel that no index lists.
    pub(super) local: bool,
}

/// A source distribution, selected because no wheel is compatible.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceDist {
    /// Its entry in the lock file, without build requirements.
    pub locked: LockedSource,
    /// Its download address.
    pub address: Address,
}

impl SourceDist {
    /// Adds the login of the index on the same server: uv reports addresses without logins.
    pub(super) fn with_login_of(self, index: &IndexSettings) -> Self {
        let further = index.further.values().map(IndexAddress::address);
        let mut all = index.default.iter().chain(further);
        let origin = self.address.origin();
        match all.find(|index| index.origin() == origin) {
            Some(index) => Self { address: self.address.with_login_of(index), ..self },
            None => self,
        }
    }
}

#[derive(Deserialize)]
struct Pylock {
    #[serde(default)]
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    version: Option<String>,
    #[serde(default)]
    wheels: Vec<File>,
    sdist: Option<File>,
}

/// A wheel or a source distribution.
#[derive(Deserialize)]
struct File {
    name: Option<String>,
    url: Option<String>,
    size: Option<u64>,
    #[serde(default)]
    hashes: Hashes,
}

#[derive(Default, Deserialize)]
struct Hashes {
    sha256: Option<String>,
}

/// Returns the wheels of a `pylock.toml`, each compatible with the stack's Python and processor, and the source
/// distributions of packages in `allowed`. The resolver reads only the requirements of `local` wheels; they represent
/// themselves.
pub(super) fn resolutions(
    text: &str,
    stack: &Stack,
    local: &[&LocalWheel],
    allowed: &[AllowedSource],
) -> Result<(Vec<Resolution>, Vec<SourceDist>), PackagesError> {
    let pylock: Pylock = parse(text)?;
    let (mut wheels, mut sources) = (Vec::new(), Vec::new());
    for package in pylock.packages {
        let name = normalised(&package.name);
        if let Some(wheel) = local.iter().find(|wheel| wheel.name == name) {
            wheels.push(of_local(wheel));
        } else if let (true, [], Some(archive), Some(version)) = (
            allowed.iter().any(|source| source.name == name),
            package.wheels.as_slice(),
            &package.sdist,
            &package.version,
        ) {
            sources.push(source(&name, version, archive)?);
        } else {
            wheels.push(resolution(package, stack)?);
        }
    }
    Ok((wheels, sources))
}

fn source(name: &str, version: &str, archive: &File) -> Result<SourceDist, PackagesError> {
    let lacks =
        |what: &str| bad(format!("the index lists no {what} for the source distribution of `{name}`"));
    let file = file_of(archive).ok_or_else(|| lacks("name"))?;
    let address = archive.url.as_deref().and_then(|url| url.parse().ok()).ok_or_else(|| lacks("address"))?;
    let sha256 = archive.hashes.sha256.clone().filter(|hash| is_sha256_hex(hash));
    let sha256 = sha256.ok_or_else(|| lacks("SHA-256"))?;
    let (name, version, size) = (name.to_owned(), version.to_owned(), archive.size);
    let locked = LockedSource { name, version, file, sha256, size, build: Vec::new(), recipe: None };
    Ok(SourceDist { locked, address })
}

fn of_local(wheel: &LocalWheel) -> Resolution {
    Resolution {
        name: wheel.name.clone(),
        version: wheel.version.clone(),
        file: wheel.file.clone(),
        sha256: wheel.sha256.clone(),
        size: Some(wheel.size),
        local: true,
    }
}

/// Returns the address of each wheel of a `pylock.toml`, by its SHA-256.
pub(super) fn addresses(text: &str) -> Result<BTreeMap<String, Address>, PackagesError> {
    let wheels = parse(text)?.packages.into_iter().flat_map(|package| package.wheels);
    let known = |wheel: File| {
        let sha256 = wheel.hashes.sha256.filter(|hash| is_sha256_hex(hash))?;
        Some((sha256, wheel.url?.parse().ok()?))
    };
    Ok(wheels.filter_map(known).collect())
}

/// Returns the package names of a `pylock.toml`.
pub(super) fn names(text: &str) -> Result<Vec<String>, PackagesError> {
    Ok(parse(text)?.packages.iter().map(|package| normalised(&package.name)).collect())
}

/// Returns a `pylock.toml` of preferences for uv: the versions of an older lock file, and before those the versions of another tool's
/// for packages that the stack does not decide, except those of `fresh`. `None`: there are none.
pub(super) fn preferences(request: &PackageRequest<'_>) -> Option<String> {
    let PackageRequest { stack, previous, preferred, fresh, .. } = *request;
    if previous.is_none() && preferred.is_none() {
        return None;
    }
    let old = previous.into_iter().flat_map(|lock| &lock.wheels).map(|wheel| (&wheel.name, &wheel.version));
    let of_tool = preferred.into_iter().flatten().filter(|(name, _)| !is_of_stack(name, stack));
    let pins: BTreeMap<&String, &String> = old.chain(of_tool).collect();
    let mut text = "lock-version = \"1.0\"\ncreated-by = \"envforge\"\n".to_owned();
    for (name, version) in pins.into_iter().filter(|(name, _)| !fresh.contains(name)) {
        let (name, version) = (toml::Value::from(name.as_str()), toml::Value::from(version.as_str()));
        let _ = writeln!(text, "\n[[packages]]\nname = {name}\nversion = {version}");
    }
    Some(text)
}

/// Whether the matrix and the framework decide the version of a package.
fn is_of_stack(name: &str, stack: &Stack) -> bool {
    name == stack.package
        || stack.companions.contains_key(name)
        || stack.parts.contains_key(name)
        || ["triton", "pytorch-triton"].contains(&name)
        || ["nvidia-", "cutensor-"].iter().any(|prefix| name.starts_with(prefix))
}

fn parse(text: &str) -> Result<Pylock, PackagesError> {
    toml::from_str(text).map_err(|error| bad(error.message().to_owned()))
}

fn bad(detail: String) -> PackagesError {
    PackagesError::Output { what: "pylock.toml", detail }
}

fn resolution(package: Package, stack: &Stack) -> Result<Resolution, PackagesError> {
    let name = normalised(&package.name);
    let version = package.version.ok_or_else(|| bad(format!("`{name}` has no version")))?;
    for wheel in package.wheels {
        let Some(file) = file_of(&wheel) else { continue };
        let Ok(parsed) = file.parse::<WheelName>() else { continue };
        if parsed.package != name || !parsed.fits(stack.python, stack.machine) {
            continue;
        }
        let sha256 = wheel.hashes.sha256.filter(|hash| is_sha256_hex(hash));
        let sha256 = sha256.ok_or_else(|| bad(format!("the index lists no SHA-256 for `{file}`")))?;
        return Ok(Resolution { name, version, file, sha256, size: wheel.size, local: false });
    }
    let (python, machine) = (stack.python.to_string(), stack.machine.to_string());
    Err(PackagesError::NoWheel { package: name, version, python, machine })
}

fn file_of(wheel: &File) -> Option<String> {
    if let Some(name) = &wheel.name {
        return Some(name.clone());
    }
    let path = wheel.url.as_deref()?.split(['#', '?']).next()?;
    Some(decoded(path.rsplit('/').next()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::{Exit, Failure as _};
    use crate::model::lock::{LockedWheel, UserAdditions, sample};
    use crate::packages::output::{Answers, RECORDED_WHEELS};

    fn both(wheel: &str, allowed: &str) -> Result<(Vec<Resolution>, Vec<SourceDist>), PackagesError> {
        let text =
            format!("lock-version = \"1.0\"\n[[packages]]\nname = \"Foo.Bar\"\nversion = \"1\"\n{wheel}");
        let allowed = AllowedSource { name: allowed.to_owned(), build: Vec::new() };
        resolutions(&text, &sample::stack(), &[], &[allowed])
    }

    fn one(wheel: &str) -> Result<Vec<Resolution>, PackagesError> {
        both(wheel, "another").map(|(wheels, _)| wheels)
    }

    #[test]
    fn sdist_is_selected_only_if_allowed_and_without_wheel() {
        let hash = "a".repeat(64);
        let sdist = format!(
            "sdist = {{ url = \"http://i.test/f/Foo.Bar-1.tar.gz\", size = 9, hashes = {{ sha256 = \"{hash}\" }} }}"
        );
        let (wheels, sources) = both(&sdist, "foo-bar").expect("taken");
        assert_eq!((wheels.len(), sources.len()), (0, 1));
        let LockedSource { name, version, file, sha256, size, build, recipe } = sources[0].locked.clone();
        assert_eq!((name.as_str(), version.as_str(), file.as_str()), ("foo-bar", "1", "Foo.Bar-1.tar.gz"));
        assert_eq!((sha256, size, build.len(), recipe), (hash.clone(), Some(9), 0, None));
        assert_eq!(sources[0].address.origin(), "http://i.test");
        let wheel = format!(
            "wheels = [{{ name = \"foo_bar-1-py3-none-any.whl\", hashes = {{ sha256 = \"{hash}\" }} }}]\n{sdist}"
        );
        assert_eq!(both(&wheel, "foo-bar").expect("a wheel").1, []);
        assert!(matches!(both(&sdist, "another"), Err(PackagesError::NoWheel { .. })));
        let bare = "sdist = { url = \"http://i.test/f/Foo.Bar-1.tar.gz\", hashes = {} }";
        assert!(both(bare, "foo-bar").expect_err("no hash").to_string().contains("no SHA-256"));
    }

    #[test]
    fn recorded_resolution_has_one_wheel_per_package() {
        let sections = Answers::parse(RECORDED_WHEELS.as_bytes()).expect("parses");
        let found =
            resolutions(sections.named("all").expect("all"), &sample::stack(), &[], &[]).expect("wheels").0;
        assert!(found.len() > 100, "{}", found.len());
        let torch = found.iter().find(|wheel| wheel.name == "torch").expect("torch");
        assert_eq!(torch.version, "2.8.0");
        assert_eq!(torch.file, "torch-2.8.0-cp311-cp311-manylinux_2_28_x86_64.whl");
        assert!(found.iter().all(|wheel| !wheel.file.contains('/')));
        assert_eq!(names(sections.named("framework").expect("there")).expect("names").len(), 29);
    }

    #[test]
    fn local_version_is_parsed_from_encoded_address() {
        let hash = "a".repeat(64);
        let found = one(&format!(
            "wheels = [{{ url = \"http://i.test/foo_bar-1%2Bcu118-py3-none-any.whl#x\", size = 7, hashes = {{ sha256 = \"{hash}\" }} }}]"
        ))
        .expect("one wheel");
        assert_eq!(found[0].file, "foo_bar-1+cu118-py3-none-any.whl");
        assert_eq!((found[0].name.as_str(), found[0].size), ("foo-bar", Some(7)));
    }

    #[test]
    fn error_names_package_without_compatible_wheel() {
        for wheels in [
            "",
            "wheels = [{ name = \"foo_bar-1-cp312-cp312-manylinux_2_17_x86_64.whl\", hashes = {} }]",
            "wheels = [{ name = \"other-1-py3-none-any.whl\", hashes = {} }]",
        ] {
            let error = one(wheels).expect_err(wheels);
            assert_eq!(error.to_string(), "`foo-bar 1` has no wheel for Python 3.11 on x86_64");
            assert_eq!(error.exit(), Exit::No);
        }
    }

    #[test]
    fn rejects_wheel_without_sha256_and_invalid_file() {
        let error = one("wheels = [{ name = \"foo_bar-1-py3-none-any.whl\", hashes = { md5 = \"x\" } }]")
            .expect_err("no hash");
        assert!(error.to_string().contains("SHA-256"), "{error}");
        assert!(resolutions("= nonsense", &sample::stack(), &[], &[]).is_err());
    }

    #[test]
    fn preferences_list_every_wheel_of_the_old_lock() {
        let (lock, stack, added) = (sample::lock(), sample::stack(), UserAdditions::default());
        let request = PackageRequest::sample(&lock, &stack, &added);
        assert_eq!(preferences(&request), None);
        let request = PackageRequest { previous: Some(&lock), ..request };
        assert_eq!(names(&preferences(&request).expect("a lock")).expect("parses"), ["torch"]);
        let fresh = ["torch".to_owned()];
        let fresh = preferences(&PackageRequest { fresh: &fresh, ..request }).expect("a lock");
        assert_eq!(names(&fresh).expect("parses"), Vec::<String>::new());
    }

    #[test]
    fn preferences_of_another_tool_go_before_the_old_lock_but_not_before_the_stack() {
        let pins = [
            ("torch", "2.7.0"),
            ("torchvision", "0.22.0"),
            ("nvidia-cudnn-cu12", "9.5.0"),
            ("triton", "3.3.0"),
            ("einops", "0.8.0"),
            ("rich", "13.0"),
        ];
        let pins = pins.map(|(name, version)| (name.to_owned(), version.to_owned())).into();
        let (mut lock, stack, added) = (sample::lock(), sample::stack(), UserAdditions::default());
        let old =
            LockedWheel { name: "einops".to_owned(), version: "0.7.0".to_owned(), ..lock.wheels[0].clone() };
        lock.wheels.push(old);
        let fresh = ["rich".to_owned()];
        let request = PackageRequest {
            previous: Some(&lock),
            preferred: Some(&pins),
            fresh: &fresh,
            ..PackageRequest::sample(&lock, &stack, &added)
        };
        let text = preferences(&request).expect("preferences");
        assert_eq!(names(&text).expect("parses"), ["einops", "torch"]);
        assert!(text.contains("\"0.8.0\"") && text.contains("\"2.8.0\""), "{text}");
    }
}
