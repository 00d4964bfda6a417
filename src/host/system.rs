//! Facts of the machine from files below a root.
#![expect(clippy::disallowed_methods, reason = "reads the files that describe this machine")]

use camino::Utf8Path;
use serde::Serialize;

use super::facts::SystemFacts;
use super::kernel_log::xid_errors;
use super::nvml::LIMIT;
use super::smi::run_with_timeout;
use crate::model::program_version::parse_program_version;

/// Directories of CDI specifications.
const CDI: [&str; 2] = ["etc/cdi", "var/run/cdi"];

/// Reads the facts of the machine with that root: `/`, or a directory in tests.
pub fn system(root: &Utf8Path) -> SystemFacts {
    let text = |path: &str| fs_err::read_to_string(root.join(path)).unwrap_or_default();
    let release = text("proc/sys/kernel/osrelease").to_lowercase();
    let nouveau = text("proc/modules").lines().any(|line| line.starts_with("nouveau "));
    SystemFacts {
        kernel_module: kernel_module(&text("proc/driver/nvidia/version")),
        nouveau,
        wsl: release.contains("microsoft"),
        cdi_specs: CDI.iter().flat_map(|folder| specs(root, folder)).collect(),
        container_toolkit: container_toolkit(),
        shm: rustix::fs::statvfs(root.join("dev/shm").as_std_path())
            .ok()
            .map(|found| found.f_blocks.saturating_mul(found.f_frsize)),
        glibc: run_with_timeout("getconf", &["GNU_LIBC_VERSION"], LIMIT)
            .ok()
            .and_then(|text| Some(text.trim().strip_prefix("glibc ")?.to_owned())),
        uvm: root.join("dev/nvidiactl").exists().then(|| root.join("dev/nvidia-uvm").exists()),
        xid_errors: xid_errors(&root.join("dev/kmsg")),
    }
}

/// The start of this machine that it runs since, and the kernel that was started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Boot {
    /// A UUID of the kernel, another one after each start.
    pub id: String,
    /// The kernel's release: `6.1.0-18-amd64`.
    pub kernel: String,
    /// The machine's name.
    pub name: String,
}

/// Reads them; `None`: the kernel does not say.
pub fn boot() -> Option<Boot> {
    let text = |path: &str| {
        let text = fs_err::read_to_string(path).ok()?.trim().to_owned();
        (!text.is_empty()).then_some(text)
    };
    Some(Boot {
        id: text("/proc/sys/kernel/random/boot_id")?,
        kernel: text("/proc/sys/kernel/osrelease")?,
        name: text("/proc/sys/kernel/hostname")?,
    })
}

/// Returns the version of the container toolkit, if it is installed.
pub fn container_toolkit() -> Option<String> {
    run_with_timeout("nvidia-ctk", &["--version"], LIMIT).ok().and_then(|text| toolkit(&text))
}

/// Returns `570.124.06` of `NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.124.06  Wed ...`.
fn kernel_module(text: &str) -> Option<String> {
    let words = text.lines().next()?.split_whitespace();
    let mut version = words.skip_while(|word| *word != "Module").skip(1);
    version.find(|word| word.contains('.')).map(str::to_owned)
}

/// Returns `1.17.8` of `NVIDIA Container Toolkit CLI version 1.17.8`.
fn toolkit(text: &str) -> Option<String> {
    parse_program_version(text.lines().next()?).map(|version| version.to_string())
}

fn specs(root: &Utf8Path, folder: &str) -> Vec<String> {
    let files = root.join(folder).read_dir_utf8().into_iter().flatten().flatten();
    let spec = |path: &Utf8Path| matches!(path.extension(), Some("yaml" | "yml" | "json"));
    let mut found: Vec<_> =
        files.map(camino::Utf8DirEntry::into_path).filter(|path| spec(path)).map(String::from).collect();
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(files: &[(&str, &str)]) -> SystemFacts {
        let folder = tempfile::tempdir().expect("a folder");
        let root = Utf8Path::from_path(folder.path()).expect("UTF-8");
        for (path, text) in files {
            let path = root.join(path);
            fs_err::create_dir_all(path.parent().expect("a folder")).expect("made");
            fs_err::write(path, text).expect("written");
        }
        let facts = system(root);
        let relative = |path: &String| path.replacen(&format!("{root}/"), "", 1);
        SystemFacts { cdi_specs: facts.cdi_specs.iter().map(relative).collect(), ..facts }
    }

    #[test]
    fn machine_with_a_driver_is_read() {
        let facts = machine(&[
            (
                "proc/driver/nvidia/version",
                "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.124.06  Release Build\nGCC version: 12\n",
            ),
            ("proc/sys/kernel/osrelease", "6.1.0-28-amd64\n"),
            ("proc/modules", "nvidia_uvm 1 0 - Live 0x0\nnvidia 2 0 - Live 0x0\n"),
            ("etc/cdi/nvidia.yaml", ""),
            ("etc/cdi/readme.txt", ""),
            ("dev/nvidiactl", ""),
        ]);
        assert_eq!(facts.kernel_module.as_deref(), Some("570.124.06"));
        assert!(!facts.nouveau && !facts.wsl);
        assert_eq!(facts.cdi_specs, ["etc/cdi/nvidia.yaml"]);
        assert_eq!(facts.uvm, Some(false));
    }

    #[test]
    fn nouveau_and_wsl_are_detected() {
        let facts = machine(&[
            ("proc/modules", "nouveau 2301952 1 - Live 0x0\n"),
            ("proc/sys/kernel/osrelease", "5.15.167.4-microsoft-standard-WSL2\n"),
        ]);
        assert!(facts.nouveau && facts.wsl);
        assert_eq!((facts.kernel_module, facts.uvm), (None, None));
        assert!(machine(&[]).cdi_specs.is_empty());
    }

    #[test]
    fn toolkit_parses_its_version() {
        let text = "NVIDIA Container Toolkit CLI version 1.17.8\ncommit: 4a4ac9\n";
        assert_eq!(toolkit(text).as_deref(), Some("1.17.8"));
        assert_eq!(toolkit("usage: nvidia-ctk"), None);
    }
}
