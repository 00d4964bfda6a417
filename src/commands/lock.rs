//! `lock`, and the part of every build that comes before it: spec to stack to base to lock.
#![expect(clippy::disallowed_methods, reason = "reads and writes the lock, stamps it with the time")]

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use camino::Utf8PathBuf;
use jiff::Timestamp;
use serde::Serialize;

use super::base::base_of;
use super::content::digest_of;
use super::error::Conflict;
use super::from_source::{agree_to_compile, wheel_from_source};
use super::known_locks::{OF_SPECS, remember_project};
use super::local_wheels::{Supplied, judge};
use super::named_base::{NamedBase, named_base};
use super::outdated::{check, diff};
use super::session::Session;
use super::source_packages::{tell_of_sources, wheels_of_sources};
use super::target::{options, target};
use super::wanted::{Wanted, wanted};
use super::{CommandError, Exit};
use crate::address::Address;
use crate::base::{Base, Mirrors, discover};
use crate::cli::{LockArgs, LockSource};
use crate::compat::Matrix;
use crate::lock::{Added, Lock, LockedSource, LockedWheel, Records, SCHEMA};
use crate::packages::{
    Archive, FoundSource, IndexSettings, LocalWheel, PackageRequest, PackageSettings, PackageTools,
    PackagesError, Resolved, resolve_packages, vendor_root,
};
use crate::plan::{LOCK_LABEL, UNVERIFIED, environment};
use crate::project::requirement_name;
use crate::report::{Event, Printer, reporter};
use crate::resolve::{ResolveOptions, ToolkitSources, plan_report, refusal_text, resolve};
use crate::settings::Settings;
use crate::sha256::sha256_hex;
use crate::source_build::SourceError;
use crate::spec::Spec;
use crate::stack::{NvccSource, Stack};
use crate::store::{StoreLock, write_atomically};

/// More rounds of building source distributions than any that end.
const ROUNDS: u32 = 5;

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
    content: Option<&'a str>,
}

pub(super) async fn lock(args: &LockArgs, settings: &Settings) -> Result<Exit, CommandError> {
    let wanted = wanted(args.spec.as_deref(), &args.project, &args.source, &args.target, settings)?;
    if args.check {
        return check(&wanted, settings);
    }
    if args.diff {
        return diff(args, &wanted, settings).await;
    }
    let named = named_base(settings, &wanted.source, &wanted.target).await?;
    let stack = stack(settings, &wanted.spec, &wanted.source, &wanted.target, named.as_ref())?;
    let session = Session::open(settings, wanted.source.network.as_deref()).await?;
    let locked = lock_for(&session, stack, named.as_ref(), &wanted).await?;
    let content = if args.digest {
        Some(content(&session, &locked, &wanted.spec).await?)
    } else {
        locked.lock.records.content.clone()
    };
    let report = LockReport {
        schema: 1,
        name: &crate::plan::name(&locked.lock),
        lock: &locked.lock.hash(),
        file: locked.path.as_str(),
        new: locked.new,
        packages: locked.lock.debs().count() + locked.lock.base.packages.len(),
        wheels: locked.lock.wheels.len(),
        content: content.as_deref(),
    };
    if settings.output.json {
        Printer.json(&report);
    } else if let (true, Some(digest)) = (args.digest, &content) {
        Printer.text(digest);
    } else {
        Printer.text(report.file);
    }
    Ok(Exit::Done)
}

/// The content digest of a lock: of its image in the engine, which must be the recorded one; else the record alone.
async fn content(session: &Session<'_>, locked: &Locked, spec: &str) -> Result<String, CommandError> {
    let name = crate::plan::name(&locked.lock);
    let hash = locked.lock.hash();
    for tag in [name.clone(), format!("{name}{UNVERIFIED}")] {
        if let Some(image) = session.engine.image(&tag).await?
            && image.labels.get(LOCK_LABEL) == Some(&hash)
        {
            return digest_of(session, locked, &image.id).await;
        }
    }
    let not_built = || CommandError::NotBuilt { tag: name + UNVERIFIED, spec: spec.to_owned() };
    locked.lock.records.content.clone().ok_or_else(not_built)
}

