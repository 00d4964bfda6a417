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
//! `context`, `verdict`. Edges: `engine`, `base`, `packages`, `gpu`, `store`, `report`.
//! `commands` uses both; nothing uses `commands` or `cli`.

pub mod address;
pub mod agent;
pub mod base;
pub mod cli;
pub mod commands;
pub mod compat;
pub mod content_digest;
pub mod context;
pub mod engine;
pub mod fetch;
pub mod gpu;
pub mod lock;
pub mod packages;
pub mod plan;
pub mod render;
pub mod report;
pub mod resolve;
pub mod settings;
pub mod sha256;
pub mod spec;
pub mod stack;
pub mod store;
pub mod target;
pub mod verdict;
pub mod versions;
