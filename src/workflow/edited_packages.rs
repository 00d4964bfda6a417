//! The packages of a project file, edited: written before they are locked, and put back if they cannot be.

use camino::{Utf8Path, Utf8PathBuf};

use crate::failure::{Exit, Failure};
use crate::model::project::{
    FILE, NotListed, PackageChange, PackageEdit, PackageList, ProjectFile, PythonEntry, Requirement,
    is_apt_name, requirement_name,
};
use crate::model::request::{EditPackages, PackageAction};
use crate::settings::Settings;
use crate::store::{StoreError, read_regular, replace_file};
use crate::workflow::error::CommandError;
use crate::workflow::project::{LARGEST_FILE, Project, found, invalid, read, requirements, utf8};
use crate::workflow::request_error::RequestError;
use crate::workflow::requested_indexes::typed_requirement;

/// The mode of a project file that is new.
const READABLE: u32 = 0o644;

/// Why the packages of a project cannot be edited as requested.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PackageEditError {
    /// No project file.
    #[error("could not find {FILE} in `{folder}` or any parent directory")]
    NoProject {
        /// The directory in which the search began.
        folder: String,
    },
    /// A package cannot be read as a requirement.
    #[error("{why}")]
    BadRequirement {
        /// Why.
        why: String,
        /// The requirement that was probably meant.
        meant: Option<String>,
    },
    /// A name that no distribution package can have.
    #[error("`{name}` is not the name of a distribution package")]
    BadAptName {
        /// The name.
        name: String,
    },
    /// The project takes its Python packages from other files.
    #[error("the Python packages of `{file}` come from {}", quoted(files))]
    OtherFiles {
        /// The project file.
        file: String,
        /// The files.
        files: Vec<String>,
        /// The packages to add.
        packages: Vec<String>,
    },
    /// The package is a requirement of another file.
    #[error("`{name}` comes from {origin}, not from `{file}`")]
    OtherOrigin {
        /// The package.
        name: String,
        /// Its place: `requirements.txt, line 3`.
        origin: String,
        /// The project file.
        file: String,
    },
    /// The project file is a link: what is written there would be a file of somewhere else.
    #[error("`{file}` is a link to `{to}`")]
    Link {
        /// The project file.
        file: String,
        /// Where it leads.
        to: String,
    },
    /// The package is in no list.
    #[error("`{}` is not a package of `{place}`", missing.name)]
    NotListed {
        /// The project file, with its environment.
        place: String,
        /// The package, and those that are there.
        missing: NotListed,
    },
}

impl Failure for PackageEditError {
    fn exit(&self) -> Exit {
        Exit::Usage
    }

    fn hints(&self) -> Vec<String> {
        let hint = match self {
            Self::NoProject { .. } => Some("create a project file: `envforge init`".to_owned()),
            Self::BadRequirement { meant, .. } => {
                meant.as_ref().map(|meant| format!("did you mean `{meant}`?"))
            }
            Self::BadAptName { .. } => Some("omit --apt to add a Python package".to_owned()),
            Self::OtherFiles { files, packages, .. } => {
                let file = files.first().map(String::as_str).unwrap_or_default();
                Some(format!("add {} to {file}, then run `envforge lock`", quoted(packages)))
            }
            Self::OtherOrigin { .. } => Some("edit it there, then run `envforge lock`".to_owned()),
            Self::Link { to, .. } => Some(format!("pass the file itself: `--project {to}`")),
            Self::NotListed { missing, .. } => hint_of_missing(missing),
        };
        hint.into_iter().collect()
    }
}

fn quoted(texts: &[String]) -> String {
    texts.iter().map(|text| format!("`{text}`")).collect::<Vec<_>>().join(", ")
}

fn hint_of_missing(missing: &NotListed) -> Option<String> {
    match missing.elsewhere.first().map(String::as_str) {
        Some("") => return Some("it is a package of the default environment: omit `-E`".to_owned()),
        Some(environment) => {
            return Some(format!("it is a package of environment `{environment}`: pass `-E {environment}`"));
        }
        None => {}
    }
    let far = |known: &&String| strsim::osa_distance(known, &missing.name);
    match missing.listed.iter().filter(|known| far(known) <= 3).min_by_key(far) {
        Some(near) => Some(format!("did you mean `{near}`?")),
        None if missing.listed.is_empty() => None,
        None => Some(format!("packages there: {}", missing.listed.join(", "))),
    }
}

/// A project file with other packages.
pub(crate) struct EditedPackages {
    /// Its path.
    pub(crate) file: Utf8PathBuf,
    /// Its path as the user knows it, with the environment.
    pub(crate) shown: String,
    /// What is added, replaced and removed.
    pub(crate) changes: Vec<PackageChange>,
    before: Vec<u8>,
    after: String,
}

impl EditedPackages {
    /// Returns a line for each change.
    pub(crate) fn lines(&self) -> Vec<String> {
        let line = |change: &PackageChange| match (&change.from, &change.to) {
            (Some(from), Some(to)) if from == to => format!("{}: `{to}` is there already", self.shown),
            (Some(from), Some(to)) => format!("{}: replaced `{from}` with `{to}`", self.shown),
            (None, Some(to)) => format!("{}: added `{to}`", self.shown),
            (Some(from), None) => format!("{}: removed `{from}`", self.shown),
            (None, None) => self.shown.clone(),
        };
        self.changes.iter().map(line).collect()
    }

    /// Writes the file; it is put back when the result is dropped, unless that is kept.
    pub(crate) fn write(&self) -> Result<Written<'_>, CommandError> {
        if self.before != self.after.as_bytes() {
            replace_file(&self.file, self.after.as_bytes(), READABLE)?;
        }
        Ok(Written { edited: self, kept: false })
    }
}

