//! The metadata of a script (PEP 723): a block of comments that is TOML.

use toml::Value;

use super::place::Origin;
use super::pyproject::from_pyproject_toml;
use super::reading::Reading;
use crate::model::compat::Matrix;
use crate::model::versions::Machine;

/// Reads the block `# /// script` of a Python file; `None`: it has none.
pub fn from_script(file: &str, text: &str, machine: Machine, matrix: &Matrix) -> Option<Reading> {
    let start = text.lines().position(|line| line.trim_end() == "# /// script")?;
    let block =
        text.lines().skip(start + 1).take_while(|line| line.trim_end() != "# ///" && line.starts_with('#'));
    let block: Vec<&str> =
        block.map(|line| line.strip_prefix("# ").unwrap_or_else(|| line.trim_start_matches('#'))).collect();
    // The block's keys are those of `[project]`; `[tool.uv]` has its own name.
    let own: toml::Table = toml::from_str(&block.join("\n")).unwrap_or_default();
    let mut whole = toml::Table::new();
    if let Some(tool) = own.get("tool") {
        whole.insert("tool".to_owned(), tool.clone());
    }
    let keys = ["requires-python", "dependencies"]
        .into_iter()
        .filter_map(|key| Some((key.to_owned(), own.get(key)?.clone())));
    whole.insert("project".to_owned(), Value::Table(keys.collect()));
    let mut reading = from_pyproject_toml(file, &toml::to_string(&whole).ok()?, machine, matrix);
    reading.is_readable_by_lock = false;
    // The lines are those of the script.
    for asked in &mut reading.packages {
        asked.origin = Origin::holding(file, text, &asked.written);
    }
    for fact in &mut reading.python {
        fact.origin = Origin::holding(file, text, "requires-python");
    }
    for fact in &mut reading.cuda {
        // What names it ends with the address, or with the package.
        let words = fact.by.rsplit(' ').next().unwrap_or_default();
        fact.origin = Origin::holding(file, text, words);
    }
    for note in &mut reading.left {
        note.origin = Origin::holding(file, text, &note.written);
    }
    if own.is_empty() && !block.is_empty() {
        reading.leave(Origin::line(file, start + 1), "# /// script", "its block is not TOML");
    }
    Some(reading)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(file: &str, text: &str) -> Option<Reading> {
        from_script(file, text, Machine::X86_64, crate::model::compat::embedded())
    }

    #[test]
    fn block_of_a_script_is_read() {
        let text = "#!/usr/bin/env python\n# /// script\n# requires-python = \">=3.11\"\n# dependencies = [\n#   \"torch==2.7.1\",\n# ]\n# ///\nimport torch\n";
        let reading = read("train.py", text).expect("a block");
        assert_eq!(reading.packages[0].requirement(), "torch==2.7.1");
        assert_eq!((reading.packages[0].origin.line, reading.python[0].origin.line), (Some(5), Some(3)));
        assert!(read("x.py", "import os\n").is_none());
        let broken = read("x.py", "# /// script\n# dependencies = [\n# ///\n").expect("a block");
        assert_eq!(broken.left.len(), 1);
    }
}
