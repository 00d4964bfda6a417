//! The parts of a spec behind its name and version: flavour, CUDA and Python.

use super::flavour::Flavour;

/// The names of the flavours.
pub(super) const FLAVOURS: [(&str, Flavour); 2] = [("runtime", Flavour::Runtime), ("devel", Flavour::Devel)];

/// Whether a part can only be a suffix: without a `:` the name ends before it.
pub(super) fn is_suffix(text: &str) -> bool {
    let numbered = |prefix: &str| {
        text.strip_prefix(prefix).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    flavour(text).is_some() || ["cu", "cuda", "py"].into_iter().any(numbered)
}

/// The flavour of that name.
pub(super) fn flavour(text: &str) -> Option<Flavour> {
    FLAVOURS.iter().find(|(word, _)| *word == text).map(|(_, flavour)| *flavour)
}
