//! The daemon's description of containers that outlive the process. Pure.

use std::collections::HashMap;

use bollard::models::{
    ContainerCreateBody, ContainerSummary, DeviceMapping, HealthConfig, HostConfig, HostConfigLogConfig,
    Mount as EngineMount, MountType, MountVolumeOptions, PortBinding, ResourcesUlimits,
};

use super::types::{ContainerInfo, ContainerRequest, Limits, Mount, MountSource, Port};
use crate::engine::gpu::apply_gpus;

/// The rotation of a container's log: file size and number of files.
const LOG: (&str, &str) = ("10m", "3");
/// The writable directory next to mounts. Programs may run there: pip builds in it.
const TMP: (&str, &str) = ("/tmp", "rw,nosuid,nodev,exec,mode=1777");

/// What an SSH server of root needs to handle strangers as another user: its capabilities, and its empty directory.
const SSHD: ([&str; 4], (&str, &str)) = (
    ["SETUID", "SETGID", "SYS_CHROOT", "AUDIT_WRITE"],
    ("/run/sshd", "rw,nosuid,nodev,noexec,mode=0755,size=4k"),
);

/// Returns the body of a closed container: read-only root, no capabilities but those of an SSH server of root, no new privileges.
pub(super) fn body(request: &ContainerRequest) -> ContainerCreateBody {
    let mut env = request.env.clone();
    let tmpfs = [TMP].into_iter().chain(request.has_sshd_of_root.then_some(SSHD.1));
    let mut host = HostConfig {
        mounts: Some(request.mounts.iter().map(mount).collect()),
        network_mode: Some(request.network.clone()),
        port_bindings: (!request.ports.is_empty()).then(|| bindings(&request.ports)),
        userns_mode: request.user_namespace.clone(),
        init: (!request.own_entrypoint).then_some(true),
        readonly_rootfs: Some(request.links.is_empty()),
        tmpfs: Some(tmpfs.map(|(path, options)| (path.to_owned(), options.to_owned())).collect()),
        cap_add: request.has_sshd_of_root.then(|| SSHD.0.map(str::to_owned).to_vec()),
        cap_drop: Some(vec!["ALL".to_owned()]),
        security_opt: Some(vec!["no-new-privileges".to_owned()]),
        devices: (!request.devices.is_empty())
            .then(|| request.devices.iter().map(|path| device(path)).collect()),
        log_config: Some(HostConfigLogConfig {
            typ: Some("json-file".to_owned()),
            config: Some(
                [("max-size", LOG.0), ("max-file", LOG.1)].map(|(k, v)| (k.to_owned(), v.to_owned())).into(),
            ),
        }),
        ..limited(request.limits)
    };
    apply_gpus(request.gpus.as_ref(), &mut host, &mut env);
    ContainerCreateBody {
        image: Some(request.image.clone()),
        entrypoint: (!request.own_entrypoint).then(|| request.command.clone()),
        cmd: request.own_entrypoint.then(|| request.command.clone()),
        env: Some(env),
        user: Some(request.user.clone()),
        labels: Some(request.labels.clone().into_iter().collect()),
        tty: Some(request.terminal),
        open_stdin: Some(true),
        stdin_once: Some(true),
        attach_stdin: Some(true),
        attach_stdout: Some(true),
        attach_stderr: Some(true),
        exposed_ports: Some(request.ports.iter().map(|port| format!("{}/tcp", port.container)).collect()),
        working_dir: Some(request.workdir.clone()),
        healthcheck: Some(HealthConfig { test: Some(vec!["NONE".to_owned()]), ..HealthConfig::default() }),
        host_config: Some(host),
        ..ContainerCreateBody::default()
    }
}

fn limited(limits: Limits) -> HostConfig {
    let unlimited = |name: &str, soft: i64| ResourcesUlimits {
        name: Some(name.to_owned()),
        soft: Some(soft),
        hard: Some(soft),
    };
    // The limits of NVIDIA's own containers.
    let ulimits = [unlimited("memlock", -1), unlimited("stack", 64 << 20)];
    HostConfig {
        memory: limits.memory,
        nano_cpus: limits.nano_cpus,
        shm_size: limits.shm_size,
        pids_limit: limits.pids,
        ulimits: limits.unlocked.then(|| ulimits.to_vec()),
        ..HostConfig::default()
    }
}

fn device(path: &str) -> DeviceMapping {
    DeviceMapping {
        path_on_host: Some(path.to_owned()),
        path_in_container: Some(path.to_owned()),
        cgroup_permissions: Some("rwm".to_owned()),
    }
}

/// Converts a mount.
pub(super) fn mount(mount: &Mount) -> EngineMount {
    let (typ, source, volume_options) = match &mount.source {
        MountSource::Folder(path) => (MountType::BIND, path, None),
        // `Volumes::prepare` fills a volume before.
        MountSource::Volume(name) => {
            let options = MountVolumeOptions { no_copy: Some(true), ..MountVolumeOptions::default() };
            (MountType::VOLUME, name, Some(options))
        }
    };
    EngineMount {
        typ: Some(typ),
        source: Some(source.clone()),
        target: Some(mount.target.clone()),
        read_only: Some(mount.read_only),
        volume_options,
        ..EngineMount::default()
    }
}

