//! A prebuilt wheel that no index lists: read, compared with a stack, cached by its hash.

use std::io::{Cursor, Read, Seek, Write as _};
use std::str::FromStr as _;

use bytes::Bytes;
use camino::Utf8Path;
use pep440_rs::Version;

use super::error::PackagesError;
use super::limits::LARGEST_METADATA;
use super::wheel_name::{WheelName, normalised};
use crate::fetch::open_verified;
use crate::model::bounded::read_text_bounded;
use crate::model::compat::tables::Channel;
use crate::model::local_version::LocalVersion;
use crate::model::lock::LockedWheel;
use crate::model::sha256::Sha256Hex;
use crate::model::stack::Stack;
use crate::model::versions::{FrameworkVersion, GlibcVersion};
use crate::store::{Store, StoreError, open_regular};

const CHUNK: usize = 1 << 20;

/// A wheel of the cache that no index has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalWheel {
    /// Its package, normalized.
    pub name: String,
    /// Its version with the variant: `2.8.0+cu118`.
    pub version: String,
    /// Its file name.
    pub file: String,
    /// Its SHA-256, hex.
    pub sha256: String,
    /// Its size in bytes.
    pub size: u64,
    parts: WheelName,
    metadata: String,
}

/// Parses the name of a wheel's file.
pub(crate) fn wheel_name(path: &Utf8Path) -> Result<WheelName, PackagesError> {
    let file = path.file_name().unwrap_or_default();
    let detail = || "its name is not a wheel name".to_owned();
    file.parse().map_err(|()| PackagesError::NotAWheel { file: path.to_string(), detail: detail() })
}

impl LocalWheel {
    /// Rejects a file that is not a wheel for that stack, and caches nothing of it.
    pub fn validate(
        path: &Utf8Path,
        stack: &Stack,
        glibc: Option<&GlibcVersion>,
    ) -> Result<(), PackagesError> {
        Self::read(path, || Ok((String::new(), 0)))?.check(stack, glibc)
    }

    /// Reads a wheel and puts it into the cache.
    pub fn take(path: &Utf8Path, store: &Store) -> Result<Self, PackagesError> {
        Self::read(path, || copy_to_cache(path, store))
    }

    fn read(
        path: &Utf8Path,
        hashed: impl FnOnce() -> Result<(String, u64), PackagesError>,
    ) -> Result<Self, PackagesError> {
        let file = path.file_name().unwrap_or_default();
        let no_wheel = |detail: String| PackagesError::NotAWheel { file: path.to_string(), detail };
        let parts = wheel_name(path)?;
        let source = open_regular(path).map_err(|error| no_wheel(error.to_string()))?;
        let metadata = metadata(source).map_err(no_wheel)?;
        let (sha256, size) = hashed()?;
        Ok(Self {
            name: parts.package.clone(),
            version: spelled_version(&parts.version, &metadata),
            file: file.to_owned(),
            sha256,
            size,
            parts,
            metadata,
        })
    }

    /// Returns the wheel of a lock file; `None` if it is not in the cache, or damaged there.
    pub fn locked(wheel: &LockedWheel, store: &Store) -> Result<Option<Self>, PackagesError> {
        let no_wheel = |detail: String| PackagesError::NotAWheel { file: wheel.file.clone(), detail };
        let Some(source) = open_verified(store, &wheel.sha256)? else { return Ok(None) };
        let parts = wheel.file.parse().map_err(|()| no_wheel("its name is not a wheel name".to_owned()))?;
        let size = source.metadata().map_err(|error| no_wheel(error.to_string()))?.len();
        Ok(Some(Self {
            name: wheel.name.clone(),
            version: wheel.version.clone(),
            file: wheel.file.clone(),
            sha256: wheel.sha256.clone(),
            size,
            parts,
            metadata: metadata(source).map_err(no_wheel)?,
        }))
    }

    /// Rejects a wheel that is not compatible with a stack on a base of that C library, and lists every difference. `None`: the C library
    /// is not known, and nothing is refused for it.
    pub fn check(&self, stack: &Stack, glibc: Option<&GlibcVersion>) -> Result<(), PackagesError> {
        let misfits = self.misfits(stack, glibc);
        if misfits.is_empty() {
            return Ok(());
        }
        Err(PackagesError::WheelMisfit { file: self.file.clone(), stack: stack.name.clone(), misfits })
    }

