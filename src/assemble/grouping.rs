//! Which wheels share a layer, and the order of layers: what changes least is lowest.
//!
//! Pure. Engines share only a common beginning of layers, so libraries that change with each release of the framework lie above
//! those that change with the CUDA toolkit.

use std::collections::BTreeMap;

use crate::model::lock::{LockedWheel, WheelLayer};

/// Wheels above this size get a layer of their own.
const OWN_LAYER: u64 = 32 << 20;
/// CUDA libraries whose version a framework pins on its own, apart from the toolkit.
const TIED_TO_FRAMEWORK: [&str; 2] = ["nvidia-nccl-", "nvidia-nvshmem-"];

/// The wheels of one layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WheelGroup {
    /// The part of the image that it belongs to: byte code is compiled per part, above its last layer.
    pub layer: WheelLayer,
    /// Places of the wheels in the lock.
    pub wheels: Vec<usize>,
    /// Their size in bytes.
    pub size: u64,
}

impl WheelGroup {
    /// Whether the layer is worth waiting for while another build makes it.
    pub fn is_large(&self) -> bool {
        has_own_layer(self.size)
    }
}

/// Whether a wheel of that size in bytes gets a layer of its own, as long as an image has room for its layers.
pub fn has_own_layer(size: u64) -> bool {
    size > OWN_LAYER
}

/// Returns the layers of some wheels, lowest first, at most `limit` (at least four). `sizes` are those of the wheels.
pub fn group_wheels(wheels: &[LockedWheel], sizes: &[u64], limit: usize) -> Vec<WheelGroup> {
    let mut groups = Vec::new();
    let mut parts = BTreeMap::<(WheelLayer, bool), Vec<usize>>::new();
    for (at, wheel) in wheels.iter().enumerate() {
        let part = part_of(wheel);
        parts.entry((part, !has_own_layer(sizes[at]))).or_default().push(at);
    }
    for ((layer, is_small), mut members) in parts {
        members.sort_by(|one, other| {
            order(layer, &wheels[*one], sizes[*one]).cmp(&order(layer, &wheels[*other], sizes[*other]))
        });
        let size = |members: &[usize]| members.iter().map(|at| sizes[*at]).sum();
        if is_small {
            groups.push(WheelGroup { layer, size: size(&members), wheels: members });
        } else {
            groups.extend(members.into_iter().map(|at| WheelGroup {
                layer,
                size: sizes[at],
                wheels: vec![at],
            }));
        }
    }
    merge(groups, limit)
}

/// The part of the image: a CUDA library that is tied to the framework lies with it.
fn part_of(wheel: &LockedWheel) -> WheelLayer {
    let tied = TIED_TO_FRAMEWORK.iter().any(|name| wheel.name.starts_with(name));
    if wheel.layer == WheelLayer::Cuda && tied { WheelLayer::Framework } else { wheel.layer }
}

/// The order inside a part: by name; in the framework's part CUDA libraries first, then by size, so that the framework itself,
/// which differs in every release, is the last.
fn order(part: WheelLayer, wheel: &LockedWheel, size: u64) -> (WheelLayer, u64, &str) {
    let by_size =
        part == WheelLayer::Framework && wheel.layer == WheelLayer::Framework && has_own_layer(size);
    (wheel.layer, if by_size { size } else { 0 }, &wheel.name)
}

