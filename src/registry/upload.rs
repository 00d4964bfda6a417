//! One blob into a repository: not at all where the registry has it, else sent as it is made, resumed after an interruption.

use std::time::Duration;

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use secrecy::ExposeSecret as _;

use super::blob::{Blob, Sent, pieces_of};
use super::client_session::RepositorySession;
use super::error::RegistryError;
use super::uploads::Mount;
use crate::fetch::{FetchError, HttpResponse, Transfer, Upload};
use crate::model::address::Address;
use crate::model::image::manifest::BlobDescriptor;

/// The longest time without progress.
const SILENCE: Duration = Duration::from_mins(2);
/// Repositories that are asked for a blob.
const MOUNTS: usize = 3;

/// How a repository came by a blob.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlobOrigin {
    /// It had it.
    Present,
    /// The registry took it over from another repository.
    Mounted,
    /// It was sent.
    Sent,
}

/// Why an attempt did not end the upload.
enum Setback {
    /// The token had expired and is renewed.
    Renewed,
    /// The registry does not know the upload any more.
    Forgotten(RegistryError),
    /// Another attempt may do it.
    Passing(RegistryError),
    /// No attempt will.
    Final(RegistryError),
}

impl From<RegistryError> for Setback {
    fn from(error: RegistryError) -> Self {
        if error.is_transient() { Self::Passing(error) } else { Self::Final(error) }
    }
}

/// Brings a blob into the repository of a session. Returns the session, logged in if that was necessary.
pub(super) async fn upload_blob<'a>(
    session: RepositorySession<'a>,
    blob: &Blob,
    transfer: Transfer,
) -> Result<(RepositorySession<'a>, (BlobDescriptor, BlobOrigin)), RegistryError> {
    let mut uploading = Uploading {
        session,
        blob,
        sent: Sent::new(transfer),
        upload: None,
        complete: None,
        renewed_at: None,
    };
    if let Some(known) = &blob.known {
        if uploading.session.has_blob(known).await? {
            return Ok((uploading.session, (known.clone(), BlobOrigin::Present)));
        }
        for from in blob.mount_from.iter().take(MOUNTS) {
            match uploading.session.mount(&known.digest, from).await? {
                Mount::Done => return Ok((uploading.session, (known.clone(), BlobOrigin::Mounted))),
                Mount::Upload(upload) => {
                    uploading.upload = Some((upload, 0));
                    break;
                }
                Mount::No => {}
            }
        }
    }
    let sent = uploading.run().await?;
    Ok((uploading.session, (sent, BlobOrigin::Sent)))
}

/// An upload on its way.
struct Uploading<'a, 'b> {
    session: RepositorySession<'a>,
    blob: &'b Blob,
    sent: Sent,
    /// Where it goes on, and the bytes that the registry has.
    upload: Option<(Address, u64)>,
    /// The blob, once all of it was sent.
    complete: Option<BlobDescriptor>,
    /// The bytes that the registry had when the token was renewed last.
    renewed_at: Option<u64>,
}

impl Uploading<'_, '_> {
    async fn run(&mut self) -> Result<BlobDescriptor, RegistryError> {
        let (mut pauses, mut most) = (self.session.fetch().pauses(), 0);
        loop {
            let setback = match self.attempt().await {
                Ok(blob) => return Ok(blob),
                Err(setback) => setback,
            };
            let error = match setback {
                Setback::Renewed => None,
                Setback::Passing(error) => Some(error),
                Setback::Forgotten(error) => {
                    self.upload = None;
                    Some(error)
                }
                Setback::Final(error) => {
                    self.cancel().await;
                    return Err(error);
                }
            };
            if let Some(error) = error {
                let Some(pause) = pauses.next() else {
                    self.cancel().await;
                    return Err(error);
                };
                let seconds = pause.as_secs_f64();
                tracing::debug!(%error, "the upload of {} was interrupted, retrying in {seconds:.1} s", self.blob.title);
                tokio::time::sleep(pause.max(Duration::from_secs(error.requested_wait()))).await;
            }
            if self.ask_where().await? > most {
                // The registry keeps what it gets: this goes on for as long as it takes.
                most = self.upload.as_ref().map_or(0, |(_, bytes)| *bytes);
                pauses = self.session.fetch().pauses();
            }
        }
    }

