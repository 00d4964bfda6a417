//! Docker's images.
//!
//! Never forces a removal: an image with another tag or a container stays.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use async_trait::async_trait;
use bollard::query_parameters::{ListImagesOptionsBuilder, RemoveImageOptions, TagImageOptionsBuilder};
use camino::Utf8PathBuf;

use super::inspect::image_info;
use super::layered::LayeredImage;
use super::load_layers::load_layers;
use super::names::split_tag;
use super::progress::{ProgressStep, TransferProgress, upload};
use super::types::{Images, PullRequest};
use crate::engine::archive_file::write_archive;
use crate::engine::cleanup::{finish_on_a_thread, retry_while_unavailable};
use crate::engine::container::files::read_paths;
use crate::engine::docker::Docker;
use crate::engine::error::EngineError;
use crate::engine::sent_file::{Comparison, Refusal, compare, compared};
use crate::engine::transport::classify_error::{is_absent, is_incomplete, is_null, refused};
use crate::engine::transport::login::login;
use crate::engine::transport::messages::{Post, Progress, archive_headers, empty};
use crate::model::image::info::ImageInfo;
use crate::model::image_digest::Digest;
use crate::registry::Credential;
use crate::report::Reporter;

#[async_trait]
impl Images for Docker {
    async fn image(&self, reference: &str) -> Result<Option<ImageInfo>, EngineError> {
        let during = format!("inspecting image `{reference}`");
        let image = match self.daemon.client.inspect_image(reference).await {
            Ok(image) => image,
            Err(error) if is_absent(&error) => return Ok(None),
            // containerd's store has images without their blobs: pulled for another processor, or cut.
            Err(error) if self.info.keeps_blobs && is_incomplete(&error) => {
                let text = "it has only a part of this image: pull or load it again";
                return Err(refused(&during, text));
            }
            Err(error) => return Err(self.daemon.fault(&during, error)),
        };
        // By id: the tag may move between the two requests.
        let id = image.id.clone().unwrap_or_default();
        match self.daemon.client.image_history(&id).await {
            Ok(history) => Ok(Some(image_info(image, history))),
            Err(error) if is_absent(&error) => Ok(None),
            Err(error) if self.info.keeps_blobs && is_null(&error) => Ok(Some(image_info(image, Vec::new()))),
            Err(error) => Err(self.daemon.fault(&during, error)),
        }
    }

    async fn images(&self, label: &str) -> Result<Vec<ImageInfo>, EngineError> {
        let filters = HashMap::from([("label", vec![label])]);
        let options = ListImagesOptionsBuilder::new().filters(&filters).build();
        let found = self.daemon.client.list_images(Some(options)).await;
        let found = found.map_err(|error| self.daemon.fault("listing images", error))?;
        let mut all = Vec::new();
        for summary in found {
            // An image removed in the meantime is absent.
            match self.image(&summary.id).await {
                Err(error) if self.info.keeps_blobs => {
                    tracing::warn!(image = summary.id, %error, "leaving out an image");
                }
                found => all.extend(found?),
            }
        }
        Ok(all)
    }

    async fn tag(&self, image: &str, tag: &str) -> Result<(), EngineError> {
        let (name, version) = split_tag(tag);
        let options = TagImageOptionsBuilder::new().repo(name).tag(version.unwrap_or("latest")).build();
        self.daemon.client.tag_image(image, Some(options)).await.map_err(|error| {
            if is_absent(&error) {
                EngineError::NoSuchImage { reference: image.to_owned() }
            } else {
                self.daemon.fault(&format!("tagging `{image}` as `{tag}`"), error)
            }
        })
    }

    async fn remove_image(&self, reference: &str) -> Result<(), EngineError> {
        match self.daemon.client.remove_image(reference, None::<RemoveImageOptions>, None).await {
            Ok(_) => Ok(()),
            Err(error) if is_absent(&error) => Ok(()),
            Err(error) => Err(self.daemon.fault(&format!("removing image `{reference}`"), error)),
        }
    }

    fn discard_image(&self, reference: &str) {
        let (docker, reference) = (self.clone(), reference.to_owned());
        finish_on_a_thread(async move {
            if let Err(error) = retry_while_unavailable(|| docker.remove_image(&reference)).await {
                tracing::warn!(%reference, %error, "cannot remove image");
            }
        });
    }

    async fn pull(&self, pull: PullRequest, reporter: Arc<dyn Reporter>) -> Result<ImageInfo, EngineError> {
        let reference = pull.reference.as_str();
        let (id, text) = (format!("pull:{reference}"), format!("pull {reference}"));
        let step = ProgressStep::begin(reporter.as_ref(), id, text);
        let mut query = vec![("fromImage", reference)];
        // Without a tag the daemon would pull every tag of the name.
        if !reference.contains('@') && split_tag(reference).1.is_none() {
            query.push(("tag", "latest"));
        }
        if pull.machine != self.info.machine {
            query.push(("platform", pull.machine.platform()));
        }
        let mut progress = TransferProgress::default();
        let post = Post {
            during: &format!("the pull of `{reference}`"),
            path: self.daemon.path("/images/create", &query),
            headers: login(pull.credential.as_ref()),
            body: empty(),
        };
        let followed = self.daemon.follow(post, |message| {
            if let Some((done, total)) = progress.update(message) {
                step.progress(done, Some(total));
            }
        });
        let result = match followed.await {
            Ok(()) => created_image(self, reference).await,
            Err(error) => Err(of_registry(error)),
        };
        step.end(result)
    }