fn bindings(ports: &[Port]) -> HashMap<String, Option<Vec<PortBinding>>> {
    let mut all: HashMap<String, Option<Vec<PortBinding>>> = HashMap::new();
    for port in ports {
        let binding = PortBinding {
            host_ip: Some(port.address.to_string()),
            host_port: Some(if port.host == 0 { String::new() } else { port.host.to_string() }),
        };
        let key = format!("{}/tcp", port.container);
        all.entry(key).or_default().get_or_insert_default().push(binding);
    }
    all
}

/// Converts the daemon's summary of a container.
pub(super) fn info(found: ContainerSummary) -> ContainerInfo {
    let ports = found.ports.unwrap_or_default();
    let port = |port: &bollard::models::PortSummary| {
        Some(Port {
            address: port.ip.as_deref()?.parse().ok()?,
            host: port.public_port?,
            container: port.private_port,
        })
    };
    let name = found.names.unwrap_or_default().into_iter().next().unwrap_or_default();
    ContainerInfo {
        id: found.id.unwrap_or_default(),
        name: name.trim_start_matches('/').to_owned(),
        image: found.image_id.unwrap_or_default(),
        state: found.state.map(|state| state.to_string()).unwrap_or_default(),
        status: found.status.unwrap_or_default(),
        created: found.created.unwrap_or_default(),
        labels: found.labels.unwrap_or_default().into_iter().collect(),
        ports: ports.iter().filter_map(port).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::container::types::SHELL_LABEL;

    fn request() -> ContainerRequest {
        ContainerRequest {
            name: "envforge-a".to_owned(),
            image: "sha256:1".to_owned(),
            command: vec!["bash".to_owned()],
            own_entrypoint: true,
            env: vec!["A=b".to_owned()],
            user: "50000:50000".to_owned(),
            user_namespace: None,
            labels: [(SHELL_LABEL.to_owned(), "a".to_owned())].into(),
            terminal: true,
            workdir: "/workspace".to_owned(),
            mounts: vec![Mount {
                source: MountSource::Volume("v".to_owned()),
                target: "/home/dev".to_owned(),
                read_only: false,
            }],
            links: Vec::new(),
            ports: vec![Port { address: [127, 0, 0, 1].into(), host: 0, container: 8888 }],
            network: "bridge".to_owned(),
            gpus: None,
            devices: Vec::new(),
            has_sshd_of_root: false,
            limits: Limits { memory: Some(1 << 30), ..Limits::default() },
        }
    }

    #[test]
    fn body_closes_the_container() {
        let body = body(&request());
        let host = body.host_config.expect("a host's part");
        assert_eq!(host.readonly_rootfs, Some(true));
        assert_eq!(host.cap_drop, Some(vec!["ALL".to_owned()]));
        assert_eq!(host.cap_add, None);
        assert_eq!(host.security_opt, Some(vec!["no-new-privileges".to_owned()]));
        assert_eq!(host.privileged, None);
        let binding = &host.port_bindings.expect("ports")["8888/tcp"].clone().expect("one")[0];
        assert_eq!((binding.host_ip.as_deref(), binding.host_port.as_deref()), (Some("127.0.0.1"), Some("")));
        assert_eq!((host.memory, host.ulimits), (Some(1 << 30), None));
    }

    #[test]
    fn ssh_server_of_root_has_what_it_needs_and_no_more() {
        let host = body(&ContainerRequest { has_sshd_of_root: true, ..request() }).host_config;
        let host = host.expect("a host's part");
        assert_eq!(host.cap_drop, Some(vec!["ALL".to_owned()]));
        assert_eq!(host.cap_add.expect("some"), ["SETUID", "SETGID", "SYS_CHROOT", "AUDIT_WRITE"]);
        assert_eq!(host.tmpfs.map(|mounts| mounts.len()), Some(2));
    }

    #[test]
    fn devices_are_passed_under_their_own_path() {
        let devices = |request: &ContainerRequest| body(request).host_config.expect("a host's part").devices;
        assert_eq!(devices(&request()), None);
        let found = devices(&ContainerRequest { devices: vec!["/dev/infiniband".to_owned()], ..request() });
        let found = &found.expect("devices")[0];
        assert_eq!(found.path_on_host.as_deref(), Some("/dev/infiniband"));
        assert_eq!(
            (&found.path_in_container, found.cgroup_permissions.as_deref()),
            (&found.path_on_host, Some("rwm"))
        );
    }

    #[test]
    fn root_is_writable_for_the_engine_where_it_puts_a_link() {
        let links =
            vec![super::super::types::Link { path: "/data".to_owned(), to: "/workspace/data".to_owned() }];
        let body = body(&ContainerRequest { links, ..request() });
        assert_eq!(body.host_config.and_then(|host| host.readonly_rootfs), Some(false));
    }

    #[test]
    fn body_selects_process_one() {
        let own = body(&request());
        assert_eq!((own.cmd.is_some(), own.entrypoint.is_some()), (true, false));
        let foreign = body(&ContainerRequest { own_entrypoint: false, ..request() });
        assert_eq!((foreign.cmd.is_some(), foreign.entrypoint.is_some()), (false, true));
        assert_eq!(foreign.host_config.and_then(|host| host.init), Some(true));
    }
}
