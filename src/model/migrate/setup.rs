//! setup.cfg, and what setup.py says as plain text: it is never run.

use super::ini::entries;
use super::place::Origin;
use super::pythons::condition;
use super::reading::{Kind, Offered, PythonFact, Reading};
use super::requirements::take_requirement;

/// Reads a setup.cfg.
pub fn from_setup_cfg(file: &str, text: &str) -> Reading {
    let mut reading = Reading::of(file, Kind::Project);
    for entry in entries(text) {
        match (entry.section.as_str(), entry.key.as_str()) {
            ("options", "install_requires") => {
                for (line, value) in &entry.values {
                    match value.strip_prefix("file:") {
                        Some(named) => {
                            let names = named.split(',').map(|name| name.trim().to_owned());
                            let origin = Origin::line(file, *line);
                            reading.includes.extend(names.map(|name| (origin.clone(), name)));
                        }
                        None => take_requirement(&mut reading, value, &Origin::line(file, *line)),
                    }
                }
            }
            ("options", "python_requires") => {
                for (line, value) in &entry.values {
                    python(&mut reading, value, Origin::line(file, *line));
                }
            }
            ("options.extras_require", name) => {
                let mut extra = Reading::of(file, Kind::Project);
                for (line, value) in &entry.values {
                    take_requirement(&mut extra, value, &Origin::line(file, *line));
                }
                reading.left.append(&mut extra.left);
                let origin = Origin::holding(file, text, name);
                reading.offered.push(Offered::of(origin, name, "extra", extra.packages));
            }
            _ => {}
        }
    }
    reading
}

fn python(reading: &mut Reading, written: &str, origin: Origin) {
    match condition(written) {
        Some(versions) => {
            let by = format!("python_requires = {written}");
            reading.python.push(PythonFact { origin, versions, by });
        }
        None => reading.leave(origin, written, "not a condition on Python"),
    }
}

/// Reads the lists and texts that a setup.py gives as they stand; what it computes is not taken over.
pub fn from_setup_py(file: &str, text: &str) -> Reading {
    let text = &without_comment_lines(text);
    let mut reading = Reading::of(file, Kind::Project);
    if let Some((at, value)) = argument(text, "python_requires") {
        match literals(value).and_then(|texts| texts.into_iter().next()) {
            Some(written) => python(&mut reading, &written, origin_at(file, text, at)),
            None => reading.leave(
                origin_at(file, text, at),
                "python_requires",
                "computed by code, which is not run",
            ),
        }
    }
    if let Some((at, value)) = argument(text, "install_requires") {
        match value.starts_with(['[', '(']).then(|| literals(value)).flatten() {
            Some(texts) => {
                for written in texts {
                    let origin = Origin::holding(file, text, &written);
                    take_requirement(&mut reading, &written, &origin);
                }
            }
            None => reading.leave(
                origin_at(file, text, at),
                "install_requires",
                "computed by code, which is not run",
            ),
        }
    }
    if let Some((at, value)) = argument(text, "extras_require") {
        match table_of_lists(value) {
            Some(extras) => {
                for (name, list) in extras {
                    let mut extra = Reading::of(file, Kind::Project);
                    for written in list {
                        let origin = Origin::holding(file, text, &written);
                        take_requirement(&mut extra, &written, &origin);
                    }
                    reading.left.append(&mut extra.left);
                    if !extra.packages.is_empty() {
                        let origin = origin_at(file, text, at);
                        reading.offered.push(Offered::of(origin, &name, "extra", extra.packages));
                    }
                }
            }
            None => reading.leave(
                origin_at(file, text, at),
                "extras_require",
                "computed by code, which is not run",
            ),
        }
    }
    for (name, what) in [("CUDAExtension", "compiles CUDA code"), ("CppExtension", "compiles C++ code")] {
        if let Some(at) = text.find(name) {
            let why =
                format!("the project {what}: the flavour `devel` has the compiler; its own code is mounted");
            let origin = origin_at(file, text, at);
            reading.devel.get_or_insert(super::reading::Note { origin, written: name.to_owned(), why });
        }
    }
    reading
}

