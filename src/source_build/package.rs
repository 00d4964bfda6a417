//! The wheel of a source distribution that the user allows: built in an image of the layers below the user's own packages, with
//! its Python and compilers. Pure.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{Cursor, Read};

use serde::Deserialize;
use serde_json::json;

use super::error::SourceError;
use crate::model::bounded::{Bounded, read_text_bounded};
use crate::model::bounded_tar::BoundedTar;
use crate::model::compat::coupled::SourceRecipe;
use crate::model::image::plan::CachedFile;
use crate::model::image::render::shell_word;
use crate::model::image::variables::environment;
use crate::model::lock::{Lock, LockedSource, LockedTool, LockedWheel, WheelLayer};
use crate::model::resolve::BuildMachine;
use crate::model::sha256::sha256_hex;
use crate::model::versions::ComputeCapability;
use crate::model::whiteout::{DELETES, deletes};
use crate::packages::catalogue;
use crate::source_build::build::{Compilation, JOBS, STEP};
use crate::source_build::patches::patch_text;

/// More than any `pyproject.toml`.
const LARGEST_PYPROJECT: u64 = 4 << 20;
/// The most of a source archive that is unpacked to find it, bytes.
const LARGEST_ARCHIVE: u64 = 8 << 30;
/// Times in the wheel: the earliest of a zip archive.
const EPOCH: &str = "315532800";
/// Stands for the first member of each target's generation in [`SourceRecipe::environment`].
const FAMILIES: &str = "{families}";

/// A wheel to build of a source distribution.
#[derive(Debug, Clone, Copy)]
pub struct PackageBuild<'a> {
    /// The image it is built in, without the build requirements: [`Lock::without_user_layers`].
    pub below: &'a Lock,
    /// The source distribution, with its build requirements.
    pub source: &'a LockedSource,
    /// How this archive is built, if its set-up script was read.
    pub recipe: Option<&'a SourceRecipe>,
    /// The targets of the image's nvcc; empty: unknown.
    pub nvcc_targets: &'a [ComputeCapability],
}

/// Why a source distribution cannot be built in an image, by what helps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Obstacle {
    /// Another flavour helps.
    NoNvcc(String),
    /// Other GPUs help.
    Gpu(String),
}

impl Obstacle {
    /// The reason.
    pub fn text(&self) -> &str {
        let (Self::NoNvcc(text) | Self::Gpu(text)) = self;
        text
    }
}

impl<'a> PackageBuild<'a> {
    /// Returns why it cannot be built in this image: no nvcc, or GPUs that it or nvcc has no code for.
    pub fn obstacles(&self) -> Vec<Obstacle> {
        let (Some(recipe), stack) = (self.recipe, &self.below.stack) else { return Vec::new() };
        let LockedSource { name, version, .. } = self.source;
        let mut all = Vec::new();
        if stack.nvcc.is_none() {
            let text = format!("{name} {version} compiles CUDA code: flavour `{}` lacks nvcc", stack.flavour);
            all.push(Obstacle::NoNvcc(text));
        }
        let gpus = self.gpus();
        if gpus.is_empty() {
            let text = format!("{name} {version} compiles CUDA code: no GPU is known for this image");
            all.push(Obstacle::Gpu(text));
        }
        for gpu in gpus {
            let dotted = gpu.dotted();
            if let Some(oldest) = recipe.oldest_gpu.filter(|oldest| gpu < *oldest) {
                let oldest = oldest.dotted();
                all.push(Obstacle::Gpu(format!(
                    "{name} {version} supports compute capability {oldest} and newer, not {dotted}"
                )));
            } else if self.target_for(gpu).is_none() {
                let nvcc = stack.toolkit_minor();
                all.push(Obstacle::Gpu(format!(
                    "{name} {version} cannot be compiled for {dotted}: nvcc {nvcc} lacks that target"
                )));
            }
        }
        all
    }

    /// The GPUs that the image is for: those of the target, else all that the framework has code for.
    fn gpus(&self) -> Vec<ComputeCapability> {
        let stack = &self.below.stack;
        let named = stack.target.capabilities();
        if named.is_empty() { stack.requires.gpu.clone() } else { named }
    }

