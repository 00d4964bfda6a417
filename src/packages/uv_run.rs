//! A run of uv in a temporary container of the resolver's image.

use std::sync::Arc;

use camino::Utf8Path;

use super::error::PackagesError;
use super::inputs::UV;
use super::request::ResolverContext;
use super::resolver_image::Resolver;
use super::uv::uv_program;
use crate::engine::{ContainerFile, RunOutcome, RunRequest};

/// Exit code of the scripts if the volume does not have uv, which is too large to send each time.
const NO_UV: i64 = 51;

/// What is run.
pub(super) struct UvRun {
    /// The script, a path in the container.
    pub(super) script: &'static str,
    /// Its files.
    pub(super) files: Vec<ContainerFile>,
    /// Whether only indexes of the settings are asked: their answers are kept for every project of the user. An index that a project
    /// names, or a wheel that was built for it, would answer for others too.
    pub(super) shares_cache: bool,
}

/// Runs a script; `uv` is the program, a file of the cache.
pub(super) async fn run_uv(
    tools: &ResolverContext<'_>,
    resolver: &Resolver,
    UvRun { script, mut files, shares_cache }: UvRun,
    uv: &Utf8Path,
) -> Result<RunOutcome, PackagesError> {
    let bind = shares_cache.then(|| format!("{}:/cache", resolver.index_cache));
    let container = |files: &[ContainerFile]| RunRequest {
        image: resolver.image.clone(),
        command: vec!["/bin/sh".to_owned(), script.to_owned()],
        user: Some("0:0".to_owned()),
        files: files.to_vec(),
        binds: bind.clone().into_iter().collect(),
        network: tools.settings.network,
        // Its lines are not reported: they hold addresses.
        report_as: None,
        ..RunRequest::default()
    };
    if shares_cache {
        let outcome = tools.engine.run(container(&files), Arc::clone(&tools.reporter)).await?;
        if outcome.code != NO_UV {
            return Ok(outcome);
        }
    }
    files.push(ContainerFile { path: UV.to_owned(), mode: 0o755, bytes: uv_program(uv)? });
    Ok(tools.engine.run(container(&files), Arc::clone(&tools.reporter)).await?)
}
