//! Findings about the facts of a machine, with severity, cause and fix. Pure.
//!
//! `diagnosis` recognizes messages of drivers and engines; its rows are reused here.

use serde::Serialize;

use super::facts::{EngineFacts, GpuError, HostFacts, HostReport, SystemFacts};
use super::kernel_log::XidErrors;
use super::topology::describe;
use crate::model::compat::Matrix;
use crate::model::diagnosis::{Diagnosis, diagnose, entries};
use crate::model::program_version::{CONTAINER_TOOLKIT, DOCKER, MinimumVersion, PODMAN};
use crate::model::resolve::{ResolveOptions, resolve};
use crate::model::spec::Spec;
use crate::model::target::{Target, TargetGpu, TargetSource};
use crate::model::versions::Machine;

/// The minimum /dev/shm for a batch of a data loader: the engines' default is 64 MB.
const LITTLE_SHM: u64 = 1 << 30;
/// Bytes of a PyTorch image and its layers (README: measured builds).
const ROOM_FOR_AN_IMAGE: u64 = 25_000_000_000;

/// The severity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// No problem.
    Ok,
    /// A possible problem.
    Warning,
    /// A failure.
    Error,
}

/// One finding of `doctor`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HostFinding {
    /// Its stable id.
    pub id: &'static str,
    /// The severity.
    pub severity: Severity,
    /// The finding and its cause.
    pub text: String,
    /// The fix.
    pub hint: Option<String>,
    /// The variable or file that a setting has its value from; `None`: no setting, or its default.
    pub from: Option<String>,
}

impl HostFinding {
    fn ok(id: &'static str, text: impl Into<String>) -> Self {
        Self { id, severity: Severity::Ok, text: text.into(), hint: None, from: None }
    }

    pub(super) fn with(
        id: &'static str,
        severity: Severity,
        text: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self { id, severity, text: text.into(), hint: Some(hint.into()), from: None }
    }

    /// Returns a known failure by its row; `seen` describes its symptom here.
    fn known(id: &str, severity: Severity, seen: &str) -> Self {
        let row = entries().find(|entry| entry.id == id).expect("a row of `diagnosis`, tested");
        let known = Diagnosis::from(row);
        Self::with(known.id, severity, format!("{seen}: {}; {}", known.what, known.why), known.cure)
    }
}

