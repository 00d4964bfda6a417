//! An assembled image as an OCI image layout, straight from wheels and the cache: no engine compresses it again.
#![expect(clippy::disallowed_methods, reason = "stamps the documents of evidence")]

use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};

use jiff::Timestamp;

use crate::archive::image_layout::{BlobDirectory, LayoutWriter, parent_of};
use crate::engine::ImageInfo;
use crate::evidence::with_referrers;
use crate::failure::{Exit, Failure};
use crate::model::counted::counted;
use crate::model::image::manifest::{BlobDescriptor, MANIFEST_TYPE, layout_index, manifest};
use crate::model::image_digest::Digest;
use crate::model::image_ref::ImageRef;
use crate::model::layer_compression::LayerCompression;
use crate::model::versions::Machine;
use crate::registry::{BlobContent as _, NewEvidence};
use crate::report::in_step;
use crate::store::Store;
use crate::workflow::assemble::{LayerSource, Recipe, RecipeLayer, RemadeLayer};
use crate::workflow::carried_evidence::{Gathered, evidence_of};
use crate::workflow::disk_space;
use crate::workflow::error::CommandError;
use crate::workflow::image_parts::{bring_base, whole_layers};
use crate::workflow::session::Session;

const STEP: &str = "layout";

/// Why an image cannot be written to a file or a folder.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LayoutError {
    /// The target holds something.
    #[error("`{target}` already exists")]
    Exists { target: Utf8PathBuf },
    /// The target is no file that may be replaced.
    #[error("`{target}` is a directory or a link, not a file")]
    NotAFile { target: Utf8PathBuf },
    /// The image was not assembled on this machine.
    #[error("cannot export `{image}`: it was not assembled on this machine")]
    NotAssembled { image: String },
    /// A file of the layout cannot be written.
    #[error("cannot write `{target}`: {cause}")]
    Write { target: Utf8PathBuf, cause: std::io::Error },
}

impl Failure for LayoutError {
    fn exit(&self) -> Exit {
        match self {
            Self::Exists { .. } | Self::NotAFile { .. } => Exit::Usage,
            Self::NotAssembled { .. } | Self::Write { .. } => Exit::Outside,
        }
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::Exists { .. } => vec![
                "use another name, or an empty directory; `export squashfs`, `sif` and `policy` replace a file with --force".to_owned(),
            ],
            Self::NotAFile { .. } => vec!["name a file that is absent, or a regular one with --force".to_owned()],
            Self::NotAssembled { .. } => vec![
                "build it here with `envforge build --locked`, without `run` steps and `--builder dockerfile`".to_owned(),
                "save an image of another builder with `docker save`".to_owned(),
            ],
            Self::Write { cause, .. } => cause.hints(),
        }
    }
}

/// A written layout.
pub(crate) struct Written {
    /// The digest of the manifest: that of the image in a registry.
    pub(crate) digest: Digest,
    /// Bytes of all blobs.
    pub(crate) size: u64,
    /// Documents of evidence; `None`: they were not asked for.
    pub(crate) statements: Option<usize>,
}

/// Writes an image under its name to a directory, or to a tar if `target` ends in `.tar`; with its evidence if that is wanted.
pub(crate) async fn export_layout(
    session: &Session<'_>,
    (image, name): (&ImageInfo, &str),
    (machine, evidence): (Machine, bool),
    target: &Utf8Path,
) -> Result<Written, CommandError> {
    let not_assembled = || LayoutError::NotAssembled { image: name.to_owned() };
    let recipe = Recipe::of(&session.store, &image.id).ok_or_else(not_assembled)?;
    bring_base(session, &recipe).await?;
    let name = name.parse::<ImageRef>().ok().filter(|name| name.tag().is_some());
    let text = format!("write {} to {target}", counted(recipe.layers.len(), "layer"));
    let of_image = evidence.then_some((session, image));
    let written = write(&session.store, &recipe, (machine, name.as_ref()), (target, of_image));
    in_step(&*session.reporter, STEP, text, written).await
}

