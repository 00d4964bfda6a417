//! Where the source of an image's project is, for the project's own checks.

use crate::model::lock::Lock;
use crate::model::request;
use crate::workflow::build_request::CodeRequest;
use crate::workflow::check::{ProjectSource, mounted_project};
use crate::workflow::error::CommandError;
use crate::workflow::project;
use crate::workflow::session::Session;

/// The source of the project here, if the image is that project's.
pub(super) fn project_of(
    session: &Session<'_>,
    args: &request::Verify,
    lock: &Lock,
) -> Result<ProjectSource, CommandError> {
    let Some(name) = lock.added.project.as_ref().filter(|_| !lock.added.checks.is_empty()) else {
        return Ok(ProjectSource::Unused);
    };
    // Whatever is wrong with a project file here, the image was named.
    let Ok(here) = project::read(&args.project, session.settings) else {
        return Ok(ProjectSource::Elsewhere);
    };
    let own = name.strip_prefix(here.name.as_str());
    if !own.is_some_and(|rest| rest.is_empty() || rest.starts_with('-')) {
        return Ok(ProjectSource::Elsewhere);
    }
    mounted_project(&here.folder, &CodeRequest::of(&here.environment), lock, session)
}
