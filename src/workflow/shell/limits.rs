//! Limits and GPUs of a container, as requested and as the engine can enforce them.

use crate::engine::{GpuChoice, GpuRequest, GpuSelection, Limits};
use crate::host::{RdmaDevices, rdma_devices};
use crate::model::request;
use crate::model::shared_memory::shm_size;
use crate::report::Event;
use crate::shell::{ShellError, memory_size, nano_cpus};
use crate::workflow::error::CommandError;
use crate::workflow::gpus;
use crate::workflow::session::Session;

/// What was said of GPUs, and what the engine is asked for; an error if a GPU is required and there is none.
pub(super) fn required_gpus(
    session: &Session<'_>,
    args: &request::Shell,
) -> Result<(GpuSelection, Option<GpuRequest>), CommandError> {
    let selection = gpus::selection(args.limits.gpus.as_deref())?;
    let found = gpus::request(session, &selection);
    if found.is_none() && args.limits.require_gpu {
        let because =
            if selection == GpuSelection::None { "--gpus none" } else { "none on the engine's machine" };
        return Err(ShellError::NoGpu { because: because.to_owned() }.into());
    }
    Ok((selection, found))
}

/// The GPUs to ask for, and the words for them.
pub(crate) fn wanted_gpus(
    session: &Session<'_>,
    args: &request::Shell,
) -> Result<(Option<GpuRequest>, String), CommandError> {
    let (selection, found) = required_gpus(session, args)?;
    if found.is_none() && selection == GpuSelection::IfAny {
        let text = "no GPU available: running on CPU only";
        session.reporter.report(Event::Note { text: text.to_owned() });
    }
    let words = match found.as_ref().map(|request| &request.choice) {
        None => "none".to_owned(),
        Some(GpuChoice::All) => "all".to_owned(),
        Some(GpuChoice::Named(names)) => names.join(","),
    };
    Ok((found, words))
}

/// How many GPUs, if they can be counted.
pub(crate) fn gpu_count(args: &request::Shell) -> Option<usize> {
    match args.limits.gpus.as_deref() {
        Some(names) if names != "all" => Some(names.split(',').count()),
        _ => crate::host::detect().ok().map(|facts| facts.gpus.len()),
    }
}

/// The limits typed, for that many GPUs.
pub(crate) fn limits(args: &request::Shell, gpus: Option<usize>) -> Result<Limits, ShellError> {
    let limits = &args.limits;
    let shm = match &limits.shm_size {
        Some(text) => memory_size("--shm-size", text)?,
        None => i64::try_from(shm_size(gpus)).unwrap_or(i64::MAX),
    };
    Ok(Limits {
        memory: limits.memory.as_deref().map(|text| memory_size("--memory", text)).transpose()?,
        nano_cpus: limits.cpus.as_deref().map(nano_cpus).transpose()?,
        shm_size: Some(shm),
        pids: Some(limits.pids_limit),
        unlocked: false,
    })
}

/// The directories of the machine's devices for RDMA, for a container with GPUs: NCCL uses them between nodes. Those of an engine on
/// another machine are not known.
pub(crate) fn rdma_folders(session: &Session<'_>, args: &request::Shell, has_gpus: bool) -> Vec<String> {
    let found = if has_gpus && session.engine.info().local { rdma_devices("/".into()) } else { None };
    let Some(devices) = found else { return Vec::new() };
    if let Some(text) = note_of_roce(&devices, args.inside.network.as_deref()) {
        session.reporter.report(Event::Note { text });
    }
    vec![devices.folder.to_owned()]
}

/// A device over Ethernet is found by addresses of the host's network, which a container's own network does not have.
fn note_of_roce(devices: &RdmaDevices, network: Option<&str>) -> Option<String> {
    let names = devices.roce.join(", ");
    let text = format!("RoCE ({names}) requires the host's network: NCCL uses TCP without `--network host`");
    (!devices.roce.is_empty() && network != Some("host")).then_some(text)
}

/// Limits that were typed and are not kept are told: the engine takes them without a word.
pub(crate) fn warn_of_limits(session: &Session<'_>, args: &request::Shell) {
    let typed = [("--memory", args.limits.memory.is_some()), ("--cpus", args.limits.cpus.is_some())];
    let info = session.engine.info();
    let why = if info.rootless { " (rootless engines require cgroups v2)" } else { "" };
    for (option, _) in typed.iter().filter(|(option, typed)| *typed && info.unkept_limits.contains(option)) {
        let text = format!("`{option}` has no effect: the engine does not enforce this limit{why}");
        session.reporter.report(Event::Warning { text });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roce_asks_for_the_hosts_network() {
        let devices = |roce: &[&str]| RdmaDevices {
            folder: "/dev/infiniband",
            roce: roce.iter().map(|&name| name.to_owned()).collect(),
        };
        let text = note_of_roce(&devices(&["mlx5_2"]), None).expect("a note");
        assert!(text.starts_with("RoCE (mlx5_2) ") && text.ends_with("`--network host`"), "{text}");
        assert_eq!(note_of_roce(&devices(&["mlx5_2"]), Some("host")), None);
        assert_eq!(note_of_roce(&devices(&[]), None), None, "InfiniBand needs no address");
    }
}
