//! The project: a folder of the caller's, by which containers and volumes are found again.
//!
//! Pure.

use camino::{Utf8Path, Utf8PathBuf};

use crate::sha256::sha256_hex;

/// A folder with the user who works in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Project {
    /// The folder, with no link in its path.
    pub(crate) folder: Utf8PathBuf,
    /// The caller.
    pub(crate) uid: u32,
}

impl Project {
    /// The name its containers have: the folder's, and a bit of its path's hash where that alone would not do.
    pub(crate) fn name(&self) -> String {
        format!("{}-{}", self.folder_name(), &self.key()[..4])
    }

    /// The folder's name in letters that an engine takes.
    fn folder_name(&self) -> String {
        let name: String = self.folder.file_name().unwrap_or("shell").chars().map(plain).take(32).collect();
        let name = name.trim_matches(['-', '.', '_']);
        if name.is_empty() { "shell".to_owned() } else { name.to_owned() }
    }

    /// What tells it from all other projects of the engine.
    pub(crate) fn key(&self) -> String {
        sha256_hex(format!("{}\0{}", self.uid, self.folder).as_bytes())[..12].to_owned()
    }

    /// The volume of its home folder. Environments made by one Python do not work with another, so each has its own.
    pub(crate) fn home_volume(&self, python: Option<&str>) -> String {
        let python = python.map(|python| format!("-py{python}")).unwrap_or_default();
        format!("envforge-home-{}-{}{python}", self.folder_name(), self.key())
    }

    /// The volume that stands for the folder on an engine that cannot see it.
    pub(crate) fn workspace_volume(&self) -> String {
        format!("envforge-workspace-{}-{}", self.folder_name(), self.key())
    }

    /// The volume of downloaded models, which all projects of a user share.
    pub(crate) fn models_volume(&self) -> String {
        format!("envforge-models-{}", self.uid)
    }

    /// True if it can be mounted as a project: everything under the root folder would be writable.
    pub(crate) fn is_root(&self) -> bool {
        self.folder == Utf8Path::new("/")
    }
}

fn plain(character: char) -> char {
    if character.is_ascii_alphanumeric() || "._-".contains(character) { character } else { '-' }
}

/// That name, or with a number behind it the first that is free.
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
    fn two_folders_of_one_name_and_two_users_of_one_folder_do_not_meet() {
        let (a, b, c) = (project("/a/llm", 1), project("/b/llm", 1), project("/a/llm", 2));
        assert!(a.name().starts_with("llm-"), "{}", a.name());
        assert!(a.key() != b.key() && a.key() != c.key() && b.key() != c.key());
        assert_ne!(a.home_volume(Some("3.11")), a.home_volume(Some("3.12")));
        assert_eq!(a.models_volume(), b.models_volume());
    }

    #[test]
    fn names_are_such_as_an_engine_takes() {
        for folder in ["/home/u/mein Projekt (neu)", "/日本", "/", "/-x-"] {
            let name = project(folder, 0).name();
            assert!(name.starts_with(|c: char| c.is_ascii_alphanumeric()), "{name}");
            assert!(name.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c)), "{name}");
        }
    }

    #[test]
    fn a_taken_name_gets_a_number() {
        assert_eq!(free_name("a", |_| false), "a");
        assert_eq!(free_name("a", |name| name == "a" || name == "a-2"), "a-3");
    }
}
