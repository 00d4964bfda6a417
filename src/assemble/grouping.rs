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

/// Returns the layers of some wheels, lowest first, at most `limit` (at least four). `sizes` are those of the wheels.
pub fn group_wheels(wheels: &[LockedWheel], sizes: &[u64], limit: usize) -> Vec<WheelGroup> {
    let mut groups = Vec::new();
    let mut parts = BTreeMap::<(WheelLayer, bool), Vec<usize>>::new();
    for (at, wheel) in wheels.iter().enumerate() {
        let part = part_of(wheel);
        parts.entry((part, sizes[at] <= OWN_LAYER)).or_default().push(at);
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
    let by_size = part == WheelLayer::Framework && wheel.layer == WheelLayer::Framework && size > OWN_LAYER;
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
