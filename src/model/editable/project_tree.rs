//! The directory of a project, as the readers of this folder ask for it.

/// What is at a path below the project's directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathKind {
    /// Nothing.
    Absent,
    /// A file.
    File,
    /// A directory.
    Directory,
    /// A link that leads out of the project.
    Outside,
}

/// The project's directory. Paths are relative, with `/`; the empty one is the directory itself.
pub trait ProjectTree {
    /// Returns what is there.
    fn kind(&self, path: &str) -> PathKind;
    /// Returns the names of the modules and packages in a directory.
    fn modules(&self, path: &str) -> Vec<String>;
    /// Returns the text of a small file; `None`: not there, or not to be read.
    fn text(&self, path: &str) -> Option<String>;
}
