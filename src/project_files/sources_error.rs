//! Why the sources of a project cannot be taken.

use camino::Utf8PathBuf;

use crate::failure::{Exit, Failure};
use crate::model::byte_size::readable;

/// The most of the sources of a project, bytes.
pub(super) const LIMIT: u64 = 100 << 20;

/// Why the sources of a project cannot be taken.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SourcesError {
    /// A file cannot be read.
    #[error("cannot read `{path}`, a source of the project")]
    Unreadable {
        /// The file.
        path: String,
        /// Why.
        #[source]
        cause: std::io::Error,
    },
    /// A symbolic link leads out of the project.
    #[error("`{path}` points outside the project: `{to}`")]
    Outside {
        /// The link.
        path: String,
        /// Its target.
        to: Utf8PathBuf,
    },
    /// A symbolic link to nothing, or one that is absolute.
    #[error("`{path}` is a link that only this machine can follow: `{to}`")]
    Link {
        /// The link.
        path: String,
        /// Its target, as written.
        to: String,
    },
    /// A name that is not UTF-8.
    #[error("invalid file name `{path}`: not UTF-8")]
    Name {
        /// The name, with the strange bytes replaced.
        path: String,
    },
    /// A path that leads elsewhere than down.
    #[error("invalid path `{path}` in git's index")]
    Path {
        /// The path.
        path: String,
    },
    /// Neither a file nor a link.
    #[error("unsupported file type of `{path}`: neither a file nor a link")]
    Special {
        /// The path.
        path: String,
    },
    /// A submodule that was not checked out.
    #[error("submodule `{path}` is not checked out")]
    Submodule {
        /// Its directory.
        path: String,
    },
    /// The sources are too large.
    #[error(
        "the sources of the project are too large: {} (limit {} MB); the largest: {}",
        readable(*size), LIMIT >> 20, largest.join(", ")
    )]
    TooLarge {
        /// Bytes.
        size: u64,
        /// The largest files, each with its size.
        largest: Vec<String>,
    },
    /// A file contains a secret.
    #[error("`{path}`, a source of the project, contains {what}")]
    Secret {
        /// The file.
        path: String,
        /// The kind of secret.
        what: &'static str,
    },
    /// The project is in a repository that knows none of its files.
    #[error("git knows no file of the project")]
    NothingAdded,
    /// Git refuses to list the files.
    #[error("git cannot list the files of the project: {text}")]
    Git {
        /// Its words.
        text: String,
    },
    /// There is no git to read `.gitignore`.
    #[error("cannot read .gitignore: the program git is not installed")]
    NoGit,
    /// A file or program cannot be used.
    #[error(transparent)]
    File(#[from] std::io::Error),
}

impl SourcesError {
    /// Git's words, on one line.
    pub(super) fn git(said: &str) -> Self {
        let lines: Vec<_> = said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        Self::Git { text: lines.join(" ") }
    }
}

impl Failure for SourcesError {
    fn exit(&self) -> Exit {
        match self {
            Self::File(_) => Exit::Outside,
            _ => Exit::Usage,
        }
    }

    fn hints(&self) -> Vec<String> {
        let hint = match self {
            Self::Outside { .. } | Self::Link { .. } => "copy the file into the project, or remove the link",
            Self::Submodule { path } => return vec![format!("run `git submodule update --init {path}`")],
            Self::TooLarge { .. } => {
                "let git ignore data and results (`git rm --cached`, .gitignore), and mount them: `[shell] mounts`"
            }
            Self::Secret { .. } => {
                "remove it from git: everyone with the image may read its files; `envforge shell -e NAME` passes a secret to a container"
            }
            Self::Name { .. } => "rename it",
            Self::NothingAdded => "add its files: `git add`",
            Self::NoGit => "install git",
            _ => return Vec::new(),
        };
        vec![hint.to_owned()]
    }
}
