//! `init`: a first envforge.toml out of what the folder and the machine say. Asks nothing.
#![expect(clippy::disallowed_methods, reason = "edge: looks into the folder and writes the file")]

use camino::Utf8Path;

use super::lock::stack;
use super::{CommandError, Exit};
use crate::cli::{InitArgs, LockSource};
use crate::project::{FILE, Found, from_requirements, is_apt_name, starter};
use crate::report::Printer;
use crate::settings::Settings;
use crate::store::write_atomically;

/// Packages whose presence says which product is meant.
const PRODUCTS: [(&str, &str); 6] = [
    ("torch", "pytorch-cuda"),
    ("tensorflow", "tensorflow-cuda"),
    ("jax", "jax-cuda"),
    ("vllm", "vllm-cuda"),
    ("cupy-cuda12x", "cupy-cuda"),
    ("onnxruntime-gpu", "onnxruntime-cuda"),
];

pub(super) fn init(args: &InitArgs, settings: &Settings) -> Result<Exit, CommandError> {
    let folder = &settings.current_dir;
    let file = folder.join(FILE);
    if file.exists() && !args.force {
        return Err(CommandError::ProjectExists { file: file.to_string() });
    }
    let mut found = look(folder)?;
    let typed = args.spec.clone().unwrap_or_else(|| product(&found, folder));
    // What is written is what runs on this machine today, by name.
    let stack = stack(settings, &typed, &LockSource::default(), &args.target, None)?;
    let short = stack.name.trim_end_matches(&format!("-py{}", stack.python)).to_owned();
    found.spec = if args.spec.is_some() { typed } else { short };
    write_atomically(&file, starter(&found).as_bytes())?;
    Printer.text(file.as_str());
    if !settings.output.quiet {
        Printer.say(&format!("next: envforge build    ({})", found.spec));
    }
    Ok(Exit::Done)
}

fn look(folder: &Utf8Path) -> Result<Found, CommandError> {
    let has = |name: &str| folder.join(name).is_file();
    let read = |name: &str| fs_err::read_to_string(folder.join(name));
    let mut found = Found { folder: folder.file_name().unwrap_or_default().to_owned(), ..Found::default() };
    found.requirements =
        ["requirements.txt"].into_iter().filter(|name| has(name)).map(str::to_owned).collect();
    if has("pyproject.toml") {
        // One that cannot be read is told when it is used.
        let pyproject: toml::Table = read("pyproject.toml")?.parse().unwrap_or_default();
        found.pyproject = pyproject.get("project").and_then(|p| p.get("dependencies")).is_some();
        let groups = pyproject.get("dependency-groups").and_then(toml::Value::as_table);
        found.groups = groups.into_iter().flat_map(toml::Table::keys).cloned().collect();
    }
    if has("apt.txt") {
        let text = read("apt.txt")?;
        found.apt = text.split_whitespace().filter(|name| is_apt_name(name)).map(str::to_owned).collect();
    }
    Ok(found)
}

/// The product the requirements name; without a word of them PyTorch.
fn product(found: &Found, folder: &Utf8Path) -> String {
    let read = |path: &Utf8Path| {
        fs_err::read_to_string(folder.join(path)).map_err(|error| crate::project::ProjectError::Unreadable {
            file: path.to_string(),
            named_by: FILE.to_owned(),
            why: error.to_string(),
        })
    };
    let files = found.requirements.iter();
    let names: Vec<_> = files
        .filter_map(|file| from_requirements(Utf8Path::new(file), &read).ok())
        .flatten()
        .map(|requirement| requirement.name)
        .collect();
    let product = PRODUCTS.iter().find(|(package, _)| names.iter().any(|name| name == package));
    product.map_or("pytorch-cuda", |(_, product)| product).to_owned()
}
