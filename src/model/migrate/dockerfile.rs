//! Dockerfiles, read as text: base image, pip, conda and apt lines. Nothing is run.

use std::collections::BTreeMap;

use super::conda::take as take_conda;
use super::image_name::{leave_open, take_image};
use super::place::Origin;
use super::pythons::exact;
use super::reading::{Given, Kind, PythonFact, Reading, Strength};
use super::requirements::{
    index, options, stands_alone, take_requirement, takes_value, torch_backend, without_switches,
};
use super::shell_words::{commands, is_computed, redirection};
use super::stages::{Part, is_from, parts};
use super::variables::filled;
use crate::model::compat::Matrix;
use crate::model::project::is_apt_name;
use crate::model::project::secret::secret_in;

/// Reads a Dockerfile, with what its caller gives to it.
pub fn from_dockerfile(file: &str, text: &str, given: &Given, matrix: &Matrix) -> Reading {
    let mut reader = Reader::of(Reading::of(file, Kind::Image), given.arguments.clone(), matrix);
    let mut all = instructions(text);
    if let Some(target) = &given.target {
        until(&mut all, target);
    }
    let mut parts = parts(&mut all.iter().map(|(_, content)| content.as_str()), &given.arguments).into_iter();
    for (line, content) in &all {
        if is_from(content) {
            reader.part = parts.next().unwrap_or(Part::Image);
        }
        reader.instruction(content, &Origin::line(file, *line));
    }
    let Reader { mut reading, of_builders, .. } = reader;
    if reading.cuda.iter().all(|fact| fact.strength == Strength::Hint) {
        reading.cuda.extend(of_builders.cuda);
    }
    if reading.python.is_empty() {
        reading.python = of_builders.python;
    }
    reading
}

/// Reads lines of a shell as those of a RUN instruction.
pub(super) fn shell_lines(reading: &mut Reading, script: &str, origin: &Origin, matrix: &Matrix) {
    let own = std::mem::replace(reading, Reading::of(&origin.file, Kind::Image));
    let mut reader = Reader::of(own, BTreeMap::new(), matrix);
    reader.script(script, origin);
    *reading = reader.reading;
}

/// Drops the stages behind the one that is built.
fn until(all: &mut Vec<(usize, String)>, target: &str) {
    let is_stage = |content: &str| {
        let mut words = content.split_whitespace().filter(|word| !word.starts_with("--")).skip(2);
        words.next().is_some_and(|word| word.eq_ignore_ascii_case("as"))
            && words.next().is_some_and(|name| name.eq_ignore_ascii_case(target))
    };
    let Some(at) = all.iter().position(|(_, content)| is_from(content) && is_stage(content)) else { return };
    let next = all[at + 1..].iter().position(|(_, content)| is_from(content));
    all.truncate(next.map_or(all.len(), |next| at + 1 + next));
}

/// The instructions, joined at `\`, without comments, each with the number of its first line; the texts of here-documents belong to
/// theirs.
fn instructions(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut lines = text.trim_start_matches('\u{feff}').lines().enumerate().peekable();
    while let Some((at, first)) = lines.next() {
        if first.trim().is_empty() || first.trim_start().starts_with('#') {
            continue;
        }
        let mut whole = first.trim().to_owned();
        while let Some(part) = whole.strip_suffix('\\') {
            let mut joined = part.trim_end().to_owned();
            let Some((_, next)) = lines.next() else {
                whole = joined;
                break;
            };
            if next.trim_start().starts_with('#') {
                joined.push_str(" \\");
            } else {
                joined = format!("{joined} {}", next.trim());
            }
            whole = joined;
        }
        if let Some(end) = here_document(&whole) {
            for (_, next) in lines.by_ref() {
                if next.trim() == end {
                    break;
                }
                whole = format!("{whole}\n{next}");
            }
        }
        found.push((at + 1, whole));
    }
    found
}

