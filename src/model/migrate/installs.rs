//! Files that install by commands: shell scripts, notebooks, definitions of Apptainer, cog.yaml. Read as text, never run.

use serde::Deserialize;

use super::conda::first_line;
use super::conda_spec::cuda_of;
use super::dockerfile::{UNREAD, shell_lines};
use super::image_name::take_image;
use super::place::Origin;
use super::pythons::exact;
use super::reading::{CudaFact, Kind, PythonFact, Reading, Strength};
use super::requirements::take_line;
use super::shell_words::lines_of_shell;
use crate::model::compat::Matrix;
use crate::model::counted::counted;
use crate::model::project::is_apt_name;

/// Reads the lines of a shell script that install packages.
pub fn from_shell_script(file: &str, text: &str, matrix: &Matrix) -> Reading {
    let mut reading = Reading::of(file, Kind::Image);
    for (at, line) in lines_of_shell(text) {
        shell_lines(&mut reading, &line, &Origin::line(file, at), matrix);
    }
    gather_unread(&mut reading);
    reading
}

/// Makes one line of all commands that are not read: in a script they are most.
fn gather_unread(reading: &mut Reading) {
    let before = reading.left.len();
    reading.left.retain(|note| note.why != UNREAD);
    let dropped = before - reading.left.len();
    if dropped > 0 {
        let origin = Origin::file(&reading.file);
        let why = "they are not read: add those that the image needs to `run`";
        reading.leave(origin, &counted(dropped, "further command"), why);
    }
}

#[derive(Deserialize)]
struct Notebook {
    #[serde(default)]
    cells: Vec<Cell>,
}

