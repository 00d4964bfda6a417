//! Lock to build plan: names, labels, environment, layers, context entries and required checks.
//!
//! Pure: the cache's paths are passed in, nothing is read. Holds no address and no credential: those are build secrets.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use bytes::Bytes;
use camino::Utf8PathBuf;

use crate::context::{ContextContent, ContextEntry};
use crate::lock::{IndexKind, Lock, LockedDeb, LockedWheel, WheelLayer};
use crate::render::render;
use crate::required::{gpu_checks, static_checks};
use crate::stack::Stack;

/// Version of the image's labels and layout.
const SCHEMA: u32 = 1;
/// The label that names the lock of an image.
pub const LOCK_LABEL: &str = "io.envforge.lock";
/// What a tag ends in until checks have run on a GPU.
pub const UNVERIFIED: &str = "-unverified";

/// A file of the cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CachedFile {
    /// Where it lies.
    pub path: Utf8PathBuf,
    /// Its size in bytes.
    pub size: u64,
    /// Its SHA-256, hex.
    pub sha256: String,
}

impl CachedFile {
    pub(crate) fn entry(self, path: String, mode: u32) -> ContextEntry {
        let Self { path: from, size, sha256 } = self;
        ContextEntry { path, mode, content: ContextContent::File { path: from, size, sha256 } }
    }
}

/// What stands at the bottom of the image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Bottom {
    /// An image the engine has: what stands after FROM.
    Image(String),
    /// The base's archive, for an engine that has no such image.
    Archive(CachedFile),
}

/// The bytes a plan is made with, beside the lock.
#[derive(Debug, Clone)]
pub struct Files {
    /// The bottom of the image.
    pub bottom: Bottom,
    /// The .deb files, in the order of `lock.system`.
    pub debs: Vec<Utf8PathBuf>,
    /// The .deb files to unpack, in the order of `lock.unpacked`.
    pub unpacked: Vec<Utf8PathBuf>,
    /// The .deb files the user added, in the order of `lock.apt`.
    pub apt: Vec<Utf8PathBuf>,
    /// The files of the project, below `copy/`.
    pub copies: Vec<ContextEntry>,
    /// The wheels by file name, where no index is asked; empty: the steps download them.
    pub wheels: Vec<(String, CachedFile)>,
    /// The wheels that no index has, by file name; empty if `wheels` holds them.
    pub local: Vec<(String, CachedFile)>,
    /// The program uv.
    pub uv: CachedFile,
    /// The agent.
    pub agent: Bytes,
}

/// One RUN step that installs wheels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayerPlan {
    /// What it holds, for people.
    pub title: String,
    /// Its requirement files in the context.
    pub files: Vec<String>,
    /// True for what the user added: it changes most often and lies on top.
    pub user: bool,
}

/// Everything the engine needs to build an image, and everything that must then be true of it.
#[derive(Debug, Clone)]
pub struct BuildPlan {
    /// The canonical name, or `envforge/<project>:<hash>` for a build with anything added.
    pub name: String,
    /// Hash of the lock, hex.
    pub lock: String,
    /// Labels, sorted by name.
    pub labels: BTreeMap<String, String>,
    /// Environment of the image, sorted by name.
    pub environment: BTreeMap<String, String>,
    /// Wheel layers, lowest first.
    pub layers: Vec<LayerPlan>,
    /// True if the wheels lie in the context.
    pub vendored: bool,
    /// The context, sorted by path; holds the Dockerfile.
    pub context: Vec<ContextEntry>,
    /// Ids of the checks that must pass before any tag.
    pub checks: Vec<String>,
    /// Ids of those that must also have run on a GPU before a tag without `-unverified`.
    pub gpu_checks: Vec<String>,
}

