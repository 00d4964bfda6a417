//! `lock`, and the part of every build that comes before it: spec to stack to base to lock.

use camino::{Utf8Path, Utf8PathBuf};

use crate::base::Base;
use crate::model::image::plan::environment_of;
use crate::model::lock::{BaseProvider, Lock, LockError, LockMetadata, WheelLayer};
use crate::model::misfit::Misfit;
use crate::model::project::requirement_name;
use crate::model::sha256::sha256_hex;
use crate::model::stack::Stack;
use crate::report::Event;
use crate::settings::Settings;
use crate::store::known_locks::remember_project;
use crate::store::{Store, StoreLock, write_atomically};
use crate::workflow::base::{base_of, check_processor};
use crate::workflow::build_request::BuildRequest;
use crate::workflow::companions::check_companions;
use crate::workflow::custom_base::{NamedBase, matrix_on};
use crate::workflow::error::CommandError;
use crate::workflow::local_wheels::{LocalWheels, WheelPlaces};
use crate::workflow::lock_error::LockingError;
use crate::workflow::lock_file::{lock_path, read_lock};
use crate::workflow::lock_packages::locked_packages;
use crate::workflow::locked_tools::current_tools;
use crate::workflow::misfits::{misfits_of, tell_misfits};
use crate::workflow::older_lock::{additions, image_differences};
use crate::workflow::session::Session;
use crate::workflow::source_build::{agree_to_compile, wheel_from_source};

/// A lock that fits what was asked, with its base in the engine.
pub(crate) struct LockedBuild {
    pub(crate) lock: Lock,
    pub(crate) path: Utf8PathBuf,
    pub(crate) base: Base,
    /// True if the lock was made or changed now.
    pub(crate) new: bool,
    /// What of a new lock does not go together.
    pub(crate) misfits: Vec<Misfit>,
    /// Whether nothing may be written into the file (`--locked`): what a build finds out is known to this run alone.
    pub(crate) read_only: bool,
    /// Held until the command ends, so that two runs of one spec do not make two locks; none for a reader of a lock that fits.
    pub(crate) _guard: Option<StoreLock>,
}

/// Returns the lock file of a request, and the stack with its facts, if it is what the request asks for. Asks neither engine nor network,
/// and waits for nothing: a lock file is written whole.
pub(crate) fn fitting_lock(
    places: WheelPlaces<'_>,
    stack: &Stack,
    wanted: &BuildRequest,
) -> Result<Option<(Lock, Stack)>, CommandError> {
    if !keeps_everything(wanted) {
        return Ok(None);
    }
    let Some(old) = read_lock(&lock_path(places.settings, stack, &wanted.source))? else { return Ok(None) };
    if old.wheels.iter().any(|wheel| wheel.layer == WheelLayer::Project) {
        return Ok(None);
    }
    let wanted = &wanted.dated_as(Some(&old));
    let supplied = LocalWheels::new(stack.clone(), wanted, Some(&old), places)?;
    let fits = supplied.differences(&old, wanted).is_empty();
    Ok(fits.then_some((old, supplied.stack)))
}

/// With `--locked`, refuses a lock file that does not fit. Asks neither engine nor network.
pub(crate) fn check_locked(
    settings: &Settings,
    stack: &Stack,
    named: Option<&NamedBase>,
    wanted: &BuildRequest,
) -> Result<(), CommandError> {
    if !wanted.source.locked {
        return Ok(());
    }
    let path = lock_path(settings, stack, &wanted.source);
    let old = read_lock(&path)?;
    check_packages(old.as_ref(), &path)?;
    let store = Store::open(&settings.paths.cache, &settings.paths.state)?;
    let wanted = &wanted.dated_as(old.as_ref());
    let places = WheelPlaces { settings, store: &store, matrix: matrix_on(named, settings) };
    let supplied = LocalWheels::new(stack.clone(), wanted, old.as_ref(), places)?;
    let differences: Vec<_> = old.iter().flat_map(|old| supplied.differences(old, wanted)).collect();
    if old.is_some() && differences.is_empty() {
        return Ok(());
    }
    let differences = differences.iter().map(ToString::to_string).collect();
    let (file, call) = (path.to_string(), wanted.lock_call());
    Err(LockingError::Stale { file, differences, locked: true, call }.into())
}

/// Refuses the lock file of an image that its project is installed in.
fn check_packages(old: Option<&Lock>, path: &Utf8Path) -> Result<(), CommandError> {
    let mut wheels = old.into_iter().flat_map(|old| &old.wheels);
    match wheels.find(|wheel| wheel.layer == WheelLayer::Project) {
        Some(wheel) => {
            Err(LockingError::OfImage { file: path.to_string(), package: wheel.name.clone() }.into())
        }
        None => Ok(()),
    }
}

