//! Runs a throwaway container: put files in, attach, start, wait, collect.

use std::collections::BTreeMap;

use bollard::container::LogOutput;
use bollard::errors::Error;
use bollard::query_parameters::{
    AttachContainerOptionsBuilder, DownloadFromContainerOptionsBuilder, UploadToContainerOptionsBuilder,
};
use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt};

use super::connect::Daemon;
use super::container::{Container, folder_of, sandbox_volumes};
use super::images::is_absent;
use super::stream::Lines;
use super::{ContainerFile, EngineError, Network, RunOutcome, RunRequest};
use crate::report::{Event, Reporter};

impl Daemon {
    /// Runs a container to its end and removes it.
    pub(super) async fn run(
        &self,
        request: &RunRequest,
        reporter: &dyn Reporter,
    ) -> Result<RunOutcome, EngineError> {
        let container = Container::create(self, request).await?;
        let outcome = self.run_in(&container, request, reporter).await?;
        container.remove().await?;
        Ok(outcome)
    }

    /// Reads files of an image through a container that is never started.
    pub(super) async fn read_files(
        &self,
        image: &str,
        paths: &[&str],
    ) -> Result<BTreeMap<String, Vec<u8>>, EngineError> {
        let command = vec!["/never-started".to_owned()];
        let request =
            RunRequest { image: image.to_owned(), command, network: Network::None, ..RunRequest::default() };
        let container = Container::create(self, &request).await?;
        let mut found = BTreeMap::new();
        for path in paths {
            if let Some(tar) = self.collect(&container, path).await? {
                found.insert((*path).to_owned(), tar);
            }
        }
        container.remove().await?;
        Ok(found)
    }

    /// Runs a created container to its end and leaves it there.
    pub(super) async fn run_in(
        &self,
        container: &Container,
        request: &RunRequest,
        reporter: &dyn Reporter,
    ) -> Result<RunOutcome, EngineError> {
        self.put_files(container, request).await?;
        let options = AttachContainerOptionsBuilder::new().stream(true).stdout(true).stderr(true).build();
        // Attached before the start, so that no output is lost.
        let attached = self.client.attach_container(&container.name, Some(options)).await;
        let output = attached.map_err(|error| self.fault("attaching to a container", error))?.output;
        let during = format!("starting `{}`", request.command.join(" "));
        self.client
            .start_container(&container.name, None)
            .await
            .map_err(|error| self.fault(&during, error))?;

        let mut outcome = RunOutcome::default();
        let read = self.read_output(output, &mut outcome, request.report_as.as_deref(), reporter);
        let ((), code) = tokio::try_join!(read, self.wait(container))?;
        outcome.code = code;
        for path in &request.collect {
            if let Some(tar) = self.collect(container, path).await? {
                outcome.collected.insert(path.clone(), tar);
            }
        }
        Ok(outcome)
    }

    async fn put_files(&self, container: &Container, request: &RunRequest) -> Result<(), EngineError> {
        let owner = owner_of(request.user.as_deref());
        let volumes = sandbox_volumes(request);
        let lent = |file: &&ContainerFile| volumes.iter().any(|volume| folder_of(&file.path) == volume);
        let (fed, own): (Vec<_>, Vec<_>) = request.files.iter().partition(lent);
        if let Some(feeder) = &container.feeder {
            self.put_tar(feeder, "/", files_tar(&volumes, "/", &[], owner)?).await?;
            // Podman finds a volume only by a path that begins in it.
            for volume in &volumes {
                let files: Vec<_> =
                    fed.iter().copied().filter(|file| folder_of(&file.path) == volume).collect();
                if !files.is_empty() {
                    self.put_tar(feeder, volume, files_tar(&[], volume, &files, owner)?).await?;
                }
            }
        }
        if request.sandbox {
            // What lies below a bind: the daemon takes it only at a path that is not of the read-only root.
            for file in own {
                let folder = folder_of(&file.path);
                self.put_tar(container, folder, files_tar(&[], folder, &[file], owner)?).await?;
            }
        } else if !own.is_empty() {
            self.put_tar(container, "/", files_tar(&[], "/", &own, owner)?).await?;
        }
        Ok(())
    }

