//! Commands of a project: steps of a Dockerfile above the assembled image, with the secrets they name and no other.

use std::fmt::Write as _;
use std::sync::Arc;

use crate::engine::{ImageBuildRequest, ImageInfo, Secret};
use crate::model::image::context::ContextEntry;
use crate::model::image::plan::BuildPlan;
use crate::workflow::assemble::request::Assembly;
use crate::workflow::error::CommandError;
use crate::workflow::session::Session;

/// Runs the commands above the image of that tag.
pub(super) async fn run_steps(
    session: &Session<'_>,
    plan: &BuildPlan,
    below: &str,
    secrets: Vec<Secret>,
    how: &Assembly<'_>,
) -> Result<ImageInfo, CommandError> {
    let mut dockerfile = format!("FROM {below}\n");
    for run in &plan.image.runs {
        let _ = writeln!(dockerfile, "{}", run.instruction);
    }
    let request = ImageBuildRequest {
        context: vec![ContextEntry::text("Dockerfile", dockerfile)],
        secrets,
        build_args: session.settings.network.proxies.clone(),
        labels: std::collections::BTreeMap::new(),
        network: session.network,
        no_cache: how.no_cache,
        scratch_tag: how.scratch_tag.to_owned(),
    };
    Ok(session.engine.build(request, Arc::clone(&session.reporter)).await?)
}