/// The word that ends a here-document: `EOF` of `RUN <<EOF`.
fn here_document(instruction: &str) -> Option<String> {
    let rest = instruction.split_once("<<")?.1.trim_start_matches('-');
    let word = rest.split_whitespace().next()?.trim_matches(['"', '\'']);
    (!word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')).then(|| word.to_owned())
}

struct Reader<'a> {
    reading: Reading,
    /// `ARG` and `ENV` with a value.
    arguments: BTreeMap<String, String>,
    /// Values of `ARG` that the caller gives, before all defaults.
    given: BTreeMap<String, String>,
    /// The images that stages stand for.
    stages: BTreeMap<String, String>,
    /// What the stage that is read gives the image.
    part: Part,
    /// Whether a stage builds wheels that another one installs.
    makes_wheels: bool,
    /// Files that were copied: where they are in the image, and where they come from.
    copied: Vec<(String, String)>,
    /// What the images of stages that only build say: it counts where the image itself says nothing.
    of_builders: Reading,
    matrix: &'a Matrix,
}

impl<'a> Reader<'a> {
    fn of(reading: Reading, given: BTreeMap<String, String>, matrix: &'a Matrix) -> Self {
        let of_builders = Reading::of(&reading.file, Kind::Image);
        Self {
            reading,
            arguments: given.clone(),
            given,
            stages: BTreeMap::new(),
            part: Part::Image,
            makes_wheels: false,
            copied: Vec::new(),
            of_builders,
            matrix,
        }
    }
}

