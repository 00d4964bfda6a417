//! The tag of a build that may be cancelled.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::engine::cleanup::finish_on_a_thread;
use crate::engine::docker::Docker;
use crate::engine::image::types::Images as _;

/// A guard that removes the tag of a cancelled build, including during export.
pub(super) struct ScratchTag {
    docker: Docker,
    tag: String,
    pub(super) exporting: AtomicBool,
    pub(super) done: bool,
}

impl ScratchTag {
    pub(super) fn new(docker: &Docker, tag: &str) -> Self {
        Self { docker: docker.clone(), tag: tag.to_owned(), exporting: AtomicBool::new(false), done: false }
    }
}

impl Drop for ScratchTag {
    fn drop(&mut self) {
        if self.done || !self.exporting.load(Ordering::Relaxed) {
            return;
        }
        let (docker, tag) = (self.docker.clone(), self.tag.clone());
        finish_on_a_thread(async move {
            // The daemon may still be writing the tag when it sees the cancellation.
            for _ in 0..15 {
                match docker.image(&tag).await {
                    Ok(Some(_)) => {
                        if let Err(error) = docker.remove_image(&tag).await {
                            tracing::warn!(%tag, %error, "cannot remove the tag of a cancelled build");
                        }
                        return;
                    }
                    Ok(None) => tokio::time::sleep(Duration::from_millis(200)).await,
                    Err(error) => {
                        tracing::warn!(%tag, %error, "cannot inspect the tag of a cancelled build");
                        return;
                    }
                }
            }
        });
    }
}
