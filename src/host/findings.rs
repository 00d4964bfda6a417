//! What follows from the facts of a machine: findings with severity, cause and cure. Pure.
//!
//! Texts of drivers and engines are recognised by `diagnosis`; its rows are used here, never written again.

use serde::Serialize;

use super::facts::{EngineFacts, GpuError, HostFacts, HostReport, SystemFacts};
use super::topology::told;
use crate::compat::Matrix;
use crate::diagnosis::{diagnose, entries};
use crate::resolve::{ResolveOptions, resolve};
use crate::spec::Spec;
use crate::target::{Target, TargetGpu, TargetSource};
use crate::versions::Machine;

/// Below this /dev/shm holds no batch of a data loader: the engines' own default is 64 MB.
const LITTLE_SHM: u64 = 1 << 30;
/// A PyTorch image and the layers it is made of, bytes (README: measured builds).
const ROOM_FOR_AN_IMAGE: u64 = 25_000_000_000;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// As it should be.
    Ok,
    /// It works, and something will surprise.
    Warning,
    /// Something cannot work.
    Error,
}

/// One finding of `doctor`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HostFinding {
    /// Its stable id.
    pub id: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// What is so, and why.
    pub text: String,
    /// What to do.
    pub hint: Option<String>,
}

impl HostFinding {
    fn ok(id: &'static str, text: impl Into<String>) -> Self {
        Self { id, severity: Severity::Ok, text: text.into(), hint: None }
    }

    fn with(id: &'static str, severity: Severity, text: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { id, severity, text: text.into(), hint: Some(hint.into()) }
    }

    /// A known failure, by its row; `seen` says how it shows here.
    fn known(id: &str, severity: Severity, seen: &str) -> Self {
        let row = entries().find(|entry| entry.id == id).expect("a row of `diagnosis`, tested");
        Self::with(row.id, severity, format!("{seen}: {}; {}", row.what, row.why), row.cure)
    }
}

/// Everything to be said of a machine, in the order driver, GPUs, system, engine.
pub fn findings(report: &HostReport, matrix: &Matrix) -> Vec<HostFinding> {
    let mut all = Vec::new();
    match &report.gpus {
        Ok(facts) => driver(facts, &report.system, matrix, &mut all),
        Err(error) => all.push(no_answer(error, &report.system)),
    }
    if !report.overrides.is_empty() {
        let text = format!("{} names the target: plan and build ask no driver", report.overrides.join(", "));
        all.push(HostFinding::with(
            "override",
            Severity::Warning,
            text,
            "unset it to build for this machine",
        ));
    }
    system(&report.system, report.gpus.is_ok(), &mut all);
    match &report.engine {
        Ok(facts) => engine(facts, report, &mut all),
        Err((text, hints)) => {
            let hint = if hints.is_empty() { "start the engine".to_owned() } else { hints.join("; ") };
            all.push(HostFinding::with("engine", Severity::Error, text.clone(), hint));
        }
    }
    all
}

fn no_answer(error: &GpuError, system: &SystemFacts) -> HostFinding {
    match error {
        GpuError::NoDriver if system.nouveau => HostFinding::with(
            "nouveau",
            Severity::Error,
            "the nouveau driver has the GPU: NVIDIA's cannot load beside it",
            "blacklist nouveau, rebuild the initramfs, reboot, and install NVIDIA's driver",
        ),
        GpuError::NoDriver => HostFinding::with(
            "no-driver",
            Severity::Warning,
            "no NVIDIA driver on this machine: images can be built here, and checks on a GPU need another one",
            "install the driver, or give the target with --gpu and --driver",
        ),
        GpuError::Driver { cause } => match diagnose(cause) {
            Some(known) => HostFinding::known_or(known.id, error, known.why, known.cure),
            None => HostFinding::with(
                "driver-silent",
                Severity::Error,
                error.to_string(),
                "look into `dmesg` for NVRM and Xid lines; reload the nvidia modules or reboot",
            ),
        },
        GpuError::Silent { .. } => HostFinding::with(
            "driver-hangs",
            Severity::Error,
            format!("{error}: it hangs"),
            "look into `dmesg` for NVRM and Xid lines; a GPU that fell off the bus needs a reboot",
        ),
    }
}

impl HostFinding {
    fn known_or(id: &'static str, error: &GpuError, why: &str, cure: &str) -> Self {
        Self::with(id, Severity::Error, format!("{error}: {why}"), cure)
    }
}

