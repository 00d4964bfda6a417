//! Exports of an image to Compose, Apptainer, Slurm, Kubernetes and dev containers: text from a lock. `policy` asks for evidence.

pub mod cluster;
pub mod compose;
pub(crate) mod devcontainer;
pub mod kubernetes;
pub mod nfd;
pub mod node_affinity;
pub mod policy;
pub(crate) mod project_code;
pub(crate) mod pylock;
pub mod runtime_files;