/// Returns all findings of a machine, in the order driver, GPUs, system, engine.
pub fn findings(report: &HostReport, matrix: &Matrix) -> Vec<HostFinding> {
    let mut all = Vec::new();
    match &report.gpus {
        Ok(facts) => driver(facts, &report.system, matrix, &mut all),
        Err(error) => all.push(no_answer(error, &report.system)),
    }
    if !report.overrides.is_empty() {
        let text = format!("{} overrides driver detection", report.overrides.join(", "));
        all.push(HostFinding::with(
            "override",
            Severity::Warning,
            text,
            "unset the variable to build for this machine",
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
            "the nouveau driver controls the GPU and prevents NVIDIA's driver from loading",
            "blacklist nouveau, rebuild the initramfs, reboot, and install NVIDIA's driver",
        ),
        GpuError::NoDriver => HostFinding::with(
            "no-driver",
            Severity::Warning,
            "no NVIDIA driver on this machine: builds work, GPU checks require a machine with a driver",
            "install the driver, or set the target with --gpu and --driver",
        ),
        GpuError::Driver { cause } => match diagnose(cause) {
            Some(known) => HostFinding::known_or(known.id, error, &known.why, &known.cure),
            None => HostFinding::with(
                "driver-silent",
                Severity::Error,
                error.to_string(),
                "check `dmesg` for NVRM and Xid lines, then reload the nvidia modules or reboot",
            ),
        },
        GpuError::Silent { .. } => HostFinding::with(
            "driver-hangs",
            Severity::Error,
            error.to_string(),
            "check `dmesg` for NVRM and Xid lines; reboot if a GPU fell off the bus",
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
    let cuda = cuda.map_or_else(String::new, |cuda| format!(" (supports CUDA {cuda})"));
    all.push(HostFinding::ok("driver", format!("driver {}{cuda}", facts.driver)));
    if system.kernel_module.as_ref().is_some_and(|module| module.parse().ok().as_ref() != Some(&facts.driver))
    {
        let module = system.kernel_module.as_deref().unwrap_or_default();
        let seen = format!("kernel module {module}, libraries {}", facts.driver);
        all.push(HostFinding::known("driver-library-mismatch", Severity::Error, &seen));
    }
    for (index, gpu) in facts.gpus.iter().enumerate() {
        let memory = gpu.memory.map_or_else(String::new, |bytes| format!(", {} GiB", bytes >> 30));
        let mig = if gpu.mig == Some(true) { ", MIG enabled: a container gets one instance" } else { "" };
        let links = match gpu.nvlinks {
            0 => String::new(),
            links => format!(", {links} NVLink connections"),
        };
        let text = format!("GPU {index}: {} ({}){memory}{links}{mig}", gpu.name, gpu.compute_capability);
        all.push(HostFinding::ok("gpu", text));
    }
    all.extend(describe(&facts.pairs).map(|text| HostFinding::ok("gpu-topology", text)));
    for (index, words) in &facts.troubled {
        let text = format!("GPU {index} does not respond: {words}");
        let hint = "check `dmesg` for Xid lines, then reset the GPU or reboot, and check its slot and power";
        all.push(HostFinding::with("gpu-silent", Severity::Error, text, hint));
    }
    if facts.gpus.is_empty() && facts.troubled.is_empty() {
        let text = "the driver is loaded but lists no GPU";
        let hint = "check the slot with `lspci`, and the device rules if this is a container";
        all.push(HostFinding::with("no-gpu", Severity::Warning, text, hint));
    }
    if facts.gpus.iter().any(|gpu| gpu.persistence == Some(false)) && !system.wsl {
        let text = "persistence mode is off: the driver unloads when idle, and the first call of each program takes seconds";
        let hint = "enable nvidia-persistenced, or run `nvidia-smi -pm 1`";
        all.push(HostFinding::with("persistence-off", Severity::Warning, text, hint));
    }
    all.extend(kinds(facts, matrix));
}

/// Returns the newest stack for GPUs of several compute capabilities.
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
            format!("{seen}; the newest PyTorch for all of them is {}", stack.name),
            "select one GPU with --gpu to build for it alone",
        ),
        Err(_) => HostFinding::with(
            "gpus-differ",
            Severity::Error,
            format!("{seen}; no PyTorch of the matrix supports all of them"),
            "build one image per GPU with --gpu",
        ),
    })
}

/// Errors of GPUs since boot: each kind on each GPU by its row.
fn xid_errors(facts: &SystemFacts, has_driver: bool) -> Vec<HostFinding> {
    let Some(errors) = &facts.xid_errors else {
        let text = "errors of GPUs since boot (Xid) are unknown: only root may read the kernel's log";
        return has_driver.then(|| HostFinding::ok("xid", text.to_owned())).into_iter().collect();
    };
    if errors.is_empty() && has_driver {
        return vec![HostFinding::ok("xid", "no errors of GPUs (Xid) in the kernel's log".to_owned())];
    }
    let finding = |error: &XidErrors| {
        let times = if error.count == 1 { "once".to_owned() } else { format!("{} times", error.count) };
        let seen = format!("Xid {} of GPU {} is {times} in the kernel's log", error.xid, error.gpu);
        let id = diagnose(&error.last).map_or("xid", |known| known.id);
        HostFinding::known(id, Severity::Warning, &seen)
    };
    errors.iter().map(finding).collect()
}

fn system(facts: &SystemFacts, has_driver: bool, all: &mut Vec<HostFinding>) {
    all.extend(xid_errors(facts, has_driver));
    if facts.wsl {
        let text = "this is WSL2: the driver belongs to Windows; do not install one inside";
        all.push(HostFinding::ok("wsl", text));
    }
    if facts.nouveau && has_driver {
        let text = "nouveau is loaded in addition to NVIDIA's driver: CUDA does not see its GPU";
        all.push(HostFinding::with("nouveau", Severity::Warning, text, "blacklist nouveau and reboot"));
    }
    if facts.uvm == Some(false) {
        all.push(HostFinding::known("uvm-missing", Severity::Error, "/dev/nvidia-uvm not found"));
    }
    match facts.shm {
        Some(bytes) if bytes < LITTLE_SHM => {
            let text = format!("/dev/shm of this machine has {} MiB", bytes >> 20);
            let hint = "mount a larger /dev/shm for programs outside containers (`envforge shell` gives containers their own)";
            all.push(HostFinding::with("little-shm", Severity::Warning, text, hint));
        }
        Some(bytes) => all.push(HostFinding::ok("shm", format!("/dev/shm: {} GiB", bytes >> 30))),
        None => {}
    }
    if let Some(glibc) = &facts.glibc {
        all.push(HostFinding::ok("glibc", format!("glibc {glibc} (images contain their own)")));
    }
    if let Some(version) = &facts.container_toolkit {
        let specs = facts.cdi_specs.len();
        let text = format!("container toolkit {version}, {specs} CDI specifications");
        all.push(checked("container-toolkit", text, version, &CONTAINER_TOOLKIT));
    }
}

