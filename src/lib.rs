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

pub mod agent;
pub mod archive;
pub mod assemble;
pub mod base;
pub mod cli;
pub mod commands;
pub mod engine;
pub mod failure;
pub mod fetch;
pub mod host;
pub mod model;
pub mod packages;
pub mod project_files;
mod refresh;
pub mod registry;
pub mod report;
pub mod settings;
pub mod shell;
pub mod source_build;
pub mod store;
pub mod workflow;

#[cfg(test)]
#[path = "../tests/fuzz/targets.rs"]
mod fuzz;
