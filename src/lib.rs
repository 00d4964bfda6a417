//! envforge: reproducible, verified GPU development images.
//!
//! The path of the data, one function per arrow:
//!
//! ```text
//! args, config ─► Settings ─► Spec ──────┐
//!                 Target (host or named) ─┼─► Stack | Refusal ─► Base ─► Lock ─► BuildPlan ─► image ─► Report ─► tag
//!                 Matrix (compat/*.toml) ─┘
//! ```
//!
//! Pure: `spec`, `versions`, `compat`, `target`, `stack`, `resolve`, `lock`, `plan`, `render`,
//! `context`, `verdict`, `diagnosis`, `inventory`, `vendor`, `compose`, `cluster`, `project` (but for its reading of files to copy).
//! Edges: `engine`, `base`, `packages`, `refresh`, `registry`, `gpu`, `store`, `report`, `shell`.
//! `commands` uses both; nothing uses `commands` or `cli`.

pub mod address;
pub mod agent;
pub mod base;
mod canonical;
pub mod cli;
pub mod cluster;
pub mod commands;
pub mod compat;
pub mod compose;
pub mod content_digest;
pub mod context;
pub mod diagnosis;
pub mod engine;
pub mod fetch;
mod fixed_image;
pub mod host;
pub mod inventory;
pub mod libc;
pub mod lock;
mod owner;
pub mod packages;
pub mod plan;
pub mod project;
mod refresh;
pub mod registry;
pub mod render;
pub mod report;
pub mod required;
pub mod resolve;
pub mod settings;
pub mod sha256;
pub mod shell;
pub mod source_build;
pub mod spec;
pub mod speed;
pub mod stack;
pub mod store;
pub mod tag_policy;
pub mod target;
pub mod vendor;
pub mod verdict;
pub mod versions;
mod wrap;

#[cfg(test)]
#[path = "../tests/fuzz/targets.rs"]
mod fuzz;