/// The environment variables of an image with this stack. They are written in the lock.
pub fn environment(stack: &Stack) -> BTreeMap<String, String> {
    let mut all: BTreeMap<String, String> = [
        ("LANG", "C.UTF-8"),
        ("NVIDIA_DRIVER_CAPABILITIES", "compute,utility"),
        ("NVIDIA_VISIBLE_DEVICES", "all"),
        ("PATH", "/home/dev/.venv/bin:/opt/envforge/bin:/opt/env/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"),
        ("PIP_CONSTRAINT", "/opt/envforge/constraints.txt"),
        ("PIP_DISABLE_PIP_VERSION_CHECK", "1"),
        ("SHELL", "/bin/bash"),
        ("UV_CONSTRAINT", "/opt/envforge/constraints.txt"),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .collect();
    if toolkit(stack).is_some() {
        let path = all.get_mut("PATH").expect("set above");
        *path = path.replace(":/usr/local/sbin", ":/usr/local/cuda/bin:/usr/local/sbin");
        all.insert("CUDA_HOME".to_owned(), "/usr/local/cuda".to_owned());
    }
    // The floor by minor-version compatibility: what a `cuda>=` condition would ask is more than the wheels need.
    if let Some(driver) = &stack.requires.driver {
        all.insert("NVIDIA_REQUIRE_CUDA".to_owned(), format!("driver>={driver}"));
    }
    all
}

/// The step that makes /usr/local/cuda.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ToolkitStep {
    /// What it holds, for people.
    pub(crate) title: String,
    /// `runtime`, or the gcc major nvcc takes.
    pub(crate) argument: String,
}

/// The step that makes /usr/local/cuda: in the devel flavour, and where the toolkit's wheels are pinned.
pub(crate) fn toolkit(stack: &Stack) -> Option<ToolkitStep> {
    let home = "/usr/local/cuda, links to the libraries and headers above";
    match &stack.nvcc {
        Some(nvcc) => Some(ToolkitStep {
            title: format!(
                "{home}, and nvcc {} from {}, which compiles with gcc {}.",
                stack.toolkit_minor(),
                nvcc.source,
                nvcc.gcc
            ),
            argument: nvcc.gcc.to_string(),
        }),
        None if !stack.parts.is_empty() => {
            Some(ToolkitStep { title: format!("{home}."), argument: "runtime".to_owned() })
        }
        None => None,
    }
}

/// The name of what a lock builds.
pub fn name(lock: &Lock) -> String {
    match &lock.added.project {
        None if lock.added.is_empty() => lock.stack.name.clone(),
        project => {
            let project = project.as_ref().unwrap_or(&lock.stack.product);
            format!("envforge/{project}:{}", &lock.hash()[..12])
        }
    }
}

/// The plan for a lock.
///
/// # Panics
/// If `files` does not have one path for each package of `lock.system`, `lock.unpacked` and `lock.apt`.
pub fn plan(lock: &Lock, files: Files) -> BuildPlan {
    assert_eq!(lock.system.len(), files.debs.len(), "one file for each locked package");
    assert_eq!(lock.unpacked.len(), files.unpacked.len(), "one file for each package to unpack");
    assert_eq!(lock.apt.len(), files.apt.len(), "one file for each package the user added");
    let layers = layers(lock);
    let mut plan = BuildPlan {
        name: name(lock),
        lock: lock.hash(),
        labels: labels(lock),
        environment: lock.environment.clone(),
        layers: layers.iter().map(|(layer, _)| layer.clone()).collect(),
        vendored: false,
        context: Vec::new(),
        checks: static_checks(lock),
        gpu_checks: gpu_checks(&lock.stack, true),
    };
    let mut context: Vec<_> = layers.into_iter().flat_map(|(_, entries)| entries).collect();
    context.extend(steps());
    context.extend(image_files(lock));
    let mut debs = |folder: &str, locked: &[LockedDeb], paths: Vec<Utf8PathBuf>| {
        for (deb, path) in locked.iter().zip(paths) {
            let file = deb.path.rsplit('/').next().unwrap_or(&deb.path);
            let content = ContextContent::File { path, size: deb.size, sha256: deb.sha256.clone() };
            context.push(ContextEntry { path: format!("{folder}/{file}"), mode: 0o644, content });
        }
    };
    debs("debs", &lock.system, files.debs);
    debs("toolkit", &lock.unpacked, files.unpacked);
    debs("apt", &lock.apt, files.apt);
    context.extend(files.copies);
    plan.vendored = !files.wheels.is_empty();
    for (file, wheel) in files.wheels {
        context.push(wheel.entry(format!("vendor/{file}"), 0o644));
    }
    for (file, wheel) in files.local {
        context.push(wheel.entry(format!("wheels/local/{file}"), 0o644));
    }
    if toolkit(&lock.stack).is_some() {
        context.push(ContextEntry::text("steps/toolkit.py", include_str!("../templates/steps/toolkit.py")));
    }
    context.push(files.uv.entry("tools/uv".to_owned(), 0o755));
    context.push(ContextEntry::program("files/opt/envforge/agent", files.agent));
    context.push(ContextEntry::text("Dockerfile", render(lock, &plan, &files.bottom)));
    if let Bottom::Archive(archive) = files.bottom {
        context.push(archive.entry(BASE_ARCHIVE.to_owned(), 0o644));
    }
    context.sort_by(|a, b| a.path.cmp(&b.path));
    plan.context = context;
    plan
}

