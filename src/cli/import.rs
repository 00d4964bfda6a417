//! `envforge import`.

use camino::Utf8PathBuf;
use clap::Args;

const EXAMPLES: &str = "\
Examples:
  envforge import torch.tar torch:2.8          the image of `envforge export oci`
  envforge verify torch:2.8-unverified         check it here

The tag ends in `-unverified`: an image from elsewhere earns no other.";

/// Arguments of `import`.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub struct ImportArgs {
    /// OCI image layout: a directory or a tar.
    #[arg(value_name = "DIR|FILE.tar")]
    pub path: Utf8PathBuf,
    /// Tag for the image.
    #[arg(value_name = "NAME[:TAG]")]
    pub tag: String,
    /// Also keep the evidence that the layout carries, for `push --evidence` and `[policy] require-evidence`.
    #[arg(long)]
    pub evidence: bool,
}

into_request!(ImportArgs => Import { path, tag, evidence });
