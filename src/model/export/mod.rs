//! Exports of an image to Compose, Apptainer, Slurm and dev containers: text from a lock.

pub mod cluster;
pub mod compose;
pub(crate) mod devcontainer;
pub mod runtime_files;
