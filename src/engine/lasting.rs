//! Containers that outlive the call: created closed, started, listed, stopped.

use std::collections::HashMap;

use bollard::container::LogOutput;
use bollard::models::{
    ContainerCreateBody, ContainerSummary, HealthConfig, HostConfig, HostConfigLogConfig,
    Mount as EngineMount, MountType, MountVolumeOptions, PortBinding, ResourcesUlimits,
};
use bollard::query_parameters::{
    CreateContainerOptionsBuilder, KillContainerOptionsBuilder, ListContainersOptionsBuilder,
    LogsOptionsBuilder, ResizeContainerTTYOptionsBuilder, StopContainerOptionsBuilder, TopOptionsBuilder,
};
use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;

use super::connect::Daemon;
use super::container::remove_by_name;
use super::images::is_absent;
use super::{
    ContainerInfo, ContainerRequest, EngineError, Limits, Mount, MountSource, Output, Port, Program,
};

/// The label of a container that lasts: its name in `ps`.
pub const SHELL_LABEL: &str = "io.envforge.shell";
/// The label of one that goes with the process that made it.
pub const OWNER_LABEL: &str = "io.envforge.shell.owner";
/// What a container's log may grow to: parts of this size, and how many.
const LOG: (&str, &str) = ("10m", "3");
/// What may be written to beside mounts. Programs may be run there: pip builds in it.
const TMP: (&str, &str) = ("/tmp", "rw,nosuid,nodev,exec,mode=1777");
/// Where Podman by itself lets a container with a read-only root write.
const READ_ONLY: [&str; 2] = ["/run", "/var/tmp"];

impl Daemon {
    /// Creates a container, which does not run yet, and gives its id.
    pub(super) async fn create_lasting(
        &self,
        request: &ContainerRequest,
        podman: bool,
    ) -> Result<String, EngineError> {
        let options = CreateContainerOptionsBuilder::new().name(&request.name).build();
        let mut body = body(request);
        if let Some(host) = body.host_config.as_mut().filter(|_| podman) {
            self.hold_podman_back(request, host).await?;
        }
        match self.client.create_container(Some(options), body).await {
            Ok(answer) => {
                for warning in answer.warnings {
                    tracing::warn!(%warning, "the engine");
                }
                Ok(answer.id)
            }
            Err(error) => Err(self.fault(&format!("creating the container `{}`", request.name), error)),
        }
    }

    /// Podman by itself lets a container with a read-only root write in places, and puts accounts of its own over those
    /// in /etc unless these files are mounts.
    async fn hold_podman_back(
        &self,
        request: &ContainerRequest,
        host: &mut HostConfig,
    ) -> Result<(), EngineError> {
        // Not where something is mounted, or below: a read-only folder has no room for it.
        let is_free = |path: &&str| {
            let below = format!("{path}/");
            !request.mounts.iter().any(|mount| format!("{}/", mount.target).starts_with(&below))
        };
        let read_only = READ_ONLY.into_iter().filter(is_free);
        let read_only = read_only.map(|path| (path.to_owned(), "ro,nosuid,nodev,noexec".to_owned()));
        host.tmpfs.get_or_insert_default().extend(read_only);
        for etc in request.mounts.iter().filter(|mount| mount.target == "/etc") {
            let MountSource::Volume(name) = &etc.source else { continue };
            let found = self.client.inspect_volume(name).await;
            let found = found.map_err(|error| self.fault(&format!("a look at volume `{name}`"), error))?;
            for file in ["passwd", "group"] {
                let source = MountSource::Folder(format!("{}/{file}", found.mountpoint));
                let file = Mount { source, target: format!("/etc/{file}"), read_only: true };
                host.mounts.get_or_insert_default().push(mount(&file));
            }
        }
        Ok(())
    }

    pub(super) async fn start_lasting(&self, container: &str) -> Result<(), EngineError> {
        let started = self.client.start_container(container, None).await;
        started.map_err(|error| self.fault("starting the container", error))
    }

