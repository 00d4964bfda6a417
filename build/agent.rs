//! Compiles the in-image agent with one call of `$RUSTC`: it has no dependency, so it needs no cargo of its own.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// Writes the agent to `OUT_DIR/agent`. `ENVFORGE_AGENT=/path` puts a release build of it in instead.
pub(crate) fn embed() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-env-changed=ENVFORGE_AGENT");
    println!("cargo::rerun-if-changed=kernels/agent");
    println!("cargo::rerun-if-changed=kernels/cuda");
    println!("cargo::rerun-if-changed=kernels/ptx");
    println!("cargo::rerun-if-changed=build/agent.rs");
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let out = PathBuf::from(env::var("OUT_DIR")?).join("agent");
    if let Some(given) = env::var_os("ENVFORGE_AGENT") {
        println!("cargo::rerun-if-changed={}", Path::new(&given).display());
        fs::copy(&given, &out)?;
        return Ok(());
    }
    // Flags of the program's own build must not reach it: an agent for this processor alone would not run elsewhere.
    let status = Command::new(env::var("RUSTC")?)
        .args(["--edition", "2024", "--crate-name", "envforge_agent", "--crate-type", "bin"])
        .args(["--target", &env::var("TARGET")?])
        // It travels into every image: small is worth a minute of the compiler's.
        .args(["-C", "opt-level=z", "-C", "lto=fat", "-C", "strip=symbols", "-C", "panic=abort"])
        // No panic unwinds here, and nothing needs the program to lie at any address.
        .args(["-C", "codegen-units=1", "-C", "force-unwind-tables=no", "-C", "relocation-model=static"])
        .args(["-C", "link-arg=-Wl,--no-eh-frame-hdr,--build-id=none"])
        .arg(format!("--remap-path-prefix={}=envforge", root.display()))
        .arg("-o")
        .arg(&out)
        .arg(root.join("kernels/agent/main.rs"))
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .status()?;
    if status.success() { Ok(()) } else { Err("the agent in kernels/agent does not compile".into()) }
}
