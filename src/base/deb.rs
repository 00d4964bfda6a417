//! Reads a .deb: an `ar` archive whose member `data.tar.*` holds the files.
//!
//! Owns the format. The bytes are verified, but their content is not trusted.

use std::io::{BufReader, Read, Seek, SeekFrom};

use super::compressed::xz;
use super::limits::LARGEST_DEB;
use crate::model::bounded::Bounded;

/// Why a .deb cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DebError {
    /// Not an `ar` archive, or truncated.
    #[error("not a Debian package: {what}")]
    Format {
        /// The problem.
        what: &'static str,
    },
    /// Its files have an unsupported compression.
    #[error("unsupported compression `{member}`")]
    Compression {
        /// The member.
        member: String,
    },
    /// Its files cannot be unpacked.
    #[error("cannot unpack its files: {0}")]
    Unpack(#[from] std::io::Error),
}

const MAGIC: &[u8; 8] = b"!<arch>\n";
const HEADER: usize = 60;

/// Returns the tar stream of a package's files, decompressed while it is read.
pub(crate) fn data_tar<'a>(deb: &'a mut (impl Read + Seek)) -> Result<Box<dyn Read + 'a>, DebError> {
    let (name, size) = find_data_member(deb)?;
    let content = BufReader::new(deb.take(size));
    let unpacked: Box<dyn Read + 'a> = match name.strip_prefix("data.tar").unwrap_or_default() {
        "" => Box::new(content),
        ".xz" => Box::new(xz(content)?),
        // The library bounds its memory by itself: a window of 128 MiB.
        ".zst" => Box::new(zstd::stream::read::Decoder::with_buffer(content)?),
        ".gz" => Box::new(flate2::bufread::MultiGzDecoder::new(content)),
        _ => return Err(DebError::Compression { member: name }),
    };
    Ok(Box::new(Bounded::new(unpacked, LARGEST_DEB)))
}

/// Finds the member `data.tar.*`: returns its name and size, and leaves the reader at its first byte.
fn find_data_member(deb: &mut (impl Read + Seek)) -> Result<(String, u64), DebError> {
    let wrong = |what| DebError::Format { what };
    let total = deb.seek(SeekFrom::End(0))?;
    deb.rewind()?;
    let mut magic = [0; MAGIC.len()];
    if total < MAGIC.len() as u64 || deb.read_exact(&mut magic).is_err() || magic != *MAGIC {
        return Err(wrong("it is not an `ar` archive"));
    }
    let mut at = MAGIC.len() as u64;
    while at < total {
        if total - at < HEADER as u64 {
            return Err(wrong("it is truncated"));
        }
        deb.seek(SeekFrom::Start(at))?;
        let mut header = [0; HEADER];
        deb.read_exact(&mut header)?;
        at += HEADER as u64;
        let text =
            |range: std::ops::Range<usize>| std::str::from_utf8(&header[range]).unwrap_or_default().trim();
        let size: u64 = text(48..58).parse().map_err(|_| wrong("a member has no size"))?;
        if size > total - at {
            return Err(wrong("it is truncated"));
        }
        let name = text(0..16).trim_end_matches('/');
        if name.starts_with("data.tar") {
            return Ok((name.to_owned(), size));
        }
        // Members start at even offsets.
        at += size + size % 2;
    }
    Err(wrong("it has no member `data.tar`"))
}

#[cfg(test)]
pub(crate) mod tests {
    use std::io::Write as _;

    use super::*;

    /// A .deb with these members.
    pub(crate) fn ar(members: &[(&str, &[u8])]) -> Vec<u8> {
        let mut deb = MAGIC.to_vec();
        for (name, content) in members {
            deb.extend_from_slice(
                format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n", 0, 0, 0, 100_644, content.len())
                    .as_bytes(),
            );
            deb.extend_from_slice(content);
            deb.resize(deb.len() + content.len() % 2, b'\n');
        }
        deb
    }

    fn unpacked(deb: &[u8]) -> Result<Vec<u8>, DebError> {
        let mut bytes = Vec::new();
        data_tar(&mut std::io::Cursor::new(deb))?.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    #[test]
    fn files_are_unpacked_from_every_compression() {
        let content: &[u8] = b"the tar of the files";
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gz.write_all(content).expect("gz");
        let mut xz = liblzma::write::XzEncoder::new(Vec::new(), 1);
        xz.write_all(content).expect("xz");
        for (name, packed) in [
            ("data.tar", content.to_vec()),
            ("data.tar.gz", gz.finish().expect("gz")),
            ("data.tar.xz/", xz.finish().expect("xz")),
            ("data.tar.zst", zstd::stream::encode_all(content, 1).expect("zst")),
        ] {
            let deb = ar(&[("debian-binary", b"2.0\n"), ("control.tar.xz", b"odd"), (name, &packed)]);
            assert_eq!(unpacked(&deb).expect(name), content, "{name}");
        }
    }

    #[test]
    fn invalid_package_is_an_error() {
        let whole = ar(&[("debian-binary", b"2.0\n"), ("data.tar.xz", b"not xz at all")]);
        for deb in
            [b"".as_slice(), b"PK\x03\x04", &whole[..30], &whole[..100], &ar(&[("debian-binary", b"2.0\n")])]
        {
            let error = unpacked(deb).expect_err("refused");
            assert!(matches!(error, DebError::Format { .. }), "{error}");
        }
        assert!(matches!(unpacked(&whole), Err(DebError::Unpack(_))));
        let odd = unpacked(&ar(&[("data.tar.lzma", b"x")])).expect_err("unknown");
        assert!(matches!(odd, DebError::Compression { .. }), "{odd}");
    }
}
