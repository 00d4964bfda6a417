//! `envforge push`.

use clap::Args;

const EXAMPLES: &str = "\
Examples:
  envforge push pytorch-cuda:2.8-cu128 box.test/torch:2.8
  envforge push pytorch-cuda:2.8-cu128 box.test/torch:2.8 box.test/torch:latest
  envforge push pytorch-cuda:2.8-cu128 box.test/torch    by its digest, without a tag

An image whose checks did not run on a GPU is pushed under the tags with `-unverified` at their end, or by its digest.";

/// Arguments of `push`.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub struct PushArgs {
    /// Image or spec to push.
    #[arg(value_name = "IMAGE|SPEC")]
    pub image: String,
    /// Where to push it: `HOST/NAME:TAG`, or `HOST/NAME` for its digest alone.
    #[arg(value_name = "REF", required = true)]
    pub targets: Vec<String>,
}

into_request!(PushArgs => Push { image, targets });
