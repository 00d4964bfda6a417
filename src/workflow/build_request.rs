//! What is to be built: a spec with its options, or an environment of the project file.

use std::collections::BTreeMap;

use camino::Utf8PathBuf;

use crate::model::editable::PYPROJECT;
use crate::model::image::context::ContextEntry;
use crate::model::image::plan::CachedFile;
use crate::model::index_address::IndexAddress;
use crate::model::lock::{AllowedSource, Lock, LockedCheck, LockedRun, UserAdditions};
use crate::model::migrate::ToolVersions;
use crate::model::misfit::ListedReleases;
use crate::model::project::{
    AllowSourceEntry, Cluster, Environment, ProjectMode, Requirement, RunStep, Shell, bare_name, is_apt_name,
    requirement_name,
};
use crate::model::request::{Level, LockOptions, ProjectOptions, RequestedSpec, SpecArgument, TargetOptions};
use crate::model::versions::Machine;
use crate::project_files::collect_copy;
use crate::settings::Settings;
use crate::workflow::error::CommandError;
use crate::workflow::lock_file::read_lock;
use crate::workflow::project::{invalid, read, requirements};
use crate::workflow::request_error::RequestError;
use crate::workflow::requested_indexes::{RequestedIndexes, typed_requirement};

/// What is to be built, whoever said it.
#[derive(Clone)]
pub(crate) struct BuildRequest {
    /// The spec, as typed or as the project says.
    pub(crate) spec: RequestedSpec,
    /// The machine that will run it.
    pub(crate) target: TargetOptions,
    /// Which lock is used and how.
    pub(crate) source: LockOptions,
    /// What is wanted beside the stack.
    pub(crate) added: UserAdditions,
    /// The project's files, below `copy/`.
    pub(crate) copies: Vec<ContextEntry>,
    /// Further package indexes, and those of single packages.
    pub(crate) indexes: BTreeMap<String, IndexAddress>,
    /// The Python requirements, with where they stand.
    pub(crate) origins: Vec<Requirement>,
    /// SHA-256 hashes that requirement files allow, by package.
    pub(crate) hashes: BTreeMap<String, Vec<String>>,
    /// Wheels of a vendor folder, by file name; empty: they come from indexes.
    pub(crate) vendored: Vec<(String, CachedFile)>,
    /// How much is checked before the tag.
    pub(crate) level: Level,
    /// How a container is opened.
    pub(crate) shell: Shell,
    /// How a cluster starts the image, as the project says.
    pub(crate) cluster: Cluster,
    /// The project's folder, if there is one.
    pub(crate) folder: Option<Utf8PathBuf>,
    /// How containers get the project's own code.
    pub(crate) code: CodeRequest,
    /// Whether the project, and not the command line, names the base.
    pub(crate) base_of_project: bool,
    /// Whether what the project requests of this machine is allowed (`--trust`).
    pub(crate) trust: bool,
    /// Whether what an earlier release locked is brought up to this one, as `lock` does: uv, packages of every image.
    pub(crate) renews: bool,
    /// Versions of another tool's lock file that a new lock keeps where the stack allows.
    pub(crate) preferred: Option<ToolVersions>,
    /// What the indexes list of requested packages that no lock had.
    pub(crate) listed: BTreeMap<String, ListedReleases>,
}

/// How containers get a project's own code. No part of lock or image.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct CodeRequest {
    /// What the project file says; `None`: it says nothing.
    pub(crate) mode: Option<ProjectMode>,
    /// Whether the dependencies of its pyproject.toml are resolved with the image.
    pub(crate) has_dependencies: bool,
}

impl CodeRequest {
    /// That of an environment.
    pub(crate) fn of(environment: &Environment) -> Self {
        let named = environment.packages.pyproject.as_ref();
        Self {
            mode: environment.project.as_ref().and_then(|mode| ProjectMode::parse(mode)),
            has_dependencies: named.is_some_and(|path| path.trim_start_matches("./") == PYPROJECT),
        }
    }
}

impl BuildRequest {
    /// Returns the command that locks the spec of the command line. `None`: a project is requested.
    pub(crate) fn lock_call(&self) -> Option<String> {
        if self.folder.is_some() {
            return None;
        }
        let LockOptions { lockfile, with, apt, allow_source, wheel, base, .. } = &self.source;
        let is_plain = lockfile.is_none()
            && base.is_none()
            && [with, apt, allow_source].into_iter().all(Vec::is_empty)
            && wheel.is_empty();
        let options = if is_plain { "" } else { " with the same options" };
        Some(format!("`envforge lock {}`{options}", self.spec.written()))
    }

