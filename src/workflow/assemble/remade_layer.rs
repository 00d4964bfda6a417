//! A layer of a recipe in its compressed form: written from wheels and the cache, whenever a registry lacks it.
#![expect(clippy::disallowed_methods, reason = "reads the cache")]

use std::fs::File;
use std::io::{self, Write, sink};
use std::sync::Arc;

use camino::Utf8PathBuf;

use crate::assemble::{
    AssembleError, Conflicts, Installation, LayerDigests, LayerPlan, Wheel, pack_tar, write_known_gzip,
    write_layer, write_plain,
};
use crate::container_layers::byte_code::is_kept;
use crate::model::sha256::HashingWriter;
use crate::registry::BlobContent;
use crate::store::Store;
use crate::workflow::assemble::kept_code::{byte_code, code_of, gone};
use crate::workflow::assemble::layer::io_error;
use crate::workflow::assemble::recipe::{LayerSource, RecipeLayer, RecipeWheel};

/// How a layer of the base is named among missing parts.
pub(crate) const OF_BASE: &str = "a layer of the base";

/// A layer of a recipe, and where its parts lie.
#[derive(Clone)]
pub(crate) struct RemadeLayer {
    pub(crate) layer: RecipeLayer,
    pub(crate) store: Store,
}

impl BlobContent for RemadeLayer {
    fn write_to(&self, out: &mut dyn Write) -> io::Result<()> {
        if let (Some(_), LayerSource::Wheels { minor, wheels }) = (self.layer.known(), &self.layer.source) {
            // The receiver compares the digest.
            let plan = self.wheels(wheels, *minor).map_err(io_error)?;
            return write_known_gzip(&plan, out).map_err(io_error);
        }
        let digests = self.write(out).map_err(io_error)?;
        self.check(&digests.plain.diff_id).map_err(io_error)
    }
}

/// A layer of a recipe as Zstandard of a level.
pub(crate) struct ZstdLayer {
    pub(crate) layer: RemadeLayer,
    pub(crate) level: u8,
}

impl BlobContent for ZstdLayer {
    fn write_to(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut packed = zstd::stream::write::Encoder::new(out, i32::from(self.level))?;
        self.layer.write_plain_to(&mut packed).map_err(io_error)?;
        packed.finish().map(drop)
    }
}

/// What a layer consists of.
pub(crate) enum OpenedLayer {
    /// A tar with the layer's digest.
    Archive(File),
    /// Files of wheels.
    Files(LayerPlan),
    /// Byte code, which lies in memory: it is opened again when its files are read.
    ByteCode(LayerPlan),
}

impl RemadeLayer {
    /// Opens the layer for reading its files. An archive and byte code are compared with the layer's digest; wheels with their locked
    /// ones.
    pub(crate) fn open(&self) -> Result<OpenedLayer, AssembleError> {
        let mut opened = self.open_unchecked()?;
        match &mut opened {
            OpenedLayer::Archive(file) => {
                let mut hash = HashingWriter::new(sink());
                io::copy(file, &mut hash).map_err(AssembleError::Write)?;
                self.check(&format!("sha256:{}", hash.finish()))?;
            }
            OpenedLayer::Files(_) => {}
            OpenedLayer::ByteCode(plan) => self.check(&write_plain(plan, sink(), &mut |_| {})?.diff_id)?,
        }
        Ok(opened)
    }

    /// Writes the tar of the layer, compared with its digest.
    pub(crate) fn write_plain_to(&self, out: &mut dyn Write) -> Result<(), AssembleError> {
        match self.open_unchecked()? {
            OpenedLayer::Archive(mut file) => {
                let mut out = HashingWriter::new(out);
                io::copy(&mut file, &mut out).map_err(AssembleError::Write)?;
                self.check(&format!("sha256:{}", out.finish()))
            }
            OpenedLayer::Files(plan) | OpenedLayer::ByteCode(plan) => {
                self.check(&write_plain(&plan, out, &mut |_| {})?.diff_id)
            }
        }
    }

    fn open_unchecked(&self) -> Result<OpenedLayer, AssembleError> {
        match &self.layer.source {
            LayerSource::Base { .. } | LayerSource::Kept => {
                let path = self.tar().ok_or_else(|| AssembleError::layer_gone(self.layer.hex()))?;
                Ok(OpenedLayer::Archive(fs_err::File::open(path).map_err(AssembleError::Write)?.into_file()))
            }
            LayerSource::Wheels { minor, wheels } => Ok(OpenedLayer::Files(self.wheels(wheels, *minor)?)),
            LayerSource::ByteCode { python, wheels } => {
                Ok(OpenedLayer::ByteCode(byte_code(&self.store, wheels, python)?))
            }
        }
    }

