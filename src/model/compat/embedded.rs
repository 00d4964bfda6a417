//! The embedded matrix.
//!
//! Owns the embedded bytes, which `build.rs` makes from `compat/*.toml` after the lint has passed.

use std::sync::{Arc, LazyLock};

use envforge_compat::Matrix;

static EMBEDDED: LazyLock<Arc<Matrix>> = LazyLock::new(|| {
    let bytes = include_bytes!(concat!(env!("OUT_DIR"), "/matrix.postcard"));
    Matrix::from_postcard(bytes).map(Arc::new).expect("build.rs wrote these bytes from the same types")
});

/// Returns the embedded matrix, decoded on first use.
pub fn embedded() -> &'static Matrix {
    &EMBEDDED
}

/// Returns the embedded matrix to hold where another one may be in its place.
pub fn built_in() -> Arc<Matrix> {
    Arc::clone(&EMBEDDED)
}
