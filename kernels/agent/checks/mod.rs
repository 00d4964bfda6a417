//! The groups of checks. A group shares one child process because its checks share one costly step.

mod code_for_target;
mod compiler;
mod cuda_copies;
mod cudnn_parts;
mod distributions;
mod framework;
mod gpu;
mod leftovers;
mod library_load;
mod linkage;
mod loader_path;
mod nvcc;
mod nvrtc;
mod secrets;
mod user;

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::expect::Expectation;
use super::report::{Outcome, Report};

/// What the checks are told.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    pub(crate) expect: Option<PathBuf>,
    pub(crate) forbidden: Option<PathBuf>,
    pub(crate) root: PathBuf,
    /// `uid:gid` of the image's user.
    pub(crate) user: Option<(u32, u32)>,
}

impl Default for Options {
    fn default() -> Self {
        Self { expect: None, forbidden: None, root: "/".into(), user: None }
    }
}

impl Options {
    /// The words that give a child the same options.
    pub(crate) fn words(&self) -> Vec<String> {
        let mut words = vec!["--root".to_owned(), self.root.display().to_string()];
        for (name, path) in [("--expect", &self.expect), ("--forbidden", &self.forbidden)] {
            words.extend(path.iter().flat_map(|path| [name.to_owned(), path.display().to_string()]));
        }
        words
    }

    /// The promises of the lock.
    pub(crate) fn expectation(&self) -> Result<Expectation, String> {
        let path = self.expect.as_ref().ok_or("no --expect was given")?;
        let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        Expectation::parse(&text)
    }

    /// The promises of the lock, none without `--expect`: then versions are told, not compared.
    pub(crate) fn promises(&self) -> Result<Expectation, String> {
        if self.expect.is_some() { self.expectation() } else { Ok(Expectation::default()) }
    }

    /// The locked environment.
    pub(crate) fn environment(&self) -> PathBuf {
        self.root.join("opt/env")
    }

    /// Its interpreter.
    pub(crate) fn python(&self) -> PathBuf {
        self.environment().join("bin/python")
    }
}

impl Options {
    /// The interpreter of the locked environment, else the first that `PATH` finds.
    pub(crate) fn any_python(&self) -> Option<PathBuf> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let found = std::env::split_paths(&path)
            .flat_map(|folder| ["python3", "python"].map(|name| folder.join(name)));
        std::iter::once(self.python()).chain(found).find(|python| python.is_file())
    }
}

/// How much is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    /// What needs no GPU.
    Static,
    /// And what a GPU computes, without what takes long.
    Quick,
    /// And `torch.compile` and a distributed step.
    Full,
    /// And how fast it is.
    Perf,
}

impl Level {
    /// The level of that name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let all =
            [("static", Self::Static), ("quick", Self::Quick), ("full", Self::Full), ("perf", Self::Perf)];
        all.into_iter().find(|(word, _)| *word == name).map(|(_, level)| level)
    }

    /// Its groups by stage, in the order of the report.
    pub(crate) fn stages(self) -> Vec<(&'static str, Vec<&'static Group>)> {
        let mut gpu: Vec<&Group> = Vec::new();
        if self >= Self::Quick {
            gpu.extend(gpu::GROUPS);
        }
        if self >= Self::Full {
            gpu.extend(gpu::FULL_GROUPS);
        }
        let perf = if self == Self::Perf { gpu::speed::GROUPS.iter().collect() } else { Vec::new() };
        let thorough = |group| if self >= Self::Full && group_is_nvrtc(group) { &NVRTC_ALL } else { group };
        vec![("static", GROUPS.iter().map(thorough).collect()), ("gpu", gpu), ("perf", perf)]
    }

    /// Every group there is, by stage.
    pub(crate) fn all_stages() -> Vec<(&'static str, Vec<&'static Group>)> {
        let mut stages = Self::Perf.stages();
        stages[0].1 = GROUPS.iter().chain([&NVRTC_ALL]).collect();
        stages
    }
}

/// Checks that run in one child process.
pub(crate) struct Group {
    pub(crate) name: &'static str,
    pub(crate) ids: &'static [&'static str],
    pub(crate) limit: Duration,
    /// Whether it looks at what the image's user may do: then it runs as that user, else as whoever started the agent
    /// (root sees every file).
    pub(crate) as_user: bool,
    pub(crate) run: fn(&Options) -> Vec<Report>,
}