/// The text behind `name=`, and its position; where a variable stands there, that behind its own `=`.
fn argument<'a>(text: &'a str, name: &str) -> Option<(usize, &'a str)> {
    let (at, value) = assigned(text, name)?;
    if [" +=", "+=", ".append(", ".extend("].iter().any(|change| text.contains(&format!("{name}{change}"))) {
        return Some((at, ""));
    }
    let end = value.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(value.len());
    let (variable, behind) = value.split_at(end);
    let is_name = variable.starts_with(|c: char| c.is_alphabetic() || c == '_');
    // What follows it would be a call or a sum, and what names it again could change it.
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
    let alone = is_end(behind)
        && words.filter(|word| *word == variable).count() == if variable == name { 3 } else { 2 };
    match (is_name && alone).then(|| assigned(text, variable)).flatten() {
        Some(found) => Some(found),
        None => Some((at, value)),
    }
}

/// Whether a value ends here: an argument or a line.
fn is_end(behind: &str) -> bool {
    let rest = behind.trim_start_matches([' ', '\t', '\r']);
    rest.is_empty() || rest.starts_with([',', ')', '\n', '#'])
}

/// The text with its lines of comments blank; what stands behind them keeps its place.
fn without_comment_lines(text: &str) -> String {
    let lines = text.split_inclusive('\n').map(|line| {
        let is_comment = line.trim_start().starts_with('#');
        if is_comment {
            line.chars().map(|c| if c == '\n' { c } else { ' ' }).collect()
        } else {
            line.to_owned()
        }
    });
    lines.collect()
}

fn assigned<'a>(text: &'a str, name: &str) -> Option<(usize, &'a str)> {
    text.match_indices(name).find_map(|(at, _)| {
        let before = text[..at].chars().next_back();
        let rest = text[at + name.len()..].trim_start().strip_prefix('=')?;
        (!rest.starts_with('=') && before.is_none_or(|c| !c.is_alphanumeric() && c != '_'))
            .then(|| (at, rest.trim_start()))
    })
}

fn origin_at(file: &str, text: &str, at: usize) -> Origin {
    Origin::line(file, text[..at].matches('\n').count() + 1)
}

/// The text from the next value of a list on: without white space, commas and comments.
fn next_value(mut text: &str) -> &str {
    loop {
        text = text.trim_start_matches(|c: char| c.is_whitespace() || c == ',');
        let Some(comment) = text.strip_prefix('#') else { return text };
        text = comment.split_once('\n').map_or("", |(_, rest)| rest);
    }
}

/// The lists of a dictionary of literals; `None` if anything else is in it.
fn table_of_lists(value: &str) -> Option<Vec<(String, Vec<String>)>> {
    let mut rest = value.strip_prefix('{')?;
    let mut found = Vec::new();
    loop {
        rest = next_value(rest);
        if rest.starts_with('}') {
            return Some(found);
        }
        let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''))?;
        let (name, behind) = rest[1..].split_once(quote)?;
        let list = behind.trim_start().strip_prefix(':')?.trim_start();
        if !list.starts_with('[') {
            return None;
        }
        let (texts, behind) = literals_and_rest(list)?;
        found.push((name.to_owned(), texts));
        rest = behind;
    }
}

/// The texts of a literal or of a list of literals; `None` if anything else is in it.
fn literals(value: &str) -> Option<Vec<String>> {
    let (texts, behind) = literals_and_rest(value)?;
    is_end(behind).then_some(texts)
}

