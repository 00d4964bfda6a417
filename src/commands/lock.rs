//! `lock`, and the part of every build that comes before it: spec to stack to base to lock.
#![expect(clippy::disallowed_methods, reason = "reads and writes the lock, stamps it with the time")]

use std::sync::Arc;

use camino::Utf8PathBuf;
use jiff::Timestamp;
use serde::Serialize;

use super::session::Session;
use super::target::target;
use super::{CommandError, Exit};
use crate::base::{Base, BaseRequest, Mirrors, ProviderChoice, discover, prepare};
use crate::cli::{LockArgs, LockSource, TargetArgs};
use crate::compat::Matrix;
use crate::lock::{Lock, Records, SCHEMA};
use crate::packages::{Archive, PackageRequest, PackageSettings, PackageTools, resolve_packages};
use crate::plan::environment;
use crate::report::{Event, Printer, reporter};
use crate::resolve::{ResolveOptions, plan_report, refusal_text, resolve};
use crate::settings::Settings;
use crate::spec::Spec;
use crate::stack::{Flavour, Stack};
use crate::store::{StoreLock, write_atomically};

/// A lock that fits what was asked, with its base in the engine.
pub(super) struct Locked {
    pub(super) lock: Lock,
    pub(super) path: Utf8PathBuf,
    pub(super) base: Base,
    /// True if the lock was made or changed now.
    pub(super) new: bool,
    /// Held until the command ends, so that two runs of one spec do not make two locks.
    pub(super) _guard: StoreLock,
}

/// What `lock --json` prints.
#[derive(Serialize)]
struct LockReport<'a> {
    schema: u32,
    name: &'a str,
    lock: &'a str,
    file: &'a str,
    new: bool,
    packages: usize,
    wheels: usize,
}

pub(super) async fn lock(args: &LockArgs, settings: &Settings) -> Result<Exit, CommandError> {
    let stack = stack(settings, &args.spec, &args.source, &args.target)?;
    let session = Session::open(settings, args.source.network.as_deref()).await?;
    let locked = lock_for(&session, stack, &args.spec, &args.source).await?;
    let report = LockReport {
        schema: 1,
        name: &crate::plan::name(&locked.lock),
        lock: &locked.lock.hash(),
        file: locked.path.as_str(),
        new: locked.new,
        packages: locked.lock.system.len() + locked.lock.base.packages.len(),
        wheels: locked.lock.wheels.len(),
    };
    if settings.output.json {
        Printer.json(&report);
    } else {
        Printer.text(report.file);
    }
    Ok(Exit::Done)
}

/// The lock for a spec: the one that lies there if it fits, else a new one, written before this returns.
pub(super) async fn lock_for(
    session: &Session<'_>,
    stack: Stack,
    spec: &str,
    source: &LockSource,
) -> Result<Locked, CommandError> {
    if stack.machine != session.engine.info().machine {
        let why =
            "the engine runs another processor, and building for a foreign one comes with a later version";
        return Err(CommandError::Unsupported { what: stack.machine.platform().to_owned(), why });
    }
    let path = lock_path(session, &stack, source);
    let guard = session.store.lock(&format!("spec-{}", file_name(&stack.name))).await?;
    let old = read_lock(&path)?;
    let differences: Vec<String> = old
        .iter()
        .flat_map(|old| old.satisfied_by(&stack, &source.with))
        .map(|difference| difference.to_string())
        .collect();
    let stale = || CommandError::Stale { file: path.to_string(), differences: differences.clone() };
    match &old {
        Some(old) if differences.is_empty() && !source.upgrade => {
            session
                .reporter
                .report(Event::Note { text: format!("using the lock of {}: {path}", old.records.created) });
            let base = base_of(session, &stack, source, Some(old)).await?;
            return Ok(Locked { lock: old.clone(), path, base, new: false, _guard: guard });
        }
        _ if source.locked => return Err(stale()),
        Some(_) if !source.upgrade => {
            let text = format!("the lock is updated, it no longer fits: {}", differences.join("; "));
            session.reporter.report(Event::Note { text });
        }
        _ => {}
    }
    let kept = old.filter(|_| !source.upgrade);
    let base =
        base_of(session, &stack, source, kept.as_ref().filter(|old| old.stack.base == stack.base)).await?;
    let lock = resolved(session, spec, stack, source, &base, kept.as_ref()).await?;
    write_atomically(&path, lock.to_toml().as_bytes())?;
    Ok(Locked { lock, path, base, new: true, _guard: guard })
}

