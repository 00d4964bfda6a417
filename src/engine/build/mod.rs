//! Image builds: BuildKit in a session, and the classic builder API.

mod builder;
pub(super) mod builder_kind;
mod buildkit;
mod classic_build;
mod classic_output;
mod classic_request;
mod classic_secrets;
mod context_tar;
mod progress;
mod scratch_tag;
mod session;
mod sync;
pub(super) mod types;
mod walk;