#[derive(Deserialize)]
struct Cell {
    cell_type: String,
    #[serde(default)]
    source: Source,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Source {
    Text(String),
    Lines(Vec<String>),
}

impl Default for Source {
    fn default() -> Self {
        Self::Lines(Vec::new())
    }
}

/// Reads the commands of a notebook: `!pip install …`, `%pip install …`, cells of `%%bash`.
pub fn from_notebook(file: &str, text: &str, matrix: &Matrix) -> Reading {
    let notebook: Notebook = match serde_json::from_str(text) {
        Ok(notebook) => notebook,
        Err(error) => return Reading::unreadable(file, Kind::Image, &format!("not a notebook: {error}")),
    };
    let mut reading = Reading::of(file, Kind::Image);
    for cell in notebook.cells.iter().filter(|cell| cell.cell_type == "code") {
        let whole = match &cell.source {
            Source::Text(text) => text.clone(),
            Source::Lines(lines) => lines.concat(),
        };
        let is_shell = whole.starts_with("%%bash") || whole.starts_with("%%sh");
        for (_, line) in lines_of_shell(&whole) {
            let command = line.strip_prefix(['!', '%']).or_else(|| is_shell.then_some(line.as_str()));
            let Some(command) = command.filter(|command| !command.starts_with('%')) else { continue };
            let origin = Origin::holding(file, text, command);
            shell_lines(&mut reading, command, &origin, matrix);
        }
    }
    gather_unread(&mut reading);
    reading
}

/// Reads a definition file of Apptainer: its image, and the lines of `%post`.
pub fn from_definition(file: &str, text: &str, matrix: &Matrix) -> Reading {
    let mut reading = Reading::of(file, Kind::Image);
    let mut section = String::new();
    let mut is_docker = true;
    for (at, line) in lines_of_shell(text) {
        let origin = Origin::line(file, at);
        if let Some(name) = line.strip_prefix('%') {
            section = name.split_whitespace().next().unwrap_or_default().to_ascii_lowercase();
            continue;
        }
        let header = line.split_once(':').map(|(key, value)| (key.trim().to_ascii_lowercase(), value.trim()));
        match (section.as_str(), header) {
            ("", Some((key, value))) if key == "bootstrap" => is_docker = value.starts_with("docker"),
            ("", Some((key, value))) if key == "from" && is_docker => {
                take_image(&mut reading, value, &origin, matrix);
            }
            ("", Some((key, value))) if key == "from" => {
                reading.leave(origin, value, "an image of Apptainer, which is not looked into");
            }
            ("post", _) => shell_lines(&mut reading, &line, &origin, matrix),
            ("environment", _) => {
                let why = "add what the image needs of it to [variables]";
                reading.leave(origin, &line, why);
            }
            _ => {}
        }
    }
    gather_unread(&mut reading);
    reading
}

#[derive(Deserialize)]
struct Cog {
    #[serde(default)]
    build: CogBuild,
}

#[derive(Deserialize, Default)]
struct CogBuild {
    cuda: Option<serde_json::Value>,
    python_version: Option<serde_json::Value>,
    python_requirements: Option<String>,
    #[serde(default)]
    python_packages: Vec<String>,
    #[serde(default)]
    system_packages: Vec<String>,
    #[serde(default)]
    run: Vec<serde_json::Value>,
}

/// Reads a cog.yaml.
pub fn from_cog(file: &str, text: &str, matrix: &Matrix) -> Reading {
    let cog: Cog = match serde_saphyr::from_str(text) {
        Ok(cog) => cog,
        Err(error) => {
            let why = format!("not a cog.yaml: {}", first_line(&error.to_string()));
            return Reading::unreadable(file, Kind::Project, &why);
        }
    };
    let mut reading = Reading::of(file, Kind::Project);
    let plain = |value: &serde_json::Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let build = cog.build;
    if let Some(version) = build.cuda.as_ref().map(plain) {
        let (origin, by) = (Origin::holding(file, text, "cuda:"), format!("cuda: {version}"));
        let strength = Strength::Toolkit;
        reading.cuda.extend(cuda_of(&version).map(|cuda| CudaFact { origin, cuda, strength, by }));
    }
    if let Some(version) = build.python_version.as_ref().map(plain) {
        let (origin, by) =
            (Origin::holding(file, text, "python_version"), format!("python_version: {version}"));
        reading.python.extend(exact(&version).map(|versions| PythonFact { origin, versions, by }));
    }
    for written in &build.python_packages {
        take_line(&mut reading, written.trim(), &Origin::holding(file, text, written));
    }
    reading.is_readable_by_lock = false;
    if let Some(named) = build.python_requirements {
        reading.includes.push((Origin::holding(file, text, &named), named));
    }
    for name in &build.system_packages {
        let origin = Origin::holding(file, text, name);
        if is_apt_name(name) {
            reading.apt.push((origin, name.clone()));
        } else {
            reading.leave(origin, name, "not the name of a package of the distribution");
        }
    }
    for step in &build.run {
        let command = step.get("command").map_or_else(|| plain(step), plain);
        shell_lines(&mut reading, &command, &Origin::holding(file, text, &command), matrix);
    }
    reading
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requirements(reading: &Reading) -> Vec<String> {
        reading.packages.iter().map(super::super::reading::Asked::requirement).collect()
    }

    #[test]
    fn script_gives_what_it_installs() {
        let text = "#!/bin/bash\nset -e\n# pip install old\npip install torch==2.1.0 \\\n  --index-url https://download.pytorch.org/whl/cu118 # not cu121\nmake -C src\n./more.sh\npip install -r requirements.txt\n";
        let reading = from_shell_script("install.sh", text, crate::model::compat::embedded());
        assert_eq!(requirements(&reading), ["torch==2.1.0"]);
        assert_eq!(reading.cuda[0].cuda.to_string(), "cu118");
        assert_eq!(
            (reading.includes[0].1.as_str(), reading.packages[0].origin.line),
            ("requirements.txt", Some(4))
        );
        assert_eq!(reading.left.len(), 1, "{:?}", reading.left);
        assert_eq!(reading.left[0].written, "2 further commands");
    }

    #[test]
    fn notebook_gives_its_commands() {
        let text = r#"{"cells": [
            {"cell_type": "markdown", "source": ["!pip install not-this"]},
            {"cell_type": "code", "source": ["!pip install torch==2.3.0 einops\n", "import torch\n", "!nvidia-smi"]},
            {"cell_type": "code", "source": "%pip install timm"},
            {"cell_type": "code", "source": "%%bash\npip install peft\n"}], "nbformat": 4}"#;
        let reading = from_notebook("x.ipynb", text, crate::model::compat::embedded());
        assert_eq!(requirements(&reading), ["torch==2.3.0", "einops", "timm", "peft"]);
        assert_eq!(reading.left.len(), 1);
        assert!(!from_notebook("x.ipynb", "[", crate::model::compat::embedded()).says_something());
    }

    #[test]
    fn definition_of_apptainer_gives_image_and_post() {
        let text = "Bootstrap: docker\nFrom: pytorch/pytorch:2.3.1-cuda12.1-cudnn8-devel\n%post\n    apt-get update && apt-get install -y git\n    pip install transformers==4.41.0\n%environment\n    export A=1\n%runscript\n    pip install no\n";
        let reading = from_definition("x.def", text, crate::model::compat::embedded());
        assert_eq!(requirements(&reading), ["torch==2.3.1", "transformers==4.41.0"]);
        assert_eq!((reading.apt.len(), reading.left.len()), (1, 1));
        let local = "Bootstrap: localimage\nFrom: base.sif\n";
        assert!(
            from_definition("x.def", local, crate::model::compat::embedded()).left[0]
                .why
                .contains("not looked into")
        );
    }

    #[test]
    fn cog_gives_packages_cuda_and_python() {
        let text = "build:\n  gpu: true\n  cuda: \"11.8\"\n  python_version: \"3.10\"\n  python_packages:\n    - \"torch==2.0.1\"\n    - diffusers==0.21.0\n  python_requirements: reqs.txt\n  system_packages: [ffmpeg, \"a b\"]\n  run:\n    - pip install xformers==0.0.22\n    - command: pip install peft\npredict: \"predict.py:Predictor\"\n";
        let reading = from_cog("cog.yaml", text, crate::model::compat::embedded());
        assert_eq!(requirements(&reading), ["torch==2.0.1", "diffusers==0.21.0", "xformers==0.0.22", "peft"]);
        assert_eq!(reading.cuda[0].cuda.to_string(), "cu118");
        assert_eq!(reading.python[0].versions.to_string(), "==3.10.*");
        assert_eq!((reading.includes.len(), reading.apt.len(), reading.left.len()), (1, 1, 1));
        assert!(!from_cog("cog.yaml", "- a\n", crate::model::compat::embedded()).says_something());
    }
}
