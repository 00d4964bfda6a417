//! The files that tell a Python of the project: for one directory, which goes on `PYTHONPATH`.
//!
//! A `.pth` in it would not be read, and paths on `PYTHONPATH` come before site-packages. So the directory holds a `sitecustomize`,
//! which adds `site/` as site-packages are added: behind everything the image has.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};

use super::dist_info;
use super::entry_points::EntryPoints;
use super::reader::Declared;
use crate::model::image::paths::WORKSPACE;

/// The directory that is added like site-packages.
pub const SITE: &str = "site";

/// A file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EditableFile {
    /// Its path, relative.
    pub path: String,
    /// Its text.
    pub text: String,
    /// Whether it is a program.
    pub executable: bool,
}

/// Runs at the start of every Python of the container.
const SITECUSTOMIZE: &str = include_str!("../../../templates/project/sitecustomize.py");

/// Returns the files, sorted by path.
pub(super) fn of(
    declared: &Declared,
    roots: &[String],
    entries: &EntryPoints,
    has_dependencies: bool,
) -> Vec<EditableFile> {
    let plain = |path: String, text: String| EditableFile { path, text, executable: false };
    let paths: Vec<String> = roots.iter().map(|root| line_of(root)).collect();
    let mut files = vec![plain("sitecustomize.py".to_owned(), SITECUSTOMIZE.to_owned())];
    let Some(name) = &declared.name else {
        files.push(plain(format!("{SITE}/envforge_project.pth"), paths.concat()));
        return files;
    };
    let folder = dist_info::folder(name, &declared.version);
    let pth = format!("__editable__.{}.pth", folder.trim_end_matches(".dist-info"));
    let mut installed = vec![
        (pth, paths.concat()),
        (format!("{folder}/METADATA"), dist_info::metadata(declared, name, has_dependencies)),
        (format!("{folder}/INSTALLER"), "envforge\n".to_owned()),
        (format!("{folder}/direct_url.json"), dist_info::direct_url()),
    ];
    if !entries.groups.is_empty() {
        installed.push((format!("{folder}/entry_points.txt"), entries.text()));
    }
    let scripts: Vec<(String, String)> = entries
        .scripts
        .iter()
        .map(|(name, (module, function))| (name.clone(), script(module, function)))
        .collect();
    let mut record: Vec<String> = installed.iter().map(|(path, text)| recorded(path, text)).collect();
    record.extend(scripts.iter().map(|(name, text)| recorded(&format!("../bin/{name}"), text)));
    record.push(format!("{folder}/RECORD,,\n"));
    record.sort();
    installed.push((format!("{folder}/RECORD"), record.concat()));
    files.extend(installed.into_iter().map(|(path, text)| plain(format!("{SITE}/{path}"), text)));
    files.extend(scripts.into_iter().map(|(name, text)| EditableFile {
        path: format!("bin/{name}"),
        text,
        executable: true,
    }));
    files.sort_by(|one, other| one.path.cmp(&other.path));
    files
}

/// A line of a `.pth`. It begins with `/`: a line that begins with `import` would be run.
fn line_of(root: &str) -> String {
    if root.is_empty() { format!("{WORKSPACE}\n") } else { format!("{WORKSPACE}/{root}\n") }
}

/// A line of RECORD. No path has a comma or a quote.
fn recorded(path: &str, text: &str) -> String {
    let hash = URL_SAFE_NO_PAD.encode(Sha256::digest(text.as_bytes()));
    format!("{path},sha256={hash},{}\n", text.len())
}

/// The text of a program. It runs with the Python that a shell finds: the user's environment, else the image's.
fn script(module: &str, function: &str) -> String {
    let import = function.split('.').next().unwrap_or_default();
    format!(
        "#!/usr/bin/env python\nimport sys\n\nfrom {module} import {import}\n\nif __name__ == \"__main__\":\n    sys.exit({function}())\n"
    )
}
