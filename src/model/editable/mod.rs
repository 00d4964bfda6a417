//! The project's own code, importable without installation: read from pyproject.toml as text.
//!
//! Owns where the importable directories are, the metadata and the scripts, and the files that tell them to a Python. Pure: runs
//! nothing of the project, asks the project's directory by [`ProjectTree`]. What a pyproject.toml says is a stranger's: a path
//! outside the project, a name with a line break and a script that names no function are left out, with the reason.

mod buildable;
mod compiled;
mod dist_info;
mod entry_points;
mod files;
mod layout;
mod project;
mod project_tree;
mod reader;
#[cfg(test)]
mod tests;
mod variables;

pub use buildable::{BuildableProject, NotBuildable, buildable};
pub use files::{EditableFile, SITE};
pub use project::{Editable, ImagePackages, PYPROJECT, editable};
pub use project_tree::{PathKind, ProjectTree};
pub use reader::NoProject;
pub use variables::variables;
