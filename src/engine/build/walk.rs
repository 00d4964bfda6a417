//! The order of a build context. Pure.

use std::collections::BTreeMap;

use crate::model::image::context::ContextEntry;

/// One entry of the context in walk order; `None` is a directory.
#[derive(Debug, Clone)]
pub(super) struct Item {
    pub(super) path: String,
    pub(super) entry: Option<ContextEntry>,
}

/// Returns entries with their directories, parents first, in walk order: `a/b` comes before `a.txt`.
pub(super) fn walk(entries: &[ContextEntry]) -> Vec<Item> {
    let mut items: BTreeMap<Vec<String>, Option<ContextEntry>> = BTreeMap::new();
    for entry in entries {
        let parts: Vec<_> = entry.path.split('/').map(str::to_owned).collect();
        for depth in 1..parts.len() {
            items.entry(parts[..depth].to_vec()).or_insert(None);
        }
        items.insert(parts, Some(entry.clone()));
    }
    items.into_iter().map(|(parts, entry)| Item { path: parts.join("/"), entry }).collect()
}
