//! The steps that another machine may have finished: which layers of a lock are theirs, and how many they have.

use std::ops::RangeInclusive;

use crate::model::image::component::ComponentKind;
use crate::model::lock::LayerRecord;

/// A step that needs a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SharedStep {
    /// The distribution packages of every image, and the empty environment.
    System,
    /// The distribution packages of the user.
    Apt,
    /// /usr/local/cuda.
    Toolkit,
    /// The byte code of a component.
    ByteCode {
        /// The component.
        kind: ComponentKind,
        /// Its layers of wheels, which lie below.
        below: usize,
    },
    /// The wheel of a source build. It takes the place of a layer and of its tar: its own SHA-256 counts.
    SourceWheel,
}

impl SharedStep {
    /// The layers of this step among those of a lock, lowest first.
    pub(super) fn recorded(self, all: &[LayerRecord]) -> Vec<&LayerRecord> {
        let is_of = |kind: ComponentKind| match self {
            Self::System => matches!(kind, ComponentKind::System | ComponentKind::Environment),
            Self::Apt => kind == ComponentKind::Apt,
            Self::Toolkit => kind == ComponentKind::Toolkit,
            Self::ByteCode { kind: own, .. } => kind == own,
            Self::SourceWheel => kind == ComponentKind::User,
        };
        let below = if let Self::ByteCode { below, .. } = self { below } else { 0 };
        all.iter()
            .filter(|layer| ComponentKind::from_id(&layer.component).is_some_and(is_of))
            .skip(below)
            .collect()
    }

    /// How many layers it has.
    pub(super) fn counts(self) -> RangeInclusive<usize> {
        match self {
            Self::System => 1..=2,
            Self::Apt | Self::Toolkit | Self::SourceWheel => 1..=1,
            // Wheels without a module have none.
            Self::ByteCode { .. } => 0..=1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_of_a_step_are_those_of_its_component_in_their_order() {
        let components = ["system", "environment", "cuda", "cuda", "cuda", "toolkit", "framework", "files"];
        let record = |(number, component): (usize, &&str)| LayerRecord {
            component: (*component).to_owned(),
            diff_id: number.to_string(),
            size: None,
            digest: None,
            compressed_size: None,
        };
        let all: Vec<LayerRecord> = components.iter().enumerate().map(record).collect();
        let of = |step: SharedStep| -> Vec<&str> {
            step.recorded(&all).iter().map(|layer| layer.diff_id.as_str()).collect()
        };
        assert_eq!(of(SharedStep::System), ["0", "1"]);
        assert_eq!(of(SharedStep::Apt), Vec::<&str>::new());
        assert_eq!(of(SharedStep::Toolkit), ["5"]);
        let code = |kind, below| SharedStep::ByteCode { kind, below };
        assert_eq!(of(code(ComponentKind::Cuda, 2)), ["4"]);
        assert_eq!(of(code(ComponentKind::Framework, 1)), Vec::<&str>::new(), "its one layer has wheels");
    }
}
