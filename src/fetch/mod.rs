//! Downloads over HTTP: one client, one retry policy, every file checked against its SHA-256.
//!
//! Owns retries, resuming, proxies and progress of downloads. Must not know what the files mean, nor any address.

mod ask;
mod client;
mod error;
mod partial;
mod settings;
mod transfer;

pub use ask::{Answer, Ask};
pub use client::{Download, Fetcher};
pub use error::FetchError;
pub use settings::FetchSettings;
pub use transfer::Transfer;
