//! The wheels that no index has, of unpublished variants and of requested packages: those of `--wheel`, else those of the lock.

use crate::model::compat::Matrix;
use crate::model::compat::tables::Channel;
use crate::model::image::plan::environment_of;
use crate::model::lock::{Difference, Lock, LockedWheel, WheelLayer};
use crate::model::project::requirement_name;
use crate::model::request::LockOptions;
use crate::model::stack::Stack;
use crate::model::versions::GlibcVersion;
use crate::packages::{LocalWheel, PackagesError, wheel_name};
use crate::report::Event;
use crate::settings::Settings;
use crate::store::Store;
use crate::workflow::build_request::BuildRequest;
use crate::workflow::error::CommandError;
use crate::workflow::locked_tools::tool_differences;
use crate::workflow::older_lock::image_differences;
use crate::workflow::request_error::RequestError;
use crate::workflow::session::Session;

/// Where the wheels are looked for that no index has, and the matrix that knows the base they are for.
#[derive(Clone, Copy)]
pub(crate) struct WheelPlaces<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) store: &'a Store,
    pub(crate) matrix: &'a Matrix,
}

impl<'a> WheelPlaces<'a> {
    /// Those of a session, on its base.
    pub(crate) fn of(session: &'a Session<'_>) -> Self {
        Self { settings: session.settings, store: &session.store, matrix: &session.matrix }
    }
}

/// A stack with the wheels that no index has.
pub(crate) struct LocalWheels {
    /// The stack, without the companions that have no wheel.
    pub(crate) stack: Stack,
    /// Companions that are left out.
    pub(crate) left_out: Vec<String>,
    given: Vec<LocalWheel>,
    locked: Vec<LockedWheel>,
}

impl LocalWheels {
    /// The wheels for a stack, each held against it.
    pub(crate) fn new(
        mut stack: Stack,
        wanted: &BuildRequest,
        old: Option<&Lock>,
        places: WheelPlaces<'_>,
    ) -> Result<Self, CommandError> {
        let given = given_wheels(wanted, places.settings, places.store)?;
        if stack.channel != Channel::Source {
            return Self::of_packages(stack, given, wanted, old, places);
        }
        let mut locked = Vec::new();
        for wheel in supplied_wheels(old).filter(|_| given.is_empty()) {
            if is_kept(wheel, &stack, wanted, places)? {
                locked.push(wheel.clone());
            }
        }
        let has = |name: &str| {
            given.iter().any(|wheel| wheel.name == name) || locked.iter().any(|wheel| wheel.name == name)
        };
        let left_out: Vec<_> = stack.companions.keys().filter(|name| !has(name)).cloned().collect();
        stack.companions.retain(|name, _| !left_out.contains(name));
        stack.reasons.retain(|reason| !left_out.contains(&reason.field));
        Ok(Self { stack, left_out, given, locked })
    }

    /// Those of requested packages, for a stack with published wheels.
    fn of_packages(
        stack: Stack,
        given: Vec<LocalWheel>,
        wanted: &BuildRequest,
        old: Option<&Lock>,
        places: WheelPlaces<'_>,
    ) -> Result<Self, CommandError> {
        if let Some(wheel) = given.iter().find(|wheel| !is_requested(&wheel.name, wanted)) {
            return Err(RequestError::WheelNotRequested { package: wheel.name.clone() }.into());
        }
        let mut locked = Vec::new();
        let is_old = |wheel: &&LockedWheel| {
            wheel.layer == WheelLayer::User
                && is_requested(&wheel.name, wanted)
                && given.iter().all(|given| given.name != wheel.name)
        };
        for wheel in supplied_wheels(old).filter(is_old) {
            if is_kept(wheel, &stack, wanted, places)? {
                locked.push(wheel.clone());
            }
        }
        Ok(Self { stack, left_out: Vec::new(), given, locked })
    }

    /// Whether the framework has neither a published nor a local wheel.
    pub(crate) fn lacks_a_wheel(&self) -> bool {
        self.stack.channel == Channel::Source && self.given.is_empty() && self.locked.is_empty()
    }

    /// Takes the wheel that was lacking.
    pub(crate) fn add_wheel(&mut self, wheel: LocalWheel) {
        self.given.push(wheel);
    }

