//! What a new container is made of.

use crate::model::request;
use crate::shell::labels::Shell;
use crate::shell::{Project, ProjectCode};
use crate::workflow::named::Named;
use crate::workflow::project_trust::Judged;

/// What is started.
pub(crate) struct ContainerSpec<'a> {
    pub(super) args: &'a request::Shell,
    pub(super) project: &'a Project,
    pub(super) image: &'a Named,
    /// What the project's file gives the container of this machine.
    pub(super) judged: &'a Judged,
    /// The project's own code.
    pub(super) code: Option<&'a ProjectCode>,
    pub(super) shells: &'a [Shell],
    pub(super) interactive: bool,
}
