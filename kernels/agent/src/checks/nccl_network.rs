//! Names the network that NCCL could use between nodes: RDMA devices of the host, the library that opens them, plug-ins.
//!
//! NCCL opens libibverbs.so.1 by name and falls back to TCP where it cannot: on InfiniBand that costs most of the bandwidth, and
//! only `NCCL_DEBUG=INFO` says so. Sources: `src/misc/ibvsymbols.cc` and `src/plugin/net.cc` of NCCL; `sysfs-class-infiniband` of the kernel.

use std::path::{Path, PathBuf};

use envforge_protocol::{CheckId, Key, Outcome, SkipReason};

use super::library_load::whole;
use super::{Options, display_path, errored};
use crate::dlopen::Library;
use crate::libraries::{self, FoundVia, SearchPaths, entries};
use crate::report::Report;

const ID: CheckId = CheckId::NcclNetwork;
const LIBRARY: &str = "libibverbs.so.1";
/// Where the distribution has the drivers of network cards: next to the library, in a folder of this name.
const DRIVERS: &str = "libibverbs";
/// The file that NCCL loads by name, and the beginning of those that `NCCL_NET_PLUGIN` selects.
const PLUGIN: &str = "libnccl-net";
/// The kernel's driver of Amazon's network, which NCCL uses by a plug-in alone.
const EFA: &str = "efa";

pub(crate) fn run(options: &Options) -> Vec<Report> {
    let expected = match options.expectation_if_given() {
        Ok(expected) => expected,
        Err(problem) => return errored(&[ID], &problem),
    };
    let paths = SearchPaths::of(&options.root);
    let has_nccl = expected.value(Key::Nccl).is_some() || libraries::first(&paths.search(), "nccl").is_some();
    if !has_nccl {
        return vec![Report::skipped(ID, SkipReason::NotInStack, "NCCL is not in the stack")];
    }
    let host = Host::of(&options.root);
    let image = Image::of(&options.root, &paths);
    let must = expected.value(Key::Rdma).is_some();
    vec![report(&host, &image, must)]
}

/// A device for RDMA.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Device {
    /// `mlx5_0`.
    name: String,
    /// The kernel's driver, if it is known: `mlx5_core`.
    driver: String,
    /// The kinds of its active ports: `InfiniBand`, `Ethernet`.
    active: Vec<String>,
}

/// What the host has.
#[derive(Debug, Default)]
struct Host {
    devices: Vec<Device>,
    /// Whether a container sees the devices themselves.
    has_nodes: bool,
}

impl Host {
    fn of(root: &Path) -> Self {
        let devices = entries(&root.join("sys/class/infiniband"));
        let nodes = entries(&root.join("dev/infiniband"));
        let is_verbs = |path: &PathBuf| file_name(path).starts_with("uverbs");
        Self {
            devices: devices.iter().map(|path| Device::of(path)).collect(),
            has_nodes: nodes.iter().any(is_verbs),
        }
    }
}

impl Device {
    fn of(path: &Path) -> Self {
        let text = |path: PathBuf| std::fs::read_to_string(path).unwrap_or_default().trim().to_owned();
        let mut active = Vec::new();
        for port in entries(&path.join("ports")) {
            // `4: ACTIVE`
            if text(port.join("state")).ends_with("ACTIVE") {
                active.push(text(port.join("link_layer")));
            }
        }
        let driver = std::fs::read_link(path.join("device/driver")).unwrap_or_default();
        Self { name: file_name(path), driver: file_name(&driver), active }
    }
}

/// What the image has.
#[derive(Debug)]
struct Image {
    /// The path of the library; the error says why it cannot be used.
    library: Result<String, String>,
    /// Its drivers of network cards.
    drivers: usize,
    /// Net plug-ins of NCCL, by file name.
    plugins: Vec<String>,
}

impl Image {
    fn of(root: &Path, paths: &SearchPaths) -> Self {
        // NCCL opens both by name: what only a Python package has is not found.
        let by_name = |via: &FoundVia| matches!(via, FoundVia::Variable | FoundVia::Loader);
        let folders: Vec<PathBuf> =
            paths.folders().into_iter().filter(|(via, _)| by_name(via)).map(|(_, folder)| folder).collect();
        let found = folders.iter().map(|folder| folder.join(LIBRARY)).find(|path| path.is_file());
        let library = match &found {
            None => Err(format!("the image has no {LIBRARY}")),
            Some(path) => {
                let shown = display_path(root, path);
                let loads = whole(path).and_then(|()| Library::open(path).map(drop));
                loads.map(|()| shown.clone()).map_err(|problem| format!("{shown} does not load: {problem}"))
            }
        };
        let drivers = found.iter().filter_map(|path| path.parent());
        let drivers = drivers.flat_map(|folder| entries(&folder.join(DRIVERS))).count();
        let is_plugin = |name: &String| name.starts_with(PLUGIN) && name.contains(".so");
        let mut plugins: Vec<String> = folders
            .iter()
            .flat_map(|folder| entries(folder))
            .map(|path| file_name(&path))
            .filter(is_plugin)
            .collect();
        plugins.sort();
        plugins.dedup();
        Self { library, drivers, plugins }
    }

