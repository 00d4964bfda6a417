//! Decompression with bounded memory: the header of a file says how much its reader is to allocate.

use std::io::{BufRead, Read, Result};

use liblzma::bufread::XzDecoder;
use liblzma::stream::{CONCATENATED, Stream};

use super::limits::XZ_MEMORY;

/// Unpacks xz while it is read; fails if that takes more than [`XZ_MEMORY`].
pub(super) fn xz(packed: impl BufRead) -> Result<impl Read> {
    Ok(XzDecoder::new_stream(packed, Stream::new_stream_decoder(XZ_MEMORY, CONCATENATED)?))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use liblzma::stream::{Check, Filters, LzmaOptions};

    use super::*;

    fn packed(dictionary: u32) -> Vec<u8> {
        let mut options = LzmaOptions::new_preset(1).expect("options");
        options.dict_size(dictionary);
        let mut filters = Filters::new();
        filters.lzma2(&options);
        let stream = Stream::new_stream_encoder(&filters, Check::Crc32).expect("encoder");
        let mut writer = liblzma::write::XzEncoder::new_stream(Vec::new(), stream);
        writer.write_all(b"content").expect("packed");
        writer.finish().expect("packed")
    }

    #[test]
    fn file_that_wants_too_much_memory_is_rejected() {
        let mut text = String::new();
        xz(&packed(1 << 20)[..]).expect("a decoder").read_to_string(&mut text).expect("unpacked");
        assert_eq!(text, "content");
        // 1.5 GiB is the most that the format has; the encoder would take ten times as much: the header is enough.
        let mut wants = packed(1 << 20);
        let (dictionary, header) = (16, 12..20);
        assert_eq!(wants[dictionary], 16, "1 MiB");
        wants[dictionary] = 37;
        let sum = crc32fast_of(&wants[header.clone()]);
        wants[header.end..header.end + 4].copy_from_slice(&sum.to_le_bytes());
        let error = xz(&wants[..]).expect("a decoder").read_to_string(&mut text).expect_err("refused");
        assert!(error.to_string().contains("memory"), "{error}");
    }

    fn crc32fast_of(bytes: &[u8]) -> u32 {
        let mut crc = flate2::Crc::new();
        crc.update(bytes);
        crc.sum()
    }
}
