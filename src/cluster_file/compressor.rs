//! Compressing one block at a time: the same block always gives the same bytes.

use std::io::{Error, Result};

use flate2::{Compress, Compression, FlushCompress, Status};

use crate::model::file_compression::FileCompression;

/// A compressor with its state.
pub(super) enum Compressor {
    Zstd(zstd::bulk::Compressor<'static>),
    Gzip(Compress),
    Lz4,
}

impl Compressor {
    pub(super) fn new(compression: FileCompression) -> Result<Self> {
        Ok(match compression {
            FileCompression::Zstd(level) => Self::Zstd(zstd::bulk::Compressor::new(i32::from(level))?),
            FileCompression::Gzip(level) => {
                Self::Gzip(Compress::new(Compression::new(u32::from(level)), true))
            }
            FileCompression::Lz4 => Self::Lz4,
        })
    }

    /// Compresses a block into a buffer; `false`: it does not become smaller, and the buffer holds nothing of use.
    pub(super) fn compress(&mut self, block: &[u8], packed: &mut Vec<u8>) -> Result<bool> {
        packed.clear();
        match self {
            Self::Zstd(compressor) => {
                packed.reserve(zstd::zstd_safe::compress_bound(block.len()));
                compressor.compress_to_buffer(block, packed)?;
            }
            Self::Gzip(compressor) => {
                compressor.reset();
                packed.reserve(block.len());
                let status =
                    compressor.compress_vec(block, packed, FlushCompress::Finish).map_err(Error::other)?;
                if status != Status::StreamEnd {
                    return Ok(false);
                }
            }
            Self::Lz4 => {
                packed.resize(lz4_flex::block::get_maximum_output_size(block.len()), 0);
                let size = lz4_flex::block::compress_into(block, packed).map_err(Error::other)?;
                packed.truncate(size);
            }
        }
        Ok(packed.len() < block.len())
    }
}

/// The number of an algorithm in the superblock.
pub(super) fn number(compression: FileCompression) -> u16 {
    match compression {
        FileCompression::Gzip(_) => 1,
        FileCompression::Lz4 => 5,
        FileCompression::Zstd(_) => 6,
    }
}

/// What stands behind the superblock about the algorithm, if anything does.
pub(super) fn options(compression: FileCompression) -> Vec<u8> {
    match compression {
        FileCompression::Zstd(level) => u32::from(level).to_le_bytes().to_vec(),
        // Its version, without flags: the kernel asks for it.
        FileCompression::Lz4 => [1_u32.to_le_bytes(), 0_u32.to_le_bytes()].concat(),
        // Level, window and strategies.
        FileCompression::Gzip(level) => {
            [&u32::from(level).to_le_bytes()[..], &15_u16.to_le_bytes(), &1_u16.to_le_bytes()].concat()
        }
    }
}
