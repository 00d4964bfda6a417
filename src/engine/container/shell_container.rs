//! Containers that outlive the process: created closed, started, listed, stopped.

use std::collections::HashMap;

use async_trait::async_trait;
use bollard::container::LogOutput;
use bollard::models::HostConfig;
use bollard::query_parameters::{
    CreateContainerOptionsBuilder, KillContainerOptionsBuilder, ListContainersOptionsBuilder,
    LogsOptionsBuilder, StopContainerOptionsBuilder, TopOptionsBuilder, UploadToContainerOptionsBuilder,
};
use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;

use super::body::{body, info, mount};
use super::guard::remove_by_name;
use super::program::Output;
use super::types::{ContainerInfo, ContainerRequest, Containers, Link, Mount, MountSource};
use crate::engine::cleanup::{finish_on_a_thread, retry_while_unavailable};
use crate::engine::docker::Docker;
use crate::engine::error::EngineError;
use crate::engine::transport::classify_error::is_absent;
use crate::engine::transport::daemon::Daemon;

/// The directories that everybody may write to, also in a read-only root of Podman.
const READ_ONLY: [&str; 2] = ["/run", "/var/tmp"];

#[async_trait]
impl Containers for Docker {
    async fn create(&self, request: &ContainerRequest) -> Result<String, EngineError> {
        let options = CreateContainerOptionsBuilder::new().name(&request.name).build();
        let mut body = body(request);
        if let Some(host) = body.host_config.as_mut() {
            if self.info.is_podman() || !request.links.is_empty() {
                close_writable(request, host);
            }
            if self.info.is_podman() {
                restrict_podman(&self.daemon, host, request).await?;
            }
        }
        let created = match self.daemon.client.create_container(Some(options), body).await {
            Ok(answer) => {
                for warning in answer.warnings {
                    tracing::warn!(%warning, "engine warning");
                }
                Ok(answer.id)
            }
            Err(error) => Err(self.daemon.fault(&format!("creating container `{}`", request.name), error)),
        };
        let created = created?;
        if request.links.is_empty() {
            return Ok(created);
        }
        // Before the start: nothing of the image runs while they are written.
        if let Err(error) = put_links(&self.daemon, request).await {
            remove_by_name(&self.daemon, &request.name).await?;
            return Err(error);
        }
        Ok(created)
    }

    async fn start(&self, container: &str) -> Result<(), EngineError> {
        let started = self.daemon.client.start_container(container, None).await;
        started.map_err(|error| self.daemon.fault("starting the container", error))
    }

    async fn signal(&self, container: &str, name: &str) -> Result<(), EngineError> {
        let options = KillContainerOptionsBuilder::new().signal(name).build();
        let sent = self.daemon.client.kill_container(container, Some(options)).await;
        sent.map_err(|error| self.daemon.fault(&format!("sending {name} to the container"), error))
    }

    async fn containers(&self, label: &str) -> Result<Vec<ContainerInfo>, EngineError> {
        let filters = HashMap::from([("label".to_owned(), vec![label.to_owned()])]);
        let options = ListContainersOptionsBuilder::new().all(true).filters(&filters).build();
        let listed = self.daemon.client.list_containers(Some(options)).await;
        let listed = listed.map_err(|error| self.daemon.fault("listing containers", error))?;
        Ok(listed.into_iter().map(info).collect())
    }

    async fn stop(&self, container: &str, seconds: i32) -> Result<(), EngineError> {
        let options = StopContainerOptionsBuilder::new().t(seconds).build();
        match self.daemon.client.stop_container(container, Some(options)).await {
            // 304: already stopped.
            Ok(()) | Err(bollard::errors::Error::DockerResponseServerError { status_code: 304, .. }) => {}
            Err(error) if is_absent(&error) => return Ok(()),
            Err(error) => return Err(self.daemon.fault("stopping a container", error)),
        }
        match remove_by_name(&self.daemon, container).await {
            // Another process already removes it.
            Err(EngineError::Refused { text, .. }) if text.contains("already in progress") => Ok(()),
            answer => answer.map(drop),
        }
    }

