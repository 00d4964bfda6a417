#![expect(clippy::disallowed_methods, reason = "tests damage layouts")]

use std::ops::Add as _;

use super::*;
use crate::archive::image_layout::LayoutWriter;
use crate::evidence::{Envelope, with_referrers};
use crate::model::image::manifest::{BLOBS, layout_index, manifest};
use crate::model::layer_compression::LayerCompression;
use crate::model::versions::Machine;

struct Fixture {
    root: Utf8PathBuf,
    _folder: tempfile::TempDir,
}

const LAYERS: [&[u8]; 2] = [b"the tar of the base", b"the tar of torch"];

/// A layout of two layers, `image`, and the same as `image.tar`.
fn fixture() -> Fixture {
    let folder = tempfile::tempdir().expect("a folder");
    let root = Utf8PathBuf::from_path_buf(folder.path().to_owned()).expect("UTF-8");
    for name in ["image", "image.tar"] {
        write(&root.join(name), LAYERS);
    }
    Fixture { root, _folder: folder }
}

/// Writes a layout whose configuration names [`LAYERS`].
fn write(target: &Utf8Path, layers: [&[u8]; 2]) {
    let layout = LayoutWriter::create(target).expect("started");
    let blobs = layout.blobs();
    let packed = layers.map(|tar| {
        blobs
            .add(|out| {
                let mut gzip = flate2::write::GzEncoder::new(out, flate2::Compression::fast());
                io::Write::write_all(&mut gzip, tar)?;
                gzip.finish().map(|_| ())
            })
            .expect("written")
    });
    let config =
        serde_json::json!({ "architecture": "amd64", "rootfs": { "diff_ids": LAYERS.map(Digest::of) } })
            .to_string();
    let add = |text: &[u8]| blobs.add(|out| out.write_all(text)).expect("written");
    let document = add(&manifest(&add(config.as_bytes()), &packed, LayerCompression::Gzip));
    layout.finish(&layout_index(&document, Machine::X86_64, None)).expect("finished");
}

impl Fixture {
    fn path(&self, name: &str) -> Utf8PathBuf {
        self.root.join(name)
    }

    fn error(&self, name: &str) -> LayoutError {
        let read = LayoutImage::open(&self.path(name))
            .and_then(|image| image.layers.iter().try_for_each(|layer| layer.check().map(|_| ())));
        read.expect_err("refused")
    }

    fn blobs(&self) -> Vec<Utf8PathBuf> {
        let entries = fs_err::read_dir(self.path("image").join(BLOBS)).expect("readable");
        entries
            .map(|entry| Utf8PathBuf::from_path_buf(entry.expect("an entry").path()).expect("UTF-8"))
            .collect()
    }

    /// The blob that begins with these bytes.
    fn blob(&self, start: &[u8]) -> Utf8PathBuf {
        let starts = |path: &Utf8PathBuf| fs_err::read(path).expect("a blob").starts_with(start);
        self.blobs().into_iter().find(starts).expect("a blob")
    }

    /// Replaces a text of a document and gives the document its new name everywhere above it.
    fn forge(&self, old: &str, new: &str) {
        let (mut old, mut new) = (old.to_owned(), new.to_owned());
        loop {
            let has =
                |path: &Utf8PathBuf| String::from_utf8_lossy(&fs_err::read(path).unwrap()).contains(&old);
            let Some(path) = self.blobs().into_iter().find(has) else { break };
            let text = fs_err::read_to_string(&path).expect("a document").replace(&old, &new);
            fs_err::remove_file(&path).expect("removed");
            old = path.file_name().expect("a name").to_owned();
            new = Digest::of(text.as_bytes()).as_str().trim_start_matches("sha256:").to_owned();
            fs_err::write(path.with_file_name(&new), text).expect("written");
        }
        let index = self.path("image/index.json");
        let text = fs_err::read_to_string(&index).expect("an index").replace(&old, &new);
        fs_err::write(index, text).expect("written");
    }
}

#[test]
fn directory_and_tar_give_the_same_checked_layers() {
    let f = fixture();
    let both = ["image", "image.tar"].map(|name| LayoutImage::open(&f.path(name)).expect("a layout"));
    assert_eq!((&both[0].digest, &both[0].config), (&both[1].digest, &both[1].config));
    for image in both {
        for (layer, tar) in image.layers.iter().zip(LAYERS) {
            assert_eq!(layer.check().expect("whole"), tar.len() as u64);
            let mut written = Vec::new();
            layer.write_to(&mut written).expect("written");
            assert_eq!((written.as_slice(), &layer.diff_id), (tar, &Digest::of(tar)));
        }
    }
}

