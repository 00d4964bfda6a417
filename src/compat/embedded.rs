//! The matrix this program was built with, and the one that is in force.
//!
//! Owns the embedded bytes; `build.rs` made them from `compat/*.toml` after the lint had passed.

use std::sync::{LazyLock, OnceLock};

use super::tables::Matrix;

static EMBEDDED: LazyLock<Matrix> = LazyLock::new(|| {
    let bytes = include_bytes!(concat!(env!("OUT_DIR"), "/matrix.postcard"));
    postcard::from_bytes(bytes).expect("build.rs wrote these bytes from the same types")
});
static CHOSEN: OnceLock<Matrix> = OnceLock::new();

impl Matrix {
    /// The matrix this program was built with, decoded on first use.
    pub fn embedded() -> &'static Self {
        &EMBEDDED
    }

    /// The matrix in force: the edition chosen for this machine, else the one this program was built with.
    pub fn current() -> &'static Self {
        CHOSEN.get().unwrap_or_else(|| Self::embedded())
    }

    /// Puts an edition in force, once and before anything is asked of the matrix.
    pub fn choose(self) {
        // A second one would change answers in the middle of a run.
        let _ = CHOSEN.set(self);
    }
}