fn driver(facts: &HostFacts, system: &SystemFacts, matrix: &Matrix, all: &mut Vec<HostFinding>) {
    let cuda = facts.cuda.as_ref().or_else(|| matrix.max_cuda_of(&facts.driver));
    let cuda = cuda.map_or_else(String::new, |cuda| format!(", which supports CUDA {cuda} by itself"));
    all.push(HostFinding::ok("driver", format!("driver {}{cuda}", facts.driver)));
    if system.kernel_module.as_ref().is_some_and(|module| module.parse().ok().as_ref() != Some(&facts.driver))
    {
        let module = system.kernel_module.as_deref().unwrap_or_default();
        let seen = format!("the module is {module}, its libraries are {}", facts.driver);
        all.push(HostFinding::known("driver-library-mismatch", Severity::Error, &seen));
    }
    for (index, gpu) in facts.gpus.iter().enumerate() {
        let memory = gpu.memory.map_or_else(String::new, |bytes| format!(", {} GiB", bytes >> 30));
        let mig = if gpu.mig == Some(true) { ", cut by MIG: a container gets one instance" } else { "" };
        let links = match gpu.nvlinks {
            0 => String::new(),
            links => format!(", {links} NVLink connections"),
        };
        let text = format!("GPU {index}: {} ({}){memory}{links}{mig}", gpu.name, gpu.compute_capability);
        all.push(HostFinding::ok("gpu", text));
    }
    all.extend(told(&facts.pairs).map(|text| HostFinding::ok("gpu-topology", text)));
    for (index, words) in &facts.troubled {
        let text = format!("GPU {index} does not answer: {words}");
        let hint = "look into `dmesg` for Xid lines; reset the GPU or reboot, and check its seat and power";
        all.push(HostFinding::with("gpu-silent", Severity::Error, text, hint));
    }
    if facts.gpus.is_empty() && facts.troubled.is_empty() {
        let text = "the driver is loaded and lists no GPU";
        let hint = "check the slot with `lspci`, and the device rules if this is a container";
        all.push(HostFinding::with("no-gpu", Severity::Warning, text, hint));
    }
    if facts.gpus.iter().any(|gpu| gpu.persistence == Some(false)) && !system.wsl {
        let text = "the driver unloads when no program uses it: the first call of each program takes seconds";
        let hint = "enable nvidia-persistenced, or `nvidia-smi -pm 1`";
        all.push(HostFinding::with("persistence-off", Severity::Warning, text, hint));
    }
    all.extend(kinds(facts, matrix));
}

/// GPUs of several capabilities: which stack serves all of them.
fn kinds(facts: &HostFacts, matrix: &Matrix) -> Option<HostFinding> {
    let gpu = |gpu: &super::HostGpu| TargetGpu {
        name: Some(gpu.name.clone()),
        compute_capability: gpu.compute_capability,
    };
    let machine = if cfg!(target_arch = "aarch64") { Machine::Aarch64 } else { Machine::X86_64 };
    let target = Target {
        source: TargetSource::Detected,
        driver: Some(facts.driver.clone()),
        gpus: facts.gpus.iter().map(gpu).collect(),
        machine,
    };
    let different: Vec<_> = target.capabilities().iter().map(ToString::to_string).collect();
    if different.len() < 2 {
        return None;
    }
    let seen = format!("GPUs of {} kinds: {}", different.len(), different.join(", "));
    let whole = resolve(&Spec::of("pytorch-cuda"), &target, matrix, &ResolveOptions::default());
    Some(match whole {
        Ok(stack) => HostFinding::with(
            "gpus-differ",
            Severity::Warning,
            format!("{seen}; the newest PyTorch that serves all of them is {}", stack.name),
            "plan and build choose for all of them; for one alone give --gpu",
        ),
        Err(_) => HostFinding::with(
            "gpus-differ",
            Severity::Error,
            format!("{seen}; no PyTorch of the matrix serves all of them"),
            "build one image for each with --gpu",
        ),
    })
}

fn system(facts: &SystemFacts, has_driver: bool, all: &mut Vec<HostFinding>) {
    if facts.wsl {
        let text = "this is WSL2: the driver is Windows', and none may be installed inside";
        all.push(HostFinding::ok("wsl", text));
    }
    if facts.nouveau && has_driver {
        let text = "nouveau is loaded beside NVIDIA's driver: it holds a GPU that CUDA does not see";
        all.push(HostFinding::with("nouveau", Severity::Warning, text, "blacklist nouveau and reboot"));
    }
    if facts.uvm == Some(false) {
        all.push(HostFinding::known("uvm-missing", Severity::Error, "/dev/nvidia-uvm is not there"));
    }
    match facts.shm {
        Some(bytes) if bytes < LITTLE_SHM => {
            let text = format!("/dev/shm of this machine holds {} MiB", bytes >> 20);
            let hint = "`envforge shell` gives containers their own; mount a larger one for programs outside";
            all.push(HostFinding::with("little-shm", Severity::Warning, text, hint));
        }
        Some(bytes) => all.push(HostFinding::ok("shm", format!("/dev/shm holds {} GiB", bytes >> 30))),
        None => {}
    }
    if let Some(glibc) = &facts.glibc {
        all.push(HostFinding::ok("glibc", format!("glibc {glibc}; images bring their own")));
    }
    if let Some(version) = &facts.container_toolkit {
        let specs = facts.cdi_specs.len();
        let text = format!("container toolkit {version}, {specs} CDI descriptions");
        all.push(HostFinding::ok("container-toolkit", text));
    }
}

