//! What is to be built: a spec with its options, or an environment of the project file.
#![expect(clippy::disallowed_methods, reason = "edge: reads the project's files")]

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use clap::ValueEnum as _;

use super::CommandError;
use crate::address::Address;
use crate::cli::{Level, LockSource, ProjectArgs, TargetArgs};
use crate::context::ContextEntry;
use crate::lock::{Added, AllowedSource, LockedCheck, LockedRun};
use crate::plan::CachedFile;
use crate::project::{
    Environment, FILE, IndexWish, Place, ProjectError, ProjectFile, Requirement, RunWish, Shell, SourceWish,
    bare_name, copied, from_pyproject, from_requirements, is_apt_name, requirement_name,
};
use crate::settings::Settings;

/// What is to be built, whoever said it.
#[derive(Clone)]
pub(super) struct Wanted {
    /// The spec, as typed or as the project says.
    pub(super) spec: String,
    /// The machine that will run it.
    pub(super) target: TargetArgs,
    /// Which lock is used and how.
    pub(super) source: LockSource,
    /// What is wanted beside the stack.
    pub(super) added: Added,
    /// The project's files, below `copy/`.
    pub(super) copies: Vec<ContextEntry>,
    /// Further package indexes.
    pub(super) indexes: BTreeMap<String, Address>,
    /// The Python requirements, with where they stand.
    pub(super) origins: Vec<Requirement>,
    /// SHA-256 hashes that requirement files allow, by package.
    pub(super) hashes: BTreeMap<String, Vec<String>>,
    /// Wheels of a vendor folder, by file name; empty: they come from indexes.
    pub(super) vendored: Vec<(String, CachedFile)>,
    /// How much is checked before the tag.
    pub(super) level: Level,
    /// How a container is opened.
    pub(super) shell: Shell,
    /// The project's folder, if there is one.
    pub(super) folder: Option<Utf8PathBuf>,
}

/// A project file that was found, and one environment of it.
struct Project {
    folder: Utf8PathBuf,
    file: Utf8PathBuf,
    name: String,
    environment: Environment,
}

/// What a command is about: the SPEC that was typed, else the project.
pub(super) fn wanted(
    spec: Option<&str>,
    project: &ProjectArgs,
    source: &LockSource,
    target: &TargetArgs,
    settings: &Settings,
) -> Result<Wanted, CommandError> {
    match spec {
        Some(spec) if project.environment.is_some() || project.project.is_some() => {
            Err(CommandError::SpecAndProject { spec: spec.to_owned() })
        }
        Some(spec) => typed(spec, source, target),
        None => of_project(project, source, target, settings),
    }
}

/// A spec with what `--with` and `--apt` add.
pub(super) fn typed(spec: &str, source: &LockSource, target: &TargetArgs) -> Result<Wanted, CommandError> {
    let mut origins = Vec::new();
    for text in &source.with {
        let name =
            requirement_name(text).map_err(|text| CommandError::Addition { option: "--with", text })?;
        origins.push(Requirement {
            text: text.clone(),
            name,
            hashes: Vec::new(),
            origin: "--with".to_owned(),
        });
    }
    if let Some(name) = source.apt.iter().find(|name| !is_apt_name(name)) {
        let text = format!("`{name}` is not the name of a distribution package");
        return Err(CommandError::Addition { option: "--apt", text });
    }
    let mut allow_source = Vec::new();
    for text in &source.allow_source {
        let name =
            bare_name(text).map_err(|text| CommandError::Addition { option: "--allow-source", text })?;
        allow_source.push(AllowedSource { name, build: Vec::new() });
    }
    allow_source.sort();
    allow_source.dedup();
    let sorted = |list: &[String]| -> Vec<String> {
        let mut list = list.to_vec();
        list.sort();
        list.dedup();
        list
    };
    Ok(Wanted {
        spec: spec.to_owned(),
        target: target.clone(),
        source: source.clone(),
        added: Added {
            python: sorted(&source.with),
            apt: sorted(&source.apt),
            allow_source,
            ..Added::default()
        },
        copies: Vec::new(),
        vendored: Vec::new(),
        indexes: BTreeMap::new(),
        origins,
        hashes: BTreeMap::new(),
        level: Level::Full,
        shell: Shell::default(),
        folder: None,
    })
}