/// Name of the base archive in an exported context.
pub(crate) const BASE_ARCHIVE: &str = "base.tar";

fn steps() -> Vec<ContextEntry> {
    vec![
        ContextEntry::text("steps/system.sh", include_str!("../templates/steps/system.sh")),
        ContextEntry::text("steps/wheels.sh", include_str!("../templates/steps/wheels.sh")),
        ContextEntry::text("steps/compile.py", include_str!("../templates/steps/compile.py")),
    ]
}

/// What is copied onto the image's root.
fn image_files(lock: &Lock) -> Vec<ContextEntry> {
    let (mut constraints, mut names) = (String::new(), String::new());
    for wheel in &lock.wheels {
        let _ = writeln!(constraints, "{}=={}", wheel.name, wheel.version);
        let _ = writeln!(names, "{}", wheel.name);
    }
    let program =
        |path: &str, text: &'static str| ContextEntry::program(&format!("files/opt/envforge/{path}"), text);
    let text = |path: &str, text: String| ContextEntry::text(&format!("files/opt/envforge/{path}"), text);
    vec![
        program("entrypoint", include_str!("../templates/files/entrypoint.sh")),
        program("bin/pip", include_str!("../templates/files/pip.sh")),
        program("bin/uv", include_str!("../templates/files/uv.sh")),
        text("venv.sh", include_str!("../templates/files/venv.sh").to_owned()),
        text("satisfied.py", include_str!("../templates/files/satisfied.py").to_owned()),
        text("constraints.txt", constraints),
        text("locked.txt", names),
    ]
}

/// The wheel layers that hold anything, lowest first, each with its requirement files.
fn layers(lock: &Lock) -> Vec<(LayerPlan, Vec<ContextEntry>)> {
    let all = [WheelLayer::Cuda, WheelLayer::Framework, WheelLayer::Stack, WheelLayer::User];
    all.into_iter().filter_map(|layer| one_layer(lock, layer)).collect()
}

fn one_layer(lock: &Lock, layer: WheelLayer) -> Option<(LayerPlan, Vec<ContextEntry>)> {
    let stack = &lock.stack;
    let (file, what) = match layer {
        WheelLayer::Cuda => {
            ("cuda", format!("CUDA {} libraries: the only copy in this image", stack.toolkit))
        }
        WheelLayer::Framework => {
            ("framework", format!("{} {} and what it needs", stack.framework, stack.version))
        }
        WheelLayer::Stack => ("stack", "developer stack".to_owned()),
        WheelLayer::User => {
            ("user", format!("what was asked for beside it: {}", asked_for(&lock.added.python)))
        }
    };
    let mut entries = Vec::new();
    let mut count = 0;
    for (kind, suffix) in KINDS {
        let wheels: Vec<_> =
            lock.wheels.iter().filter(|wheel| wheel.layer == layer && wheel.index == kind).collect();
        if !wheels.is_empty() {
            count += wheels.len();
            entries.push(ContextEntry::text(&format!("wheels/{file}{suffix}.txt"), requirements(&wheels)));
        }
    }
    let files = entries.iter().map(|entry| entry.path.clone()).collect();
    let plural = if count == 1 { "wheel" } else { "wheels" };
    (count > 0).then(|| {
        (
            LayerPlan { title: format!("{what}, {count} {plural}."), files, user: layer == WheelLayer::User },
            entries,
        )
    })
}

/// What requirement files of each kind end in.
const KINDS: [(IndexKind, &str); 3] =
    [(IndexKind::Default, ""), (IndexKind::Framework, ".framework"), (IndexKind::Local, LOCAL)];
/// Of wheels that no index has.
const LOCAL: &str = ".local";

