//! Compiles one wheel in an image that has everything it needs, without network or secrets.

use std::collections::BTreeMap;
use std::sync::Arc;

use camino::Utf8Path;
use serde_json::json;

use super::error::SourceError;
use super::export::wheel_of;
use super::patches::patch_text;
use crate::engine::{EngineError, ImageBuildRequest, Network, TemporaryTag};
use crate::model::image::context::ContextEntry;
use crate::model::image::plan::CachedFile;
use crate::model::image::render::rendered;
use crate::model::sha256::sha256_hex;
use crate::packages::{LocalWheel, ResolverContext};
use crate::report::Event;

const DOCKERFILE: &str = include_str!("../../templates/Builder.j2");
pub(super) const STEP: &str = include_str!("../../templates/steps/source.sh");
/// Stands for the number of parallel compilers in [`Compilation::environment`].
pub(super) const JOBS: &str = "{jobs}";
/// Message of a build step that ran out of memory.
const OUT_OF_MEMORY: &str = "envforge: a compiler ran out of memory";

/// What is compiled, and how.
#[derive(Debug, Clone)]
pub struct Compilation<'a> {
    /// `torch 2.8.0+cu118`.
    pub title: String,
    /// The reason for a build from source.
    pub why: &'static str,
    /// The file name of the archive.
    pub file: &'a str,
    /// The archive, in the cache.
    pub archive: CachedFile,
    /// The program uv, in the cache.
    pub uv: CachedFile,
    /// The built-in patches, in their order.
    pub patches: &'a [String],
    /// Shell lines; `{jobs}` stands for the number of parallel compilers.
    pub environment: String,
}

impl Compilation<'_> {
    /// The volume of the compilers' results: those of another archive never see it, nor does another image, whose compilers may be
    /// anybody's.
    fn compiler_cache(&self, layers: &[String], variables: &[String]) -> String {
        let image = format!("{}\n{}", layers.join(" "), variables.join("\n"));
        let all = format!("{} {} {image}", self.archive.sha256, self.uv.sha256);
        format!("envforge-compiler-{}", sha256_hex(all.as_bytes()))
    }

    /// The build context above an image: its Dockerfile, the archive and the step.
    fn context(&self, image: &str, cache: &str, jobs: u64) -> Result<Vec<ContextEntry>, SourceError> {
        let Self { title, why, file, archive, uv, patches, environment } = self;
        let values = json!({
            "envforge": env!("CARGO_PKG_VERSION"),
            "image": image,
            "source": {
                "title": title,
                "why": why,
                "archive": file,
                "patches": patches,
                "cache": cache,
            },
        });
        let mut context = vec![
            archive.clone().entry("source/archive".to_owned(), 0o644),
            uv.clone().entry("tools/uv".to_owned(), 0o755),
            ContextEntry::text("source/environment", environment.replace(JOBS, &jobs.to_string())),
            ContextEntry::text("steps/source.sh", STEP),
            ContextEntry::text("Dockerfile", rendered(DOCKERFILE, &values)),
        ];
        for (number, name) in patches.iter().enumerate() {
            let text = patch_text(name).ok_or_else(|| SourceError::NoPatch { patch: name.clone() })?;
            context.push(ContextEntry::text(&format!("source/patches/{number}-{name}"), text));
        }
        context.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(context)
    }
}

/// Compiles in the image of that tag, with half as many compilers each time the memory was too small. The wheel is in the cache
/// afterwards.
pub async fn compile(
    tools: &ResolverContext<'_>,
    image: &str,
    what: &Compilation<'_>,
    jobs: u64,
) -> Result<LocalWheel, SourceError> {
    let scratch = TemporaryTag::new(tools.engine);
    let gone = || EngineError::NoSuchImage { reference: image.to_owned() };
    let found = tools.engine.image(image).await?.ok_or_else(gone)?;
    let cache = what.compiler_cache(&found.layers, &found.env);
    let mut jobs = jobs.max(1);
    loop {
        let build = ImageBuildRequest {
            context: what.context(image, &cache, jobs)?,
            context_secret: tools.store.context_secret()?,
            secrets: Vec::new(),
            build_args: BTreeMap::new(),
            labels: BTreeMap::new(),
            network: Network::None,
            no_cache: false,
            scratch_tag: scratch.name().to_owned(),
        };
        match tools.engine.build(build, Arc::clone(&tools.reporter)).await {
            Ok(_) => break,
            Err(EngineError::BuildFailed { output, .. }) if ran_out_of_memory(&output) => {
                if jobs == 1 {
                    return Err(SourceError::OutOfMemory);
                }
                let text =
                    format!("out of memory with {jobs} parallel compilers: retrying with {}", jobs / 2);
                tools.reporter.report(Event::Note { text });
                jobs /= 2;
            }
            Err(error) => return Err(error.into()),
        }
    }
    let wheel = taken(tools, scratch.name()).await?;
    scratch.remove().await?;
    Ok(wheel)
}

