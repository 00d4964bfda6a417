//! The verdict on each library of a wheel.

use std::collections::BTreeSet;

use envforge_protocol::abi::{
    Finding, Place, Table, TorchRelease, World, is_for_another_cuda, is_for_another_torch, may_be_missing,
    torch_release,
};

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

/// Audits the libraries of a wheel against the locked ones, with that torch among them, on a base with that glibc. Those that
/// the wheel has for another CUDA or torch are not in the result: its package loads others.
pub(crate) fn audit(
    stack: &Stack,
    glibc: &GlibcVersion,
    torch: Option<&str>,
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
    let torch = torch.and_then(torch_release).unwrap_or_default();
    world.import_torch(torch, |one| one.path == python);
    let cuda = stack.toolkit_minor();
    own.iter().filter(|one| is_loaded(one, own, torch, &cuda)).map(|table| audited(&world, table)).collect()
}

/// Whether the package loads that library of its wheel with this torch and this CUDA.
fn is_loaded(library: &Table, own: &[Table], torch: TorchRelease, cuda: &str) -> bool {
    let (folder, file) = library.path.rsplit_once('/').unwrap_or(("", &library.path));
    let has = |name: &str| own.iter().any(|one| one.path.strip_prefix(folder) == Some(&format!("/{name}")));
    !is_for_another_torch(file, torch)
        && !is_for_another_cuda((folder.rsplit('/').next().unwrap_or(folder), file), cuda, has)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::lock::sample;

    /// Every C++ extension asks for these, and no wheel has them.
    #[test]
    fn libraries_of_gcc_and_python_are_taken_to_have_their_versions() {
        for (soname, symbol, is_met) in [
            ("libstdc++.so.6", "_ZNSolsEi@GLIBCXX_3.4", true),
            ("libstdc++.so.6", "__cxa_throw@CXXABI_1.3", true),
            ("libgcc_s.so.1", "_Unwind_Resume@GCC_3.0", true),
            ("libgomp.so.1", "omp_get_num_threads@OMP_1.0", true),
            ("libz.so.1", "other@ZLIB_1.2.9", true),
            ("libcrypt.so.1", "other@XCRYPT_2.0", true),
            ("libc.so.6", "memcpy@GLIBC_2.14", true),
            ("libc.so.6", "later@GLIBC_2.99", false),
            ("libstdc++.so.6", "_ZNSolsEi@OTHER_3.4", false),
            ("libstdc++.so.6", "_ZN3c104nameEv", false),
        ] {
            let own = Table {
                path: "my_extension/_C.so".to_owned(),
                machine: 62,
                needed: vec![soname.to_owned()],
                undefined: BTreeSet::from([symbol.to_owned()]),
                ..Table::default()
            };
            let glibc = "2.36".parse().expect("a version");
            let audited = audit(&sample::stack(), &glibc, Some("2.8.0"), Vec::new(), &[own]);
            assert_eq!(audited[0].findings.is_empty(), is_met, "{symbol}: {:?}", audited[0].findings);
        }
    }

    /// File names of torch-memory-saver 0.0.10 and torch-c-dlpack-ext 0.1.5.
    #[test]
    fn libraries_for_another_cuda_or_torch_are_left_out() {
        let named =
            |file: &str| Table { path: format!("of_package/{file}"), machine: 62, ..Table::default() };
        let [saver, addon] = ["torch_memory_saver_hook_mode_torch", "libtorch_c_dlpack_addon_torch"];
        let own = ["", "_cu12", "_cu13"].map(|cuda| named(&format!("{saver}{cuda}.abi3.so")));
        let addons = ["27-cpu", "28-cuda", "29-cuda"].map(|release| named(&format!("{addon}{release}.so")));
        let glibc = "2.36".parse().expect("a version");
        let libraries = |own: &[Table]| -> Vec<String> {
            let audited = audit(&sample::stack(), &glibc, Some("2.8.0"), Vec::new(), own);
            audited.into_iter().map(|one| one.library).collect()
        };
        assert_eq!(sample::stack().cuda.major, 12);
        assert_eq!(libraries(&own), [own[1].path.clone()]);
        assert_eq!(libraries(&addons), [addons[1].path.clone()]);
        assert_eq!(libraries(&own[..1]), [own[0].path.clone()], "it has one library");
    }
}