/// All groups of the stage "static", in the order of the report.
pub(crate) const GROUPS: &[Group] = &[
    Group {
        name: "framework",
        ids: framework::IDS,
        limit: Duration::from_mins(3),
        as_user: true,
        run: framework::run,
    },
    Group {
        name: "distributions",
        ids: &["distributions"],
        limit: Duration::from_mins(1),
        as_user: false,
        run: distributions::run,
    },
    Group {
        name: "pip-check",
        ids: &["pip-check"],
        limit: Duration::from_mins(2),
        as_user: true,
        run: distributions::pip_check,
    },
    Group {
        name: "linker-closure",
        ids: &["linker-closure"],
        limit: Duration::from_mins(2),
        as_user: false,
        run: linkage::run,
    },
    Group {
        name: "one-cuda",
        ids: &["one-cuda"],
        limit: Duration::from_mins(1),
        as_user: false,
        run: cuda_copies::run,
    },
    Group {
        name: "cudart-load",
        ids: &["cudart-load"],
        limit: Duration::from_mins(1),
        as_user: false,
        run: library_load::cudart,
    },
    Group {
        name: "cublaslt-load",
        ids: &["cublaslt-load"],
        limit: Duration::from_mins(1),
        as_user: false,
        run: library_load::cublaslt,
    },
    Group {
        name: "cublas-load",
        ids: &["cublas-load"],
        limit: Duration::from_mins(1),
        as_user: false,
        run: library_load::cublas,
    },
    Group {
        name: "cudnn-load",
        ids: &["cudnn-load"],
        limit: Duration::from_mins(1),
        as_user: false,
        run: library_load::cudnn,
    },
    Group {
        name: "nccl-load",
        ids: &["nccl-load"],
        limit: Duration::from_mins(1),
        as_user: false,
        run: library_load::nccl,
    },
    Group {
        name: "cudnn-sublibraries",
        ids: &[cudnn_parts::ID],
        limit: Duration::from_mins(1),
        as_user: false,
        run: cudnn_parts::run,
    },
    Group {
        name: "nvrtc",
        ids: &[nvrtc::ID],
        limit: Duration::from_mins(3),
        as_user: false,
        run: nvrtc::run,
    },
    Group {
        name: "code-for-target",
        ids: &[code_for_target::ID],
        limit: Duration::from_mins(1),
        as_user: false,
        run: code_for_target::run,
    },
    Group {
        name: "loader-path",
        ids: &[loader_path::ID],
        limit: Duration::from_mins(1),
        as_user: false,
        run: loader_path::run,
    },
    Group { name: "user", ids: &["user"], limit: Duration::from_secs(10), as_user: true, run: user::run },
    Group {
        name: "compiler",
        ids: &["compiler"],
        limit: Duration::from_mins(1),
        as_user: true,
        run: compiler::run,
    },
    Group { name: "nvcc", ids: nvcc::IDS, limit: Duration::from_mins(8), as_user: true, run: nvcc::run },
    Group {
        name: "leftovers",
        ids: &["leftovers"],
        limit: Duration::from_mins(2),
        as_user: false,
        run: leftovers::run,
    },
    Group {
        name: "secrets",
        ids: &["secrets"],
        limit: Duration::from_mins(2),
        as_user: false,
        run: secrets::run,
    },
];

/// Takes the place of the group `nvrtc` from level full on: every GPU that is promised.
const NVRTC_ALL: Group = Group {
    name: "nvrtc-all",
    ids: &[nvrtc::ID],
    limit: Duration::from_mins(10),
    as_user: false,
    run: nvrtc::run_all,
};

fn group_is_nvrtc(group: &Group) -> bool {
    group.ids == NVRTC_ALL.ids
}

/// The groups of all stages.
pub(crate) fn every_group() -> impl Iterator<Item = &'static Group> {
    Level::all_stages().into_iter().flat_map(|(_, groups)| groups)
}

/// One errored line for each id.
pub(crate) fn errored(ids: &[&str], why: &str) -> Vec<Report> {
    ids.iter().map(|id| Report::new(id, Outcome::Errored, why)).collect()
}

/// A path as the image has it, whatever folder stands for its root.
pub(crate) fn shown(root: &Path, path: &Path) -> String {
    match path.strip_prefix(root) {
        Ok(inside) => format!("/{}", inside.display()),
        Err(_) => path.display().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::fatbin::tests::library;
    use super::*;

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
    fn level_full_compiles_for_every_gpu_and_every_group_can_be_run_by_name() {
        let names = |level: Level| level.stages()[0].1.iter().map(|group| group.name).collect::<Vec<_>>();
        assert!(names(Level::Quick).contains(&"nvrtc") && !names(Level::Quick).contains(&"nvrtc-all"));
        assert!(names(Level::Full).contains(&"nvrtc-all") && !names(Level::Full).contains(&"nvrtc"));
        let every: Vec<_> = every_group().map(|group| group.name).collect();
        let once: std::collections::BTreeSet<_> = every.iter().collect();
        assert!(once.contains(&"nvrtc") && once.contains(&"nvrtc-all") && once.len() == every.len());
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
            for run in [code_for_target::run, loader_path::run, linkage::run, cuda_copies::run, leftovers::run] {
                let reports = run(&options);
                prop_assert!(reports.iter().all(|report| !report.id.is_empty() && !report.detail.is_empty()));
            }
            prop_assert!(distributions::run(&options).len() == 1);
        }
    }
}
