//! The groups of checks. A group shares one child process because its checks share one costly step.

mod code_for_target;
mod compiler;
mod cudnn_parts;
mod distributions;
mod extension_abi;
mod framework;
mod gpu;
mod installed_files;
mod leftovers;
mod library_load;
mod linker_closure;
mod loader_path;
mod locked_files;
mod login_shell;
mod module_closure;
mod nccl_network;
mod nvcc;
mod nvrtc;
mod one_cuda;
mod secrets;
mod shared_paths;
mod triton_ptxas;
mod user;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use envforge_protocol::{CheckGroup, CheckId, Expectation, Level, Outcome, Stage};

use crate::libraries;
use crate::report::Report;

/// The options of all checks.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    pub(crate) expect: Option<PathBuf>,
    pub(crate) forbidden: Option<PathBuf>,
    pub(crate) root: PathBuf,
    /// `uid:gid` of the image's user.
    pub(crate) user: Option<(u32, u32)>,
    /// The most that a group may take, if that is less than its own limit.
    pub(crate) limit: Option<Duration>,
}

impl Default for Options {
    fn default() -> Self {
        Self { expect: None, forbidden: None, root: "/".into(), user: None, limit: None }
    }
}

impl Options {
    /// The words that give a child the same options.
    pub(crate) fn words(&self) -> Vec<String> {
        let mut words = vec!["--root".to_owned(), self.root.display().to_string()];
        for (name, path) in [("--expect", &self.expect), ("--forbidden", &self.forbidden)] {
            words.extend(path.iter().flat_map(|path| [name.to_owned(), path.display().to_string()]));
        }
        if let Some(limit) = self.limit {
            words.extend(["--limit".to_owned(), limit.as_secs().to_string()]);
        }
        words
    }

    /// Parses the expectation file, which must be given.
    pub(crate) fn expectation(&self) -> Result<Expectation, String> {
        let path = self.expect.as_ref().ok_or("--expect is missing")?;
        let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        Expectation::parse(&text).map_err(|error| error.to_string())
    }

    /// Returns the expectation, empty without `--expect`: then versions are reported, not compared.
    pub(crate) fn expectation_if_given(&self) -> Result<Expectation, String> {
        if self.expect.is_some() { self.expectation() } else { Ok(Expectation::default()) }
    }

    /// The locked environment; in an image of others the virtual environment in use, if one is.
    pub(crate) fn environment(&self) -> PathBuf {
        let own = self.root.join("opt/env");
        if own.is_dir() {
            return own;
        }
        libraries::virtual_environment(&self.root).unwrap_or(own)
    }

    /// Its interpreter.
    pub(crate) fn python(&self) -> PathBuf {
        self.environment().join("bin/python")
    }
}

impl Options {
    /// The interpreter of the locked environment, else the first that `PATH` finds in the image or that lies where interpreters
    /// usually do.
    pub(crate) fn any_python(&self) -> Option<PathBuf> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::iter::once(self.python())
            .chain(libraries::pythons_below(&self.root, &path))
            .chain(libraries::pythons_of(&path))
            .find(|python| python.is_file())
    }

    /// The interpreter that finds [`Options::packages`]; `None`: the image has none.
    pub(crate) fn interpreter(&self) -> Option<PathBuf> {
        if self.has_own_environment() { Some(self.python()) } else { self.any_python() }
    }

    /// Whether the image has the environment that envforge fills.
    pub(crate) fn has_own_environment(&self) -> bool {
        self.root.join("opt/env").is_dir()
    }

    /// The folders of installed packages: those of the locked environment; in an image of others those of every Python that is
    /// found, the one in use first.
    pub(crate) fn packages(&self) -> Vec<PathBuf> {
        if self.has_own_environment() {
            let pythons = libraries::entries(&self.environment().join("lib"));
            return pythons.into_iter().map(|python| python.join("site-packages")).collect();
        }
        let mut seen = BTreeSet::new();
        let mut found = libraries::SearchPaths::of(&self.root).packages();
        // conda has `python3.1` as a link to `python3.10`.
        found.retain(|folder| !folder.parent().is_some_and(Path::is_symlink));
        found.retain(|folder| folder.canonicalize().is_ok_and(|path| seen.insert(path)));
        found
    }

    /// Where the loader finds libraries in an image of others: its own folders, conda's, and that next to the interpreter.
    pub(crate) fn loader_folders(&self) -> Vec<PathBuf> {
        let known = libraries::SearchPaths::of(&self.root).folders().into_iter();
        let known = known.filter(|(via, _)| *via != libraries::FoundVia::Toolkit).map(|(_, folder)| folder);
        let python = self.interpreter().and_then(|python| extension_abi::resolved(&self.root, &python));
        let next_to = python.as_deref().and_then(Path::parent).and_then(Path::parent);
        known.chain(next_to.map(|prefix| prefix.join("lib"))).collect()
    }
}

