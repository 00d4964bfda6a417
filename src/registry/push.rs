//! An image into a registry: its blobs, several at a time, then its manifest, by digest and under its tags.
#![expect(clippy::disallowed_methods, reason = "times its steps")]

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};

use super::blob::Blob;
use super::client::Registry;
use super::client_session::{RepositorySession, TokenScope};
use super::error::RegistryError;
use super::retry::RetryPolicy;
use super::upload::{BlobOrigin, upload_blob};
use crate::fetch::Transfer;
use crate::model::image::manifest::BlobDescriptor;
use crate::model::image_digest::Digest;
use crate::model::image_ref::ImageRef;
use crate::report::{Event, Reporter};

/// Uploads at a time. Each holds some pieces of its blob.
const AT_A_TIME: usize = 4;

/// A document of a manifest.
pub struct ManifestDocument<'a> {
    /// Its media type.
    pub media_type: &'a str,
    /// Its bytes.
    pub bytes: Bytes,
}

impl Registry {
    /// Brings blobs into the repository of an image. Returns their descriptors in order, and how they came there.
    pub async fn push_blobs(
        &self,
        image: &ImageRef,
        blobs: &[Blob],
        reporter: &Arc<dyn Reporter>,
    ) -> Result<Vec<(BlobDescriptor, BlobOrigin)>, RegistryError> {
        let session = self.upload_session(image)?;
        let (Some(first), rest) = (blobs.first(), blobs.get(1..).unwrap_or_default()) else {
            return Ok(Vec::new());
        };
        // The first one logs in; the others use its token.
        let (session, first) = push_blob(session, first, reporter).await?;
        let others = stream::iter(rest).map(|blob| push_blob(session.clone(), blob, reporter));
        let others = others.buffered(AT_A_TIME).map_ok(|(_, pushed)| pushed);
        let others: Vec<_> = others.try_collect().await?;
        Ok(std::iter::once(first).chain(others).collect())
    }

    /// Whether the repository of an image has a blob.
    pub async fn has_blob(&self, image: &ImageRef, blob: &BlobDescriptor) -> Result<bool, RegistryError> {
        self.session(image, TokenScope::Push, RetryPolicy::NEEDED)?.has_blob(blob).await
    }

    /// Puts the manifest of an image under its digest, then under each tag. The repository must have what it names.
    pub async fn put_manifest(
        &self,
        image: &ImageRef,
        manifest: &ManifestDocument<'_>,
        tags: &[&str],
    ) -> Result<Digest, RegistryError> {
        let digest = Digest::of(&manifest.bytes);
        let mut session = self.upload_session(image)?;
        for reference in std::iter::once(digest.as_str()).chain(tags.iter().copied()) {
            let path = format!("manifests/{reference}");
            let answer = session.put(&path, manifest.media_type, manifest.bytes.clone()).await?;
            session.same_digest(&answer, &digest)?;
        }
        Ok(digest)
    }

    fn upload_session<'a>(&'a self, image: &'a ImageRef) -> Result<RepositorySession<'a>, RegistryError> {
        let session = self.session(image, TokenScope::Push, RetryPolicy::NEEDED)?;
        session.for_uploads()
    }
}

/// One blob, as a step of the report.
async fn push_blob<'a>(
    session: RepositorySession<'a>,
    blob: &Blob,
    reporter: &Arc<dyn Reporter>,
) -> Result<(RepositorySession<'a>, (BlobDescriptor, BlobOrigin)), RegistryError> {
    let id = format!("push:{}:{}", session.image(), blob.title);
    let started = Instant::now();
    reporter.report(Event::StepStarted { id: id.clone(), text: format!("push {}", blob.title) });
    let total = blob.known.as_ref().map(|known| known.size);
    let transfer = Transfer::new(Arc::clone(reporter), &id, total);
    let result = upload_blob(session, blob, transfer).await;
    reporter.report(match &result {
        Ok((_, (_, origin))) => Event::StepFinished {
            id,
            cached: *origin != BlobOrigin::Sent,
            seconds: started.elapsed().as_secs_f64(),
        },
        Err(error) => Event::StepFailed { id, text: error.to_string() },
    });
    result
}
