//! The wheel of a project that is installed in its image: built as a source distribution is, in an image of the layers below the
//! user's packages, without network and login.
#![expect(clippy::disallowed_methods, reason = "stamps the record of the image")]

use camino::Utf8Path;
use jiff::Timestamp;

use crate::failure::{Exit, Failure};
use crate::model::editable::{BuildableProject, NoProject, NotBuildable, PYPROJECT, buildable};
use crate::model::lock::{IndexKind, Lock, LockedSource, LockedWheel, UserAdditions, WheelLayer};
use crate::model::misfit::FileContent;
use crate::model::sha256::sha256_hex;
use crate::packages::{
    IndexSettings, LocalWheel, PackageRequest, PackagesError, here_files, resolve_packages,
};
use crate::project_files::ProjectSources;
use crate::report::Event;
use crate::source_build::{
    Compilation, SourceError, built_once, cached_wheel, extra_requirements, pyproject_requires,
};
use crate::store::installed_images::remember_installed;
use crate::workflow::base::check_processor;
use crate::workflow::build_machine::build_machine;
use crate::workflow::build_request::BuildRequest;
use crate::workflow::compiled_wheels::package_build;
use crate::workflow::context_files::{Builder, cached_file, compiled};
use crate::workflow::error::CommandError;
use crate::workflow::lock::LockedBuild;
use crate::workflow::package_sources::{package_settings, package_tools};
use crate::workflow::project_sources::{is_installed, sources_of};
use crate::workflow::session::Session;

/// Why a project cannot be installed in its image.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(crate) enum InstallError {
    /// Its pyproject.toml declares none.
    #[error("cannot install the project: {why}")]
    Undeclared {
        /// The reason.
        why: String,
        /// What helps.
        hint: &'static str,
    },
    /// Its pyproject.toml does not say which build backend it has.
    #[error(
        "cannot install the project: {PYPROJECT} has no `build-backend`, and more than one fits: {}",
        names.join(", ")
    )]
    Backends {
        /// Those that it requires, and the default.
        names: Vec<String>,
    },
    /// The image has a package of its name.
    #[error("cannot install the project: the lock file has a package `{name}`, too")]
    Taken {
        /// The name.
        name: String,
    },
    /// A module of it would take the place of a package's, or the other way round.
    #[error("cannot install the project: the image has other modules of these names:{}", list(modules))]
    Modules {
        /// Each path with the package of that name.
        modules: Vec<String>,
    },
    /// The wheel is of another project.
    #[error("the build made a wheel of `{found}`; {PYPROJECT} declares `{name}`")]
    OtherName {
        /// The declared name.
        name: String,
        /// That of the wheel.
        found: String,
    },
    /// There is no network for the build requirements.
    #[error(
        "`project = \"install\"` needs the package index for the project's build requirements, and --offline has none"
    )]
    Offline,
}

impl Failure for InstallError {
    fn exit(&self) -> Exit {
        match self {
            Self::Undeclared { .. } | Self::Backends { .. } | Self::Offline => Exit::Usage,
            Self::Taken { .. } | Self::Modules { .. } | Self::OtherName { .. } => Exit::No,
        }
    }

    fn hints(&self) -> Vec<String> {
        let hint = match self {
            Self::Undeclared { hint, .. } => hint,
            Self::Backends { .. } => "name it: `build-backend` in `[build-system]`",
            Self::Taken { .. } => "remove the package from envforge.toml, or rename the project",
            Self::Modules { .. } => "rename the modules, or move them into the project's package",
            Self::OtherName { .. } => return Vec::new(),
            Self::Offline => "build it without --offline, or use another `project` in envforge.toml",
        };
        vec![hint.to_owned()]
    }
}

fn list(lines: &[String]) -> String {
    lines.iter().fold(String::new(), |text, line| format!("{text}\n  - {line}"))
}

/// Refuses a project that is installed where there is no network.
pub(crate) fn check_online(wanted: &BuildRequest) -> Result<(), InstallError> {
    if is_installed(wanted) { Err(InstallError::Offline) } else { Ok(()) }
}

