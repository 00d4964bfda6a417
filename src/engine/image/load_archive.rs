//! The archive of `POST /images/load` that every engine reads: `manifest.json` and an OCI layout, without the layers that the
//! engine has.

use std::io::Write;

use bytes::Bytes;
use serde_json::{Value, json};

use crate::engine::image::layered::{Blob, ImageLayer};
use crate::engine::image::names::split_tag;
use crate::model::image::manifest::{CONFIG_TYPE, INDEX_TYPE, LAYOUT_FILE, MANIFEST_TYPE, blob_path};
use crate::model::sha256::sha256_hex;

/// Writes the layers that the engine lacks. The archive is closed by [`write_end`].
pub(super) fn write_layers<W: Write>(
    tar: &mut tar::Builder<W>,
    layers: &[ImageLayer],
) -> std::io::Result<()> {
    for layer in layers {
        let Blob { digest, size, content, .. } = layer.blob();
        let content = content.ok_or_else(|| {
            std::io::Error::other(format!("the engine lost layer {} of the base", layer.diff_id))
        })?;
        let header = header(&blob_path(digest), size)?;
        let out = tar.get_mut();
        out.write_all(header.as_bytes())?;
        let mut counted = Counted { out: &mut *out, title: &layer.title, size, written: 0 };
        content.write_to(&mut counted)?;
        let found = counted.written;
        if found != size {
            let text = format!("layer {} has {found} bytes instead of {size}", layer.title);
            return Err(std::io::Error::other(text));
        }
        let rest = usize::try_from(size % 512).unwrap_or(0);
        if rest > 0 {
            out.write_all(&[0; 512][rest..])?;
        }
    }
    Ok(())
}

/// Writes the configuration and both lists, and closes the archive. `all` are all layers of the image, lowest first.
pub(super) fn write_end<W: Write>(
    mut tar: tar::Builder<W>,
    config: &Bytes,
    all: &[ImageLayer],
    tag: &str,
) -> std::io::Result<()> {
    let config_digest = format!("sha256:{}", sha256_hex(config));
    let blobs: Vec<Blob<'_>> = all.iter().map(ImageLayer::blob).collect();
    let layers: Vec<Value> =
        blobs.iter().map(|blob| entry(blob.media_type, blob.digest, blob.size)).collect();
    let config_entry = entry(CONFIG_TYPE, &config_digest, config.len() as u64);
    let manifest = json!({
        "schemaVersion": 2, "mediaType": MANIFEST_TYPE, "config": config_entry, "layers": layers,
    })
    .to_string();
    let manifest_digest = format!("sha256:{}", sha256_hex(manifest.as_bytes()));
    let mut in_index = entry(MANIFEST_TYPE, &manifest_digest, manifest.len() as u64);
    in_index["annotations"] = json!({
        "io.containerd.image.name": format!("docker.io/library/{tag}"),
        "org.opencontainers.image.ref.name": split_tag(tag).1.unwrap_or("latest"),
    });
    let index = json!({ "schemaVersion": 2, "mediaType": INDEX_TYPE, "manifests": [in_index] }).to_string();
    let names: Vec<_> = blobs.iter().map(|blob| blob_path(blob.digest)).collect();
    let list =
        json!([{ "Config": blob_path(&config_digest), "RepoTags": [tag], "Layers": names }]).to_string();
    append(&mut tar, &blob_path(&config_digest), config)?;
    append(&mut tar, &blob_path(&manifest_digest), manifest.as_bytes())?;
    append(&mut tar, "oci-layout", LAYOUT_FILE.as_bytes())?;
    append(&mut tar, "index.json", index.as_bytes())?;
    append(&mut tar, "manifest.json", list.as_bytes())?;
    tar.into_inner()?.flush()
}

fn entry(media_type: &str, digest: &str, size: u64) -> Value {
    json!({ "mediaType": media_type, "digest": digest, "size": size })
}

fn append(tar: &mut tar::Builder<impl Write>, path: &str, bytes: &[u8]) -> std::io::Result<()> {
    tar.append(&header(path, bytes.len() as u64)?, bytes)
}

fn header(path: &str, size: u64) -> std::io::Result<tar::Header> {
    let mut header = tar::Header::new_gnu();
    header.set_path(path)?;
    header.set_mode(0o644);
    header.set_mtime(0);
    header.set_size(size);
    header.set_cksum();
    Ok(header)
}

