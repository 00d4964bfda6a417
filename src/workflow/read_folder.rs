//! The files that people bring, found in a folder or named, and read.

use std::collections::{BTreeMap, BTreeSet};

use camino::{Utf8Component, Utf8Path, Utf8PathBuf};

use crate::model::compat::Matrix;
use crate::model::migrate::{
    Given, Kind, Note, Origin, Reading, constraints_of, from_cog, from_compose, from_conda_explicit,
    from_conda_export, from_conda_lock, from_definition, from_devcontainer, from_dockerfile,
    from_environment, from_notebook, from_pdm_lock, from_pipfile, from_pipfile_lock, from_pixi,
    from_pixi_lock, from_poetry_lock, from_pylock, from_pyproject_toml, from_python_version,
    from_requirement_lines, from_runtime_file, from_script, from_setup_cfg, from_setup_py, from_shell_script,
    from_uv_lock, from_uv_toml, implies_a_framework, is_conda_explicit, is_conda_export, is_without_any_cuda,
    names_a_cuda, names_a_framework,
};
use crate::model::project::{decoded, is_apt_name};
use crate::model::versions::Machine;
use crate::store::read_regular;
use crate::workflow::project::LARGEST_FILE;

/// Files that are read where they are, by the names that people give them.
const NAMES: [&str; 29] = [
    "uv.lock",
    "pylock.toml",
    "poetry.lock",
    "Pipfile.lock",
    "pdm.lock",
    "conda-lock.yml",
    "pixi.lock",
    "pyproject.toml",
    "Pipfile",
    "pixi.toml",
    "setup.cfg",
    "setup.py",
    "uv.toml",
    "cog.yaml",
    "requirements.txt",
    "environment.yml",
    "environment.yaml",
    // What builds a Dockerfile decides over its arguments.
    "compose.yaml",
    "compose.yml",
    "docker-compose.yml",
    "docker-compose.yaml",
    ".devcontainer/devcontainer.json",
    ".devcontainer.json",
    "Dockerfile",
    "Containerfile",
    ".python-version",
    "runtime.txt",
    ".tool-versions",
    "apt.txt",
];
/// Files that name each other lie in each other at most this deep, and there are at most this many.
const MOST: usize = 200;

/// What the readers need besides the text.
#[derive(Clone, Copy)]
pub(crate) struct Surroundings<'a> {
    pub(crate) matrix: &'a Matrix,
    pub(crate) machine: Machine,
}

