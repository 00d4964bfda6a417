//! Fills named volumes before a container uses them, without running a program.
//!
//! The engine copies no file into a container with a read-only root and does not change the owner of a volume's directory.
//! So a stopped container with a writable root mounts the volumes, receives the files, and is removed. If envforge is
//! killed in between, `orphans` finds it by its label and removes the volumes too: they contain no user data yet. On Podman
//! the volumes are created just before: a process killed between the two leaves an empty volume of the caller.

use std::collections::HashMap;

use async_trait::async_trait;
use bollard::models::{
    HostConfig, Mount as EngineMount, MountType, MountVolumeOptions, Volume, VolumeCreateRequest,
};
use bollard::query_parameters::{ListVolumesOptionsBuilder, RemoveVolumeOptions};

use super::files::{collect_all, put_tar};
use super::guard::{Container, feeder_body};
use super::volume::{NewVolume, OwnedFile, Tars, VolumeSetup, Volumes};
use crate::engine::cleanup::finish_on_a_thread;
use crate::engine::docker::Docker;
use crate::engine::error::EngineError;
use crate::engine::info::EngineInfo;
use crate::engine::limits::LARGEST_COLLECTED;
use crate::engine::transport::classify_error::is_absent;
use crate::engine::transport::daemon::Daemon;
use crate::model::program_version::PODMAN_COPIES_BEFORE_START;

/// The label that lists the volumes of an unfinished preparation, comma-separated.
pub(in crate::engine) const PREPARES_LABEL: &str = "io.envforge.prepares";

/// Volumes that are removed on drop unless finished.
struct Unfinished<'a> {
    docker: &'a Docker,
    names: Vec<String>,
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        let (docker, names) = (self.docker.clone(), std::mem::take(&mut self.names));
        if names.is_empty() {
            return;
        }
        finish_on_a_thread(async move {
            for name in names {
                if let Err(error) = docker.remove_volume(&name).await {
                    tracing::warn!(%name, %error, "cannot remove volume");
                }
            }
        });
    }
}

#[async_trait]
impl Volumes for Docker {
    async fn prepare(&self, preparation: VolumeSetup) -> Result<(), EngineError> {
        let names: Vec<_> = preparation.volumes.iter().map(|volume| volume.name.clone()).collect();
        // First, so that it is dropped last: the container holds its volumes.
        let mut unfinished = Unfinished { docker: self, names: names.clone() };
        let whole = whole_folders(&self.info, &preparation.volumes);
        let tars = read(&self.daemon, &preparation, &whole).await?;
        if self.info.is_podman() {
            create_owned(&self.daemon, &preparation).await?;
        }
        let mut body = feeder_body(&preparation.image);
        body.labels = Some([(PREPARES_LABEL.to_owned(), names.join(","))].into());
        body.host_config = Some(HostConfig {
            mounts: Some(preparation.volumes.iter().map(mount).collect()),
            network_mode: Some("none".to_owned()),
            userns_mode: preparation.user_namespace.clone(),
            ..HostConfig::default()
        });
        let feeder = Container::create_one(&self.daemon, &preparation.image, body).await?;
        let folders = folders_tar(&preparation.volumes)?;
        put_tar(&self.daemon, &feeder, "/", folders).await?;
        for folder in &whole {
            if let Some(tar) = tars.get(&content(folder)) {
                put_tar(&self.daemon, &feeder, folder, tar.clone()).await?;
            }
        }
        let files = (preparation.fill)(&tars);
        for volume in &preparation.volumes {
            if let Some(tar) = files_tar(volume, &files)? {
                put_tar(&self.daemon, &feeder, &volume.target, tar).await?;
            }
        }
        feeder.remove().await?;
        unfinished.names.clear();
        Ok(())
    }

    async fn has_volume(&self, name: &str) -> Result<bool, EngineError> {
        match self.daemon.client.inspect_volume(name).await {
            Ok(_) => Ok(true),
            Err(error) if is_absent(&error) => Ok(false),
            Err(error) => Err(self.daemon.fault(&format!("inspecting volume `{name}`"), error)),
        }
    }

    async fn volumes(&self, label: &str) -> Result<Vec<(String, String)>, EngineError> {
        let filters = HashMap::from([("label".to_owned(), vec![label.to_owned()])]);
        let options = ListVolumesOptionsBuilder::new().filters(&filters).build();
        let found = self.daemon.client.list_volumes(Some(options)).await;
        let found = found.map_err(|error| self.daemon.fault("listing volumes", error))?.volumes;
        let one = |mut volume: Volume| Some((volume.name, volume.labels.remove(label)?));
        Ok(found.unwrap_or_default().into_iter().filter_map(one).collect())
    }

    async fn remove_volume(&self, name: &str) -> Result<(), EngineError> {
        match self.daemon.client.remove_volume(name, None::<RemoveVolumeOptions>).await {
            Ok(()) => Ok(()),
            Err(error) if is_absent(&error) => Ok(()),
            Err(error) => Err(self.daemon.fault(&format!("removing volume `{name}`"), error)),
        }
    }
}

