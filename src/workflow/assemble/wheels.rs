//! The wheels of an image as layers, each group with its byte code above it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use camino::Utf8PathBuf;

use crate::assemble::{
    AssembleError, Conflicts, DigestCache, Installation, LayerFile, LayerKey, LayerPlan, Wheel, WheelGroup,
    digest_layers, group_wheels,
};
use crate::container_layers::Tools;
use crate::container_layers::byte_code::{Distribution, Interpreter, SourceFile, compile, kept};
use crate::model::image::component::ComponentKind;
use crate::model::lock::{IndexKind, Lock, LockedWheel, WheelLayer};
use crate::packages::{WheelSource, wheel_addresses};
use crate::workflow::assemble::layer::{Made, blocking};
use crate::workflow::assemble::system::System;
use crate::workflow::build_request::BuildRequest;
use crate::workflow::error::CommandError;
use crate::workflow::lock::LockedBuild;
use crate::workflow::package_sources::{package_settings, package_tools};
use crate::workflow::session::Session;

/// Downloads the wheels that neither the cache nor a vendor folder has; returns the path of each.
async fn gather(
    session: &Session<'_>,
    locked: &LockedBuild,
    system: &System<'_>,
    wanted: &BuildRequest,
) -> Result<Vec<Utf8PathBuf>, CommandError> {
    let lock = &locked.lock;
    let vendored: BTreeMap<&str, &Utf8PathBuf> =
        wanted.vendored.iter().map(|(_, file)| (file.sha256.as_str(), &file.path)).collect();
    let mut missing = Vec::new();
    for wheel in &lock.wheels {
        let is_here =
            vendored.contains_key(wheel.sha256.as_str()) || session.store.find(&wheel.sha256)?.is_some();
        if !is_here {
            missing.push(wheel);
        }
    }
    if !missing.is_empty() {
        let settings = package_settings(session, &lock.stack, &wanted.indexes);
        let of_default: Vec<&LockedWheel> =
            missing.iter().copied().filter(|wheel| wheel.index == IndexKind::Default).collect();
        let known = if settings.index.default.is_none() && !of_default.is_empty() {
            let tools = package_tools(session, &settings);
            Some(wheel_addresses(&tools, system.tag.name(), &system.uv, &of_default).await?)
        } else {
            None
        };
        let source = WheelSource {
            stack: &lock.stack,
            index: &settings.index,
            fetcher: &session.fetch,
            known: known.as_ref(),
        };
        source.gather(&missing, &session.store, Arc::clone(&session.reporter)).await?;
    }
    let path = |wheel: &LockedWheel| match vendored.get(wheel.sha256.as_str()) {
        Some(path) => Ok((*path).clone()),
        None => Ok(session.store.blob_path(&wheel.sha256)?),
    };
    lock.wheels.iter().map(path).collect()
}

/// Layers of wheels at most: an engine takes 125 in all.
const MOST_LAYERS: usize = 80;

/// The wheels of an image, open and verified.
pub(super) struct WheelLayers<'a> {
    tools: &'a Tools<'a>,
    system: &'a System<'a>,
    lock: &'a Lock,
    /// What tells the image's Python from any other build of Python.
    python: String,
    /// In the order of the lock.
    installations: Vec<Installation>,
    conflicts: Conflicts,
    groups: Vec<WheelGroup>,
}

impl<'a> WheelLayers<'a> {
    /// Makes the wheels present, verifies them and decides which layer each belongs to.
    pub(super) async fn open(
        session: &'a Session<'_>,
        tools: &'a Tools<'a>,
        locked: &'a LockedBuild,
        system: &'a System<'a>,
        wanted: &BuildRequest,
    ) -> Result<Self, CommandError> {
        let lock = &locked.lock;
        let minor = lock.stack.python.minor;
        let mut replaced = BTreeSet::new();
        let (installations, conflicts) = loop {
            let paths = gather(session, locked, system, wanted).await?;
            let wheels: Vec<(Utf8PathBuf, LockedWheel)> =
                paths.into_iter().zip(lock.wheels.iter().cloned()).collect();
            match blocking(move || open_all(&wheels, minor)).await? {
                Ok(opened) => break opened,
                // A damaged file of the cache is downloaded once more; one of a vendor folder is the user's.
                Err(AssembleError::WrongHash { wanted: sha256, .. })
                    if wanted.vendored.is_empty() && replaced.insert(sha256.clone()) =>
                {
                    session.store.discard(&sha256)?;
                }
                Err(error) => return Err(error.into()),
            }
        };
        let sizes: Vec<u64> = installations.iter().map(|wheel| wheel.wheel().size()).collect();
        let groups = group_wheels(&lock.wheels, &sizes, MOST_LAYERS);
        Ok(Self { tools, system, lock, python: python_of(lock), installations, conflicts, groups })
    }