/// A writer of a layer that counts. What exceeds the layer's size is never passed on: it would be the next file of the archive.
struct Counted<'a, W> {
    out: W,
    title: &'a str,
    size: u64,
    written: u64,
}

impl<W: Write> Write for Counted<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let Self { title, size, .. } = self;
        if bytes.len() as u64 > *size - self.written {
            return Err(std::io::Error::other(format!("layer {title} has more than {size} bytes")));
        }
        let count = self.out.write(bytes)?;
        self.written += count as u64;
        Ok(count)
    }
    fn flush(&mut self) -> std::io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::sync::Arc;

    use super::*;
    use crate::engine::image::layered::{LayerContent, PackedLayer};

    struct Text(&'static str);

    impl LayerContent for Text {
        fn write_to(&self, out: &mut dyn Write) -> std::io::Result<()> {
            out.write_all(self.0.as_bytes())
        }
    }

    /// The archive of a layer that should have three bytes, and the error.
    fn written(text: &'static str) -> (Vec<u8>, Option<String>) {
        let content: Option<Arc<dyn LayerContent>> = Some(Arc::new(Text(text)));
        let (title, diff_id) = ("torch".to_owned(), format!("sha256:{}", sha256_hex(b"abc")));
        let mut tar = tar::Builder::new(Vec::new());
        let layers = [ImageLayer { title, diff_id, size: 3, content, packed: None }];
        let error = write_layers(&mut tar, &layers).err().map(|error| error.to_string());
        (std::mem::take(tar.get_mut()), error)
    }

    #[test]
    fn compressed_form_goes_to_a_store_that_keeps_it() {
        let content = |text| -> Arc<dyn LayerContent> { Arc::new(Text(text)) };
        let packed = PackedLayer { digest: "sha256:bb".to_owned(), size: 6, content: content("packed") };
        let layer = ImageLayer {
            title: "torch".to_owned(),
            diff_id: "sha256:aa".to_owned(),
            size: 3,
            content: Some(content("abc")),
            packed: Some(packed),
        };
        for (keeps_blobs, name, bytes, media_type) in [
            (true, "blobs/sha256/bb", "packed", "application/vnd.oci.image.layer.v1.tar+gzip"),
            (false, "blobs/sha256/aa", "abc", "application/vnd.oci.image.layer.v1.tar"),
        ] {
            let layers = [layer.clone().for_store(keeps_blobs)];
            let mut archive = Vec::new();
            let mut tar = tar::Builder::new(&mut archive);
            write_layers(&mut tar, &layers).expect("a vector");
            write_end(tar, &Bytes::from_static(b"{}"), &layers, "torch:1").expect("a vector");
            let mut files = std::collections::BTreeMap::new();
            for entry in tar::Archive::new(archive.as_slice()).entries().expect("a tar") {
                let mut entry = entry.expect("an entry");
                let path = entry.path().expect("a path").to_string_lossy().into_owned();
                let mut text = String::new();
                entry.read_to_string(&mut text).expect("text");
                files.insert(path, text);
            }
            assert_eq!(files[name], bytes);
            let list: Value = serde_json::from_str(&files["manifest.json"]).expect("JSON");
            assert_eq!(list[0]["Layers"], json!([name]));
            let index: Value = serde_json::from_str(&files["index.json"]).expect("JSON");
            let manifest = blob_path(index["manifests"][0]["digest"].as_str().expect("a digest"));
            let manifest: Value = serde_json::from_str(&files[&manifest]).expect("JSON");
            let digest = format!("sha256:{}", name.trim_start_matches("blobs/sha256/"));
            let expected = json!([{ "mediaType": media_type, "digest": digest, "size": bytes.len() }]);
            assert_eq!(manifest["layers"], expected);
        }
    }

    #[test]
    fn layer_of_another_size_is_an_error_and_nothing_of_it_becomes_another_file() {
        let (archive, error) = written("abc");
        assert_eq!((archive.len(), error), (1024, None));
        assert_eq!(&archive[512..515], b"abc");
        let (archive, error) = written("abcd");
        assert_eq!((archive.len(), error.as_deref()), (512, Some("layer torch has more than 3 bytes")));
        let (_, error) = written("ab");
        assert_eq!(error.as_deref(), Some("layer torch has 2 bytes instead of 3"));
    }
}