fn of_project(
    args: &ProjectArgs,
    source: &LockSource,
    target: &TargetArgs,
    settings: &Settings,
) -> Result<Wanted, CommandError> {
    if !source.with.is_empty() || !source.apt.is_empty() || !source.allow_source.is_empty() {
        return Err(CommandError::AdditionToProject);
    }
    let project = read(args, settings)?;
    let environment = &project.environment;
    let spec = environment.spec_text().map_err(|text| invalid(&project.file, text))?;
    let requirements = requirements(&project)?;
    let mut hashes: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for requirement in requirements.iter().filter(|requirement| !requirement.hashes.is_empty()) {
        hashes.entry(requirement.name.clone()).or_default().extend(requirement.hashes.iter().cloned());
    }
    let mut added = Added {
        project: Some(match &args.environment {
            Some(environment) => format!("{}-{environment}", project.name),
            None => project.name.clone(),
        }),
        python: requirements.iter().map(|requirement| requirement.text.clone()).collect(),
        apt: environment.packages.apt.iter().map(|name| name.to_string()).collect(),
        allow_source: environment.packages.allow_source.iter().map(|wish| allowed(wish)).collect(),
        variables: environment
            .variables
            .iter()
            .map(|(name, value)| (name.clone(), value.to_string()))
            .collect(),
        run: environment.run.iter().map(|run| locked_run(run)).collect(),
        checks: environment
            .verify
            .checks
            .iter()
            .map(|check| LockedCheck { name: check.name.clone(), command: check.command.clone() })
            .collect(),
        may_lack: environment.verify.may_lack.iter().map(|library| library.to_string()).collect(),
        ..Added::default()
    };
    let mut copies = Vec::new();
    for (number, wish) in environment.copy.iter().enumerate() {
        let (locked, entries) = copied(&project.folder, number, wish)?;
        added.copy.push(locked);
        copies.extend(entries);
    }
    let indexes = indexes(&project, settings)?;
    added.indexes = indexes.keys().cloned().collect();
    added.allow_source.sort();
    added.allow_source.dedup_by(|one, other| one.name == other.name);
    for list in [&mut added.python, &mut added.apt, &mut added.may_lack] {
        list.sort();
        list.dedup();
    }
    let level = environment.verify.level.as_ref();
    Ok(Wanted {
        spec,
        target: target_of(environment, target, settings),
        source: LockSource {
            lockfile: Some(source.lockfile.clone().unwrap_or_else(|| project.folder.join(lock_name(args)))),
            base: source.base.clone().or_else(|| environment.base.clone()),
            ..source.clone()
        },
        added,
        copies,
        vendored: Vec::new(),
        indexes,
        origins: requirements,
        hashes,
        level: level.and_then(|level| Level::from_str(level, true).ok()).unwrap_or(Level::Full),
        shell: environment.shell.clone(),
        folder: Some(project.folder),
    })
}

/// The lock beside the project file: one for each environment.
fn lock_name(args: &ProjectArgs) -> String {
    match &args.environment {
        Some(environment) => format!("envforge.{environment}.lock"),
        None => "envforge.lock".to_owned(),
    }
}

fn allowed(wish: &SourceWish) -> AllowedSource {
    let (name, build) = match wish {
        SourceWish::Named(name) => (name, Vec::new()),
        SourceWish::WithBuild(wish) => (&wish.name, wish.build.clone()),
    };
    // It was found to be one when the file was read.
    AllowedSource { name: bare_name(name).unwrap_or_else(|_| name.clone()), build }
}

fn locked_run(run: &RunWish) -> LockedRun {
    match run {
        RunWish::Command(command) => LockedRun { command: command.clone(), secrets: Vec::new() },
        RunWish::WithSecrets(run) => LockedRun { command: run.command.clone(), secrets: run.secrets.clone() },
    }
}

fn invalid(file: &Utf8Path, text: String) -> CommandError {
    let problems = vec![crate::project::Problem { place: None, text, hint: None }];
    ProjectError::Invalid { file: file.to_string(), problems }.into()
}

fn read(args: &ProjectArgs, settings: &Settings) -> Result<Project, CommandError> {
    let file = found(args, settings)?;
    // Errors name the file as the user knows it.
    let shown = file.strip_prefix(&settings.current_dir).unwrap_or(&file).to_string();
    let bytes = fs_err::read(&file).map_err(|error| match args.project {
        Some(_) => CommandError::from(ProjectError::Unreadable {
            file: shown.clone(),
            named_by: "--project".to_owned(),
            why: error.kind().to_string(),
        }),
        None => error.into(),
    })?;
    let text = utf8(bytes).map_err(|place| {
        let text = "this is not UTF-8".to_owned();
        let problems = vec![crate::project::Problem { place: Some(place), text, hint: None }];
        ProjectError::Invalid { file: shown.clone(), problems }
    })?;
    let parsed = ProjectFile::parse(&shown, &text)?;
    let environment = parsed.environment(&shown, args.environment.as_deref())?;
    let folder = folder_of(&file, &shown)?;
    let name = if let Some(name) = &parsed.name {
        name.to_string()
    } else {
        let folder = folder.file_name().unwrap_or_default();
        crate::project::name_from(folder).ok_or_else(|| {
            invalid(&file, format!("`{folder}` gives the project no name: write `name = \"...\"`"))
        })?
    };
    Ok(Project { folder, file, name, environment })
}