    /// Asks the registry what it has of the upload; returns the bytes. Of one that is of no use another is begun.
    async fn ask_where(&mut self) -> Result<u64, RegistryError> {
        if let Some((upload, _)) = self.upload.take() {
            let sent = self.sent.bytes();
            self.upload = self.session.upload_status(&upload).await?.filter(|(_, bytes)| *bytes <= sent);
            if self.upload.is_none() {
                self.session.cancel_upload(&upload).await;
            }
        }
        let bytes = self.upload.as_ref().map_or(0, |(_, bytes)| *bytes);
        self.sent.restart_at(bytes);
        Ok(bytes)
    }

    async fn attempt(&mut self) -> Result<BlobDescriptor, Setback> {
        if let Some(complete) = &self.complete
            && self.session.has_blob(complete).await?
        {
            // The answer to the end of the upload was lost.
            return Ok(complete.clone());
        }
        let (upload, from) = match self.upload.clone() {
            Some(upload) => upload,
            None => (self.session.begin_upload().await?, 0),
        };
        self.upload = Some((upload.clone(), from));
        let blob = match self.complete.clone().filter(|complete| complete.size == from) {
            Some(complete) => complete,
            None => self.send(&upload, from).await?,
        };
        let (upload, _) = self.upload.clone().expect("it was begun");
        let answer = self.session.finish_upload(&upload, &blob.digest).await?;
        self.accepted(&answer).await?;
        Ok(blob)
    }

    /// Sends what the registry lacks.
    async fn send(&mut self, upload: &Address, from: u64) -> Result<BlobDescriptor, Setback> {
        let (pieces, writer) = pieces_of(self.blob.content.clone(), from, self.sent.clone());
        let mut headers = HeaderMap::new();
        if let Some(login) = self.session.login_for(upload) {
            let value = HeaderValue::from_str(login.expose_secret());
            headers.extend(value.ok().map(|mut value| {
                value.set_sensitive(true);
                (AUTHORIZATION, value)
            }));
        }
        let request =
            Upload { method: Method::PATCH, address: upload.clone(), headers, pieces, silence: SILENCE };
        let answer = self.session.fetch().upload(request).await;
        let written = writer.await.map_err(|error| self.unreadable(std::io::Error::other(error)))?;
        let blob = match written {
            Ok(blob) => Some(blob),
            // The request ended before everything was sent: its answer says why.
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => None,
            Err(error) => return Err(self.unreadable(error)),
        };
        let answer = answer.map_err(|source| self.interrupted(source))?;
        self.accepted(&answer).await?;
        let Some(blob) = blob else {
            let cause = "the registry accepted the upload before its end".to_owned();
            return Err(self.interrupted(FetchError::Upload { address: upload.clone(), cause }));
        };
        if let Some(known) = self.blob.known.as_ref().filter(|known| **known != blob) {
            let (title, wanted) = (self.blob.title.clone(), known.digest.clone());
            return Err(Setback::Final(RegistryError::OtherBlob { title, wanted, found: blob.digest }));
        }
        let next = match answer.header("location") {
            Some(_) => self.session.location(upload, &answer)?,
            None => upload.clone(),
        };
        self.upload = Some((next, blob.size));
        self.complete = Some(blob.clone());
        Ok(blob)
    }

    /// What the answer to a part of an upload means.
    async fn accepted(&mut self, answer: &HttpResponse) -> Result<(), Setback> {
        let from = self.upload.as_ref().map_or(0, |(_, bytes)| *bytes);
        match answer.status {
            status if status.is_success() => Ok(()),
            status if status.is_redirection() => {
                let registry = self.session.image().registry().to_owned();
                let why = "it redirects the body of an upload";
                Err(Setback::Final(RegistryError::Location { registry, why }))
            }
            StatusCode::UNAUTHORIZED if self.renewed_at != Some(from) => {
                self.session.renew_login(answer).await?;
                self.renewed_at = Some(from);
                Err(Setback::Renewed)
            }
            StatusCode::NOT_FOUND | StatusCode::GONE | StatusCode::RANGE_NOT_SATISFIABLE => {
                Err(Setback::Forgotten(self.session.refused(answer)))
            }
            _ => Err(self.session.refused(answer).into()),
        }
    }

    fn interrupted(&self, source: FetchError) -> Setback {
        Setback::Passing(RegistryError::Interrupted {
            registry: self.session.image().registry().to_owned(),
            title: self.blob.title.clone(),
            source: Box::new(source),
        })
    }

    fn unreadable(&self, cause: std::io::Error) -> Setback {
        Setback::Final(RegistryError::Content { title: self.blob.title.clone(), cause })
    }

    async fn cancel(&mut self) {
        if let Some((upload, _)) = self.upload.take() {
            self.session.cancel_upload(&upload).await;
        }
    }
}
