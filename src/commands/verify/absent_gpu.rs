//! `verify --gpu`: whether an image has code for a GPU that is not here.
//!
//! The static checks answer it from the files. Nothing runs on a GPU, so no report is kept and no tag is given: the answer neither proves
//! the image nor withdraws what was proven.

use envforge_protocol::CheckId;

use super::project_source::project_of;
use crate::engine::GpuSelection;
use crate::model::compat::Matrix;
use crate::model::request::{self, Level};
use crate::model::verdict::{Outcome, SkipReason, Verdict, VerdictStatus};
use crate::model::versions::ComputeCapability;
use crate::report::Event;
use crate::workflow::check::{CheckTarget, ProjectSource, check_for};
use crate::workflow::error::CommandError;
use crate::workflow::named::Named;
use crate::workflow::session::Session;
use crate::workflow::target::named_gpu;
use crate::workflow::verify_target::{found, provenance};

/// The compute capabilities of the GPUs that were named.
pub(super) fn named(names: &[String], matrix: &Matrix) -> Result<Vec<ComputeCapability>, CommandError> {
    names.iter().map(|name| named_gpu(name, matrix).map(|gpu| gpu.compute_capability)).collect()
}

/// Checks the files of one image for these GPUs.
pub(super) async fn checked(
    session: &Session<'_>,
    args: &request::Verify,
    gpus: &[ComputeCapability],
    name: &str,
) -> Result<Verdict, CommandError> {
    let Named { reference, image } = found(session, name).await?;
    let provenance = provenance(session, args.lock.as_deref(), &image).await?;
    let project = &match &provenance.lock {
        Some(lock) => project_of(session, args, lock)?,
        None => ProjectSource::Unused,
    };
    let origin = provenance.origin(&image, &session.matrix);
    let (level, none) = (Level::Static, &GpuSelection::None);
    let subject = CheckTarget { image: &image, name: &reference, origin, level, gpus: none, project };
    let mut verdict = check_for(session, &subject, gpus).await?;
    if let Some(text) = answer(&mut verdict, gpus) {
        session.reporter.report(Event::Note { text });
    }
    Ok(verdict)
}

/// The answer, unless it is a failure, which the report names. Code that cannot be read is none that runs there.
fn answer(verdict: &mut Verdict, gpus: &[ComputeCapability]) -> Option<String> {
    let asked: Vec<_> = gpus.iter().map(ToString::to_string).collect();
    let asked = asked.join(", ");
    let check = verdict.checks.iter_mut().find(|check| check.id == CheckId::CodeForTarget.as_str())?;
    match (check.outcome, check.skip) {
        (Outcome::Passed, _) => Some(format!("{} has code for {asked}: {}", verdict.name, check.detail)),
        (Outcome::Skipped, Some(SkipReason::UnknownFormat)) => {
            (check.outcome, check.skip) = (Outcome::Errored, None);
            verdict.verdict = VerdictStatus::Failed;
            None
        }
        (Outcome::Skipped, _) => {
            Some(format!("not known whether {} has code for {asked}: {}", verdict.name, check.detail))
        }
        (Outcome::Failed | Outcome::Errored, _) => None,
    }
}
