//! Settings that cannot be used.

use camino::Utf8PathBuf;

use super::tables::{SITE_FILE, TABLES};
use crate::failure::{Exit, Failure};
use crate::model::image_mirrors::MirrorRuleError;

/// A setting that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// The configuration file cannot be read.
    #[error("cannot read the configuration file")]
    Unreadable {
        /// What the system said; names the file.
        #[source]
        cause: std::io::Error,
    },
    /// The configuration file is malformed.
    #[error("invalid configuration `{file}`: {detail}")]
    Malformed {
        /// The file.
        file: Utf8PathBuf,
        /// What is wrong, with line and column.
        detail: String,
    },
    /// A user other than root could change the configuration of the site.
    #[error("{file}, the configuration of this site, is not read: {path} is not root's alone ({why})")]
    NotRoots {
        /// The file.
        file: Utf8PathBuf,
        /// The file or the folder above it.
        path: Utf8PathBuf,
        /// Why.
        why: String,
    },
    /// A user's file loosens rules of the site.
    #[error("{file} loosens rules of this site:\n  {}", keys.join("\n  "))]
    Loosened {
        /// The user's file.
        file: Utf8PathBuf,
        /// The keys, each with its reason.
        keys: Vec<String>,
    },
    /// A value is none of those allowed.
    #[error("invalid value `{value}` for {setting}")]
    Value {
        /// The setting.
        setting: &'static str,
        /// What was given.
        value: String,
        /// What is allowed.
        allowed: &'static str,
    },
    /// A mirror of an image registry cannot be used.
    #[error("`[mirrors] images` (ENVFORGE_IMAGE_MIRROR): {0}")]
    ImageMirror(#[from] MirrorRuleError),
    /// A login without the registry it is for: it is sent to no other.
    #[error("ENVFORGE_REGISTRY_USER and ENVFORGE_REGISTRY_PASSWORD require ENVFORGE_REGISTRY")]
    LoginOfNoRegistry,
    /// What is done with the layers of a repository that is not set.
    #[error("`[registry] layers-write` requires `[registry] layers` (ENVFORGE_LAYERS)")]
    LayersOfNoRepository,
    /// A matrix without its hash, or a hash without its matrix.
    #[error("`[matrix] {present}` requires `[matrix] {missing}`")]
    MatrixWithout {
        /// The key that is missing.
        missing: &'static str,
        /// The one that is set.
        present: &'static str,
    },
    /// Neither HOME nor the folders that replace it are set.
    #[error("home directory not found: `HOME` is not set")]
    NoHome,
}

impl Failure for SettingsError {
    fn exit(&self) -> Exit {
        Exit::Usage
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::Unreadable { .. } => vec!["name another file with --config, or fix its permissions".into()],
            Self::Malformed { .. } => {
                let tables = TABLES.map(|name| format!("[{name}]")).join(" ");
                vec![format!("known tables: {tables}; docs/src/how-to/configuration.md lists their keys")]
            }
            Self::NotRoots { path, .. } => {
                vec![format!("as root: `chown root: {path}` and `chmod go-w {path}`")]
            }
            Self::Loosened { .. } => {
                vec![format!("remove these keys, or make them stricter than those of {SITE_FILE}")]
            }
            Self::Value { allowed, .. } => vec![format!("allowed: {allowed}")],
            Self::ImageMirror(_) => {
                vec!["write `images = { \"docker.io\" = \"mirror.example.com/folder\" }`; a list names several".into()]
            }
            Self::LoginOfNoRegistry => {
                vec!["set all three, such as ENVFORGE_REGISTRY=registry.example.com".into()]
            }
            Self::LayersOfNoRepository => {
                vec!["set the repository, such as ENVFORGE_LAYERS=registry.example.com/team/layers".into()]
            }
            Self::MatrixWithout { .. } => {
                vec!["set both: `file = \"/path/matrix.tar\"` and what `sha256sum` prints of it".into()]
            }
            Self::NoHome => vec!["set HOME, or ENVFORGE_CACHE_DIR, ENVFORGE_STATE_DIR and --config".into()],
        }
    }
}
