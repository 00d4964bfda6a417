//! Shared libraries that tests compile from a few lines of C.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Compiles a library without the C library in that folder, which is searched for libraries to link with; gives its path.
pub(crate) fn shared_library(folder: &Path, name: &str, source: &str, flags: &[&str]) -> PathBuf {
    let (text, out) = (folder.join(format!("{name}.c")), folder.join(name));
    std::fs::write(&text, source).expect("written");
    let output = Command::new("cc")
        .args(["-shared", "-fPIC", "-nostdlib", "-o"])
        .args([&out, &text])
        .arg(format!("-L{}", folder.display()))
        .args(flags)
        .output()
        .expect("a C compiler");
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    out
}
