//! The project that a pyproject.toml declares, with everything that its containers need of it.

use std::collections::BTreeSet;

use super::files::EditableFile;
use super::project_tree::ProjectTree;
use super::reader::{Declared, NoProject};
use super::{compiled, dist_info, entry_points, files, layout};

/// The file that declares a project.
pub const PYPROJECT: &str = "pyproject.toml";

/// What the image has.
#[derive(Debug, Clone, Default)]
pub struct ImagePackages {
    /// Normalized names of its distributions.
    pub distributions: BTreeSet<String>,
    /// Whether the dependencies of this pyproject.toml were resolved for it.
    pub has_dependencies: bool,
}

/// A project that a Python can import.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Editable {
    /// Its name, as declared; `None`: it has none, and so no metadata and no scripts.
    pub name: Option<String>,
    /// Its version; `0+editable` if a build would compute it.
    pub version: String,
    /// The importable directories, relative to the project; the empty one is the project itself.
    pub roots: Vec<String>,
    /// The files for a Python, by their path.
    pub files: Vec<EditableFile>,
    /// What was left out, and what the project's code cannot be seen for, one line each.
    pub notes: Vec<String>,
}

/// Reads the project that a pyproject.toml declares.
pub fn editable(text: &str, tree: &dyn ProjectTree, image: &ImagePackages) -> Result<Editable, NoProject> {
    let declared = Declared::read(text)?;
    let mut notes = declared.notes.clone();
    let roots = layout::roots(&declared, tree, &mut notes);
    notes.extend(compiled::note(&declared, tree));
    notes.extend(hidden_modules(&roots, tree, image));
    if let Some(name) = &declared.name
        && image.distributions.contains(&dist_info::normalized(name))
    {
        notes.push(format!("the image has a distribution `{name}`, too: its metadata stands for the name"));
    }
    let entries = entry_points::read(&declared, &mut notes);
    let files = files::of(&declared, &roots, &entries, image.has_dependencies);
    let dynamic = declared.dynamic.iter().any(|field| field == "version");
    if dynamic && declared.name.is_some() {
        notes.push(format!("version `{}`: a build would compute it", declared.version));
    }
    Ok(Editable { name: declared.name.clone(), version: declared.version.clone(), roots, files, notes })
}

/// Says which modules of the project the image's distributions hide: site-packages comes first.
fn hidden_modules(roots: &[String], tree: &dyn ProjectTree, image: &ImagePackages) -> Vec<String> {
    let named: BTreeSet<String> = image.distributions.iter().map(|name| name.replace('-', "_")).collect();
    let mut found = Vec::new();
    for root in roots {
        for module in tree.modules(root) {
            if named.contains(&module.to_lowercase()) {
                let path = if root.is_empty() { module.clone() } else { format!("{root}/{module}") };
                found.push(format!("`{path}`: `import {module}` is the image's package of that name"));
            }
        }
    }
    found.sort();
    found
}
