//! Lists the agent's scripts of products as Rust: a file in `kernels/agent/src/python/products/` is all that a product needs.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// Writes `products.rs`: an expression of name and text for each `.py` file of the folder, by name.
pub(crate) fn write(folder: &Path, out: &Path) -> Result<(), Box<dyn Error>> {
    let mut files =
        fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>, std::io::Error>>()?;
    files.retain(|path| path.extension().is_some_and(|extension| extension == "py"));
    files.sort();
    let mut text = "&[\n".to_owned();
    for path in files {
        let name = path.file_stem().and_then(|name| name.to_str()).ok_or("a file name is not text")?;
        let path = fs::canonicalize(&path)?;
        let path = path.to_str().ok_or("a path is not UTF-8")?;
        writeln!(text, "    ({name:?}, include_str!({path:?})),")?;
    }
    fs::write(out.join("products.rs"), text + "]\n")?;
    Ok(())
}