fn ran_out_of_memory(output: &[String]) -> bool {
    output.iter().any(|line| line.contains(OUT_OF_MEMORY))
}

/// The wheel of a finished image, in the cache.
async fn taken(tools: &ResolverContext<'_>, image: &str) -> Result<LocalWheel, SourceError> {
    let folder = tools.store.temp_folder()?;
    let root = Utf8Path::from_path(folder.path()).expect("the cache's path is UTF-8");
    let archive = root.join("image.tar");
    tools.engine.save(image, archive.clone()).await?;
    let wheel = wheel_of(archive.as_std_path(), root)?;
    Ok(LocalWheel::take(&wheel, tools.store)?)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::model::image::context::ContextContent;

    /// The text of an entry of a compilation's context.
    pub(in crate::source_build) fn text_of(what: &Compilation<'_>, path: &str) -> String {
        let context = what.context("envforge-scratch:1", "envforge-compiler-1", 2).expect("a context");
        assert!(context.is_sorted_by(|a, b| a.path < b.path));
        let entry = context.into_iter().find(|entry| entry.path == path).expect(path);
        let ContextContent::Bytes(bytes) = &entry.content else { panic!("{path} is made here") };
        String::from_utf8(bytes.to_vec()).expect("text")
    }

    pub(in crate::source_build) fn cached(sha256: &str) -> CachedFile {
        CachedFile { path: "/cache/x".into(), size: 1, sha256: sha256.repeat(64) }
    }

    fn what(patches: &[String]) -> Compilation<'_> {
        Compilation {
            title: "small 1".to_owned(),
            why: "it has no published wheel",
            file: "small-1.tar.gz",
            archive: cached("a"),
            uv: cached("b"),
            patches,
            environment: "export MAX_JOBS='{jobs}'\n".to_owned(),
        }
    }

    #[test]
    fn compilers_of_another_image_archive_or_uv_have_another_cache() {
        let layers = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        let own = what(&[]);
        let cache = own.compiler_cache(&layers(&["base", "system"]), &[]);
        assert_eq!(cache, what(&[]).compiler_cache(&layers(&["base", "system"]), &[]));
        assert_ne!(cache, own.compiler_cache(&layers(&["base", "another system"]), &[]));
        for other in
            [Compilation { archive: cached("c"), ..what(&[]) }, Compilation { uv: cached("c"), ..what(&[]) }]
        {
            assert_ne!(cache, other.compiler_cache(&layers(&["base", "system"]), &[]));
        }
    }

    #[test]
    fn out_of_memory_message_is_recognized() {
        let said = |line: &str| ran_out_of_memory(&["before".to_owned(), line.to_owned()]);
        assert!(said("#12 3.1 envforge: a compiler ran out of memory"));
        assert!(!said("error: no member named `memory`"));
    }

    #[test]
    fn compilation_is_a_step_above_the_image_and_the_wheel_a_stage_of_its_own() {
        let patches = ["pytorch-2.8-cuda11-driver-entry-point.py".to_owned()];
        let what = what(&patches);
        assert_eq!(text_of(&what, "source/environment"), "export MAX_JOBS='2'\n");
        assert!(!text_of(&what, "source/patches/0-pytorch-2.8-cuda11-driver-entry-point.py").is_empty());
        let text = text_of(&what, "Dockerfile");
        for word in ["# syntax=", "<<", "--link", "ARG ", "http", "secret,"] {
            assert!(!text.contains(word), "{word} in\n{text}");
        }
        insta::assert_snapshot!("builder", text);
    }

    #[test]
    fn unknown_patch_is_an_error() {
        let patches = ["none.py".to_owned()];
        let error = what(&patches).context("x", "y", 1).expect_err("no such patch");
        assert!(error.to_string().contains("none.py"), "{error}");
    }
}