fn engine(facts: &EngineFacts, report: &HostReport, all: &mut Vec<HostFinding>) {
    let rootless = if facts.rootless { ", rootless" } else { "" };
    let away = if facts.local { "" } else { ", on another machine" };
    let text = format!("{} {}{rootless}{away}", facts.name, facts.version);
    all.push(HostFinding::ok("engine", text));
    if !facts.unkept_limits.is_empty() {
        let text = format!("it keeps no limit of a container: {}", facts.unkept_limits.join(", "));
        let hint = "without root Docker limits by cgroups v2 alone, with the controllers that systemd delegates to you";
        all.push(HostFinding::with("engine-limits", Severity::Warning, text, hint));
    }
    // Measured with one PyTorch project (README, "Measured"): one package more took 3.6 s with overlay2, 20 s with fuse-overlayfs.
    if let Some(driver @ ("fuse-overlayfs" | "vfs")) = facts.storage_driver.as_deref() {
        let text =
            format!("its storage driver is {driver}: it compares or copies whole images with every build");
        let hint = "where the kernel lets it, overlay2 takes seconds instead: \"storage-driver\" in the daemon's daemon.json";
        all.push(HostFinding::with("storage-driver", Severity::Warning, text, hint));
    }
    let has_gpu = report.gpus.as_ref().is_ok_and(|facts| !facts.gpus.is_empty());
    match &facts.gpus {
        Some(way) => all.push(HostFinding::ok("engine-gpus", format!("it gives GPUs by {way}"))),
        None if has_gpu && facts.local => {
            let seen = "there is a GPU, and the engine lists no way to give it to a container";
            all.push(HostFinding::known("no-gpu-runtime", Severity::Error, seen));
        }
        None => {}
    }
    let legacy = facts.gpus.as_deref().is_some_and(|way| way != "CDI");
    if legacy && facts.cgroup_driver.as_deref() == Some("systemd") {
        let seen = "the nvidia runtime with systemd's cgroups, a known trap";
        all.push(HostFinding::known("gpu-lost", Severity::Warning, seen));
    }
    if let Some(free) = facts.free {
        let text = format!("{} GB are free on the engine's disk", free / 1_000_000_000);
        all.push(if free < ROOM_FOR_AN_IMAGE {
            let hint =
                "remove images and build cache you no longer need; a PyTorch image takes 7 GB and more";
            HostFinding::with("disk", Severity::Warning, text, hint)
        } else {
            HostFinding::ok("disk", text)
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::HostGpu;

    fn engine_facts(change: impl FnOnce(&mut EngineFacts)) -> EngineFacts {
        let mut facts = EngineFacts {
            name: "Docker".to_owned(),
            version: "20.10.24".to_owned(),
            gpus: Some("the nvidia runtime".to_owned()),
            cgroup_driver: Some("cgroupfs".to_owned()),
            storage_driver: Some("overlay2".to_owned()),
            rootless: false,
            unkept_limits: Vec::new(),
            local: true,
            free: Some(100_000_000_000),
        };
        change(&mut facts);
        facts
    }

    fn host(driver: &str, gpus: &[(&str, &str)]) -> HostFacts {
        let gpu = |(name, capability): &(&str, &str)| {
            HostGpu::plain((*name).to_owned(), capability.parse().expect("a capability"), Some(80 << 30))
        };
        HostFacts {
            driver: driver.parse().expect("a driver"),
            cuda: None,
            gpus: gpus.iter().map(gpu).collect(),
            troubled: Vec::new(),
            pairs: Vec::new(),
        }
    }

    fn report(gpus: Result<HostFacts, GpuError>) -> HostReport {
        HostReport {
            gpus,
            system: SystemFacts::default(),
            engine: Ok(engine_facts(|_| {})),
            overrides: Vec::new(),
        }
    }

    fn severity(report: &HostReport, id: &str) -> Option<Severity> {
        let all = findings(report, Matrix::current());
        for finding in &all {
            assert!(!finding.text.is_empty());
            assert_eq!(finding.hint.is_none(), finding.severity == Severity::Ok, "{finding:?}");
        }
        all.iter().find(|finding| finding.id == id).map(|finding| finding.severity)
    }

    #[test]
    fn a_machine_that_works_has_nothing_but_ok() {
        let good = report(Ok(host("570.124.06", &[("NVIDIA H200", "9.0")])));
        let all = findings(&good, Matrix::current());
        assert!(all.iter().all(|finding| finding.severity == Severity::Ok), "{all:#?}");
        assert!(all.iter().any(|finding| finding.text == "GPU 0: NVIDIA H200 (sm_90), 80 GiB"), "{all:#?}");
    }

    #[test]
    fn each_way_a_driver_fails_has_its_finding() {
        let failing = |cause: &str| report(Err(GpuError::Driver { cause: cause.to_owned() }));
        let mismatch = failing("Failed to initialize NVML: Driver/library version mismatch");
        assert_eq!(severity(&mismatch, "driver-library-mismatch"), Some(Severity::Error));
        assert_eq!(
            severity(&failing("Failed to initialize NVML: Unknown Error"), "gpu-lost"),
            Some(Severity::Error)
        );
        assert_eq!(severity(&failing("it counts 4096 GPUs"), "driver-silent"), Some(Severity::Error));
        assert_eq!(
            severity(&report(Err(GpuError::Silent { seconds: 2 })), "driver-hangs"),
            Some(Severity::Error)
        );
        let mut without = report(Err(GpuError::NoDriver));
        assert_eq!(severity(&without, "no-driver"), Some(Severity::Warning));
        without.system.nouveau = true;
        assert_eq!(severity(&without, "nouveau"), Some(Severity::Error));
    }

    #[test]
    fn two_kinds_of_gpu_are_told_with_the_stack_that_serves_both() {
        let both = report(Ok(host("570.124.06", &[("Tesla V100-SXM2-16GB", "7.0"), ("NVIDIA H200", "9.0")])));
        let all = findings(&both, Matrix::current());
        let told = all.iter().find(|finding| finding.id == "gpus-differ").expect("told");
        assert_eq!(told.severity, Severity::Warning);
        assert!(told.text.contains("pytorch-cuda:"), "{}", told.text);
        let never = report(Ok(host("580.65.06", &[("Tesla K80", "3.7"), ("NVIDIA B200", "10.0")])));
        assert_eq!(severity(&never, "gpus-differ"), Some(Severity::Error));
    }

    #[test]
    fn traps_of_the_engine_are_told() {
        let mut trap = report(Ok(host("570.124.06", &[("NVIDIA H200", "9.0")])));
        trap.engine = Ok(engine_facts(|facts| facts.cgroup_driver = Some("systemd".to_owned())));
        assert_eq!(severity(&trap, "gpu-lost"), Some(Severity::Warning));
        trap.engine = Ok(engine_facts(|facts| facts.gpus = Some("CDI".to_owned())));
        assert_eq!(severity(&trap, "gpu-lost"), None);
        trap.engine = Ok(engine_facts(|facts| facts.gpus = None));
        assert_eq!(severity(&trap, "no-gpu-runtime"), Some(Severity::Error));
        trap.engine = Ok(engine_facts(|facts| facts.free = Some(3_000_000_000)));
        assert_eq!(severity(&trap, "disk"), Some(Severity::Warning));
        assert_eq!(severity(&trap, "engine-limits"), None);
        trap.engine = Ok(engine_facts(|facts| facts.unkept_limits.push("--memory")));
        assert_eq!(severity(&trap, "engine-limits"), Some(Severity::Warning));
        assert_eq!(severity(&trap, "storage-driver"), None);
        trap.engine = Ok(engine_facts(|facts| facts.storage_driver = Some("fuse-overlayfs".to_owned())));
        assert_eq!(severity(&trap, "storage-driver"), Some(Severity::Warning));
        trap.engine = Err(("the engine does not answer".to_owned(), Vec::new()));
        assert_eq!(severity(&trap, "engine"), Some(Severity::Error));
    }

    #[test]
    fn files_tell_of_a_module_of_another_version_and_of_missing_devices() {
        let mut odd = report(Ok(host("570.124.06", &[("NVIDIA H200", "9.0")])));
        odd.system.kernel_module = Some("570.124.06".to_owned());
        assert_eq!(severity(&odd, "driver-library-mismatch"), None);
        odd.system.kernel_module = Some("560.35.03".to_owned());
        assert_eq!(severity(&odd, "driver-library-mismatch"), Some(Severity::Error));
        odd.system.uvm = Some(false);
        assert_eq!(severity(&odd, "uvm-missing"), Some(Severity::Error));
        odd.system.shm = Some(64 << 20);
        assert_eq!(severity(&odd, "little-shm"), Some(Severity::Warning));
        odd.overrides = vec!["ENVFORGE_GPU"];
        assert_eq!(severity(&odd, "override"), Some(Severity::Warning));
    }
}
