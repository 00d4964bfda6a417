//! Files that a cluster starts: the file system of an image as a squashfs, and the same in a SIF, written directly.
//!
//! Owns the bytes of both formats. It is given the paths and the content of each file, and does not know images, layers or wheels.
//!
//! ```text
//! Tree + content of each file ─► blocks (compressed on all cores, written in order) ─► tables ─► superblock
//! ```
//!
//! The formats: <https://dr-emann.github.io/squashfs/squashfs.html> (4.0) and <https://github.com/apptainer/sif> (version 1).

mod blocks;
mod compressor;
mod contents;
mod error;
mod metadata;
mod sif;
mod squashfs;
mod staged;
mod superblock;
mod tables;

pub(crate) use contents::{Contents, Slot};
pub(crate) use error::ClusterFileError;
pub(crate) use sif::{FRONT, sif_front};
pub(crate) use squashfs::{SquashfsOptions, write_squashfs};
pub(crate) use staged::{STAGED, StagedFile};
