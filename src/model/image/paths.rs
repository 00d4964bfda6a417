//! Paths of a container that both images and shells rely on.

/// The home directory of every user.
pub(crate) const HOME: &str = "/home/dev";
/// The directory of the project.
pub(crate) const WORKSPACE: &str = "/workspace";
/// The directory of downloaded models.
pub(crate) const MODELS: &str = "/home/dev/.cache/models";
