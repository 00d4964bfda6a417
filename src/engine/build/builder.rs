//! Docker's builder: BuildKit if the engine serves it, otherwise the classic builder API.

use std::sync::Arc;

use async_trait::async_trait;

use super::buildkit::build_in_session;
use super::classic_build::build_classic;
use super::scratch_tag::ScratchTag;
use super::types::{Builder, ImageBuildRequest};
use crate::engine::docker::Docker;
use crate::engine::error::EngineError;
use crate::engine::image::images::created_image;
use crate::model::image::info::ImageInfo;
use crate::report::Reporter;

#[async_trait]
impl Builder for Docker {
    async fn build(
        &self,
        request: ImageBuildRequest,
        reporter: Arc<dyn Reporter>,
    ) -> Result<ImageInfo, EngineError> {
        // First, so that it is dropped last: connections end before the tag is removed.
        let mut guard = ScratchTag::new(self, &request.scratch_tag);
        let exporting = &guard.exporting;
        let built = if self.info.supports_buildkit() {
            build_in_session(&self.daemon, &request, reporter.as_ref(), exporting).await
        } else {
            build_classic(self, &request, reporter.as_ref(), exporting).await
        };
        // A refused build created no tag, and the tag of a successful build belongs to the caller. A classic build whose
        // connection broke may still create its tag; a BuildKit build ends with its session.
        guard.done = self.info.supports_buildkit() || !matches!(built, Err(EngineError::Lost { .. }));
        built?;
        created_image(self, &request.scratch_tag).await
    }
}
