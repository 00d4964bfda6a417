//! The guard of a throwaway container: created under a unique name, removed on every path.
//!
//! The guard knows the name before the daemon does, so no container is lost in between. If it is dropped before
//! [`Container::remove`] (Ctrl-C, an error), it removes the container on its own thread and waits, because the runtime
//! may be about to end. `orphans` finds the containers of a killed envforge by the label
//! `io.envforge.run=<owner>-<random>`.

use std::collections::HashMap;
use std::time::Duration;

use bollard::models::{ContainerCreateBody, HealthConfig, HostConfig, HostConfigLogConfig};
use bollard::query_parameters::{CreateContainerOptionsBuilder, RemoveContainerOptionsBuilder};

use crate::engine::cleanup::{finish_on_a_thread, retry_while_unavailable};
use crate::engine::container::run_request::RunRequest;
use crate::engine::error::EngineError;
use crate::engine::gpu::apply_gpus;
use crate::engine::transport::classify_error::is_absent;
use crate::engine::transport::daemon::Daemon;
use crate::host::process_owner::unique_name;

/// The label of every throwaway container.
pub(in crate::engine) const RUN_LABEL: &str = "io.envforge.run";
/// Attempts to find a container whose creation was interrupted, and the pause between them.
const LATE: (u32, Duration) = (20, Duration::from_millis(100));

/// A container that is removed on drop.
pub(super) struct Container {
    daemon: Daemon,
    /// Its name, which the daemon accepts in place of an id.
    pub(super) name: String,
    /// The stopped container that owns the volumes of a sandbox; removed after this one.
    pub(super) feeder: Option<Box<Container>>,
    created: bool,
    removed: bool,
}

impl Container {
    /// Creates a stopped container.
    ///
    /// The daemon copies no file into a container with a read-only root and does not change the owner of a volume's
    /// directory. So a sandbox uses the volumes of a second container with a writable root, which receives the files.
    pub(super) async fn create(daemon: &Daemon, request: &RunRequest) -> Result<Self, EngineError> {
        let volumes = sandbox_volumes(request);
        if volumes.is_empty() {
            return Self::create_one(daemon, &request.image, create_body(request)).await;
        }
        let body = ContainerCreateBody { volumes: Some(volumes), ..feeder_body(&request.image) };
        let feeder = Self::create_one(daemon, &request.image, body).await?;
        let mut body = create_body(request);
        if let Some(host) = body.host_config.as_mut() {
            // What is only read cannot be filled without end either.
            let mode = if request.collect.is_empty() { "ro" } else { "rw" };
            host.volumes_from = Some(vec![format!("{}:{mode}", feeder.name)]);
        }
        let mut container = Self::create_one(daemon, &request.image, body).await?;
        container.feeder = Some(Box::new(feeder));
        Ok(container)
    }

    /// Creates a container of that image with the body's labels and the run label.
    pub(super) async fn create_one(
        daemon: &Daemon,
        image: &str,
        mut body: ContainerCreateBody,
    ) -> Result<Self, EngineError> {
        let own = unique_name();
        let name = format!("envforge-run-{own}");
        body.labels.get_or_insert_default().insert(RUN_LABEL.to_owned(), own);
        let mut container =
            Self { daemon: daemon.clone(), name, feeder: None, created: false, removed: false };
        let options = CreateContainerOptionsBuilder::new().name(&container.name).build();
        match daemon.client.create_container(Some(options), body).await {
            Ok(_) => container.created = true,
            Err(error) => {
                // A refusal means that nothing was created; a broken connection does not.
                let refused = matches!(error, bollard::errors::Error::DockerResponseServerError { .. });
                container.removed = refused;
                return Err(if is_absent(&error) {
                    EngineError::NoSuchImage { reference: image.to_owned() }
                } else {
                    daemon.fault(&format!("creating a container of `{image}`"), error)
                });
            }
        }
        Ok(container)
    }

    /// Removes the container and its anonymous volumes.
    pub(super) async fn remove(mut self) -> Result<(), EngineError> {
        remove_by_name(&self.daemon, &self.name).await?;
        self.removed = true;
        if let Some(mut feeder) = self.feeder.take() {
            remove_by_name(&self.daemon, &feeder.name).await?;
            feeder.removed = true;
        }
        Ok(())
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        if self.removed {
            return;
        }
        let (daemon, name, tries) =
            (self.daemon.clone(), self.name.clone(), if self.created { 1 } else { LATE.0 });
        finish_on_a_thread(async move {
            for _ in 0..tries {
                match retry_while_unavailable(|| remove_by_name(&daemon, &name)).await {
                    Ok(true) => return,
                    Ok(false) => tokio::time::sleep(LATE.1).await,
                    Err(error) => {
                        tracing::warn!(%name, %error, "cannot remove container");
                        return;
                    }
                }
            }
        });
    }
}

/// Removes a container, running or not; returns false if absent.
pub(in crate::engine) async fn remove_by_name(daemon: &Daemon, name: &str) -> Result<bool, EngineError> {
    let options = RemoveContainerOptionsBuilder::new().force(true).v(true).build();
    match daemon.client.remove_container(name, Some(options)).await {
        Ok(()) => Ok(true),
        Err(error) if is_absent(&error) => Ok(false),
        Err(error) => Err(daemon.fault(&format!("removing container `{name}`"), error)),
    }
}

