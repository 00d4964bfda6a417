//! GPUs of containers: CDI devices if the engine lists any, else the nvidia runtime, else Docker's device request, which
//! fails on an engine without a GPU driver.
//!
//! Pure: converts a selection into the container's configuration.

use bollard::models::{DeviceRequest, HostConfig};

use crate::engine::error::EngineError;
use crate::engine::info::EngineInfo;
use crate::model::diagnosis::Diagnosis;

/// The CDI kind of NVIDIA GPUs.
const CDI_KIND: &str = "nvidia.com/gpu=";
/// The driver capabilities of a container.
const CAPABILITIES: [&str; 2] = ["compute", "utility"];
/// Diagnoses of an engine without a GPU, as opposed to a failing GPU.
const NO_GPU: [&str; 4] = ["no-gpu-runtime", "no-cdi-support", "toolkit-finds-no-driver", "toolkit-no-gpu"];

/// The mechanism that gives containers GPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GpuAccess {
    /// CDI devices of the engine's list.
    Cdi,
    /// The `nvidia` runtime.
    Runtime,
    /// Docker's device request: nothing is listed, so only a container start shows whether a GPU exists.
    Request,
}

impl std::fmt::Display for GpuAccess {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Cdi => "CDI",
            Self::Runtime => "the nvidia runtime",
            Self::Request => "a device request",
        })
    }
}

/// A selection of GPUs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum GpuChoice {
    /// All GPUs.
    #[default]
    All,
    /// GPUs by index, UUID or MIG UUID.
    Named(Vec<String>),
}

/// The GPUs of a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GpuRequest {
    /// The mechanism.
    pub access: GpuAccess,
    /// The selection.
    pub choice: GpuChoice,
    /// Requested CDI devices; empty for the other mechanisms.
    cdi: Vec<String>,
}

impl EngineInfo {
    /// Returns the mechanism of this engine.
    pub fn gpu_access(&self) -> GpuAccess {
        if self.cdi_devices.iter().any(|device| device.starts_with(CDI_KIND)) {
            GpuAccess::Cdi
        } else if self.supports_runtime("nvidia") {
            GpuAccess::Runtime
        } else {
            GpuAccess::Request
        }
    }

    /// Builds the request of these GPUs for this engine.
    pub fn gpus(&self, choice: GpuChoice) -> GpuRequest {
        let access = self.gpu_access();
        let listed = self.cdi_devices.iter().filter(|device| device.starts_with(CDI_KIND));
        let all = format!("{CDI_KIND}all");
        let cdi = match (&choice, access) {
            (_, GpuAccess::Runtime | GpuAccess::Request) => Vec::new(),
            (GpuChoice::All, _) if self.cdi_devices.contains(&all) => vec![all],
            // An index and a UUID refer to the same GPU: indices alone list each GPU once.
            (GpuChoice::All, _) => listed.filter(|device| is_index(device)).cloned().collect(),
            (GpuChoice::Named(names), _) => names.iter().map(|name| format!("{CDI_KIND}{name}")).collect(),
        };
        GpuRequest { access, choice, cdi }
    }
}

