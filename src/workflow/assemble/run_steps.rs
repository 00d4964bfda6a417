//! Commands of a project: steps of a Dockerfile above the assembled image, with the secrets they name and no other.

use std::fmt::Write as _;
use std::sync::Arc;

use crate::engine::{ImageBuildRequest, ImageInfo, Secret};
use crate::model::given::Receiver;
use crate::model::image::context::ContextEntry;
use crate::workflow::assemble::request::Assembly;
use crate::workflow::error::CommandError;

/// Runs the commands above the image of that tag.
pub(super) async fn run_steps(
    image: Assembly<'_>,
    below: &str,
    secrets: Vec<Secret>,
) -> Result<ImageInfo, CommandError> {
    let Assembly { session, plan, scratch_tag, no_cache, .. } = image;
    let mut dockerfile = format!("FROM {below}\n");
    for run in &plan.image.runs {
        let _ = writeln!(dockerfile, "{}", run.instruction);
    }
    let request = ImageBuildRequest {
        context: vec![ContextEntry::text("Dockerfile", dockerfile)],
        context_secret: session.store.context_secret()?,
        secrets,
        // The user was asked before the build began: see `project_trust`.
        build_args: Receiver::Run.proxies(&session.settings.network.proxies, true),
        labels: std::collections::BTreeMap::new(),
        network: session.network,
        no_cache,
        scratch_tag: scratch_tag.to_owned(),
    };
    Ok(session.engine.build(request, Arc::clone(&session.reporter)).await?)
}
