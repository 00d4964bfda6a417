//! The embedded matrix and the active one.
//!
//! Owns the embedded bytes, which `build.rs` makes from `compat/*.toml` after the lint has passed.

use std::sync::{LazyLock, OnceLock};

use super::tables::Matrix;

static EMBEDDED: LazyLock<Matrix> = LazyLock::new(|| {
    let bytes = include_bytes!(concat!(env!("OUT_DIR"), "/matrix.postcard"));
    postcard::from_bytes(bytes).expect("build.rs wrote these bytes from the same types")
});
static CHOSEN: OnceLock<Matrix> = OnceLock::new();

impl Matrix {
    /// Returns the embedded matrix, decoded on first use.
    pub fn embedded() -> &'static Self {
        &EMBEDDED
    }

    /// Returns the active matrix: the one selected on this machine, else the embedded one.
    pub fn current() -> &'static Self {
        CHOSEN.get().unwrap_or_else(|| Self::embedded())
    }

    /// Activates this matrix, once and before any lookup.
    pub fn choose(self) {
        // A second one would change results during a run.
        let _ = CHOSEN.set(self);
    }
}
