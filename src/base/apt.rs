//! This machine's own apt sources, the last source of mirrors.
#![expect(clippy::disallowed_methods, reason = "edge: reads /etc/apt")]

use std::sync::{Arc, OnceLock};

use camino::{Utf8Path, Utf8PathBuf};

use super::error::BaseError;

/// Apt sources of this machine, read at most once. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct AptSources(Arc<OnceLock<Vec<(String, String)>>>);

impl AptSources {
    /// Returns path and text of each source below `/etc/apt`; reads them on the first call.
    pub fn texts(&self) -> Result<&[(String, String)], BaseError> {
        self.texts_below("/etc/apt".into())
    }

    fn texts_below(&self, folder: &Utf8Path) -> Result<&[(String, String)], BaseError> {
        if let Some(texts) = self.0.get() {
            return Ok(texts);
        }
        let texts = read_apt_sources(folder)?;
        Ok(self.0.get_or_init(|| texts))
    }
}

/// Returns path and text of the apt sources below a directory (`/etc/apt`); none on a machine without apt.
fn read_apt_sources(folder: &Utf8Path) -> Result<Vec<(String, String)>, BaseError> {
    let mut paths = vec![folder.join("sources.list")];
    if let Ok(entries) = fs_err::read_dir(folder.join("sources.list.d")) {
        paths.extend(entries.flatten().filter_map(|entry| Utf8PathBuf::from_path_buf(entry.path()).ok()));
    }
    // Skips directories of that name, which bind mounts of containers leave.
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
    fn reads_only_apt_sources_in_order() {
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
    fn sources_are_read_once_and_shared_by_clones() {
        let folder = tempfile::tempdir().expect("folder");
        let root = Utf8PathBuf::from_path_buf(folder.path().to_owned()).expect("UTF-8");
        let file = root.join("sources.list");
        let sources = AptSources::default();
        fs_err::write(&file, [0xff]).expect("write");
        sources.texts_below(&root).expect_err("not UTF-8, and not remembered");
        fs_err::write(&file, "first").expect("write");
        assert_eq!(sources.texts_below(&root).expect("read")[0].1, "first");
        fs_err::write(&file, "second").expect("write");
        assert_eq!(sources.clone().texts_below(&root).expect("read")[0].1, "first");
    }

    #[test]
    fn error_names_source_that_is_not_utf8() {
        let folder = tempfile::tempdir().expect("folder");
        let root = Utf8PathBuf::from_path_buf(folder.path().to_owned()).expect("UTF-8");
        fs_err::write(root.join("sources.list"), [0xff, 0xfe]).expect("write");
        let error = read_apt_sources(&root).expect_err("no text");
        assert!(error.to_string().contains("sources.list"), "{error}");
    }
}