/// As [`literals`], and the text behind them.
fn literals_and_rest(value: &str) -> Option<(Vec<String>, &str)> {
    let mut rest = value.strip_prefix(['[', '(']).unwrap_or(value);
    let is_list = value.starts_with(['[', '(']);
    let mut found = Vec::new();
    loop {
        rest = next_value(rest);
        if let Some(behind) = rest.strip_prefix([']', ')']) {
            return Some((found, behind));
        }
        let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''))?;
        let inside = &rest[1..];
        let end = inside.find(quote)?;
        found.push(inside[..end].to_owned());
        rest = &inside[end + 1..];
        if !is_list {
            return Some((found, rest));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::migrate::reading::Asked;

    fn requirements(reading: &Reading) -> Vec<String> {
        reading.packages.iter().map(Asked::requirement).collect()
    }

    #[test]
    fn setup_cfg_is_read() {
        let text = "[metadata]\nname = x\n[options]\npython_requires = >=3.9\ninstall_requires =\n    torch>=2.1\n    numpy<2 # old\n[options.extras_require]\ngpu =\n    flash-attn\n";
        let reading = from_setup_cfg("setup.cfg", text);
        assert_eq!(requirements(&reading), ["torch>=2.1", "numpy<2"]);
        assert_eq!(
            (reading.packages[0].origin.line, reading.python.len(), reading.offered.len()),
            (Some(6), 1, 1)
        );
    }

    #[test]
    fn setup_py_is_read_as_text() {
        let text = "from setuptools import setup\nsetup(\n    python_requires='>=3.8',\n    install_requires=[\n        'torch==2.1.0',  # ours\n        \"einops\",\n    ],\n    ext_modules=[CUDAExtension('x', ['x.cu'])],\n)\n";
        let reading = from_setup_py("setup.py", text);
        assert_eq!(requirements(&reading), ["torch==2.1.0", "einops"]);
        assert!(reading.devel.is_some());
        let reading =
            from_setup_py("setup.py", "setup(install_requires=open('requirements.txt').read().split())\n");
        assert_eq!(reading.left[0].why, "computed by code, which is not run");
        let reading = from_setup_py("setup.py", "setup(install_requires=['a', *more])\n");
        assert_eq!((reading.packages.len(), reading.left.len()), (0, 1));
    }

    #[test]
    fn lists_of_variables_and_extras_are_read() {
        let text = "REQUIRED = ['torch>=2.1']\nEXTRAS = {\n    'train': ['deepspeed>=0.14', \"peft\"],  # more\n    'dev': [],\n}\nsetup(install_requires=REQUIRED, extras_require=EXTRAS)\n";
        let reading = from_setup_py("setup.py", text);
        assert_eq!(requirements(&reading), ["torch>=2.1"]);
        let offered: Vec<_> =
            reading.offered.iter().map(|one| (one.name.as_str(), one.packages.len())).collect();
        assert_eq!(offered, [("train", 2)]);
        for computed in [
            "REQ = ['torch']\nREQ += more\nsetup(install_requires=REQ)\n",
            "install_requires = ['torch']\ninstall_requires += more\nsetup(install_requires=install_requires)\n",
            "REQ = []\nREQ = f.read().splitlines()\nsetup(install_requires=REQ)\n",
            "setup(install_requires=['torch==2.8.0'] + more)\n",
        ] {
            let reading = from_setup_py("setup.py", computed);
            assert_eq!((reading.packages.len(), reading.left.len()), (0, 1), "{computed}");
        }
        let text = "setup(install_requires=('torch==2.1.0', 'numpy'))\n";
        assert_eq!(requirements(&from_setup_py("setup.py", text)), ["torch==2.1.0", "numpy"]);
        let text = "# install_requires=['torch==1.0']\nsetup(install_requires=['torch==2.8.0'])\n";
        assert_eq!(requirements(&from_setup_py("setup.py", text)), ["torch==2.8.0"]);
        for computed in ["EXTRAS", "{'a': REQUIRED + ['x']}", "read('extras.txt')"] {
            let reading = from_setup_py("setup.py", &format!("setup(extras_require={computed})\n"));
            assert_eq!(reading.left[0].written, "extras_require", "{computed}");
        }
    }
}
