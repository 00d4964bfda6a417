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

#[expect(dead_code, unreachable_pub, reason = "shared with the program, which uses the rest")]
#[path = "src/failure.rs"]
mod failure;

/// The files of `src/model/` that reading the matrix needs, under the names they have there.
#[expect(dead_code, unreachable_pub, unused_imports, reason = "shared with the program, which uses the rest")]
#[path = "src/model"]
mod model {
    pub(crate) mod counted;
    pub(crate) mod required_version;
    pub(crate) mod versions;

    /// Those that do not need the embedded matrix.
    pub(crate) mod compat {
        pub(crate) mod coupled;
        pub(crate) mod from_source;
        pub(crate) mod lint;
        pub(crate) mod needs;
        pub(crate) mod parse;
        pub(crate) mod rows;
        pub(crate) mod tables;
        pub(crate) mod toolkit;
    }
}

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
    println!("cargo::rerun-if-changed=src/model/compat");
    println!("cargo::rerun-if-changed=src/model/required_version.rs");
    println!("cargo::rerun-if-changed=src/model/versions");
    let files = toml_files(&folder)?;
    let files: Vec<_> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let matrix = model::compat::parse::parse(&files)?;
    let out = PathBuf::from(env::var("OUT_DIR")?).join("matrix.postcard");
    fs::write(out, postcard::to_stdvec(&matrix)?)?;
    Ok(())
}

/// The `.toml` files of a folder: name and text.
fn toml_files(folder: &Path) -> Result<Vec<(String, String)>, Box<dyn Error>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            files.push((name, fs::read_to_string(&path)?));
        }
    }
    files.sort();
    Ok(files)
}
