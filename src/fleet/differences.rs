//! What a node has and most do not: driver, VBIOS, GPUs, kernel, agent.

use std::collections::BTreeMap;

use super::row::NodeFacts;

/// Fewer nodes have no majority that means anything.
const LEAST: usize = 3;

/// A fact that nodes are compared by.
type Fact = fn(&NodeFacts) -> Option<String>;

const FACTS: [(&str, Fact); 6] = [
    ("GPUs", |facts| facts.gpu_count.map(|count| count.to_string())),
    ("GPU", |facts| facts.gpu_model.clone()),
    ("driver", |facts| facts.driver.clone()),
    ("VBIOS", NodeFacts::vbios),
    ("kernel", |facts| facts.kernel.clone()),
    ("agent", |facts| facts.agent.as_ref().map(|hash| hash.chars().take(12).collect())),
];

/// A difference of one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Difference {
    /// The node's number.
    pub(super) node: usize,
    /// In words.
    pub(super) text: String,
    /// Whether GPUs are missing.
    pub(super) lacks_gpus: bool,
}

/// Returns what each node has that more than half of all do not.
pub(super) fn differences(nodes: &[&NodeFacts]) -> Vec<Difference> {
    let mut found = Vec::new();
    for (name, fact) in FACTS {
        // Versions of the VBIOS are those of a model.
        let mut groups: BTreeMap<Option<&str>, Vec<(usize, String)>> = BTreeMap::new();
        for (at, node) in nodes.iter().enumerate() {
            let group = (name == "VBIOS").then(|| node.gpu_model.as_deref().unwrap_or_default());
            if let Some(value) = fact(node) {
                groups.entry(group).or_default().push((at, value));
            }
        }
        for values in groups.into_values().filter(|values| values.len() >= LEAST) {
            let Some(common) = majority(&values) else { continue };
            for (node, value) in values.iter().filter(|(_, value)| *value != common) {
                let lacks_gpus = name == "GPUs" && number(value) < number(&common);
                let text = format!("{name} {value}, most have {common}");
                found.push(Difference { node: *node, text, lacks_gpus });
            }
        }
    }
    found
}

fn number(text: &str) -> usize {
    text.parse().unwrap_or_default()
}

/// The value of more than half.
fn majority(values: &[(usize, String)]) -> Option<String> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for (_, value) in values {
        *counts.entry(value).or_default() += 1;
    }
    let (value, count) = counts.into_iter().max_by_key(|(_, count)| *count)?;
    (count * 2 > values.len()).then(|| value.to_owned())
}