    /// The layers of one component, lowest first, with its byte code on top.
    pub(super) async fn group(&self, kind: ComponentKind) -> Result<Vec<Made>, CommandError> {
        let groups: Vec<&WheelGroup> =
            self.groups.iter().filter(|group| component(group.layer) == kind).collect();
        let mut made = self.wheel_layers(kind, &groups).await?;
        let wheels: Vec<usize> = groups.iter().flat_map(|group| group.wheels.iter().copied()).collect();
        made.extend(self.byte_code(kind, &wheels).await?);
        Ok(made)
    }

    /// The layers of some groups: their digests from the cache, or made now on all cores.
    async fn wheel_layers(
        &self,
        kind: ComponentKind,
        groups: &[&WheelGroup],
    ) -> Result<Vec<Made>, CommandError> {
        let cache = DigestCache::new(&self.tools.store.cache_dir().join("layers").join("digests"));
        let (mut plans, mut known) = (Vec::new(), Vec::new());
        for group in groups {
            let wheels = self.wheels_of(group);
            plans.push(LayerPlan::new(&wheels, &self.conflicts, BTreeMap::new())?);
            known.push(if self.tools.no_cache { None } else { cache.find(&self.key(&wheels))? });
        }
        let unknown: Vec<LayerPlan> = plans
            .iter()
            .zip(&known)
            .filter(|(_, known)| known.is_none())
            .map(|(plan, _)| plan.clone())
            .collect();
        let mut computed = blocking(move || digest_layers(&unknown, &|_, _| {})).await??.into_iter();
        let mut made = Vec::new();
        for ((group, plan), known) in groups.iter().zip(plans).zip(known) {
            let digests = if let Some(digests) = known {
                digests
            } else {
                let digests = computed.next().expect("one for each that was unknown");
                cache.put(&self.key(&self.wheels_of(group)), &digests)?;
                digests
            };
            made.push(Made::of_plan(kind, &self.title(group), plan, digests));
        }
        Ok(made)
    }

    fn wheels_of(&self, group: &WheelGroup) -> Vec<&Installation> {
        group.wheels.iter().map(|at| &self.installations[*at]).collect()
    }