/// The same as `lock_for` for a command that writes nothing into the lock file: one that fits is used while a build of it runs.
pub(crate) async fn lock_to_read(
    session: &Session<'_>,
    stack: Stack,
    named: Option<&NamedBase>,
    wanted: &BuildRequest,
) -> Result<LockedBuild, CommandError> {
    // A lock file that cannot be read is replaced or reported below.
    let found = fitting_lock(WheelPlaces::of(session), &stack, wanted).unwrap_or_default();
    let Some((old, stack)) = found else {
        return Box::pin(lock_for(session, stack, named, wanted)).await;
    };
    let path = lock_path(session.settings, &stack, &wanted.source);
    if wanted.added.project.is_some() {
        remember_project(&session.store, &path)?;
    }
    let wanted = &wanted.dated_as(Some(&old));
    Box::pin(kept_lock(session, (old, path, None), (&stack, named), wanted)).await
}

/// The lock for a spec: the one that lies there if it fits, else a new one, written before this returns.
pub(crate) async fn lock_for(
    session: &Session<'_>,
    stack: Stack,
    named: Option<&NamedBase>,
    wanted: &BuildRequest,
) -> Result<LockedBuild, CommandError> {
    let source = &wanted.source;
    let path = lock_path(session.settings, &stack, source);
    let guard = session.store.lock(&format!("lock-{}", &sha256_hex(path.as_str().as_bytes())[..16])).await?;
    if wanted.added.project.is_some() {
        remember_project(&session.store, &path)?;
    }
    let old = match read_lock(&path) {
        // `--upgrade` keeps nothing of it; one of a newer envforge is not ours to overwrite.
        Err(error)
            if source.upgrade
                && error.downcast_ref().is_some_and(|error: &LockError| !error.is_of_newer()) =>
        {
            None
        }
        old => old?,
    };
    check_packages(old.as_ref(), &path)?;
    let wanted = &wanted.dated_as(old.as_ref());
    if let Some(old) = &old {
        check_upgrades(old, &path, wanted)?;
    }
    let mut supplied = LocalWheels::new(stack, wanted, old.as_ref(), WheelPlaces::of(session))?;
    let stack = &supplied.stack;
    let differences: Vec<String> = old
        .iter()
        .flat_map(|old| supplied.differences(old, wanted))
        .map(|difference| difference.to_string())
        .collect();
    let stale = || LockingError::Stale {
        file: path.to_string(),
        differences: differences.clone(),
        locked: true,
        call: wanted.lock_call(),
    };
    match &old {
        Some(old) if differences.is_empty() && keeps_everything(wanted) => {
            let old = old.clone();
            return Box::pin(kept_lock(session, (old, path, Some(guard)), (stack, named), wanted)).await;
        }
        _ if source.locked => return Err(stale().into()),
        Some(_) if !differences.is_empty() && !source.upgrade => {
            let text = format!("updating lock file: {}", differences.join("; "));
            session.reporter.report(Event::Note { text });
        }
        _ => {}
    }
    check_companions(session.settings, wanted, stack, &session.matrix)?;
    supplied.tell(session);
    if supplied.lacks_a_wheel() {
        check_processor(session, stack)?;
    }
    let before = old.clone().map(Box::new);
    let kept = old.filter(|_| !source.upgrade);
    let same_base = kept.as_ref().filter(|old| old.stack.base == stack.base);
    let base = base_of(session, stack, named, wanted, same_base).await?;
    if supplied.lacks_a_wheel() {
        let stack = &supplied.stack;
        agree_to_compile(session, stack, &base, wanted).await?;
        // Packages that a lock names may come from anybody, and the wheel is kept for every project.
        let signed = match base.provider {
            BaseProvider::Bootstrap if same_base.is_some() => {
                Some(base_of(session, stack, named, wanted, None).await?)
            }
            _ => None,
        };
        let builder = signed.as_ref().unwrap_or(&base);
        let wheel = Box::pin(wheel_from_source(session, stack, builder, wanted)).await?;
        supplied.add_wheel(wheel);
    }
    let lock = resolve_lock(session, supplied, wanted, &base, kept).await?;
    let lock = match &before {
        // The versions of another tool were its versions already: its records stay.
        Some(before) if wanted.preferred.is_some() && before.hash() == lock.hash() => Lock::clone(before),
        _ => lock,
    };
    report_index_changes(session, before.as_deref(), &lock);
    if let Some(added) =
        before.as_ref().filter(|old| old.schema < lock.schema).and_then(|old| additions(old, &lock.stack))
    {
        let text = format!("the lock file was of an earlier envforge: the new one adds {added}");
        session.reporter.report(Event::Note { text });
    }
    let misfits = misfits_of(&lock, wanted, &session.store, &session.matrix);
    tell_misfits(&misfits, &lock, &session.matrix, &*session.reporter);
    write_atomically(&path, lock.to_toml().as_bytes())?;
    Ok(LockedBuild { lock, path, base, new: true, misfits, read_only: false, _guard: Some(guard) })
}