/// The stack for what was typed, or every reason why there is none. Asks neither engine nor network.
pub(super) fn stack(
    settings: &Settings,
    typed: &str,
    source: &LockSource,
    machine: &TargetArgs,
) -> Result<Stack, CommandError> {
    let matrix = Matrix::embedded();
    let spec: Spec = typed.parse()?;
    let target = target(machine, &settings.target, matrix, &*reporter(settings.output))?;
    let options = ResolveOptions {
        forward_compat: machine.forward_compat,
        base: source.base.clone(),
        ..ResolveOptions::default()
    };
    let answer = resolve(&spec, &target, matrix, &options);
    if settings.output.json && answer.is_err() {
        Printer.json(&plan_report(typed, &spec, &target, source.provider(), &answer));
    }
    let stack =
        answer.map_err(|refusal| CommandError::Impossible { text: refusal_text(&refusal, &target) })?;
    if stack.flavour == Flavour::Devel {
        let why = "the devel flavour comes with a later version; the runtime flavour has a C++ compiler and headers";
        return Err(CommandError::Unsupported { what: typed.to_owned(), why });
    }
    Ok(stack)
}

fn file_name(name: &str) -> String {
    name.replace(['/', ':'], "_")
}

fn lock_path(session: &Session<'_>, stack: &Stack, source: &LockSource) -> Utf8PathBuf {
    if let Some(file) = &source.lockfile {
        return session.settings.current_dir.join(file);
    }
    let added = if source.with.is_empty() { String::new() } else { format!("+{}", source.with.join("+")) };
    let name = format!("{}{}-{}.lock", file_name(&stack.name), file_name(&added), stack.machine);
    session.store.state_dir().join("locks-of-specs").join(name)
}

fn read_lock(path: &Utf8PathBuf) -> Result<Option<Lock>, CommandError> {
    match fs_err::read_to_string(path) {
        Ok(text) => Ok(Some(Lock::from_toml(path.as_str(), &text)?)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

async fn base_of(
    session: &Session<'_>,
    stack: &Stack,
    source: &LockSource,
    lock: Option<&Lock>,
) -> Result<Base, CommandError> {
    let request = BaseRequest {
        name: stack.base.clone(),
        suite: stack.suite.clone(),
        provider: match source.provider() {
            "image" => ProviderChoice::Image,
            "bootstrap" => ProviderChoice::Bootstrap,
            _ => ProviderChoice::Auto,
        },
        machine: stack.machine,
        mirrors: session.mirror_sources()?,
        locked: lock.map(|lock| &lock.base),
        accept_expired: session.settings.mirrors.accept_expired,
        now: Timestamp::now(),
    };
    let reporter = Arc::clone(&session.reporter);
    Ok(prepare(&*session.engine, &request, &session.store, &session.fetch, reporter).await?)
}

/// Everything above the base, resolved in a throwaway container, as a lock.
async fn resolved(
    session: &Session<'_>,
    spec: &str,
    stack: Stack,
    source: &LockSource,
    base: &Base,
    previous: Option<&Lock>,
) -> Result<Lock, CommandError> {
    let settings = package_settings(session, &stack);
    let tools = PackageTools {
        engine: &*session.engine,
        store: &session.store,
        fetcher: &session.fetch,
        settings: &settings,
        reporter: Arc::clone(&session.reporter),
    };
    let locked_base = base.locked();
    let request = PackageRequest {
        base_reference: &base.reference,
        base: &locked_base,
        stack: &stack,
        requested: &source.with,
        previous,
    };
    let found = resolve_packages(&tools, &request).await?;
    let records = Records {
        created: Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        envforge: env!("CARGO_PKG_VERSION").to_owned(),
        matrix: stack.matrix.clone(),
        agent: Some(crate::agent::sha256()),
        ..Records::default()
    };
    let mut requested = source.with.clone();
    requested.sort();
    Ok(Lock {
        schema: SCHEMA,
        spec: spec.to_owned(),
        requested,
        environment: environment(&stack),
        stack,
        base: locked_base,
        tools: found.tools,
        system: found.system,
        wheels: found.wheels,
        records,
    })
}

/// The mirrors of the distribution; none for one that has its own (its base names them).
pub(super) fn mirrors(session: &Session<'_>) -> Option<Mirrors> {
    session.mirror_sources().ok().and_then(|sources| discover(&sources).ok())
}

/// Where packages of a stack come from.
pub(super) fn package_settings(session: &Session<'_>, stack: &Stack) -> PackageSettings {
    let archives = match mirrors(session) {
        Some(found) if stack.base.starts_with("debian:") => {
            Archive::debian(&stack.suite, &found.main, found.security.as_ref())
        }
        _ => Vec::new(),
    };
    PackageSettings {
        index: session.index.clone(),
        archives,
        accept_expired: session.settings.mirrors.accept_expired,
        network: session.network,
    }
}
