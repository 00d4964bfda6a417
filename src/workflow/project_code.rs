//! The project's own code for its containers: pyproject.toml and the directories next to it, read without running anything.

use std::collections::BTreeSet;

use camino::{Utf8Path, Utf8PathBuf};

use crate::model::editable::{
    Editable, ImagePackages, NoProject, PYPROJECT, PathKind, ProjectTree, editable,
};
use crate::model::lock::Lock;
use crate::model::project::{FILE, Problem, ProjectError, ProjectMode};
use crate::report::{Event, Reporter};
use crate::shell::ProjectCode;
use crate::store::read_text_at;
use crate::workflow::build_request::{BuildRequest, CodeRequest};
use crate::workflow::error::CommandError;
use crate::workflow::lock_file::read_lock;
use crate::workflow::session::Session;

/// The most of a pyproject.toml or setup.py, bytes.
const LARGEST_FILE: u64 = 4 << 20;
/// The most entries of a directory that are looked at.
const MOST_ENTRIES: usize = 10_000;

/// Returns the code of a project for a container of its image. What cannot be imported is reported.
pub(crate) fn project_code(
    session: &Session<'_>,
    wanted: &BuildRequest,
) -> Result<Option<ProjectCode>, CommandError> {
    let Some(folder) = &wanted.folder else { return Ok(None) };
    let lock = match &wanted.source.lockfile {
        Some(file) => read_lock(&session.settings.paths.current_dir.join(file))?,
        None => None,
    };
    code_at(folder, &wanted.code, lock.as_ref(), &*session.reporter)
}

/// Returns the code of the project in a folder for a container of that lock's image.
pub(crate) fn code_at(
    folder: &Utf8Path,
    request: &CodeRequest,
    lock: Option<&Lock>,
    reporter: &dyn Reporter,
) -> Result<Option<ProjectCode>, CommandError> {
    let Some(project) = declared(folder, request, lock, reporter)? else { return Ok(None) };
    let code = ProjectCode::of(&project.files)?;
    if code.is_none() {
        let text =
            format!("{PYPROJECT}: too many scripts and dependencies: the project's code cannot be imported");
        reporter.report(Event::Warning { text });
    }
    Ok(code)
}

/// Returns the project that the pyproject.toml of a folder declares; `None`: none, or the project file says so.
pub(crate) fn declared(
    folder: &Utf8Path,
    request: &CodeRequest,
    lock: Option<&Lock>,
    reporter: &dyn Reporter,
) -> Result<Option<Editable>, CommandError> {
    if matches!(request.mode, Some(ProjectMode::Install | ProjectMode::None)) {
        return Ok(None);
    }
    let note = |text: String| reporter.report(Event::Note { text });
    let tree = Folder { root: folder.canonicalize_utf8()? };
    let Some(text) = tree.text(PYPROJECT) else {
        return match request.mode {
            Some(_) => Err(undeclared(&format!("{PYPROJECT} next to it cannot be read"))),
            None => Ok(None),
        };
    };
    let image = ImagePackages {
        distributions: lock.iter().flat_map(|lock| &lock.wheels).map(|wheel| wheel.name.clone()).collect(),
        has_dependencies: request.has_dependencies,
    };
    match (editable(&text, &tree, &image), request.mode) {
        (Ok(project), _) => {
            project.notes.iter().for_each(|text| note(format!("{PYPROJECT}: {text}")));
            Ok(Some(project))
        }
        (Err(NoProject::Invalid { why }), None) => {
            note(format!("cannot read {PYPROJECT} ({why}): the project's code cannot be imported"));
            Ok(None)
        }
        (Err(_), None) => Ok(None),
        (Err(NoProject::Invalid { why }), Some(_)) => {
            Err(undeclared(&format!("cannot read {PYPROJECT}: {why}")))
        }
        (Err(NoProject::Undeclared), Some(_)) => {
            Err(undeclared(&format!("{PYPROJECT} has neither `[project]` nor `[tool.poetry]`")))
        }
        (Err(NoProject::NotAPackage { setting }), Some(_)) => {
            Err(undeclared(&format!("{PYPROJECT} says {setting}")))
        }
    }
}

/// `project = "editable"` without a project.
fn undeclared(why: &str) -> CommandError {
    let hint = "declare it in `[project]` with a name, or omit `project`".to_owned();
    let problem =
        Problem { place: None, text: format!("`project = \"editable\"`, but {why}"), hint: Some(hint) };
    ProjectError::Invalid { file: FILE.to_owned(), problems: vec![problem] }.into()
}

/// A project's directory, without links in its path.
struct Folder {
    root: Utf8PathBuf,
}

impl Folder {
    /// The real path of something in the project.
    fn real(&self, path: &str) -> Option<Utf8PathBuf> {
        self.root.join(path).canonicalize_utf8().ok().filter(|real| real.starts_with(&self.root))
    }
}

impl ProjectTree for Folder {
    fn kind(&self, path: &str) -> PathKind {
        if let Some(real) = self.real(path) {
            return if real.is_dir() { PathKind::Directory } else { PathKind::File };
        }
        match fs_err::symlink_metadata(self.root.join(path)) {
            Ok(_) => PathKind::Outside,
            Err(_) => PathKind::Absent,
        }
    }

    fn modules(&self, path: &str) -> Vec<String> {
        let Some(folder) = self.real(path) else { return Vec::new() };
        let mut found = BTreeSet::new();
        for name in names_in(&folder) {
            let module = name.strip_suffix(".py").unwrap_or(&name);
            let is_name = !module.is_empty()
                && !module.starts_with(|c: char| c.is_ascii_digit())
                && module.chars().all(|c| c.is_alphanumeric() || c == '_');
            let is_python = |name: &String| name.strip_suffix(".py").is_some();
            let has_code = || names_in(&folder.join(&name)).iter().any(is_python);
            if is_name && (module != name || has_code()) {
                found.insert(module.to_owned());
            }
        }
        found.into_iter().collect()
    }

    fn text(&self, path: &str) -> Option<String> {
        // The path that was resolved is opened: a link that changed since then leads nowhere else.
        read_text_at(&self.real(path)?, LARGEST_FILE).ok().flatten()
    }
}

/// The names in a directory; none if there is none.
fn names_in(folder: &Utf8Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().take(MOST_ENTRIES);
    entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect()
}
