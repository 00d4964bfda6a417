//! Inputs and environment of a source build: everything that decides its bytes, as plain values. Pure.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::json;

use super::error::SourceError;
use crate::model::compat::TOOLKIT;
use crate::model::compat::tables::SourceBuild;
use crate::model::image::context::ContextEntry;
use crate::model::image::plan::{BaseSource, CachedFile, ContextFiles, plan};
use crate::model::image::render::{rendered, shell_word, values};
use crate::model::lock::{Lock, WheelLayer};
use crate::model::sha256::sha256_hex;
use crate::model::stack::{Flavour, Stack};

pub(super) const DOCKERFILE: &str = include_str!("../../templates/Builder.j2");
pub(super) const STEP: &str = include_str!("../../templates/steps/source.sh");
/// Built-in patches by the names used in rows.
const PATCHES: [(&str, &str); 1] = [(
    "pytorch-2.8-cuda11-driver-entry-point.py",
    include_str!("../../templates/patches/pytorch-2.8-cuda11-driver-entry-point.py"),
)];

/// Returns the text of a built-in patch.
pub(super) fn patch_text(name: &str) -> Option<&'static str> {
    PATCHES.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

/// An unpublished stack and the row that describes its build.
#[derive(Debug, Clone, Copy)]
pub struct Recipe<'a> {
    /// The stack; its channel is `source`.
    pub stack: &'a Stack,
    /// The row.
    pub row: &'a SourceBuild,
}

impl Recipe<'_> {
    /// `torch 2.8.0+cu118`.
    pub fn title(&self) -> String {
        format!("{} {}+{}", self.stack.package, self.stack.version, self.stack.cuda)
    }

    /// SHA-256 over everything that decides the wheel, except the number of parallel compilers.
    pub fn key(&self) -> String {
        let Self { stack, row } = self;
        let patches: Vec<_> = row.patches.iter().map(|name| patch_text(name)).collect();
        let what = json!({
            "title": self.title(),
            "archive": row.sha256,
            "patches": patches,
            "environment": self.environment(0),
            "python": stack.python,
            "machine": stack.machine,
            "base": stack.base,
            "compiler": stack.source_build.as_ref().map(|choice| &choice.nvcc),
            "wheels": row.build_wheels,
            "packages": row.build_packages,
            "parts": self.parts(),
            "step": STEP,
        });
        sha256_hex(what.to_string().as_bytes())
    }

    /// Returns the builder as a stack: the toolkit with its compiler and libraries, and the build requirements.
    pub fn builder(&self) -> Stack {
        let nvcc = self.stack.source_build.as_ref().map(|choice| choice.nvcc.clone());
        Stack {
            name: format!("the builder of {}", self.title()),
            product: TOOLKIT.to_owned(),
            framework: TOOLKIT.to_owned(),
            flavour: Flavour::Devel,
            nvcc,
            parts: self.parts(),
            install: self.row.build_wheels.clone(),
            companions: BTreeMap::new(),
            triton: None,
            cudnn: None,
            nccl: None,
            source_build: None,
            reasons: Vec::new(),
            ..self.stack.clone()
        }
    }

    /// The wheels of CUDA it is compiled with: package to version.
    fn parts(&self) -> BTreeMap<String, String> {
        let stack = self.stack;
        let mut parts = stack.parts.clone();
        parts.extend(stack.source_build.iter().flat_map(|choice| choice.parts.clone()));
        parts.extend(stack.library_wheels());
        parts
    }

    /// The build's environment as shell lines.
    fn environment(&self, jobs: u64) -> String {
        let Self { stack, row } = self;
        let targets = stack.source_build.iter().flat_map(|choice| &choice.arch);
        let arch: Vec<_> = targets.map(|code| format!("{}.{}", code.major, code.minor)).collect();
        let mut text = String::new();
        for (name, value) in &row.environment {
            let value = value
                .replace("{arch}", &arch.join(";"))
                .replace("{jobs}", &jobs.to_string())
                .replace("{version}", &stack.version.to_string())
                .replace("{cuda}", &stack.cuda.to_string());
            let _ = writeln!(text, "export {name}={}", shell_word(&value));
        }
        text
    }

    /// Returns the build context of the builder image: its Dockerfile, the locked files, the archive and the build steps.
    pub(super) fn context(
        &self,
        lock: &Lock,
        files: ContextFiles,
        archive: CachedFile,
        jobs: u64,
    ) -> Result<Vec<ContextEntry>, SourceError> {
        let plan = plan(lock, files);
        let dockerfile = self.dockerfile(&values(&plan.image));
        let mut context: Vec<_> = plan.context.into_iter().filter(is_of_a_builder).collect();
        for (number, name) in self.row.patches.iter().enumerate() {
            let text = patch_text(name).ok_or_else(|| SourceError::NoPatch { patch: name.clone() })?;
            context.push(ContextEntry::text(&format!("source/patches/{number}-{name}"), text));
        }
        context.push(archive.entry("source/archive".to_owned(), 0o644));
        context.push(ContextEntry::text("source/environment", self.environment(jobs)));
        context.push(ContextEntry::text("steps/source.sh", STEP));
        context.push(ContextEntry::text("Dockerfile", dockerfile));
        context.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(context)
    }

    fn dockerfile(&self, values: &serde_json::Value) -> String {
        let mut values = values.clone();
        values["source"] = json!({
            "title": self.title(),
            "why": "it has no published wheel",
            "archive": self.row.archive,
            "patches": self.row.patches,
            "build": "",
        });
        rendered(DOCKERFILE, &values)
    }
}

/// Whether a builder needs an entry of an image's context: not the copied files.
pub(super) fn is_of_a_builder(entry: &ContextEntry) -> bool {
    !["files/", "copy/"].iter().any(|folder| entry.path.starts_with(folder)) && entry.path != "Dockerfile"
}

