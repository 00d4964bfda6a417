//! An image that is to be put together, and what came of it.

use crate::base::Base;
use crate::model::image::plan::BuildPlan;
use crate::model::lock::{LayerRecord, Lock};
use crate::workflow::assemble::finished::FinishedLayers;
use crate::workflow::assemble::part_timings::PartClock;
use crate::workflow::build_request::BuildRequest;
use crate::workflow::misfits::BuildMisfits;
use crate::workflow::session::Session;

/// Version of the form that the image of a lock is put together in: raised when the same lock gives another image.
pub(crate) fn layout(lock: &Lock) -> u32 {
    if lock.keeps_login_path() { 3 } else { 2 }
}

/// The layers that a lock records and that count for this version.
pub(crate) fn recorded(lock: &Lock) -> &[LayerRecord] {
    if lock.records.layout == Some(layout(lock)) { &lock.records.layers } else { &[] }
}

/// An image that is to be put together.
#[derive(Clone, Copy)]
pub(crate) struct Assembly<'a> {
    /// The engine, the caches and the settings.
    pub(crate) session: &'a Session<'a>,
    /// Its lock.
    pub(crate) lock: &'a Lock,
    /// Its base in the engine.
    pub(crate) base: &'a Base,
    /// Its layers, files and configuration.
    pub(crate) plan: &'a BuildPlan,
    /// What was asked for.
    pub(crate) wanted: &'a BuildRequest,
    /// The private tag of the result, removed by the caller.
    pub(crate) scratch_tag: &'a str,
    /// Whether layers of earlier builds count as absent.
    pub(crate) no_cache: bool,
    /// Layers that other machines have finished.
    pub(crate) finished: &'a FinishedLayers,
    /// Reports what the wheels show once they are here; `None`: nothing is reported.
    pub(crate) misfits: Option<&'a BuildMisfits>,
    /// Measures the parts of the work.
    pub(crate) times: &'a PartClock,
}

/// The digests of an image that was put together here.
pub(crate) struct ImageRecords {
    /// Digest of its configuration: `sha256:…`.
    pub(crate) config: String,
    /// Its layers above the base, lowest first.
    pub(crate) layers: Vec<LayerRecord>,
}