/// Reads the files of a folder that say which packages, CUDA or Python a project wants.
pub(crate) fn read_folder(folder: &Utf8Path, around: Surroundings<'_>) -> Vec<Reading> {
    let mut names: Vec<String> = NAMES.iter().map(|name| (*name).to_owned()).collect();
    let (mut unread, mut taken): (Vec<Vec<String>>, Vec<String>) = (Vec::new(), Vec::new());
    let requirements = |name: &str| name.starts_with("requirements") && has_extension(name, "txt");
    let looker = Reader { folder, around, seen: BTreeSet::new() };
    let conda = |name: &str| {
        let begins = ["environment", "conda", "env"].iter().any(|begin| name.starts_with(begin));
        is_yaml(name) && !name.ends_with("conda-lock.yml") && (begins || looker.is_environment(name))
    };
    let conda_below = |name: &str| is_yaml(name) && looker.is_environment(&format!("env/{name}"));
    let conda_lock = |name: &str| name.ends_with("conda-lock.yml");
    let pylock = |name: &str| name.starts_with("pylock.") && has_extension(name, "toml");
    let input = |name: &str| name.starts_with("requirements") && has_extension(name, "in");
    let definition = |name: &str| has_extension(name, "def");
    let dockerfile =
        |name: &str| name.to_ascii_lowercase().contains("dockerfile") && !name.ends_with(".dockerignore");
    let known = |name: &str| NAMES.contains(&name);
    let text = |name: &str| has_extension(name, "txt");
    // Where people put them: in the folder itself, or in one of that name.
    let kinds: [&[Place<'_>]; 6] = [
        &[("", &requirements), ("requirements", &text), ("", &input)],
        &[("", &conda), ("env", &conda_below)],
        &[("", &dockerfile), ("docker", &dockerfile)],
        &[("", &conda_lock)],
        &[("", &pylock)],
        &[("", &definition)],
    ];
    for places in kinds {
        let (mut is_found, mut others) = (false, Vec::new());
        for (below, fits) in places {
            let all = named_below(folder, below, fits);
            let further: Vec<_> = all.iter().filter(|name| !known(name)).cloned().collect();
            is_found |= all.len() > further.len();
            let chosen = if is_found { None } else { chosen(folder, &further, around) };
            is_found |= chosen.is_some();
            let left = further.iter().filter(|name| chosen.as_ref() != Some(*name));
            let before = others.len();
            others.extend(left.cloned());
            taken.extend(chosen.clone().filter(|_| others.len() > before));
            names.extend(chosen);
        }
        unread.push(others);
    }
    names.extend(lists_of_conda(folder, around, &names));
    let there = names.into_iter().filter(|name| folder.join(name).symlink_metadata().is_ok());
    let mut reader = Reader { folder, around, seen: BTreeSet::new() };
    let mut readings: Vec<_> =
        there.collect::<Vec<_>>().into_iter().flat_map(|name| reader.file(&name)).collect();
    // `requirements.txt` for all machines, and `requirements-gpu.txt` for those with a GPU.
    if let Some((kind, name)) = further_with_cuda(&readings, &unread, &reader) {
        unread[kind].extend(without_cuda_left_out(&mut readings, &name, &reader));
        readings.extend(reader.file(&name));
        taken.push(name);
    }
    let of_tests = with_pytest(&readings, &unread, &reader);
    readings.extend(of_tests.iter().flat_map(|name| reader.file(name)));
    let mut unread: Vec<String> = unread.into_iter().flatten().filter(|name| !taken.contains(name)).collect();
    if !readings.iter().any(|reading| names_a_framework(reading, around.matrix)) {
        let (more, doubtful) = installers(folder, &mut reader);
        readings.extend(more);
        unread.extend(doubtful);
    }
    if readings.is_empty() && unread.is_empty() {
        let scripts = named(folder, is_python).into_iter().flat_map(|name| reader.file(&name));
        readings.extend(scripts.filter(Reading::says_something));
    }
    for reading in &mut readings {
        let name = reading.file.clone();
        if taken.contains(&name) {
            let why = "taken: of the files of its kind, this one names the framework";
            reading.keep(Origin::file(&name), &name, why);
        } else if of_tests.as_ref() == Some(&name) {
            reading.keep(Origin::file(&name), &name, "taken, since it has pytest");
        }
    }
    let included: BTreeSet<_> = readings.iter().flat_map(Reading::files).collect();
    unread.retain(|name| !included.contains(name));
    readings.extend(unread.iter().map(|name| {
        Reading::unreadable(
            name,
            Kind::Image,
            &format!("not read: `envforge init --from {name}` reads it alone"),
        )
    }));
    readings
}

/// Scripts and notebooks that install a framework, where no other file names one: the only one is read, several are named.
fn installers(folder: &Utf8Path, reader: &mut Reader<'_>) -> (Vec<Reading>, Vec<String>) {
    let fits = |name: &str| has_extension(name, "sh") || has_extension(name, "ipynb");
    let is_short = |name: &String| {
        let found = folder.join(name).symlink_metadata();
        found.is_ok_and(|found| found.is_file() && found.len() <= LARGEST_SCRIPT)
    };
    let names = named(folder, fits).into_iter().filter(is_short).take(MOST);
    let with = names.filter(|name| {
        let names_one = |text: String| {
            let reading = reader.reading(name, &text, &Given::default());
            names_a_framework(&reading, reader.around.matrix)
        };
        reader.text(name).is_ok_and(names_one)
    });
    let with: Vec<_> = with.collect();
    match with.as_slice() {
        [only] => (reader.file(only), Vec::new()),
        _ => (Vec::new(), with),
    }
}

/// A script or notebook is at most this long, bytes; a longer one has data.
const LARGEST_SCRIPT: u64 = 4 << 20;

/// A folder, and whether a name in it is one of a kind.
type Place<'a> = (&'a str, &'a dyn Fn(&str) -> bool);

/// The one of several files of a kind that is meant: the only one, or the only one that names a framework.
fn chosen(folder: &Utf8Path, names: &[String], around: Surroundings<'_>) -> Option<String> {
    if let [only] = names {
        return Some(only.clone());
    }
    with_framework(names, &Reader { folder, around, seen: BTreeSet::new() })
}

/// The only one of several files that names a framework; of twins for machines with and without a GPU the one that says a CUDA.
fn with_framework(names: &[String], reader: &Reader<'_>) -> Option<String> {
    let read = |name: &String| Some(reader.reading(name, &reader.text(name).ok()?, &Given::default()));
    let readings = names.iter().filter_map(|name| Some((name, read(name)?)));
    // Its own lines: a file that includes the one with the framework would name it as well.
    let named = readings.filter(|(_, reading)| names_a_framework(reading, reader.around.matrix));
    let mut with: Vec<(&String, Reading)> = named.collect();
    if with.len() > 1 {
        with.retain(|(_, reading)| !is_without_any_cuda(reading));
    }
    if with.len() > 1 {
        with.retain(|(_, reading)| names_a_cuda(reading));
    }
    match with.as_slice() {
        [(only, _)] => Some((*only).clone()),
        _ => None,
    }
}

/// A file that was not read and names a framework with CUDA, where those that were read name none; with the number of its kind.
fn further_with_cuda(
    readings: &[Reading],
    unread: &[Vec<String>],
    reader: &Reader<'_>,
) -> Option<(usize, String)> {
    let matrix = reader.around.matrix;
    let has = |one: &Reading| names_a_framework(one, matrix) && !is_without_any_cuda(one);
    if readings.iter().any(has) {
        return None;
    }
    // One that a package brings along needs no further file, unless that is for a GPU.
    let is_implied = readings.iter().any(|one| implies_a_framework(one, matrix));
    let is_for_gpu = |name: &str, one: &Reading| {
        names_a_cuda(one) || ["gpu", "cuda"].iter().any(|word| name.to_ascii_lowercase().contains(word))
    };
    let included: BTreeSet<_> = readings.iter().flat_map(Reading::files).collect();
    unread.iter().enumerate().find_map(|(kind, names)| {
        let names: Vec<_> = names.iter().filter(|name| !included.contains(*name)).cloned().collect();
        let name = with_framework(&names, reader)?;
        let one = reader.reading(&name, &reader.text(&name).ok()?, &Given::default());
        (has(&one) && (!is_implied || is_for_gpu(&name, &one))).then_some((kind, name))
    })
}

/// Leaves out the files of the same kind that name a framework without CUDA: twins for machines without a GPU. Returns their names.
fn without_cuda_left_out(readings: &mut Vec<Reading>, name: &str, reader: &Reader<'_>) -> Vec<String> {
    let matrix = reader.around.matrix;
    let text = reader.text(name).unwrap_or_default();
    let kind = reader.reading(name, &text, &Given::default()).kind;
    let is_twin =
        |one: &Reading| one.kind == kind && names_a_framework(one, matrix) && is_without_any_cuda(one);
    let names: Vec<_> = readings.iter().filter(|one| is_twin(one)).map(|one| one.file.clone()).collect();
    readings.retain(|one| !is_twin(one));
    names
}

/// The only list of requirements that was not read and has pytest, where nothing else names it: a project is to be tested in its image.
fn with_pytest(readings: &[Reading], unread: &[Vec<String>], reader: &Reader<'_>) -> Option<String> {
    let has = |one: &Reading| {
        let offered = one.offered.iter().flat_map(|offered| &offered.packages);
        one.packages.iter().chain(offered).any(|asked| asked.name == "pytest")
    };
    if readings.iter().any(has) {
        return None;
    }
    let included: BTreeSet<_> = readings.iter().flat_map(Reading::files).collect();
    let is_it = |name: &&String| {
        let text = reader.text(name).unwrap_or_default();
        let own = reader.reading(name, &text, &Given::default());
        has(&own) && !names_a_framework(&own, reader.around.matrix)
    };
    let lists = unread.iter().flatten().filter(|name| has_extension(name, "txt"));
    let with: Vec<&String> = lists.filter(|name| !included.contains(*name)).filter(is_it).collect();
    match with.as_slice() {
        [only] => Some((*only).clone()),
        _ => None,
    }
}

/// A list of conda's addresses is at most this long, bytes; a longer text is data. At most [`MOST`] texts are looked into.
const LARGEST_LIST: u64 = 1 << 20;

/// Lists of conda's addresses, whose names say nothing.
fn lists_of_conda(folder: &Utf8Path, around: Surroundings<'_>, known: &[String]) -> Vec<String> {
    let reader = Reader { folder, around, seen: BTreeSet::new() };
    let fits = |name: &str| {
        (has_extension(name, "txt") || has_extension(name, "lock")) && !known.iter().any(|one| one == name)
    };
    let is_short = |name: &String| {
        folder.join(name).symlink_metadata().is_ok_and(|found| found.is_file() && found.len() <= LARGEST_LIST)
    };
    let names = named(folder, fits).into_iter().filter(is_short).take(MOST);
    let is_list = |text: String| is_conda_explicit(&text) || is_conda_export(&text);
    names.filter(|name| reader.text(name).is_ok_and(is_list)).collect()
}

/// As [`named`], in a folder below; the names begin with it.
fn named_below(folder: &Utf8Path, below: &str, fits: &dyn Fn(&str) -> bool) -> Vec<String> {
    let is_folder = |path: &Utf8Path| path.symlink_metadata().is_ok_and(|found| found.is_dir());
    match below {
        "" => named(folder, fits),
        // A link leads elsewhere.
        _ if !is_folder(&folder.join(below)) => Vec::new(),
        _ => named(&folder.join(below), fits).into_iter().map(|name| format!("{below}/{name}")).collect(),
    }
}

/// Reads one file that a person named.
pub(crate) fn read_file(file: &Utf8Path, around: Surroundings<'_>) -> Vec<Reading> {
    let folder = file.parent().filter(|parent| !parent.as_str().is_empty()).unwrap_or(Utf8Path::new("."));
    let mut reader = Reader { folder, around, seen: BTreeSet::new() };
    reader.file(file.file_name().unwrap_or_default())
}

/// The files of a folder with such a name, sorted. A name with a line break would be a line of the project file.
fn named(folder: &Utf8Path, fits: impl Fn(&str) -> bool) -> Vec<String> {
    let Ok(entries) = folder.read_dir_utf8() else { return Vec::new() };
    let names = entries.filter_map(|entry| Some(entry.ok()?.file_name().to_owned()));
    let mut names: Vec<_> = names.filter(|name| fits(name) && !name.contains(char::is_control)).collect();
    names.sort();
    names
}

fn is_yaml(name: &str) -> bool {
    matches!(Utf8Path::new(name).extension(), Some("yml" | "yaml"))
}

fn is_python(name: &str) -> bool {
    has_extension(name, "py")
}

fn has_extension(name: &str, extension: &str) -> bool {
    Utf8Path::new(name).extension() == Some(extension)
}

struct Reader<'a> {
    folder: &'a Utf8Path,
    around: Surroundings<'a>,
    seen: BTreeSet<Utf8PathBuf>,
}