/// Keeps only the packages that the builder installs.
pub(super) fn is_of_the_builder(layer: WheelLayer) -> bool {
    matches!(layer, WheelLayer::Cuda | WheelLayer::Framework)
}

/// The base stage of the builder.
pub(super) fn bottom(base_reference: &str) -> BaseSource {
    BaseSource::Image(base_reference.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::compat::Matrix;
    use crate::model::resolve::{ResolveOptions, resolve};
    use crate::model::target::{Target, TargetGpu, TargetSource};
    use crate::model::versions::Machine;

    fn stack(gpu: Option<&str>) -> Stack {
        let mut target = Target::any(Machine::X86_64);
        if let Some(gpu) = gpu {
            target.source = TargetSource::Named;
            target.gpus.push(TargetGpu { name: None, compute_capability: gpu.parse().unwrap() });
        }
        let spec = "pytorch-cuda:2.8-cu118".parse().unwrap();
        resolve(&spec, &target, Matrix::current(), &ResolveOptions::default()).expect("resolves")
    }

    fn row() -> SourceBuild {
        Matrix::current().source_builds[0].clone()
    }

    #[test]
    fn patches_of_all_rows_exist() {
        for patch in Matrix::current().source_builds.iter().flat_map(|row| &row.patches) {
            assert!(patch_text(patch).is_some_and(|text| !text.is_empty()), "{patch}");
        }
    }

    #[test]
    fn environment_lists_targets_and_jobs() {
        let (stack, row) = (stack(Some("8.6")), row());
        let text = Recipe { stack: &stack, row: &row }.environment(3);
        for line in ["export MAX_JOBS='3'", "export TORCH_CUDA_ARCH_LIST='8.6'", "'2.8.0+cu118'"] {
            assert!(text.contains(line), "{line}: {text}");
        }
        assert!(!text.contains('{'), "{text}");
    }

    #[test]
    fn key_depends_on_inputs_not_on_the_machine() {
        let (all, one, row) = (stack(None), stack(Some("8.6")), row());
        let key = |stack: &Stack, row: &SourceBuild| Recipe { stack, row }.key();
        let first = key(&all, &row);
        assert_eq!(first, key(&all, &row.clone()));
        assert_ne!(first, key(&one, &row), "other GPU targets");
        let change = |change: fn(&mut SourceBuild)| {
            let mut other = row.clone();
            change(&mut other);
            assert_ne!(first, key(&all, &other));
        };
        change(|row| row.sha256 = Some("0".repeat(64)));
        change(|row| row.patches.clear());
        change(|row| drop(row.environment.insert("USE_CUDNN".into(), "0".into())));
        change(|row| row.build_wheels.push("x".into()));
        let other = Stack { python: "3.12".parse().unwrap(), ..all.clone() };
        assert_ne!(first, key(&other, &row));
    }

    #[test]
    fn the_builder_has_the_toolkit_its_compiler_and_the_libraries() {
        let (stack, row) = (stack(None), row());
        let builder = Recipe { stack: &stack, row: &row }.builder();
        assert!(builder.is_toolkit() && builder.nvcc.as_ref().is_some_and(|nvcc| nvcc.gcc == 11));
        assert_eq!(builder.parts["nvidia-cudnn-cu11"], "9.1.0.70");
        assert_eq!(builder.parts["nvidia-nccl-cu11"], "2.21.5");
        assert!(builder.parts.contains_key("nvidia-cublas-cu11"), "{:?}", builder.parts);
        assert!(builder.install.iter().any(|wish| wish.starts_with("ninja")));
    }

    #[test]
    fn the_builder_and_the_wheel_are_two_stages() {
        let (stack, row) = (stack(None), row());
        let recipe = Recipe { stack: &stack, row: &row };
        let mut lock = crate::model::lock::sample::lock();
        lock.stack = recipe.builder();
        lock.wheels.retain(|wheel| is_of_the_builder(wheel.layer));
        lock.wheels[0].layer = WheelLayer::Cuda;
        lock.added = crate::model::lock::UserAdditions {
            apt: row.build_packages.clone(),
            ..crate::model::lock::UserAdditions::default()
        };
        lock.apt = lock.system.clone();
        let file = |name: &str| CachedFile { path: name.into(), size: 1, sha256: "d".repeat(64) };
        let paths = |count: usize| vec!["/cache/deb".into(); count];
        let files = ContextFiles {
            bottom: bottom("envforge-base:0123"),
            debs: paths(lock.system.len()),
            unpacked: paths(lock.unpacked.len()),
            apt: paths(lock.apt.len()),
            copies: Vec::new(),
            wheels: Vec::new(),
            local: Vec::new(),
            uv: file("/cache/uv"),
            agent: bytes::Bytes::new(),
        };
        let context = recipe.context(&lock, files, file("/cache/archive"), 2).expect("a context");
        let paths: Vec<_> = context.iter().map(|entry| entry.path.as_str()).collect();
        assert!(context.is_sorted_by(|a, b| a.path < b.path), "{paths:?}");
        for path in ["source/archive", "source/environment", "steps/source.sh", "steps/toolkit.py"] {
            assert!(paths.contains(&path), "{path}: {paths:?}");
        }
        let dockerfile = context.iter().find(|entry| entry.path == "Dockerfile").expect("there");
        let crate::model::image::context::ContextContent::Bytes(bytes) = &dockerfile.content else {
            panic!("made here")
        };
        let text = std::str::from_utf8(bytes).expect("text");
        for word in ["# syntax=", "<<", "--link", "ARG ", "http"] {
            assert!(!text.contains(word), "{word} in\n{text}");
        }
        insta::assert_snapshot!("builder", text);
    }
}
