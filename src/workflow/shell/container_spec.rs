//! What a new container is made of.

use crate::model::request;
use crate::shell::Project;
use crate::shell::labels::Shell;
use crate::workflow::named::Named;

/// What is started.
pub(crate) struct ContainerSpec<'a> {
    pub(super) args: &'a request::Shell,
    pub(super) project: &'a Project,
    pub(super) image: &'a Named,
    pub(super) shells: &'a [Shell],
    pub(super) interactive: bool,
}