    fn plugin_words(&self) -> String {
        if self.plugins.is_empty() {
            "no net plug-in".to_owned()
        } else {
            format!("net plug-in {}", self.plugins.join(", "))
        }
    }
}

/// The finding; `must`: the image was built with the libraries.
fn report(host: &Host, image: &Image, must: bool) -> Report {
    let measured = |report: Report| {
        let names: Vec<&str> = host.devices.iter().map(|device| device.name.as_str()).collect();
        report
            .measure("devices", &names.join(","))
            .measure("library", image.library.as_deref().unwrap_or(""))
            .measure("plugins", &image.plugins.join(","))
    };
    if let (Err(problem), true) = (&image.library, must) {
        let report = Report::new(ID, Outcome::Failed, format!("{problem}: NCCL uses TCP between nodes"));
        return measured(report)
            .hint("build the image again: the lock has the packages libibverbs1 and ibverbs-providers");
    }
    if host.devices.is_empty() {
        let library = match &image.library {
            Ok(path) => format!("the image has {path} and {}", image.plugin_words()),
            Err(problem) => format!("{problem}, and {}", image.plugin_words()),
        };
        return measured(Report::skipped(
            ID,
            SkipReason::NoRdma,
            format!("no InfiniBand or RoCE device here; {library}"),
        ));
    }
    let devices = described(&host.devices);
    let warning = match &image.library {
        _ if host.devices.iter().all(|device| device.driver == EFA) => image.plugins.is_empty().then(|| {
            format!("{devices} on the host, and the image has no net plug-in (aws-ofi-nccl): NCCL uses TCP")
        }),
        Err(problem) => Some(format!(
            "{devices} on the host, and {problem}: NCCL uses TCP; add the packages libibverbs1 and ibverbs-providers to the image"
        )),
        Ok(_) if image.drivers == 0 => Some(format!(
            "{devices} on the host, and libibverbs has no driver of a network card: NCCL uses TCP; add the package ibverbs-providers"
        )),
        Ok(_) if host.devices.iter().all(|device| device.active.is_empty()) => Some(format!(
            "{devices} on the host, and no port is active: NCCL uses TCP; check the links (`ibstat` on the host)"
        )),
        Ok(_) => None,
    };
    if let Some(text) = warning {
        return measured(Report::new(ID, Outcome::Passed, text.clone()).with_warning(&text));
    }
    let nodes =
        if host.has_nodes { "" } else { "; pass /dev/infiniband to the container (`envforge shell` does)" };
    let text = format!("NCCL can use {devices}, {}{nodes}", image.plugin_words());
    measured(Report::new(ID, Outcome::Passed, text))
}

/// The devices in words: `InfiniBand (mlx5_0, mlx5_1), RoCE (mlx5_2)`.
fn described(devices: &[Device]) -> String {
    let kind = |device: &Device| match device.active.first().map(String::as_str) {
        _ if device.driver == EFA => "EFA",
        Some("Ethernet") => "RoCE",
        Some("InfiniBand") => "InfiniBand",
        Some(_) => "RDMA",
        None => "RDMA without an active port",
    };
    let mut words = Vec::new();
    for name in ["InfiniBand", "RoCE", "EFA", "RDMA", "RDMA without an active port"] {
        let of_kind: Vec<&str> =
            devices.iter().filter(|device| kind(device) == name).map(|device| device.name.as_str()).collect();
        if !of_kind.is_empty() {
            words.push(format!("{name} ({})", of_kind.join(", ")));
        }
    }
    words.join(", ")
}

