//! An OCI image layout given to the engine, after each of its bytes was compared with its digest.

use std::io::Write;
use std::sync::Arc;

use camino::Utf8Path;
use futures_util::stream::{self, StreamExt as _};

use crate::archive::layout_reader::{LayoutError, LayoutImage, LayoutLayer};
use crate::engine::{ImageInfo, ImageLayer, LayerContent, PackedLayer, TemporaryTag};
use crate::model::counted::counted;
use crate::model::image_digest::Digest;
use crate::model::image_ref::ImageRef;
use crate::report::in_step;
use crate::workflow::assemble::{blocking, of_layer, whole_image};
use crate::workflow::carried_evidence::keep_of_layout;
use crate::workflow::disk_space;
use crate::workflow::error::CommandError;
use crate::workflow::evidence::EvidenceError;
use crate::workflow::image_error::ImageError;
use crate::workflow::session::Session;

const STEP: &str = "layout";

/// The tar of a layer that the engine may lack.
struct Plain(LayoutLayer);

impl LayerContent for Plain {
    fn write_to(&self, out: &mut dyn Write) -> std::io::Result<()> {
        self.0.write_to(out)
    }
}

/// Its compressed form.
struct Packed(LayoutLayer);

impl LayerContent for Packed {
    fn write_to(&self, out: &mut dyn Write) -> std::io::Result<()> {
        self.0.write_blob(out)
    }
}

/// What was loaded.
pub(crate) struct Imported {
    /// The image.
    pub(crate) image: ImageInfo,
    /// The digest of its manifest.
    pub(crate) digest: Digest,
    /// Documents of evidence in the layout, whether they are kept or not.
    pub(crate) statements: usize,
}

/// Loads the image of a layout under a tag, and keeps its evidence if that is wanted.
pub(crate) async fn import_layout(
    session: &Session<'_>,
    (path, evidence): (&Utf8Path, bool),
    tag: &ImageRef,
) -> Result<Imported, CommandError> {
    let layout = {
        let path = path.to_owned();
        blocking(move || LayoutImage::open(&path)).await??
    };
    let wanted = session.engine.info().machine.debian();
    if layout.architecture != wanted {
        let (path, wanted) = (path.to_owned(), wanted.to_owned());
        return Err(LayoutError::Machine { path, found: layout.architecture, wanted }.into());
    }
    // Read before an engine has anything of a damaged layout.
    let found = if evidence { layout.evidence()? } else { Vec::new() };
    let statements = if evidence { found.len() } else { layout.evidence_count() };
    let text = format!("compare {} of {path} with the digests", counted(layout.layers.len(), "layer"));
    let checked = in_step(&*session.reporter, STEP, text, checked_layers(&layout)).await?;
    disk_space::check_engine(session, checked.iter().map(|layer| layer.size).sum())?;
    let scratch = TemporaryTag::new(&*session.engine);
    let image = load(session, &layout, checked, scratch.name()).await?;
    session.engine.tag(&image.id, &tag.to_string()).await?;
    scratch.remove().await?;
    if evidence && !keep_of_layout(&session.store, (&image.id, &layout.digest), found)? {
        let why = "it is too large to be kept here".to_owned();
        return Err(EvidenceError::Partial { image: layout.digest.to_string(), why }.into());
    }
    Ok(Imported { image, digest: layout.digest, statements })
}

/// The layers with the sizes of their tars, all of them compared before the engine gets the first one.
async fn checked_layers(layout: &LayoutImage) -> Result<Vec<ImageLayer>, CommandError> {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
    let checks = layout.layers.iter().cloned().enumerate().map(|(below, layer)| async move {
        let (size, layer) = blocking(move || Ok::<_, LayoutError>((layer.check()?, layer))).await??;
        let (title, diff_id) = (format!("layer {}", below + 1), layer.diff_id.to_string());
        let packed = layer.packed().map(|blob| PackedLayer {
            digest: blob.digest.to_string(),
            size: blob.size,
            content: Arc::new(Packed(layer.clone())),
        });
        Ok::<_, CommandError>(ImageLayer {
            title,
            diff_id,
            size,
            content: Some(Arc::new(Plain(layer))),
            packed,
        })
    });
    let mut checks = stream::iter(checks).buffered(cores);
    let mut layers = Vec::new();
    while let Some(layer) = checks.next().await {
        layers.push(layer?);
    }
    Ok(layers)
}

async fn load(
    session: &Session<'_>,
    layout: &LayoutImage,
    layers: Vec<ImageLayer>,
    scratch_tag: &str,
) -> Result<ImageInfo, CommandError> {
    let config = layout.config.clone();
    let request = whole_image(&layers, Box::new(move |_| config.into()), scratch_tag, "load the image");
    let loaded = session.engine.load_layers(request, Arc::clone(&session.reporter)).await;
    let image = loaded.map_err(of_layer::<LayoutError>)?;
    if image.layers.iter().map(String::as_str).eq(layout.layers.iter().map(|layer| layer.diff_id.as_str())) {
        Ok(image)
    } else {
        Err(ImageError::OtherLayers { image: image.id }.into())
    }
}