/// Merges neighbours of one part, the smallest first, until there are few enough.
fn merge(mut groups: Vec<WheelGroup>, limit: usize) -> Vec<WheelGroup> {
    while groups.len() > limit {
        let pairs = groups.windows(2).enumerate().filter(|(_, pair)| pair[0].layer == pair[1].layer);
        let Some((at, _)) = pairs.min_by_key(|(_, pair)| pair[0].size + pair[1].size) else { break };
        let upper = groups.remove(at + 1);
        groups[at].size += upper.size;
        groups[at].wheels.extend(upper.wheels);
    }
    groups
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::assemble::samples::locked;

    const MIB: u64 = 1 << 20;

    fn lock(wheels: &[(&str, WheelLayer, u64)]) -> (Vec<LockedWheel>, Vec<u64>) {
        let locked = |(name, layer, _): &(&str, WheelLayer, u64)| locked(name, *layer, name.as_bytes());
        (wheels.iter().map(locked).collect(), wheels.iter().map(|wheel| wheel.2 * MIB).collect())
    }

    fn names(wheels: &[(&str, WheelLayer, u64)], limit: usize) -> Vec<String> {
        let (locked, sizes) = lock(wheels);
        let name = |group: &WheelGroup| {
            let names: Vec<_> = group.wheels.iter().map(|at| locked[*at].name.as_str()).collect();
            assert_eq!(group.size, group.wheels.iter().map(|at| sizes[*at]).sum::<u64>());
            format!("{:?}: {}", group.layer, names.join(" "))
        };
        group_wheels(&locked, &sizes, limit).iter().map(name).collect()
    }

    #[test]
    fn layers_of_a_framework_are_in_the_order_of_change() {
        use WheelLayer::{Cuda, Framework, Stack, User};
        let wheels = [
            ("nvidia-cudnn-cu12", Cuda, 707),
            ("nvidia-cublas-cu12", Cuda, 594),
            ("nvidia-nvtx-cu12", Cuda, 1),
            ("nvidia-nvshmem-cu12", Cuda, 125),
            ("nvidia-nccl-cu12", Cuda, 322),
            ("nvidia-cuda-runtime-cu12", Cuda, 2),
            ("numpy", Framework, 17),
            ("torch", Framework, 888),
            ("sympy", Framework, 6),
            ("triton", Framework, 156),
            ("ipython", Stack, 32),
            ("debugpy", Stack, 3),
            ("large", User, 33),
            ("humanize", User, 1),
        ];
        assert_eq!(
            names(&wheels, 100),
            [
                "Cuda: nvidia-cublas-cu12",
                "Cuda: nvidia-cudnn-cu12",
                "Cuda: nvidia-cuda-runtime-cu12 nvidia-nvtx-cu12",
                "Framework: nvidia-nccl-cu12",
                "Framework: nvidia-nvshmem-cu12",
                "Framework: triton",
                "Framework: torch",
                "Framework: numpy sympy",
                "Stack: debugpy ipython",
                "User: large",
                "User: humanize",
            ]
        );
        assert_eq!(
            names(&wheels, 8),
            [
                "Cuda: nvidia-cublas-cu12",
                "Cuda: nvidia-cudnn-cu12",
                "Cuda: nvidia-cuda-runtime-cu12 nvidia-nvtx-cu12",
                "Framework: nvidia-nccl-cu12 nvidia-nvshmem-cu12 triton",
                "Framework: torch",
                "Framework: numpy sympy",
                "Stack: debugpy ipython",
                "User: large humanize",
            ]
        );
        assert_eq!(names(&[], 100), Vec::<String>::new());
    }

    proptest! {
        #[test]
        fn every_wheel_is_in_one_layer_whatever_their_order(
            sizes in proptest::collection::vec(0..200_u64, 0..300), limit in 4..100_usize, turn in 0..300_usize,
        ) {
            const LAYERS: [WheelLayer; 4] =
                [WheelLayer::Cuda, WheelLayer::Framework, WheelLayer::Stack, WheelLayer::User];
            let name = |at: usize| format!("{}w{at}", if at.is_multiple_of(5) { "nvidia-nccl-" } else { "" });
            let names: Vec<String> = (0..sizes.len()).map(name).collect();
            let mut wheels: Vec<_> = (0..).zip(&sizes).map(|(at, size)| (names[at].as_str(), LAYERS[at % 4], *size)).collect();
            let first = super::tests::names(&wheels, limit);
            prop_assert!(first.len() <= limit);
            prop_assert_eq!(first.iter().map(|group| group.split(' ').count() - 1).sum::<usize>(), sizes.len());
            wheels.rotate_left(turn.min(sizes.len()));
            prop_assert_eq!(super::tests::names(&wheels, limit), first);
        }
    }
}
