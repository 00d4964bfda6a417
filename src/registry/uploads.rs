//! The requests of an upload: a blob looked for, taken over from another repository, begun, asked after, finished, given up.

use std::time::Duration;

use http::{Method, StatusCode};

use super::client_session::RepositorySession;
use super::error::RegistryError;
use super::upload_location::{upload_location, uploaded};
use crate::fetch::HttpResponse;
use crate::model::address::Address;
use crate::model::image::manifest::BlobDescriptor;
use crate::model::image_digest::Digest;

/// A registry may copy a large blob when its upload is finished.
const FINISHING: Duration = Duration::from_mins(10);

/// What came of the request for a blob of another repository.
pub(super) enum Mount {
    /// The repository has it now.
    Done,
    /// The registry began an upload instead.
    Upload(Address),
    /// Neither.
    No,
}

impl RepositorySession<'_> {
    /// Whether the repository has a blob.
    pub(super) async fn has_blob(&mut self, blob: &BlobDescriptor) -> Result<bool, RegistryError> {
        let path = format!("blobs/{}", blob.digest);
        let answer = self.answer(self.ask(Method::HEAD, self.below(&path))).await?;
        match answer.status {
            status if status.is_success() => self.same_digest(&answer, &blob.digest).map(|()| true),
            StatusCode::NOT_FOUND => Ok(false),
            _ => Err(self.refused(&answer)),
        }
    }

    /// Has the registry take over a blob from another of its repositories. What it says against it counts for nothing: then
    /// the blob is uploaded.
    pub(super) async fn mount(&mut self, digest: &Digest, from: &str) -> Result<Mount, RegistryError> {
        let fields = [("mount", digest.as_str()), ("from", from)];
        let asked = self.below("blobs/uploads/").with_query(&fields);
        let answer = match self.answer(self.ask(Method::POST, asked.clone())).await {
            Err(error) if !error.is_unreachable() => {
                tracing::debug!(%error, from, "not mounted");
                return Ok(Mount::No);
            }
            answer => answer?,
        };
        match answer.status {
            StatusCode::CREATED => self.same_digest(&answer, digest).map(|()| Mount::Done),
            StatusCode::ACCEPTED => self.location(&asked, &answer).map(Mount::Upload),
            status => {
                tracing::debug!(%status, from, "not mounted");
                Ok(Mount::No)
            }
        }
    }

    /// Begins an upload.
    pub(super) async fn begin_upload(&mut self) -> Result<Address, RegistryError> {
        // The slash at the end is part of the API.
        let asked = self.below("blobs/uploads/");
        let answer = self.answer(self.ask(Method::POST, asked.clone())).await?;
        match answer.status {
            status if status.is_success() => self.location(&asked, &answer),
            StatusCode::NOT_FOUND => Err(RegistryError::NoRepository {
                registry: self.image().registry().to_owned(),
                repository: self.image().repository().to_owned(),
            }),
            _ => Err(self.refused(&answer)),
        }
    }

    /// Where an upload goes on, and after how many bytes; `None`: the registry forgot it.
    pub(super) async fn upload_status(
        &mut self,
        upload: &Address,
    ) -> Result<Option<(Address, u64)>, RegistryError> {
        let answer = self.answer(self.ask(Method::GET, upload.clone())).await?;
        if answer.status.is_server_error() || answer.status == StatusCode::TOO_MANY_REQUESTS {
            return Err(self.refused(&answer));
        }
        let bytes = uploaded(answer.header("range")).filter(|_| answer.status.is_success());
        let Some(bytes) = bytes else { return Ok(None) };
        let next = match answer.header("location") {
            Some(_) => self.location(upload, &answer)?,
            None => upload.clone(),
        };
        Ok(Some((next, bytes)))
    }

    /// Ends an upload: the registry compares the digest with what it has.
    pub(super) async fn finish_upload(
        &mut self,
        upload: &Address,
        digest: &Digest,
    ) -> Result<HttpResponse, RegistryError> {
        let mut ask = self.ask(Method::PUT, upload.with_query(&[("digest", digest.as_str())]));
        (ask.once, ask.patience) = (true, FINISHING);
        let answer = self.answer(ask).await?;
        if answer.status.is_success() {
            self.same_digest(&answer, digest)?;
        }
        Ok(answer)
    }

    /// Gives an upload up. A registry drops abandoned ones in time, so that a failure is none.
    pub(super) async fn cancel_upload(&mut self, upload: &Address) {
        if let Err(error) = self.answer(self.ask(Method::DELETE, upload.clone())).await {
            tracing::debug!(%error, "cannot cancel an upload");
        }
    }

    /// Where an answer says that an upload goes on.
    pub(super) fn location(&self, asked: &Address, answer: &HttpResponse) -> Result<Address, RegistryError> {
        upload_location(asked, answer.header("location"))
            .map_err(|why| RegistryError::Location { registry: self.image().registry().to_owned(), why })
    }

    /// An error if the registry names another digest than the one it was asked for.
    pub(super) fn same_digest(&self, answer: &HttpResponse, wanted: &Digest) -> Result<(), RegistryError> {
        let said = answer.header("docker-content-digest").and_then(|text| text.parse::<Digest>().ok());
        match said.filter(|said| said != wanted) {
            None => Ok(()),
            Some(found) => Err(RegistryError::WrongDigest {
                registry: self.image().registry().to_owned(),
                reference: self.image().to_string(),
                wanted: wanted.clone(),
                found,
            }),
        }
    }
}