impl Reader<'_> {
    fn instruction(&mut self, content: &str, origin: &Origin) {
        let (word, rest) = content.split_once(char::is_whitespace).unwrap_or((content, ""));
        let rest = rest.trim();
        let word = word.to_ascii_uppercase();
        match (self.part, word.as_str()) {
            (_, "ARG") | (Part::Image, _) | (Part::Source, "RUN" | "FROM") => {}
            (Part::Source, "COPY" | "ADD") => return self.copied(rest),
            (Part::Unused, "FROM") => {
                self.stage(rest);
                let why = "a stage of which the image takes nothing";
                return self.reading.keep(origin.clone(), rest, why);
            }
            // Such a stage may have an index or a version in a variable; it sets nothing of the image.
            (Part::Source, "ENV") => {
                let before = (self.reading.left.len(), self.reading.kept.len());
                self.variables(rest, origin);
                self.reading.left.truncate(before.0);
                return self.reading.kept.truncate(before.1);
            }
            (Part::Source | Part::Unused, _) => return,
        }
        match word.as_str() {
            "ARG" => {
                if let Some((name, value)) = rest.split_once('=') {
                    let value = self.filled(value.trim().trim_matches(['"', '\'']));
                    let value = self.given.get(name.trim()).cloned().unwrap_or(value);
                    self.arguments.insert(name.trim().to_owned(), value);
                }
            }
            "ENV" => self.variables(rest, origin),
            "FROM" => self.from(rest, origin),
            "RUN" => self.run(rest, origin),
            "COPY" | "ADD" if rest.contains("--from=") && rest.contains("uv") => {
                self.reading.keep(origin.clone(), content, "envforge has its own uv");
            }
            "COPY" | "ADD" | "WORKDIR" => {
                self.copied(rest);
                self.reading.keep(
                    origin.clone(),
                    content,
                    "the project is mounted; files for the image go into `copy`",
                );
            }
            "CMD" | "ENTRYPOINT" => {
                self.reading.leave(
                    origin.clone(),
                    content,
                    "an image of envforge starts a shell: start it with `envforge shell -- COMMAND`",
                );
            }
            "EXPOSE" => self.reading.leave(origin.clone(), content, "add it to `ports` of [shell]"),
            "USER" | "SHELL" | "LABEL" | "VOLUME" | "STOPSIGNAL" | "HEALTHCHECK" | "MAINTAINER"
            | "ONBUILD" => {
                self.reading.leave(
                    origin.clone(),
                    content,
                    "has no counterpart: the user is `dev`, the project is mounted",
                );
            }
            _ => self.reading.leave(origin.clone(), content, "not an instruction that is read"),
        }
    }

    fn variables(&mut self, rest: &str, origin: &Origin) {
        let words = commands(rest).into_iter().flatten().collect::<Vec<_>>();
        let pairs: Vec<(String, String)> = if words.first().is_some_and(|word| word.contains('=')) {
            let pairs = words.iter().filter_map(|word| word.split_once('='));
            pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
        } else {
            rest.split_once(char::is_whitespace)
                .map(|(name, value)| (name.to_owned(), value.trim().to_owned()))
                .into_iter()
                .collect()
        };
        let (mut told, mut secret) = (Vec::new(), secret_in(rest).is_some());
        for (name, value) in pairs {
            let value = self.filled(&value);
            let option = name.trim_start_matches("PIP_").trim_start_matches("UV_");
            if ["INDEX_URL", "EXTRA_INDEX_URL", "FIND_LINKS", "DEFAULT_INDEX", "INDEX"].contains(&option)
                && option != name
            {
                index(&mut self.reading, &format!("{name}={value}"), &value, origin);
            }
            if name == "UV_TORCH_BACKEND" {
                torch_backend(&mut self.reading, &value, origin);
            }
            secret |= secret_in(&format!("{name}={value}")).is_some();
            let own = [
                "PATH",
                "LD_LIBRARY_PATH",
                "CUDA_HOME",
                "NVIDIA_",
                "DEBIAN_FRONTEND",
                "PIP_",
                "PYTHONUNBUFFERED",
                "LANG",
                "LC_",
                "CONDA_",
                "UV_",
                "VIRTUAL_ENV",
            ];
            if !own.iter().any(|begin| name.starts_with(begin)) {
                told.push(format!("{name} = \"{value}\""));
            }
            self.arguments.insert(name, value);
        }
        if secret {
            let name = rest.split(['=', ' ']).next().unwrap_or_default();
            let why = "a secret, which would be in the image for everybody: `[secrets]` of your configuration gives it to `run` steps";
            self.reading.leave(origin.clone(), &format!("ENV {name} …"), why);
        } else if told.is_empty() {
            self.reading.keep(origin.clone(), &format!("ENV {rest}"), "the image sets its own");
        } else {
            self.reading.leave(
                origin.clone(),
                &format!("ENV {rest}"),
                format!("add it to [variables]: {}", told.join(", ")),
            );
        }
    }

    fn from(&mut self, rest: &str, origin: &Origin) {
        let (image, is_known) = self.stage(rest);
        if image.contains('$') {
            leave_open(&mut self.reading, &image, origin, self.matrix);
            if self.part == Part::Source {
                self.reading.open_images.retain(|open| open.package.is_some());
            }
            return;
        }
        if is_known {
            return;
        }
        if self.part == Part::Source {
            // Its compiler is none of the image, its packages are copied.
            take_image(&mut self.of_builders, &image, origin, self.matrix);
            self.reading.packages.append(&mut self.of_builders.packages);
            self.reading.keep(origin.clone(), &image, "the image of a stage that only builds");
        } else {
            take_image(&mut self.reading, &image, origin, self.matrix);
        }
    }

    /// Notes the name of a stage; returns its image, and whether that is an earlier stage.
    fn stage(&mut self, rest: &str) -> (String, bool) {
        let mut words = rest.split_whitespace().filter(|word| !word.starts_with("--"));
        let image = self.filled(words.next().unwrap_or_default());
        let stage = words.nth(1).map(str::to_ascii_lowercase);
        let known = self.stages.get(&image.to_ascii_lowercase()).cloned();
        let is_known = known.is_some();
        if let Some(stage) = stage.filter(|_| !image.contains('$')) {
            self.stages.insert(stage, known.unwrap_or_else(|| image.clone()));
        }
        (image, is_known)
    }

    /// Notes where a copied file comes from: a `-r` line names it where it is in the image.
    fn copied(&mut self, rest: &str) {
        if rest.contains("--from=") {
            return;
        }
        let words: Vec<_> = rest.split_whitespace().filter(|word| !word.starts_with("--")).collect();
        let Some((to, from)) = words.split_last() else { return };
        for source in from {
            let name = source.rsplit('/').next().unwrap_or(source);
            let is_folder = to.ends_with('/') || to.ends_with('.') || from.len() > 1;
            let last = to.rsplit('/').next().unwrap_or_default();
            // A folder may be written without `/`: its last part has no extension, as the file has.
            let to = if is_folder || (name.contains('.') && !last.contains('.')) { name } else { last };
            self.copied.push((to.to_owned(), (*source).to_owned()));
        }
    }

    /// The names of requirement files behind `-r`, as they are in the folder.
    fn where_from(&mut self, before: usize) {
        for (_, named) in self.reading.includes.iter_mut().skip(before) {
            let last = named.rsplit('/').next().unwrap_or(named);
            let found = self.copied.iter().rev().find(|(to, _)| to == last);
            if let Some((_, from)) = found {
                named.clone_from(from);
            }
        }
    }

    fn filled(&self, text: &str) -> String {
        filled(text, &self.arguments)
    }

    fn run(&mut self, rest: &str, origin: &Origin) {
        let mut script = rest;
        while let Some(option) = script.strip_prefix("--") {
            script = option.split_once(char::is_whitespace).map_or("", |(_, rest)| rest.trim());
        }
        // The text of a here-document is a script where it stands alone: `RUN <<EOF`.
        let script = match script.strip_prefix("<<") {
            Some(document) => document.split_once('\n').map_or("", |(_, text)| text),
            None => script.lines().next().unwrap_or_default(),
        };
        self.script(script, origin);
    }

    /// Reads the commands of a script.
    fn script(&mut self, script: &str, origin: &Origin) {
        // A list in JSON is one command, without a shell.
        let all = match serde_json::from_str::<Vec<String>>(script) {
            Ok(words) => vec![words],
            Err(_) => commands(script),
        };
        for words in all {
            let shown = words.join(" ");
            let filled: Vec<_> = words.iter().map(|word| self.filled(word)).collect();
            self.command(&filled, &shown, origin);
        }
    }

    /// Reads one command of a RUN line.
    fn command(&mut self, words: &[String], written: &str, origin: &Origin) {
        let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
        while words.first().is_some_and(|word| STANDS_BEFORE.contains(word) || is_assignment(word)) {
            words.remove(0);
        }
        if let [shell, option, script, ..] = words.as_slice()
            && ["sh", "bash", "/bin/sh", "/bin/bash"].contains(shell)
            && option.starts_with('-')
            && option.ends_with('c')
        {
            for inner in commands(script) {
                self.command(&inner, &inner.join(" "), origin);
            }
            return;
        }
        let program = words.first().map(|word| word.rsplit('/').next().unwrap_or(word)).unwrap_or_default();
        match (program, words.get(1..).unwrap_or_default()) {
            (python, ["-m", "pip", rest @ ..]) if python.starts_with("python") => {
                self.pip(rest, written, origin);
            }
            (pip, rest) if pip == "pip" || pip == "pip3" || pip.starts_with("pip3.") => {
                self.pip(rest, written, origin);
            }
            ("uv", ["pip", rest @ ..]) => {
                self.pip(rest, written, origin);
            }
            ("conda" | "mamba" | "micromamba", ["run", rest @ ..]) => self.wrapped(rest, written, origin),
            ("uv", ["add", rest @ ..]) => self.pip(&[&["install"], rest].concat(), written, origin),
            ("uv", ["sync" | "run", ..]) => {
                self.reading.keep(origin.clone(), written, "the project's own files are read themselves");
            }
            ("uv", ["venv" | "python", rest @ ..]) => self.python(rest, written, origin),
            ("apt-get" | "apt", rest) => self.apt(rest, origin),
            ("conda" | "mamba" | "micromamba", ["install" | "create", rest @ ..]) => self.conda(rest, origin),
            ("conda" | "mamba" | "micromamba", ["env", "create" | "update", ..]) => {
                self.reading.keep(origin.clone(), written, "the environment file is read itself");
            }
            (
                "rm" | "mkdir" | "echo" | "cd" | "set" | "true" | "ldconfig" | "export" | "uv" | "conda"
                | "mamba" | "micromamba",
                _,
            ) => {
                self.reading.keep(origin.clone(), written, "nothing of it is needed");
            }
            ("" | "fi" | "done" | "esac" | "}", _) | ("sh" | "bash", []) => {}
            ("source" | ".", [file, ..]) if file.ends_with("activate") || file.ends_with("conda.sh") => {
                self.reading.keep(origin.clone(), written, "nothing of it is needed");
            }
            _ => self.reading.leave(origin.clone(), &first_words(written), UNREAD),
        }
    }

    /// `conda run -n x pip install …`: the command behind the options.
    fn wrapped(&mut self, rest: &[&str], written: &str, origin: &Origin) {
        let known = ["pip", "pip3", "python", "python3", "uv"];
        match rest.iter().position(|word| known.contains(word)) {
            Some(at) => {
                let words: Vec<_> = rest[at..].iter().map(|word| (*word).to_owned()).collect();
                self.command(&words, written, origin);
            }
            None => self.reading.leave(origin.clone(), &first_words(written), UNREAD),
        }
    }

    /// `uv venv --python 3.11`, `uv python install 3.11`.
    fn python(&mut self, rest: &[&str], written: &str, origin: &Origin) {
        let versions = rest.iter().find_map(|word| exact(word.trim_start_matches("--python=")));
        match versions {
            Some(versions) => {
                self.reading.python.push(PythonFact {
                    origin: origin.clone(),
                    versions,
                    by: written.to_owned(),
                });
            }
            None => self.reading.keep(origin.clone(), written, "nothing of it is needed"),
        }
    }

    fn pip(&mut self, rest: &[&str], written: &str, origin: &Origin) {
        let Some((first @ ("install" | "wheel" | "download"), rest)) =
            rest.split_first().map(|(first, rest)| (*first, rest))
        else {
            return self.reading.keep(origin.clone(), written, "nothing of it is needed");
        };
        self.makes_wheels |= first != "install";
        let mut at = 0;
        while let Some(word) = rest.get(at) {
            at += 1;
            if let Some(is_next) = redirection(word) {
                at += usize::from(is_next);
                continue;
            }
            if is_computed(word) {
                self.reading.leave(origin.clone(), word, COMPUTED);
                continue;
            }
            if word.starts_with('-') {
                let word = &without_switches(word);
                let alone = stands_alone(word);
                let value =
                    if alone || !takes_value(word) || word.contains('=') { None } else { rest.get(at) };
                at += usize::from(value.is_some());
                let text = value.map_or_else(|| word.clone(), |value| format!("{word} {value}"));
                let before = self.reading.includes.len();
                options(&mut self.reading, &text, origin);
                self.where_from(before);
                continue;
            }
            if ["pip", "setuptools", "wheel", "uv", "build"]
                .contains(&word.split(['=', '<', '>', '[']).next().unwrap_or_default())
            {
                self.reading.keep(origin.clone(), word, "part of every image");
            } else if *word == "." || word.starts_with(".[") {
                self.reading.keep(origin.clone(), word, "the project's own code: it is mounted");
            } else if self.makes_wheels && is_pattern_of_wheels(word) {
                self.reading.keep(
                    origin.clone(),
                    word,
                    "the wheels that `pip wheel` made, which are listed by name",
                );
            } else {
                take_requirement(&mut self.reading, word, origin);
            }
        }
    }

    fn apt(&mut self, rest: &[&str], origin: &Origin) {
        let Some(at) = rest.iter().position(|word| *word == "install") else { return };
        if self.part == Part::Source {
            let packages =
                rest[at + 1..].iter().filter(|word| !word.starts_with('-')).copied().collect::<Vec<_>>();
            let why = "packages of a stage that only builds";
            return self.reading.keep(origin.clone(), &packages.join(" "), why);
        }
        let mut skip = false;
        let words = rest[at + 1..].iter().filter(|word| {
            let is_next = redirection(word);
            let is_value = ["-t", "-o", "--target-release"].contains(*word) || is_next == Some(true);
            !std::mem::replace(&mut skip, is_value) && !word.starts_with('-') && is_next.is_none()
        });
        for word in words {
            let name = word.split(['=', '/']).next().unwrap_or_default();
            let minor = name.strip_prefix("python").filter(|rest| rest.contains('.')).and_then(exact);
            if let Some(versions) = minor {
                self.reading.python.push(PythonFact {
                    origin: origin.clone(),
                    versions,
                    by: name.to_owned(),
                });
                continue;
            }
            let python = name.starts_with("python") || name == "pip";
            if python
                || ["ca-certificates", "build-essential", "gcc", "g++"].contains(&name)
                    && self.reading.devel.is_some()
            {
                self.reading.keep(origin.clone(), word, "the image has its own");
            } else if name.starts_with("cuda-")
                || name == "nvidia-cuda-toolkit"
                || name.starts_with("libcudnn")
                || name.starts_with("libnccl")
            {
                self.reading.keep(origin.clone(), word, "part of the stack, in the version that fits it");
            } else if is_computed(word) {
                self.reading.leave(origin.clone(), word, COMPUTED);
            } else if is_apt_name(name) {
                if name.len() < word.len() {
                    let why = format!("{name}, in the version that the distribution of the base has");
                    self.reading.change(origin.clone(), word, why);
                }
                self.reading.apt.push((origin.clone(), name.to_owned()));
            } else {
                self.reading.leave(origin.clone(), word, "not the name of a package");
            }
        }
    }

    fn conda(&mut self, rest: &[&str], origin: &Origin) {
        let mut skip = false;
        for word in rest {
            if std::mem::take(&mut skip) {
                continue;
            }
            match *word {
                "-c" | "--channel" | "-n" | "--name" | "-p" | "--prefix" => skip = true,
                "--file" | "-f" => {
                    let why = "packages from a file: read it with `envforge init --from FILE`";
                    self.reading.leave(origin.clone(), &rest.join(" "), why);
                    skip = true;
                }
                word if word.starts_with('-') => {}
                word => take_conda(&mut self.reading, word, origin.clone(), self.matrix),
            }
        }
    }
}