/// Warns that a vendor directory is not enough for the image of a project that is installed.
pub(crate) fn vendor_warning(wanted: &BuildRequest) -> Option<String> {
    let text = "`build --offline` cannot build this project's image: `project = \"install\"` needs the package index";
    is_installed(wanted).then(|| text.to_owned())
}

/// The lock of the image that has the project's own wheel, which is built unless the cache has it; `None`: it is not installed.
pub(crate) async fn with_project(
    session: &Session<'_>,
    locked: &LockedBuild,
    wanted: &BuildRequest,
    no_cache: bool,
) -> Result<Option<Lock>, CommandError> {
    let Some(sources) = sources_of(wanted)? else { return Ok(None) };
    for text in &sources.notes {
        session.reporter.report(Event::Note { text: text.clone() });
    }
    let project = declared(&sources)?;
    if locked.lock.wheels.iter().any(|wheel| wheel.name == project.name) {
        return Err(InstallError::Taken { name: project.name }.into());
    }
    let wheel = Box::pin(project_wheel(session, locked, wanted, (&project, &sources), no_cache)).await?;
    if wheel.name != project.name {
        return Err(InstallError::OtherName { name: project.name, found: wheel.name }.into());
    }
    wheel.check_package(&wheel.name, &wheel.version, &locked.lock.stack, locked.base.glibc.as_ref())?;
    let wheel = LockedWheel {
        name: wheel.name.clone(),
        version: wheel.version.clone(),
        file: wheel.file.clone(),
        sha256: wheel.sha256.clone(),
        size: Some(wheel.size),
        index: IndexKind::Local,
        index_name: None,
        layer: WheelLayer::Project,
    };
    let files = here_files(&session.store, &[], std::slice::from_ref(&wheel));
    let modules = files.values().flat_map(|files| taken_modules(files, &locked.lock)).collect::<Vec<_>>();
    if !modules.is_empty() {
        return Err(InstallError::Modules { modules }.into());
    }
    for text in files.values().filter_map(|files| started_code(files)) {
        session.reporter.report(Event::Warning { text });
    }
    let text = format!("installing the project: {} (SHA-256 {})", wheel.file, &wheel.sha256[..12]);
    session.reporter.report(Event::Note { text });
    let image = locked.lock.with_project(wheel);
    let key = (&*locked.lock.hash(), &*sources.sha256);
    remember_installed(&session.store, key, &image.hash(), Timestamp::now())?;
    Ok(Some(image))
}

/// The project that the sources declare.
fn declared(sources: &ProjectSources) -> Result<BuildableProject, InstallError> {
    let undeclared = |why: String, hint| InstallError::Undeclared { why, hint };
    let Some(text) = &sources.pyproject else {
        let hint = "write it, and let git know it: `git add pyproject.toml`";
        return Err(undeclared(format!("its sources have no {PYPROJECT}"), hint));
    };
    let declare = "declare it in `[project]` with a name, or use another `project` in envforge.toml";
    buildable(text).map_err(|cause| match cause {
        NotBuildable::Backends { names } => InstallError::Backends { names },
        NotBuildable::NoName => undeclared(format!("{PYPROJECT} has no valid name for it"), declare),
        NotBuildable::NoProject(NoProject::Invalid { why }) => {
            undeclared(format!("cannot read {PYPROJECT}: {why}"), declare)
        }
        NotBuildable::NoProject(NoProject::Undeclared) => {
            undeclared(format!("{PYPROJECT} has neither `[project]` nor `[tool.poetry]`"), declare)
        }
        NotBuildable::NoProject(NoProject::NotAPackage { setting }) => {
            undeclared(format!("{PYPROJECT} says {setting}"), declare)
        }
    })
}

