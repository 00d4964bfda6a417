//! The base of a vendor folder that is an image of a registry: saved whole, loaded again where there is no registry.
#![expect(clippy::disallowed_methods, reason = "edge: reads and writes the folder")]

use std::io::Write;
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};

use crate::archive::saved_layers::{SavedImage, SavedLayer, image_of};
use crate::base::{Base, private_tag};
use crate::engine::{ImageInfo, ImageLayer, LayerContent, TemporaryTag};
use crate::model::lock::vendor_files::place;
use crate::model::lock::{BaseProvider, LockedBase};
use crate::model::versions::Machine;
use crate::report::Event;
use crate::store::vendor_base::{Record, check_tags, digest, read, record_path, records};
use crate::store::vendor_dir::{VendorError, hash, verify_file};
use crate::store::{copy_verified, write_atomically};
use crate::workflow::assemble::{blocking, whole_image};
use crate::workflow::error::CommandError;
use crate::workflow::image_error::ImageError;
use crate::workflow::session::Session;

/// A base image in the folder: its file and size.
pub(crate) struct SavedBase {
    pub(crate) bytes: u64,
    pub(crate) new: bool,
}

/// Puts the base image into the folder, unless it lies there; `None` for a base made of packages.
pub(crate) async fn save(
    session: &Session<'_>,
    base: &Base,
    machine: Machine,
    folder: &Utf8Path,
) -> Result<Option<SavedBase>, CommandError> {
    let locked = base.locked();
    let Some(digest) = digest(&locked) else { return Ok(None) };
    let there = read(folder, digest, machine)
        .and_then(|record| fs_err::metadata(folder.join(place(&record.archive))).ok());
    if let Some(file) = there {
        return Ok(Some(SavedBase { bytes: file.len(), new: false }));
    }
    // By a tag of its own: what is loaded again must be found, whatever engine it is.
    let tag = private_tag(digest);
    session.engine.tag(&base.image_id, &tag).await?;
    let passing = session.store.temp_file()?;
    let path =
        Utf8Path::from_path(passing.path()).ok_or_else(|| std::io::Error::other("path is not UTF-8"))?;
    session.engine.save(&tag, path.to_owned()).await?;
    let archive = hash(&mut fs_err::File::open(path)?)?;
    let bytes = fs_err::metadata(path)?.len();
    copy_verified(path, &folder.join(place(&archive)), &archive)?;
    let record = Record { digest: digest.to_owned(), name: base.name.clone(), machine, archive };
    let text = toml::to_string(&record).expect("texts");
    write_atomically(&record_path(folder, digest, machine), text.as_bytes())?;
    Ok(Some(SavedBase { bytes, new: true }))
}

/// Has the engine hold the folder's base images of that processor, by their private tags. One that is damaged is passed
/// over: it is told when a lock that names it is taken. Gives the user's own base if the engine does not know its name, for whoever
/// looks into it.
pub(crate) async fn load(
    session: &Session<'_>,
    folder: &Utf8Path,
    machine: Machine,
    named: Option<&str>,
) -> Result<Option<LockedBase>, CommandError> {
    let engine = &session.engine;
    let mut own = None;
    for record in records(folder).into_iter().filter(|record| record.machine == machine) {
        let tag = private_tag(&record.digest);
        let fits = |image: &ImageInfo| image.architecture == machine.debian();
        if !engine.image(&tag).await?.is_some_and(|image| fits(&image)) {
            let Ok(archive) = verify_file(folder, &record.archive) else { continue };
            let checked = check_tags(&archive, &tag).map_err(|error| error.to_string());
            if let Err(found) = checked.and_then(|found| found) {
                let file = place(&record.archive);
                return Err(VendorError::Archive { file: folder.join(file).to_string(), tag, found }.into());
            }
            let text = format!("loading the base {} from {folder}", record.name);
            session.reporter.report(Event::Note { text });
            load_image(session, &archive, &tag, folder.join(place(&record.archive))).await?;
        }
        if own.is_none()
            && named == Some(&record.name)
            && engine.image(&record.name).await?.is_none()
            && let Some(image) = engine.image(&tag).await?.filter(fits)
        {
            own = Some(of_folder(record, &image));
        }
    }
    Ok(own)
}

/// The base that a record and its image stand for: the engine has it by the tag of its digest alone, as no name of it is known here.
fn of_folder(record: Record, image: &ImageInfo) -> LockedBase {
    LockedBase {
        provider: BaseProvider::Image,
        name: record.name,
        suite: String::new(),
        digest: Some(record.digest),
        content: None,
        image: Some(image.fingerprint()),
        cuda: false,
        packages: Vec::new(),
    }
}

/// A layer that was taken out of an archive.
struct Taken(SavedLayer);

impl LayerContent for Taken {
    fn write_to(&self, out: &mut dyn Write) -> std::io::Result<()> {
        std::io::copy(&mut fs_err::File::open(self.0.file.path())?, out).map(drop)
    }
}

/// Gives the engine the one image of an archive under that tag. The archive itself never reaches it: configuration and layers are
/// taken out, each layer compared with its digest, and written anew, so that no tag and no second list comes along.
async fn load_image(
    session: &Session<'_>,
    archive: &Utf8Path,
    tag: &str,
    file: Utf8PathBuf,
) -> Result<(), CommandError> {
    let (store, opened) = (session.store.clone(), fs_err::File::open(archive)?.into_file());
    let taken = blocking(move || {
        Ok::<_, CommandError>(image_of(opened, || store.temp_file().map_err(std::io::Error::other)))
    })
    .await??;
    let SavedImage { config, layers } = taken.map_err(|error| VendorError::Archive {
        file: file.to_string(),
        tag: tag.to_owned(),
        found: error.to_string(),
    })?;
    let layer = |(number, layer): (usize, SavedLayer)| ImageLayer {
        title: format!("layer {}", number + 1),
        diff_id: format!("sha256:{}", layer.sha256),
        size: layer.size,
        content: Some(Arc::new(Taken(layer))),
        packed: None,
    };
    let layers: Vec<ImageLayer> = layers.into_iter().enumerate().map(layer).collect();
    let scratch = TemporaryTag::new(&*session.engine);
    let request = whole_image(&layers, Box::new(move |_| config.into()), scratch.name(), "load the image");
    let image = session.engine.load_layers(request, Arc::clone(&session.reporter)).await?;
    if !image.layers.iter().eq(layers.iter().map(|layer| &layer.diff_id)) {
        return Err(ImageError::OtherLayers { image: image.id }.into());
    }
    session.engine.tag(&image.id, tag).await?;
    scratch.remove().await?;
    Ok(())
}
