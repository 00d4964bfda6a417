//! Exports of an image to Compose, Apptainer, Slurm, Kubernetes and dev containers: text from a lock.

pub mod cluster;
pub mod compose;
pub(crate) mod devcontainer;
pub mod kubernetes;
pub mod node_affinity;
pub mod runtime_files;