/// Adds a document to the layout, and it to the index as evidence.
fn add_evidence(f: &Fixture, subject: &Digest, payload: &str) -> BlobDescriptor {
    let bundle = Bundle::blob(&Envelope::of_nobody(payload), "");
    let subject = BlobDescriptor { digest: subject.clone(), size: 2 };
    let kind = "https://spdx.dev/Document";
    let manifest = Bundle::manifest(&BlobDescriptor::of(&bundle), kind, (&subject, "application/json"), "");
    for bytes in [&bundle, &manifest] {
        let name = Digest::of(bytes).as_str().trim_start_matches("sha256:").to_owned();
        fs_err::write(f.path("image").join(BLOBS).join(name), bytes).expect("written");
    }
    let (path, document) = (f.path("image/index.json"), BlobDescriptor::of(&manifest));
    let index = fs_err::read(&path).expect("an index");
    let index = with_referrers(Some(&index), &[], &[(document.clone(), kind)]).expect("an index");
    fs_err::write(path, index).expect("written");
    document
}

#[test]
fn evidence_in_a_layout_is_that_of_its_image() {
    let f = fixture();
    let image = LayoutImage::open(&f.path("image")).expect("a layout");
    assert_eq!((image.evidence_count(), image.evidence().expect("none").len()), (0, 0));
    add_evidence(&f, &image.digest, "{}");
    let document = add_evidence(&f, &Digest::of(b"another image"), "[]");
    let read = LayoutImage::open(&f.path("image")).expect("one image still");
    assert_eq!(read.digest, image.digest);
    let found = read.evidence().expect("read");
    assert_eq!(found.iter().map(|one| one.envelope.unchecked_payload()).collect::<Vec<_>>(), [b"{}"]);
    // A changed document is refused, whatever it is about.
    let name = document.digest.as_str().trim_start_matches("sha256:").to_owned();
    fs_err::write(f.path("image").join(BLOBS).join(name), "{}").expect("written");
    assert!(matches!(read.evidence(), Err(LayoutError::OtherBlob { .. })));
    // A second manifest of any other type counts as an image.
    let path = f.path("image/index.json");
    let index = fs_err::read_to_string(&path).expect("an index");
    fs_err::write(&path, index.replace("dev.sigstore.bundle.v0.3", "example.thing.v1")).expect("written");
    let error = LayoutImage::open(&f.path("image")).expect_err("several").to_string();
    assert!(error.contains("it has 3 images"), "{error}");
}

#[test]
fn changed_documents_and_layers_are_refused() {
    for start in [b"\x1f\x8b".as_slice(), br#"{"architecture"#, br#"{"config""#] {
        let f = fixture();
        let path = f.blob(start);
        let mut bytes = fs_err::read(&path).expect("a blob");
        let last = bytes.len() - 6;
        bytes[last] ^= 1;
        fs_err::write(&path, bytes).expect("written");
        let error = f.error("image");
        let wanted = path.file_name().expect("a name");
        assert!(matches!(&error, LayoutError::OtherBlob { .. }), "{error}");
        assert!(error.to_string().contains(&format!("blob sha256:{wanted} has the content of")), "{error}");
        assert_eq!(error.exit(), Exit::No);
    }
}

#[test]
fn layer_of_another_image_is_refused() {
    let f = fixture();
    write(&f.path("swapped.tar"), [LAYERS[0], b"the tar of a stranger"]);
    let error = f.error("swapped.tar");
    let stranger = Digest::of(b"the tar of a stranger");
    let text = format!("layer 2 has the content of {stranger} instead of {}", Digest::of(LAYERS[1]));
    assert!(error.to_string().ends_with(&text), "{error}");
    assert_eq!(error.exit(), Exit::No);
}

