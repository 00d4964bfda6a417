//! Whether a word that a person typed was meant as the path of a file.

/// Files that no image, spec or message is named like.
const ENDS: [&str; 8] = [".lock", ".toml", ".txt", ".yml", ".yaml", ".tar", ".sqsh", ".sif"];

/// Whether a name can only be a path: no image or spec begins so. `./models` is a folder where `models` is an image.
pub(crate) fn is_path(name: &str) -> bool {
    name == "." || name == ".." || ["/", "./", "../"].iter().any(|start| name.starts_with(start))
}

/// Whether a word that was to name something else was probably meant as a path.
pub(crate) fn looks_like_path(word: &str) -> bool {
    is_path(word) || word.starts_with("~/") || ENDS.iter().any(|end| word.ends_with(end))
}
