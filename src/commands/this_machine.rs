//! What this machine has of the fact that a known error's fix depends on, from the facts that `doctor` reads.

use std::cell::OnceCell;

use crate::host::{self, GpuError, HostFacts, SystemFacts};
use crate::model::compat::Matrix;

/// What a fix depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fact {
    Driver,
    Gpus,
    KernelModule,
    Uvm,
    Toolkit,
    SharedMemory,
}

/// Known errors by the fact that their fix depends on.
const ERRORS: [(Fact, &[&str]); 6] = [
    (
        Fact::Driver,
        &[
            "driver-too-old",
            "driver-combination",
            "forward-compat-not-allowed",
            "image-requires-newer-driver",
            "ptx-too-new",
        ],
    ),
    (
        Fact::Gpus,
        &[
            "no-code-for-gpu",
            "gpu-newer-than-build",
            "gpu-lacks-format",
            "bf16-unsupported",
            "triton-gpu-too-old",
        ],
    ),
    (Fact::KernelModule, &["driver-library-mismatch", "kernel-module-missing", "toolkit-driver-mismatch"]),
    (Fact::Uvm, &["uvm-missing"]),
    (
        Fact::Toolkit,
        &[
            "no-gpu-runtime",
            "runtime-not-registered",
            "no-cdi-support",
            "cdi-device-unknown",
            "cdi-failed",
            "toolkit-ldconfig",
        ],
    ),
    (Fact::SharedMemory, &["shm-too-small"]),
];

/// The facts of this machine, each read when it is first needed.
pub(super) struct ThisMachine<'a> {
    matrix: &'a Matrix,
    gpus: OnceCell<Result<HostFacts, GpuError>>,
    system: OnceCell<SystemFacts>,
}

impl<'a> ThisMachine<'a> {
    /// Nothing is read yet.
    pub(super) fn new(matrix: &'a Matrix) -> Self {
        Self { matrix, gpus: OnceCell::new(), system: OnceCell::new() }
    }

    /// What this machine has of what the fix of that error depends on; `None`: it depends on nothing that is read, or this machine has
    /// no driver at all and the error is of another one.
    pub(super) fn has(&self, id: &str) -> Option<String> {
        let (fact, _) = ERRORS.iter().find(|(_, ids)| ids.contains(&id))?;
        match fact {
            Fact::Driver | Fact::Gpus => of_driver(*fact, self.gpus.get_or_init(host::detect), self.matrix),
            Fact::KernelModule | Fact::Uvm | Fact::Toolkit | Fact::SharedMemory => {
                of_system(*fact, self.system.get_or_init(|| host::system("/".into())))
            }
        }
    }
}

fn of_driver(fact: Fact, gpus: &Result<HostFacts, GpuError>, matrix: &Matrix) -> Option<String> {
    let facts = match gpus {
        Ok(facts) => facts,
        Err(GpuError::NoDriver) => return None,
        Err(error) => return Some(error.to_string()),
    };
    if fact == Fact::Gpus {
        let names: Vec<_> =
            facts.gpus.iter().map(|gpu| format!("{} ({})", gpu.name, gpu.compute_capability)).collect();
        return (!names.is_empty()).then(|| names.join(", "));
    }
    let cuda = facts.cuda.as_ref().or_else(|| matrix.max_cuda_of(&facts.driver));
    let cuda = cuda.map_or_else(String::new, |cuda| format!(" (supports CUDA {cuda})"));
    Some(format!("driver {}{cuda}", facts.driver))
}

fn of_system(fact: Fact, system: &SystemFacts) -> Option<String> {
    if fact == Fact::SharedMemory {
        return Some(format!("/dev/shm of {} MiB", system.shm? >> 20));
    }
    // Without one the error is of another machine.
    let has_driver = system.kernel_module.is_some() || system.uvm.is_some();
    if !has_driver {
        return None;
    }
    Some(match fact {
        Fact::Uvm if system.uvm == Some(true) => "/dev/nvidia-uvm exists".to_owned(),
        Fact::Uvm => "/dev/nvidia-uvm does not exist".to_owned(),
        Fact::Toolkit => {
            let toolkit = system.container_toolkit.as_ref();
            let toolkit = toolkit.map_or_else(
                || "no container toolkit".to_owned(),
                |version| format!("container toolkit {version}"),
            );
            let specs = &system.cdi_specs;
            let specs = if specs.is_empty() { "no CDI specification".to_owned() } else { specs.join(", ") };
            format!("{toolkit}, {specs}")
        }
        _ => match &system.kernel_module {
            Some(module) => format!("kernel module {module}"),
            None => "no kernel module of NVIDIA's driver is loaded".to_owned(),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::diagnosis::entries;

    #[test]
    fn every_error_with_a_fact_is_known() {
        for id in ERRORS.iter().flat_map(|(_, ids)| *ids) {
            assert!(entries().any(|entry| entry.id == *id), "{id}");
        }
    }

    #[test]
    fn error_of_another_machine_gets_no_fact() {
        let none = SystemFacts { shm: Some(64 << 20), ..SystemFacts::default() };
        assert_eq!(of_system(Fact::Toolkit, &none), None, "an error of another machine");
        assert_eq!(of_system(Fact::SharedMemory, &none).as_deref(), Some("/dev/shm of 64 MiB"));
        let here = SystemFacts {
            kernel_module: Some("550.54.15".to_owned()),
            uvm: Some(false),
            container_toolkit: Some("1.17.4".to_owned()),
            ..none
        };
        assert_eq!(
            of_system(Fact::Toolkit, &here).as_deref(),
            Some("container toolkit 1.17.4, no CDI specification")
        );
        assert_eq!(of_system(Fact::Uvm, &here).as_deref(), Some("/dev/nvidia-uvm does not exist"));
        assert_eq!(of_system(Fact::KernelModule, &here).as_deref(), Some("kernel module 550.54.15"));
    }

    #[test]
    fn driver_is_named_with_the_cuda_that_it_supports() {
        let facts = HostFacts {
            driver: "550.54.15".parse().expect("a driver"),
            cuda: Some("12.4".parse().expect("a CUDA")),
            gpus: Vec::new(),
            troubled: Vec::new(),
            pairs: Vec::new(),
        };
        let text = of_driver(Fact::Driver, &Ok(facts.clone()), crate::model::compat::embedded());
        assert_eq!(text.as_deref(), Some("driver 550.54.15 (supports CUDA 12.4)"));
        assert_eq!(of_driver(Fact::Gpus, &Ok(facts), crate::model::compat::embedded()), None);
        assert_eq!(of_driver(Fact::Driver, &Err(GpuError::NoDriver), crate::model::compat::embedded()), None);
    }
}