    /// Rejects a wheel of another package or version, or for another stack or C library, and lists every difference.
    pub fn check_package(
        &self,
        name: &str,
        version: &str,
        stack: &Stack,
        glibc: Option<&GlibcVersion>,
    ) -> Result<(), PackagesError> {
        let mut misfits = Vec::new();
        let same = Version::from_str(&self.version).ok() == Version::from_str(version).ok();
        if self.name != name || !same {
            misfits.push(format!("it is `{} {}`; expected `{name} {version}`", self.name, self.version));
        }
        misfits.extend(self.misfits_of_any(stack, glibc));
        if misfits.is_empty() {
            return Ok(());
        }
        Err(PackagesError::WheelMisfit { file: self.file.clone(), stack: stack.name.clone(), misfits })
    }

    fn misfits(&self, stack: &Stack, glibc: Option<&GlibcVersion>) -> Vec<String> {
        let mut all = Vec::new();
        let wanted = if self.name == stack.package {
            Some(stack.version.to_string())
        } else {
            stack.companions.get(&self.name).cloned()
        };
        if let Some(wanted) = &wanted {
            all.extend(self.version_misfits(wanted, &stack.cuda.to_string()));
        } else if stack.channel == Channel::Source {
            let names: Vec<_> =
                std::iter::once(&stack.package).chain(stack.companions.keys()).cloned().collect();
            all.push(format!("it is a wheel of `{}`; the stack accepts {}", self.name, names.join(", ")));
        } else {
            all.extend(self.mismatch_of_build(stack));
        }
        all.extend(self.misfits_of_any(stack, glibc));
        all
    }

    /// Returns the differences no wheel may have: from its own METADATA, and from the stack's Python, processor and C library.
    fn misfits_of_any(&self, stack: &Stack, glibc: Option<&GlibcVersion>) -> Vec<String> {
        let mut all = Vec::new();
        for (field, named) in [("Name", &self.name), ("Version", &self.version)] {
            let said = header(&self.metadata, field).unwrap_or_default();
            let equal = match field {
                "Name" => normalised(said) == *named,
                _ => Version::from_str(said).ok() == Version::from_str(named).ok(),
            };
            if !equal {
                all.push(format!("its name has {named}, its METADATA has {said}"));
            }
        }
        all.extend(self.parts.misfits(stack, glibc));
        all
    }

    /// The version and, after a `+`, the CUDA.
    fn version_misfits(&self, wanted: &str, cuda: &str) -> Vec<String> {
        let Ok(found) = Version::from_str(&self.version) else {
            return vec![format!("`{}` is not a version", self.version)];
        };
        let mut all = Vec::new();
        let public = found.clone().without_local();
        if Version::from_str(wanted).ok() != Some(public.clone()) {
            all.push(format!("its version is {public}; the stack has {wanted}"));
        }
        let local = self.version.split_once('+').map(|(_, local)| local);
        all.extend(match local {
            Some(local) if local == cuda => None,
            Some(local) => Some(format!("it is for `{local}`; the stack is for `{cuda}`")),
            None => Some(format!("its version has no CUDA variant (expected `{wanted}+{cuda}`)")),
        });
        all
    }

    /// Why the local part of its version names another stack: `cu12torch2.8cxx11abiTRUE`.
    fn mismatch_of_build(&self, stack: &Stack) -> Option<String> {
        let (_, local) = self.version.split_once('+')?;
        let own = (stack.package == "torch").then(|| stack.version.clone());
        let torch: Option<FrameworkVersion> = own.or_else(|| stack.companions.get("torch")?.parse().ok());
        let torch = torch.map(|torch| (torch.major(), torch.minor()));
        LocalVersion::read(local).mismatch(stack.cuda, torch)
    }

