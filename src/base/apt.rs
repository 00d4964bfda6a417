//! Reads this machine's own apt sources, the last place a mirror is looked for.
#![expect(clippy::disallowed_methods, reason = "edge: reads /etc/apt")]

use camino::{Utf8Path, Utf8PathBuf};

use super::error::BaseError;

/// The texts of the apt sources below a folder (`/etc/apt`), by path. A machine without apt has none.
pub fn read_apt_sources(folder: &Utf8Path) -> Result<Vec<(String, String)>, BaseError> {
    let mut paths = vec![folder.join("sources.list")];
    if let Ok(entries) = fs_err::read_dir(folder.join("sources.list.d")) {
        paths.extend(entries.flatten().filter_map(|entry| Utf8PathBuf::from_path_buf(entry.path()).ok()));
    }
    // A folder of that name is none of apt's: bind mounts of a container leave such.
    paths.retain(|path| matches!(path.extension(), Some("list" | "sources")) && !path.is_dir());
    paths.sort_unstable();
    let mut texts = Vec::new();
    for path in paths {
        match fs_err::read_to_string(&path) {
            Ok(text) => texts.push((path.into_string(), text)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(cause) => return Err(BaseError::Sources { path, cause }),
        }
    }
    Ok(texts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_read_in_order_and_other_files_are_not() {
        let folder = tempfile::tempdir().expect("folder");
        let root = Utf8PathBuf::from_path_buf(folder.path().to_owned()).expect("UTF-8");
        assert_eq!(read_apt_sources(&root).expect("none"), []);
        fs_err::create_dir_all(root.join("sources.list.d")).expect("folder");
        for (name, text) in [("b.sources", "B"), ("a.list", "A"), ("a.list.save", "old")] {
            fs_err::write(root.join("sources.list.d").join(name), text).expect("write");
        }
        fs_err::create_dir_all(root.join("sources.list.d/folder.list")).expect("folder");
        fs_err::write(root.join("sources.list"), "main").expect("write");
        let texts: Vec<_> =
            read_apt_sources(&root).expect("read").into_iter().map(|(_, text)| text).collect();
        assert_eq!(texts, ["main", "A", "B"]);
    }

    #[test]
    fn a_file_that_is_no_text_is_named() {
        let folder = tempfile::tempdir().expect("folder");
        let root = Utf8PathBuf::from_path_buf(folder.path().to_owned()).expect("UTF-8");
        fs_err::write(root.join("sources.list"), [0xff, 0xfe]).expect("write");
        let error = read_apt_sources(&root).expect_err("no text");
        assert!(error.to_string().contains("sources.list"), "{error}");
    }
}
