//! `envforge push`.

use camino::Utf8PathBuf;
use clap::Args;

use super::target::platforms;
use super::{ProjectArgs, SpecPartArgs};
use crate::model::layer_compression::LayerCompression;
use crate::model::request;
use crate::model::versions::Machine;

const EXAMPLES: &str = "\
Examples:
  envforge push box.test/team/vision:1.2                 the image of the current project
  envforge push -E train box.test/team/vision-train:1.2  of its environment `train`
  envforge push pytorch-cuda:2.8-cu128 box.test/torch:2.8
  envforge push pytorch-cuda:2.8-cu128 box.test/torch:2.8 box.test/torch:latest
  envforge push pytorch-cuda:2.8-cu128 box.test/torch  by its digest, without a tag
  envforge push box.test/team/vision:1.2 --compression zstd
  envforge push box.test/team/vision:1.2 --platform linux/amd64,linux/arm64
  envforge push box.test/team/vision:1.2 --attest --key cosign.key
  envforge push pytorch-cuda:2.8-cu128 box.test/torch:2.8 --evidence

An image whose checks did not run on a GPU is pushed under the tags with `-unverified` at their end, or by its digest.";

/// Arguments of `push`.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
#[command(override_usage = "envforge push [OPTIONS] [IMAGE|SPEC] <REF>...")]
pub struct PushArgs {
    /// Where to push it: `HOST/NAME:TAG`, or `HOST/NAME` for its digest alone. Before several of them the image or spec
    /// [default: current project].
    #[arg(value_name = "REF", required = true)]
    pub names: Vec<String>,
    /// Compression of its layers: `gzip`, `zstd` or `zstd:LEVEL`, which engines unpack in less than half the time (Docker from version 23 on)
    /// [default: `[registry] compression`, `gzip`].
    #[arg(long, value_name = "NAME")]
    pub compression: Option<LayerCompression>,
    /// Platforms that the tag holds (comma-separated): add this image to it and keep those of the other platforms. Each image is pushed from
    /// an engine of its platform.
    #[arg(long, value_name = "PLATFORM,...", value_delimiter = ',', value_parser = platforms())]
    pub platform: Vec<Machine>,
    /// Also copy the image's evidence: from the registries that it came from, and what `import` or a vendor folder brought.
    #[arg(long)]
    pub evidence: bool,
    /// Sign what it was built from (SLSA provenance, SPDX), next to the image.
    #[arg(long)]
    pub attest: bool,
    /// Private key for --attest: PKCS#8 or cosign's [env: `ENVFORGE_SIGNING_KEY`, the key itself].
    #[arg(long, value_name = "FILE", requires = "attest")]
    pub key: Option<Utf8PathBuf>,
    /// Parts of the spec.
    #[command(flatten)]
    pub parts: SpecPartArgs,
    /// The project; with one of its options every argument is a REF.
    #[command(flatten)]
    pub project: ProjectArgs,
}

impl From<PushArgs> for request::Push {
    fn from(args: PushArgs) -> Self {
        let PushArgs { names, compression, platform, evidence, attest, key, parts, project } = args;
        let project = request::ProjectOptions::from(project);
        let mut targets = names;
        let is_of_project = project.option().is_some() || targets.len() == 1;
        let image = (!is_of_project).then(|| targets.remove(0));
        let parts = parts.into();
        Self { image, targets, compression, platforms: platform, evidence, attest, key, parts, project }
    }
}