/// The lock for a spec: the one that lies there if it fits, else a new one, written before this returns.
pub(super) async fn lock_for(
    session: &Session<'_>,
    stack: Stack,
    named: Option<&NamedBase>,
    wanted: &Wanted,
) -> Result<Locked, CommandError> {
    let source = &wanted.source;
    let path = lock_path(session.settings, &stack, source);
    let guard = session.store.lock(&format!("lock-{}", &sha256_hex(path.as_str().as_bytes())[..16])).await?;
    if wanted.added.project.is_some() {
        remember_project(&session.store, &path)?;
    }
    let old = match read_lock(&path) {
        // `--upgrade` keeps nothing of it; one of a newer envforge is not ours to overwrite.
        Err(CommandError::Lock(error)) if source.upgrade && !error.is_of_newer() => None,
        old => old?,
    };
    if let Some(old) = &old {
        check_upgrades(old, &path, wanted)?;
    }
    let mut supplied = Supplied::new(stack, wanted, old.as_ref(), session.settings, &session.store)?;
    let stack = &supplied.stack;
    let differences: Vec<String> = old
        .iter()
        .flat_map(|old| supplied.differences(old, &wanted.added))
        .map(|difference| difference.to_string())
        .collect();
    let stale = || CommandError::Stale { file: path.to_string(), differences: differences.clone() };
    match &old {
        Some(old) if differences.is_empty() && !source.upgrade && source.upgrade_package.is_empty() => {
            session
                .reporter
                .report(Event::Note { text: format!("using the lock of {}: {path}", old.records.created) });
            let base = base_of(session, stack, named, source, Some(old)).await?;
            return Ok(Locked { lock: old.clone(), path, base, new: false, _guard: guard });
        }
        _ if source.locked => return Err(stale()),
        Some(_) if !differences.is_empty() && !source.upgrade => {
            let text = format!("the lock is updated, it no longer fits: {}", differences.join("; "));
            session.reporter.report(Event::Note { text });
        }
        _ => {}
    }
    supplied.tell(session);
    if supplied.lacks_a_wheel() {
        agree_to_compile(session, stack, wanted).await?;
    }
    let kept = old.filter(|_| !source.upgrade);
    let same_base = kept.as_ref().filter(|old| old.stack.base == stack.base);
    let base = base_of(session, stack, named, source, same_base).await?;
    if supplied.lacks_a_wheel() {
        let wheel = Box::pin(wheel_from_source(session, &supplied.stack, &base, wanted)).await?;
        supplied.give(wheel);
    }
    let lock = next_lock(session, supplied, wanted, &base, kept).await?;
    write_atomically(&path, lock.to_toml().as_bytes())?;
    Ok(Locked { lock, path, base, new: true, _guard: guard })
}

/// Refuses to choose anew what nobody chose: a name that is misspelt changes nothing, and says so.
fn check_upgrades(old: &Lock, path: &Utf8PathBuf, wanted: &Wanted) -> Result<(), CommandError> {
    let is_known = |name: &String| {
        let of_lock =
            old.wheels.iter().any(|wheel| wheel.name == *name) || old.debs().any(|deb| deb.name == *name);
        let wished =
            wanted.added.python.iter().any(|text| requirement_name(text).is_ok_and(|known| known == *name));
        of_lock || wished || wanted.added.apt.contains(name)
    };
    let packages: Vec<_> =
        wanted.source.upgrade_package.iter().filter(|name| !is_known(name)).cloned().collect();
    let file = path.to_string();
    if packages.is_empty() { Ok(()) } else { Err(CommandError::NotLocked { packages, file }) }
}