    /// Every way in which a lock does not fit.
    pub(crate) fn differences(&self, old: &Lock, wanted: &BuildRequest) -> Vec<Difference> {
        let mut all = old.differences_from(&self.stack, &wanted.added);
        all.extend(tool_differences(old, wanted.renews));
        all.extend(image_differences(old, &self.stack, wanted.renews));
        all.extend(old.claims(&environment_of(&old.stack, &old.added)));
        for wheel in &self.given {
            let locked = old.local_wheels().find(|locked| locked.name == wheel.name);
            let short = |sha256: &str| format!("SHA-256 {}", &sha256[..12]);
            if locked.is_none_or(|locked| locked.sha256 != wheel.sha256) {
                all.push(Difference {
                    what: format!("wheel of {}", wheel.name),
                    locked: locked.map(|locked| short(&locked.sha256)),
                    wanted: Some(short(&wheel.sha256)),
                });
            }
        }
        all
    }

    /// True if a lock has the same wheels that no index has.
    pub(crate) fn same_wheels(&self, old: &Lock) -> bool {
        self.given.iter().all(|wheel| old.local_wheels().any(|locked| locked.sha256 == wheel.sha256))
    }

    /// The wheels, to resolve with on a base of that C library.
    pub(crate) fn wheels(
        &self,
        store: &Store,
        glibc: Option<&GlibcVersion>,
    ) -> Result<Vec<LocalWheel>, PackagesError> {
        let one = |wheel: &LockedWheel| {
            let gone = || PackagesError::LocalWheelGone { file: wheel.file.clone() };
            let found = LocalWheel::locked(wheel, store)?.ok_or_else(gone)?;
            found.check(&self.stack, glibc)?;
            Ok(found)
        };
        let given = self.given.iter().cloned().map(Ok);
        given.chain(self.locked.iter().map(one)).collect()
    }

    /// Says what is left out.
    pub(crate) fn tell(&self, session: &Session<'_>) {
        if self.left_out.is_empty() {
            return;
        }
        let (names, cuda) = (self.left_out.join(" and "), self.stack.cuda.dotted());
        let text = format!("skipping {names}: no wheels for CUDA {cuda} (pass them with --wheel)");
        session.reporter.report(Event::Note { text });
    }
}

/// Refuses a named wheel that does not fit the stack on its base, of which the matrix has the row. Asks neither engine nor network.
pub(crate) fn validate(
    settings: &Settings,
    stack: &Stack,
    source: &LockOptions,
    matrix: &Matrix,
) -> Result<(), CommandError> {
    let glibc = matrix.base(&stack.base).map(|row| &row.glibc);
    for file in &source.wheel {
        let path = settings.paths.current_dir.join(file);
        let package = wheel_name(&path)?.package;
        if stack.channel != Channel::Source && is_of_stack(&package, stack) {
            return Err(RequestError::WheelOfPublished { name: stack.name.clone() }.into());
        }
        LocalWheel::validate(&path, stack, glibc)?;
    }
    Ok(())
}

/// Refuses a wheel of `--wheel` that nothing requests. Asks neither engine nor network.
pub(crate) fn check_requested(stack: &Stack, wanted: &BuildRequest) -> Result<(), CommandError> {
    if stack.channel == Channel::Source {
        return Ok(());
    }
    for file in &wanted.source.wheel {
        let package = wheel_name(file)?.package;
        if !is_requested(&package, wanted) {
            return Err(RequestError::WheelNotRequested { package }.into());
        }
    }
    Ok(())
}

fn is_requested(package: &str, wanted: &BuildRequest) -> bool {
    wanted.added.python.iter().any(|text| requirement_name(text).is_ok_and(|own| own == package))
}

/// Whether the stack decides the version of a package.
fn is_of_stack(package: &str, stack: &Stack) -> bool {
    package == stack.package || stack.companions.contains_key(package)
}

/// The wheels of `--wheel`, in the cache.
fn given_wheels(
    wanted: &BuildRequest,
    settings: &Settings,
    store: &Store,
) -> Result<Vec<LocalWheel>, CommandError> {
    let mut given: Vec<LocalWheel> = Vec::new();
    for file in &wanted.source.wheel {
        let wheel = LocalWheel::take(&settings.paths.current_dir.join(file), store)?;
        if let Some(other) = given.iter().find(|other| other.name == wheel.name) {
            let (one, other) = (other.file.clone(), wheel.file.clone());
            return Err(PackagesError::TwoWheels { package: wheel.name, one, other }.into());
        }
        given.push(wheel);
    }
    Ok(given)
}

