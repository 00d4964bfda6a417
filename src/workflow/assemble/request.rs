//! An image that is to be put together.

use crate::model::image::plan::BuildPlan;
use crate::workflow::build_request::BuildRequest;
use crate::workflow::lock::LockedBuild;
use crate::workflow::session::Session;

/// An image that is to be put together.
#[derive(Clone, Copy)]
pub(crate) struct Assembly<'a> {
    /// The engine, the caches and the settings.
    pub(crate) session: &'a Session<'a>,
    /// Its lock and its base.
    pub(crate) locked: &'a LockedBuild,
    /// Its layers, files and configuration.
    pub(crate) plan: &'a BuildPlan,
    /// What was asked for.
    pub(crate) wanted: &'a BuildRequest,
    /// The private tag of the result, removed by the caller.
    pub(crate) scratch_tag: &'a str,
    /// Whether layers of earlier builds count as absent.
    pub(crate) no_cache: bool,
}
