//! The wheels of unpublished variants: those of `--wheel`, else those of the lock.

use crate::model::compat::Matrix;
use crate::model::compat::tables::Channel;
use crate::model::image::plan::environment_of;
use crate::model::lock::{Difference, Lock, LockedWheel};
use crate::model::request::LockOptions;
use crate::model::stack::Stack;
use crate::model::versions::GlibcVersion;
use crate::packages::{LocalWheel, PackagesError};
use crate::report::Event;
use crate::settings::Settings;
use crate::store::Store;
use crate::workflow::build_request::BuildRequest;
use crate::workflow::error::CommandError;
use crate::workflow::locked_tools::tool_differences;
use crate::workflow::older_lock::image_differences;
use crate::workflow::request_error::RequestError;
use crate::workflow::session::Session;

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
        settings: &Settings,
        store: &Store,
    ) -> Result<Self, CommandError> {
        if stack.channel != Channel::Source {
            return Ok(Self { stack, left_out: Vec::new(), given: Vec::new(), locked: Vec::new() });
        }
        let mut given: Vec<LocalWheel> = Vec::new();
        for file in &wanted.source.wheel {
            let wheel = LocalWheel::take(&settings.paths.current_dir.join(file), store)?;
            if let Some(other) = given.iter().find(|other| other.name == wheel.name) {
                let (one, other) = (other.file.clone(), wheel.file.clone());
                return Err(PackagesError::TwoWheels { package: wheel.name, one, other }.into());
            }
            given.push(wheel);
        }
        let mut locked = Vec::new();
        // What was built of a source distribution is no wheel of the stack, and is built again where it is lost.
        let supplied = |wheel: &&LockedWheel| {
            old.is_none_or(|old| old.sources.iter().all(|source| source.name != wheel.name))
        };
        for wheel in
            old.into_iter().flat_map(Lock::local_wheels).filter(supplied).filter(|_| given.is_empty())
        {
            let keep = match LocalWheel::locked(wheel, store)? {
                Some(found) => found.check(&stack, None).is_ok(),
                // A new lock is not bound to one that is gone.
                None => !wanted.source.upgrade,
            };
            if keep {
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
        if !self.given.is_empty() {
            return Ok(self.given.clone());
        }
        let one = |wheel: &LockedWheel| {
            let gone = || PackagesError::LocalWheelGone { file: wheel.file.clone() };
            let found = LocalWheel::locked(wheel, store)?.ok_or_else(gone)?;
            found.check(&self.stack, glibc)?;
            Ok(found)
        };
        self.locked.iter().map(one).collect()
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
    if stack.channel != Channel::Source && !source.wheel.is_empty() {
        return Err(RequestError::WheelOfPublished { name: stack.name.clone() }.into());
    }
    let glibc = matrix.base(&stack.base).map(|row| &row.glibc);
    for file in &source.wheel {
        LocalWheel::validate(&settings.paths.current_dir.join(file), stack, glibc)?;
    }
    Ok(())
}