    /// Returns a wheel of that name with METADATA only: sufficient for a resolver.
    pub(super) fn without_content(&self) -> Bytes {
        let stem = self.file.split('-').next().unwrap_or_default();
        let folder = format!("{stem}-{}.dist-info", self.version);
        let tags = format!("{}-{}", self.parts.python_tag(), self.parts.platform_tag());
        let wheel = format!("Wheel-Version: 1.0\nGenerator: envforge\nRoot-Is-Purelib: false\nTag: {tags}\n");
        let record = format!("{folder}/METADATA,,\n{folder}/WHEEL,,\n{folder}/RECORD,,\n");
        let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
        let options = zip::write::SimpleFileOptions::default()
            .last_modified_time(zip::DateTime::default())
            .compression_method(zip::CompressionMethod::Stored);
        for (name, text) in [("METADATA", &self.metadata), ("WHEEL", &wheel), ("RECORD", &record)] {
            archive.start_file(format!("{folder}/{name}"), options).expect("a new name in a new archive");
            archive.write_all(text.as_bytes()).expect("memory takes it");
        }
        archive.finish().expect("memory takes it").into_inner().into()
    }
}

/// The METADATA of a wheel.
pub(super) fn metadata(wheel: impl Read + Seek) -> Result<String, String> {
    let mut archive = zip::ZipArchive::new(wheel).map_err(|error| error.to_string())?;
    let is_metadata = |name: &&str| name.matches('/').count() == 1 && name.ends_with(".dist-info/METADATA");
    let name = archive.file_names().find(is_metadata).map(str::to_owned);
    let name = name.ok_or("it has no METADATA")?;
    let entry = archive.by_name(&name).map_err(|error| error.to_string())?;
    read_text_bounded(entry, LARGEST_METADATA)
        .map_err(|error| format!("its METADATA cannot be read: {error}"))
}

/// The version as METADATA spells it, which is that of the installed package: a file name may have `abiTRUE` for `abitrue`.
fn spelled_version(named: &str, metadata: &str) -> String {
    let spelled = header(metadata, "Version").filter(|said| said.eq_ignore_ascii_case(named));
    spelled.unwrap_or(named).to_owned()
}

/// A field of METADATA's head.
fn header<'a>(metadata: &'a str, field: &str) -> Option<&'a str> {
    let head = metadata.lines().take_while(|line| !line.is_empty());
    head.filter_map(|line| line.split_once(':'))
        .find(|(name, _)| *name == field)
        .map(|(_, value)| value.trim())
}

/// Copies a file of any size to the cache and returns its hash and size.
fn copy_to_cache(path: &Utf8Path, store: &Store) -> Result<(String, u64), PackagesError> {
    let unreadable = |cause| {
        PackagesError::from(StoreError::File { purpose: "cannot copy the wheel to the cache", cause })
    };
    let mut source = open_regular(path).map_err(unreadable)?;
    let mut target = store.temp_file()?;
    let (mut hash, mut size, mut chunk) = (Sha256Hex::default(), 0, vec![0; CHUNK]);
    loop {
        let count = source.read(&mut chunk).map_err(unreadable)?;
        if count == 0 {
            break;
        }
        hash.update(&chunk[..count]);
        target.write_all(&chunk[..count]).map_err(unreadable)?;
        size += count as u64;
    }
    let sha256 = hash.finish();
    // What the cache has under that hash may be damaged.
    store.adopt(Utf8Path::from_path(target.path()).expect("the cache's path is UTF-8"), &sha256)?;
    Ok((sha256, size))
}

#[cfg(test)]
pub(super) mod tests {
    #![expect(clippy::disallowed_methods, reason = "tests write files")]

    use crate::failure::{Exit, Failure as _};
    use camino::Utf8PathBuf;

    use super::*;
    use crate::model::lock::sample;

    /// A wheel of the sample's Python in a cache below that directory.
    pub(crate) fn wheel(root: &Utf8Path, name: &str, version: &str) -> LocalWheel {
        let store = Store::open(&root.join("cache"), &root.join("state")).expect("store");
        let file = format!("{name}-{version}-cp311-cp311-linux_x86_64.whl");
        written(root, &file, name, version);
        LocalWheel::take(&root.join(file), &store).expect("a wheel")
    }