fn is_index(device: &str) -> bool {
    device.strip_prefix(CDI_KIND).is_some_and(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Adds a request to a container's configuration; without one the container gets no GPU, also from an engine whose runtime is
/// NVIDIA's, which reads the variables of the image.
pub(in crate::engine) fn apply_gpus(
    request: Option<&GpuRequest>,
    host: &mut HostConfig,
    env: &mut Vec<String>,
) {
    match request {
        Some(request) => request.apply(host, env),
        None => env.push("NVIDIA_VISIBLE_DEVICES=void".to_owned()),
    }
}

impl GpuRequest {
    /// Adds the request to a container's configuration.
    fn apply(&self, host: &mut HostConfig, env: &mut Vec<String>) {
        let names = match &self.choice {
            GpuChoice::All => None,
            GpuChoice::Named(names) => Some(names.clone()),
        };
        match self.access {
            GpuAccess::Cdi => {
                host.device_requests = Some(vec![DeviceRequest {
                    driver: Some("cdi".to_owned()),
                    device_ids: Some(self.cdi.clone()),
                    ..DeviceRequest::default()
                }]);
            }
            GpuAccess::Runtime => {
                host.runtime = Some("nvidia".to_owned());
                let visible = names.map_or_else(|| "all".to_owned(), |names| names.join(","));
                env.push(format!("NVIDIA_VISIBLE_DEVICES={visible}"));
                env.push(format!("NVIDIA_DRIVER_CAPABILITIES={}", CAPABILITIES.join(",")));
            }
            GpuAccess::Request => {
                let capabilities = std::iter::once("gpu").chain(CAPABILITIES).map(str::to_owned).collect();
                host.device_requests = Some(vec![DeviceRequest {
                    count: names.is_none().then_some(-1),
                    device_ids: names,
                    capabilities: Some(vec![capabilities]),
                    ..DeviceRequest::default()
                }]);
            }
        }
    }
}

impl EngineError {
    /// Returns the reason if the engine has no GPU for a container.
    pub fn gpu_unavailable(&self) -> Option<Diagnosis> {
        self.finding().filter(|finding| NO_GPU.contains(&finding.id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Failure as _;

    fn engine(runtimes: &[&str], cdi: &[&str]) -> EngineInfo {
        let owned = |all: &[&str]| all.iter().map(|text| (*text).to_owned()).collect();
        EngineInfo { runtimes: owned(runtimes), cdi_devices: owned(cdi), ..EngineInfo::sample() }
    }

    fn configured(engine: &EngineInfo, choice: GpuChoice) -> (HostConfig, Vec<String>) {
        let (mut host, mut env) = (HostConfig::default(), Vec::new());
        engine.gpus(choice).apply(&mut host, &mut env);
        (host, env)
    }

    /// NVIDIA's runtime as the engine's default gives a container what its variables ask for: our images ask for all.
    #[test]
    fn container_without_a_request_gets_no_gpu() {
        let (mut host, mut env) = (HostConfig::default(), vec!["NVIDIA_VISIBLE_DEVICES=all".to_owned()]);
        apply_gpus(None, &mut host, &mut env);
        // The engine takes the last one.
        assert_eq!(env.last().map(String::as_str), Some("NVIDIA_VISIBLE_DEVICES=void"));
        assert_eq!((host.device_requests, host.runtime), (None, None));
    }

    fn named() -> GpuChoice {
        GpuChoice::Named(vec!["0".into(), "GPU-5c".into()])
    }

    #[test]
    fn gpu_access_prefers_cdi_then_the_runtime() {
        let all = ["nvidia.com/gpu=0", "nvidia.com/gpu=GPU-1", "nvidia.com/gpu=all"];
        assert_eq!(engine(&["nvidia", "runc"], &all).gpu_access(), GpuAccess::Cdi);
        assert_eq!(engine(&["nvidia", "runc"], &["vendor.com/net=a"]).gpu_access(), GpuAccess::Runtime);
        assert_eq!(engine(&["runc"], &[]).gpu_access(), GpuAccess::Request);
    }

    #[test]
    fn cdi_request_lists_each_gpu_once() {
        let ids = |engine: &EngineInfo, choice| {
            let (host, env) = configured(engine, choice);
            assert!(env.is_empty());
            let request = host.device_requests.expect("a request").remove(0);
            assert_eq!(request.driver.as_deref(), Some("cdi"));
            request.device_ids.expect("named")
        };
        let with_all = engine(&[], &["nvidia.com/gpu=0", "nvidia.com/gpu=all"]);
        assert_eq!(ids(&with_all, GpuChoice::All), ["nvidia.com/gpu=all"]);
        let without = engine(&[], &["nvidia.com/gpu=0", "nvidia.com/gpu=GPU-1", "nvidia.com/gpu=1"]);
        assert_eq!(ids(&without, GpuChoice::All), ["nvidia.com/gpu=0", "nvidia.com/gpu=1"]);
        assert_eq!(ids(&with_all, named()), ["nvidia.com/gpu=0", "nvidia.com/gpu=GPU-5c"]);
    }

    #[test]
    fn runtime_request_sets_variables() {
        let engine = engine(&["nvidia"], &[]);
        let (host, env) = configured(&engine, GpuChoice::All);
        assert_eq!(host.runtime.as_deref(), Some("nvidia"));
        assert_eq!(host.device_requests, None);
        assert_eq!(env, ["NVIDIA_VISIBLE_DEVICES=all", "NVIDIA_DRIVER_CAPABILITIES=compute,utility"]);
        assert_eq!(configured(&engine, named()).1[0], "NVIDIA_VISIBLE_DEVICES=0,GPU-5c");
    }

    #[test]
    fn device_request_counts_or_lists_gpus() {
        let request =
            |choice| configured(&engine(&[], &[]), choice).0.device_requests.expect("one").remove(0);
        let all = request(GpuChoice::All);
        assert_eq!((all.count, all.device_ids), (Some(-1), None));
        assert_eq!(all.capabilities, Some(vec![vec!["gpu".into(), "compute".into(), "utility".into()]]));
        let some = request(named());
        assert_eq!((some.count, some.device_ids.map(|ids| ids.len())), (None, Some(2)));
    }

    #[test]
    fn gpu_unavailable_skips_a_failing_gpu() {
        let refused =
            |text: &str| EngineError::Refused { during: "starting `a`".into(), text: text.to_owned() };
        let none = refused("could not select device driver \"\" with capabilities: [[gpu compute utility]]");
        assert_eq!(none.gpu_unavailable().map(|finding| finding.id), Some("no-gpu-runtime"));
        let old = refused("nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.8, ...");
        assert_eq!(old.gpu_unavailable(), None);
        assert!(old.hints()[0].contains("older than the image's CUDA"), "{:?}", old.hints());
        assert_eq!(refused("conflict: in use").hints(), Vec::<String>::new());
    }
}