    pub(super) async fn put_tar(
        &self,
        container: &Container,
        path: &str,
        tar: Vec<u8>,
    ) -> Result<(), EngineError> {
        let options = UploadToContainerOptionsBuilder::new().path(path).build();
        let body = bollard::body_full(Bytes::from(tar));
        let sent = self.client.upload_to_container(&container.name, Some(options), body).await;
        sent.map_err(|error| self.fault(&format!("putting files into `{path}` of a container"), error))
    }

    async fn read_output(
        &self,
        mut output: impl futures_util::Stream<Item = Result<LogOutput, Error>> + Unpin,
        outcome: &mut RunOutcome,
        report_as: Option<&str>,
        reporter: &dyn Reporter,
    ) -> Result<(), EngineError> {
        let report = |line: String| {
            if let Some(id) = report_as {
                reporter.report(Event::StepOutput { id: id.to_owned(), line });
            }
        };
        let mut lines = Lines::default();
        while let Some(part) = output.next().await {
            match part.map_err(|error| self.fault("reading a container's output", error))? {
                LogOutput::StdErr { message } => {
                    outcome.stderr.extend_from_slice(&message);
                    lines.push(&message).into_iter().for_each(&report);
                }
                other => outcome.stdout.extend_from_slice(&other.into_bytes()),
            }
        }
        lines.finish().into_iter().for_each(report);
        Ok(())
    }

    /// The exit code. Asked after the start, when `not-running` cannot be true too early.
    async fn wait(&self, container: &Container) -> Result<i64, EngineError> {
        self.wait_for(&container.name, "waiting for a container").await
    }

    /// The exit code of a container that was started.
    pub(super) async fn wait_for(&self, name: &str, during: &str) -> Result<i64, EngineError> {
        // bollard sends nothing before the first poll, and gives a code other than 0 as an error.
        match std::pin::pin!(self.client.wait_container(name, None)).next().await {
            Some(Ok(answer)) => Ok(answer.status_code),
            Some(Err(Error::DockerContainerWaitError { error, code })) if error.is_empty() => Ok(code),
            Some(Err(error)) => Err(self.fault(during, error)),
            None => Err(EngineError::Lost {
                during: during.to_owned(),
                cause: "the answer ended too early".to_owned(),
            }),
        }
    }

    pub(super) async fn collect(
        &self,
        container: &Container,
        path: &str,
    ) -> Result<Option<Vec<u8>>, EngineError> {
        let options = DownloadFromContainerOptionsBuilder::new().path(path).build();
        let parts = self.client.download_from_container(&container.name, Some(options));
        let tar = parts.try_fold(Vec::new(), |mut tar, part| async move {
            tar.extend_from_slice(&part);
            Ok(tar)
        });
        match tar.await {
            Ok(tar) => Ok(Some(tar)),
            Err(error) if is_absent(&error) => Ok(None),
            Err(error) => Err(self.fault(&format!("collecting `{path}` from a container"), error)),
        }
    }
}

/// Files belong to the container's user where that is given in numbers, else to root.
fn owner_of(user: Option<&str>) -> (u64, u64) {
    let Some(user) = user else { return (0, 0) };
    let (uid, gid) = user.split_once(':').unwrap_or((user, "0"));
    (uid.parse().unwrap_or(0), gid.parse().unwrap_or(0))
}

/// A tar of folders that all may write to and of files, relative to `root`.
fn files_tar(
    folders: &[String],
    root: &str,
    files: &[&ContainerFile],
    owner: (u64, u64),
) -> std::io::Result<Vec<u8>> {
    let mut tar = tar::Builder::new(Vec::new());
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
    fn files_belong_to_the_user_they_are_for() {
        assert_eq!(owner_of(Some("1000:1001")), (1000, 1001));
        assert_eq!(owner_of(Some("1000")), (1000, 0));
        assert_eq!(owner_of(Some("dev")), (0, 0));
        assert_eq!(owner_of(None), (0, 0));
    }

    #[test]
    fn a_tar_is_relative_to_its_root_and_opens_its_folders() {
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
}