    fn check(&self, found: &str) -> Result<(), AssembleError> {
        if found == self.layer.diff_id {
            return Ok(());
        }
        if self.layer.source == LayerSource::Kept {
            // The next build makes it again.
            self.store.discard(self.layer.hex())?;
        }
        let wanted = &self.layer.diff_id;
        let text = format!("the cache has other content: {found} instead of {wanted}");
        Err(AssembleError::Write(io::Error::other(text)))
    }

    fn write(&self, out: &mut dyn Write) -> Result<LayerDigests, AssembleError> {
        match self.open_unchecked()? {
            OpenedLayer::Archive(file) => pack_tar(file, out),
            OpenedLayer::Files(plan) | OpenedLayer::ByteCode(plan) => {
                write_layer(&plan, sink(), out, &mut |_| {})
            }
        }
    }

    /// The tar of the layer, if it lies in a file.
    fn tar(&self) -> Option<Utf8PathBuf> {
        let archive = match &self.layer.source {
            LayerSource::Base { archive } => archive.clone().filter(|path| path.is_file()),
            _ => None,
        };
        self.store.find(self.layer.hex()).ok().flatten().or(archive)
    }

    fn wheels(&self, wheels: &[RecipeWheel], minor: u8) -> Result<LayerPlan, AssembleError> {
        let open = |wheel: &RecipeWheel| {
            let path = self.wheel(wheel).ok_or_else(|| gone(&format!("`{}`", wheel.locked.file)))?;
            Installation::of(Arc::new(Wheel::open(&path, &wheel.locked)?), minor)
        };
        let opened = wheels.iter().map(open).collect::<Result<Vec<_>, _>>()?;
        let left_out = wheels
            .iter()
            .flat_map(|wheel| wheel.left_out.iter().map(|path| (wheel.locked.name.as_str(), path.as_str())));
        LayerPlan::new(&opened.iter().collect::<Vec<_>>(), &Conflicts::known(left_out), [].into())
    }

    fn wheel(&self, wheel: &RecipeWheel) -> Option<Utf8PathBuf> {
        let elsewhere = wheel.path.clone().filter(|path| path.is_file());
        elsewhere.or_else(|| self.store.find(&wheel.locked.sha256).ok().flatten())
    }

