//! The verdict on each library of a wheel.

use std::collections::BTreeSet;

use envforge_protocol::abi::{Finding, Place, Table, World, may_be_missing, torch_release};

use super::base_libraries::base_libraries;
use crate::model::stack::Stack;
use crate::model::versions::{GlibcVersion, Machine};

/// A library of a wheel, and the reasons for which it does not load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AuditedLibrary {
    /// Its path below site-packages.
    pub(crate) library: String,
    /// Every reason.
    pub(crate) findings: Vec<Finding>,
    /// Libraries of the system or of further packages that its package does without: it was not judged further.
    pub(crate) optional: BTreeSet<String>,
}

/// Audits the libraries of a wheel against the locked ones, on a base with that glibc.
pub(crate) fn audit(
    stack: &Stack,
    glibc: &GlibcVersion,
    locked: Vec<Table>,
    own: &[Table],
) -> Vec<AuditedLibrary> {
    let machine = match stack.machine {
        Machine::X86_64 => 62,
        Machine::Aarch64 => 183,
    };
    let (base, interpreter) = base_libraries(glibc, machine);
    let python = interpreter.path.clone();
    let mut world = World::default();
    world.add(Place::System, interpreter);
    for table in base {
        world.add(Place::System, table);
    }
    for table in locked.into_iter().chain(own.iter().cloned()) {
        world.add(Place::Packages, table);
    }
    // A product on torch has it as a companion.
    let torch = stack.companions.get("torch").cloned().unwrap_or_else(|| stack.version.to_string());
    world.import_torch(torch_release(&torch).unwrap_or_default(), |one| one.path == python);
    own.iter().map(|table| audited(&world, table)).collect()
}

fn audited(world: &World, table: &Table) -> AuditedLibrary {
    let mut findings = world.audit(&table.path);
    let mut optional = BTreeSet::new();
    for finding in &findings {
        if let Finding::MissingLibrary { soname, needed_by } = finding {
            let file = needed_by.rsplit('/').next().unwrap_or(needed_by);
            if may_be_missing(file, soname) {
                optional.insert(soname.clone());
            }
        }
    }
    if !optional.is_empty() {
        // Other symbols that it may miss are those of the missing library.
        findings.retain(|finding| match finding {
            Finding::MissingLibrary { soname, .. } => !optional.contains(soname),
            other => other.holds_without_a_library(),
        });
    }
    AuditedLibrary { library: table.path.clone(), findings, optional }
}