/// Returns a warning for a program below its minimum version, otherwise `text` as it is.
fn checked(id: &'static str, text: String, version: &str, minimum: &MinimumVersion) -> HostFinding {
    if minimum.is_met_by(version) != Some(false) {
        return HostFinding::ok(id, text);
    }
    let MinimumVersion { program, version, reason } = minimum;
    let hint = format!("upgrade {program} to {version} or newer: {reason}");
    HostFinding::with(id, Severity::Warning, text, hint)
}

fn engine(facts: &EngineFacts, report: &HostReport, all: &mut Vec<HostFinding>) {
    let rootless = if facts.rootless { ", rootless" } else { "" };
    let away = if facts.local { "" } else { ", on another machine" };
    let text = format!("{} {}{rootless}{away}", facts.name, facts.version);
    let minimum = if facts.name == "Podman" { &PODMAN } else { &DOCKER };
    all.push(checked("engine", text, &facts.version, minimum));
    if !facts.unkept_limits.is_empty() {
        let text =
            format!("the engine does not enforce container limits: {}", facts.unkept_limits.join(", "));
        let hint = "use cgroups v2 and delegate its controllers with systemd: rootless Docker enforces no other limits";
        all.push(HostFinding::with("engine-limits", Severity::Warning, text, hint));
    }
    // Measured with one PyTorch project (docs/src/benchmarks.md): one package more took 3.6 s with overlay2, 20 s with fuse-overlayfs.
    if let Some(driver @ ("fuse-overlayfs" | "vfs")) = facts.storage_driver.as_deref() {
        let text = format!("storage driver {driver} compares or copies complete images with every build");
        let hint = "set \"storage-driver\" to \"overlay2\" in daemon.json if the kernel supports it";
        all.push(HostFinding::with("storage-driver", Severity::Warning, text, hint));
    }
    if facts.keeps_blobs {
        let text = "containerd's image store keeps each layer twice: as it was sent and unpacked";
        let hint = "allow 1.6 times the size of your images, or set \"features\": {\"containerd-snapshotter\": false} in daemon.json";
        all.push(HostFinding::with("image-store", Severity::Warning, text, hint));
    }
    let has_gpu = report.gpus.as_ref().is_ok_and(|facts| !facts.gpus.is_empty());
    match &facts.gpus {
        Some(way) => all.push(HostFinding::ok("engine-gpus", format!("GPU access through {way}"))),
        None if has_gpu && facts.local => {
            let seen = "the machine has a GPU, but the engine cannot give it to containers";
            all.push(HostFinding::known("no-gpu-runtime", Severity::Error, seen));
        }
        None => {}
    }
    let legacy = facts.gpus.as_deref().is_some_and(|way| way != "CDI");
    if legacy && facts.cgroup_driver.as_deref() == Some("systemd") {
        let seen = "the nvidia runtime with systemd's cgroups, a known problem";
        all.push(HostFinding::known("gpu-lost", Severity::Warning, seen));
    }
    if let Some(free) = facts.free {
        let text = format!("{} GB free on the engine's disk", free / 1_000_000_000);
        all.push(if free < ROOM_FOR_AN_IMAGE {
            let hint = "remove unused images and build cache; a PyTorch image requires 7 GB or more";
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
            keeps_blobs: false,
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
        let all = findings(report, crate::model::compat::embedded());
        for finding in &all {
            assert!(!finding.text.is_empty());
            assert_eq!(finding.hint.is_none(), finding.severity == Severity::Ok, "{finding:?}");
        }
        all.iter().find(|finding| finding.id == id).map(|finding| finding.severity)
    }

    #[test]
    fn errors_in_the_kernel_log_are_warnings_with_their_cure() {
        let error = |xid, count, last: &str| XidErrors {
            gpu: "0000:3b:00".to_owned(),
            xid,
            count,
            last: format!("NVRM: Xid (PCI:0000:3b:00): {xid}, {last}"),
        };
        let errors = vec![error(79, 1, "GPU has fallen off the bus."), error(31, 3, "x"), error(999, 1, "y")];
        let facts = SystemFacts { xid_errors: Some(errors), ..SystemFacts::default() };
        let found = xid_errors(&facts, true);
        let ids: Vec<_> = found.iter().map(|finding| finding.id).collect();
        assert_eq!(ids, ["xid-bus", "xid-program", "xid"]);
        assert!(found.iter().all(|finding| finding.severity == Severity::Warning && finding.hint.is_some()));
        assert!(
            found[0].text.starts_with("Xid 79 of GPU 0000:3b:00 is once in the kernel's log: "),
            "{}",
            found[0].text
        );
        assert!(found[1].text.contains("is 3 times in"), "{}", found[1].text);
    }

    #[test]
    fn log_without_errors_and_log_out_of_reach_are_told_apart() {
        let of = |errors: Option<Vec<XidErrors>>, has_driver| {
            let facts = SystemFacts { xid_errors: errors, ..SystemFacts::default() };
            xid_errors(&facts, has_driver).into_iter().map(|finding| finding.text).collect::<Vec<_>>()
        };
        assert!(of(Some(Vec::new()), true)[0].contains("no errors"));
        assert!(of(None, true)[0].contains("unknown"));
        assert!(of(None, false).is_empty() && of(Some(Vec::new()), false).is_empty());
    }

    #[test]
    fn working_machine_has_only_ok_findings() {
        let good = report(Ok(host("570.124.06", &[("NVIDIA H200", "9.0")])));
        let all = findings(&good, crate::model::compat::embedded());
        assert!(all.iter().all(|finding| finding.severity == Severity::Ok), "{all:#?}");
        assert!(all.iter().any(|finding| finding.text == "GPU 0: NVIDIA H200 (sm_90), 80 GiB"), "{all:#?}");
    }

    #[test]
    fn each_driver_failure_has_its_finding() {
        let failing = |cause: &str| report(Err(GpuError::Driver { cause: cause.to_owned() }));
        let mismatch = failing("Failed to initialize NVML: Driver/library version mismatch");
        assert_eq!(severity(&mismatch, "driver-library-mismatch"), Some(Severity::Error));
        assert_eq!(
            severity(&failing("Failed to initialize NVML: Unknown Error"), "gpu-lost"),
            Some(Severity::Error)
        );
        assert_eq!(severity(&failing("implausible GPU count 4096"), "driver-silent"), Some(Severity::Error));
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
    fn mixed_gpus_report_their_common_stack() {
        let both = report(Ok(host("570.124.06", &[("Tesla V100-SXM2-16GB", "7.0"), ("NVIDIA H200", "9.0")])));
        let all = findings(&both, crate::model::compat::embedded());
        let describe = all.iter().find(|finding| finding.id == "gpus-differ").expect("reported");
        assert_eq!(describe.severity, Severity::Warning);
        assert!(describe.text.contains("pytorch-cuda:"), "{}", describe.text);
        let never = report(Ok(host("580.65.06", &[("Tesla K80", "3.7"), ("NVIDIA B200", "10.0")])));
        assert_eq!(severity(&never, "gpus-differ"), Some(Severity::Error));
    }

    #[test]
    fn known_engine_problems_are_reported() {
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
        assert_eq!(severity(&trap, "image-store"), None);
        trap.engine = Ok(engine_facts(|facts| facts.keeps_blobs = true));
        assert_eq!(severity(&trap, "image-store"), Some(Severity::Warning));
        trap.engine = Err(("the engine does not answer".to_owned(), Vec::new()));
        assert_eq!(severity(&trap, "engine"), Some(Severity::Error));
    }

    #[test]
    fn program_below_its_minimum_version_is_reported() {
        let mut old = report(Ok(host("570.124.06", &[("NVIDIA H200", "9.0")])));
        for (version, found) in [("20.10.24+dfsg1", Severity::Ok), ("19.03.15", Severity::Warning)] {
            old.engine = Ok(engine_facts(|facts| facts.version = version.to_owned()));
            assert_eq!(severity(&old, "engine"), Some(found), "{version}");
        }
        for (version, found) in [("1.17.8", Severity::Ok), ("1.16.2", Severity::Warning)] {
            old.system.container_toolkit = Some(version.to_owned());
            assert_eq!(severity(&old, "container-toolkit"), Some(found), "{version}");
        }
    }

    #[test]
    fn module_mismatch_and_missing_devices_are_reported() {
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
