//! The matrix this program was built with.
//!
//! Owns the embedded bytes; `build.rs` made them from `compat/*.toml` after the lint had passed.

use std::sync::LazyLock;

use super::tables::Matrix;

static EMBEDDED: LazyLock<Matrix> = LazyLock::new(|| {
    let bytes = include_bytes!(concat!(env!("OUT_DIR"), "/matrix.postcard"));
    postcard::from_bytes(bytes).expect("build.rs wrote these bytes from the same types")
});

impl Matrix {
    /// The matrix this program was built with, decoded on first use.
    pub fn embedded() -> &'static Self {
        &EMBEDDED
    }
}
