//! Links, headings and anchors of a Markdown document.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

/// A document and its path from the repository.
pub(super) struct Document {
    /// The path.
    pub(super) path: PathBuf,
    /// The text.
    pub(super) text: String,
}

impl Document {
    /// The lines outside of fences.
    fn prose(&self) -> impl Iterator<Item = &str> {
        let mut is_code = false;
        self.text.lines().filter(move |line| {
            let is_fence = line.trim_start().starts_with("```");
            is_code ^= is_fence;
            !is_code && !is_fence
        })
    }

    /// The targets of its links.
    pub(super) fn links(&self) -> Vec<String> {
        let text = without_code(&self.prose().collect::<Vec<_>>().join("\n"));
        let after = text.split("](").skip(1);
        after.filter_map(|rest| Some(rest.split_once(')')?.0.to_owned())).collect()
    }

    /// Its headings with their level.
    pub(super) fn headings(&self) -> impl Iterator<Item = (usize, &str)> {
        self.prose().filter_map(|line| {
            let level = line.len() - line.trim_start_matches('#').len();
            Some((level, line[level..].strip_prefix(' ')?)).filter(|_| level > 0)
        })
    }

    /// The anchors of its headings, as GitHub and mdBook make them.
    pub(super) fn anchors(&self) -> BTreeSet<String> {
        let mut all = BTreeSet::new();
        for (_, heading) in self.headings() {
            let anchor = slug(heading);
            let free = (1..1000).map(|n| format!("{anchor}-{n}")).find(|name| !all.contains(name));
            all.insert(if all.contains(&anchor) { free.expect("some number is free") } else { anchor });
        }
        all
    }
}

/// Returns the text without its code spans.
fn without_code(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(start) = rest.find('`') {
        let ticks = rest[start..].len() - rest[start..].trim_start_matches('`').len();
        let (fence, after) = rest[start..].split_at(ticks);
        out.push_str(&rest[..start]);
        rest = after.find(fence).map_or("", |end| &after[end + ticks..]);
    }
    out + rest
}

/// Returns the anchor of a heading.
fn slug(heading: &str) -> String {
    let kept = heading.trim().to_lowercase();
    let kept = kept.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// Returns the file that a relative link of a document refers to, from the repository.
pub(super) fn joined(from: &Path, link: &str) -> PathBuf {
    let mut path = PathBuf::new();
    for part in from.parent().unwrap_or(Path::new("")).join(link).components() {
        match part {
            Component::ParentDir => drop(path.pop()),
            Component::CurDir => {}
            part => path.push(part),
        }
    }
    path
}