/// A lock for what is wanted, with as few changes of `kept` as can be. Nothing is written.
pub(super) async fn next_lock(
    session: &Session<'_>,
    supplied: Supplied,
    wanted: &Wanted,
    base: &Base,
    kept: Option<Lock>,
) -> Result<Lock, CommandError> {
    match kept {
        // Nothing that is downloaded changed: what was resolved stays.
        Some(old)
            if wanted.source.upgrade_package.is_empty()
                && old.differs_from(&supplied.stack).is_empty()
                && supplied.same_wheels(&old)
                && old.added.same_packages(&wanted.added) =>
        {
            Ok(changed_around_packages(old, wanted))
        }
        kept => Box::pin(resolved(session, supplied, wanted, base, kept.as_ref())).await,
    }
}

/// The stack for what was typed, or every reason why there is none. Asks neither engine nor network: a base that had to be
/// looked into is given.
pub(super) fn stack(
    settings: &Settings,
    typed: &str,
    source: &LockSource,
    machine: &crate::cli::TargetArgs,
    named: Option<&NamedBase>,
) -> Result<Stack, CommandError> {
    let mut matrix = Cow::Borrowed(Matrix::current());
    if let Some(named) = named {
        matrix.to_mut().bases.push(named.row.clone());
    }
    let matrix = &*matrix;
    let spec: Spec = typed.parse()?;
    let target = target(machine, &settings.target, matrix, &*reporter(settings.output))?;
    let options = options(machine, source, settings);
    let answer = resolve(&spec, &target, matrix, &options);
    let stack = answer.map_err(|refusal| CommandError::Impossible {
        text: refusal_text(&refusal, &target),
        plan: Box::new(plan_report(typed, &spec, &target, source.provider(), &Err(refusal))),
    })?;
    judge(settings, &stack, source)?;
    Ok(stack)
}

fn file_name(name: &str) -> String {
    name.replace(['/', ':'], "_")
}

/// Where the lock lies.
pub(super) fn lock_path(settings: &Settings, stack: &Stack, source: &LockSource) -> Utf8PathBuf {
    if let Some(file) = &source.lockfile {
        return settings.current_dir.join(file);
    }
    // The wishes may be long and hold anything.
    let mut wishes = [source.with.join("\n"), source.apt.join("\n")].join("\n\n");
    if !source.allow_source.is_empty() {
        wishes = [wishes, source.allow_source.join("\n")].join("\n\n");
    }
    let added = if wishes.trim().is_empty() {
        String::new()
    } else {
        format!("+{}", &sha256_hex(wishes.as_bytes())[..12])
    };
    let name = format!("{}{added}-{}.lock", file_name(&stack.name), stack.machine);
    settings.state_dir.join(OF_SPECS).join(name)
}