    fn key<'k>(&'k self, wheels: &[&'k Installation]) -> LayerKey<'k> {
        wheels.iter().fold(LayerKey::new(self.lock.stack.python.minor), |key, wheel| {
            let wheel = wheel.wheel();
            key.wheel(wheel.sha256(), self.conflicts.left_out(wheel.distribution()))
        })
    }

    /// `torch 2.8.0`, or `97 wheels`.
    fn title(&self, group: &WheelGroup) -> String {
        match group.wheels.as_slice() {
            [one] => format!("{} {}", self.lock.wheels[*one].name, self.lock.wheels[*one].version),
            many => format!("{} wheels", many.len()),
        }
    }

    /// The layer of byte code of these wheels, if they have modules.
    async fn byte_code(&self, kind: ComponentKind, wheels: &[usize]) -> Result<Option<Made>, CommandError> {
        let (mut code, mut missing) = (Vec::new(), Vec::new());
        for at in wheels {
            let installation = &self.installations[*at];
            let wheel = installation.wheel().sha256();
            let known = if self.tools.no_cache { None } else { kept(self.tools.store, wheel, &self.python) };
            match known {
                Some(known) => code.push((*at, known)),
                None => missing.push(installation.clone()),
            }
        }
        let minor = self.lock.stack.python.minor;
        let distributions = blocking(move || {
            missing.iter().map(|wheel| modules(wheel, minor)).collect::<Result<Vec<_>, AssembleError>>()
        })
        .await??;
        let python = Interpreter { image: self.system.tag.name(), identity: &self.python };
        let mut compiled = compile(self.tools, python, distributions).await?;
        for at in wheels {
            let made = compiled.remove(self.installations[*at].wheel().sha256());
            code.extend(made.map(|made| (*at, made)));
        }
        let mut files = BTreeMap::new();
        for (at, made) in code {
            // A module that gives way to another distribution's has no byte code either.
            let left_out = self.conflicts.left_out(self.installations[at].wheel().distribution());
            for file in made
                .iter()
                .filter(|file| !module_of(file).is_some_and(|path| left_out.contains(path.as_str())))
            {
                let bytes = file.content.as_ref();
                files.insert(file.path.trim_start_matches('/').to_owned(), LayerFile::of_bytes(0o644, bytes));
            }
        }
        if files.is_empty() {
            return Ok(None);
        }
        let title = format!("byte code of {}", kind.name());
        Made::planned(kind, &title, LayerPlan::new(&[], &self.conflicts, files)?).await.map(Some)
    }
}

/// Opens wheels on all cores, in their order, and compares their paths.
fn open_all(
    wheels: &[(Utf8PathBuf, LockedWheel)],
    minor: u8,
) -> Result<(Vec<Installation>, Conflicts), AssembleError> {
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
    let next = std::sync::atomic::AtomicUsize::new(0);
    let work = || -> Result<Vec<(usize, Installation)>, AssembleError> {
        let mut opened = Vec::new();
        loop {
            let at = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let Some((path, locked)) = wheels.get(at) else { return Ok(opened) };
            let wheel = Arc::new(Wheel::open(path, locked)?);
            opened.push((at, Installation::of(wheel, minor)?));
        }
    };
    let mut all = std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let mut all = Vec::new();
        for thread in running {
            all.extend(thread.join().expect("opening a wheel does not panic")?);
        }
        Ok::<_, AssembleError>(all)
    })?;
    all.sort_by_key(|(at, _)| *at);
    let installations: Vec<Installation> = all.into_iter().map(|(_, installation)| installation).collect();
    let conflicts = Conflicts::find(&installations.iter().collect::<Vec<_>>())?;
    Ok((installations, conflicts))
}

/// The modules of a wheel: what Python may import from site-packages.
fn modules(installation: &Installation, minor: u8) -> Result<Distribution, AssembleError> {
    let packages = format!("opt/env/lib/python3.{minor}/site-packages/");
    let mut sources = Vec::new();
    for file in installation.files() {
        let is_module = file.path.starts_with(&packages) && file.path.strip_suffix(".py").is_some();
        if is_module && let Some(content) = installation.read(file)? {
            sources.push(SourceFile { path: format!("/{}", file.path), content: content.into() });
        }
    }
    Ok(Distribution { wheel: installation.wheel().sha256().to_owned(), sources })
}

/// The path of the module of some byte code, without the leading `/`.
fn module_of(code: &SourceFile) -> Option<String> {
    let (folder, name) = code.path.trim_start_matches('/').rsplit_once("/__pycache__/")?;
    let stem = name.strip_suffix(".pyc")?.rsplit_once('.')?.0;
    Some(format!("{folder}/{stem}.py"))
}

/// The packages of the image's Python: its byte code changes with no other.
fn python_of(lock: &Lock) -> String {
    let python = lock.stack.python;
    let is_python = |name: &str| name.contains(&format!("python{python}"));
    let debs = lock.base.packages.iter().chain(&lock.system).filter(|deb| is_python(&deb.name));
    let mut parts: Vec<&str> = debs.map(|deb| deb.sha256.as_str()).collect();
    // A base that brings its Python is named by its digest.
    parts.extend(lock.base.digest.as_deref());
    format!("{python} {}", parts.join(" "))
}

fn component(layer: WheelLayer) -> ComponentKind {
    match layer {
        WheelLayer::Cuda => ComponentKind::Cuda,
        WheelLayer::Framework => ComponentKind::Framework,
        WheelLayer::Stack => ComponentKind::Stack,
        WheelLayer::User => ComponentKind::User,
    }
}
