//! Files of containers: copied in before the start, collected after the end.

use std::collections::BTreeMap;

use bollard::query_parameters::{DownloadFromContainerOptionsBuilder, UploadToContainerOptionsBuilder};
use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};

use super::guard::{Container, folder_of, sandbox_volumes};
use super::run_request::{ContainerFile, RunRequest};
use crate::engine::error::EngineError;
use crate::engine::transport::classify_error::is_absent;
use crate::engine::transport::daemon::Daemon;
use crate::model::request::network::Network;

/// Reads paths of an image through a container that is never started.
pub(in crate::engine) async fn read_paths(
    daemon: &Daemon,
    image: &str,
    paths: &[&str],
    most: u64,
) -> Result<BTreeMap<String, Vec<u8>>, EngineError> {
    let command = vec!["/never-started".to_owned()];
    let request =
        RunRequest { image: image.to_owned(), command, network: Network::None, ..RunRequest::default() };
    let container = Container::create(daemon, &request).await?;
    let found = collect_all(daemon, &container, paths.iter().copied(), most).await?;
    container.remove().await?;
    Ok(found)
}

/// Copies the files of a request into its stopped container.
pub(super) async fn put_files(
    daemon: &Daemon,
    container: &Container,
    request: &RunRequest,
) -> Result<(), EngineError> {
    let owner = owner_of(request.user.as_deref());
    let volumes = sandbox_volumes(request);
    let lent = |file: &&ContainerFile| volumes.iter().any(|volume| folder_of(&file.path) == volume);
    let (fed, own): (Vec<_>, Vec<_>) = request.files.iter().partition(lent);
    if let Some(feeder) = &container.feeder {
        put_tar(daemon, feeder, "/", files_tar(&volumes, "/", &[], owner)?).await?;
        // Podman finds a volume only by a path inside it.
        for volume in &volumes {
            let files: Vec<_> = fed.iter().copied().filter(|file| folder_of(&file.path) == volume).collect();
            if !files.is_empty() {
                put_tar(daemon, feeder, volume, files_tar(&[], volume, &files, owner)?).await?;
            }
        }
    }
    if request.sandbox {
        // Files below a bind: the daemon accepts them only at a path outside the read-only root.
        for file in own {
            let folder = folder_of(&file.path);
            put_tar(daemon, container, folder, files_tar(&[], folder, &[file], owner)?).await?;
        }
    } else if !own.is_empty() {
        put_tar(daemon, container, "/", files_tar(&[], "/", &own, owner)?).await?;
    }
    Ok(())
}

/// Extracts a tar into a container.
pub(super) async fn put_tar(
    daemon: &Daemon,
    container: &Container,
    path: &str,
    tar: Vec<u8>,
) -> Result<(), EngineError> {
    let options = UploadToContainerOptionsBuilder::new().path(path).build();
    let body = bollard::body_full(Bytes::from(tar));
    let sent = daemon.client.upload_to_container(&container.name, Some(options), body).await;
    sent.map_err(|error| daemon.fault(&format!("copying files to `{path}` of a container"), error))
}

/// Returns the tar of each path that exists; an error if all together have more than `most` bytes.
pub(super) async fn collect_all(
    daemon: &Daemon,
    container: &Container,
    paths: impl Iterator<Item = &str>,
    most: u64,
) -> Result<BTreeMap<String, Vec<u8>>, EngineError> {
    let mut found = BTreeMap::new();
    let mut left = most;
    for path in paths {
        let options = DownloadFromContainerOptionsBuilder::new().path(path).build();
        let parts = daemon.client.download_from_container(&container.name, Some(options));
        match joined(parts, left).await {
            Ok(Some(tar)) => {
                left -= tar.len() as u64;
                found.insert(path.to_owned(), tar);
            }
            Ok(None) => {
                let what = format!("`{path}` and the files collected with it from a container");
                return Err(EngineError::TooLarge { what, limit: most });
            }
            Err(error) if is_absent(&error) => {}
            Err(error) => return Err(daemon.fault(&format!("collecting `{path}` from a container"), error)),
        }
    }
    Ok(found)
}