/// The folder of the project file, without links.
fn folder_of(file: &Utf8Path, shown: &str) -> Result<Utf8PathBuf, CommandError> {
    let folder = fs_err::canonicalize(file.parent().unwrap_or(Utf8Path::new(".")))?;
    Utf8PathBuf::from_path_buf(folder).map_err(|folder| {
        let text = format!("its folder `{}` has a name that is not UTF-8", folder.display());
        let hint = Some("rename the folder".to_owned());
        let problems = vec![crate::project::Problem { place: None, text, hint }];
        ProjectError::Invalid { file: shown.to_owned(), problems }.into()
    })
}

/// The project file that was named, else the one here or in the nearest folder above.
fn found(args: &ProjectArgs, settings: &Settings) -> Result<Utf8PathBuf, CommandError> {
    let here = &settings.current_dir;
    if let Some(named) = &args.project {
        let path = here.join(named);
        return Ok(if path.is_dir() { path.join(FILE) } else { path });
    }
    let found = here.ancestors().map(|folder| folder.join(FILE)).find(|file| file.is_file());
    found.ok_or_else(|| CommandError::NoProject { folder: here.to_string() })
}

/// Everything Python that is wanted: inline, from requirement files, from pyproject.toml.
fn requirements(project: &Project) -> Result<Vec<Requirement>, CommandError> {
    let packages = &project.environment.packages;
    let mut all = Vec::new();
    for text in &packages.python {
        let name = requirement_name(text).map_err(|text| invalid(&project.file, text))?;
        let origin = project.file.file_name().unwrap_or(FILE).to_owned();
        all.push(Requirement { text: text.to_string(), name, hashes: Vec::new(), origin });
    }
    let read = |path: &Utf8Path| text_of(project, path);
    for path in &packages.requirements {
        all.extend(from_requirements(Utf8Path::new(path.as_str()), &read)?);
    }
    if let Some(path) = &packages.pyproject {
        let groups: Vec<_> = packages.groups.iter().map(|group| group.to_string()).collect();
        all.extend(from_pyproject(path, &text_of(project, Utf8Path::new(path.as_str()))?, &groups)?);
    }
    Ok(all)
}

fn text_of(project: &Project, path: &Utf8Path) -> Result<String, ProjectError> {
    let unreadable = |why: String| ProjectError::Unreadable {
        file: path.to_string(),
        named_by: project.file.file_name().unwrap_or(FILE).to_owned(),
        why,
    };
    let bytes = std::fs::read(project.folder.join(path)).map_err(|error| unreadable(error.to_string()))?;
    utf8(bytes).map_err(|place| unreadable(format!("line {} is not UTF-8", place.line)))
}

/// A file's text, or the place from where it is none.
fn utf8(bytes: Vec<u8>) -> Result<String, Place> {
    String::from_utf8(bytes).map_err(|error| {
        let before = String::from_utf8_lossy(&error.as_bytes()[..error.utf8_error().valid_up_to()]);
        Place::of(&before, before.len())
    })
}

/// The indexes the project names: as the user configured them, else as the project knows them.
fn indexes(project: &Project, settings: &Settings) -> Result<BTreeMap<String, Address>, CommandError> {
    let mut all = BTreeMap::new();
    for wish in &project.environment.packages.indexes {
        let (name, known) = match &**wish {
            IndexWish::Named(name) => (name, None),
            IndexWish::Known(index) => (&index.name, Some(&index.url)),
        };
        let text = settings.indexes.get(name).or(known);
        let text = text.ok_or_else(|| unknown_index(name, settings))?;
        all.insert(name.clone(), index_address(text, settings)?);
    }
    Ok(all)
}

/// The address of a further index, with the login of its host.
pub(super) fn index_address(text: &str, settings: &Settings) -> Result<Address, CommandError> {
    let address = settings.netrc.with_login(text).parse();
    address.map_err(|cause| CommandError::Address { setting: "[indexes]", cause })
}

/// The error of an index whose address nobody says.
pub(super) fn unknown_index(name: &str, settings: &Settings) -> CommandError {
    CommandError::UnknownIndex { name: name.to_owned(), config: settings.config_file.to_string() }
}

/// The target: as typed, else as the environment names it, else as the project does.
fn target_of(environment: &Environment, typed: &TargetArgs, settings: &Settings) -> TargetArgs {
    let wish = &environment.target;
    let mut target = typed.clone();
    let named = |list: &Option<Vec<String>>| list.as_ref().is_some_and(|list| !list.is_empty());
    let set =
        named(&settings.target.gpu) || settings.target.driver.as_ref().is_some_and(|text| !text.is_empty());
    if typed.gpu.is_empty() && typed.driver.is_none() && typed.target.is_none() && !set {
        target.gpu.clone_from(&wish.gpu);
        target.driver.clone_from(&wish.driver);
        if wish.any == Some(true) {
            (target.gpu, target.driver, target.target) = (Vec::new(), None, Some("any".to_owned()));
        }
    }
    target.platform = typed.platform.clone().or_else(|| wish.platform.as_ref().map(|text| text.to_string()));
    target.forward_compat |= wish.forward_compat == Some(true);
    target
}
