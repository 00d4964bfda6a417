//! Build script of the agent under cargo: lists the scripts of products. envforge's own build script does the same for the agent it embeds.
#![expect(clippy::disallowed_methods, reason = "a build script reads files and cargo's environment")]

use std::error::Error;
use std::path::PathBuf;

#[path = "../../build/product_scripts.rs"]
mod product_scripts;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=src/python/products");
    println!("cargo::rerun-if-changed=../../build/product_scripts.rs");
    let root = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR")?);
    product_scripts::write(&root.join("src/python/products"), &PathBuf::from(std::env::var("OUT_DIR")?))
}