/// Why a check of Python packages found nothing to look at.
const NO_PYTHON: &str = "no Python packages are in the image";

/// Opens every GPU that the image has code for.
pub(crate) fn open_all(options: &Options) -> Result<Vec<crate::gpu::device::Device>, gpu::CheckFailure> {
    let (driver, devices) = gpu::machine(options)?;
    gpu::open(&driver, &devices)
}

/// The process that borrows another's memory.
pub(crate) fn borrow(words: &[String], options: &Options) {
    gpu::borrow(words, options);
}

/// One rank of a collective, in a process of its own.
pub(crate) fn rank(words: &[String], options: &Options) {
    gpu::rank(words, options);
}

/// A stage and its groups, in the order of the report.
pub(crate) type StageGroups = (Stage, Vec<&'static Group>);

/// Returns the groups of a level by stage.
pub(crate) fn stages(level: Level) -> Vec<StageGroups> {
    let every = EVERY_STAGE.iter().map(|(stage, groups)| {
        let runs = |group: &&Group| group.id.level() <= level && !is_replaced(group.id, level);
        (*stage, groups.iter().copied().flatten().filter(runs).collect())
    });
    every.collect()
}

/// Returns every group by stage.
pub(crate) fn all_stages() -> Vec<StageGroups> {
    EVERY_STAGE.iter().map(|(stage, groups)| (*stage, groups.iter().copied().flatten().collect())).collect()
}

/// Whether another group of the level runs the same checks more thoroughly.
fn is_replaced(id: CheckGroup, level: Level) -> bool {
    CheckGroup::ALL.iter().any(|other| other.replaces() == Some(id) && other.level() <= level)
}

/// The tables of groups by stage.
const EVERY_STAGE: [(Stage, &[&[Group]]); 3] = [
    (Stage::Static, &[GROUPS]),
    (Stage::Gpu, &[gpu::GROUPS, gpu::FULL_GROUPS]),
    (Stage::Perf, &[gpu::speed::GROUPS]),
];

/// Checks that run in one child process.
pub(crate) struct Group {
    pub(crate) id: CheckGroup,
    pub(crate) limit: Duration,
    /// Whether it looks at what the image's user may do: then it runs as that user, else as whoever started the agent
    /// (root sees every file).
    pub(crate) as_user: bool,
    pub(crate) run: fn(&Options) -> Vec<Report>,
}

/// All groups of the stage "static", in the order of the report.
pub(crate) const GROUPS: &[Group] = &[
    Group { id: CheckGroup::Framework, limit: Duration::from_mins(3), as_user: true, run: framework::run },
    Group {
        id: CheckGroup::Distributions,
        limit: Duration::from_mins(1),
        as_user: false,
        run: distributions::run,
    },
    Group {
        id: CheckGroup::PipCheck,
        limit: Duration::from_mins(2),
        as_user: true,
        run: distributions::pip_check,
    },
    Group {
        id: CheckGroup::SharedPaths,
        limit: Duration::from_mins(3),
        as_user: false,
        run: shared_paths::run,
    },
    Group {
        id: CheckGroup::LinkerClosure,
        limit: Duration::from_mins(2),
        as_user: false,
        run: linker_closure::run,
    },
    Group {
        id: CheckGroup::ExtensionAbi,
        limit: Duration::from_mins(3),
        as_user: false,
        run: extension_abi::run,
    },
    Group { id: CheckGroup::OneCuda, limit: Duration::from_mins(1), as_user: false, run: one_cuda::run },
    Group {
        id: CheckGroup::CudartLoad,
        limit: Duration::from_mins(1),
        as_user: false,
        run: library_load::cudart,
    },
    Group {
        id: CheckGroup::CublasltLoad,
        limit: Duration::from_mins(1),
        as_user: false,
        run: library_load::cublaslt,
    },
    Group {
        id: CheckGroup::CublasLoad,
        limit: Duration::from_mins(1),
        as_user: false,
        run: library_load::cublas,
    },
    Group {
        id: CheckGroup::CudnnLoad,
        limit: Duration::from_mins(1),
        as_user: false,
        run: library_load::cudnn,
    },
    Group {
        id: CheckGroup::NcclLoad,
        limit: Duration::from_mins(1),
        as_user: false,
        run: library_load::nccl,
    },
    Group {
        id: CheckGroup::CudnnSublibraries,
        limit: Duration::from_mins(1),
        as_user: false,
        run: cudnn_parts::run,
    },
    Group { id: CheckGroup::Nvrtc, limit: Duration::from_mins(3), as_user: false, run: nvrtc::run },
    Group { id: CheckGroup::NvrtcAll, limit: Duration::from_mins(10), as_user: false, run: nvrtc::run_all },
    Group {
        id: CheckGroup::CodeForTarget,
        limit: Duration::from_mins(1),
        as_user: false,
        run: code_for_target::run,
    },
    Group {
        id: CheckGroup::LoaderPath,
        limit: Duration::from_mins(1),
        as_user: false,
        run: loader_path::run,
    },
    Group {
        id: CheckGroup::LoginShell,
        limit: Duration::from_secs(20),
        as_user: true,
        run: login_shell::run,
    },
    Group {
        id: CheckGroup::NcclNetwork,
        limit: Duration::from_secs(20),
        as_user: false,
        run: nccl_network::run,
    },
    Group { id: CheckGroup::User, limit: Duration::from_secs(10), as_user: true, run: user::run },
    Group { id: CheckGroup::Compiler, limit: Duration::from_mins(1), as_user: true, run: compiler::run },
    Group { id: CheckGroup::Nvcc, limit: Duration::from_mins(8), as_user: true, run: nvcc::run },
    Group {
        id: CheckGroup::TritonPtxas,
        limit: Duration::from_mins(1),
        as_user: true,
        run: triton_ptxas::run,
    },
    Group { id: CheckGroup::Leftovers, limit: Duration::from_mins(2), as_user: false, run: leftovers::run },
    Group { id: CheckGroup::Secrets, limit: Duration::from_mins(2), as_user: false, run: secrets::run },
];

/// The groups of all stages.
pub(crate) fn every_group() -> impl Iterator<Item = &'static Group> {
    all_stages().into_iter().flat_map(|(_, groups)| groups)
}

