//! The wheels of what nobody publishes: those that `--wheel` names, else those that the lock has.

use super::CommandError;
use super::session::Session;
use super::wanted::Wanted;
use crate::cli::LockSource;
use crate::compat::tables::Channel;
use crate::lock::{Added, Difference, Lock, LockedWheel};
use crate::packages::{LocalWheel, PackagesError};
use crate::report::Event;
use crate::settings::Settings;
use crate::stack::Stack;
use crate::store::Store;

/// A stack with the wheels that no index has.
pub(super) struct Supplied {
    /// The stack; of what nobody publishes without the companions that have no wheel.
    pub(super) stack: Stack,
    /// Companions that are left out.
    pub(super) left_out: Vec<String>,
    given: Vec<LocalWheel>,
    locked: Vec<LockedWheel>,
}

impl Supplied {
    /// The wheels for a stack, each held against it.
    pub(super) fn new(
        mut stack: Stack,
        wanted: &Wanted,
        old: Option<&Lock>,
        settings: &Settings,
        store: &Store,
    ) -> Result<Self, CommandError> {
        if stack.channel != Channel::Source {
            return Ok(Self { stack, left_out: Vec::new(), given: Vec::new(), locked: Vec::new() });
        }
        let mut given: Vec<LocalWheel> = Vec::new();
        for file in &wanted.source.wheel {
            let wheel = LocalWheel::take(&settings.current_dir.join(file), store)?;
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
                Some(found) => found.check(&stack).is_ok(),
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

    /// True if nobody published the framework, and no wheel of it is at hand.
    pub(super) fn lacks_a_wheel(&self) -> bool {
        self.stack.channel == Channel::Source && self.given.is_empty() && self.locked.is_empty()
    }

    /// Takes the wheel that was lacking.
    pub(super) fn give(&mut self, wheel: LocalWheel) {
        self.given.push(wheel);
    }

    /// Every way in which a lock does not fit.
    pub(super) fn differences(&self, old: &Lock, added: &Added) -> Vec<Difference> {
        let mut all = old.satisfied_by(&self.stack, added);
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
    pub(super) fn same_wheels(&self, old: &Lock) -> bool {
        self.given.iter().all(|wheel| old.local_wheels().any(|locked| locked.sha256 == wheel.sha256))
    }

    /// The wheels, to resolve with.
    pub(super) fn wheels(&self, store: &Store) -> Result<Vec<LocalWheel>, PackagesError> {
        if !self.given.is_empty() {
            return Ok(self.given.clone());
        }
        let one = |wheel: &LockedWheel| {
            let gone = || PackagesError::LocalWheelGone { file: wheel.file.clone() };
            let found = LocalWheel::locked(wheel, store)?.ok_or_else(gone)?;
            found.check(&self.stack)?;
            Ok(found)
        };
        self.locked.iter().map(one).collect()
    }

    /// Says what is left out.
    pub(super) fn tell(&self, session: &Session<'_>) {
        if self.left_out.is_empty() {
            return;
        }
        let (names, cuda) = (self.left_out.join(" and "), self.stack.cuda.dotted());
        let text =
            format!("without {names}: nobody publishes them for CUDA {cuda}, and no --wheel names one");
        session.reporter.report(Event::Note { text });
    }
}

/// Refuses a named wheel that does not fit. Asks neither engine nor network.
pub(super) fn judge(settings: &Settings, stack: &Stack, source: &LockSource) -> Result<(), CommandError> {
    if stack.channel != Channel::Source && !source.wheel.is_empty() {
        return Err(CommandError::WheelOfPublished { name: stack.name.clone() });
    }
    for file in &source.wheel {
        LocalWheel::judge(&settings.current_dir.join(file), stack)?;
    }
    Ok(())
}