/// The lock at that path, if there is one.
pub(super) fn read_lock(path: &Utf8PathBuf) -> Result<Option<Lock>, CommandError> {
    match fs_err::read(path) {
        Ok(bytes) => Ok(Some(Lock::from_bytes(path.as_str(), &bytes)?)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Everything above the base, resolved in a throwaway container, as a lock.
async fn resolved(
    session: &Session<'_>,
    supplied: Supplied,
    wanted: &Wanted,
    base: &Base,
    previous: Option<&Lock>,
) -> Result<Lock, CommandError> {
    let local = supplied.wheels(&session.store)?;
    let stack = supplied.stack;
    let settings = package_settings(session, &stack, &wanted.indexes);
    let tools = package_tools(session, &settings);
    let locked_base = base.locked();
    let request = PackageRequest {
        base_reference: &base.reference,
        base: &locked_base,
        stack: &stack,
        added: &wanted.added,
        previous,
        fresh: &wanted.source.upgrade_package,
        local: &local,
        built: &[],
    };
    let failed = |cause| not_resolved(cause, session, wanted, &stack);
    let mut found = resolve_packages(&tools, &request).await.map_err(failed)?;
    let (mut chosen, mut sources, mut beside) = (Vec::new(), Vec::new(), None);
    for round in 0.. {
        // What was built tells what it needs: that may be another source distribution, or another stack to build beside.
        let without = lock_of(found.clone(), &request, wanted);
        let below = without.below_the_user().without_records();
        let settled = found.sources.is_empty() && (chosen.is_empty() || beside.as_ref() == Some(&below));
        if settled {
            break;
        }
        if round == ROUNDS {
            return Err(SourceError::Unsettled.into());
        }
        check_archives(&found.sources, &wanted.hashes)?;
        tell_of_sources(session, &found.sources);
        chosen.append(&mut found.sources);
        let made =
            Box::pin(wheels_of_sources(session, &tools, &request, (&without, &chosen), base, wanted)).await?;
        let built: Vec<LocalWheel>;
        (sources, built) = made.into_iter().unzip();
        let request = PackageRequest { built: &built, ..request };
        found = resolve_packages(&tools, &request).await.map_err(failed)?;
        beside = Some(below);
    }
    sources.retain(|source: &LockedSource| found.wheels.iter().any(|wheel| wheel.name == source.name));
    sources.sort_by(|one, other| one.name.cmp(&other.name));
    let published =
        found.wheels.iter().filter(|wheel| sources.iter().all(|source| source.name != wheel.name));
    check_hashes(published, &wanted.hashes)?;
    Ok(Lock { sources, ..lock_of(found, &request, wanted) })
}

/// What was resolved, as a lock.
fn lock_of(found: Resolved, request: &PackageRequest<'_>, wanted: &Wanted) -> Lock {
    let records = Records {
        created: Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        envforge: env!("CARGO_PKG_VERSION").to_owned(),
        matrix: request.stack.matrix.clone(),
        agent: Some(crate::agent::sha256()),
        ..Records::default()
    };
    Lock {
        schema: SCHEMA,
        spec: wanted.spec.clone(),
        added: wanted.added.clone(),
        environment: environment_of(request.stack, &wanted.added),
        stack: request.stack.clone(),
        base: request.base.clone(),
        tools: found.tools,
        system: found.system,
        unpacked: found.unpacked,
        apt: found.apt,
        wheels: found.wheels,
        sources: Vec::new(),
        records,
    }
}

/// Why nothing could be resolved, in the user's words where it lies with his wishes.
fn not_resolved(cause: PackagesError, session: &Session<'_>, wanted: &Wanted, stack: &Stack) -> CommandError {
    if cause.is_of_nvcc() {
        let nearest = without_that_source(&wanted.spec, stack, session.settings.toolkit);
        return CommandError::NvccOutOfReach { cause, nearest };
    }
    if cause.is_conflict() { conflict(cause, wanted, stack) } else { cause.into() }
}

/// The lock with another environment, other files, commands or checks, and the same packages.
fn changed_around_packages(old: Lock, wanted: &Wanted) -> Lock {
    let environment = environment_of(&old.stack, &wanted.added);
    let records = Records { content: None, ..old.records };
    Lock { spec: wanted.spec.clone(), added: wanted.added.clone(), environment, records, ..old }
}

/// The image's variables, and the user's.
fn environment_of(stack: &Stack, added: &Added) -> BTreeMap<String, String> {
    let mut all = environment(stack);
    all.extend(added.variables.clone());
    all
}

/// Refuses a wheel whose hash a requirement file does not allow.
fn check_hashes<'a>(
    mut wheels: impl Iterator<Item = &'a LockedWheel>,
    allowed: &BTreeMap<String, Vec<String>>,
) -> Result<(), PackagesError> {
    let refused =
        wheels.find(|wheel| allowed.get(&wheel.name).is_some_and(|hashes| !hashes.contains(&wheel.sha256)));
    match refused {
        None => Ok(()),
        Some(wheel) => Err(PackagesError::OtherHash {
            package: wheel.name.clone(),
            file: wheel.file.clone(),
            found: wheel.sha256.clone(),
        }),
    }
}

/// The same for source distributions, before anything of them runs.
fn check_archives(
    sources: &[FoundSource],
    allowed: &BTreeMap<String, Vec<String>>,
) -> Result<(), PackagesError> {
    let archives: Vec<_> = sources.iter().map(|source| source.locked.as_file()).collect();
    check_hashes(archives.iter(), allowed)
}

/// A conflict in the user's words: which of his wishes are in it, and where they stand.
fn conflict(cause: PackagesError, wanted: &Wanted, stack: &Stack) -> CommandError {
    let words = std::error::Error::source(&cause).map(ToString::to_string).unwrap_or_default();
    let named = |name: &str| {
        words.split(|c: char| !(c.is_ascii_alphanumeric() || "-_.".contains(c))).any(|word| word == name)
    };
    let wishes = wanted.origins.iter().filter(|wish| named(&wish.name));
    let wishes = wishes.map(|wish| format!("`{}` is asked for by {}", wish.text, wish.origin)).collect();
    let pin = format!("{} {}", stack.package, stack.version);
    let pinned = named(&stack.package).then_some(pin);
    Box::new(Conflict { cause, wishes, pinned, product: stack.product.clone() }).into()
}

/// The nearest devel specs whose nvcc comes from another source than this stack's, as commands.
fn without_that_source(typed: &str, stack: &Stack, sources: ToolkitSources) -> Vec<String> {
    let (Ok(spec), Some(nvcc)) = (typed.parse::<Spec>(), &stack.nvcc) else { return Vec::new() };
    let mut options = ResolveOptions { toolkit: sources, ..ResolveOptions::default() };
    match nvcc.source {
        NvccSource::Distribution => options.toolkit.distribution = false,
        NvccSource::Wheels => options.toolkit.wheels = false,
        NvccSource::Vendor => options.toolkit.vendor = false,
    }
    match resolve(&spec, &stack.target, Matrix::current(), &options) {
        Ok(other) => vec![format!("envforge build {}", other.name)],
        Err(refusal) => refusal.alternatives.into_iter().map(|offer| offer.command).collect(),
    }
}

/// The mirrors of the distribution; none for one that has its own (its base names them).
pub(super) fn mirrors(session: &Session<'_>) -> Option<Mirrors> {
    session.mirror_sources().ok().and_then(|sources| discover(&sources).ok())
}

/// Where .deb files may come from: mirrors of the distribution, of the base's own archives, and of nvcc's vendor.
pub(super) fn deb_mirrors(
    session: &Session<'_>,
    base: &Base,
    stack: &Stack,
    settings: &PackageSettings,
) -> Vec<Address> {
    let found = mirrors(session).into_iter().flat_map(|found| [Some(found.main), found.security]).flatten();
    let vendor = stack.nvcc.as_ref().and_then(|nvcc| nvcc.repository.as_ref());
    let vendor = vendor.map(|repository| vendor_root(repository, &settings.vendor));
    found.chain(base.mirrors.iter().cloned()).chain(vendor).collect()
}

/// What packages are resolved with.
pub(super) fn package_tools<'a>(session: &'a Session<'_>, settings: &'a PackageSettings) -> PackageTools<'a> {
    PackageTools {
        engine: &*session.engine,
        store: &session.store,
        fetcher: &session.fetch,
        settings,
        reporter: Arc::clone(&session.reporter),
    }
}

/// Where packages of a stack come from.
pub(super) fn package_settings(
    session: &Session<'_>,
    stack: &Stack,
    further: &BTreeMap<String, Address>,
) -> PackageSettings {
    let debian = |row: &crate::compat::tables::Base| row.distribution == "debian" && row.suite == stack.suite;
    let archives = match mirrors(session) {
        Some(found) if Matrix::current().bases.iter().any(debian) => {
            let component = stack.nvcc.as_ref().and_then(|nvcc| nvcc.component.as_deref());
            Archive::debian(&stack.suite, &found.main, found.security.as_ref(), component)
        }
        _ => Vec::new(),
    };
    PackageSettings {
        index: IndexSettings { further: further.clone(), ..session.index.clone() },
        archives,
        accept_expired: session.settings.mirrors.accept_expired,
        network: session.network,
        vendor: session.vendor.clone(),
    }
}