#[test]
fn cut_tar_and_absent_files_are_named() {
    let f = fixture();
    let tar = fs_err::read(f.path("image.tar")).expect("a tar");
    fs_err::write(f.path("cut.tar"), &tar[..1540]).expect("written");
    let error = f.error("cut.tar");
    assert!(error.to_string().contains("it ends inside `blobs/sha256/"), "{error}");
    assert_eq!(error.exit(), Exit::Usage);
    let layer = f.blob(b"\x1f\x8b");
    fs_err::remove_file(&layer).expect("removed");
    let text = f.error("image").to_string();
    assert!(text.ends_with(&format!("it has no `{BLOBS}/{}`", layer.file_name().unwrap())), "{text}");
    fs_err::remove_file(f.path("image/oci-layout")).expect("removed");
    assert!(f.error("image").to_string().ends_with("it has no `oci-layout`"));
    assert_eq!(f.error("nothing").exit(), Exit::Outside);
    fs_err::write(f.path("text"), "no tar").expect("written");
    assert_eq!(f.error("text").exit(), Exit::Usage);
}

#[test]
fn links_and_pipes_are_not_opened() {
    let f = fixture();
    let layer = f.blob(b"\x1f\x8b");
    fs_err::rename(&layer, f.path("layer")).expect("moved");
    fs_err::os::unix::fs::symlink(f.path("layer"), &layer).expect("linked");
    assert_eq!(f.error("image").exit(), Exit::Usage);
    fs_err::remove_file(&layer).expect("removed");
    rustix::fs::mknodat(rustix::fs::CWD, layer.as_str(), rustix::fs::FileType::Fifo, 0o600.into(), 0)
        .expect("a pipe");
    assert!(f.error("image").to_string().ends_with("not a regular file"));
}

#[test]
fn other_kinds_and_numbers_of_layers_are_named() {
    let zstd = fixture();
    zstd.forge("layer.v1.tar+gzip", "layer.v1.tar+zstd");
    let text = zstd.error("image").to_string();
    assert!(text.ends_with("a layer is a `application/vnd.oci.image.layer.v1.tar+zstd`"), "{text}");
    let fewer = fixture();
    fewer.forge(&format!("\"{}\",", Digest::of(LAYERS[0])), "");
    let text = fewer.error("image").to_string();
    assert!(text.ends_with("it has 2 layers, its configuration 1"), "{text}");
    let two = fixture();
    let index = two.path("image/index.json");
    let mut text: serde_json::Value =
        serde_json::from_str(&fs_err::read_to_string(&index).unwrap()).expect("JSON");
    let again = text["manifests"][0].clone();
    text["manifests"].as_array_mut().expect("a list").push(again);
    fs_err::write(index, text.to_string()).expect("written");
    assert!(two.error("image").to_string().ends_with("it has 2 images"));
}

#[test]
fn layer_that_changes_after_it_was_compared_is_an_error() {
    let f = fixture();
    let image = LayoutImage::open(&f.path("image")).expect("a layout");
    let layer = &image.layers[1];
    layer.check().expect("whole");
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    io::Write::write_all(&mut gzip, &LAYERS[1].to_ascii_uppercase()).expect("in memory");
    let path = f.path("image").join(blob_path(layer.blob.digest.as_str()));
    let size = fs_err::metadata(&path).expect("there").len();
    let mut changed = gzip.finish().expect("in memory");
    changed.resize(usize::try_from(size).expect("small"), 0);
    fs_err::write(path, changed).expect("written");
    let error = layer.write_to(&mut Vec::new()).expect_err("changed");
    assert!(error.downcast::<LayoutError>().is_ok());
}

#[test]
fn more_layers_than_engines_take_are_refused() {
    let f = fixture();
    let layer = f.blob(b"\x1f\x8b");
    let name = layer.file_name().expect("a name");
    let one = format!(r#"{{"digest":"sha256:{name}","#);
    f.forge(
        &one,
        &format!(r#"{{"digest":"sha256:{name}","mediaType":"tar","size":1}},"#).repeat(200).add(&one),
    );
    let text = f.error("image").to_string();
    assert!(text.ends_with("it has 202 layers, engines take 127"), "{text}");
}

#[test]
fn size_of_a_blob_is_the_one_of_the_manifest() {
    let f = fixture();
    let layer = f.blob(b"\x1f\x8b");
    let size = fs_err::metadata(&layer).expect("there").len();
    f.forge(&format!("\"size\":{size}"), &format!("\"size\":{}", size + 1));
    let text = f.error("image").to_string();
    assert!(text.ends_with(&format!("{size} bytes instead of {}", size + 1)), "{text}");
}