/// Returns an errored line for each check.
pub(crate) fn errored(ids: &[CheckId], why: &str) -> Vec<Report> {
    ids.iter().map(|id| Report::new(*id, Outcome::Errored, why)).collect()
}

/// Returns a path as the image has it, below its root.
pub(crate) fn display_path(root: &Path, path: &Path) -> String {
    match path.strip_prefix(root) {
        Ok(inside) => format!("/{}", inside.display()),
        Err(_) => path.display().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::fatbin::tests::library;

    /// Names that the checks look for, as folders and as files.
    const FOLDERS: [&str; 6] = [
        "opt/env/lib/python3.11/site-packages/nvidia/cudnn/lib",
        "opt/env/lib/python3.11/site-packages/torch/lib",
        "opt/env/lib/python3.11/site-packages/torch-2.8.0.dist-info",
        "usr/local/cuda/lib64/stubs",
        "usr/lib/x86_64-linux-gnu",
        "etc/ld.so.conf.d",
    ];
    const FILES: [&str; 8] = [
        "libcudnn.so.9",
        "libnccl.so.2",
        "libtorch_cuda.so",
        "libcuda.so.1",
        "METADATA",
        "odd.conf",
        "libnvrtc-.so.",
        "lib\u{1}\u{fffd}.so.x",
    ];

    /// What lies under such a name.
    #[derive(Debug, Clone)]
    enum Thing {
        Bytes(Vec<u8>),
        Library { flip: usize, value: u8 },
        Folder,
        LinkTo(&'static str),
    }

    fn thing() -> impl Strategy<Value = Thing> {
        prop_oneof![
            prop::collection::vec(any::<u8>(), 0..80).prop_map(Thing::Bytes),
            (0_usize..600, any::<u8>()).prop_map(|(flip, value)| Thing::Library { flip, value }),
            Just(Thing::Folder),
            // Nothing, itself, everything above it.
            prop::sample::select(vec!["gone", "libnccl.so.2", "..", "/proc/self/mem", "odd.conf"])
                .prop_map(Thing::LinkTo),
        ]
    }

    fn make(path: &Path, thing: &Thing) {
        let _ = match thing {
            Thing::Bytes(bytes) => std::fs::write(path, bytes),
            Thing::Library { flip, value } => {
                let mut bytes = library(&[(2, 70), (1, 90)]);
                let at = flip % bytes.len();
                bytes[at] = *value;
                std::fs::write(path, bytes)
            }
            Thing::Folder => std::fs::create_dir(path),
            Thing::LinkTo(target) => std::os::unix::fs::symlink(target, path),
        };
    }

    #[test]
    fn levels_contain_their_groups() {
        let names = |level| stages(level).into_iter().flat_map(|(_, groups)| groups).map(|group| group.id);
        let has = |level, id| names(level).any(|known| known == id);
        assert!(has(Level::Quick, CheckGroup::Nvrtc) && !has(Level::Quick, CheckGroup::NvrtcAll));
        assert!(has(Level::Full, CheckGroup::NvrtcAll) && !has(Level::Full, CheckGroup::Nvrtc));
        assert!(!has(Level::Static, CheckGroup::Driver) && has(Level::Quick, CheckGroup::Driver));
        assert!(!has(Level::Quick, CheckGroup::FrameworkFull) && has(Level::Full, CheckGroup::FrameworkFull));
        assert!(!has(Level::Full, CheckGroup::SpeedGemm) && has(Level::Perf, CheckGroup::SpeedGemm));
    }

    #[test]
    fn table_covers_the_protocols_groups_once() {
        let mut own: Vec<_> = every_group().map(|group| group.id).collect();
        own.sort_unstable();
        let protocols: Vec<_> =
            CheckGroup::ALL.iter().copied().filter(|group| group.is_run_by_agent()).collect();
        assert_eq!(own, protocols);
        for (stage, groups) in all_stages() {
            assert!(groups.iter().all(|group| group.id.stage() == stage), "{stage}");
        }
    }

    /// Their container has the credentials that must not be in the image: it ends by itself.
    #[test]
    fn checks_of_files_end_within_minutes() {
        let limits = every_group().filter(|group| group.id.looks_at_files_only()).map(|group| group.limit);
        let all: Duration = limits.sum();
        assert!(all > Duration::ZERO && all <= Duration::from_mins(10), "{all:?}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn no_tree_makes_a_check_panic_or_pass_in_silence(
            things in prop::collection::vec((0..FOLDERS.len(), 0..FILES.len(), thing()), 0..12)
        ) {
            let root = tempfile::tempdir().expect("folder");
            for (folder, file, thing) in &things {
                let folder = root.path().join(FOLDERS[*folder]);
                std::fs::create_dir_all(&folder).expect("made");
                make(&folder.join(FILES[*file]), thing);
            }
            let expect = root.path().join("expect");
            std::fs::write(&expect, "cuda=12.8\ntarget=9.0\n").expect("written");
            let root = root.path().canonicalize().expect("there");
            let options = Options { root, expect: Some(expect), ..Options::default() };
            // Those that only read: what loads or starts something has a process of its own.
            for run in [code_for_target::run, loader_path::run, linker_closure::run, extension_abi::run, one_cuda::run, leftovers::run] {
                let reports = run(&options);
                prop_assert!(!reports.is_empty() && reports.iter().all(|report| !report.detail.is_empty()));
            }
            prop_assert!(distributions::run(&options).len() == 1);
        }
    }
}