/// The wheels of a lock that no index has. One that was built of a source distribution is built again where it is lost.
fn supplied_wheels(old: Option<&Lock>) -> impl Iterator<Item = &LockedWheel> {
    let is_built =
        move |name: &str| old.is_some_and(|old| old.sources.iter().any(|source| source.name == name));
    old.into_iter().flat_map(Lock::local_wheels).filter(move |wheel| !is_built(&wheel.name))
}

/// Whether a new lock takes a wheel of the old one.
fn is_kept(
    wheel: &LockedWheel,
    stack: &Stack,
    wanted: &BuildRequest,
    WheelPlaces { store, matrix, .. }: WheelPlaces<'_>,
) -> Result<bool, CommandError> {
    Ok(match LocalWheel::locked(wheel, store)? {
        Some(found) => found.check(stack, matrix.base(&stack.base).map(|row| &row.glibc)).is_ok(),
        // A new lock is not bound to one that is gone.
        None => !wanted.source.upgrade,
    })
}

#[cfg(test)]
mod tests {
    use camino::Utf8Path;

    use super::*;
    use crate::model::compat::tables::Base;
    use crate::model::lock::{IndexKind, WheelLayer, sample};
    use crate::model::request::{SpecArgument, TargetOptions};
    use crate::packages::test_wheel;
    use crate::workflow::build_request::typed;

    const FILE: &str = "torch-2.8.0+cu118-cp311-cp311-manylinux_2_39_x86_64.whl";

    /// The matrix with the row of a base of the user's own.
    fn with_base(glibc: &str) -> Matrix {
        let mut matrix = crate::model::compat::embedded().clone();
        let like = matrix.default_base().expect("one").clone();
        let (name, glibc) = ("mine:1".to_owned(), glibc.parse().expect("a version"));
        matrix.bases.push(Base { name, glibc, default: false, ..like });
        matrix
    }

    fn stack() -> Stack {
        let cuda = "cu118".parse().expect("a variant");
        Stack { channel: Channel::Source, cuda, base: "mine:1".to_owned(), ..sample::stack() }
    }

    #[test]
    fn wheel_is_held_against_the_c_library_of_a_base_of_the_users_own() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = Utf8Path::from_path(folder.path()).expect("UTF-8");
        let made = test_wheel(root, "torch", "2.8.0+cu118");
        fs_err::rename(root.join(&made.file), root.join(FILE)).expect("ours");
        let settings = Settings::below(root);
        let source = LockOptions { wheel: vec![FILE.into()], ..LockOptions::default() };
        let refused = |glibc: &str| validate(&settings, &stack(), &source, &with_base(glibc)).err();
        assert!(refused("2.39").is_none());
        let error = refused("2.36").expect("it is older").to_string();
        assert!(error.contains("it needs glibc 2.39; mine:1 has 2.36"), "{error}");
    }

    /// As with a base of the matrix: another wheel takes its place.
    #[test]
    fn locked_wheel_that_the_c_library_of_the_base_is_too_old_for_is_not_kept() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = Utf8Path::from_path(folder.path()).expect("UTF-8");
        let made = test_wheel(root, "torch", "2.8.0+cu118");
        let settings = Settings::below(root);
        let store = Store::open(&settings.paths.cache, &settings.paths.state).expect("a store");
        let locked = LockedWheel {
            name: made.name,
            version: made.version,
            file: FILE.to_owned(),
            sha256: made.sha256,
            size: Some(made.size),
            index: IndexKind::Local,
            index_name: None,
            layer: WheelLayer::Framework,
        };
        let old = Lock { wheels: vec![locked], ..sample::lock() };
        let (source, target) = (LockOptions::default(), TargetOptions::default());
        let spec = SpecArgument::from("pytorch-cuda:2.8-cu118".to_owned());
        let wanted = typed(&spec, &source, &target, &settings).expect("a request");
        let lacks = |matrix: &Matrix| {
            let places = WheelPlaces { settings: &settings, store: &store, matrix };
            LocalWheels::new(stack(), &wanted, Some(&old), places).expect("reads").lacks_a_wheel()
        };
        assert!(!lacks(&with_base("2.39")));
        assert!(lacks(&with_base("2.36")));
        assert!(!lacks(crate::model::compat::embedded()), "nothing is refused for what is not known");
    }
}
