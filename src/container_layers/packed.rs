//! A compressed layer from elsewhere, unpacked into the cache: only if its tar has the digest that was looked for.
#![expect(clippy::disallowed_methods, reason = "edge: reads the cache")]

use std::io::{BufReader, ErrorKind, Read, Write};

use camino::Utf8Path;

use super::error::LayerError;
use super::kept::{KeptLayer, adopt};
use crate::archive::saved_layers::SavedLayer;
use crate::model::bounded::Bounded;
use crate::model::sha256::HashingWriter;
use crate::store::Store;

/// Unpacks a compressed layer into the cache under the SHA-256 of its tar (hex), which has at most `most` bytes.
pub fn keep_packed(
    store: &Store,
    packed: &Utf8Path,
    sha256: &str,
    most: u64,
) -> Result<KeptLayer, LayerError> {
    let other = |found: String| LayerError::OtherLayer { wanted: format!("sha256:{sha256}"), found };
    let mut file = store.temp_file()?;
    // Neither file names itself in its errors: one without a number is about the content.
    let packed = fs_err::File::open(packed)?.into_file();
    let (found, size) = unpack(packed, file.as_file_mut(), most).map_err(|cause| {
        match (cause.raw_os_error(), cause.kind()) {
            (Some(_), _) | (None, ErrorKind::StorageFull) => LayerError::Io(cause),
            (None, _) => other(cause.to_string()),
        }
    })?;
    if found != sha256 {
        return Err(other(format!("sha256:{found}")));
    }
    Ok(adopt(store, SavedLayer { sha256: found, size, file })?)
}

/// Unpacks gzip; returns the SHA-256 of what came out, hex, and its size.
fn unpack(packed: impl Read, out: impl Write, most: u64) -> std::io::Result<(String, u64)> {
    let plain = flate2::bufread::MultiGzDecoder::new(BufReader::with_capacity(1 << 20, packed));
    let mut tar = HashingWriter::new(out);
    let size = std::io::copy(&mut Bounded::new(plain, most), &mut tar)?;
    Ok((tar.finish(), size))
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
        let keep = |bytes: &[u8], most| {
            let packed = root.join("packed");
            fs_err::write(&packed, bytes).expect("ours");
            let kept = keep_packed(&store, &packed, &sha256, most);
            assert_eq!(fs_err::read(&packed).expect("not ours to remove"), bytes);
            kept
        };
        let whole = gzip(&tar);
        let changed = gzip(&[&tar[1..], b"x"].concat());
        let larger = gzip(&[&tar[..], b"x"].concat());
        // Magic bytes of zstd.
        let zstd = [&[0x28, 0xb5, 0x2f, 0xfd][..], &tar].concat();
        let bomb = gzip(&vec![7_u8; 10 << 20]);
        for (bytes, most) in [
            (&changed, u64::MAX),
            (&larger, u64::MAX),
            (&larger, tar.len() as u64),
            (&bomb, tar.len() as u64),
            (&whole[..whole.len() / 2].to_vec(), u64::MAX),
            (&b"not gzip".to_vec(), u64::MAX),
            (&tar, u64::MAX),
            (&zstd, u64::MAX),
        ] {
            let error = keep(bytes, most).expect_err("refused");
            assert!(matches!(error, LayerError::OtherLayer { .. }), "{error}");
            assert_eq!(store.find(&sha256).expect("readable"), None);
        }
        let kept = keep(&[gzip(&tar[..10]), gzip(&tar[10..])].concat(), 100_000).expect("several members");
        assert_eq!(kept, KeptLayer { sha256: sha256.clone(), size: 100_000 });
        assert!(store.find(&sha256).expect("readable").is_some());
        let left = fs_err::read_dir(root.join("cache/temp")).expect("a folder").count();
        assert_eq!(left, 0);
    }

    #[test]
    fn layer_is_read_no_further_than_its_bound() {
        let mut out = Vec::new();
        let error = unpack(&*gzip(&vec![7_u8; 10 << 20]), &mut out, 1000).expect_err("larger");
        assert_eq!(error.kind(), ErrorKind::FileTooLarge);
        assert!(out.len() <= 1000, "{}", out.len());
        out.clear();
        let (_, size) = unpack(&*gzip(&[7_u8; 1000]), &mut out, 1000).expect("as large as that");
        assert_eq!((size, out.len()), (1000, 1000));
    }

    #[test]
    fn full_disk_is_no_fault_of_the_layer() {
        let full = fs_err::File::options().write(true).open("/dev/full").expect("Linux has it").into_file();
        let error = unpack(&*gzip(&[7_u8; 1000]), full, 1000).expect_err("full");
        assert_eq!(error.kind(), ErrorKind::StorageFull);
        assert!(error.raw_os_error().is_some(), "told from wrong content by its number: {error}");
    }

    #[test]
    fn cache_without_room_for_files_is_an_error_of_its_own() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = Utf8Path::from_path(folder.path()).expect("UTF-8");
        let store = Store::open(&root.join("cache"), &root.join("state")).expect("a store");
        let packed = root.join("packed");
        fs_err::write(&packed, gzip(b"tar")).expect("ours");
        fs_err::remove_dir(root.join("cache/temp")).expect("ours");
        fs_err::write(root.join("cache/temp"), b"").expect("ours");
        let error = keep_packed(&store, &packed, &sha256_hex(b"tar"), 3).expect_err("refused");
        assert!(matches!(error, LayerError::Store(_)), "{error}");
    }
}