    fn discard_container(&self, container: &str) {
        let (daemon, container) = (self.daemon.clone(), container.to_owned());
        finish_on_a_thread(async move {
            if let Err(error) = retry_while_unavailable(|| remove_by_name(&daemon, &container)).await {
                tracing::warn!(%container, %error, "cannot remove container");
            }
        });
    }

    fn logs(
        &self,
        container: &str,
        follow: bool,
        tail: Option<u32>,
    ) -> BoxStream<'static, Result<Output, EngineError>> {
        let tail = tail.map_or_else(|| "all".to_owned(), |lines| lines.to_string());
        let options = LogsOptionsBuilder::new().stdout(true).stderr(true).follow(follow).tail(&tail).build();
        let daemon = self.daemon.clone();
        let stream = self.daemon.client.logs(container, Some(options)).map(move |part| match part {
            Ok(LogOutput::StdErr { message }) => Ok(Output::Err(message)),
            Ok(other) => Ok(Output::Out(other.into_bytes())),
            Err(error) => Err(daemon.fault("reading a container's log", error)),
        });
        stream.boxed()
    }

    async fn processes(&self, container: &str) -> Result<Vec<u32>, EngineError> {
        let options = TopOptionsBuilder::new().ps_args("-o pid").build();
        let answer = self.daemon.client.top_processes(container, Some(options)).await;
        let answer = answer.map_err(|error| self.daemon.fault("listing a container's processes", error))?;
        let rows = answer.processes.unwrap_or_default();
        Ok(rows.iter().filter_map(|row| row.first()?.trim().parse().ok()).collect())
    }
}

/// Writes the links of a container that was not started.
async fn put_links(daemon: &Daemon, request: &ContainerRequest) -> Result<(), EngineError> {
    let mut tar = tar::Builder::new(Vec::new());
    for Link { path, to } in &request.links {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::Symlink);
        header.set_size(0);
        header.set_mode(0o777);
        tar.append_link(&mut header, path.trim_start_matches('/'), to)?;
    }
    let options = UploadToContainerOptionsBuilder::new().path("/").build();
    let body = bollard::body_full(tar.into_inner()?.into());
    let sent = daemon.client.upload_to_container(&request.name, Some(options), body).await;
    sent.map_err(|error| daemon.fault("writing links to a container", error))
}

/// Closes the directories that everybody may write to in a root that is not read-only, or that Podman makes writable.
fn close_writable(request: &ContainerRequest, host: &mut HostConfig) {
    // Not at or above a mount: a read-only directory cannot contain its mount point.
    let is_free = |path: &&str| {
        let below = format!("{path}/");
        !request.mounts.iter().any(|mount| format!("{}/", mount.target).starts_with(&below))
    };
    let read_only = READ_ONLY.into_iter().filter(is_free);
    let read_only = read_only.map(|path| (path.to_owned(), "ro,nosuid,nodev,noexec".to_owned()));
    host.tmpfs.get_or_insert_default().extend(read_only);
}

/// Replaces the accounts that Podman writes in /etc unless these files are mounts.
async fn restrict_podman(
    daemon: &Daemon,
    host: &mut HostConfig,
    request: &ContainerRequest,
) -> Result<(), EngineError> {
    for etc in request.mounts.iter().filter(|mount| mount.target == "/etc") {
        let MountSource::Volume(name) = &etc.source else { continue };
        let found = daemon.client.inspect_volume(name).await;
        let found = found.map_err(|error| daemon.fault(&format!("inspecting volume `{name}`"), error))?;
        for file in ["passwd", "group"] {
            let source = MountSource::Folder(format!("{}/{file}", found.mountpoint));
            let file = Mount { source, target: format!("/etc/{file}"), read_only: true };
            host.mounts.get_or_insert_default().push(mount(&file));
        }
    }
    Ok(())
}
