//! Archive, builder image, compile, export: one wheel, in the cache at the end.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use camino::{Utf8Path, Utf8PathBuf};

use super::archive::archive;
use super::error::SourceError;
use super::export::wheel_of;
use super::recipe::{Recipe, bottom, is_of_the_builder};
use crate::engine::{EngineError, ImageBuildRequest, TemporaryTag};
use crate::model::address::Address;
use crate::model::image::context::ContextEntry;
use crate::model::image::plan::{CachedFile, ContextFiles};
use crate::model::lock::{Lock, LockMetadata, LockedBase, SCHEMA, UserAdditions};
use crate::packages::{
    LocalWheel, PackageRequest, ResolvedPackages, ResolverContext, gather_debs, index_secrets_with,
    resolve_packages,
};
use crate::report::Event;
use crate::source_build::wheel_cache::{cached_wheel, keep};

/// Message of a build step that ran out of memory.
const OUT_OF_MEMORY: &str = "envforge: a compiler ran out of memory";

/// A wheel to build.
#[derive(Debug, Clone, Copy)]
pub struct SourceRequest<'a> {
    /// The source build to run.
    pub recipe: Recipe<'a>,
    /// The base in the engine, by tag.
    pub base_reference: &'a str,
    /// The locked base.
    pub base: &'a LockedBase,
    /// Mirrors of the distribution.
    pub mirrors: &'a [Address],
    /// Addresses of the release archive, tried in order.
    pub archives: &'a [Address],
    /// Number of parallel compilers.
    pub jobs: u64,
}

/// Builds a wheel, or returns the cached one of the same inputs. It is compatible with the stack.
pub async fn build_wheel(
    tools: &ResolverContext<'_>,
    request: &SourceRequest<'_>,
) -> Result<LocalWheel, SourceError> {
    let SourceRequest { recipe, .. } = request;
    let key = recipe.key();
    let _guard = tools.store.lock(&format!("source-{}", &key[..16])).await?;
    if let Some(wheel) = cached_wheel(tools.store, &key)? {
        return Ok(wheel);
    }
    let reporter = || Arc::clone(&tools.reporter);
    let archive = archive(recipe.row, request.archives, tools.store, tools.fetcher, reporter()).await?;
    let (lock, files) = Box::pin(builder(tools, request)).await?;
    let scratch = TemporaryTag::new(tools.engine);
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
/// compilers, `lock` the packages of the builder.
pub(super) async fn compile(
    tools: &ResolverContext<'_>,
    lock: &Lock,
    context: impl Fn(u64) -> Result<Vec<ContextEntry>, SourceError>,
    jobs: u64,
    scratch_tag: &str,
) -> Result<(), SourceError> {
    let mut jobs = jobs.max(1);
    loop {
        let build = ImageBuildRequest {
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
                let text =
                    format!("out of memory with {jobs} parallel compilers: retrying with {}", jobs / 2);
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
    tools: &ResolverContext<'_>,
    request: &SourceRequest<'_>,
) -> Result<(Lock, ContextFiles), SourceError> {
    let SourceRequest { recipe, base_reference, base, mirrors, .. } = *request;
    let stack = recipe.builder();
    let added = UserAdditions { apt: recipe.row.build_packages.clone(), ..UserAdditions::default() };
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
    let found: ResolvedPackages = resolve_packages(tools, &wanted).await?;
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
        records: LockMetadata::default(),
        stack,
    };
    gather_debs(&lock, tools.store, tools.fetcher, mirrors, Arc::clone(&tools.reporter)).await?;
    let paths = |debs: &[crate::model::lock::LockedDeb]| -> Result<Vec<Utf8PathBuf>, SourceError> {
        debs.iter().map(|deb| Ok(tools.store.blob_path(&deb.sha256)?)).collect()
    };
    let files = ContextFiles {
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
pub(super) async fn taken(tools: &ResolverContext<'_>, image: &str) -> Result<LocalWheel, SourceError> {
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
    fn out_of_memory_message_is_recognized() {
        let said = |line: &str| ran_out_of_memory(&["before".to_owned(), line.to_owned()]);
        assert!(said("#12 3.1 envforge: a compiler ran out of memory"));
        assert!(!said("error: no member named `memory`"));
    }
}