    /// What it takes to make the layer and the cache lacks, by name.
    pub(crate) fn missing(&self) -> Vec<String> {
        match &self.layer.source {
            LayerSource::Base { .. } if self.tar().is_none() => vec![OF_BASE.to_owned()],
            LayerSource::Kept if self.tar().is_none() => vec![format!("the layer `{}`", self.layer.title)],
            LayerSource::Base { .. } | LayerSource::Kept => Vec::new(),
            LayerSource::Wheels { wheels, .. } => wheels
                .iter()
                .filter(|wheel| self.wheel(wheel).is_none())
                .map(|wheel| format!("`{}`", wheel.locked.file))
                .collect(),
            LayerSource::ByteCode { python, wheels } => wheels
                .iter()
                .filter(|wheel| !is_kept(&self.store, &wheel.locked.sha256, python))
                .map(|wheel| code_of(&wheel.locked.file))
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;
    use crate::assemble::made_wheel::MadeWheel;
    use crate::assemble::samples::locked;
    use crate::container_layers::byte_code::{SourceFile, keep};
    use crate::model::lock::WheelLayer;
    use crate::model::sha256::sha256_hex;

    struct Fixture {
        store: Store,
        _folder: tempfile::TempDir,
    }

    fn fixture() -> Fixture {
        let folder = tempfile::tempdir().expect("a folder");
        let root = camino::Utf8Path::from_path(folder.path()).expect("UTF-8");
        let store = Store::open(&root.join("cache"), &root.join("state")).expect("a store");
        Fixture { store, _folder: folder }
    }

    impl Fixture {
        fn remade(&self, diff_id: String, source: LayerSource) -> RemadeLayer {
            let layer = RecipeLayer { title: "a layer".to_owned(), diff_id, packed: None, source };
            RemadeLayer { layer, store: self.store.clone() }
        }

        /// A wheel of the cache with two modules.
        fn wheel(&self, left_out: &[&str]) -> RecipeWheel {
            let made = MadeWheel::new("demo")
                .file("demo/a.py", b"a = 1\n")
                .file("demo/b.bin", &b"content ".repeat(6_000))
                .record("");
            let bytes = made.build();
            self.store.put(&sha256_hex(&bytes), &bytes).expect("stored");
            let left_out = left_out.iter().map(|path| (*path).to_owned()).collect();
            RecipeWheel { locked: locked("demo", WheelLayer::User, &bytes), path: None, left_out }
        }
    }

    /// The tar in a compressed layer.
    fn tar_of(layer: &RemadeLayer) -> io::Result<Vec<u8>> {
        let (mut packed, mut tar) = (Vec::new(), Vec::new());
        layer.write_to(&mut packed)?;
        flate2::read::MultiGzDecoder::new(packed.as_slice()).read_to_end(&mut tar)?;
        Ok(tar)
    }

    fn names(tar: &[u8]) -> Vec<String> {
        let mut archive = tar::Archive::new(tar);
        let entries = archive.entries().expect("a tar");
        let path = |entry: tar::Entry<'_, _>| entry.path().expect("a path").to_string_lossy().into_owned();
        entries.map(|entry| path(entry.expect("an entry"))).filter(|path| !path.ends_with('/')).collect()
    }

    /// The digest of what a layer is made of, whatever its recipe says.
    fn diff_id(layer: &RemadeLayer) -> String {
        layer.write(&mut sink()).expect("written").plain.diff_id
    }

    #[test]
    fn kept_layer_is_packed_and_a_damaged_one_is_reported() {
        let f = fixture();
        let tar = vec![3_u8; 3_000_000];
        let sha256 = sha256_hex(&tar);
        let layer = f.remade(format!("sha256:{sha256}"), LayerSource::Kept);
        assert_eq!(layer.missing(), ["the layer `a layer`"]);
        assert_eq!(tar_of(&layer).expect_err("absent").kind(), io::ErrorKind::NotFound);
        let path = f.store.put(&sha256, &tar).expect("stored");
        assert!(layer.missing().is_empty());
        assert!(tar_of(&layer).expect("packed") == tar);
        fs_err::write(path, "other").expect("damaged");
        assert!(tar_of(&layer).expect_err("damaged").to_string().contains("the cache has other content"));
        assert_eq!(layer.missing(), ["the layer `a layer`"], "it is removed");
    }

    #[test]
    fn base_lies_in_the_cache_or_in_its_archive() {
        let f = fixture();
        let tar = vec![4_u8; 2048];
        let archive = f.store.cache_dir().join("base.tar");
        let source = LayerSource::Base { archive: Some(archive.clone()) };
        let layer = f.remade(format!("sha256:{}", sha256_hex(&tar)), source);
        assert_eq!(layer.missing(), ["a layer of the base"]);
        fs_err::write(&archive, &tar).expect("written");
        assert!(layer.missing().is_empty() && tar_of(&layer).expect("packed") == tar);
    }

    #[test]
    fn layer_of_wheels_is_that_of_the_image() {
        let f = fixture();
        let site = "opt/env/lib/python3.11/site-packages";
        let left_out = format!("{site}/demo/a.py");
        for (left_out, has_module) in [(vec![], true), (vec![left_out.as_str()], false)] {
            let wheel = f.wheel(&left_out);
            let source = LayerSource::Wheels { minor: 11, wheels: vec![wheel.clone()] };
            let unknown = f.remade(format!("sha256:{}", "0".repeat(64)), source.clone());
            assert!(tar_of(&unknown).is_err(), "another layer than the image has");
            let layer = f.remade(diff_id(&unknown), source);
            let found = names(&tar_of(&layer).expect("written"));
            assert_eq!(found.contains(&format!("{site}/demo/a.py")), has_module, "{found:?}");
            assert!(found.contains(&format!("{site}/demo/b.bin")));
            // With a known digest its streams are copied; the bytes are the same.
            let digests = layer.write(&mut sink()).expect("written");
            let packed = Some((digests.gzip, digests.gzip_size));
            let known =
                RemadeLayer { layer: RecipeLayer { packed, ..layer.layer.clone() }, store: f.store.clone() };
            assert_eq!(tar_of(&known).expect("written"), tar_of(&layer).expect("written"));
            f.store.discard(&wheel.locked.sha256).expect("removed");
            assert_eq!(layer.missing(), ["`demo-1.0-py3-none-any.whl`"]);
            assert_eq!(tar_of(&layer).expect_err("absent").kind(), io::ErrorKind::NotFound);
        }
    }

    #[test]
    fn layer_of_byte_code_is_made_of_what_is_kept() {
        let f = fixture();
        let wheel = f.wheel(&["e/b.py"]);
        let source = LayerSource::ByteCode { python: "3.11".to_owned(), wheels: vec![wheel.clone()] };
        let unknown = f.remade(format!("sha256:{}", "0".repeat(64)), source.clone());
        assert_eq!(unknown.missing(), ["the byte code of `demo-1.0-py3-none-any.whl`"]);
        let code = ["/e/__pycache__/a.cpython-311.pyc", "/e/__pycache__/b.cpython-311.pyc"]
            .map(|path| SourceFile { path: path.to_owned(), content: bytes::Bytes::from_static(b"code") });
        keep(&f.store, &wheel.locked.sha256, "3.11", &code).expect("kept");
        let layer = f.remade(diff_id(&unknown), source);
        assert!(layer.missing().is_empty());
        assert_eq!(names(&tar_of(&layer).expect("written")), ["e/__pycache__/a.cpython-311.pyc"]);
    }
}
