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
//! Pure: `model` and the crate `envforge-compat`. Edges: `agent`, `archive`, `assemble` (wheels to layers), `base`, `cluster_file`, `container_layers`, `engine`, `evidence`, `fetch`, `fleet`, `host`,
//! `packages`, `pages`, `project_files`, `registry`, `report`, `shell`, `source_build`, `store`. `workflow` joins them, `commands` are its verbs; nothing
//! uses `commands` or `cli`.

pub mod agent;
pub mod archive;
pub mod assemble;
pub mod base;
pub mod cli;
pub mod cluster_file;
pub mod commands;
pub mod container_layers;
pub mod engine;
pub mod evidence;
pub mod failure;
pub mod fetch;
pub mod fleet;
pub mod host;
#[cfg(feature = "maintain")]
pub mod maintain;
pub mod model;
pub mod packages;
pub mod pages;
pub mod project_files;
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
