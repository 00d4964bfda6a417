//! The compressed form of a layer: gzip members in which the wheels' own DEFLATE streams appear unchanged.
//!
//! Small members hold headers, small and generated files, deflated here; each larger file of a wheel is a member of its own
//! that is not deflated again. Every reader of gzip concatenates members.
//!
//! The bytes depend on the deflate crate: when an update changes the digest in the test vector of `write.rs`, raise
//! `LAYOUT_VERSION`. zlib-rs 0.6 chooses no matching algorithm by processor: its vector code finds the same matches.

use std::io::{self, Write};

use flate2::{Compress, Compression, Crc, FlushCompress, Status};

/// Content of a small member.
const SMALL_MEMBER: usize = 1 << 20;
/// The level of small members: that of gzip.
const LEVEL: u32 = 6;
/// Content of a stored DEFLATE block.
const STORED_BLOCK: usize = 32 << 10;
/// The header of every member: DEFLATE, no name, no time, unknown system.
const HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];

/// A gzip stream being written.
pub(super) struct Splicer<W> {
    out: W,
    small: Vec<u8>,
    packed: Vec<u8>,
    deflate: Compress,
}

impl<W: Write> Splicer<W> {
    pub(super) fn new(out: W) -> Self {
        let deflate = Compress::new(Compression::new(LEVEL), false);
        Self { out, small: Vec::with_capacity(SMALL_MEMBER), packed: Vec::new(), deflate }
    }

    /// Adds content to the current small member.
    pub(super) fn small(&mut self, mut content: &[u8]) -> io::Result<()> {
        while !content.is_empty() {
            let (now, later) = content.split_at(content.len().min(SMALL_MEMBER - self.small.len()));
            self.small.extend_from_slice(now);
            content = later;
            if self.small.len() == SMALL_MEMBER {
                self.end_small()?;
            }
        }
        Ok(())
    }

    /// Begins a member of its own; its raw DEFLATE stream follows.
    pub(super) fn begin(&mut self) -> io::Result<()> {
        self.end_small()?;
        self.out.write_all(&HEADER)
    }

    /// Adds a part of a raw DEFLATE stream.
    pub(super) fn raw(&mut self, packed: &[u8]) -> io::Result<()> {
        self.out.write_all(packed)
    }

    /// Adds content to a member as stored blocks.
    pub(super) fn stored(&mut self, content: &[u8]) -> io::Result<()> {
        for part in content.chunks(STORED_BLOCK) {
            let length = u16::try_from(part.len()).expect("a block is smaller").to_le_bytes();
            self.out.write_all(&[0, length[0], length[1], !length[0], !length[1]])?;
            self.out.write_all(part)?;
        }
        Ok(())
    }

    /// Ends the stored blocks of a member.
    pub(super) fn end_stored(&mut self) -> io::Result<()> {
        self.out.write_all(&[1, 0, 0, 0xff, 0xff])
    }

    /// Ends a member of its own.
    pub(super) fn end(&mut self, crc32: u32, size: u64) -> io::Result<()> {
        self.out.write_all(&crc32.to_le_bytes())?;
        // gzip counts modulo 2^32.
        self.out.write_all(&size.to_le_bytes()[..4])
    }

    /// Ends the stream and returns what it was written to.
    pub(super) fn finish(mut self) -> io::Result<W> {
        self.end_small()?;
        Ok(self.out)
    }

    fn end_small(&mut self) -> io::Result<()> {
        if self.small.is_empty() {
            return Ok(());
        }
        self.deflate.reset();
        self.packed.clear();
        // Incompressible content grows by a few bytes per block.
        self.packed.reserve(self.small.len() + self.small.len() / 100 + 1024);
        let status = self.deflate.compress_vec(&self.small, &mut self.packed, FlushCompress::Finish)?;
        if status != Status::StreamEnd {
            return Err(io::Error::other("the deflater needs more memory than its input"));
        }
        self.out.write_all(&HEADER)?;
        self.out.write_all(&self.packed)?;
        let mut crc = Crc::new();
        crc.update(&self.small);
        let size = self.small.len() as u64;
        self.small.clear();
        self.end(crc.sum(), size)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    fn plain(packed: &[u8]) -> Vec<u8> {
        let mut plain = Vec::new();
        flate2::read::MultiGzDecoder::new(packed).read_to_end(&mut plain).expect("gzip");
        plain
    }

    #[test]
    fn members_of_all_kinds_are_read_as_one_stream() {
        let noise: Vec<u8> =
            (0..3_000_000_u32).map(|at| at.wrapping_mul(2_654_435_761).to_le_bytes()[3]).collect();
        let mut splicer = Splicer::new(Vec::new());
        splicer.small(&noise).expect("a vector");
        splicer.begin().expect("a vector");
        splicer.stored(&noise[..100_000]).expect("a vector");
        splicer.end_stored().expect("a vector");
        let mut crc = Crc::new();
        crc.update(&noise[..100_000]);
        splicer.end(crc.sum(), 100_000).expect("a vector");
        splicer.small(b"").expect("a vector");
        splicer.begin().expect("a vector");
        splicer.raw(&[3, 0]).expect("a vector");
        splicer.end(0, 0).expect("a vector");
        splicer.small(b"end").expect("a vector");
        let packed = splicer.finish().expect("a vector");
        assert!(plain(&packed) == [noise.as_slice(), &noise[..100_000], b"end"].concat());
        assert_eq!(packed.windows(10).filter(|bytes| *bytes == HEADER).count(), 6);
    }

    #[test]
    fn members_do_not_depend_on_how_content_arrives() {
        let content: Vec<u8> = (0..2_500_000_u32).map(|at| u8::try_from(at % 251).unwrap_or(0)).collect();
        let packed = |size: usize| {
            let mut splicer = Splicer::new(Vec::new());
            content.chunks(size).for_each(|part| splicer.small(part).expect("a vector"));
            splicer.finish().expect("a vector")
        };
        assert!(packed(content.len()) == packed(1000));
        assert!(plain(&packed(7777)) == content);
        assert!(Splicer::new(Vec::new()).finish().expect("a vector").is_empty());
    }
}
