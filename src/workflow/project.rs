//! The project file and the files it refers to, read for one environment.

use std::os::unix::fs::MetadataExt as _;

use camino::{Utf8Path, Utf8PathBuf};
use secrecy::{ExposeSecret as _, SecretString};

use crate::failure::reason;
use crate::model::index_address::IndexAddress;
use crate::model::project::{
    Environment, FILE, Place, ProjectError, ProjectFile, Requirement, RequirementFiles, decoded,
    from_pyproject, from_requirements, requirement_name,
};
use crate::model::request::ProjectOptions;
use crate::settings::Settings;
use crate::store::read_regular;
use crate::workflow::error::CommandError;
use crate::workflow::request_error::RequestError;

/// The most of a project file and of the files it refers to, bytes.
pub(crate) const LARGEST_FILE: u64 = 16 << 20;

/// A project file that was found, and one environment of it.
pub(crate) struct Project {
    pub(crate) folder: Utf8PathBuf,
    pub(crate) file: Utf8PathBuf,
    pub(crate) name: String,
    pub(crate) environment: Environment,
}

pub(crate) fn invalid(file: &Utf8Path, text: String) -> CommandError {
    let problems = vec![crate::model::project::Problem { place: None, text, hint: None }];
    ProjectError::Invalid { file: file.to_string(), problems }.into()
}

pub(crate) fn read(args: &ProjectOptions, settings: &Settings) -> Result<Project, CommandError> {
    let ParsedProject { file, shown, parsed } = parsed(args, settings)?;
    let environment = parsed.environment(&shown, args.environment.as_deref())?;
    let folder = folder_of(&file, &shown)?;
    let name = if let Some(name) = &parsed.name {
        name.to_string()
    } else {
        let folder = folder.file_name().unwrap_or_default();
        crate::model::project::name_from(folder).ok_or_else(|| {
            invalid(&file, format!("cannot derive a project name from `{folder}`: set `name = \"...\"`"))
        })?
    };
    Ok(Project { folder, file, name, environment })
}

/// The environments of the project that can be built; `None` is the default one.
pub(crate) fn environments(
    args: &ProjectOptions,
    settings: &Settings,
) -> Result<Vec<Option<String>>, CommandError> {
    let ParsedProject { shown, parsed, .. } = parsed(args, settings)?;
    let default = parsed.environment(&shown, None).is_ok().then_some(None);
    Ok(default.into_iter().chain(parsed.environments.into_keys().map(Some)).collect())
}

/// A project file that was read.
struct ParsedProject {
    file: Utf8PathBuf,
    /// Its path as the user knows it.
    shown: String,
    parsed: ProjectFile,
}

fn parsed(args: &ProjectOptions, settings: &Settings) -> Result<ParsedProject, CommandError> {
    let file = found(args, settings)?;
    // Errors name the file as the user knows it.
    let shown = file.strip_prefix(&settings.paths.current_dir).unwrap_or(&file).to_string();
    let bytes = read_regular(&file, LARGEST_FILE).map_err(|error| match args.project {
        _ if is_refused(&error) => invalid(Utf8Path::new(&shown), error.to_string()),
        Some(_) => CommandError::from(ProjectError::Unreadable {
            file: shown.clone(),
            named_by: "--project".to_owned(),
            why: reason(&error),
        }),
        None => error.into(),
    })?;
    let text = utf8(bytes).map_err(|place| {
        let text = "not UTF-8".to_owned();
        let problems = vec![crate::model::project::Problem { place: Some(place), text, hint: None }];
        ProjectError::Invalid { file: shown.clone(), problems }
    })?;
    let parsed = ProjectFile::parse(&shown, &text)?;
    Ok(ParsedProject { file, shown, parsed })
}

/// Whether a file is there and can be opened, but is too large or no regular file.
fn is_refused(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::FileTooLarge | std::io::ErrorKind::InvalidInput)
}

/// The folder of the project file, without links.
pub(crate) fn folder_of(file: &Utf8Path, shown: &str) -> Result<Utf8PathBuf, CommandError> {
    let folder = fs_err::canonicalize(file.parent().unwrap_or(Utf8Path::new(".")))?;
    Utf8PathBuf::from_path_buf(folder).map_err(|folder| {
        let text = format!("directory name `{}` is not UTF-8", folder.display());
        let hint = Some("rename the directory".to_owned());
        let problems = vec![crate::model::project::Problem { place: None, text, hint }];
        ProjectError::Invalid { file: shown.to_owned(), problems }.into()
    })
}