/// The wheel of the sources: the cache's, if it was built of the same, else it is built now.
async fn project_wheel(
    session: &Session<'_>,
    locked: &LockedBuild,
    wanted: &BuildRequest,
    (project, sources): (&BuildableProject, &ProjectSources),
    no_cache: bool,
) -> Result<LocalWheel, CommandError> {
    let LockedBuild { lock, base, .. } = locked;
    let store = &session.store;
    let below = lock.without_user_layers();
    let mut source = LockedSource {
        name: project.name.clone(),
        version: project.version.clone().unwrap_or_else(|| "0".to_owned()),
        file: format!("{}.tar", project.name),
        sha256: sources.sha256.clone(),
        size: Some(sources.archive.len() as u64),
        build: Vec::new(),
        recipe: None,
    };
    // Which versions of the build requirements there are is chosen with the first build: a second one of the same sources, with the same
    // requirements and the same indexes to take them from, is the same wheel.
    let key = wheel_key(&package_build(&below, &source, &session.matrix).key(), &session.index, wanted);
    if !no_cache && let Some(wheel) = cached_wheel(store, &key)? {
        return Ok(wheel);
    }
    check_processor(session, &lock.stack)?;
    store.put(&sources.sha256, &sources.archive)?;
    let settings = package_settings(session, &lock.stack, &wanted.indexes);
    let tools = package_tools(session, &settings);
    let text = sources.pyproject.as_deref().unwrap_or_default();
    let added = UserAdditions {
        python: pyproject_requires(text, PYPROJECT)?,
        allow_source: Vec::new(),
        ..wanted.added.clone()
    };
    let (local, locked_base) = (framework_wheels(session, lock)?, base.locked());
    let request = PackageRequest {
        base_reference: &base.reference,
        base: &locked_base,
        stack: &lock.stack,
        matrix: &session.matrix,
        added: &added,
        previous: Some(lock),
        preferred: None,
        fresh: &[],
        renew: false,
        local: &local,
        built: &[],
    };
    let resolved = resolve_packages(&tools, &request).await.map_err(|cause| SourceError::BuildRequires {
        archive: PYPROJECT.to_owned(),
        cause: Box::new(cause),
    })?;
    source.build = extra_requirements(&below, &resolved.wheels);
    let build = package_build(&below, &source, &session.matrix);
    let builder_lock = build.builder_lock();
    let builder = Builder { lock: &builder_lock, base, wanted, jobs: build.jobs(build_machine(session)) };
    let archive = cached_file(store, &sources.sha256)?;
    let make = async {
        compiled(session, &tools, builder, |uv| Compilation {
            why: "the project is installed in its image",
            ..build.compilation(archive, uv)
        })
        .await
    };
    if no_cache {
        return make.await;
    }
    let nowhere_else = async { Ok::<_, CommandError>(None) };
    built_once(store, &key, None, nowhere_else, Box::pin(make)).await
}

/// The cache's key of a project's wheel: what it is built of and in, and the indexes that its build requirements come from.
fn wheel_key(build: &str, index: &IndexSettings, wanted: &BuildRequest) -> String {
    let UserAdditions { as_of, indexes, python_index, .. } = &wanted.added;
    let from = (&index.default, &index.framework, &index.of_framework, &index.further, &wanted.indexes);
    sha256_hex(format!("project\n{build}\n{from:?}\n{as_of:?}\n{indexes:?}\n{python_index:?}").as_bytes())
}

/// The wheels of the stack that no index has.
fn framework_wheels(session: &Session<'_>, lock: &Lock) -> Result<Vec<LocalWheel>, CommandError> {
    let of_stack = lock.local_wheels().filter(|wheel| wheel.layer < WheelLayer::User);
    let one = |wheel: &LockedWheel| {
        let gone = || PackagesError::LocalWheelGone { file: wheel.file.clone() };
        Ok(LocalWheel::locked(wheel, &session.store)?.ok_or_else(gone)?)
    };
    of_stack.map(one).collect()
}