    /// The newest target of nvcc whose code runs on a GPU.
    fn target_for(&self, gpu: ComputeCapability) -> Option<ComputeCapability> {
        if self.nvcc_targets.is_empty() {
            return Some(gpu);
        }
        self.nvcc_targets.iter().filter(|target| target.cubin_runs_on(gpu)).max().copied()
    }

    /// Returns the number of parallel compilers: one for each processor, limited by memory.
    pub fn jobs(&self, machine: BuildMachine) -> u64 {
        let each = self.recipe.and_then(|recipe| recipe.job_memory_gb);
        machine.jobs(each).or(machine.cores).unwrap_or(1)
    }

    /// SHA-256 over everything that decides the wheel, except the number of parallel compilers.
    pub fn key(&self) -> String {
        let Self { below, source, .. } = self;
        let debs = below.base.packages.iter().chain(below.debs()).map(|deb| &deb.sha256);
        let wheels = below.wheels.iter().map(|wheel| &wheel.sha256);
        let mut what = json!({
            "archive": source.sha256,
            "build": source.build,
            "stack": &below.stack.name,
            "machine": below.stack.machine,
            "base": [&below.base.name, below.base.digest.as_deref().unwrap_or_default()],
            "below": debs.chain(wheels).collect::<Vec<_>>(),
            "environment": self.environment("0"),
            "step": STEP,
        });
        // uv builds the wheel: one that is not of this release may be anybody's.
        let own = catalogue().uv(below.stack.machine);
        if below.tools.iter().any(|tool| Some(tool) != own.as_ref()) {
            what["tools"] = below.tools.iter().map(|tool| tool.sha256.as_str()).collect();
        }
        if !self.patches().is_empty() {
            what["patches"] = texts(self.patches()).into();
        }
        sha256_hex(what.to_string().as_bytes())
    }

    /// The image it is built in, as a lock: build requirements take the place of packages of their names.
    pub fn builder_lock(&self) -> Lock {
        let Self { below, source, .. } = self;
        let mut lock = (*below).clone();
        // Variables of a project would decide what is compiled for others, too.
        lock.environment = environment(&lock.stack);
        lock.wheels.retain(|wheel| source.build.iter().all(|tool| tool.name != wheel.name));
        let tools = source.build.iter().map(LockedTool::as_wheel);
        lock.wheels.extend(tools.map(|wheel| LockedWheel { layer: WheelLayer::User, ..wheel }));
        lock
    }

    /// What is compiled.
    pub fn compilation(&self, archive: CachedFile, uv: CachedFile) -> Compilation<'a> {
        let LockedSource { name, version, file, .. } = self.source;
        Compilation {
            title: format!("{name} {version}"),
            why: "it has no compatible wheel and its source build is allowed",
            file,
            archive,
            uv,
            patches: self.patches(),
            environment: self.environment(JOBS),
        }
    }

    fn patches(&self) -> &'a [String] {
        self.recipe.map_or(&[], |recipe| &recipe.patches)
    }

    /// Returns the build's environment as shell lines: the variables read by builds of CUDA extensions.
    fn environment(&self, jobs: &str) -> String {
        let mut targets: Vec<_> = self.gpus().into_iter().filter_map(|gpu| self.target_for(gpu)).collect();
        targets.sort_unstable();
        targets.dedup();
        let mut families: Vec<_> = targets.iter().map(|code| format!("{}0", code.major)).collect();
        families.dedup();
        let dotted: Vec<_> = targets.iter().map(|code| code.dotted()).collect();
        let mut all = vec![
            ("SOURCE_DATE_EPOCH", EPOCH.to_owned()),
            ("PYTHONHASHSEED", "0".to_owned()),
            ("MAX_JOBS", jobs.to_owned()),
            ("TORCH_CUDA_ARCH_LIST", dotted.join(";")),
        ];
        let own = self.recipe.into_iter().flat_map(|recipe| &recipe.environment);
        all.extend(own.map(|(name, value)| (name.as_str(), value.replace(FAMILIES, &families.join(";")))));
        all.iter().fold(String::new(), |mut text, (name, value)| {
            let _ = writeln!(text, "export {name}={}", shell_word(value));
            text
        })
    }
}

/// SHA-256 over what a recipe does to a build, hex.
pub fn recipe_sha256(recipe: &SourceRecipe) -> String {
    let what = json!({ "environment": recipe.environment, "patches": texts(&recipe.patches) });
    sha256_hex(what.to_string().as_bytes())
}