fn file_name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        std::fs::write(path, text).expect("written");
    }

    fn port(root: &Path, device: &str, kind: &str, state: &str) {
        let port = format!("sys/class/infiniband/{device}/ports/1");
        write(root, &format!("{port}/link_layer"), &format!("{kind}\n"));
        write(root, &format!("{port}/state"), &format!("{state}\n"));
    }

    fn image(library: Result<&str, &str>) -> Image {
        let library = library.map(str::to_owned).map_err(str::to_owned);
        Image { library, drivers: 3, plugins: Vec::new() }
    }

    fn good() -> Image {
        image(Ok("/usr/lib/libibverbs.so.1"))
    }

    const MISSING: &str = "the image has no libibverbs.so.1";

    fn host(kinds: &[(&str, &str)]) -> Host {
        let root = tempfile::tempdir().expect("a folder");
        for (device, kind) in kinds {
            port(root.path(), device, kind, "4: ACTIVE");
        }
        Host::of(root.path())
    }

    fn warning(report: &Report) -> Option<&str> {
        report.measured.iter().find(|(name, _)| name == "warning").map(|(_, text)| text.as_str())
    }

    #[test]
    fn machine_without_rdma_is_skipped_with_what_the_image_has() {
        let skipped = report(&host(&[]), &image(Err(MISSING)), false);
        assert_eq!((skipped.outcome, skipped.skip), (Outcome::Skipped, Some(SkipReason::NoRdma)));
        assert_eq!(
            skipped.detail,
            "no InfiniBand or RoCE device here; the image has no libibverbs.so.1, and no net plug-in"
        );
        let with =
            report(&host(&[]), &Image { plugins: vec!["libnccl-net-ofi.so".to_owned()], ..good() }, true);
        assert!(
            with.detail.ends_with("has /usr/lib/libibverbs.so.1 and net plug-in libnccl-net-ofi.so"),
            "{with:?}"
        );
    }

    #[test]
    fn infiniband_on_the_host_without_the_library_is_a_warning() {
        let host = host(&[("mlx5_1", "InfiniBand"), ("mlx5_0", "InfiniBand"), ("mlx5_2", "Ethernet")]);
        let found = report(&host, &image(Err(MISSING)), false);
        assert_eq!(found.outcome, Outcome::Passed);
        let text = warning(&found).expect("a warning");
        assert!(
            text.starts_with("InfiniBand (mlx5_0, mlx5_1), RoCE (mlx5_2) on the host, and the image has no libibverbs.so.1: NCCL uses TCP"),
            "{text}"
        );
        let bare = report(&host, &Image { drivers: 0, ..good() }, false);
        assert!(warning(&bare).is_some_and(|text| text.contains("ibverbs-providers")), "{bare:?}");
        let fine = report(&host, &good(), false);
        assert_eq!((fine.outcome, warning(&fine)), (Outcome::Passed, None));
        assert!(fine.detail.contains("no net plug-in; pass /dev/infiniband"), "{fine:?}");
        let inside = report(&Host { has_nodes: true, ..host }, &good(), false);
        assert!(inside.detail.ends_with("no net plug-in"), "{inside:?}");
    }

    #[test]
    fn library_of_the_lock_must_load_on_every_machine() {
        for host in [host(&[]), host(&[("mlx5_0", "InfiniBand")])] {
            let failed = report(&host, &image(Err(MISSING)), true);
            assert_eq!(failed.outcome, Outcome::Failed);
            assert!(failed.hint.is_some() && failed.detail.contains("NCCL uses TCP"), "{failed:?}");
        }
    }

    #[test]
    fn port_that_is_down_and_efa_are_told_apart() {
        let root = tempfile::tempdir().expect("a folder");
        port(root.path(), "mlx5_0", "InfiniBand", "1: DOWN");
        let down = report(&Host::of(root.path()), &good(), false);
        assert!(warning(&down).is_some_and(|text| text.contains("no port is active")), "{down:?}");
        let device = root.path().join("sys/class/infiniband/mlx5_0/device");
        std::fs::create_dir_all(&device).expect("made");
        std::os::unix::fs::symlink("../../bus/pci/drivers/efa", device.join("driver")).expect("a link");
        let efa = Host::of(root.path());
        let without = report(&efa, &good(), false);
        assert!(warning(&without).is_some_and(|text| text.contains("aws-ofi-nccl")), "{without:?}");
        let with = report(&efa, &Image { plugins: vec!["libnccl-net.so".to_owned()], ..good() }, false);
        assert_eq!(warning(&with), None, "{with:?}");
    }

    #[test]
    fn only_what_the_loader_finds_by_name_counts() {
        let root = tempfile::tempdir().expect("a folder");
        let root = root.path();
        let at = |folder: &str| {
            write(root, &format!("{folder}/{LIBRARY}"), "not a library");
            write(root, &format!("{folder}/libnccl-net-ofi.so"), "");
            Image::of(root, &SearchPaths { root: root.to_owned(), ..SearchPaths::default() })
        };
        let packages = at("opt/env/lib/python3.11/site-packages/nvidia/x/lib");
        assert_eq!((packages.library, packages.plugins.len()), (Err(MISSING.to_owned()), 0));
        let system = at("usr/lib/x86_64-linux-gnu");
        let problem = system.library.expect_err("no ELF file");
        assert!(
            problem.starts_with("/usr/lib/x86_64-linux-gnu/libibverbs.so.1 does not load: "),
            "{problem}"
        );
        assert_eq!(system.plugins, ["libnccl-net-ofi.so"]);
    }
}