    /// Waits for the end of a program and gives its exit code.
    pub(super) async fn exit_code(&self, program: &Program) -> Result<i64, EngineError> {
        let id = match program {
            Program::Command(id) => return self.wait_for(id, "waiting for the container").await,
            Program::Exec(id) => id,
        };
        // Its output has ended; the daemon takes a moment to see that it has, too.
        for _ in 0..ENDED.0 {
            let answer = self.client.inspect_exec(id).await;
            let answer = answer.map_err(|error| self.fault("waiting for a command", error))?;
            match (answer.running, answer.exit_code) {
                (Some(true), _) | (_, None) => tokio::time::sleep(ENDED.1).await,
                (_, Some(code)) => return Ok(code),
            }
        }
        let text = "its output ended, and it runs on".to_owned();
        Err(EngineError::Refused { during: "waiting for a command".to_owned(), text })
    }

    /// True if another command than that one runs beside the container's own.
    pub(super) async fn others_run(&self, container: &str, but: &Program) -> Result<bool, EngineError> {
        let found = self.client.inspect_container(container, None).await;
        let found = match found {
            Ok(found) => found,
            Err(error) if is_absent(&error) => return Ok(false),
            Err(error) => return Err(self.fault("a look at the container", error)),
        };
        for id in found.exec_ids.unwrap_or_default() {
            if *but == Program::Exec(id.clone()) {
                continue;
            }
            match self.client.inspect_exec(&id).await {
                Ok(exec) if exec.running == Some(true) => return Ok(true),
                Ok(_) => {}
                Err(error) if is_absent(&error) => {}
                Err(error) => return Err(self.fault("a look at the container's commands", error)),
            }
        }
        Ok(false)
    }

    pub(super) async fn resize(
        &self,
        program: &Program,
        (columns, rows): (u16, u16),
    ) -> Result<(), EngineError> {
        let resized = match program {
            Program::Command(id) => {
                let size = ResizeContainerTTYOptionsBuilder::new().w(columns.into()).h(rows.into()).build();
                self.client.resize_container_tty(id, size).await
            }
            Program::Exec(id) => {
                let size = bollard::exec::ResizeExecOptions { width: columns, height: rows };
                self.client.resize_exec(id, size).await
            }
        };
        resized.map_err(|error| self.fault("resizing a terminal", error))
    }

    pub(super) async fn signal(&self, container: &str, name: &str) -> Result<(), EngineError> {
        let options = KillContainerOptionsBuilder::new().signal(name).build();
        let sent = self.client.kill_container(container, Some(options)).await;
        sent.map_err(|error| self.fault(&format!("sending {name} to the container"), error))
    }

    pub(super) async fn lasting(&self, label: &str) -> Result<Vec<ContainerInfo>, EngineError> {
        let filters = HashMap::from([("label".to_owned(), vec![label.to_owned()])]);
        let options = ListContainersOptionsBuilder::new().all(true).filters(&filters).build();
        let listed = self.client.list_containers(Some(options)).await;
        Ok(listed.map_err(|error| self.fault("listing containers", error))?.into_iter().map(info).collect())
    }

    /// Stops a container and removes it; absent is fine.
    pub(super) async fn stop_lasting(&self, container: &str, seconds: i32) -> Result<(), EngineError> {
        let options = StopContainerOptionsBuilder::new().t(seconds).build();
        match self.client.stop_container(container, Some(options)).await {
            // 304: it has ended already.
            Ok(()) | Err(bollard::errors::Error::DockerResponseServerError { status_code: 304, .. }) => {}
            Err(error) if is_absent(&error) => return Ok(()),
            Err(error) => return Err(self.fault("stopping a container", error)),
        }
        match remove_by_name(self, container).await {
            // Somebody else removes it already.
            Err(EngineError::Refused { text, .. }) if text.contains("already in progress") => Ok(()),
            answer => answer.map(drop),
        }
    }