impl LayerPlan {
    /// True if it holds wheels that no index has.
    pub(crate) fn is_local(&self) -> bool {
        self.files.iter().any(|file| file.ends_with(".local.txt"))
    }
}

/// What was asked for, in a line: of a long list its beginning.
pub(crate) fn asked_for(names: &[String]) -> String {
    const SHOWN: usize = 10;
    let shown = names[..names.len().min(SHOWN)].join(", ");
    match names.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// Requirement lines with hashes.
pub(crate) fn requirements(wheels: &[&LockedWheel]) -> String {
    let mut text = String::new();
    for wheel in wheels {
        let _ = writeln!(text, "{}=={} --hash=sha256:{}", wheel.name, wheel.version, wheel.sha256);
    }
    text
}

fn labels(lock: &Lock) -> BTreeMap<String, String> {
    let stack = &lock.stack;
    let title = format!("{}, Python {}", stack.title(), stack.python);
    [
        ("org.opencontainers.image.title", name(lock)),
        ("org.opencontainers.image.description", title),
        ("org.opencontainers.image.version", stack.version.to_string()),
        ("org.opencontainers.image.base.name", lock.base.name.clone()),
        ("io.envforge.schema", SCHEMA.to_string()),
        ("io.envforge.spec", lock.spec.clone()),
        ("io.envforge.name", name(lock)),
        (LOCK_LABEL, lock.hash()),
        ("io.envforge.matrix", lock.stack.matrix.clone()),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value))
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compat::Matrix;
    use crate::compat::tables::Channel;
    use crate::lock::{
        Added, BaseProvider, LockedBase, LockedCheck, LockedCopy, LockedRun, LockedTool, Records, SCHEMA,
    };
    use crate::resolve::{ResolveOptions, resolve};
    use crate::stack::Stack;
    use crate::target::Target;
    use crate::versions::Machine;

    fn wheel(name: &str, version: &str, layer: WheelLayer, index: IndexKind) -> LockedWheel {
        let file = format!("{}-{version}-py3-none-any.whl", name.replace('-', "_"));
        LockedWheel {
            name: name.into(),
            version: version.into(),
            file,
            sha256: "a".repeat(64),
            size: None,
            index,
            layer,
        }
    }

    fn stack(spec: &str) -> Stack {
        let spec = spec.parse().expect("a spec");
        let target = Target::any(Machine::X86_64);
        resolve(&spec, &target, Matrix::current(), &ResolveOptions::default()).expect("resolves")
    }

    fn unpacked(name: &str) -> LockedDeb {
        LockedDeb {
            name: name.into(),
            version: "1".into(),
            architecture: "amd64".into(),
            sha256: "e".repeat(64),
            size: 84_000_000,
            path: format!("pool/non-free/n/{name}_1_amd64.deb"),
        }
    }

    /// A lock of few wheels for what the matrix really says of that spec.
    fn lock(spec: &str) -> Lock {
        let mut stack = stack(spec);
        // The edition changes with every fact; it is a record, not what these tests are about.
        stack.matrix = "2026-11-20.000000000000".to_owned();
        let index = if stack.channel == Channel::Default { IndexKind::Default } else { IndexKind::Framework };
        let local = if index == IndexKind::Framework { format!("+{}", stack.cuda) } else { String::new() };
        let major = stack.cuda.major;
        let cudnn = stack.cudnn.as_ref().map(ToString::to_string).unwrap_or_default();
        let deb = LockedDeb {
            name: "python3".into(),
            version: "3.11.2-1+b1".into(),
            architecture: "amd64".into(),
            sha256: "b".repeat(64),
            size: 26_000,
            path: "pool/main/p/python3-defaults/python3_3.11.2-1+b1_amd64.deb".into(),
        };
        Lock {
            schema: SCHEMA,
            spec: spec.to_owned(),
            added: Added::default(),
            base: LockedBase {
                provider: BaseProvider::Bootstrap,
                name: stack.base.clone(),
                suite: stack.suite.clone(),
                digest: None,
                content: None,
                cuda: false,
                packages: vec![deb.clone()],
            },
            tools: vec![LockedTool {
                name: "uv".into(),
                version: "0.13.9".into(),
                file: "uv.whl".into(),
                sha256: "c".repeat(64),
            }],
            system: vec![deb],
            apt: Vec::new(),
            unpacked: stack.nvcc.iter().flat_map(|nvcc| &nvcc.packages).map(|name| unpacked(name)).collect(),
            wheels: vec![
                wheel(&format!("nvidia-cudnn-cu{major}"), &cudnn, WheelLayer::Cuda, index),
                wheel("torch", &format!("{}{local}", stack.version), WheelLayer::Framework, index),
                wheel("sympy", "1.14.0", WheelLayer::Framework, IndexKind::Default),
                wheel("jupyterlab", "4.5.0", WheelLayer::Stack, IndexKind::Default),
            ],
            sources: Vec::new(),
            environment: environment(&stack),
            stack,
            records: Records::default(),
        }
    }

    fn planned(lock: &Lock, bottom: Bottom) -> BuildPlan {
        let uv = CachedFile { path: "/cache/uv".into(), size: 1, sha256: "0".repeat(64) };
        let debs = lock.system.iter().map(|deb| Utf8PathBuf::from(format!("/cache/{}", deb.name))).collect();
        let unpacked =
            lock.unpacked.iter().map(|deb| Utf8PathBuf::from(format!("/cache/{}", deb.name))).collect();
        let apt = lock.apt.iter().map(|deb| Utf8PathBuf::from(format!("/cache/{}", deb.name))).collect();
        let (copies, wheels) = (vec![], vec![]);
        let local = lock.local_wheels().map(|wheel| (wheel.file.clone(), uv.clone())).collect();
        let agent = Bytes::from_static(b"agent");
        plan(lock, Files { bottom, debs, unpacked, apt, copies, wheels, local, uv, agent })
    }

    fn text<'a>(plan: &'a BuildPlan, path: &str) -> &'a str {
        let entry = plan.context.iter().find(|entry| entry.path == path).expect("the context has it");
        let ContextContent::Bytes(bytes) = &entry.content else { panic!("made here") };
        std::str::from_utf8(bytes).expect("text")
    }

    fn image() -> Bottom {
        Bottom::Image("envforge-base:0123456789abcdef".to_owned())
    }

    #[test]
    fn dockerfiles_of_five_stacks() {
        for spec in ["2.8-cu128", "2.7-cu118", "2.6-cu124", "2.11-cu130", "2.15-cu132"] {
            let plan = planned(&lock(&format!("pytorch-cuda:{spec}")), image());
            // The hash covers the reasons of every choice; a reworded one is no change of the Dockerfile.
            let dockerfile =
                text(&plan, "Dockerfile").replace(&plan.lock, "LOCK").replace(&plan.lock[..12], "LOCK");
            insta::assert_snapshot!(spec, dockerfile);
        }
    }

    #[test]
    fn dockerfiles_with_nvcc_from_each_source() {
        for (source, spec) in [
            ("vendor", "pytorch-cuda:2.8-cu128-devel"),
            ("distribution", "cuda:11.8-devel"),
            ("wheels", "cuda:13.2-devel"),
            ("none", "cuda:12.8"),
        ] {
            let plan = planned(&lock(spec), image());
            let dockerfile = text(&plan, "Dockerfile");
            let start = dockerfile.find("# 1. System").expect("the steps");
            let dockerfile = dockerfile.replace(&plan.lock, "LOCK");
            let start = start.min(dockerfile.len());
            insta::assert_snapshot!(format!("nvcc-from-{source}"), &dockerfile[start..]);
            let debs: Vec<_> =
                plan.context.iter().filter(|entry| entry.path.starts_with("toolkit/")).collect();
            assert_eq!(debs.len(), lock(spec).unpacked.len(), "{source}");
            assert_eq!(plan.checks.iter().any(|check| check == "nvcc"), source != "none", "{source}");
        }
    }

    #[test]
    fn an_exported_dockerfile_brings_its_base() {
        let archive = CachedFile { path: "/cache/base".into(), size: 9, sha256: "d".repeat(64) };
        let plan = planned(&lock("pytorch-cuda:2.8-cu128"), Bottom::Archive(archive));
        let dockerfile = text(&plan, "Dockerfile");
        assert!(dockerfile.contains("FROM scratch\nADD base.tar /\n"), "{dockerfile}");
        assert!(plan.context.iter().any(|entry| entry.path == BASE_ARCHIVE && entry.size() == 9));
    }

    #[test]
    fn wheels_of_the_frameworks_own_index_are_kept_apart() {
        let plan = planned(&lock("pytorch-cuda:2.7-cu118"), image());
        assert!(
            text(&plan, "wheels/framework.framework.txt")
                .starts_with("torch==2.7.1+cu118 --hash=sha256:aaaa")
        );
        assert!(text(&plan, "wheels/framework.txt").starts_with("sympy==1.14.0 --hash="));
        assert!(text(&plan, "files/opt/envforge/constraints.txt").contains("torch==2.7.1+cu118\n"));
    }

    #[test]
    fn nothing_in_the_context_is_newer_than_docker_20_10_understands() {
        for spec in ["pytorch-cuda:2.8-cu128", "pytorch-cuda:2.7-cu118"] {
            let plan = planned(&lock(spec), image());
            let dockerfile = text(&plan, "Dockerfile");
            for word in ["# syntax=", "<<", "--link", "--network", "--security", "ARG ", "http"] {
                assert!(!dockerfile.contains(word), "{word} in\n{dockerfile}");
            }
        }
    }

    #[test]
    fn the_context_is_sorted_and_its_files_are_readable() {
        let plan = planned(&lock("pytorch-cuda:2.8-cu128"), image());
        assert!(plan.context.is_sorted_by(|a, b| a.path < b.path));
        assert!(plan.context.iter().all(|entry| matches!(entry.mode, 0o644 | 0o755)));
    }

    #[test]
    fn a_build_with_additions_never_takes_a_canonical_name() {
        let mut with = lock("pytorch-cuda:2.8-cu128");
        assert_eq!(name(&with), "pytorch-cuda:2.8.0-cu128-py3.11");
        with.added.python = vec!["humanize".to_owned()];
        with.wheels.push(wheel("humanize", "4.15.0", WheelLayer::User, IndexKind::Default));
        assert_eq!(name(&with), format!("envforge/pytorch-cuda:{}", &with.hash()[..12]));
        let plan = planned(&with, image());
        assert_eq!(plan.layers.len(), 4);
        assert!(plan.layers[3].title.contains("humanize"));
    }

    #[test]
    fn a_project_puts_its_packages_files_and_commands_above_the_framework() {
        let mut with = lock("pytorch-cuda:2.8-cu128");
        let copy = |from: &str, to: &str, folder| LockedCopy {
            from: from.into(),
            to: to.into(),
            folder,
            sha256: "c".repeat(64),
        };
        let run = |command: &str, secrets: &[&str]| LockedRun {
            command: command.into(),
            secrets: secrets.iter().map(|name| (*name).to_owned()).collect(),
        };
        with.added = Added {
            project: Some("vision-train".into()),
            python: vec!["humanize".into()],
            apt: vec!["ffmpeg".into()],
            allow_source: Vec::new(),
            indexes: vec!["internal".into()],
            variables: BTreeMap::from([("GREETING".into(), "a $HOME \"b\"".into())]),
            copy: vec![copy("configs", "/opt/my configs", true), copy("a.txt", "/opt/a.txt", false)],
            run: vec![run("echo \"$GREETING\" \\\n  > ~/x # '\"", &[]), run("cat /run/secrets/hf", &["hf"])],
            checks: vec![LockedCheck { name: "imports".into(), command: "python -c 1".into() }],
            may_lack: Vec::new(),
        };
        with.environment.extend(with.added.variables.clone());
        with.apt = vec![unpacked("ffmpeg")];
        with.wheels.push(wheel("humanize", "4.15.0", WheelLayer::User, IndexKind::Default));
        assert_eq!(name(&with), format!("envforge/vision-train:{}", &with.hash()[..12]));
        let plan = planned(&with, image());
        let dockerfile =
            text(&plan, "Dockerfile").replace(&plan.lock, "LOCK").replace(&plan.lock[..12], "LOCK");
        let start = dockerfile.find("WORKDIR").expect("the user's part");
        insta::assert_snapshot!("a-project", &dockerfile[start..]);
    }

    #[test]
    fn the_driver_asked_for_is_the_floor_not_the_newest() {
        let environment = environment(&stack("pytorch-cuda:2.8-cu128"));
        assert_eq!(environment["NVIDIA_REQUIRE_CUDA"], "driver>=525.60.13");
    }
}
