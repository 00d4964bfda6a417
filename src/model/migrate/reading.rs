//! What one file asks for.

use std::collections::BTreeMap;

use pep440_rs::VersionSpecifiers;
use pep508_rs::MarkerTree;
use serde::Serialize;

use super::place::Origin;
use crate::model::project::secret::secret_in;
use crate::model::versions::CudaVariant;

/// The kinds of files, in the order in which they are believed: a lock before the file that it belongs to, what lists packages before
/// what installs them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A lock: uv.lock, pylock.toml, poetry.lock, conda-lock.yml, pixi.lock.
    Lock,
    /// pyproject.toml, pixi.toml, setup.cfg, setup.py, the metadata of a script.
    Project,
    /// A requirements file.
    Requirements,
    /// A conda environment.
    Environment,
    /// A Dockerfile, compose or devcontainer file.
    Image,
    /// .python-version.
    Python,
}

/// A Python package that a file asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    pub origin: Origin,
    /// As it is written.
    pub written: String,
    /// Its normalized name.
    pub name: String,
    /// `[extra,…]`, or nothing.
    pub extras: String,
    /// Its versions, without local parts.
    pub versions: VersionSpecifiers,
    /// The local part of its version: `cu128`.
    pub local: Option<String>,
    pub marker: MarkerTree,
    /// The name of the index that it must come from.
    pub index: Option<String>,
}

impl Asked {
    /// The requirement without local part, index and hashes: `torch[x]>=2.6,<3 ; python_version < '3.12'`.
    pub fn requirement(&self) -> String {
        let marker = self.marker.contents().map(|marker| format!(" ; {marker}")).unwrap_or_default();
        let versions: Vec<_> = self.versions.iter().map(ToString::to_string).collect();
        format!("{}{}{}{marker}", self.name, self.extras, versions.join(","))
    }
}

/// How sure a file is of its CUDA, weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Strength {
    /// An index of another project than the framework's: it gives way to all others, and only its major counts.
    Hint,
    /// An image that the project builds on, or the least driver it wants.
    Surroundings,
    /// The major in the name of a package, `cupy-cuda12x`, or in the version of an extension's wheel: `+cu122torch2.3`.
    Package,
    /// The toolkit of conda, whose builds are not those of wheels: of its major, the nearest build is taken.
    Toolkit,
    /// The page of an index, or a package of conda that chooses the build.
    Index,
    /// The framework's own version: `2.8.0+cu128`.
    Framework,
}

/// A CUDA that a file names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CudaFact {
    pub origin: Origin,
    pub cuda: CudaVariant,
    pub strength: Strength,
    /// What names it: `--extra-index-url …/cu128`.
    pub by: String,
}

/// The Python that a file asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PythonFact {
    pub origin: Origin,
    pub versions: VersionSpecifiers,
    /// As it is written: `requires-python = ">=3.10"`.
    pub by: String,
}

/// A part of a file that was understood and takes no entry of its own: what it means for the image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// Where it is written.
    pub origin: Origin,
    /// As it is written, shortened.
    pub written: String,
    /// The meaning for the image, or the reason why it is not part of it.
    pub why: String,
}

impl Note {
    /// Whether what is left out is a build without CUDA, or an index of such.
    pub(super) fn is_without_cuda(&self) -> bool {
        ["build without CUDA", "builds without CUDA"].iter().any(|words| self.why.contains(words))
    }
}

/// An index that packages of a file name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexSeen {
    /// Its name.
    pub name: String,
    /// Its address; empty: the user's configuration has it.
    pub url: String,
    /// Whether it is one page of links.
    pub flat: bool,
}

/// Packages that a file lists under a name and that are not installed unless somebody asks: an extra, a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offered {
    pub origin: Origin,
    pub name: String,
    /// `extra`, `dependency group`.
    pub what: &'static str,
    pub packages: Vec<Asked>,
    pub cuda: Vec<CudaFact>,
    pub left: Vec<Note>,
    pub indexes: Vec<IndexSeen>,
    /// Whether `groups` of a project file can name it: `lock` reads it itself.
    pub is_group: bool,
    /// Whether the project has it without a question: it has what runs the project's tests.
    pub is_taken: bool,
}

