//! Downloads over HTTP: one client, one retry policy, every file checked against its SHA-256.
//!
//! Owns retries, resuming, proxies and progress of downloads. Must not know the meaning of files, nor any address.

mod client;
mod download;
mod error;
mod pace;
mod partial;
mod reach;
mod redirect;
mod request;
mod settings;
mod temporary;
mod transfer;
mod upload;
mod verified;

pub use client::Fetcher;
pub use download::Download;
pub use error::FetchError;
pub(crate) use error::is_transient;
pub use reach::Reach;
pub use request::{HttpRequest, HttpResponse};
pub use settings::FetchSettings;
pub use temporary::TemporaryDownload;
pub use transfer::Transfer;
pub use upload::{Piece, Upload};
pub(crate) use verified::open_verified;
