//! Fills named volumes before a container uses them, without running anything.
//!
//! The engine puts no file into a container whose root is read-only, and gives the folder of a volume no other owner. So
//! a container that is never started mounts them with a writable root, is fed, and goes. If it is killed in between,
//! `remains` finds it by its label and removes the volumes too: they hold nothing of the user's yet. On Podman the volumes
//! are made just before it: one of a process killed between the two stays, empty and the caller's.

use std::collections::HashMap;

use bollard::models::{
    HostConfig, Mount as EngineMount, MountType, MountVolumeOptions, Volume, VolumeCreateRequest,
};
use bollard::query_parameters::{ListVolumesOptionsBuilder, RemoveVolumeOptions};

use super::connect::Daemon;
use super::container::{Container, feeder_body};
use super::docker::finish_on_a_thread;
use super::images::is_absent;
use super::{EngineError, FreshVolume, OwnedFile, Preparation, Tars};

/// The label that names the volumes of an unfinished preparation, apart by commas.
pub(super) const PREPARES_LABEL: &str = "io.envforge.prepares";

/// Volumes that are removed unless they were finished.
struct Unfinished<'a> {
    daemon: &'a Daemon,
    names: Vec<String>,
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        let (daemon, names) = (self.daemon.clone(), std::mem::take(&mut self.names));
        if names.is_empty() {
            return;
        }
        finish_on_a_thread(async move {
            for name in names {
                if let Err(error) = daemon.remove_volume(&name).await {
                    tracing::warn!(%name, %error, "volume could not be removed");
                }
            }
        });
    }
}

impl Daemon {
    /// Makes and fills volumes.
    pub(super) async fn prepare(&self, preparation: Preparation, podman: bool) -> Result<(), EngineError> {
        let names: Vec<_> = preparation.volumes.iter().map(|volume| volume.name.clone()).collect();
        // First, so that it goes last: a volume is held by the container.
        let mut unfinished = Unfinished { daemon: self, names: names.clone() };
        let tars = self.read(&preparation).await?;
        if podman {
            self.create_owned(&preparation).await?;
        }
        let mut body = feeder_body(&preparation.image);
        body.labels = Some([(PREPARES_LABEL.to_owned(), names.join(","))].into());
        body.host_config = Some(HostConfig {
            mounts: Some(preparation.volumes.iter().map(mount).collect()),
            network_mode: Some("none".to_owned()),
            userns_mode: preparation.user_namespace.clone(),
            ..HostConfig::default()
        });
        let feeder = Container::create_one(self, &preparation.image, body).await?;
        let folders = folders_tar(&preparation.volumes)?;
        self.put_tar(&feeder, "/", folders).await?;
        let files = (preparation.fill)(&tars);
        for volume in &preparation.volumes {
            if let Some(tar) = files_tar(volume, &files)? {
                self.put_tar(&feeder, &volume.target, tar).await?;
            }
        }
        feeder.remove().await?;
        unfinished.names.clear();
        Ok(())
    }

    /// Makes the volumes that get an owner, as Podman needs it: at its first use it gives any other volume to the owner
    /// of that place in the image. The numbers are the engine's, for which a rootless one's own user is 0.
    async fn create_owned(&self, preparation: &Preparation) -> Result<(), EngineError> {
        for volume in &preparation.volumes {
            let Some(owner) = volume.owner else { continue };
            let (uid, gid) = if preparation.user_namespace.is_some() { (0, 0) } else { owner };
            let request = VolumeCreateRequest {
                name: Some(volume.name.clone()),
                labels: Some(volume.labels.clone().into_iter().collect()),
                driver_opts: Some([("o".to_owned(), format!("uid={uid},gid={gid}"))].into()),
                ..VolumeCreateRequest::default()
            };
            let made = self.client.create_volume(request).await;
            made.map_err(|error| self.fault(&format!("making volume `{}`", volume.name), error))?;
        }
        Ok(())
    }

    /// What of the image is read, from a container without the volumes: Podman shows those empty before the start.
    async fn read(&self, preparation: &Preparation) -> Result<Tars, EngineError> {
        let mut tars = Tars::new();
        if preparation.reads.is_empty() {
            return Ok(tars);
        }
        let reader = Container::create_one(self, &preparation.image, feeder_body(&preparation.image)).await?;
        for path in &preparation.reads {
            if let Some(tar) = self.collect(&reader, path).await? {
                tars.insert(path.clone(), tar);
            }
        }
        reader.remove().await?;
        Ok(tars)
    }

    /// True if there is a volume of that name.
    pub(super) async fn has_volume(&self, name: &str) -> Result<bool, EngineError> {
        match self.client.inspect_volume(name).await {
            Ok(_) => Ok(true),
            Err(error) if is_absent(&error) => Ok(false),
            Err(error) => Err(self.fault(&format!("a look at volume `{name}`"), error)),
        }
    }

    /// The volumes with that label: each name and the label's value.
    pub(super) async fn volumes(&self, label: &str) -> Result<Vec<(String, String)>, EngineError> {
        let filters = HashMap::from([("label".to_owned(), vec![label.to_owned()])]);
        let options = ListVolumesOptionsBuilder::new().filters(&filters).build();
        let found = self.client.list_volumes(Some(options)).await;
        let found = found.map_err(|error| self.fault("listing volumes", error))?.volumes;
        let one = |mut volume: Volume| Some((volume.name, volume.labels.remove(label)?));
        Ok(found.unwrap_or_default().into_iter().filter_map(one).collect())
    }

    /// Removes a volume; absent is fine.
    pub(super) async fn remove_volume(&self, name: &str) -> Result<(), EngineError> {
        match self.client.remove_volume(name, None::<RemoveVolumeOptions>).await {
            Ok(()) => Ok(()),
            Err(error) if is_absent(&error) => Ok(()),
            Err(error) => Err(self.fault(&format!("removing volume `{name}`"), error)),
        }
    }
}

fn mount(volume: &FreshVolume) -> EngineMount {
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

/// The folders of volumes that get an owner, from the root.
fn folders_tar(volumes: &[FreshVolume]) -> std::io::Result<Vec<u8>> {
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

/// Those of the files that lie below the volume's place, relative to it; folders end in `/`. Its own folder comes first:
/// Podman shows no volume below `/` of a container that does not run, Docker passes over a folder's own entry.
fn files_tar(volume: &FreshVolume, files: &[OwnedFile]) -> std::io::Result<Option<Vec<u8>>> {
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
        // The volume's own folder is there already.
        if path.is_empty() {
            continue;
        }
        any = true;
        let kind = if path.ends_with('/') { tar::EntryType::Directory } else { tar::EntryType::Regular };
        tar.append_data(&mut header(kind, file.mode, *owner, file.bytes.len()), path, file.bytes.as_ref())?;
    }
    any.then(|| tar.into_inner()).transpose()
}