impl Offered {
    /// Whether its packages come from builds without CUDA.
    pub(super) fn is_without_cuda(&self) -> bool {
        self.left.iter().any(Note::is_without_cuda)
    }

    /// Packages alone.
    pub(super) fn of(origin: Origin, name: &str, what: &'static str, packages: Vec<Asked>) -> Self {
        let (cuda, left, indexes) = (Vec::new(), Vec::new(), Vec::new());
        Self {
            origin,
            name: name.to_owned(),
            what,
            packages,
            cuda,
            left,
            indexes,
            is_group: false,
            is_taken: false,
        }
    }
}

/// A Dockerfile that another file builds, with what it gives to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Build {
    pub origin: Origin,
    /// The Dockerfile, relative to the file that names it.
    pub file: String,
    pub given: Given,
}

/// A base image of which a variable without a value hides the tag, or the name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenImage {
    pub origin: Origin,
    /// As far as it is known: `pytorch/pytorch:${TAG}`.
    pub image: String,
    /// The package of its framework, where the name says one; `None`: the name is not known either.
    pub package: Option<String>,
}

/// The decisions of the caller of a Dockerfile.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Given {
    /// Values of `ARG`.
    pub arguments: BTreeMap<String, String>,
    /// The stage that is built; `None`: the last.
    pub target: Option<String>,
}

/// What one file asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// The file, relative to the folder that is read.
    pub file: String,
    /// Its kind.
    pub kind: Kind,
    /// The packages it asks for.
    pub packages: Vec<Asked>,
    /// Of a lock: the release of every package. They say which release, not which packages are wanted.
    pub pins: Vec<Asked>,
    /// Versions that hold only for packages asked for elsewhere.
    pub constraints: Vec<Asked>,
    /// Every CUDA it names.
    pub cuda: Vec<CudaFact>,
    /// Every Python it asks for.
    pub python: Vec<PythonFact>,
    /// Packages of the distribution.
    pub apt: Vec<(Origin, String)>,
    /// Indexes that packages of it name.
    pub indexes: Vec<IndexSeen>,
    /// Extras and groups.
    pub offered: Vec<Offered>,
    /// Whether a compiler of CUDA is asked for, and by what.
    pub devel: Option<Note>,
    /// What was understood and is part of the image anyway.
    pub kept: Vec<Note>,
    /// The lines that are part of the project in another form.
    pub changed: Vec<Note>,
    /// What is not taken over, with the reason.
    pub left: Vec<Note>,
    /// Requirement files that it names: the reader of the folder reads them.
    pub includes: Vec<(Origin, String)>,
    /// Dockerfiles that it builds.
    pub builds: Vec<Build>,
    /// Base images whose tag or name is not known.
    pub open_images: Vec<OpenImage>,
    /// Folders of the parts of a workspace, as patterns.
    pub members: Vec<String>,
    /// Parts of the workspace that it needs itself.
    pub needed_members: Vec<String>,
    /// Files of versions that it names with `-c`.
    pub constraint_files: Vec<(Origin, String)>,
    /// Requirement files that are parts of it.
    pub parts: Vec<String>,
    /// Lines with hashes of their files.
    pub hashes: usize,
    /// Whether `lock` reads this very file with the same meaning, so that envforge.toml can name it instead of a copy.
    pub is_readable_by_lock: bool,
}

impl Reading {
    /// An empty reading of a file.
    pub fn of(file: &str, kind: Kind) -> Self {
        Self {
            file: file.to_owned(),
            kind,
            packages: Vec::new(),
            pins: Vec::new(),
            constraints: Vec::new(),
            cuda: Vec::new(),
            python: Vec::new(),
            apt: Vec::new(),
            indexes: Vec::new(),
            offered: Vec::new(),
            devel: None,
            kept: Vec::new(),
            changed: Vec::new(),
            left: Vec::new(),
            includes: Vec::new(),
            builds: Vec::new(),
            open_images: Vec::new(),
            members: Vec::new(),
            needed_members: Vec::new(),
            constraint_files: Vec::new(),
            parts: Vec::new(),
            hashes: 0,
            is_readable_by_lock: false,
        }
    }

