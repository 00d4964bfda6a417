//! The project: a directory of the caller that identifies containers and volumes. Pure.

use camino::{Utf8Path, Utf8PathBuf};

use crate::model::image::paths::WORKSPACE;
use crate::model::sha256::sha256_hex;

/// A project directory with its user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Project {
    /// The directory, without links in its path.
    pub(crate) folder: Utf8PathBuf,
    /// The user id.
    pub(crate) uid: u32,
}

impl Project {
    /// Returns the name of its containers: the directory's name and a part of the path's hash.
    pub(crate) fn name(&self) -> String {
        format!("{}-{}", self.folder_name(), &self.key()[..4])
    }

    /// Returns the directory's name in characters that engines accept.
    fn folder_name(&self) -> String {
        let name: String = self.folder.file_name().unwrap_or("shell").chars().map(plain).take(32).collect();
        let name = name.trim_matches(['-', '.', '_']);
        if name.is_empty() { "shell".to_owned() } else { name.to_owned() }
    }

    /// Returns the unique key of the project.
    pub(crate) fn key(&self) -> String {
        sha256_hex(format!("{}\0{}", self.uid, self.folder).as_bytes())[..12].to_owned()
    }

    /// Returns the volume of its home directory, one per Python: environments of one Python fail with another.
    pub(crate) fn home_volume(&self, python: Option<&str>) -> String {
        let python = python.map(|python| format!("-py{python}")).unwrap_or_default();
        format!("envforge-home-{}-{}{python}", self.folder_name(), self.key())
    }

    /// Returns the volume of the home directory for one image alone, by its id: one that was not built here reads and changes no
    /// file of others.
    pub(crate) fn home_volume_of(&self, image: &str) -> String {
        let id = image.rsplit(':').next().unwrap_or_default();
        format!("envforge-home-{}-{}-{}", self.folder_name(), self.key(), id.get(..12).unwrap_or(id))
    }

    /// Returns the volume that replaces the directory on a remote engine.
    pub(crate) fn workspace_volume(&self) -> String {
        format!("envforge-workspace-{}-{}", self.folder_name(), self.key())
    }

    /// Returns the volume of downloaded models, shared by all projects of a user.
    pub(crate) fn models_volume(&self) -> String {
        format!("envforge-models-{}", self.uid)
    }

    /// Returns whether the project is the root directory, where everything would be writable.
    pub(crate) fn is_root(&self) -> bool {
        self.folder == Utf8Path::new("/")
    }
}

/// Returns the directory of a container that the caller is in: `folder` is its /workspace. A caller outside of it is at its root.
pub(crate) fn workdir(folder: &Utf8Path, caller: &Utf8Path) -> String {
    match caller.strip_prefix(folder) {
        Ok(below) if !below.as_str().is_empty() => format!("{WORKSPACE}/{below}"),
        _ => WORKSPACE.to_owned(),
    }
}

fn plain(character: char) -> char {
    if character.is_ascii_alphanumeric() || "._-".contains(character) { character } else { '-' }
}

/// Returns the name, or the first free one with a number.
pub(crate) fn free_name(name: &str, taken: impl Fn(&str) -> bool) -> String {
    let numbered = (2..).map(|number| format!("{name}-{number}"));
    std::iter::once(name.to_owned()).chain(numbered).find(|name| !taken(name)).expect("numbers do not end")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn project(folder: &str, uid: u32) -> Project {
        Project { folder: folder.into(), uid }
    }

    #[test]
    fn key_depends_on_path_and_user() {
        let (a, b, c) = (project("/a/llm", 1), project("/b/llm", 1), project("/a/llm", 2));
        assert!(a.name().starts_with("llm-"), "{}", a.name());
        assert!(a.key() != b.key() && a.key() != c.key() && b.key() != c.key());
        assert_ne!(a.home_volume(Some("3.11")), a.home_volume(Some("3.12")));
        let (one, other) = (format!("sha256:{}", "a".repeat(64)), format!("sha256:{}", "b".repeat(64)));
        assert_ne!(a.home_volume_of(&one), a.home_volume_of(&other));
        assert_ne!(a.home_volume_of(&one), a.home_volume(None));
        assert_eq!(a.models_volume(), b.models_volume());
    }

    #[test]
    fn name_is_valid_for_engines() {
        for folder in ["/home/u/mein Projekt (neu)", "/日本", "/", "/-x-"] {
            let name = project(folder, 0).name();
            assert!(name.starts_with(|c: char| c.is_ascii_alphanumeric()), "{name}");
            assert!(name.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c)), "{name}");
        }
    }

    #[test]
    fn workdir_is_the_callers_directory_below_the_folder() {
        let of = |caller: &str| workdir("/work/llm".into(), caller.into());
        assert_eq!(of("/work/llm"), "/workspace");
        assert_eq!(of("/work/llm/src/deep"), "/workspace/src/deep");
        assert_eq!(of("/work/llm/a b/é"), "/workspace/a b/é");
        for outside in ["/work", "/", "/work/llm-2", "/elsewhere"] {
            assert_eq!(of(outside), "/workspace", "{outside}");
        }
    }

    #[test]
    fn free_name_adds_a_number() {
        assert_eq!(free_name("a", |_| false), "a");
        assert_eq!(free_name("a", |name| name == "a" || name == "a-2"), "a-3");
    }
}
