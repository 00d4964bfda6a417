//! A one-line description of the connections between GPUs. Pure.

use std::collections::BTreeMap;

use serde::Serialize;

/// A pair of GPUs and its connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GpuPair {
    /// Their indices in `gpus`, the lower first.
    pub between: (usize, usize),
    /// The number of direct `NVLink` connections.
    pub nvlinks: usize,
    /// Whether both have `NVLink` connections to a switch.
    pub switched: bool,
    /// The PCI Express path between them, if known.
    pub pcie: Option<PciePath>,
}

/// The farthest part of a PCI Express path, in NVML's terms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PciePath {
    /// A shared board.
    Board,
    /// One `PCIe` switch.
    Switch,
    /// Several `PCIe` switches, no host bridge.
    Switches,
    /// A host bridge.
    HostBridge,
    /// Several host bridges of one NUMA node.
    Node,
    /// The connection between NUMA nodes.
    System,
}

impl GpuPair {
    fn way(&self) -> String {
        match (self.nvlinks, self.switched, self.pcie) {
            (0, true, _) => "an NVLink switch".to_owned(),
            (0, false, None) => "an unknown connection".to_owned(),
            (0, false, Some(way)) => match way {
                PciePath::Board => "their board",
                PciePath::Switch => "one PCIe switch",
                PciePath::Switches => "several PCIe switches",
                PciePath::HostBridge => "one PCIe host bridge",
                PciePath::Node => "PCIe host bridges of one NUMA node",
                PciePath::System => "PCIe and the link between NUMA nodes",
            }
            .to_owned(),
            (1, ..) => "1 NVLink connection".to_owned(),
            (links, ..) => format!("{links} NVLink connections"),
        }
    }
}

/// Describes the connections: `GPUs are connected over an NVLink switch`, or each connection with its pairs.
pub(super) fn describe(pairs: &[GpuPair]) -> Option<String> {
    let mut ways: BTreeMap<String, Vec<(usize, usize)>> = BTreeMap::new();
    for pair in pairs {
        ways.entry(pair.way()).or_default().push(pair.between);
    }
    if let [(way, _)] = ways.iter().collect::<Vec<_>>()[..] {
        return Some(format!("GPUs are connected over {way}"));
    }
    // The most common connection is listed without its pairs.
    let most = ways.iter().max_by_key(|(_, pairs)| pairs.len()).map(|(way, _)| way.clone())?;
    let list = |pairs: &[(usize, usize)]| {
        pairs.iter().map(|(one, other)| format!("{one}-{other}")).collect::<Vec<_>>().join(", ")
    };
    let few = ways.iter().filter(|(way, _)| **way != most);
    let few: Vec<_> = few.map(|(way, pairs)| format!("{} over {way}", list(pairs))).collect();
    Some(format!("GPUs are connected: {}, the others over {most}", few.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(between: (usize, usize), nvlinks: usize, switched: bool, pcie: Option<PciePath>) -> GpuPair {
        GpuPair { between, nvlinks, switched, pcie }
    }

    #[test]
    fn describe_lists_pairs_of_different_connections() {
        assert_eq!(describe(&[]), None);
        let switched: Vec<_> =
            [(0, 1), (0, 2), (1, 2)].map(|both| pair(both, 0, true, Some(PciePath::System))).into();
        assert_eq!(describe(&switched).as_deref(), Some("GPUs are connected over an NVLink switch"));
        let mut bridged: Vec<_> = [(0, 2), (0, 3), (1, 2), (1, 3)]
            .map(|both| pair(both, 0, false, Some(PciePath::HostBridge)))
            .into();
        bridged.extend([pair((0, 1), 4, false, None), pair((2, 3), 4, false, None)]);
        assert_eq!(
            describe(&bridged).as_deref(),
            Some(
                "GPUs are connected: 0-1, 2-3 over 4 NVLink connections, the others over one PCIe host bridge"
            )
        );
        assert_eq!(
            describe(&[pair((0, 1), 0, false, None)]).as_deref(),
            Some("GPUs are connected over an unknown connection")
        );
    }
}
