//! Why an image cannot be checked, or did not pass.

use crate::failure::{Exit, Failure};

/// The outcome of checks that gave an image no tag, and what kept checks from running.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// The checks before the tag failed.
    #[error("the image was built but not tagged: {failed} of its checks failed")]
    ChecksFailed {
        /// The number of checks that failed or errored.
        failed: usize,
        /// The image, which stays for inspection.
        image: String,
    },
    /// The host kept required checks from running: nothing is known of the image.
    #[error("the image was built but not verified: {because}")]
    Undecided {
        /// Why.
        because: String,
        /// The tags that it has, or its ID.
        image: String,
    },
    /// The image's content differs from the content its lock records.
    #[error("{}", content_text(recorded, found, differences.as_deref()))]
    ContentDiffers {
        /// The content digest the lock records.
        recorded: String,
        /// The content digest of the image.
        found: String,
        /// The differing paths, one line each; `None`: the file list of the recorded image is not here.
        differences: Option<Vec<String>>,
        /// The image, which stays for inspection.
        image: String,
    },
    /// The agent could not compute the content digest.
    #[error("cannot compute content digest of `{image}`: {detail}")]
    NoContent {
        /// The image.
        image: String,
        /// The agent's output.
        detail: String,
    },
    /// The agent could not list the device code.
    #[error("cannot read the device code of `{image}`: {detail}")]
    NoDeviceCode {
        /// The image.
        image: String,
        /// What went wrong.
        detail: String,
    },
    /// The image is for another processor than the engine's.
    #[error("platform mismatch: engine is {engine}, image is {wanted}")]
    OtherProcessor {
        /// The platform of the image.
        wanted: &'static str,
        /// The engine's.
        engine: &'static str,
    },
    /// The base's C library is older than the agent needs.
    #[error("cannot verify images based on {base}: glibc {glibc} is older than {needs}")]
    AgentTooNew {
        /// The base.
        base: String,
        /// Its glibc version.
        glibc: String,
        /// The version the agent needs.
        needs: String,
    },
    /// The image's C library cannot run the agent.
    #[error("cannot run checks in this image: {libc} found, glibc {needs} or newer required")]
    AgentCannotStart {
        /// The image's C library.
        libc: String,
        /// The version the agent needs.
        needs: String,
    },
    /// `--require-gpu`, and the checks did not run on a GPU that counts.
    #[error("image not verified on a GPU: {because}")]
    NotProven {
        /// Why.
        because: String,
        /// The image, which stays for inspection; `None`: nothing was built.
        image: Option<String>,
    },
}

fn content_text(recorded: &str, found: &str, differences: Option<&[String]>) -> String {
    const SHOWN: usize = 20;
    let short = |digest: &str| digest.chars().take(12).collect::<String>();
    let mut text = format!("content digest mismatch: expected {}, found {}", short(recorded), short(found));
    match differences {
        None => text.push_str("; the file list of the recorded image is not on this machine"),
        Some(lines) => {
            for line in &lines[..lines.len().min(SHOWN)] {
                text.extend(["\n  - ", line]);
            }
            if lines.len() > SHOWN {
                text.extend([format!("\n  and {} more paths", lines.len() - SHOWN)]);
            }
        }
    }
    text
}

/// Hints for an image without a tag.
fn inspection_hints(image: &str) -> [String; 2] {
    [format!("inspect it: docker run --rm -it {image} bash"), format!("remove it: docker rmi {image}")]
}

impl Failure for CheckError {
    fn exit(&self) -> Exit {
        match self {
            Self::ChecksFailed { .. }
            | Self::ContentDiffers { .. }
            | Self::AgentTooNew { .. }
            | Self::NotProven { .. } => Exit::No,
            Self::NoContent { .. }
            | Self::NoDeviceCode { .. }
            | Self::OtherProcessor { .. }
            | Self::AgentCannotStart { .. }
            | Self::Undecided { .. } => Exit::Outside,
        }
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::NoContent { .. } | Self::NoDeviceCode { .. } => Vec::new(),
            Self::ChecksFailed { image, .. } => inspection_hints(image).to_vec(),
            Self::Undecided { image, .. } => {
                vec![format!("when the GPU is free, run `envforge verify {image}`")]
            }
            Self::ContentDiffers { differences, image, .. } => {
                let list = "the file list is in the state directory of the host that recorded it: build there, or \
                            copy its `content/` directory to this machine";
                let list = differences.is_none().then(|| list.to_owned());
                list.into_iter().chain(inspection_hints(image)).collect()
            }
            Self::OtherProcessor { wanted, .. } => vec![
                format!(
                    "lock it here: `envforge lock SPEC --platform {wanted} --lockfile FILE`, then copy the lock file"
                ),
                format!("build it on a {wanted} engine: envforge build SPEC --locked --lockfile FILE"),
            ],
            Self::AgentTooNew { .. } => vec![
                "use a released envforge, or build it with the agent of kernels/release-agent.sh \
                 (ENVFORGE_AGENT=/path at build time), which needs glibc 2.17"
                    .to_owned(),
                "or use a newer base: `--base debian:12`".to_owned(),
            ],
            Self::AgentCannotStart { .. } => vec![
                "use an envforge whose agent was linked against an older glibc (ENVFORGE_AGENT at build time, see kernels/README.md)"
                    .to_owned(),
            ],
            Self::NotProven { image, .. } => {
                let build = "build on a machine with a GPU of the target, or omit --require-gpu".to_owned();
                let image = image.iter().map(|image| format!("inspect it: docker run --rm -it {image} bash"));
                [build].into_iter().chain(image).collect()
            }
        }
    }
}