async fn write(
    store: &Store,
    recipe: &Recipe,
    (machine, name): (Machine, Option<&ImageRef>),
    (target, evidence): (&Utf8Path, Option<(&Session<'_>, &ImageInfo)>),
) -> Result<Written, CommandError> {
    let layers: Vec<Arc<RemadeLayer>> = whole_layers(store, recipe)?.into_iter().map(Arc::new).collect();
    let failed = |cause: std::io::Error| match cause.kind() {
        std::io::ErrorKind::AlreadyExists => LayoutError::Exists { target: target.to_owned() },
        _ => LayoutError::Write { target: target.to_owned(), cause },
    };
    let layout = LayoutWriter::create(target).map_err(failed)?;
    disk_space::check_folder(parent_of(target).as_str(), recipe.layers.iter().map(packed_size).sum())?;
    let blobs = layout.blobs();
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
    let written = stream::iter(layers).map(|layer| add_layer(blobs.clone(), layer)).buffered(cores);
    let written: Vec<BlobDescriptor> = written.try_collect().await.map_err(failed)?;
    let config = blobs.add(|out| out.write_all(recipe.config.as_bytes())).map_err(failed)?;
    let text = manifest(&config, &written, LayerCompression::Gzip);
    let document = blobs.add(|out| out.write_all(&text)).map_err(failed)?;
    let mut index = layout_index(&document, machine, name);
    let mut statements = None;
    if let Some((session, image)) = evidence {
        let Gathered { found, whole } = evidence_of(session, (image, &document.digest), None).await?;
        whole?;
        let new = NewEvidence::all_of(&found);
        let mut referrers = Vec::new();
        for new in &new {
            let parts = new.parts((&document, MANIFEST_TYPE), &Timestamp::now().to_string());
            for part in parts.blobs.iter().chain([&parts.manifest]) {
                blobs.add(|out| out.write_all(part)).map_err(failed)?;
            }
            referrers.push((BlobDescriptor::of(&parts.manifest), new.predicate));
        }
        index = with_referrers(Some(&index), &[], &referrers).unwrap_or(index);
        statements = Some(new.len());
    }
    let size = written.iter().chain([&config, &document]).map(|blob| blob.size).sum();
    let done = tokio::task::spawn_blocking(move || layout.finish(&index)).await;
    done.unwrap_or_else(|error| Err(std::io::Error::other(error))).map_err(failed)?;
    Ok(Written { digest: document.digest, size, statements })
}

async fn add_layer(blobs: BlobDirectory, layer: Arc<RemadeLayer>) -> std::io::Result<BlobDescriptor> {
    let made = tokio::task::spawn_blocking(move || {
        let added = blobs.add(|out| layer.write_to(out))?;
        match layer.layer.known() {
            Some(known) if known != added => Err(std::io::Error::other(format!(
                "the cache has other content of the layer `{}`: {} instead of {}",
                layer.layer.title, added.digest, known.digest
            ))),
            _ => Ok(added),
        }
    });
    made.await.unwrap_or_else(|error| Err(std::io::Error::other(error)))
}

/// The bytes of a layer in its compressed form, about.
pub(crate) fn packed_size(layer: &RecipeLayer) -> u64 {
    match (&layer.packed, &layer.source) {
        (Some((_, size)), _) => *size,
        (None, LayerSource::Wheels { wheels, .. }) => {
            wheels.iter().filter_map(|wheel| wheel.locked.size).sum()
        }
        _ => 0,
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests read the layout")]
mod tests {
    use super::*;
    use crate::model::image_digest::Digest;
    use crate::model::sha256::sha256_hex;

    struct Fixture {
        root: Utf8PathBuf,
        store: Store,
        _folder: tempfile::TempDir,
    }

    fn fixture() -> Fixture {
        let folder = tempfile::tempdir().expect("a folder");
        let root = Utf8PathBuf::from_path_buf(folder.path().to_owned()).expect("UTF-8");
        let store = Store::open(&root.join("cache"), &root.join("state")).expect("a store");
        fs_err::create_dir(root.join("out")).expect("made");
        Fixture { root, store, _folder: folder }
    }

    impl Fixture {
        /// A layer that the cache has.
        fn layer(&self, title: &str) -> RecipeLayer {
            let tar = title.repeat(100_000).into_bytes();
            let sha256 = sha256_hex(&tar);
            self.store.put(&sha256, &tar).expect("stored");
            let diff_id = format!("sha256:{sha256}");
            RecipeLayer { title: title.to_owned(), diff_id, packed: None, source: LayerSource::Kept }
        }

        async fn write(&self, layers: &[&RecipeLayer], target: &str) -> Result<Written, CommandError> {
            let layers = layers.iter().map(|layer| (*layer).clone()).collect();
            let recipe = Recipe::new("{}".to_owned(), "debian:12".to_owned(), layers);
            let name = "torch:1-unverified".parse().expect("a reference");
            let target = self.root.join("out").join(target);
            write(&self.store, &recipe, (Machine::X86_64, Some(&name)), (&target, None)).await
        }

        fn written(&self) -> usize {
            fs_err::read_dir(self.root.join("out")).expect("readable").count()
        }
    }

    #[tokio::test]
    async fn layout_holds_the_image_that_a_push_would_send() {
        let f = fixture();
        let layers = [f.layer("system"), f.layer("torch")];
        let written = f.write(&[&layers[0], &layers[1]], "image").await.expect("written");
        let blob = |digest: &str| {
            let path = f.root.join("out/image/blobs/sha256").join(digest.trim_start_matches("sha256:"));
            let bytes = fs_err::read(path).expect("a blob");
            assert_eq!(Digest::of(&bytes).as_str(), digest);
            bytes
        };
        let json = |bytes: &[u8]| serde_json::from_slice::<serde_json::Value>(bytes).expect("JSON");
        let index = json(&fs_err::read(f.root.join("out/image/index.json")).expect("there"));
        assert_eq!(index["manifests"][0]["digest"], written.digest.as_str());
        let manifest = json(&blob(written.digest.as_str()));
        assert_eq!(blob(manifest["config"]["digest"].as_str().expect("a digest")), b"{}");
        let packed = manifest["layers"].as_array().expect("layers");
        assert_eq!(packed.len(), 2);
        for (packed, made) in packed.iter().zip(&layers) {
            let bytes = blob(packed["digest"].as_str().expect("a digest"));
            let mut tar = Vec::new();
            let mut plain = flate2::read::MultiGzDecoder::new(bytes.as_slice());
            std::io::Read::read_to_end(&mut plain, &mut tar).expect("gzip");
            assert_eq!(sha256_hex(&tar), made.hex());
        }
        let again = f.write(&[&layers[0], &layers[1]], "image.tar").await.expect("written");
        assert_eq!(again.digest, written.digest);
        assert_eq!(f.written(), 2);
    }

    #[tokio::test]
    async fn missing_parts_are_named_and_nothing_is_left() {
        let f = fixture();
        let (there, gone) = (f.layer("system"), f.layer("torch"));
        f.store.discard(gone.hex()).expect("removed");
        let error = f.write(&[&there, &gone], "image").await.err().expect("missing");
        let text = "cannot export the image: not in the cache any more:\n  - the layer `torch`";
        assert_eq!((error.to_string().as_str(), error.exit()), (text, Exit::Outside));
        assert_eq!(f.written(), 0);
    }

    #[tokio::test]
    async fn other_content_of_the_cache_ends_the_export() {
        let f = fixture();
        let mut layer = f.layer("system");
        let other = f.layer("other");
        let path = f.store.blob_path(layer.hex()).expect("a path");
        fs_err::copy(f.store.blob_path(other.hex()).expect("a path"), path).expect("copied");
        layer.title = "damaged".to_owned();
        let error = f.write(&[&layer], "image.tar").await.err().expect("refused").to_string();
        assert!(error.contains("the cache has other content"), "{error}");
        assert_eq!(f.written(), 0);
        fs_err::write(f.root.join("out/image.tar"), b"mine").expect("written");
        let error = f.write(&[&other], "image.tar").await.err().expect("refused");
        assert!(error.to_string().ends_with("image.tar` already exists"), "{error}");
        assert_eq!(error.exit(), Exit::Usage);
    }
}