/// Names the files of a wheel that every Python of the image runs when it starts, its checks among them.
fn started_code(files: &[(String, FileContent)]) -> Option<String> {
    let is_started = |path: &&str| {
        let is_top = !path.contains('/');
        let is_pth = Utf8Path::new(path).extension() == Some("pth");
        is_top && (is_pth || ["sitecustomize.py", "usercustomize.py"].contains(path))
    };
    let all: Vec<_> = files.iter().map(|(path, _)| path.as_str()).filter(is_started).collect();
    let names = all.join("`, `");
    (!all.is_empty())
        .then(|| format!("every Python of the image runs code of the project at its start: `{names}`"))
}

/// The modules of a wheel that have the name of a package of the lock, each once.
fn taken_modules(files: &[(String, FileContent)], lock: &Lock) -> Vec<String> {
    let mut found = Vec::new();
    for (path, _) in files {
        let first = path.split('/').next().unwrap_or_default();
        let module = first.split('.').next().unwrap_or_default().to_lowercase();
        let owner = lock.wheels.iter().find(|wheel| wheel.name.replace('-', "_") == module);
        found.extend(
            owner.map(|wheel| format!("`{first}`: `import {module}` is `{} {}`", wheel.name, wheel.version)),
        );
    }
    found.sort();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::lock::sample;

    fn sources(pyproject: Option<&str>) -> ProjectSources {
        let pyproject = pyproject.map(str::to_owned);
        ProjectSources { archive: Vec::new(), sha256: String::new(), pyproject, notes: Vec::new() }
    }

    #[test]
    fn project_that_cannot_be_built_is_refused_with_what_helps() {
        let error = |text: Option<&str>| declared(&sources(text)).expect_err("refused");
        for (text, says, hint) in [
            (None, "its sources have no pyproject.toml", "git add pyproject.toml"),
            (Some("[project]\nversion = '1'"), "pyproject.toml has no valid name for it", "with a name"),
            (Some("[tool.black]"), "neither `[project]` nor `[tool.poetry]`", "declare it"),
            (Some("[project"), "cannot read pyproject.toml: line 1", "declare it"),
            (
                Some("[project]\nname = 'a'\n[tool.uv]\npackage = false"),
                "`[tool.uv] package = false`",
                "declare it",
            ),
            (
                Some("[project]\nname = 'a'\n[build-system]\nrequires = ['hatchling', 'flit_core']"),
                "more than one fits: flit-core, hatchling, setuptools",
                "`build-backend` in `[build-system]`",
            ),
        ] {
            let error = error(text);
            assert!(error.to_string().starts_with("cannot install the project: "), "{error}");
            assert!(error.to_string().contains(says), "{error}");
            assert!(error.hints()[0].contains(hint), "{error:?}");
            assert_eq!(error.exit(), Exit::Usage);
        }
        let text = "[project]\nname = 'A_b'\nversion = '1'";
        assert_eq!(declared(&sources(Some(text))).expect("a project").name, "a-b");
    }

    #[test]
    fn code_that_every_python_runs_is_named() {
        let files =
            |paths: &[&str]| paths.iter().map(|path| ((*path).to_owned(), (0, 0))).collect::<Vec<_>>();
        let text = started_code(&files(&["a.pth", "sitecustomize.py", "code/b.pth", "c.py"]));
        assert!(text.expect("named").ends_with(": `a.pth`, `sitecustomize.py`"));
        assert_eq!(started_code(&files(&["code/sitecustomize.py", "code/b.pth"])), None);
    }

    #[test]
    fn module_of_a_locked_package_is_found() {
        let lock = sample::lock();
        let files =
            |paths: &[&str]| paths.iter().map(|path| ((*path).to_owned(), (0, 0))).collect::<Vec<_>>();
        let torch = lock.wheels.iter().find(|wheel| wheel.name == "torch").expect("torch");
        let expected = format!("`torch.py`: `import torch` is `torch {}`", torch.version);
        assert_eq!(taken_modules(&files(&["torch.py", "my_code/torch.py"]), &lock), [expected]);
        assert_eq!(taken_modules(&files(&["torch/a.py", "torch/b.py"]), &lock).len(), 1);
        assert_eq!(taken_modules(&files(&["my_code/__init__.py", "torch_more.py"]), &lock), [""; 0]);
    }
}
