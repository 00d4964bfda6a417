//! Reads a .deb: an `ar` archive whose member `data.tar.*` holds the files.
//!
//! Owns the format. The bytes were verified before; it still believes nothing of their inside.

use std::io::Read;

/// Why a .deb cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DebError {
    /// It is no `ar` archive, or cut.
    #[error("not a Debian package: {what}")]
    Format {
        /// What is wrong with it.
        what: &'static str,
    },
    /// Its files are packed in a way we do not read.
    #[error("its files are packed as `{member}`, which is not known")]
    Compression {
        /// The member.
        member: String,
    },
    /// Its files cannot be unpacked.
    #[error("its files cannot be unpacked: {0}")]
    Unpack(#[from] std::io::Error),
}

const MAGIC: &[u8] = b"!<arch>\n";
const HEADER: usize = 60;

/// The tar stream of a package's files, unpacked while it is read.
pub(crate) fn data_tar(deb: &[u8]) -> Result<Box<dyn Read + '_>, DebError> {
    let (name, content) = data_member(deb)?;
    Ok(match name.strip_prefix("data.tar").unwrap_or_default() {
        "" => Box::new(content),
        ".xz" => Box::new(liblzma::read::XzDecoder::new_multi_decoder(content)),
        ".zst" => Box::new(zstd::stream::read::Decoder::new(content)?),
        ".gz" => Box::new(flate2::read::MultiGzDecoder::new(content)),
        _ => return Err(DebError::Compression { member: name }),
    })
}

fn data_member(deb: &[u8]) -> Result<(String, &[u8]), DebError> {
    let wrong = |what| DebError::Format { what };
    let mut rest = deb.strip_prefix(MAGIC).ok_or_else(|| wrong("it is no `ar` archive"))?;
    while !rest.is_empty() {
        let (header, after) = rest.split_at_checked(HEADER).ok_or_else(|| wrong("it is cut"))?;
        let text =
            |range: std::ops::Range<usize>| std::str::from_utf8(&header[range]).unwrap_or_default().trim();
        let size: usize = text(48..58).parse().map_err(|_| wrong("a member has no size"))?;
        let (content, after) = after.split_at_checked(size).ok_or_else(|| wrong("it is cut"))?;
        let name = text(0..16).trim_end_matches('/');
        if name.starts_with("data.tar") {
            return Ok((name.to_owned(), content));
        }
        // Members start at even offsets.
        rest = after.get(size % 2..).unwrap_or_default();
    }
    Err(wrong("it holds no files"))
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
        data_tar(deb)?.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    #[test]
    fn files_are_found_behind_odd_members_and_unpacked_from_every_compression() {
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
    fn what_is_no_package_is_an_error_and_never_a_panic() {
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