impl Reader<'_> {
    /// Reads a file, and those that it names.
    fn file(&mut self, name: &str) -> Vec<Reading> {
        self.file_given(name, &Given::default())
    }

    /// As [`Reader::file`], with what the caller of a Dockerfile gives to it.
    fn file_given(&mut self, name: &str, given: &Given) -> Vec<Reading> {
        self.read(name, &|reader: &Self, text: &str| reader.reading(name, text, given))
    }

    /// Reads a file that `-r` names: a list of requirements, whatever its name.
    fn requirements_file(&mut self, name: &str) -> Vec<Reading> {
        self.read(name, &|reader: &Self, text: &str| reader.requirements(name, text))
    }

    fn read(&mut self, name: &str, reading: &dyn Fn(&Self, &str) -> Reading) -> Vec<Reading> {
        if !self.seen.insert(Utf8PathBuf::from(name)) || self.seen.len() > MOST {
            return Vec::new();
        }
        let mut reading = match self.text(name) {
            Ok(text) => reading(self, &text),
            Err(why) => return vec![Reading::unreadable(name, Kind::Image, &why)],
        };
        let mut further = self.included(&mut reading);
        further.extend(self.built(&mut reading));
        further.extend(self.members(&mut reading));
        self.constraints(&mut reading);
        further.insert(0, reading);
        further
    }

    fn text(&self, name: &str) -> Result<String, String> {
        let folder = self.folder.canonicalize_utf8().map_err(|error| error.to_string())?;
        let path = self.folder.join(name).canonicalize_utf8().map_err(|error| error.to_string())?;
        if !path.starts_with(&folder) {
            return Err("it leads out of the folder".to_owned());
        }
        let bytes = read_regular(&path, LARGEST_FILE).map_err(|error| error.to_string())?;
        decoded(&bytes).map_err(str::to_owned)
    }

    /// Whether a file is an environment of conda by what it has.
    fn is_environment(&self, name: &str) -> bool {
        let found = self.folder.join(name).symlink_metadata();
        let is_short = found.is_ok_and(|found| found.is_file() && found.len() <= LARGEST_LIST);
        let has = |text: String| {
            ["channels:", "dependencies:"].iter().all(|key| text.lines().any(|line| line.starts_with(key)))
        };
        is_short && self.text(name).is_ok_and(has)
    }

    fn reading(&self, name: &str, text: &str, given: &Given) -> Reading {
        let Surroundings { matrix, machine } = self.around;
        let short = Utf8Path::new(name).file_name().unwrap_or(name);
        let begins = |key: &str| text.lines().any(|line| line.starts_with(key));
        match short {
            "uv.lock" => from_uv_lock(name, text, machine),
            "poetry.lock" => from_poetry_lock(name, text),
            "Pipfile.lock" => from_pipfile_lock(name, text),
            "Pipfile" => from_pipfile(name, text),
            "pdm.lock" => from_pdm_lock(name, text),
            "uv.toml" => from_uv_toml(name, text, machine),
            "cog.yaml" => from_cog(name, text, matrix),
            "runtime.txt" if is_runtime(text) => from_runtime_file(name, text),
            ".tool-versions" => from_runtime_file(name, text),
            "pixi.lock" => from_pixi_lock(name, text, machine, matrix),
            "pixi.toml" => from_pixi(name, text, matrix),
            "setup.cfg" => from_setup_cfg(name, text),
            "setup.py" => from_setup_py(name, text),
            ".python-version" => from_python_version(name, text),
            "apt.txt" => apt(name, text),
            _ if short.starts_with("pylock.") => from_pylock(name, text),
            _ if short.contains("conda-lock") && is_yaml(short) => {
                from_conda_lock(name, text, machine, matrix)
            }
            _ if has_extension(short, "toml") => from_pyproject_toml(name, text, machine, matrix),
            _ if is_yaml(short) && begins("services") => {
                from_compose(name, text, &self.variables(name), matrix)
            }
            _ if is_yaml(short) && (begins("metadata:") && begins("package:")) => {
                from_conda_lock(name, text, machine, matrix)
            }
            _ if is_yaml(short) => from_environment(name, text, matrix),
            _ if has_extension(short, "json") => from_devcontainer(name, text, matrix),
            _ if has_extension(short, "ipynb") => from_notebook(name, text, matrix),
            _ if has_extension(short, "sh") => from_shell_script(name, text, matrix),
            _ if has_extension(short, "def") => from_definition(name, text, matrix),
            _ if is_python(short) => from_script(name, text, machine, matrix).unwrap_or_else(|| {
                Reading::unreadable(name, Kind::Project, "no block `# /// script` with its requirements")
            }),
            _ if short.to_ascii_lowercase().contains("dockerfile") || short == "Containerfile" => {
                from_dockerfile(name, text, given, matrix)
            }
            _ => self.list(name, text),
        }
    }

    /// Reads a list of packages, pip's or conda's.
    fn list(&self, name: &str, text: &str) -> Reading {
        let Surroundings { matrix, machine } = self.around;
        if is_conda_explicit(text) {
            from_conda_explicit(name, text, machine, matrix)
        } else if is_conda_export(text) {
            from_conda_export(name, text, matrix)
        } else {
            from_requirement_lines(name, text)
        }
    }

    /// Reads a file that `-r` names; uv takes project files there, too.
    fn requirements(&self, name: &str, text: &str) -> Reading {
        let short = Utf8Path::new(name).file_name().unwrap_or(name);
        let is_project = ["setup.py", "setup.cfg"].contains(&short) || has_extension(short, "toml");
        if is_project || is_yaml(short) {
            self.reading(name, text, &Given::default())
        } else {
            self.list(name, text)
        }
    }

    /// Reads the requirement files that a file names. Those of a requirements file are parts of it.
    fn included(&mut self, reading: &mut Reading) -> Vec<Reading> {
        let mut further = Vec::new();
        for (origin, named) in std::mem::take(&mut reading.includes) {
            // A Dockerfile names files where it copied them; a compose file is where it is named.
            let found = if reading.kind == Kind::Image && is_yaml(&named) {
                self.near(&reading.file, &named)
            } else {
                self.beside(&reading.file, &named)
            };
            let Some(name) = found else {
                let written = if reading.kind == Kind::Requirements { format!("-r {named}") } else { named };
                reading.leave(origin, &written, "the folder does not have this file");
                continue;
            };
            let parts = self.requirements_file(&name);
            if reading.kind == Kind::Requirements {
                for part in parts {
                    absorb(reading, part);
                }
            } else {
                further.extend(parts);
            }
        }
        further
    }

    /// Reads the Dockerfiles that a file builds, with what it gives to them.
    fn built(&mut self, reading: &mut Reading) -> Vec<Reading> {
        let mut further = Vec::new();
        for build in std::mem::take(&mut reading.builds) {
            let Some(name) = self.near(&reading.file, &build.file) else {
                let written = plain_path(&build.file).unwrap_or(build.file);
                reading.leave(build.origin, &written, "the folder does not have this file");
                continue;
            };
            if self.seen.contains(Utf8Path::new(&name)) && build.given != Given::default() {
                let why = "its Dockerfile is read once, as an earlier service builds it";
                reading.leave(build.origin, &name, why);
                continue;
            }
            further.extend(self.file_given(&name, &build.given));
        }
        further
    }

    /// The variables of the `.env` next to a compose file.
    fn variables(&self, file: &str) -> BTreeMap<String, String> {
        let Some(name) = self.near(file, ".env") else { return BTreeMap::new() };
        let text = self.text(&name).unwrap_or_default();
        let pairs = text.lines().filter_map(|line| line.trim().split_once('='));
        let plain = |value: &str| value.trim().trim_matches(['"', '\'']).to_owned();
        pairs
            .map(|(name, value)| (name.trim_start_matches("export ").trim().to_owned(), plain(value)))
            .collect()
    }

    /// Reads the parts of a workspace that its root needs, and names the others.
    fn members(&mut self, reading: &mut Reading) -> Vec<Reading> {
        let patterns = std::mem::take(&mut reading.members);
        if patterns.is_empty() {
            return Vec::new();
        }
        let folders: Vec<_> = patterns.iter().flat_map(|pattern| self.folders(pattern)).collect();
        let (mut further, mut with) = (Vec::new(), None);
        for folder in &folders {
            let name = format!("{folder}/pyproject.toml");
            let Ok(text) = self.text(&name) else { continue };
            let own = self.reading(&name, &text, &Given::default());
            if with.is_none() && names_a_framework(&own, self.around.matrix) {
                with = Some(folder.clone());
            }
            let project = project_name(&text);
            if reading.needed_members.contains(&project) {
                let is_own = |note: &Note| note.written == project && note.why.starts_with("a part of");
                if let Some(at) = reading.left.iter().position(is_own) {
                    let note = reading.left.remove(at);
                    let why = "a part of this repository: its requirements are read, its code is mounted";
                    reading.keep(note.origin, &note.written, why);
                }
                further.extend(self.file(&name));
            }
        }
        let shown = if folders.is_empty() { &patterns } else { &folders };
        let first = with.as_ref().or(shown.first()).cloned().unwrap_or_default();
        let why = format!("one image is one member's: `envforge init --from {first}`");
        let origin = Origin::file(&reading.file);
        reading.leave(origin, &format!("workspace members {}", shown.join(", ")), why);
        further
    }

    /// The folders that a pattern of a workspace names: `packages/*`, `apps/web`.
    fn folders(&self, pattern: &str) -> Vec<String> {
        let Some((parent, "*")) = pattern.rsplit_once('/') else {
            return plain_path(pattern).into_iter().collect();
        };
        let Some(parent) = plain_path(parent).filter(|parent| !parent.contains('*')) else {
            return Vec::new();
        };
        let has_project = |name: &str| self.folder.join(&parent).join(name).join("pyproject.toml").is_file();
        let names = named_below(self.folder, &parent, &has_project);
        names.into_iter().take(MOST).collect()
    }

    fn constraints(&mut self, reading: &mut Reading) {
        for (origin, named) in &reading.constraint_files.clone() {
            let text = self.beside(&reading.file, named).map(|name| (self.text(&name), name));
            match text {
                Some((Ok(text), name)) => {
                    let part = constraints_of(&name, &text);
                    reading.constraints.extend(part.constraints);
                    reading.cuda.extend(part.cuda);
                    reading.left.extend(part.left);
                    for (origin, named) in part.includes.into_iter().chain(part.constraint_files) {
                        reading.leave(origin, &named, "a file that a file of versions names is not read");
                    }
                    reading.parts.push(part.file);
                    reading.keep(
                        origin.clone(),
                        &format!("-c {named}"),
                        "its versions hold for the packages that are asked for",
                    );
                }
                _ => reading.leave(origin.clone(), &format!("-c {named}"), "it cannot be read"),
            }
        }
    }

    /// The name of a file that another one names relative to itself.
    fn near(&self, file: &str, named: &str) -> Option<String> {
        let near = Utf8Path::new(file).parent().unwrap_or(Utf8Path::new("")).join(named);
        plain_path(near.as_str()).filter(|name| self.folder.join(name).is_file())
    }

    /// The name of a file that another one names: relative to it, or by its last part where a Dockerfile copied it.
    fn beside(&self, file: &str, named: &str) -> Option<String> {
        let last = Utf8Path::new(named).file_name().unwrap_or(named);
        self.near(file, named).or_else(|| {
            let candidates = [named, last].map(plain_path);
            candidates.into_iter().flatten().find(|name| self.folder.join(name).is_file())
        })
    }
}

