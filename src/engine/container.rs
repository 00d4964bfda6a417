//! The life of a throwaway container: created under a name of ours, removed on every path.
//!
//! The guard knows the name before the daemon does, so nothing is lost between the two. If it is dropped before
//! [`Container::remove`] (Ctrl-C, an error), it removes the container from a thread of its own and waits for it, as the
//! runtime may be about to end. What a killed envforge leaves carries the label `io.envforge.run=<owner>-<random>`, by
//! which `remains` finds it.

use std::collections::HashMap;
use std::time::Duration;

use bollard::models::{ContainerCreateBody, HealthConfig, HostConfig};
use bollard::query_parameters::{CreateContainerOptionsBuilder, RemoveContainerOptionsBuilder};

use super::connect::Daemon;
use super::images::is_absent;
use super::{EngineError, Network, RunRequest};
use crate::owner::own_name;

/// The label of every container we make.
pub(super) const RUN_LABEL: &str = "io.envforge.run";
/// A creation that was cut may still be under way in the daemon: how often and how long it is looked for.
const LATE: (u32, Duration) = (20, Duration::from_millis(100));

/// A container that is removed when this goes.
pub(super) struct Container {
    daemon: Daemon,
    /// Its name, which the daemon takes wherever it takes an id.
    pub(super) name: String,
    /// The never started container that owns the volumes of a sandbox; removed after this one.
    pub(super) feeder: Option<Box<Container>>,
    created: bool,
    removed: bool,
}

impl Container {
    /// Creates the container; it does not run yet.
    ///
    /// The daemon puts no file into a container whose root is read-only, and gives the folder of a volume no other
    /// owner. So a sandbox takes its volumes from a second container with a writable root, into which files are put.
    pub(super) async fn create(daemon: &Daemon, request: &RunRequest) -> Result<Self, EngineError> {
        let volumes = sandbox_volumes(request);
        if volumes.is_empty() {
            return Self::create_one(daemon, &request.image, create_body(request)).await;
        }
        let body = ContainerCreateBody { volumes: Some(volumes), ..feeder_body(&request.image) };
        let feeder = Self::create_one(daemon, &request.image, body).await?;
        let mut body = create_body(request);
        if let Some(host) = body.host_config.as_mut() {
            host.volumes_from = Some(vec![feeder.name.clone()]);
        }
        let mut container = Self::create_one(daemon, &request.image, body).await?;
        container.feeder = Some(Box::new(feeder));
        Ok(container)
    }

    /// Creates a container of that image; its label is added to those of the body.
    pub(super) async fn create_one(
        daemon: &Daemon,
        image: &str,
        mut body: ContainerCreateBody,
    ) -> Result<Self, EngineError> {
        let own = own_name();
        let name = format!("envforge-run-{own}");
        body.labels.get_or_insert_default().insert(RUN_LABEL.to_owned(), own);
        let mut container =
            Self { daemon: daemon.clone(), name, feeder: None, created: false, removed: false };
        let options = CreateContainerOptionsBuilder::new().name(&container.name).build();
        match daemon.client.create_container(Some(options), body).await {
            Ok(_) => container.created = true,
            Err(error) => {
                // A refusal means that nothing was made; a broken connection does not.
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
        super::docker::finish_on_a_thread(async move {
            for _ in 0..tries {
                let removed = super::docker::patiently(|| remove_by_name(&daemon, &name));
                match removed.await {
                    Ok(true) => return,
                    Ok(false) => tokio::time::sleep(LATE.1).await,
                    Err(error) => {
                        tracing::warn!(%name, %error, "container could not be removed");
                        return;
                    }
                }
            }
        });
    }
}

/// Removes a container, running or not; false if there is none of that name.
pub(super) async fn remove_by_name(daemon: &Daemon, name: &str) -> Result<bool, EngineError> {
    let options = RemoveContainerOptionsBuilder::new().force(true).v(true).build();
    match daemon.client.remove_container(name, Some(options)).await {
        Ok(()) => Ok(true),
        Err(error) if is_absent(&error) => Ok(false),
        Err(error) => Err(daemon.fault(&format!("removing container `{name}`"), error)),
    }
}

/// A container that only lends its volumes.
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
        network_mode: Some(network_mode(request.network).to_owned()),
        ..HostConfig::default()
    };
    let mut env = request.env.clone();
    if let Some(gpus) = &request.gpus {
        gpus.apply(&mut host, &mut env);
    }
    host.shm_size = request.shm_size.and_then(|size| i64::try_from(size).ok());
    if request.sandbox {
        host.readonly_rootfs = Some(true);
        host.tmpfs = Some(HashMap::from([("/tmp".to_owned(), "rw,nosuid,nodev,exec,mode=1777".to_owned())]));
        host.cap_drop = Some(vec!["ALL".to_owned()]);
        host.cap_add = (!request.keeps.is_empty()).then(|| request.keeps.clone());
        host.security_opt = Some(vec!["no-new-privileges".to_owned()]);
    }
    ContainerCreateBody {
        image: Some(request.image.clone()),
        // As the entrypoint, so that the image's own one and its command are both out.
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

fn network_mode(network: Network) -> &'static str {
    match network {
        Network::Bridge => "bridge",
        Network::Host => "host",
        Network::None => "none",
    }
}

/// The folder a path lies in: `/in/a` is in `/in`.
pub(super) fn folder_of(path: &str) -> &str {
    match path.trim_end_matches('/').rsplit_once('/') {
        Some(("", _)) | None => "/",
        Some((folder, _)) => folder,
    }
}

/// Folders of a sandbox that become anonymous volumes, writable for all: a tmpfs would be gone after the exit. What a
/// bind covers is not among them.
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
    // What lies in the root is collected as the image has it: nothing can be mounted there.
    folders.retain(|folder| folder != "/");
    folders
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::ContainerFile;

    #[test]
    fn a_sandbox_gets_a_volume_for_each_folder_that_is_not_bound() {
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
    fn the_sandbox_is_closed_and_the_command_replaces_the_entrypoint() {
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
    fn folders_of_paths() {
        assert_eq!(folder_of("/in/a"), "/in");
        assert_eq!(folder_of("/a"), "/");
        assert_eq!(folder_of("/x/y/"), "/x");
    }
}
