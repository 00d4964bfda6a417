//! Build script: turns `compat/*.toml` into the compact matrix the program embeds, and compiles the agent.
#![expect(clippy::disallowed_methods, reason = "a build script reads files and cargo's environment")]

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{env, fs};

#[path = "build/agent.rs"]
mod agent;
#[path = "build/product_scripts.rs"]
mod product_scripts;

fn main() -> ExitCode {
    match embed_matrix().and_then(|()| agent::embed()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            for line in error.to_string().lines() {
                println!("cargo::error={line}");
            }
            ExitCode::FAILURE
        }
    }
}

/// Reads, lints and writes the matrix to `OUT_DIR/matrix.postcard`.
fn embed_matrix() -> Result<(), Box<dyn Error>> {
    let folder = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("compat");
    println!("cargo::rerun-if-changed={}", folder.display());
    let matrix = envforge_compat::Matrix::read(&folder)?;
    let out = PathBuf::from(env::var("OUT_DIR")?).join("matrix.postcard");
    fs::write(out, matrix.to_postcard()?)?;
    Ok(())
}