/// Returns the bytes of a stream; `None`: there are more than `most`.
async fn joined<E>(
    mut parts: impl Stream<Item = Result<Bytes, E>> + Unpin,
    most: u64,
) -> Result<Option<Vec<u8>>, E> {
    let mut bytes = Vec::new();
    while let Some(part) = parts.next().await {
        bytes.extend_from_slice(&part?);
        if bytes.len() as u64 > most {
            return Ok(None);
        }
    }
    Ok(Some(bytes))
}

/// Returns the owner of files: the container's user if numeric, otherwise root.
fn owner_of(user: Option<&str>) -> (u64, u64) {
    let Some(user) = user else { return (0, 0) };
    let (uid, gid) = user.split_once(':').unwrap_or((user, "0"));
    (uid.parse().unwrap_or(0), gid.parse().unwrap_or(0))
}

/// Bytes of a block of a tar.
const BLOCK: usize = 512;

/// Creates a tar of world-writable directories and of files, relative to `root`.
fn files_tar(
    folders: &[String],
    root: &str,
    files: &[&ContainerFile],
    owner: (u64, u64),
) -> std::io::Result<Vec<u8>> {
    let bytes: usize = files.iter().map(|file| file.bytes.len() + 2 * BLOCK).sum();
    let mut tar = tar::Builder::new(Vec::with_capacity(bytes + (folders.len() + 2) * BLOCK));
    let header = |mode: u32, size: u64, kind: tar::EntryType| {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(kind);
        header.set_mode(mode);
        header.set_uid(owner.0);
        header.set_gid(owner.1);
        header.set_mtime(0);
        header.set_size(size);
        header
    };
    let inside = |path: &str| path.strip_prefix(root).unwrap_or(path).trim_start_matches('/').to_owned();
    for folder in folders {
        tar.append_data(&mut header(0o1777, 0, tar::EntryType::Directory), inside(folder), std::io::empty())?;
    }
    for file in files {
        let mut header = header(file.mode, file.bytes.len() as u64, tar::EntryType::Regular);
        tar.append_data(&mut header, inside(&file.path), file.bytes.as_ref())?;
    }
    tar.into_inner()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owner_of_returns_a_numeric_user() {
        assert_eq!(owner_of(Some("1000:1001")), (1000, 1001));
        assert_eq!(owner_of(Some("1000")), (1000, 0));
        assert_eq!(owner_of(Some("dev")), (0, 0));
        assert_eq!(owner_of(None), (0, 0));
    }

    #[test]
    fn files_tar_is_relative_with_open_directories() {
        let file = ContainerFile { path: "/in/a".to_owned(), mode: 0o600, bytes: Bytes::from_static(b"x") };
        let listing = |bytes: &[u8]| -> Vec<_> {
            let mut archive = tar::Archive::new(bytes);
            let entries = archive.entries().unwrap().map(Result::unwrap);
            let entry = |entry: tar::Entry<'_, &[u8]>| {
                let (mode, uid) = (entry.header().mode().unwrap(), entry.header().uid().unwrap());
                (entry.path().unwrap().display().to_string(), mode, uid)
            };
            entries.map(entry).collect()
        };
        let whole = files_tar(&["/in".to_owned()], "/", &[&file], (5, 6)).unwrap();
        assert_eq!(listing(&whole), [("in".to_owned(), 0o1777, 5), ("in/a".to_owned(), 0o600, 5)]);
        let below = files_tar(&[], "/in", &[&file], (5, 6)).unwrap();
        assert_eq!(listing(&below), [("a".to_owned(), 0o600, 5)]);
    }

    #[tokio::test]
    async fn endless_file_of_a_container_is_read_up_to_the_bound() {
        let part = || Ok::<_, std::convert::Infallible>(Bytes::from_static(b"12345"));
        assert_eq!(joined(futures_util::stream::repeat_with(part), 1000).await, Ok(None));
        let two = || futures_util::stream::iter([part(), part()]);
        assert_eq!(joined(two(), 10).await, Ok(Some(b"1234512345".to_vec())));
        assert_eq!(joined(two(), 9).await, Ok(None));
    }
}
