//! What a new container is made of.

use crate::engine::Mount;
use crate::model::request;
use crate::shell::Project;
use crate::shell::labels::Shell;
use crate::workflow::named::Named;

/// What is started.
pub(crate) struct ContainerSpec<'a> {
    pub(super) args: &'a request::Shell,
    pub(super) project: &'a Project,
    pub(super) image: &'a Named,
    /// The mounts that the project names, with the paths that were judged.
    pub(super) judged: &'a [Mount],
    pub(super) shells: &'a [Shell],
    pub(super) interactive: bool,
}