/// Creates the volumes with an owner for Podman, which otherwise changes the owner at the first use to that of the path
/// in the image. The numbers are the engine's: the user of a rootless engine is 0 there.
async fn create_owned(daemon: &Daemon, preparation: &VolumeSetup) -> Result<(), EngineError> {
    for volume in &preparation.volumes {
        let Some(owner) = volume.owner else { continue };
        let (uid, gid) = if preparation.user_namespace.is_some() { (0, 0) } else { owner };
        let request = VolumeCreateRequest {
            name: Some(volume.name.clone()),
            labels: Some(volume.labels.clone().into_iter().collect()),
            driver_opts: Some([("o".to_owned(), format!("uid={uid},gid={gid}"))].into()),
            ..VolumeCreateRequest::default()
        };
        let created = daemon.client.create_volume(request).await;
        created.map_err(|error| daemon.fault(&format!("creating volume `{}`", volume.name), error))?;
    }
    Ok(())
}

/// Returns the image's folders that the engine does not copy into a volume which gets files before the first start.
fn whole_folders(engine: &EngineInfo, volumes: &[NewVolume]) -> Vec<String> {
    if !engine.is_podman() || PODMAN_COPIES_BEFORE_START.is_met_by(&engine.version) == Some(true) {
        return Vec::new();
    }
    volumes.iter().filter(|volume| volume.copies).map(|volume| volume.target.clone()).collect()
}

/// The path that the engine reads as a folder's content, without the folder's own name.
fn content(folder: &str) -> String {
    format!("{folder}/.")
}

/// Reads the image's files from a container without the volumes: Podman shows those empty before the start.
async fn read(daemon: &Daemon, preparation: &VolumeSetup, whole: &[String]) -> Result<Tars, EngineError> {
    let paths: Vec<_> =
        preparation.reads.iter().cloned().chain(whole.iter().map(|one| content(one))).collect();
    if paths.is_empty() {
        return Ok(Tars::new());
    }
    let body = feeder_body(&preparation.image);
    let reader = Container::create_one(daemon, &preparation.image, body).await?;
    let paths = paths.iter().map(String::as_str);
    let tars = collect_all(daemon, &reader, paths, LARGEST_COLLECTED).await?;
    reader.remove().await?;
    Ok(tars)
}

fn mount(volume: &NewVolume) -> EngineMount {
    EngineMount {
        typ: Some(MountType::VOLUME),
        source: Some(volume.name.clone()),
        target: Some(volume.target.clone()),
        volume_options: Some(MountVolumeOptions {
            no_copy: Some(!volume.copies),
            labels: Some(volume.labels.clone().into_iter().collect()),
            ..MountVolumeOptions::default()
        }),
        ..EngineMount::default()
    }
}

fn header(kind: tar::EntryType, mode: u32, owner: (u32, u32), size: usize) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_uid(owner.0.into());
    header.set_gid(owner.1.into());
    header.set_mtime(0);
    header.set_size(size as u64);
    header
}

/// Creates a tar of the directories of volumes with an owner, relative to the root.
fn folders_tar(volumes: &[NewVolume]) -> std::io::Result<Vec<u8>> {
    let mut tar = tar::Builder::new(Vec::new());
    for volume in volumes {
        if let Some(owner) = volume.owner {
            let path = volume.target.trim_start_matches('/');
            let mut header = header(tar::EntryType::Directory, 0o755, owner, 0);
            tar.append_data(&mut header, path, std::io::empty())?;
        }
    }
    tar.into_inner()
}

/// Creates a tar of the files below the volume's target, relative to it; directories end in `/`. Its own directory comes
/// first: Podman shows no volume below `/` of a stopped container, Docker ignores a directory's own entry.
fn files_tar(volume: &NewVolume, files: &[OwnedFile]) -> std::io::Result<Option<Vec<u8>>> {
    let mut tar = tar::Builder::new(Vec::new());
    let mut any = false;
    if let Some(owner) = volume.owner {
        any = true;
        tar.append_data(&mut header(tar::EntryType::Directory, 0o755, owner, 0), "./", std::io::empty())?;
    }
    let target = volume.target.as_str();
    for OwnedFile { file, owner } in files {
        let Some(path) = file.path.strip_prefix(target).and_then(|rest| rest.strip_prefix('/')) else {
            continue;
        };
        // The volume's own directory exists already.
        if path.is_empty() {
            continue;
        }
        any = true;
        let kind = if path.ends_with('/') { tar::EntryType::Directory } else { tar::EntryType::Regular };
        tar.append_data(&mut header(kind, file.mode, *owner, file.bytes.len()), path, file.bytes.as_ref())?;
    }
    any.then(|| tar.into_inner()).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn older_podman_gets_the_whole_folder_of_a_copied_volume() {
        let volume = |target: &str, copies| NewVolume {
            name: "one".to_owned(),
            target: target.to_owned(),
            labels: std::collections::BTreeMap::new(),
            copies,
            owner: None,
        };
        let volumes = [volume("/etc", true), volume("/home/dev", false)];
        let of = |name: &str, version: &str| {
            let (name, version) = (name.to_owned(), version.to_owned());
            whole_folders(&EngineInfo { name, version, ..EngineInfo::sample() }, &volumes)
        };
        assert_eq!(of("Podman", "4.3.1"), ["/etc"]);
        assert_eq!(of("Podman", "unknown"), ["/etc"]);
        assert_eq!(of("Podman", "5.4.2"), [""; 0]);
        assert_eq!(of("Docker", "20.10.24+dfsg1"), [""; 0]);
    }
}
