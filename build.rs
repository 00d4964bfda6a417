//! Build script: turns `compat/*.toml` into the compact matrix the program embeds, and compiles the agent.
#![expect(clippy::disallowed_methods, reason = "a build script reads files and cargo's environment")]

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{env, fs};

#[expect(dead_code, unreachable_pub, reason = "shared with the program, which uses the rest")]
#[path = "src/versions.rs"]
mod versions;

#[path = "build/agent.rs"]
mod agent;

/// The files of `src/compat/` that do not need the embedded matrix.
#[expect(dead_code, unreachable_pub, reason = "shared with the program, which uses the rest")]
mod compat {
    #[path = "../src/compat/from_source.rs"]
    pub(crate) mod from_source;
    #[path = "../src/compat/lint/mod.rs"]
    pub(crate) mod lint;
    #[path = "../src/compat/parse.rs"]
    pub(crate) mod parse;
    #[path = "../src/compat/rows.rs"]
    pub(crate) mod rows;
    #[path = "../src/compat/tables.rs"]
    pub(crate) mod tables;
    #[path = "../src/compat/toolkit.rs"]
    pub(crate) mod toolkit;
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
    println!("cargo::rerun-if-changed=src/compat");
    println!("cargo::rerun-if-changed=src/versions.rs");
    let files = toml_files(&folder)?;
    let files: Vec<_> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let matrix = compat::parse::parse(&files)?;
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
