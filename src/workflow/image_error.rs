//! Images, reports and lock files that are not where a request looks for them, and tags that cannot be pushed.

use crate::failure::{Exit, Failure};
use crate::model::diagnosis::diagnose;

/// Why an image, its lock file or its report cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// Neither the engine nor the registry has the image.
    #[error("image `{image}` not found: {text}")]
    NotFound {
        /// Its name.
        image: String,
        /// The engine's message.
        text: String,
    },
    /// A folder without a project was named.
    #[error("no envforge.toml in `{folder}`")]
    NoProject {
        /// The folder.
        folder: String,
    },
    /// The spec is not built on this engine.
    #[error("no image of `{spec}` on this engine")]
    SpecNotBuilt {
        /// The spec.
        spec: String,
    },
    /// The engine has no image of the lock.
    #[error("no image found for this lock file: `{tag}` is missing or has a different lock")]
    NotBuilt {
        /// The expected tag.
        tag: String,
        /// The spec of the request.
        spec: String,
    },
    /// The lock file given is not that of the image.
    #[error("lock file `{file}` ({hash}) does not match the image ({label})")]
    OtherLock {
        /// The lock file.
        file: String,
        /// Its hash.
        hash: String,
        /// The image's.
        label: String,
    },
    /// The lock file given is not the one that the image's provenance names.
    #[error(
        "lock file `{file}` ({hash}) is not the one that the image was built from by its signed provenance ({signed})"
    )]
    OtherSignedLock {
        /// The lock file.
        file: String,
        /// Its hash.
        hash: String,
        /// That of the provenance.
        signed: String,
    },
    /// The lock of the image is not on this machine.
    #[error("lock file of `{image}` not found")]
    UnknownLock {
        /// The image.
        image: String,
    },
    /// There is no report of the image.
    #[error("no verification report for `{image}`")]
    NoReport {
        /// The image.
        image: String,
    },
    /// `--push`, and no tag names a registry.
    #[error("nothing to push: no tag names a registry")]
    NothingToPush,
    /// `verify --push`, and the image is not verified.
    #[error("nothing was pushed: {because}")]
    NotPushed {
        /// Why, as a clause.
        because: String,
    },
    /// A tag was to be pushed, and checks of the image failed on this machine.
    #[error("nothing was pushed: an image whose checks failed gets no tag: {proven}")]
    FailedChecks {
        /// What is proven of it.
        proven: String,
    },
    /// An image that only an engine can push, without a tag.
    #[error("cannot push `{image}` by its digest alone: it was not put together here")]
    NotAssembled {
        /// Its id.
        image: String,
    },
    /// The tag names another image than the one that was checked.
    #[error("`{image}` was given to another image while this one was checked: nothing was tagged or pushed")]
    Moved {
        /// The tag.
        image: String,
    },
    /// The engine has other layers than it was given.
    #[error("image `{image}` does not have the layers that were put together")]
    OtherLayers {
        /// Its id.
        image: String,
    },
    /// The image has other digests than the lock records.
    #[error("the image has configuration {found}, which is not the one that {file} records{}", differences.iter().fold(String::new(), |all, line| all + "\n  - " + line))]
    OtherRecords {
        /// The lock file.
        file: String,
        /// The configuration's digest.
        found: String,
        /// The layers that differ, a line each.
        differences: Vec<String>,
    },
    /// The engine's disk has too little space.
    #[error("not enough disk space in `{folder}`: {} required, {} free", gigabytes(*need_bytes), gigabytes(*free_bytes))]
    NoSpace {
        /// The directory.
        folder: String,
        /// Bytes that a build needs.
        need_bytes: u64,
        /// Bytes that are free.
        free_bytes: u64,
    },
}

impl Failure for ImageError {
    fn exit(&self) -> Exit {
        match self {
            Self::NotFound { .. }
            | Self::SpecNotBuilt { .. }
            | Self::OtherLayers { .. }
            | Self::NoSpace { .. } => Exit::Outside,
            Self::NoProject { .. }
            | Self::OtherLock { .. }
            | Self::OtherSignedLock { .. }
            | Self::NothingToPush
            | Self::NotAssembled { .. } => Exit::Usage,
            Self::NotBuilt { .. }
            | Self::UnknownLock { .. }
            | Self::NoReport { .. }
            | Self::OtherRecords { .. }
            | Self::NotPushed { .. }
            | Self::FailedChecks { .. }
            | Self::Moved { .. } => Exit::No,
        }
    }

    fn hints(&self) -> Vec<String> {
        let hint = match self {
            Self::NotFound { text, .. } => {
                let pull = "check the name and your access to its registry (`docker login`), or pull the image first";
                let found = diagnose(text).map(|finding| finding.hint());
                return [pull.to_owned()].into_iter().chain(found).collect();
            }
            Self::NoProject { .. } => "name an image, a spec, a lock file, or the directory of a project".to_owned(),
            Self::SpecNotBuilt { spec } => format!("build it: envforge build {spec}"),
            Self::NotBuilt { spec, .. } => format!("build it: envforge build {spec} --locked"),
            Self::OtherLock { .. } | Self::OtherSignedLock { .. } => "pass the lock file it was built from, or omit --lock".to_owned(),
            Self::UnknownLock { .. } => "pass the lock file it was built from".to_owned(),
            Self::NoReport { image } => format!("create one: envforge verify {image}"),
            Self::NothingToPush => {
                "name a registry: `registry.example.com/team/torch:2.8` (with `build --push`: after `--tag`)".to_owned()
            }
            Self::NotPushed { .. } => {
                "run `verify --push` on a machine with a GPU of the target: it pushes verified tags only"
                    .to_owned()
            }
            Self::FailedChecks { .. } => {
                "to move it all the same, push it by its digest alone: pass `HOST/NAME` without a tag".to_owned()
            }
            Self::NotAssembled { .. } => "pass a reference with a tag: engines push tags only".to_owned(),
            Self::Moved { image } => format!("check it again: envforge verify {image}"),
            Self::OtherLayers { .. } => {
                "check who else uses this engine: it gave another image than it was sent; nothing was tagged".to_owned()
            }
            Self::OtherRecords { .. } => {
                "find out what changed (`envforge diff`); to accept it, delete `config` and `layers` below [records]".to_owned()
            }
            Self::NoSpace { .. } => "free space there, or remove images you no longer need".to_owned(),
        };
        vec![hint]
    }
}

/// Bytes as gigabytes with one decimal: `7.3 GB`.
fn gigabytes(bytes: u64) -> String {
    format!("{}.{} GB", bytes / 1_000_000_000, bytes / 100_000_000 % 10)
}