    #[test]
    fn wheel_of_sdist_matches_package_version_and_python() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let root = Utf8PathBuf::from_path_buf(folder.path().to_owned()).expect("UTF-8");
        let store = Store::open(&root.join("cache"), &root.join("state")).expect("store");
        let taken = |file: &str| {
            written(&root, file, "docopt", "0.6.2");
            LocalWheel::take(&root.join(file), &store).expect("a wheel")
        };
        let stack = sample::stack();
        let pure = taken("docopt-0.6.2-py2.py3-none-any.whl");
        pure.check_package("docopt", "0.6.2.0", &stack, None).expect("compatible");
        let said = |wheel: &LocalWheel, name: &str, version: &str| {
            wheel.check_package(name, version, &stack, None).expect_err("refused").to_string()
        };
        assert!(said(&pure, "other", "0.6.2").contains("expected `other 0.6.2`"));
        assert!(said(&pure, "docopt", "0.7").contains("expected `docopt 0.7`"));
        let other = taken("docopt-0.6.2-cp36-cp36m-linux_x86_64.whl");
        assert!(said(&other, "docopt", "0.6.2").contains("it is for Python"));
    }

    fn written(root: &Utf8Path, file: &str, name: &str, version: &str) {
        let wheel = LocalWheel {
            name: name.into(),
            version: version.into(),
            file: file.into(),
            sha256: String::new(),
            size: 0,
            parts: "torch-1-py3-none-any.whl".parse().unwrap(),
            metadata: format!("Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n\nVersion: text\n"),
        };
        fs_err::write(root.join(file), wheel.without_content()).expect("written");
    }

    fn stack() -> Stack {
        Stack { channel: Channel::Source, cuda: "cu118".parse().unwrap(), ..sample::stack() }
    }

    /// Writes a wheel of that file name, with that name and version in its METADATA.
    fn taken(
        file: &str,
        name: &str,
        version: &str,
    ) -> (Result<LocalWheel, PackagesError>, tempfile::TempDir) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let root = Utf8PathBuf::from_path_buf(folder.path().to_owned()).expect("UTF-8");
        let store = Store::open(&root.join("cache"), &root.join("state")).expect("store");
        written(&root, file, name, version);
        let taken = LocalWheel::take(&root.join(file), &store);
        if let Ok(wheel) = &taken {
            assert!(store.find(&wheel.sha256).expect("find").is_some());
        }
        (taken, folder)
    }

    fn misfits(file: &str, name: &str, version: &str) -> Vec<String> {
        taken(file, name, version)
            .0
            .expect("a wheel")
            .misfits(&stack(), Some(&"2.36".parse().expect("a version")))
    }

    #[test]
    fn wheel_of_the_cache_is_believed_only_with_its_hash() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let root = Utf8PathBuf::from_path_buf(folder.path().to_owned()).expect("UTF-8");
        let (one, other) = (wheel(&root, "torch", "2.8.0"), wheel(&root, "torch", "2.7.0"));
        let store = Store::open(&root.join("cache"), &root.join("state")).expect("store");
        let path = |wheel: &LocalWheel| store.blob_path(&wheel.sha256).expect("a path");
        let locked = LockedWheel { sha256: one.sha256.clone(), ..sample::lock().wheels[0].clone() };
        fs_err::copy(path(&other), path(&one)).expect("ours");
        assert_eq!(LocalWheel::locked(&locked, &store).expect("reads"), None);
        fs_err::copy(path(&other), path(&one)).expect("ours");
        let taken = LocalWheel::take(&root.join(&one.file), &store).expect("a wheel");
        assert_eq!(taken, one);
        assert!(open_verified(&store, &one.sha256).expect("reads").is_some(), "the copy replaced it");
    }

    #[test]
    fn wheel_for_the_stack_is_cached() {
        let file = "torch-2.8.0+cu118-cp311-cp311-linux_x86_64.whl";
        let wheel = taken(file, "torch", "2.8.0+cu118").0.expect("a wheel");
        assert_eq!((wheel.name.as_str(), wheel.version.as_str()), ("torch", "2.8.0+cu118"));
        wheel.check(&stack(), None).expect("compatible");
        let companion = "torchvision-0.23.0+cu118-cp311-cp311-linux_x86_64.whl";
        assert_eq!(misfits(companion, "torchvision", "0.23.0+cu118"), Vec::<String>::new());
    }

    #[test]
    fn error_lists_every_mismatch() {
        let file = "torch-2.7.1+cu126-cp312-cp312-win_amd64.whl";
        let wheel = taken(file, "torch", "2.7.0").0.expect("a wheel");
        let error = wheel.check(&stack(), None).expect_err("refused");
        assert_eq!(error.exit(), Exit::No);
        insta::assert_snapshot!(error, @r"
        `torch-2.7.1+cu126-cp312-cp312-win_amd64.whl` is not compatible with `pytorch-cuda:2.8.0-cu128-py3.11`:
          - its version is 2.7.1; the stack has 2.8.0
          - it is for `cu126`; the stack is for `cu118`
          - its name has 2.7.1+cu126, its METADATA has 2.7.0
          - it is for Python cp312-cp312; the stack has 3.11
          - it is for win_amd64; the stack is for Linux on x86_64
        ");
        let newer = "torch-2.8.0+cu118-cp311-cp311-manylinux_2_99_x86_64.whl";
        assert_eq!(misfits(newer, "torch", "2.8.0+cu118"), ["it needs glibc 2.99; debian:12 has 2.36"]);
        let without = misfits("torch-2.8.0-cp311-cp311-linux_x86_64.whl", "torch", "2.8.0");
        assert_eq!(without, ["its version has no CUDA variant (expected `2.8.0+cu118`)"]);
        let other = misfits("jax-1-py3-none-any.whl", "jax", "1");
        assert_eq!(other, ["it is a wheel of `jax`; the stack accepts torch, torchaudio, torchvision"]);
    }

    #[test]
    fn wheel_of_a_package_is_compared_with_a_published_stack_by_its_local_version() {
        let file = "flash_attn-2.8.3+cu12torch2.8cxx11abiTRUE-cp311-cp311-linux_x86_64.whl";
        let wheel = taken(file, "flash-attn", "2.8.3+cu12torch2.8cxx11abitrue").0.expect("a wheel");
        assert_eq!(wheel.version, "2.8.3+cu12torch2.8cxx11abitrue", "as it is installed");
        let published = sample::stack();
        wheel.check(&published, None).expect("compatible");
        let older = Stack { version: "2.7.1".parse().unwrap(), ..sample::stack() };
        assert_eq!(wheel.misfits(&older, None), ["it is the build for torch 2.8, the stack has 2.7"]);
        let other = Stack { cuda: "cu130".parse().unwrap(), ..sample::stack() };
        assert_eq!(wheel.misfits(&other, None), ["it is the build for cu12, the stack has cu130"]);
        assert!(wheel.check(&stack(), None).is_err(), "an unpublished variant takes its own wheels alone");
    }

    #[test]
    fn wheel_needs_the_glibc_of_a_base_that_the_matrix_does_not_know() {
        let stack = Stack { base: "mine:1".to_owned(), ..stack() };
        let file = "torch-2.8.0+cu118-cp311-cp311-manylinux_2_39_x86_64.whl";
        let wheel = taken(file, "torch", "2.8.0+cu118").0.expect("a wheel");
        let with = |glibc: &str| wheel.misfits(&stack, Some(&glibc.parse().expect("a version")));
        assert_eq!(with("2.36"), ["it needs glibc 2.39; mine:1 has 2.36"]);
        assert_eq!(with("2.39"), Vec::<String>::new());
        assert_eq!(wheel.misfits(&stack, None), Vec::<String>::new(), "not known");
    }

    #[test]
    fn invalid_wheel_is_reported() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let root = Utf8PathBuf::from_path_buf(folder.path().to_owned()).expect("UTF-8");
        let store = Store::open(&root.join("cache"), &root.join("state")).expect("store");
        let file = root.join("torch-2.8.0+cu118-cp311-cp311-linux_x86_64.whl");
        let refused = |path: &Utf8Path| {
            let error = LocalWheel::take(path, &store).expect_err("refused");
            assert_eq!(error.exit(), Exit::Usage);
            assert!(error.hints()[0].contains("PEP 427"));
            error.to_string()
        };
        assert!(refused(&file).contains("o such file"));
        fs_err::write(&file, b"text").expect("written");
        assert!(refused(&file).contains("is not a wheel"));
        assert!(refused(&root.join("torch.tar.gz")).contains("its name is not a wheel name"));
    }

    #[test]
    fn resolver_reads_requirements_of_local_wheel() {
        let file = "torch-2.8.0+cu118-cp311-cp311-linux_x86_64.whl";
        let wheel = taken(file, "torch", "2.8.0+cu118").0.expect("a wheel");
        let seen = metadata(Cursor::new(wheel.without_content())).expect("a wheel");
        assert_eq!(seen, wheel.metadata);
        assert_eq!(header(&seen, "Version"), Some("2.8.0+cu118"));
    }
}