    /// One that could not be read at all.
    pub fn unreadable(file: &str, kind: Kind, why: &str) -> Self {
        let mut reading = Self::of(file, kind);
        reading.leave(Origin::file(file), "the whole file", why);
        reading
    }

    /// Notes what is not taken over.
    pub fn leave(&mut self, origin: Origin, written: &str, why: impl Into<String>) {
        self.left.push(Note { origin, written: shortened(written), why: why.into() });
    }

    /// Notes what is taken over in another form.
    pub fn change(&mut self, origin: Origin, written: &str, why: impl Into<String>) {
        self.changed.push(Note { origin, written: shortened(written), why: why.into() });
    }

    /// Notes what needs no entry of its own.
    pub fn keep(&mut self, origin: Origin, written: &str, why: impl Into<String>) {
        self.kept.push(Note { origin, written: shortened(written), why: why.into() });
    }

    /// The file and those that are parts of it.
    pub fn files(&self) -> impl Iterator<Item = String> {
        std::iter::once(self.file.clone()).chain(self.parts.iter().cloned())
    }

    /// Whether anything of the file was understood.
    pub fn says_something(&self) -> bool {
        let lists = [
            !self.packages.is_empty(),
            !self.pins.is_empty(),
            !self.cuda.is_empty(),
            !self.python.is_empty(),
        ];
        let names_a_framework = self.open_images.iter().any(|open| open.package.is_some());
        lists.contains(&true)
            || names_a_framework
            || !self.apt.is_empty()
            || !self.offered.is_empty()
            || !self.kept.is_empty()
    }
}

/// Characters of a line that a table repeats.
const SHOWN: usize = 90;

/// A line for people: without logins of addresses, nothing of one that holds a secret but its first word, at most [`SHOWN`] characters.
pub(super) fn shortened(text: &str) -> String {
    let words: Vec<_> = text.split_whitespace().map(without_login).collect();
    let plain = words.join(" ");
    // An address whose login is hidden is no secret any more.
    if let Some(what) = secret_in(&plain.replace("***@", "")) {
        let first = words.first().map_or("", |word| word.split('=').next().unwrap_or_default());
        return format!("{first} … (holds {what})");
    }
    if plain.chars().count() <= SHOWN {
        return plain;
    }
    plain.chars().take(SHOWN - 1).chain(['…']).collect()
}

/// A reason without logins and secrets of addresses.
pub(super) fn shortened_reason(text: &str) -> String {
    text.split(' ').map(without_login).collect::<Vec<_>>().join(" ")
}

/// `https://***@host/simple` for an address with a login, without what stands behind `?`, which may be a token.
fn without_login(word: &str) -> String {
    let Some(at) = word.find("://") else { return word.to_owned() };
    let rest = &word[at + 3..];
    let (rest, query) = rest.split_once('?').map_or((rest, ""), |(rest, _)| (rest, "?…"));
    let end = rest.find(['/', '#']).unwrap_or(rest.len());
    let (head, hidden) = match rest[..end].rfind('@') {
        Some(login) => ("***", &rest[login..]),
        None => ("", rest),
    };
    format!("{}{head}{hidden}{query}", &word[..at + 3])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logins_and_secrets_are_not_repeated() {
        for (text, shown) in [
            ("--index-url https://u:hunter2@h.test/simple", "--index-url https://***@h.test/simple"),
            (
                "curl https://u:hunter2@h.test/a && curl https://hunter2@h.test/b",
                "curl https://***@h.test/a && curl https://***@h.test/b",
            ),
            ("x @ git+https://hunter2@h.test/x.git", "x @ git+https://***@h.test/x.git"),
            ("ENV HF_TOKEN=hf_hunter2hunter2hunter2", "ENV … (holds a token)"),
            ("https://h.test/simple?token=hunter2", "https://h.test/simple?…"),
            ("WANDB_API_KEY=hunter2", "WANDB_API_KEY … (holds a secret value)"),
        ] {
            assert_eq!(shortened(text), shown);
        }
        let long = shortened(&"x".repeat(200));
        assert!(long.ends_with('…') && long.chars().count() == SHOWN);
    }
}