/// A file that is written and may be put back.
pub(crate) struct Written<'a> {
    edited: &'a EditedPackages,
    kept: bool,
}

impl Written<'_> {
    /// Leaves the file as it is now.
    pub(crate) fn keep(mut self) {
        self.kept = true;
    }

    /// Puts the file back and returns a sentence of what it is now.
    pub(crate) fn undo(mut self) -> String {
        self.kept = true;
        let shown = &self.edited.shown;
        match self.put_back() {
            Ok(true) => format!("{shown} is unchanged: its packages could not be locked"),
            Ok(false) => format!("{shown} was changed by another program meanwhile and stays as it is"),
            Err(error) => format!("{shown} could not be put back and has the new packages: {error}"),
        }
    }

    /// Puts the file back; false: another program's text is there, which is not overwritten.
    fn put_back(&self) -> Result<bool, StoreError> {
        let EditedPackages { file, before, after, .. } = self.edited;
        if before == after.as_bytes() {
            return Ok(true);
        }
        let is_ours = read_regular(file, LARGEST_FILE).is_ok_and(|now| now == after.as_bytes());
        if is_ours {
            replace_file(file, before, READABLE)?;
        }
        Ok(is_ours)
    }
}

impl Drop for Written<'_> {
    fn drop(&mut self) {
        if self.kept {
            return;
        }
        if let Err(error) = self.put_back() {
            tracing::error!("cannot put back `{}`: {error}", self.edited.file);
        }
    }
}

/// Edits the project file in memory.
pub(crate) fn edited(args: &EditPackages, settings: &Settings) -> Result<EditedPackages, CommandError> {
    found(&args.project, settings).map_err(|error| match error {
        RequestError::NoProject { folder } => CommandError::from(PackageEditError::NoProject { folder }),
        other => other.into(),
    })?;
    let entries = entries(args)?;
    let project = read(&args.project, settings)?;
    let name = project.file.strip_prefix(&settings.paths.current_dir).unwrap_or(&project.file);
    if let Ok(to) = project.file.as_std_path().read_link() {
        let (file, to) = (name.to_string(), to.display().to_string());
        return Err(PackageEditError::Link { file, to }.into());
    }
    let place = match &args.project.environment {
        Some(environment) => format!("{name} [environments.{environment}]"),
        None => name.to_string(),
    };
    if !args.apt {
        check_origins(args.action, &entries, &project, name)?;
    }
    let before = read_regular(&project.file, LARGEST_FILE)?;
    let text = utf8(before.clone()).map_err(|place| invalid(name, format!("{place}: not UTF-8")))?;
    let list = if args.apt { PackageList::Apt } else { PackageList::Python };
    let edit = PackageEdit::of(&text, args.project.environment.as_deref(), list);
    let mut edit = edit.map_err(|text| invalid(name, text))?;
    for entry in &entries {
        match args.action {
            PackageAction::Add => edit.add(entry),
            PackageAction::Remove => edit
                .remove(entry.text())
                .map_err(|missing| PackageEditError::NotListed { place: place.clone(), missing })?,
        }
    }
    let (after, changes) = edit.finish();
    ProjectFile::parse(name.as_str(), &after)?;
    Ok(EditedPackages { file: project.file, shown: place, changes, before, after })
}

/// The packages that were typed.
fn entries(args: &EditPackages) -> Result<Vec<PythonEntry>, PackageEditError> {
    let entry = |text: &String| {
        if args.apt {
            let is_name = is_apt_name(text);
            let entry = PythonEntry::Requirement(text.clone());
            return is_name
                .then_some(entry)
                .ok_or_else(|| PackageEditError::BadAptName { name: text.clone() });
        }
        typed_requirement(text).map_err(|error| {
            let why = match error {
                RequestError::Addition { text, .. } => text,
                other => other.to_string(),
            };
            PackageEditError::BadRequirement { why, meant: meant(text) }
        })
    };
    args.packages.iter().map(entry).collect()
}

/// The requirement that a text of conda (`einops=0.8`) or npm (`einops@0.8`) stands for.
fn meant(text: &str) -> Option<String> {
    let (name, version) = text.split_once(['=', '@'])?;
    let meant = format!("{}=={}", name.trim(), version.trim());
    let is_version = version.trim().starts_with(|c: char| c.is_ascii_digit());
    (is_version && typed_requirement(&meant).is_ok()).then_some(meant)
}

/// Refuses packages that belong into another file than the project's.
fn check_origins(
    action: PackageAction,
    entries: &[PythonEntry],
    project: &Project,
    shown: &Utf8Path,
) -> Result<(), CommandError> {
    let packages = &project.environment.packages;
    let own = project.file.file_name().unwrap_or(FILE);
    let others: Vec<Requirement> =
        requirements(project)?.into_iter().filter(|requirement| requirement.origin != own).collect();
    for entry in entries {
        let name = requirement_name(entry.text()).unwrap_or_default();
        let is_own = packages
            .python
            .iter()
            .any(|listed| requirement_name(listed.text()).is_ok_and(|listed| listed == name));
        if let Some(other) = others.iter().find(|other| other.name == name && !is_own) {
            let (origin, file) = (other.origin.clone(), shown.to_string());
            return Err(PackageEditError::OtherOrigin { name, origin, file }.into());
        }
    }
    let files = packages.requirements.iter().chain(&packages.pyproject).map(|path| path.to_string());
    let files: Vec<_> = files.collect();
    if action == PackageAction::Add && !files.is_empty() && packages.python.is_empty() {
        let packages = entries.iter().map(|entry| entry.text().to_owned()).collect();
        return Err(PackageEditError::OtherFiles { file: shown.to_string(), files, packages }.into());
    }
    Ok(())
}
