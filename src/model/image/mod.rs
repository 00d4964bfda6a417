//! The content of an image: layers, labels, variables, context; and its Dockerfile.

pub mod component;
pub mod config;
pub mod context;
pub mod context_files;
pub mod description;
pub mod device_code;
#[cfg(test)]
mod earlier_lock_tests;
mod history;
pub mod info;
pub mod inventory;
pub mod labels;
mod layers;
pub mod libc;
pub(crate) mod login_profile;
pub mod manifest;
pub(crate) mod paths;
pub mod plan;
pub mod render;
mod toolkit;
pub(crate) mod variables;