fn texts(patches: &[String]) -> Vec<Option<&'static str>> {
    patches.iter().map(|name| patch_text(name)).collect()
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
struct Pyproject {
    build_system: Option<BuildSystem>,
}

#[derive(Deserialize)]
struct BuildSystem {
    #[serde(default)]
    requires: Vec<String>,
}

/// Returns the build requirements of a source distribution's `pyproject.toml`; without one, setuptools.
pub fn build_requires(archive: &[u8], file: &str) -> Result<Vec<String>, SourceError> {
    let unusable = |detail: String| SourceError::Distribution { archive: file.to_owned(), detail };
    let text = match file.rsplit('.').next() {
        Some("zip") => of_zip(archive),
        Some("gz" | "tgz") => of_tar(archive),
        _ => return Err(unusable("expected a .tar.gz or .zip".to_owned())),
    };
    match text.map_err(|error| unusable(error.to_string()))? {
        Some(text) => pyproject_requires(&text, file),
        None => Ok(by_default()),
    }
}

/// Returns the build requirements that the text of a `pyproject.toml` names; `file` is what it belongs to.
pub fn pyproject_requires(text: &str, file: &str) -> Result<Vec<String>, SourceError> {
    let project: Pyproject = toml::from_str(text).map_err(|error| SourceError::Distribution {
        archive: file.to_owned(),
        detail: format!("cannot read its pyproject.toml: {}", error.message()),
    })?;
    Ok(project.build_system.map_or_else(by_default, |system| system.requires))
}

/// The defaults of the standard; setuptools before 70 also needs wheel.
fn by_default() -> Vec<String> {
    vec!["setuptools".to_owned(), "wheel".to_owned()]
}

/// Whether a path is the `pyproject.toml` of the project itself, in its top directory.
fn is_pyproject(path: &str) -> bool {
    let path = path.trim_start_matches("./");
    path.split_once('/').is_some_and(|(_, rest)| rest == "pyproject.toml")
}

fn of_tar(archive: &[u8]) -> std::io::Result<Option<String>> {
    let unpacked = flate2::read::MultiGzDecoder::new(archive);
    let mut tar = BoundedTar::new(Bounded::new(unpacked, LARGEST_ARCHIVE));
    let mut found = None;
    for entry in tar.entries()? {
        let entry = entry?;
        let path = entry.path_bytes().into_owned();
        if deletes(&path) {
            return Err(deletion(&path));
        }
        if found.is_none() && is_pyproject(&String::from_utf8_lossy(&path)) {
            found = Some(text_of(entry)?);
        }
    }
    Ok(found)
}

fn of_zip(archive: &[u8]) -> std::io::Result<Option<String>> {
    let mut zip = zip::ZipArchive::new(Cursor::new(archive))?;
    if let Some(name) = zip.file_names().find(|name| deletes(name.as_bytes())) {
        return Err(deletion(name.as_bytes()));
    }
    let Some(name) = zip.file_names().find(|name| is_pyproject(name)).map(str::to_owned) else {
        return Ok(None);
    };
    text_of(zip.by_name(&name)?).map(Some)
}

fn deletion(path: &[u8]) -> std::io::Error {
    std::io::Error::other(format!("`{}`: {DELETES}", String::from_utf8_lossy(path).escape_debug()))
}

fn text_of(file: impl Read) -> std::io::Result<String> {
    read_text_bounded(file, LARGEST_PYPROJECT)
}

/// Returns the build requirements that the image below lacks in that version, as lock entries, sorted by name.
pub fn extra_requirements(below: &Lock, resolved: &[LockedWheel]) -> Vec<LockedTool> {
    let has = |sha256: &str| below.wheels.iter().any(|wheel| wheel.sha256 == sha256);
    let all: BTreeMap<_, _> =
        resolved.iter().filter(|wheel| !has(&wheel.sha256)).map(|wheel| (&wheel.name, wheel)).collect();
    let tool = |wheel: &LockedWheel| LockedTool {
        name: wheel.name.clone(),
        version: wheel.version.clone(),
        file: wheel.file.clone(),
        sha256: wheel.sha256.clone(),
    };
    all.into_values().map(tool).collect()
}

