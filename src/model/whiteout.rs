//! Names that mean something in a layer: an entry `.wh.x` deletes `x` of the layers below instead of being a file.
//!
//! Packages and projects give files, they delete none: whoever reads their names refuses these.

/// Why such a name is refused.
pub(crate) const DELETES: &str = "a name that starts with `.wh.` deletes files of an image";

const PREFIX: &[u8] = b".wh.";

/// Whether a part of a path is such a name.
pub(crate) fn deletes(path: &[u8]) -> bool {
    path.split(|byte| *byte == b'/').any(|part| part.starts_with(PREFIX))
}

/// Returns the path that an entry of a layer deletes; of `a/.wh..wh..opq`, which empties `a`, that is `a`.
pub(crate) fn deleted(path: &[u8]) -> Option<Vec<u8>> {
    let start = path.iter().rposition(|byte| *byte == b'/').map_or(0, |at| at + 1);
    let (folder, name) = path.split_at(start);
    let name = name.strip_prefix(PREFIX)?;
    let folder = folder.strip_suffix(b"/").unwrap_or(folder);
    Some(match name {
        b".wh..opq" => folder.to_owned(),
        name if folder.is_empty() => name.to_owned(),
        name => [folder, b"/", name].concat(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_of_a_path_counts() {
        for name in [".wh.a", "a/.wh.b", ".wh.a/b", "a/.wh..wh..opq", ".wh.", "./a/.wh.b/"] {
            assert!(deletes(name.as_bytes()), "{name}");
        }
        for name in ["a.wh.b", ".wh", "wh.a", ".WH.a", "a/.whx", ".white/a", ""] {
            assert!(!deletes(name.as_bytes()), "{name}");
        }
    }

    #[test]
    fn deleted_path_is_next_to_its_mark() {
        let of = |path: &str| deleted(path.as_bytes()).map(|path| String::from_utf8(path).expect("text"));
        for (path, expected) in [
            (".wh.opt", Some("opt")),
            ("opt/.wh.env", Some("opt/env")),
            ("opt/.wh..wh..opq", Some("opt")),
            (".wh..wh..opq", Some("")),
            ("opt/env", None),
            (".wh.opt/env", None),
        ] {
            assert_eq!(of(path).as_deref(), expected, "{path}");
        }
    }
}
