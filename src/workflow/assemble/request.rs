//! An image that is to be put together, and what came of it.

use crate::base::Base;
use crate::model::image::component::ComponentKind;
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
    /// Digest of its configuration: `sha256:…`; `None`: it is another one than the lock's.
    pub(crate) config: Option<String>,
    /// Its layers above the base, lowest first.
    pub(crate) layers: Vec<LayerRecord>,
}

impl ImageRecords {
    /// Those of the layers that the image without the project has, too.
    #[must_use]
    pub(crate) fn without_project(mut self) -> Self {
        self.layers.retain(|layer| layer.component != ComponentKind::Project.id());
        self.config = None;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_without_the_project_are_those_of_all_other_layers() {
        let record = |kind: ComponentKind| LayerRecord {
            component: kind.id().to_owned(),
            diff_id: format!("sha256:{}", "1".repeat(64)),
            size: None,
            digest: None,
            compressed_size: None,
        };
        let layers =
            [ComponentKind::User, ComponentKind::Project, ComponentKind::Project, ComponentKind::Files];
        let records = ImageRecords { config: Some("c".to_owned()), layers: layers.map(record).to_vec() };
        let records = records.without_project();
        let left: Vec<_> = records.layers.iter().map(|layer| layer.component.as_str()).collect();
        assert_eq!((left, records.config), (vec!["user", "files"], None));
    }
}