/// A lock file that fits, as it is.
async fn kept_lock(
    session: &Session<'_>,
    (old, path, guard): (Lock, Utf8PathBuf, Option<StoreLock>),
    (stack, named): (&Stack, Option<&NamedBase>),
    wanted: &BuildRequest,
) -> Result<LockedBuild, CommandError> {
    let text = format!("using the lock file of {}: {path}", old.records.created);
    session.reporter.report(Event::Note { text });
    if let Some(added) = additions(&old, stack) {
        let text = format!("it is of an earlier envforge: `envforge lock` adds {added}");
        session.reporter.report(Event::Note { text });
    }
    if let Some(text) = lacks_ptxas(&old, stack) {
        session.reporter.report(Event::Warning { text });
    }
    let base = base_of(session, stack, named, wanted, Some(&old)).await?;
    let lock = old.with_facts_of(stack);
    let (misfits, read_only) = (Vec::new(), wanted.source.locked);
    Ok(LockedBuild { lock, path, base, new: false, misfits, read_only, _guard: guard })
}

/// Whether nothing asks for other versions than those of a lock file that fits.
fn keeps_everything(wanted: &BuildRequest) -> bool {
    !wanted.source.upgrade && wanted.source.upgrade_package.is_empty() && wanted.preferred.is_none()
}

/// Says that a lock made for other GPUs lacks the ptxas that Triton needs for this machine's.
fn lacks_ptxas(lock: &Lock, stack: &Stack) -> Option<String> {
    let ptxas = stack.ptxas.as_ref().filter(|_| lock.stack.ptxas.is_none())?;
    let gpus: Vec<_> = ptxas.gpus.iter().map(ToString::to_string).collect();
    Some(format!(
        "the lock file is for other GPUs: Triton compiles nothing for {} in its image; `envforge lock --gpu {}` adds ptxas \
         of CUDA {}",
        gpus.join(", "),
        gpus.join(" --gpu "),
        ptxas.cuda
    ))
}

/// Reports packages that come from another index than in the lock file before.
fn report_index_changes(session: &Session<'_>, before: Option<&Lock>, lock: &Lock) {
    let changes = before.map(|before| before.index_changes(lock)).unwrap_or_default();
    if changes.is_empty() {
        return;
    }
    let lines: Vec<_> = changes.iter().map(ToString::to_string).collect();
    let text = format!("packages that come from another index than before:\n  {}", lines.join("\n  "));
    session.reporter.report(Event::Note { text });
}

/// Refuses to choose anew what nobody chose: a name that is misspelt changes nothing, and says so.
fn check_upgrades(old: &Lock, path: &Utf8PathBuf, wanted: &BuildRequest) -> Result<(), CommandError> {
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
    if packages.is_empty() { Ok(()) } else { Err(LockingError::NotLocked { packages, file }.into()) }
}

/// A lock for what is wanted, with as few changes of `kept` as can be. Nothing is written.
pub(crate) async fn resolve_lock(
    session: &Session<'_>,
    supplied: LocalWheels,
    wanted: &BuildRequest,
    base: &Base,
    kept: Option<Lock>,
) -> Result<Lock, CommandError> {
    match kept {
        // Nothing that is downloaded changed: what was resolved stays.
        Some(old)
            if keeps_everything(wanted)
                && old.differs_from(&supplied.stack).is_empty()
                && supplied.same_wheels(&old)
                && old.added.same_packages(&wanted.added)
                && image_differences(&old, &supplied.stack, wanted.renews).is_empty() =>
        {
            Ok(changed_around_packages(old, wanted))
        }
        kept => Box::pin(locked_packages(session, supplied, wanted, base, kept.as_ref())).await,
    }
}

/// The lock with another environment, other files, commands or checks, and the same packages.
fn changed_around_packages(old: Lock, wanted: &BuildRequest) -> Lock {
    let environment = environment_of(&old.stack, &wanted.added);
    let records = LockMetadata { content: None, config: None, layers: Vec::new(), ..old.records.clone() };
    let (spec, added, tools) =
        (wanted.spec.written().to_owned(), wanted.added.clone(), current_tools(&old, wanted.renews));
    Lock { spec, added, tools, environment, records, ..old }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::lock::sample;

    #[test]
    fn lock_for_other_gpus_names_the_command_that_adds_their_ptxas() {
        let (mut lock, mut here) = (sample::lock(), sample::stack());
        assert_eq!(lacks_ptxas(&lock, &here), None, "Triton's own has the target");
        here.ptxas = Some(sample::ptxas());
        let text = lacks_ptxas(&lock, &here).expect("the lock lacks it");
        let gpus = sample::ptxas().gpus;
        assert!(text.contains(&format!("Triton compiles nothing for {}", gpus[0])), "{text}");
        assert!(text.contains(&format!("`envforge lock --gpu {}", gpus[0])), "{text}");
        lock.stack.ptxas = Some(sample::ptxas());
        assert_eq!(lacks_ptxas(&lock, &here), None, "the image has it");
    }
}