/// The normalized name of the project of a pyproject.toml; empty: it has none.
fn project_name(text: &str) -> String {
    let table: toml::Table = toml::from_str(text).unwrap_or_default();
    let name = table.get("project").and_then(|project| project.get("name")).and_then(toml::Value::as_str);
    name.unwrap_or_default().to_ascii_lowercase().replace(['_', '.'], "-")
}

/// A relative path without `.` and `..`; `None` for one that leads out of its folder.
fn plain_path(path: &str) -> Option<String> {
    let mut parts = Vec::new();
    for part in Utf8Path::new(path).components() {
        match part {
            Utf8Component::Normal(name) => parts.push(name),
            Utf8Component::CurDir => {}
            Utf8Component::ParentDir => drop(parts.pop()?),
            Utf8Component::RootDir | Utf8Component::Prefix(_) => return None,
        }
    }
    Some(parts.join("/"))
}

/// Adds what a file that a requirements file names says.
fn absorb(reading: &mut Reading, part: Reading) {
    reading.is_readable_by_lock &= part.is_readable_by_lock;
    reading.hashes += part.hashes;
    reading.packages.extend(part.packages);
    reading.pins.extend(part.pins);
    reading.constraints.extend(part.constraints);
    reading.cuda.extend(part.cuda);
    reading.python.extend(part.python);
    reading.apt.extend(part.apt);
    reading.indexes.extend(part.indexes);
    reading.offered.extend(part.offered);
    reading.changed.extend(part.changed);
    reading.kept.extend(part.kept);
    reading.left.extend(part.left);
    reading.is_readable_by_lock &= part.constraint_files.is_empty();
    reading.parts.push(part.file);
    reading.parts.extend(part.parts);
}

fn apt(name: &str, text: &str) -> Reading {
    let mut reading = Reading::of(name, Kind::Requirements);
    for (at, line) in text.lines().enumerate() {
        for word in line.split('#').next().unwrap_or_default().split_whitespace() {
            let origin = Origin::line(name, at + 1);
            if is_apt_name(word) {
                reading.apt.push((origin, word.to_owned()));
            } else {
                reading.leave(origin, word, "not the name of a package of the distribution");
            }
        }
    }
    reading
}

/// Whether a `runtime.txt` is the one line of a hoster, `python-3.10.13`: others are lists of requirements.
fn is_runtime(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let first = lines.next().and_then(|line| line.strip_prefix("python"));
    let version = first.map(|rest| rest.trim_start_matches(['-', ' ']));
    version.is_some_and(|version| version.starts_with(|c: char| c.is_ascii_digit())) && lines.next().is_none()
}