/// Returns the body of a stopped container that only provides volumes.
pub(super) fn feeder_body(image: &str) -> ContainerCreateBody {
    ContainerCreateBody {
        image: Some(image.to_owned()),
        entrypoint: Some(vec!["/never-started".to_owned()]),
        ..ContainerCreateBody::default()
    }
}

fn create_body(request: &RunRequest) -> ContainerCreateBody {
    let mut host = HostConfig {
        binds: (!request.binds.is_empty()).then(|| request.binds.clone()),
        network_mode: Some(request.network.as_str().to_owned()),
        ..HostConfig::default()
    };
    let mut env = request.env.clone();
    apply_gpus(request.gpus.as_ref(), &mut host, &mut env);
    host.shm_size = request.shm_size.and_then(|size| i64::try_from(size).ok());
    if request.sandbox {
        host.readonly_rootfs = Some(true);
        let size = request.limits.map(|limits| format!(",size={}", limits.tmp)).unwrap_or_default();
        let options = format!("rw,nosuid,nodev,exec,mode=1777{size}");
        host.tmpfs = Some(HashMap::from([("/tmp".to_owned(), options)]));
    }
    if let Some(limits) = &request.limits {
        host.pids_limit = Some(limits.processes);
        host.memory = limits.memory;
        host.memory_swap = limits.memory;
        host.log_config = Some(HostConfigLogConfig { typ: Some("none".to_owned()), config: None });
    }
    if request.sandbox || request.limits.is_some() {
        host.cap_drop = Some(vec!["ALL".to_owned()]);
        host.cap_add = (!request.keeps.is_empty()).then(|| request.keeps.clone());
        host.security_opt = Some(vec!["no-new-privileges".to_owned()]);
    }
    ContainerCreateBody {
        image: Some(request.image.clone()),
        // The entrypoint replaces both the image's entrypoint and its command.
        entrypoint: (!request.command.is_empty()).then(|| request.command.clone()),
        env: Some(env),
        user: request.user.clone(),
        tty: Some(false),
        attach_stdout: Some(true),
        attach_stderr: Some(true),
        healthcheck: Some(HealthConfig { test: Some(vec!["NONE".to_owned()]), ..HealthConfig::default() }),
        host_config: Some(host),
        ..ContainerCreateBody::default()
    }
}

/// Returns the directory of a path: `/in` for `/in/a`.
pub(super) fn folder_of(path: &str) -> &str {
    match path.trim_end_matches('/').rsplit_once('/') {
        Some(("", _)) | None => "/",
        Some((folder, _)) => folder,
    }
}

/// Returns the directories of a sandbox that become anonymous volumes, writable for all, without those below a bind. A
/// tmpfs would be lost after the exit.
pub(super) fn sandbox_volumes(request: &RunRequest) -> Vec<String> {
    if !request.sandbox {
        return Vec::new();
    }
    let targets: Vec<&str> = request.binds.iter().filter_map(|bind| bind.split(':').nth(1)).collect();
    let bound =
        |path: &str| targets.iter().any(|target| path == *target || path.starts_with(&format!("{target}/")));
    let files = request.files.iter().map(|file| file.path.as_str());
    let paths = files.chain(request.collect.iter().map(String::as_str));
    let mut folders: Vec<_> =
        paths.filter(|path| !bound(path)).map(|path| folder_of(path).to_owned()).collect();
    folders.sort();
    folders.dedup();
    // Files in the root are collected from the image: nothing can be mounted there.
    folders.retain(|folder| folder != "/");
    folders
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::container::run_request::ContainerFile;

    #[test]
    fn sandbox_has_a_volume_for_each_unbound_directory() {
        let file =
            |path: &str| ContainerFile { path: path.to_owned(), mode: 0o644, bytes: bytes::Bytes::new() };
        let mut request = RunRequest {
            files: vec![file("/in/a"), file("/in/b"), file("/cache/c")],
            collect: vec!["/out/lock".to_owned(), "/proc".to_owned()],
            binds: vec!["vol:/cache:rw".to_owned()],
            sandbox: true,
            ..RunRequest::default()
        };
        assert_eq!(sandbox_volumes(&request), ["/in", "/out"]);
        request.sandbox = false;
        assert!(sandbox_volumes(&request).is_empty());
    }

    #[test]
    fn sandbox_is_closed_and_replaces_the_entrypoint() {
        let request = RunRequest {
            sandbox: true,
            command: vec!["/tool".to_owned(), "x".to_owned()],
            ..RunRequest::default()
        };
        let body = create_body(&request);
        assert_eq!(body.entrypoint, Some(request.command));
        assert_eq!(body.cmd, None);
        let host = body.host_config.unwrap();
        assert_eq!(host.readonly_rootfs, Some(true));
        assert_eq!(host.cap_drop, Some(vec!["ALL".to_owned()]));
        assert_eq!(host.security_opt, Some(vec!["no-new-privileges".to_owned()]));
    }

    #[test]
    fn folder_of_returns_the_parent() {
        assert_eq!(folder_of("/in/a"), "/in");
        assert_eq!(folder_of("/a"), "/");
        assert_eq!(folder_of("/x/y/"), "/x");
    }
}