    pub(super) fn logs_of(
        &self,
        container: &str,
        follow: bool,
        tail: Option<u32>,
    ) -> BoxStream<'static, Result<Output, EngineError>> {
        let tail = tail.map_or_else(|| "all".to_owned(), |lines| lines.to_string());
        let options = LogsOptionsBuilder::new().stdout(true).stderr(true).follow(follow).tail(&tail).build();
        let daemon = self.clone();
        let stream = self.client.logs(container, Some(options)).map(move |part| match part {
            Ok(LogOutput::StdErr { message }) => Ok(Output::Err(message)),
            Ok(other) => Ok(Output::Out(other.into_bytes())),
            Err(error) => Err(daemon.fault("reading a container's log", error)),
        });
        stream.boxed()
    }

    pub(super) async fn processes(&self, container: &str) -> Result<Vec<u32>, EngineError> {
        let options = TopOptionsBuilder::new().ps_args("-o pid").build();
        let answer = self.client.top_processes(container, Some(options)).await;
        let answer = answer.map_err(|error| self.fault("listing a container's processes", error))?;
        let rows = answer.processes.unwrap_or_default();
        Ok(rows.iter().filter_map(|row| row.first()?.trim().parse().ok()).collect())
    }
}

/// How often and how long the end of a command is waited for after that of its output.
const ENDED: (u32, std::time::Duration) = (200, std::time::Duration::from_millis(25));

fn body(request: &ContainerRequest) -> ContainerCreateBody {
    let mut env = request.env.clone();
    let mut host = HostConfig {
        mounts: Some(request.mounts.iter().map(mount).collect()),
        network_mode: Some(request.network.clone()),
        port_bindings: (!request.ports.is_empty()).then(|| bindings(&request.ports)),
        userns_mode: request.user_namespace.clone(),
        init: (!request.own_entrypoint).then_some(true),
        readonly_rootfs: Some(true),
        tmpfs: Some(HashMap::from([(TMP.0.to_owned(), TMP.1.to_owned())])),
        cap_drop: Some(vec!["ALL".to_owned()]),
        security_opt: Some(vec!["no-new-privileges".to_owned()]),
        log_config: Some(HostConfigLogConfig {
            typ: Some("json-file".to_owned()),
            config: Some(
                [("max-size", LOG.0), ("max-file", LOG.1)].map(|(k, v)| (k.to_owned(), v.to_owned())).into(),
            ),
        }),
        ..limited(request.limits)
    };
    if let Some(gpus) = &request.gpus {
        gpus.apply(&mut host, &mut env);
    }
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
    // What NVIDIA's own containers ask for.
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

fn mount(mount: &Mount) -> EngineMount {
    let (typ, source, volume_options) = match &mount.source {
        MountSource::Folder(path) => (MountType::BIND, path, None),
        // What a volume begins with is decided before.
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

fn info(found: ContainerSummary) -> ContainerInfo {
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
            ports: vec![Port { address: [127, 0, 0, 1].into(), host: 0, container: 8888 }],
            network: "bridge".to_owned(),
            gpus: None,
            limits: Limits { memory: Some(1 << 30), ..Limits::default() },
        }
    }

    #[test]
    fn a_container_is_closed() {
        let body = body(&request());
        let host = body.host_config.expect("a host's part");
        assert_eq!(host.readonly_rootfs, Some(true));
        assert_eq!(host.cap_drop, Some(vec!["ALL".to_owned()]));
        assert_eq!(host.security_opt, Some(vec!["no-new-privileges".to_owned()]));
        assert_eq!(host.privileged, None);
        let binding = &host.port_bindings.expect("ports")["8888/tcp"].clone().expect("one")[0];
        assert_eq!((binding.host_ip.as_deref(), binding.host_port.as_deref()), (Some("127.0.0.1"), Some("")));
        assert_eq!((host.memory, host.ulimits), (Some(1 << 30), None));
    }

    #[test]
    fn process_one_is_the_images_or_the_engines() {
        let own = body(&request());
        assert_eq!((own.cmd.is_some(), own.entrypoint.is_some()), (true, false));
        let foreign = body(&ContainerRequest { own_entrypoint: false, ..request() });
        assert_eq!((foreign.cmd.is_some(), foreign.entrypoint.is_some()), (false, true));
        assert_eq!(foreign.host_config.and_then(|host| host.init), Some(true));
    }
}
