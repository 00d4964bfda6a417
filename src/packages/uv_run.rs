//! A run of uv in a temporary container of the resolver's image.

use std::sync::Arc;

use camino::Utf8Path;

use super::error::PackagesError;
use super::inputs::UV;
use super::request::ResolverContext;
use super::resolver_image::Resolver;
use super::script_file::command;
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
        command: command(script),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::sha256::sha256_hex;
    use crate::packages::settings::PackageSettings;
    use crate::packages::test_downloads::TestDownloads;
    use crate::packages::test_engine::FakeEngine;
    use crate::report::NullReporter;

    /// Requests of a run on an engine whose containers end with that code.
    async fn asked(code: i64, shares_cache: bool) -> Vec<RunRequest> {
        let downloads = TestDownloads::start().await;
        let uv = downloads.store.put(&sha256_hex(b"uv"), b"uv").expect("stored");
        let outcome = RunOutcome { code, ..RunOutcome::default() };
        let (engine, settings) =
            (FakeEngine { outcome, ..FakeEngine::default() }, PackageSettings::default());
        let tools = ResolverContext {
            engine: &engine,
            image: &Resolver::sample(),
            store: &downloads.store,
            fetcher: &downloads.fetcher,
            settings: &settings,
            reporter: Arc::new(NullReporter),
        };
        let run = UvRun { script: "/envforge/x.sh", files: Vec::new(), shares_cache };
        run_uv(&tools, &Resolver::sample(), run, &uv).await.expect("an outcome");
        engine.asked.into_inner().expect("no test panics while it holds this")
    }

    #[tokio::test]
    async fn shared_cache_is_of_the_settings_indexes_alone() {
        let shared = asked(0, true).await;
        assert_eq!(shared.len(), 1);
        assert_eq!(
            (shared[0].binds.as_slice(), shared[0].files.len()),
            (["index:/cache".to_owned()].as_slice(), 0)
        );
        let own = asked(0, false).await;
        assert_eq!(own.len(), 1);
        assert!(own[0].binds.is_empty(), "what a project's index says ends with the run");
        assert_eq!(own[0].files[0].path, UV);
        for run in shared.iter().chain(&own) {
            assert_eq!(run.image, "resolver");
        }
    }

    #[tokio::test]
    async fn uv_is_sent_where_the_volume_lacks_it() {
        let runs = asked(NO_UV, true).await;
        assert_eq!(runs.len(), 2);
        assert!(runs[0].files.is_empty());
        assert_eq!((runs[1].files[0].path.as_str(), runs[1].files[0].mode), (UV, 0o755));
    }
}