    async fn push(
        &self,
        reference: &str,
        credential: Option<&Credential>,
        reporter: Arc<dyn Reporter>,
    ) -> Result<Digest, EngineError> {
        let (id, text) = (format!("push:{reference}"), format!("push {reference}"));
        let step = ProgressStep::begin(reporter.as_ref(), id, text);
        let (name, tag) = split_tag(reference);
        let during = format!("the push of `{reference}`");
        let post = Post {
            during: &during,
            path: self.daemon.path(&format!("/images/{name}/push"), &[("tag", tag.unwrap_or("latest"))]),
            headers: login(credential),
            body: empty(),
        };
        let (mut progress, mut digest) = (TransferProgress::default(), None);
        let followed = self.daemon.follow(post, |message| {
            digest = pushed_digest(message).or(digest.take());
            if let Some((done, total)) = progress.update(message) {
                step.progress(done, Some(total));
            }
        });
        let result = followed.await.map_err(of_registry);
        let unnamed = || EngineError::Lost {
            during: during.clone(),
            cause: "the engine returned no digest".to_owned(),
        };
        step.end(result.and_then(|()| digest.ok_or_else(unnamed)))
    }

    async fn import(
        &self,
        archive: Utf8PathBuf,
        sha256: &str,
        tag: &str,
        reporter: Arc<dyn Reporter>,
    ) -> Result<ImageInfo, EngineError> {
        let refusal = Refusal::default();
        let comparison = Comparison::new(&archive, sha256, &refusal);
        let id = format!("import:{tag}");
        let step = ProgressStep::begin(reporter.as_ref(), id.clone(), format!("import {tag}"));
        let pieces = upload(&archive, id, Arc::clone(&reporter)).await?;
        let body = bollard::body_try_stream(compared(pieces, comparison));
        // Podman 4 takes the tag from the name alone.
        let query = [("fromSrc", "-"), ("repo", tag)];
        let during = format!("the import of `{archive}`");
        let path = self.daemon.path("/images/create", &query);
        let post = Post { during: &during, path, headers: archive_headers(), body };
        let mut created = None;
        let followed = self.daemon.follow(post, |message| {
            let id = message.status.clone().filter(|status| status.starts_with("sha256:"));
            created = id.or(created.take());
        });
        let followed = followed.await.map_err(|error| refusal.or(error));
        let followed = match followed {
            Ok(()) if !refusal.has_whole_file() => compare(&archive, sha256).await,
            followed => followed,
        };
        let result = match followed {
            Err(error) => Err(error),
            Ok(()) => match created {
                Some(id) => created_image(self, &id).await,
                None => Err(EngineError::Lost { during, cause: "the engine returned no image".to_owned() }),
            },
        };
        step.end(result)
    }

    async fn save(&self, image: &str, archive: Utf8PathBuf) -> Result<(), EngineError> {
        let parts = self.daemon.client.export_image(image);
        write_archive(&self.daemon, &archive, &format!("exporting image `{image}`"), parts).await
    }

    async fn load_layers(
        &self,
        image: LayeredImage,
        reporter: Arc<dyn Reporter>,
    ) -> Result<ImageInfo, EngineError> {
        let tag = image.scratch_tag.clone();
        load_layers(self, image, reporter).await?;
        created_image(self, &tag).await
    }

    async fn read_files(
        &self,
        image: &str,
        paths: &[&str],
        most: u64,
    ) -> Result<BTreeMap<String, Vec<u8>>, EngineError> {
        read_paths(&self.daemon, image, paths, most).await
    }
}

/// Returns the image that a request has just created.
pub(in crate::engine) async fn created_image(
    docker: &Docker,
    reference: &str,
) -> Result<ImageInfo, EngineError> {
    let absent = || EngineError::NoSuchImage { reference: reference.to_owned() };
    docker.image(reference).await?.ok_or_else(absent)
}

/// Returns the digest of the last line of a push: `TAG: digest: sha256:… size: N`.
fn pushed_digest(message: &Progress) -> Option<Digest> {
    let (_, rest) = message.status.as_deref()?.split_once(": digest: ")?;
    rest.split_whitespace().next()?.parse().ok()
}

/// Marks a refusal as the registry's, as opposed to the engine's own.
fn of_registry(error: EngineError) -> EngineError {
    match error {
        EngineError::Refused { during, text } => EngineError::Registry { during, text },
        error => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pushed_digest_parses_the_last_line() {
        let status = |text: &str| -> Progress {
            serde_json::from_value(serde_json::json!({ "status": text })).expect("a message")
        };
        let digest = Digest::of(b"x");
        assert_eq!(pushed_digest(&status(&format!("2.8: digest: {digest} size: 1570"))), Some(digest));
        assert_eq!(pushed_digest(&status("The push refers to repository [box/a]")), None);
    }
}
