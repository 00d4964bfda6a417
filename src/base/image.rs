//! The base as an image: local, or pulled from a registry; pinned by its registry digest.
//!
//! Owns the choice of the reference. An image without registry digest is pinned by its id and gets a private tag of that
//! id (its content digest would need an export of it all, and the id already stands for it in this engine).

use std::sync::Arc;

use super::bootstrap::PRIVATE;
use super::error::BaseError;
use super::request::{Base, BaseRequest};
use crate::engine::{Engine, EngineError, ImageInfo};
use crate::lock::BaseProvider;
use crate::report::Reporter;

/// The base of an image reference; a locked digest is the only image that will do.
pub(super) async fn image_base(
    engine: &dyn Engine,
    request: &BaseRequest<'_>,
    reporter: Arc<dyn Reporter>,
) -> Result<Base, BaseError> {
    let locked = request.locked.and_then(|locked| locked.digest.as_deref());
    let image = match locked {
        None => local_or_pulled(engine, &request.name, reporter).await?,
        Some(digest) => match engine.image(digest).await? {
            // The id of a local image that came from no registry.
            Some(image) if image.id == digest => image,
            _ => {
                let pinned = format!("{}@{digest}", repository(&request.name));
                local_or_pulled(engine, &pinned, reporter).await?
            }
        },
    };
    let digest = locked.map(str::to_owned).or_else(|| registry_digest(&image, &request.name));
    if let Some(digest) = digest.filter(|digest| *digest != image.id) {
        let reference = format!("{}@{digest}", repository(&request.name));
        Ok(base_of(request, reference, image, Some(digest)))
    } else {
        let id = image.id.clone();
        let short = id.strip_prefix("sha256:").unwrap_or(&id).chars().take(16).collect::<String>();
        let tag = format!("{PRIVATE}:{short}");
        engine.tag(&id, &tag).await?;
        Ok(base_of(request, tag, image, Some(id)))
    }
}

async fn local_or_pulled(
    engine: &dyn Engine,
    reference: &str,
    reporter: Arc<dyn Reporter>,
) -> Result<ImageInfo, BaseError> {
    if let Some(image) = engine.image(reference).await? {
        return Ok(image);
    }
    engine.pull(reference, reporter).await.map_err(|source| match source {
        // Not the image's fault: another provider would fail the same way.
        EngineError::Unreachable { .. }
        | EngineError::NoPermission { .. }
        | EngineError::DiskFull { .. }
        | EngineError::Lost { .. } => BaseError::Engine(source),
        source => BaseError::NotPullable { reference: reference.to_owned(), source },
    })
}

/// `debian` of `debian:12`, `debian@sha256:…` and `debian`; `host:5000/debian` of `host:5000/debian:12`.
fn repository(reference: &str) -> &str {
    let name = reference.split('@').next().unwrap_or(reference);
    let slash = name.rfind('/').map_or(0, |slash| slash + 1);
    name[slash..].rfind(':').map_or(name, |colon| &name[..slash + colon])
}

fn registry_digest(image: &ImageInfo, name: &str) -> Option<String> {
    let wanted = repository(name);
    let of = |digest: &String| {
        let (repository, digest) = digest.split_once('@')?;
        (repository == wanted).then(|| digest.to_owned())
    };
    image.digests.iter().find_map(of)
}

fn base_of(request: &BaseRequest<'_>, reference: String, image: ImageInfo, digest: Option<String>) -> Base {
    Base {
        provider: BaseProvider::Image,
        name: request.name.clone(),
        suite: request.suite.clone(),
        reference,
        image_id: image.id,
        digest,
        content: None,
        packages: Vec::new(),
        archive: None,
    }
}
