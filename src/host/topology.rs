//! How the GPUs of a machine reach each other, in one line for people. Pure.

use std::collections::BTreeMap;

use serde::Serialize;

/// Two GPUs of this machine and what lies between them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GpuPair {
    /// Their places in `gpus`, the lower first.
    pub between: (usize, usize),
    /// `NVLink` connections that lead from one to the other.
    pub nvlinks: usize,
    /// Whether both have `NVLink` connections that lead to no GPU but to a switch.
    pub switched: bool,
    /// What lies between them on PCI Express; `None`: the driver does not say.
    pub pcie: Option<PcieWay>,
}

/// The farthest part that the way over PCI Express passes, as NVML tells them apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PcieWay {
    /// They share a board.
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
            (0, false, None) => "a way the driver does not tell".to_owned(),
            (0, false, Some(way)) => match way {
                PcieWay::Board => "their board",
                PcieWay::Switch => "one PCIe switch",
                PcieWay::Switches => "several PCIe switches",
                PcieWay::HostBridge => "one PCIe host bridge",
                PcieWay::Node => "PCIe host bridges of one NUMA node",
                PcieWay::System => "PCIe and the link between NUMA nodes",
            }
            .to_owned(),
            (1, ..) => "1 NVLink connection".to_owned(),
            (links, ..) => format!("{links} NVLink connections"),
        }
    }
}

/// `GPUs reach each other over an NVLink switch`, or each way with the pairs that take it; `None`: there are no pairs.
pub(super) fn told(pairs: &[GpuPair]) -> Option<String> {
    let mut ways: BTreeMap<String, Vec<(usize, usize)>> = BTreeMap::new();
    for pair in pairs {
        ways.entry(pair.way()).or_default().push(pair.between);
    }
    if let [(way, _)] = ways.iter().collect::<Vec<_>>()[..] {
        return Some(format!("GPUs reach each other over {way}"));
    }
    // The way most of them take is told without its pairs.
    let most = ways.iter().max_by_key(|(_, pairs)| pairs.len()).map(|(way, _)| way.clone())?;
    let list = |pairs: &[(usize, usize)]| {
        pairs.iter().map(|(one, other)| format!("{one}-{other}")).collect::<Vec<_>>().join(", ")
    };
    let few = ways.iter().filter(|(way, _)| **way != most);
    let few: Vec<_> = few.map(|(way, pairs)| format!("{} over {way}", list(pairs))).collect();
    Some(format!("GPUs reach each other: {}, the others over {most}", few.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(between: (usize, usize), nvlinks: usize, switched: bool, pcie: Option<PcieWay>) -> GpuPair {
        GpuPair { between, nvlinks, switched, pcie }
    }

    #[test]
    fn one_way_for_all_is_told_once_and_several_with_their_pairs() {
        assert_eq!(told(&[]), None);
        let switched: Vec<_> =
            [(0, 1), (0, 2), (1, 2)].map(|both| pair(both, 0, true, Some(PcieWay::System))).into();
        assert_eq!(told(&switched).as_deref(), Some("GPUs reach each other over an NVLink switch"));
        let mut bridged: Vec<_> = [(0, 2), (0, 3), (1, 2), (1, 3)]
            .map(|both| pair(both, 0, false, Some(PcieWay::HostBridge)))
            .into();
        bridged.extend([pair((0, 1), 4, false, None), pair((2, 3), 4, false, None)]);
        assert_eq!(
            told(&bridged).as_deref(),
            Some(
                "GPUs reach each other: 0-1, 2-3 over 4 NVLink connections, the others over one PCIe host bridge"
            )
        );
        assert_eq!(
            told(&[pair((0, 1), 0, false, None)]).as_deref(),
            Some("GPUs reach each other over a way the driver does not tell")
        );
    }
}
