//! Images of the daemon: look, tag, untag, import.
//!
//! Never forces a removal: an image that another tag or container holds stays.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use bollard::models::{CreateImageInfo, ImageHistoryResponseItem, ImageInspect};
use bollard::query_parameters::{
    CreateImageOptionsBuilder, ImportImageOptions, ListImagesOptionsBuilder, RemoveImageOptions,
    TagImageOptionsBuilder,
};
use bytes::Bytes;
use camino::Utf8Path;
use futures_util::{Stream, StreamExt, TryStreamExt};
use tokio_util::io::ReaderStream;

use super::connect::Daemon;
use super::{EngineError, ImageInfo};
use crate::report::{Event, Reporter};

/// Bytes read at once when an archive is sent.
const CHUNK: usize = 256 * 1024;
/// Bytes between two progress events.
const PROGRESS: u64 = 8 * 1024 * 1024;

/// A name with its tag apart: `debian:12` is `debian` and `12`; a port is no tag.
pub(super) fn split_tag(reference: &str) -> (&str, Option<&str>) {
    match reference.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') && !name.is_empty() => (name, Some(tag)),
        _ => (reference, None),
    }
}

/// A name as it was given: Podman writes out where Docker would look for it.
fn familiar(reference: &str) -> String {
    let name = reference.strip_prefix("docker.io/").unwrap_or(reference);
    name.strip_prefix("library/").unwrap_or(name).to_owned()
}

/// True if the error is the daemon's "there is none".
pub(super) fn is_absent(error: &bollard::errors::Error) -> bool {
    matches!(error, bollard::errors::Error::DockerResponseServerError { status_code: 404, .. })
}

impl Daemon {
    /// The image of that tag or id.
    pub(super) async fn image(&self, reference: &str) -> Result<Option<ImageInfo>, EngineError> {
        let during = format!("a look at image `{reference}`");
        let image = match self.client.inspect_image(reference).await {
            Ok(image) => image,
            Err(error) if is_absent(&error) => return Ok(None),
            Err(error) => return Err(self.fault(&during, error)),
        };
        // By id: the tag may move between the two questions.
        let id = image.id.clone().unwrap_or_default();
        match self.client.image_history(&id).await {
            Ok(history) => Ok(Some(image_info(image, history))),
            Err(error) if is_absent(&error) => Ok(None),
            Err(error) => Err(self.fault(&during, error)),
        }
    }

    /// The images that carry a label of that name.
    pub(super) async fn images(&self, label: &str) -> Result<Vec<ImageInfo>, EngineError> {
        let filters = HashMap::from([("label", vec![label])]);
        let options = ListImagesOptionsBuilder::new().filters(&filters).build();
        let found = self.client.list_images(Some(options)).await;
        let found = found.map_err(|error| self.fault("listing images", error))?;
        let mut all = Vec::new();
        for summary in found {
            // One that went meanwhile is not there any more.
            all.extend(self.image(&summary.id).await?);
        }
        Ok(all)
    }

    /// The image that an action just made.
    pub(super) async fn made_image(&self, reference: &str) -> Result<ImageInfo, EngineError> {
        let absent = || EngineError::NoSuchImage { reference: reference.to_owned() };
        self.image(reference).await?.ok_or_else(absent)
    }

    /// Puts a tag on an image.
    pub(super) async fn tag(&self, image: &str, tag: &str) -> Result<(), EngineError> {
        let (name, version) = split_tag(tag);
        let options = TagImageOptionsBuilder::new().repo(name).tag(version.unwrap_or("latest")).build();
        self.client.tag_image(image, Some(options)).await.map_err(|error| {
            if is_absent(&error) {
                EngineError::NoSuchImage { reference: image.to_owned() }
            } else {
                self.fault(&format!("tagging `{image}` as `{tag}`"), error)
            }
        })
    }

    /// Takes a tag off; the image goes with its last tag.
    pub(super) async fn remove_image(&self, reference: &str) -> Result<(), EngineError> {
        match self.client.remove_image(reference, None::<RemoveImageOptions>, None).await {
            Ok(_) => Ok(()),
            Err(error) if is_absent(&error) => Ok(()),
            Err(error) => Err(self.fault(&format!("removing image `{reference}`"), error)),
        }
    }

    /// Makes an image of one layer from a tar file.
    pub(super) async fn import(
        &self,
        archive: &Utf8Path,
        tag: &str,
        reporter: Arc<dyn Reporter>,
    ) -> Result<ImageInfo, EngineError> {
        let id = format!("import:{tag}");
        let step = Step::begin(reporter.as_ref(), id.clone(), format!("import {tag}"));
        let body = bollard::body_try_stream(upload(archive, id, Arc::clone(&reporter)).await?);
        let (name, version) = split_tag(tag);
        let options = CreateImageOptionsBuilder::new()
            .from_src("-")
            .repo(name)
            .tag(version.unwrap_or("latest"))
            .build();
        let messages = self.client.create_image(Some(options), Some(body), None);
        let mut made = None;
        let during = format!("the import of `{archive}`");
        let followed = self.follow(&during, messages, |message| {
            made = message.status.clone().filter(|status| status.starts_with("sha256:")).or(made.take());
        });
        let result = match followed.await {
            Err(error) => Err(error),
            Ok(()) => match made {
                Some(id) => self.made_image(&id).await,
                None => Err(EngineError::Lost { during, cause: "the engine named no image".to_owned() }),
            },
        };
        step.end(result)
    }

