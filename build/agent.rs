//! Compiles the in-image agent with two calls of `$RUSTC`: the protocol is its only dependency, so it needs no cargo.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// Writes the agent to `OUT_DIR/agent`; `ENVFORGE_AGENT=/path` embeds that release build instead.
pub(crate) fn embed() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-env-changed=ENVFORGE_AGENT");
    println!("cargo::rerun-if-changed=kernels/agent/src");
    println!("cargo::rerun-if-changed=kernels/protocol/src");
    println!("cargo::rerun-if-changed=kernels/cuda");
    println!("cargo::rerun-if-changed=kernels/ptx");
    println!("cargo::rerun-if-changed=build");
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let out = PathBuf::from(env::var("OUT_DIR")?).join("agent");
    if let Some(given) = env::var_os("ENVFORGE_AGENT") {
        println!("cargo::rerun-if-changed={}", Path::new(&given).display());
        fs::copy(&given, &out)?;
        return Ok(());
    }
    let scripts = source(&root, "agent", "main.rs").with_file_name("python/products");
    // The agent finds the list in this script's `OUT_DIR`, as under cargo.
    crate::product_scripts::write(&scripts, out.parent().unwrap_or(&root))?;
    let protocol = out.with_file_name("libenvforge_protocol.rlib");
    let library = ["--crate-name", "envforge_protocol", "--crate-type", "rlib"];
    compile(&root, &library, &source(&root, "protocol", "lib.rs"), &protocol)?;
    let dependency = format!("envforge_protocol={}", protocol.display());
    let program = ["--crate-name", "envforge_agent", "--crate-type", "bin", "--extern", &dependency];
    compile(&root, &program, &source(&root, "agent", "main.rs"), &out)
}

/// Returns a crate's source file. The packed crate has no directory with a `Cargo.toml` of its own, but the links to it.
fn source(root: &Path, crate_name: &str, file: &str) -> PathBuf {
    let own = root.join("kernels").join(crate_name).join("src").join(file);
    if own.is_file() { own } else { root.join("kernels/packaged").join(crate_name).join(file) }
}

/// Compiles one crate below `kernels/`, for size: the agent is part of every image. Not `z`: that is 5 % smaller and computes the
/// references of products and convolutions in more than twice the time.
fn compile(root: &Path, crate_flags: &[&str], source: &Path, out: &Path) -> Result<(), Box<dyn Error>> {
    // Flags of the program's own build must not apply: an agent for this processor alone would not run elsewhere.
    let status = Command::new(env::var("RUSTC")?)
        .args(["--edition", "2024"])
        .args(crate_flags)
        .args(["--target", &env::var("TARGET")?])
        .args(["-C", "opt-level=s", "-C", "lto=fat", "-C", "strip=symbols", "-C", "panic=abort"])
        // No panic unwinds here, and the program does not need a random base address.
        .args(["-C", "codegen-units=1", "-C", "force-unwind-tables=no", "-C", "relocation-model=static"])
        .args(["-C", "link-arg=-Wl,--no-eh-frame-hdr,--build-id=none"])
        // Short and the same everywhere: each path in a panic message is part of the program.
        .arg(format!("--remap-path-prefix={}=envforge", root.display()))
        .arg(format!("--remap-path-prefix={}=src", source.parent().unwrap_or(root).display()))
        .arg("-o")
        .arg(out)
        .arg(source)
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .status()?;
    if status.success() { Ok(()) } else { Err(format!("cannot compile {}", source.display()).into()) }
}