    /// Returns the request with the date of a lock, unless it has one of its own or asks for an upgrade.
    pub(crate) fn dated_as(&self, old: Option<&Lock>) -> Self {
        let mut dated = self.clone();
        if dated.added.as_of.is_none() && !dated.source.upgrade {
            dated.added.as_of = old.and_then(|old| old.added.as_of.clone());
        }
        dated
    }
}

/// What a command is about: the SPEC that was typed, else the project.
pub(crate) fn wanted(
    spec: Option<&SpecArgument>,
    project: &ProjectOptions,
    source: &LockOptions,
    target: &TargetOptions,
    settings: &Settings,
) -> Result<BuildRequest, CommandError> {
    let dated = LockOptions { as_of: moment_of(source, settings)?, ..source.clone() };
    let source = &dated;
    match spec {
        Some(spec) if let Some(option) = project.option() => {
            Err(RequestError::SpecAndProject { spec: spec.written().to_owned(), option }.into())
        }
        Some(spec) => typed(spec, source, target, settings),
        None => of_project(project, source, target, settings),
    }
}

/// A spec with what `--with` and `--apt` add.
pub(crate) fn typed(
    spec: &SpecArgument,
    source: &LockOptions,
    target: &TargetOptions,
    settings: &Settings,
) -> Result<BuildRequest, CommandError> {
    let with = source.with.iter().map(|text| typed_requirement(text)).collect::<Result<Vec<_>, _>>()?;
    let indexes = RequestedIndexes::of_typed(&with, settings)?;
    let python: Vec<String> = with.iter().map(|entry| entry.text().to_owned()).collect();
    let mut origins = Vec::new();
    for text in &python {
        let name =
            requirement_name(text).map_err(|text| RequestError::Addition { option: "--with", text })?;
        origins.push(Requirement {
            text: text.clone(),
            name,
            hashes: Vec::new(),
            origin: "--with".to_owned(),
        });
    }
    if let Some(name) = source.apt.iter().find(|name| !is_apt_name(name)) {
        let text = format!("`{name}` is not the name of a distribution package");
        return Err(RequestError::Addition { option: "--apt", text }.into());
    }
    let mut allow_source = Vec::new();
    for text in &source.allow_source {
        let name =
            bare_name(text).map_err(|text| RequestError::Addition { option: "--allow-source", text })?;
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
    Ok(BuildRequest {
        spec: spec.checked()?.clone(),
        target: target.clone(),
        source: source.clone(),
        added: UserAdditions {
            as_of: source.as_of.clone(),
            python: sorted(&python),
            apt: sorted(&source.apt),
            allow_source,
            python_index: indexes.pinned,
            ..UserAdditions::default()
        },
        copies: Vec::new(),
        vendored: Vec::new(),
        indexes: indexes.addresses,
        origins,
        hashes: BTreeMap::new(),
        level: Level::Full,
        shell: Shell::default(),
        cluster: Cluster::default(),
        folder: None,
        code: CodeRequest::default(),
        base_of_project: false,
        trust: false,
        renews: false,
        preferred: None,
        listed: BTreeMap::new(),
    })
}

/// The moment after the date of `--as-of`; without it that of the lock file, which `--upgrade` drops.
fn moment_of(source: &LockOptions, settings: &Settings) -> Result<Option<String>, CommandError> {
    match &source.as_of {
        Some(text) => Ok(Some(moment_after(text)?)),
        None if source.upgrade => Ok(None),
        None => {
            Ok(source.lockfile.as_ref().and_then(|file| date_of_lock(&settings.paths.current_dir.join(file))))
        }
    }
}

/// The date that a lock was resolved for. A lock that cannot be read is reported where it is used.
fn date_of_lock(path: &Utf8PathBuf) -> Option<String> {
    read_lock(path).ok().flatten()?.added.as_of
}

/// The end of a day (`2026-03-01`), or a moment as it is, in UTC.
fn moment_after(text: &str) -> Result<String, RequestError> {
    let end =
        text.parse::<jiff::civil::Date>().and_then(|day| day.tomorrow()?.to_zoned(jiff::tz::TimeZone::UTC));
    let moment = end.map(|day| day.timestamp()).or_else(|_| text.parse::<jiff::Timestamp>());
    moment.map(|moment| moment.to_string()).map_err(|_| RequestError::Date { text: text.to_owned() })
}

fn of_project(
    args: &ProjectOptions,
    source: &LockOptions,
    target: &TargetOptions,
    settings: &Settings,
) -> Result<BuildRequest, CommandError> {
    if !source.with.is_empty() || !source.apt.is_empty() || !source.allow_source.is_empty() {
        return Err(RequestError::AdditionToProject.into());
    }
    let project = read(args, settings)?;
    let environment = &project.environment;
    let spec = environment.spec_text().map_err(|text| invalid(&project.file, text))?.parse()?;
    let requirements = requirements(&project)?;
    let mut hashes: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for requirement in requirements.iter().filter(|requirement| !requirement.hashes.is_empty()) {
        hashes.entry(requirement.name.clone()).or_default().extend(requirement.hashes.iter().cloned());
    }
    let lockfile = source.lockfile.clone().unwrap_or_else(|| project.folder.join(lock_name(args)));
    let kept = || date_of_lock(&lockfile).filter(|_| !source.upgrade && source.lockfile.is_none());
    let as_of = source.as_of.clone().or_else(kept);
    let mut added = UserAdditions {
        as_of: as_of.clone(),
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
        ..UserAdditions::default()
    };
    let mut copies = Vec::new();
    for (number, wish) in environment.copy.iter().enumerate() {
        let (locked, entries) = collect_copy(&project.folder, number, wish)?;
        added.copy.push(locked);
        copies.extend(entries);
    }
    let indexes = RequestedIndexes::of_project(&environment.packages, settings)?;
    (added.indexes, added.python_index) = (indexes.searched, indexes.pinned);
    added.allow_source.sort();
    added.allow_source.dedup_by(|one, other| one.name == other.name);
    for list in [&mut added.python, &mut added.apt, &mut added.may_lack] {
        list.sort();
        list.dedup();
    }
    let level = environment.verify.level.as_ref();
    Ok(BuildRequest {
        spec,
        target: target_of(environment, target, settings),
        source: LockOptions {
            lockfile: Some(lockfile),
            as_of,
            base: source.base.clone().or_else(|| environment.base.clone()),
            ..source.clone()
        },
        added,
        copies,
        vendored: Vec::new(),
        indexes: indexes.addresses,
        origins: requirements,
        hashes,
        level: level.and_then(|level| Level::parse(level)).unwrap_or(Level::Full),
        shell: environment.shell.clone(),
        cluster: environment.cluster.clone(),
        code: CodeRequest::of(environment),
        folder: Some(project.folder),
        base_of_project: source.base.is_none() && environment.base.is_some(),
        trust: false,
        renews: false,
        preferred: None,
        listed: BTreeMap::new(),
    })
}

/// The lock beside the project file: one for each environment.
fn lock_name(args: &ProjectOptions) -> String {
    match &args.environment {
        Some(environment) => format!("envforge.{environment}.lock"),
        None => "envforge.lock".to_owned(),
    }
}

fn allowed(wish: &AllowSourceEntry) -> AllowedSource {
    let (name, build) = match wish {
        AllowSourceEntry::Named(name) => (name, Vec::new()),
        AllowSourceEntry::WithBuild(wish) => (&wish.name, wish.build.clone()),
    };
    // It was found to be one when the file was read.
    AllowedSource { name: bare_name(name).unwrap_or_else(|_| name.clone()), build }
}

fn locked_run(run: &RunStep) -> LockedRun {
    match run {
        RunStep::Command(command) => LockedRun { command: command.clone(), secrets: Vec::new() },
        RunStep::WithSecrets(run) => LockedRun { command: run.command.clone(), secrets: run.secrets.clone() },
    }
}

/// The target: as typed, else as the environment names it, else as the project does.
fn target_of(environment: &Environment, typed: &TargetOptions, settings: &Settings) -> TargetOptions {
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
    target.platform =
        typed.platform.or_else(|| wish.platform.as_ref().and_then(|text| Machine::of_platform(text)));
    target.forward_compat |= wish.forward_compat == Some(true);
    target
}