#[cfg(test)]
mod tests {
    use crate::failure::{Exit, Failure as _};
    use std::io::Write as _;

    use super::*;
    use crate::model::compat;
    use crate::model::lock::{IndexKind, sample};
    use crate::model::resolve::{ResolveOptions, resolve};
    use crate::model::stack::Nvcc;
    use crate::model::target::{Target, TargetGpu};
    use crate::model::versions::Machine;
    use crate::source_build::build::tests::{cached, text_of};

    fn tar_of(files: &[(&str, &str)]) -> Vec<u8> {
        let mut tar =
            tar::Builder::new(flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast()));
        for (name, text) in files {
            let mut header = tar::Header::new_gnu();
            header.set_size(text.len() as u64);
            header.set_mode(0o644);
            header.set_cksum();
            tar.append_data(&mut header, name, text.as_bytes()).expect("memory takes it");
        }
        tar.into_inner().expect("memory takes it").finish().expect("memory takes it")
    }

    #[test]
    fn build_requirements_are_read_from_pyproject() {
        let project = "[build-system]\nrequires = [\"flit_core >=3\"]\nbuild-backend = \"x\"\n";
        let files = [
            ("a-1/vendored/pyproject.toml", "[build-system]\nrequires = [\"wrong\"]"),
            ("a-1/pyproject.toml", project),
        ];
        assert_eq!(build_requires(&tar_of(&files), "a-1.tar.gz").expect("read"), ["flit_core >=3"]);
        for none in ["", "[tool.black]\nline-length = 1\n"] {
            let archive = tar_of(&[("a-1/setup.py", "x"), ("a-1/pyproject.toml", none)]);
            assert_eq!(build_requires(&archive, "a-1.tar.gz").expect("read"), ["setuptools", "wheel"]);
        }
        let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
        zip.start_file("a-1/pyproject.toml", zip::write::SimpleFileOptions::default()).expect("entry");
        zip.write_all(project.as_bytes()).expect("written");
        let zip = zip.finish().expect("zip").into_inner();
        assert_eq!(build_requires(&zip, "a-1.zip").expect("read"), ["flit_core >=3"]);
    }

    #[test]
    fn error_names_invalid_archive() {
        let broken = tar_of(&[("a-1/pyproject.toml", "[build-system")]);
        let deleting = tar_of(&[("a-1/pyproject.toml", ""), ("a-1/b/.wh.c", "")]);
        let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
        zip.start_file("a-1/.wh.c", zip::write::SimpleFileOptions::default()).expect("entry");
        let zipped = zip.finish().expect("zip").into_inner();
        for (archive, file, says) in [
            (broken.as_slice(), "a-1.tar.gz", "cannot read its pyproject.toml"),
            (b"no archive".as_slice(), "a-1.tar.gz", "`a-1.tar.gz`"),
            (b"no archive".as_slice(), "a-1.zip", "`a-1.zip`"),
            (b"BZh9".as_slice(), "a-1.tar.bz2", "expected a .tar.gz or .zip"),
            (deleting.as_slice(), "a-1.tar.gz", "`a-1/b/.wh.c`: a name that starts with `.wh.`"),
            (zipped.as_slice(), "a-1.zip", "`a-1/.wh.c`: a name that starts with `.wh.`"),
        ] {
            let error = build_requires(archive, file).expect_err(file);
            assert!(error.to_string().contains(says), "{error}");
            assert_eq!(error.exit(), Exit::No);
        }
    }

    fn wheel(name: &str, sha256: char) -> LockedWheel {
        LockedWheel {
            name: name.to_owned(),
            version: "1".to_owned(),
            file: format!("{name}-1-py3-none-any.whl"),
            sha256: sha256.to_string().repeat(64),
            size: None,
            index: IndexKind::Default,
            index_name: None,
            layer: WheelLayer::User,
        }
    }

    #[test]
    fn only_missing_build_requirements_are_installed() {
        let below = sample::lock().without_user_layers();
        let mut same = wheel("torch", '3');
        same.layer = WheelLayer::Framework;
        let found = extra_requirements(&below, &[wheel("zeta", 'a'), same, wheel("alpha", 'b')]);
        assert_eq!(found.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["alpha", "zeta"]);
    }

    fn source() -> LockedSource {
        let lacks = extra_requirements(&sample::lock().without_user_layers(), &[wheel("setuptools", 'b')]);
        LockedSource {
            name: "docopt".to_owned(),
            version: "0.6.2".to_owned(),
            file: "docopt-0.6.2.tar.gz".to_owned(),
            sha256: "d".repeat(64),
            size: Some(25_901),
            build: lacks,
            recipe: None,
        }
    }

    fn with(check: impl FnOnce(PackageBuild<'_>)) {
        let lock = sample::lock().without_user_layers();
        let source = source();
        check(PackageBuild { below: &lock, source: &source, recipe: None, nvcc_targets: &[] });
    }

    #[test]
    fn builder_is_the_image_below_with_build_requirements() {
        with(|build| {
            let mut below = build.below.clone();
            let mut other = wheel("setuptools", 'c');
            other.layer = WheelLayer::Stack;
            below.wheels.push(other);
            let builder = PackageBuild { below: &below, ..build }.builder_lock();
            let of =
                |name: &str| builder.wheels.iter().filter(|wheel| wheel.name == name).collect::<Vec<_>>();
            let setuptools = of("setuptools");
            assert_eq!(setuptools.len(), 1, "the build requirement takes the other's place: {setuptools:?}");
            assert_eq!(
                (setuptools[0].sha256.clone(), setuptools[0].layer),
                ("b".repeat(64), WheelLayer::User)
            );
            assert_eq!(of("torch").len(), 1);
            let what = build.compilation(cached("d"), cached("2"));
            assert_eq!((what.title.as_str(), what.file), ("docopt 0.6.2", "docopt-0.6.2.tar.gz"));
            assert!(text_of(&what, "source/environment").contains("export MAX_JOBS='2'\n"));
        });
    }

    fn recipe() -> SourceRecipe {
        let mut rows = compat::embedded().source_recipes.iter();
        let recipe = rows.find(|row| row.package == "flash-attn").expect("a row");
        SourceRecipe { patches: vec!["extension-gpu-targets.py".to_owned()], ..recipe.clone() }
    }

    /// The image below, for GPUs of these capabilities.
    fn below(gpus: &[&str]) -> Lock {
        let mut below = sample::lock().without_user_layers();
        let gpu = |code: &&str| TargetGpu { name: None, compute_capability: code.parse().expect("a code") };
        below.stack.target.gpus = gpus.iter().map(gpu).collect();
        below.stack.requires.gpu = codes(&["7.0", "8.0", "9.0"]);
        below
    }

    fn codes(codes: &[&str]) -> Vec<ComputeCapability> {
        codes.iter().map(|code| code.parse().expect("a code")).collect()
    }

    #[test]
    fn every_recipe_has_its_patches() {
        for name in compat::embedded().source_recipes.iter().flat_map(|recipe| &recipe.patches) {
            assert!(patch_text(name).is_some_and(|text| !text.is_empty()), "{name}");
        }
    }

    #[test]
    fn recipe_forces_the_compilation_for_targets_that_nvcc_has() {
        let (recipe, source) = (recipe(), source());
        let environment = |gpus: &[&str], nvcc: &[&str]| {
            let (below, nvcc_targets) = (below(gpus), codes(nvcc));
            let recipe = Some(&recipe);
            let build = PackageBuild { below: &below, source: &source, recipe, nvcc_targets: &nvcc_targets };
            text_of(&build.compilation(cached("d"), cached("2")), "source/environment")
        };
        let text = environment(&["8.6", "8.0", "9.0"], &[]);
        for line in [
            "FLASH_ATTENTION_FORCE_BUILD='TRUE'",
            "FLASH_ATTN_CUDA_ARCHS='80;90'",
            "TORCH_CUDA_ARCH_LIST='8.0;8.6;9.0'",
        ] {
            assert!(text.contains(&format!("export {line}\n")), "{line}: {text}");
        }
        // This nvcc is older than the GPU; code of an older member of its generation runs there.
        let text = environment(&["10.3", "8.9"], &["8.0", "8.6", "10.0"]);
        assert!(text.contains("TORCH_CUDA_ARCH_LIST='8.6;10.0'"), "{text}");
        assert!(environment(&[], &[]).contains("TORCH_CUDA_ARCH_LIST='7.0;8.0;9.0'"));
    }

    #[test]
    fn obstacles_are_named_all_at_once() {
        let (recipe, source) = (recipe(), source());
        let obstacles = |below: &Lock, recipe, nvcc: &[&str]| {
            let nvcc_targets = codes(nvcc);
            let build = PackageBuild { below, source: &source, recipe, nvcc_targets: &nvcc_targets };
            build.obstacles().iter().map(|one| one.text().to_owned()).collect::<Vec<_>>()
        };
        let mut old = below(&["7.5", "8.0", "12.0"]);
        old.stack.nvcc = None;
        let found = obstacles(&old, Some(&recipe), &["8.0", "9.0"]);
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(found[0].contains("lacks nvcc") && found[1].contains("not 7.5"), "{found:?}");
        assert!(found[2].contains("compiled for 12.0"), "{found:?}");
        assert!(obstacles(&old, None, &[]).is_empty(), "nothing is known of it");

        // Without GPUs of the target the image is for all that the framework has code for.
        let mut any = below(&[]);
        any.stack.nvcc = sample_nvcc();
        let found = obstacles(&any, Some(&recipe), &[]);
        assert!(found.len() == 1 && found[0].contains("not 7.0"), "{found:?}");
        any.stack.requires.gpu.clear();
        assert!(obstacles(&any, Some(&recipe), &[])[0].contains("no GPU is known"));
        let mut good = below(&["8.0"]);
        good.stack.nvcc = sample_nvcc();
        assert!(obstacles(&good, Some(&recipe), &["8.0"]).is_empty());
    }

    fn sample_nvcc() -> Option<Nvcc> {
        let spec = "pytorch-cuda:2.15-cu132-devel".parse().expect("a spec");
        let stack =
            resolve(&spec, &Target::any(Machine::X86_64), compat::embedded(), &ResolveOptions::default());
        stack.expect("resolves").nvcc
    }

    #[test]
    fn compilers_are_as_many_as_the_memory_holds() {
        let (below, source) = (below(&[]), source());
        let recipe = SourceRecipe { job_memory_gb: Some(9), ..recipe() };
        let jobs = |recipe, cores, memory_gb| {
            let build = PackageBuild { below: &below, source: &source, recipe, nvcc_targets: &[] };
            build.jobs(BuildMachine { cores, memory_gb })
        };
        assert_eq!(jobs(Some(&recipe), Some(16), Some(64)), 7);
        assert_eq!(jobs(Some(&recipe), Some(2), Some(64)), 2);
        assert_eq!(jobs(Some(&recipe), Some(16), Some(4)), 1);
        assert_eq!(jobs(Some(&recipe), Some(16), None), 16);
        assert_eq!(jobs(None, Some(16), Some(4)), 16);
    }

    #[test]
    fn key_contains_all_inputs() {
        with(|build| {
            let key = build.key();
            let mut below = build.below.clone();
            below.environment.insert("CC".to_owned(), "sh -c evil".to_owned());
            let with_variables = PackageBuild { below: &below, ..build };
            let seen = with_variables.builder_lock().environment;
            assert!(!seen.contains_key("CC") && seen.contains_key("PATH"), "{seen:?}");
            assert_eq!(with_variables.key(), key, "variables of a project do not reach the compilers");
            let other = LockedSource { sha256: "e".repeat(64), ..build.source.clone() };
            assert_ne!(PackageBuild { source: &other, ..build }.key(), key);
            let mut below = build.below.clone();
            below.apt = vec![sample::deb("libpq-dev", "15.1")];
            assert_ne!(PackageBuild { below: &below, ..build }.key(), key);
            let mut below = build.below.clone();
            below.wheels[0].sha256 = "f".repeat(64);
            assert_ne!(PackageBuild { below: &below, ..build }.key(), key);
            let mut below = build.below.clone();
            below.tools[0].sha256 = "f".repeat(64);
            assert_ne!(PackageBuild { below: &below, ..build }.key(), key, "uv builds the wheel");
            let mut recipe = recipe();
            let with = PackageBuild { recipe: Some(&recipe), ..build }.key();
            assert_ne!(with, key);
            let sha256 = recipe_sha256(&recipe);
            recipe.patches.clear();
            assert_ne!(PackageBuild { recipe: Some(&recipe), ..build }.key(), with);
            assert_ne!(recipe_sha256(&recipe), sha256);
        });
    }
}
