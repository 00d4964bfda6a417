//! Archive, builder image, compile, export: one wheel, in the cache at the end.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use camino::{Utf8Path, Utf8PathBuf};

use super::archive::archive;
use super::error::SourceError;
use super::export::wheel_of;
use super::kept::{keep, kept_wheel};
use super::recipe::{Recipe, bottom, is_of_the_builder};
use crate::address::Address;
use crate::context::ContextEntry;
use crate::engine::{BuildRequest, EngineError, PassingTag};
use crate::lock::{Added, Lock, LockedBase, Records, SCHEMA};
use crate::packages::{
    LocalWheel, PackageRequest, PackageTools, Resolved, gather_debs, index_secrets_with, resolve_packages,
};
use crate::plan::{CachedFile, Files};
use crate::report::Event;

/// What a step of the build says when the machine's memory was too small.
const OUT_OF_MEMORY: &str = "envforge: a compiler ran out of memory";

/// A wheel to build.
#[derive(Debug, Clone, Copy)]
pub struct SourceRequest<'a> {
    /// What it is built from.
    pub recipe: Recipe<'a>,
    /// The base in the engine, by tag.
    pub base_reference: &'a str,
    /// The base as a lock has it.
    pub base: &'a LockedBase,
    /// Mirrors of the distribution.
    pub mirrors: &'a [Address],
    /// Where the release archive may lie, in the order they are asked.
    pub archives: &'a [Address],
    /// How many compilers run at a time.
    pub jobs: u64,
}

/// Builds a wheel, or gives the one that was built of the same before. It fits the stack and lies in the cache.
pub async fn build_wheel(
    tools: &PackageTools<'_>,
    request: &SourceRequest<'_>,
) -> Result<LocalWheel, SourceError> {
    let SourceRequest { recipe, .. } = request;
    let key = recipe.key();
    let _guard = tools.store.lock(&format!("source-{}", &key[..16])).await?;
    if let Some(wheel) = kept_wheel(tools.store, &key)? {
        return Ok(wheel);
    }
    let reporter = || Arc::clone(&tools.reporter);
    let archive = archive(recipe.row, request.archives, tools.store, tools.fetcher, reporter()).await?;
    let (lock, files) = Box::pin(builder(tools, request)).await?;
    let scratch = PassingTag::new(tools.engine);
    let archive = cached(archive)?;
    let context = |jobs| recipe.context(&lock, files.clone(), archive.clone(), jobs);
    compile(tools, &lock, context, request.jobs, scratch.name()).await?;
    let wheel = taken(tools, scratch.name()).await?;
    scratch.remove().await?;
    wheel.check(recipe.stack)?;
    keep(tools.store, &key, &wheel)?;
    Ok(wheel)
}

/// Compiles, with half as many compilers each time the memory was too small. `context` is that of the builder for a number of
/// compilers, `lock` what the builder is made of.
pub(super) async fn compile(
    tools: &PackageTools<'_>,
    lock: &Lock,
    context: impl Fn(u64) -> Result<Vec<ContextEntry>, SourceError>,
    jobs: u64,
    scratch_tag: &str,
) -> Result<(), SourceError> {
    let mut jobs = jobs.max(1);
    loop {
        let build = BuildRequest {
            context: context(jobs)?,
            secrets: index_secrets_with(&tools.settings.index, lock, &tools.settings.index.further),
            build_args: tools.settings.index.proxies.0.clone(),
            labels: BTreeMap::new(),
            network: tools.settings.network,
            no_cache: false,
            scratch_tag: scratch_tag.to_owned(),
        };
        match tools.engine.build(build, Arc::clone(&tools.reporter)).await {
            Ok(_) => return Ok(()),
            Err(EngineError::BuildFailed { output, .. }) if ran_out_of_memory(&output) => {
                if jobs == 1 {
                    return Err(SourceError::OutOfMemory);
                }
                let text = format!(
                    "the memory was too small for {jobs} compilers at a time: again with {}",
                    jobs / 2
                );
                tools.reporter.report(Event::Note { text });
                jobs /= 2;
            }
            Err(error) => return Err(error.into()),
        }
    }
}

fn ran_out_of_memory(output: &[String]) -> bool {
    output.iter().any(|line| line.contains(OUT_OF_MEMORY))
}

/// The builder's lock, and its files in the cache.
async fn builder(
    tools: &PackageTools<'_>,
    request: &SourceRequest<'_>,
) -> Result<(Lock, Files), SourceError> {
    let SourceRequest { recipe, base_reference, base, mirrors, .. } = *request;
    let stack = recipe.builder();
    let added = Added { apt: recipe.row.build_packages.clone(), ..Added::default() };
    let wanted = PackageRequest {
        base_reference,
        base,
        stack: &stack,
        added: &added,
        previous: None,
        fresh: &[],
        local: &[],
        built: &[],
    };
    let found: Resolved = resolve_packages(tools, &wanted).await?;
    let lock = Lock {
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
        records: Records::default(),
        stack,
    };
    gather_debs(&lock, tools.store, tools.fetcher, mirrors, Arc::clone(&tools.reporter)).await?;
    let paths = |debs: &[crate::lock::LockedDeb]| -> Result<Vec<Utf8PathBuf>, SourceError> {
        debs.iter().map(|deb| Ok(tools.store.blob_path(&deb.sha256)?)).collect()
    };
    let files = Files {
        bottom: bottom(base_reference),
        debs: paths(&lock.system)?,
        unpacked: paths(&lock.unpacked)?,
        apt: paths(&lock.apt)?,
        copies: Vec::new(),
        wheels: Vec::new(),
        local: Vec::new(),
        uv: cached(found.uv_binary)?,
        agent: Bytes::new(),
    };
    Ok((lock, files))
}

/// The wheel of a finished image, in the cache.
pub(super) async fn taken(tools: &PackageTools<'_>, image: &str) -> Result<LocalWheel, SourceError> {
    let folder = tools.store.temp_folder()?;
    let root = Utf8Path::from_path(folder.path()).expect("the cache's path is UTF-8");
    let archive = root.join("image.tar");
    tools.engine.save(image, archive.clone()).await?;
    let wheel = wheel_of(archive.as_std_path(), root)?;
    Ok(LocalWheel::take(&wheel, tools.store)?)
}

/// A file of the cache, which is named by its hash.
fn cached(path: Utf8PathBuf) -> Result<CachedFile, SourceError> {
    let size = fs_err::metadata(&path)?.len();
    let sha256 = path.file_name().unwrap_or_default().to_owned();
    Ok(CachedFile { path, size, sha256 })
}

#[cfg(test)]
mod tests {
    use super::ran_out_of_memory;

    #[test]
    fn what_a_step_says_of_its_memory_is_recognised() {
        let said = |line: &str| ran_out_of_memory(&["before".to_owned(), line.to_owned()]);
        assert!(said("#12 3.1 envforge: a compiler ran out of memory"));
        assert!(!said("error: no member named `memory`"));
    }
}