    /// Takes in the images of an archive, under the tags it names.
    pub(super) async fn load(
        &self,
        archive: &Utf8Path,
        reporter: Arc<dyn Reporter>,
    ) -> Result<(), EngineError> {
        let id = format!("load:{archive}");
        let step = Step::begin(reporter.as_ref(), id.clone(), "load the image".to_owned());
        let body = bollard::body_try_stream(upload(archive, id, Arc::clone(&reporter)).await?);
        let mut messages =
            std::pin::pin!(self.client.import_image(ImportImageOptions::default(), body, None));
        let mut result = Ok(());
        while let Some(message) = messages.next().await {
            if let Err(error) = message {
                result = Err(self.fault("loading an image", error));
                break;
            }
        }
        step.end(result)
    }

    /// Reads a message stream to its end; an error inside it is an error, whatever the status said.
    pub(super) async fn follow(
        &self,
        during: &str,
        messages: impl Stream<Item = Result<CreateImageInfo, bollard::errors::Error>>,
        mut each: impl FnMut(&CreateImageInfo),
    ) -> Result<(), EngineError> {
        let mut messages = std::pin::pin!(messages);
        while let Some(message) = messages.next().await {
            each(&message.map_err(|error| self.fault(during, error))?);
        }
        Ok(())
    }
}

/// A file as the body of a request; how much of it went is told under `id`.
async fn upload(
    archive: &Utf8Path,
    id: String,
    reporter: Arc<dyn Reporter>,
) -> std::io::Result<impl Stream<Item = std::io::Result<Bytes>> + use<>> {
    let file = fs_err::tokio::File::open(archive.as_std_path()).await?;
    let total = file.metadata().await?.len();
    let (mut done, mut told) = (0, 0);
    Ok(ReaderStream::with_capacity(file, CHUNK).inspect_ok(move |chunk| {
        done += chunk.len() as u64;
        if done - told >= PROGRESS || done == total {
            told = done;
            reporter.report(Event::StepProgress { id: id.clone(), done, total: Some(total) });
        }
    }))
}

fn image_info(image: ImageInspect, history: Vec<ImageHistoryResponseItem>) -> ImageInfo {
    let config = image.config.unwrap_or_default();
    let lines = history.into_iter().rev();
    let (history, sizes) = lines.map(|item| (item.created_by, u64::try_from(item.size).unwrap_or(0))).unzip();
    ImageInfo {
        id: image.id.unwrap_or_default(),
        tags: image.repo_tags.unwrap_or_default().iter().map(|name| familiar(name)).collect(),
        digests: image.repo_digests.unwrap_or_default().iter().map(|name| familiar(name)).collect(),
        size: image.size.and_then(|size| u64::try_from(size).ok()).unwrap_or(0),
        labels: config.labels.unwrap_or_default().into_iter().collect(),
        env: config.env.unwrap_or_default(),
        user: config.user.unwrap_or_default(),
        layers: image.root_fs.and_then(|fs| fs.layers).unwrap_or_default(),
        history,
        sizes,
        architecture: image.architecture.unwrap_or_default(),
    }
}

/// A step of the report from its beginning to its end.
pub(super) struct Step<'a> {
    reporter: &'a dyn Reporter,
    id: String,
    started: Instant,
}

impl<'a> Step<'a> {
    #[expect(clippy::disallowed_methods, reason = "measures how long the daemon takes")]
    pub(super) fn begin(reporter: &'a dyn Reporter, id: String, text: String) -> Self {
        reporter.report(Event::StepStarted { id: id.clone(), text });
        Self { reporter, id, started: Instant::now() }
    }

    pub(super) fn progress(&self, done: u64, total: Option<u64>) {
        self.reporter.report(Event::StepProgress { id: self.id.clone(), done, total });
    }

    pub(super) fn end<T>(self, result: Result<T, EngineError>) -> Result<T, EngineError> {
        let id = self.id;
        self.reporter.report(match &result {
            Ok(_) => Event::StepFinished { id, cached: false, seconds: self.started.elapsed().as_secs_f64() },
            Err(error) => Event::StepFailed {
                id,
                text: error.to_string().lines().next().unwrap_or_default().to_owned(),
            },
        });
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_no_tag() {
        assert_eq!(split_tag("debian:12"), ("debian", Some("12")));
        assert_eq!(split_tag("debian"), ("debian", None));
        assert_eq!(split_tag("box:5000/a/b"), ("box:5000/a/b", None));
        assert_eq!(split_tag("box:5000/a/b:c"), ("box:5000/a/b", Some("c")));
    }

    #[test]
    fn names_of_podman_are_those_of_docker() {
        assert_eq!(familiar("docker.io/library/envforge-base:1"), "envforge-base:1");
        assert_eq!(familiar("docker.io/team/a:1"), "team/a:1");
        assert_eq!(familiar("box:5000/a:1"), "box:5000/a:1");
    }

    #[test]
    fn history_is_oldest_first() {
        let item =
            |text: &str| ImageHistoryResponseItem { created_by: text.to_owned(), ..Default::default() };
        let info = image_info(ImageInspect::default(), vec![item("RUN last"), item("ADD first")]);
        assert_eq!(info.history, ["ADD first", "RUN last"]);
    }
}
