//! The patches that come with envforge.

/// Built-in patches by the names used in rows.
const PATCHES: [(&str, &str); 3] = [
    ("extension-cpp-standard.py", include_str!("../../templates/patches/extension-cpp-standard.py")),
    ("extension-gpu-targets.py", include_str!("../../templates/patches/extension-gpu-targets.py")),
    (
        "pytorch-2.8-cuda11-driver-entry-point.py",
        include_str!("../../templates/patches/pytorch-2.8-cuda11-driver-entry-point.py"),
    ),
];

/// Returns the text of a built-in patch.
pub(super) fn patch_text(name: &str) -> Option<&'static str> {
    PATCHES.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}
