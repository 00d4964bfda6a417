//! A compressed layer from elsewhere, unpacked into the cache: only if its tar has the digest that was looked for.
#![expect(clippy::disallowed_methods, reason = "edge: reads the cache")]

use std::io::{BufReader, ErrorKind};

use camino::Utf8Path;

use super::error::LayerError;
use super::kept::{KeptLayer, adopt};
use super::limits::LARGEST_LAYER;
use crate::archive::saved_layers::SavedLayer;
use crate::model::bounded::Bounded;
use crate::model::sha256::HashingWriter;
use crate::store::Store;

/// Unpacks a compressed layer into the cache under the SHA-256 of its tar (hex) and removes the compressed file. `size` is
/// that of the tar, if it is known.
pub fn keep_packed(
    store: &Store,
    packed: &Utf8Path,
    sha256: &str,
    size: Option<u64>,
) -> Result<KeptLayer, LayerError> {
    let other = |found: String| LayerError::OtherLayer { wanted: format!("sha256:{sha256}"), found };
    let mut file = store.temp_file()?;
    // Neither file names itself in its errors: one without a number is about the content.
    let packed_file = BufReader::with_capacity(1 << 20, fs_err::File::open(packed)?.into_file());
    let plain = flate2::bufread::MultiGzDecoder::new(packed_file);
    let mut tar = HashingWriter::new(file.as_file_mut());
    let copied = std::io::copy(&mut Bounded::new(plain, size.unwrap_or(LARGEST_LAYER)), &mut tar);
    let found = tar.finish();
    let removed = fs_err::remove_file(packed);
    let size = copied.map_err(|cause| match (cause.raw_os_error(), cause.kind()) {
        (Some(_), _) | (None, ErrorKind::StorageFull) => LayerError::Io(cause),
        (None, _) => other(cause.to_string()),
    })?;
    removed?;
    if found != sha256 {
        return Err(other(format!("sha256:{found}")));
    }
    Ok(adopt(store, SavedLayer { sha256: found, size, file })?)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;
    use crate::model::sha256::sha256_hex;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        out.write_all(bytes).expect("a vector");
        out.finish().expect("a vector")
    }

    #[test]
    fn layer_is_kept_only_with_the_digest_of_its_tar() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = Utf8Path::from_path(folder.path()).expect("UTF-8");
        let store = Store::open(&root.join("cache"), &root.join("state")).expect("a store");
        let tar = vec![7_u8; 100_000];
        let sha256 = sha256_hex(&tar);
        let keep = |bytes: &[u8], size| {
            let packed = root.join("packed");
            fs_err::write(&packed, bytes).expect("ours");
            let kept = keep_packed(&store, &packed, &sha256, size);
            assert!(!packed.exists(), "it is needed once");
            kept
        };
        let whole = gzip(&tar);
        let changed = gzip(&[&tar[1..], b"x"].concat());
        let larger = gzip(&[&tar[..], b"x"].concat());
        for (bytes, size) in [
            (&changed, None),
            (&larger, None),
            (&larger, Some(tar.len() as u64)),
            (&whole[..whole.len() / 2].to_vec(), None),
            (&b"not gzip".to_vec(), None),
        ] {
            let error = keep(bytes, size).expect_err("refused");
            assert!(matches!(error, LayerError::OtherLayer { .. }), "{error}");
            assert_eq!(store.find(&sha256).expect("readable"), None);
        }
        let kept = keep(&[gzip(&tar[..10]), gzip(&tar[10..])].concat(), None).expect("several members");
        assert_eq!(kept, KeptLayer { sha256: sha256.clone(), size: 100_000 });
        assert!(store.find(&sha256).expect("readable").is_some());
        let left = fs_err::read_dir(root.join("cache/temp")).expect("a folder").count();
        assert_eq!(left, 0);
    }

    #[test]
    fn full_disk_is_an_error_of_its_own() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = Utf8Path::from_path(folder.path()).expect("UTF-8");
        let store = Store::open(&root.join("cache"), &root.join("state")).expect("a store");
        let packed = root.join("packed");
        fs_err::write(&packed, gzip(b"tar")).expect("ours");
        fs_err::remove_dir(root.join("cache/temp")).expect("ours");
        // A file instead of the directory: nothing can be written into it, as on a full disk.
        fs_err::write(root.join("cache/temp"), b"").expect("ours");
        let error = keep_packed(&store, &packed, &sha256_hex(b"tar"), None).expect_err("refused");
        assert!(matches!(error, LayerError::Store(_)), "{error}");
    }
}
