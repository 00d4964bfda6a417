//! Containers: throwaway runs, containers of `shell`, their programs, files and volumes.

mod attach;
mod body;
pub(super) mod files;
mod frames;
pub(super) mod guard;
pub(super) mod program;
mod run;
pub(super) mod run_request;
mod shell_container;
pub(super) mod types;
pub(super) mod volume;
pub(super) mod volume_fill;
mod wait;