/// The project file that was named, else the one here or in the nearest folder above.
pub(crate) fn found(args: &ProjectOptions, settings: &Settings) -> Result<Utf8PathBuf, RequestError> {
    let here = &settings.paths.current_dir;
    if let Some(named) = &args.project {
        let path = here.join(named);
        return Ok(if path.is_dir() { path.join(FILE) } else { path });
    }
    let found = here.ancestors().map(|folder| folder.join(FILE)).find(|file| file.is_file());
    let found = found.ok_or_else(|| RequestError::NoProject { folder: here.to_string() })?;
    // In a folder above, such as /tmp, anybody may have put it there.
    if found.parent() != Some(here) && !is_own(&found) {
        return Err(RequestError::ForeignProject { file: found.into_string() });
    }
    Ok(found)
}

/// Whether a file is the caller's or root's.
fn is_own(file: &Utf8Path) -> bool {
    fs_err::symlink_metadata(file)
        .is_ok_and(|found| [0, rustix::process::geteuid().as_raw()].contains(&found.uid()))
}

/// Everything Python that is wanted: inline, from requirement files, from pyproject.toml.
pub(crate) fn requirements(project: &Project) -> Result<Vec<Requirement>, CommandError> {
    let packages = &project.environment.packages;
    let mut all = Vec::new();
    for entry in &packages.python {
        let text = entry.text().to_owned();
        let name = requirement_name(&text).map_err(|text| invalid(&project.file, text))?;
        let origin = project.file.file_name().unwrap_or(FILE).to_owned();
        all.push(Requirement { text, name, hashes: Vec::new(), origin });
    }
    let named_by = project.file.file_name().unwrap_or(FILE);
    let files = FilesOf { folder: &project.folder, named_by };
    for path in &packages.requirements {
        all.extend(from_requirements(Utf8Path::new(path.as_str()), &files)?);
    }
    if let Some(path) = &packages.pyproject {
        let groups: Vec<_> = packages.groups.iter().map(|group| group.to_string()).collect();
        all.extend(from_pyproject(path, &files.text(Utf8Path::new(path.as_str()))?, &groups)?);
    }
    Ok(all)
}

/// The files that a project refers to; links and `-r` lead to files of the project only.
pub(crate) struct FilesOf<'a> {
    /// The project's folder, without links.
    pub(crate) folder: &'a Utf8Path,
    /// The name of the file that names them, for messages.
    pub(crate) named_by: &'a str,
}

impl FilesOf<'_> {
    fn unreadable(&self, path: &Utf8Path, why: String) -> ProjectError {
        ProjectError::Unreadable { file: path.to_string(), named_by: self.named_by.to_owned(), why }
    }

    fn bytes(&self, path: &Utf8Path, real: &Utf8Path) -> Result<Vec<u8>, ProjectError> {
        read_regular(real, LARGEST_FILE).map_err(|error| self.unreadable(path, error.to_string()))
    }

    /// The text of a file.
    pub(crate) fn text(&self, path: &Utf8Path) -> Result<String, ProjectError> {
        let bytes = self.bytes(path, &self.locate(path)?)?;
        utf8(bytes).map_err(|place| self.unreadable(path, format!("line {} is not UTF-8", place.line)))
    }
}

impl RequirementFiles for FilesOf<'_> {
    fn locate(&self, path: &Utf8Path) -> Result<Utf8PathBuf, ProjectError> {
        let real = self.folder.join(path).canonicalize_utf8();
        let real = real.map_err(|error| self.unreadable(path, error.to_string()))?;
        if real.starts_with(self.folder) {
            return Ok(real);
        }
        Err(self.unreadable(path, "it is outside the project".to_owned()))
    }

    fn read(&self, path: &Utf8Path, real: &Utf8Path) -> Result<String, ProjectError> {
        decoded(&self.bytes(path, real)?).map_err(|why| self.unreadable(path, why.to_owned()))
    }
}

/// Returns a file's text, or the place of the first byte that is not UTF-8.
pub(crate) fn utf8(bytes: Vec<u8>) -> Result<String, Place> {
    String::from_utf8(bytes).map_err(|error| {
        let before = String::from_utf8_lossy(&error.as_bytes()[..error.utf8_error().valid_up_to()]);
        Place::of(&before, before.len())
    })
}

/// The address of a further index of the user's settings, with the login of its host.
pub(crate) fn index_address(text: &SecretString, settings: &Settings) -> Result<IndexAddress, RequestError> {
    parsed_index(&settings.index.with_login(text))
}

/// The same for an address that the project names: its login is sent over TLS only.
pub(crate) fn index_address_of_project(
    text: &SecretString,
    settings: &Settings,
) -> Result<IndexAddress, RequestError> {
    parsed_index(&settings.index.with_login_of_project(text))
}

fn parsed_index(address: &SecretString) -> Result<IndexAddress, RequestError> {
    let address = address.expose_secret().parse();
    address.map_err(|cause| RequestError::Address { setting: "[indexes]", cause })
}

/// The error of an index without an address.
pub(crate) fn unknown_index(name: &str, settings: &Settings) -> RequestError {
    RequestError::UnknownIndex { name: name.to_owned(), config: settings.paths.config_file.to_string() }
}
