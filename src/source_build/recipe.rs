//! The source build of an unpublished variant: everything that decides its bytes.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::json;

use super::error::SourceError;
use crate::model::compat::tables::{Channel, SourceBuild};
use crate::model::compat::{Matrix, TOOLKIT};
use crate::model::image::plan::CachedFile;
use crate::model::image::render::shell_word;
use crate::model::lock::{Lock, LockMetadata, LockedBase, SCHEMA, UserAdditions, WheelLayer};
use crate::model::sha256::sha256_hex;
use crate::model::stack::{Flavour, Stack};
use crate::packages::{PackageRequest, ResolverContext, resolve_packages};
use crate::source_build::build::{Compilation, JOBS, STEP};
use crate::source_build::patches::patch_text;

/// An unpublished stack and the row that describes its build.
#[derive(Debug, Clone, Copy)]
pub struct Recipe<'a> {
    /// The stack; its channel is `source`.
    pub stack: &'a Stack,
    /// The row.
    pub row: &'a SourceBuild,
}

impl<'a> Recipe<'a> {
    /// Returns the build of a stack that is not published; `None`: it has no row.
    pub fn of(stack: &'a Stack, matrix: &'a Matrix) -> Option<Self> {
        let same = |row: &&SourceBuild| {
            row.framework == stack.framework
                && row.version == stack.version
                && row.cuda == stack.cuda
                && row.machine == stack.machine
        };
        let is_source = stack.channel == Channel::Source;
        let row = matrix.source_builds.iter().filter(|_| is_source).find(same)?;
        Some(Self { stack, row })
    }

    /// `torch 2.8.0+cu118`.
    pub fn title(&self) -> String {
        format!("{} {}+{}", self.stack.package, self.stack.version, self.stack.cuda)
    }

    /// SHA-256 over everything that decides the wheel, except the number of parallel compilers. `base` is the digest of a base that is
    /// an image; one that is made of packages has none, and those are the signed ones of its suite.
    pub fn key(&self, base: Option<&str>) -> String {
        let Self { stack, row } = self;
        let base = base.map_or_else(|| json!(stack.base), |digest| json!([stack.base, digest]));
        let patches: Vec<_> = row.patches.iter().map(|name| patch_text(name)).collect();
        let what = json!({
            "title": self.title(),
            "archive": row.sha256,
            "patches": patches,
            "environment": self.environment("0"),
            "python": stack.python,
            "machine": stack.machine,
            "base": base,
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
            ptxas: None,
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
    fn environment(&self, jobs: &str) -> String {
        let Self { stack, row } = self;
        let targets = stack.source_build.iter().flat_map(|choice| &choice.arch);
        let arch: Vec<_> = targets.map(|code| format!("{}.{}", code.major, code.minor)).collect();
        let mut text = String::new();
        for (name, value) in &row.environment {
            let value = value
                .replace("{arch}", &arch.join(";"))
                .replace("{jobs}", jobs)
                .replace("{version}", &stack.version.to_string())
                .replace("{cuda}", &stack.cuda.to_string());
            let _ = writeln!(text, "export {name}={}", shell_word(&value));
        }
        text
    }

    /// What is compiled: the release archive, with the patches of its row.
    pub fn compilation(&self, archive: CachedFile, uv: CachedFile) -> Compilation<'_> {
        Compilation {
            title: self.title(),
            why: "it has no published wheel",
            file: &self.row.archive,
            archive,
            uv,
            patches: &self.row.patches,
            environment: self.environment(JOBS),
        }
    }

    /// Resolves the builder: what is installed before it compiles.
    pub async fn builder_lock(
        &self,
        tools: &ResolverContext<'_>,
        base_reference: &str,
        base: &LockedBase,
        matrix: &Matrix,
    ) -> Result<Lock, SourceError> {
        let stack = self.builder();
        let added = UserAdditions { apt: self.row.build_packages.clone(), ..UserAdditions::default() };
        let wanted = PackageRequest {
            base_reference,
            base,
            stack: &stack,
            matrix,
            added: &added,
            previous: None,
            preferred: None,
            fresh: &[],
            renew: false,
            local: &[],
            built: &[],
        };
        let found = resolve_packages(tools, &wanted).await?;
        Ok(Lock {
            schema: SCHEMA,
            spec: stack.name.clone(),
            added,
            base: base.clone(),
            tools: found.tools,
            system: found.system,
            unpacked: found.unpacked,
            apt: found.apt,
            wheels: found.wheels.into_iter().filter(|wheel| is_of_the_builder(wheel.layer)).collect(),
            sources: Vec::new(),
            environment: BTreeMap::new(),
            records: LockMetadata::default(),
            stack,
        })
    }
}

/// Keeps only the packages that the builder installs.
fn is_of_the_builder(layer: WheelLayer) -> bool {
    matches!(layer, WheelLayer::Cuda | WheelLayer::Framework)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::resolve::{ResolveOptions, resolve};
    use crate::model::target::{Target, TargetGpu, TargetSource};
    use crate::model::versions::Machine;
    use crate::source_build::build::tests::{cached, text_of};

    fn stack(gpu: Option<&str>) -> Stack {
        let mut target = Target::any(Machine::X86_64);
        if let Some(gpu) = gpu {
            target.source = TargetSource::Named;
            target.gpus.push(TargetGpu { name: None, compute_capability: gpu.parse().unwrap() });
        }
        let spec = "pytorch-cuda:2.8-cu118".parse().unwrap();
        resolve(&spec, &target, crate::model::compat::embedded(), &ResolveOptions::default())
            .expect("resolves")
    }

    fn row() -> SourceBuild {
        crate::model::compat::embedded().source_builds[0].clone()
    }

    #[test]
    fn patches_of_all_rows_exist() {
        for patch in crate::model::compat::embedded().source_builds.iter().flat_map(|row| &row.patches) {
            assert!(patch_text(patch).is_some_and(|text| !text.is_empty()), "{patch}");
        }
    }

    #[test]
    fn environment_lists_targets_and_jobs() {
        let (stack, row) = (stack(Some("8.6")), row());
        let text = Recipe { stack: &stack, row: &row }.environment("3");
        for line in ["export MAX_JOBS='3'", "export TORCH_CUDA_ARCH_LIST='8.6'", "'2.8.0+cu118'"] {
            assert!(text.contains(line), "{line}: {text}");
        }
        assert!(!text.contains('{'), "{text}");
    }

    #[test]
    fn key_depends_on_inputs_not_on_the_machine() {
        let (all, one, row) = (stack(None), stack(Some("8.6")), row());
        let key = |stack: &Stack, row: &SourceBuild| Recipe { stack, row }.key(None);
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
        let in_image = |digest| Recipe { stack: &all, row: &row }.key(Some(digest));
        assert_ne!(in_image("sha256:a"), first, "an image of that name may have any compiler");
        assert_ne!(in_image("sha256:a"), in_image("sha256:b"));
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
    fn compilation_has_the_archive_the_patches_and_the_environment_of_its_row() {
        let (stack, row) = (stack(None), row());
        let recipe = Recipe { stack: &stack, row: &row };
        let what = recipe.compilation(cached("a"), cached("b"));
        assert_eq!((what.file, what.patches), (row.archive.as_str(), row.patches.as_slice()));
        let text = text_of(&what, "source/environment");
        assert!(text.contains("export MAX_JOBS='2'\n") && !text.contains(JOBS), "{text}");
        for (number, patch) in row.patches.iter().enumerate() {
            assert!(!text_of(&what, &format!("source/patches/{number}-{patch}")).is_empty());
        }
    }
}