/// Why a command is not taken over.
pub(super) const UNREAD: &str = "a command that is not read: add it to `run`, if the image needs it";

/// Why a word with a command in it is not taken over.
const COMPUTED: &str = "computed by a command, which is not run: add what it gives";

/// Words of the shell in front of a command.
const STANDS_BEFORE: [&str; 9] = ["sudo", "then", "else", "do", "time", "exec", "!", "{", "eval"];

/// `/wheels/*.whl`.
fn is_pattern_of_wheels(word: &str) -> bool {
    word.contains('*') && camino::Utf8Path::new(word).extension() == Some("whl")
}

/// The program and its first word: what stands behind may be a password.
fn first_words(written: &str) -> String {
    let mut words = written.split_whitespace();
    let first: Vec<_> = words.by_ref().take(2).collect();
    if words.next().is_some() { format!("{} …", first.join(" ")) } else { first.join(" ") }
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Reading {
        from_dockerfile("Dockerfile", text, &Given::default(), crate::model::compat::embedded())
    }

    fn requirements(reading: &Reading) -> Vec<String> {
        reading.packages.iter().map(super::super::reading::Asked::requirement).collect()
    }

    #[test]
    fn base_pip_and_apt_lines_are_read() {
        let reading = read(
            "FROM nvidia/cuda:13.0.1-cudnn-runtime-ubuntu24.04\nRUN apt-get update && apt-get install -y python3-pip ffmpeg \\\n    # video\n    libgl1=1.2 && rm -rf /var/lib/apt/lists/*\nCOPY requirements.txt .\nRUN pip3 install --upgrade pip --break-system-packages\nRUN pip3 install torch==2.7.1+cu121 'numpy<2' --index-url https://download.pytorch.org/whl/cu121\nRUN pip3 install --no-cache-dir -r requirements.txt\nENV HF_HOME=/data\nENTRYPOINT [\"python3\", \"gen.py\"]\n",
        );
        assert_eq!(requirements(&reading), ["torch==2.7.1", "numpy<2"]);
        assert_eq!(reading.packages[0].local.as_deref(), Some("cu121"));
        assert_eq!(reading.packages[0].origin.line, Some(7));
        let apt: Vec<_> = reading.apt.iter().map(|(_, name)| name.as_str()).collect();
        assert_eq!(apt, ["ffmpeg", "libgl1"]);
        let changed: Vec<_> = reading.changed.iter().map(|note| note.written.as_str()).collect();
        assert_eq!(changed, ["libgl1=1.2"]);
        let cuda: Vec<_> = reading.cuda.iter().map(|fact| fact.cuda.to_string()).collect();
        assert_eq!(cuda, ["cu130", "cu121"]);
        assert_eq!(reading.includes[0].1, "requirements.txt");
        let left: Vec<_> = reading.left.iter().map(|note| note.written.as_str()).collect();
        assert_eq!(left, ["ENV HF_HOME=/data", "ENTRYPOINT [\"python3\", \"gen.py\"]"]);
    }

    #[test]
    fn arguments_and_stages_are_followed() {
        let reading = read(
            "ARG CUDA=12.4.1\nARG BASE\nFROM nvidia/cuda:${CUDA}-devel-ubuntu22.04 AS build\nFROM build AS run\nARG TORCH=2.5.1\nRUN python -m pip install torch==$TORCH ${EXTRA:-einops}\nFROM ${BASE}\n",
        );
        assert_eq!(requirements(&reading), ["torch==2.5.1", "einops"]);
        assert_eq!(reading.cuda.len(), 1);
        assert!(reading.devel.is_some());
        assert!(reading.left[0].why.contains("a variable without a value"), "{:?}", reading.left);
    }

    #[test]
    fn stage_that_builds_gives_its_packages_and_no_compiler() {
        let reading = read(
            "FROM node:20 AS web\nRUN npm ci\nFROM nvidia/cuda:12.4.1-devel-ubuntu22.04 AS build\nENV MAX_JOBS=4\nRUN apt-get install -y ninja-build && pip wheel flash-attn==2.7.4.post1 --no-build-isolation -w /wheels\nFROM pytorch/pytorch:2.5.1-cuda12.4-cudnn9-runtime\nCOPY --from=build /wheels /wheels\nRUN apt-get install -y ffmpeg && pip install /wheels/*.whl\n",
        );
        assert_eq!(requirements(&reading), ["flash-attn==2.7.4.post1", "torch==2.5.1"]);
        assert!(reading.devel.is_none(), "{reading:?}");
        let apt: Vec<_> = reading.apt.iter().map(|(_, name)| name.as_str()).collect();
        assert_eq!(apt, ["ffmpeg"]);
        let left: Vec<_> = reading.left.iter().map(|note| note.written.as_str()).collect();
        assert_eq!(left, ["--no-build-isolation"]);
        assert!(reading.kept.iter().any(|note| note.why == "a stage of which the image takes nothing"));
    }

    #[test]
    fn conda_lines_and_here_documents_are_read() {
        let reading = read(
            "FROM continuumio/miniconda3\nRUN conda install -y -c pytorch -c nvidia pytorch==2.3.1 pytorch-cuda=12.1 && conda clean -a\nRUN <<EOF\nuv pip install --system transformers==4.40.0\nmake -C src\nEOF\n",
        );
        assert_eq!(requirements(&reading), ["torch==2.3.1", "transformers==4.40.0"]);
        assert_eq!(reading.cuda[0].cuda.to_string(), "cu121");
        assert_eq!(reading.left[0].written, "make -C …");
    }

    #[test]
    fn stage_that_builds_says_neither_cuda_nor_python_of_the_image() {
        let reading = read(
            "ARG FROM_STAGE=build\nFROM nvidia/cuda:12.8.1-cudnn-devel-ubuntu22.04 AS build\nRUN pip install torch\nFROM python:3.12-slim AS docs\nFROM nvidia/cuda:12.4.1-cudnn-runtime-ubuntu22.04\nCOPY --from=${FROM_STAGE} /opt /opt\nCOPY --from=docs /d /d\nRUN apt-get install -y python3.10\n",
        );
        let cuda: Vec<_> = reading.cuda.iter().map(|fact| fact.cuda.to_string()).collect();
        let python: Vec<_> = reading.python.iter().map(|fact| fact.versions.to_string()).collect();
        assert_eq!((cuda, python), (vec!["cu124".to_owned()], vec!["==3.10.*".to_owned()]));
        assert_eq!(requirements(&reading), ["torch"]);
        let alone = read(
            "FROM nvidia/cuda:12.8.1-devel-ubuntu22.04 AS build\nFROM debian:12\nCOPY --from=build /o /o\n",
        );
        assert_eq!(alone.cuda[0].cuda.to_string(), "cu128");
    }

    #[test]
    fn commands_behind_words_of_the_shell_are_read() {
        let reading = read(
            "FROM ubuntu:22.04\nRUN if [ \"$X\" = 1 ]; then pip install torch==2.5.1; else pip install einops; fi\nRUN bash -lc 'source /opt/conda/etc/profile.d/conda.sh && conda activate x && pip install timm'\nRUN [\"/bin/bash\", \"-c\", \"pip install peft\"]\n",
        );
        assert_eq!(requirements(&reading), ["torch==2.5.1", "einops", "timm", "peft"]);
        let left: Vec<_> = reading.left.iter().map(|note| note.written.as_str()).collect();
        assert_eq!(left, ["if [ …"]);
    }

    #[test]
    fn caller_gives_arguments_and_the_stage() {
        let text = "ARG CUDA=11.8.0\nFROM nvidia/cuda:${CUDA}-runtime-ubuntu22.04 AS base\nARG TORCH=2.0.0\nRUN pip install torch==${TORCH}\nFROM base AS train\nRUN pip install peft\nFROM base\nRUN pip install fastapi\n";
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let given = Given {
            arguments: [pair("CUDA", "12.1.1"), pair("TORCH", "2.3.1")].into(),
            target: Some("train".to_owned()),
        };
        let reading = from_dockerfile("Dockerfile", text, &given, crate::model::compat::embedded());
        assert_eq!(requirements(&reading), ["torch==2.3.1", "peft"]);
        assert_eq!(reading.cuda[0].cuda.to_string(), "cu121");
        assert_eq!(requirements(&read(text)), ["torch==2.0.0", "fastapi"]);
    }

    #[test]
    fn comments_and_computed_words_take_nothing_with_them() {
        let reading = read(
            "FROM ubuntu:22.04\nRUN pip install --user tensorboard cmake onnx   # cmake from apt-get is too old\nRUN apt-get install -y git vim  # for debugging only\nRUN apt-get install -y cuda-command-line-tools-$(cut -f1,2 -d- <<< ${CUDA//./-}) hmmer linux-headers-$(uname -r) kalign > /dev/null\nRUN pip install $(cat list) einops 2> log\n",
        );
        assert_eq!(requirements(&reading), ["tensorboard", "cmake", "onnx", "einops"]);
        let apt: Vec<_> = reading.apt.iter().map(|(_, name)| name.as_str()).collect();
        assert_eq!(apt, ["git", "vim", "hmmer", "kalign"]);
        let left: Vec<_> = reading.left.iter().map(|note| note.written.as_str()).collect();
        assert_eq!(left, ["linux-headers-$(uname -r)", "$(cat list)"]);
    }

    #[test]
    fn requirement_files_are_those_that_were_copied() {
        for (copy, named, file) in [
            (
                "docker/requirements.txt /tmp/requirements.txt",
                "/tmp/requirements.txt",
                "docker/requirements.txt",
            ),
            ("requirements-gpu.txt /app/requirements.txt", "/app/requirements.txt", "requirements-gpu.txt"),
            ("a/base.txt a/gpu.txt /tmp/", "/tmp/gpu.txt", "a/gpu.txt"),
            ("deploy/reqs.txt /tmp", "/tmp/reqs.txt", "deploy/reqs.txt"),
            ("--chown=1:1 reqs/x.txt .", "x.txt", "reqs/x.txt"),
            ("--from=other /x.txt /x.txt", "/x.txt", "/x.txt"),
        ] {
            let reading = read(&format!("FROM python:3.11\nCOPY {copy}\nRUN pip install -r {named}\n"));
            assert_eq!(reading.includes[0].1, file, "{copy}");
        }
    }

    #[test]
    fn secret_of_a_dockerfile_is_not_repeated() {
        let reading = read("FROM ubuntu:24.04\nENV HF_TOKEN=hf_hunter2hunter2hunter2\n");
        assert!(reading.left[0].why.starts_with("a secret"), "{:?}", reading.left);
        assert!(!format!("{:?}{:?}", reading.left, reading.kept).contains("hunter2"));
    }

    #[test]
    fn python_of_the_image_is_found() {
        for line in [
            "uv venv --python 3.12",
            "uv venv --python=3.12",
            "conda create -n x python=3.12",
            "apt-get install -y python3.12 python3.12-venv",
        ] {
            let reading = read(&format!("FROM ubuntu:24.04\nRUN {line}\n"));
            assert_eq!(reading.python[0].versions.to_string(), "==3.12.*", "{line}");
        }
    }
}
