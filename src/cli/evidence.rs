//! `envforge evidence`.

use camino::Utf8PathBuf;
use clap::{Args, Subcommand};

use super::target::platforms;
use super::verify::levels;
use crate::model::request::{self, Level, MaxAge};
use crate::model::versions::Machine;

const EXAMPLES: &str = "\
Examples:
  envforge verify IMAGE@sha256:… --attest --key cosign.key   sign what its checks proved, next to the image
  envforge evidence reg.example.com/torch:2.8                who proved it, on which GPU and driver
  envforge evidence reg.example.com/torch:2.8 --key cosign.pub --save torch.evidence
  envforge evidence reg.example.com/torch:2.8 --html evidence.html
  envforge evidence admit reg.example.com/torch:2.8 --here --key cosign.pub

Evidence lies in the image's registry, on its digest, as in-toto attestations that cosign reads too. Without --key the keys of
`[trust] keys` count; without any key it is shown, and nothing is checked.";

const ADMIT_EXAMPLES: &str = "\
Examples:
  envforge evidence admit IMAGE --here --key cosign.pub       this machine's GPUs and driver
  envforge evidence admit IMAGE --gpu \"NVIDIA H200\" --driver 580 --level full --key cosign.pub
  envforge evidence admit IMAGE --here --driver exact --key cosign.pub   refuses a newer driver than the proven one
  envforge evidence admit --evidence torch.evidence --here --key cosign.pub   asks no registry

Exit code 0: admitted. 1: refused, with all reasons. 2: usage error. 3: not known, since registry, driver or key did not answer.";

const WITHDRAW_EXAMPLES: &str = "\
Examples:
  envforge evidence withdraw IMAGE --key cosign.key           everything that this key said of the image
  envforge evidence withdraw IMAGE --gpu \"NVIDIA H200\" --driver 580 --key cosign.key

Nothing is deleted: a newer statement says that the older ones no longer count.";

/// Arguments of `evidence`.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct EvidenceArgs {
    /// Image in its registry: `HOST/NAME:TAG` or `HOST/NAME@sha256:…`.
    #[arg(value_name = "IMAGE", required = true)]
    pub image: Option<String>,
    /// Also write the evidence to FILE, for `evidence admit --evidence`.
    #[arg(long, value_name = "FILE")]
    pub save: Option<Utf8PathBuf>,
    /// Also write a page to FILE.
    #[arg(long, value_name = "FILE")]
    pub html: Option<Utf8PathBuf>,
    /// Public key whose word counts (repeatable) [default: `[trust] keys`].
    #[arg(long, value_name = "PUB")]
    pub key: Vec<Utf8PathBuf>,
    /// Platform, for an image of several.
    #[arg(long, value_name = "PLATFORM", value_parser = platforms())]
    pub platform: Option<Machine>,
    /// What to do with it.
    #[command(subcommand)]
    pub command: Option<EvidenceCommand>,
}

/// Verbs of `evidence`.
#[derive(Debug, Clone, Subcommand)]
pub enum EvidenceCommand {
    /// Check that evidence proves an image for a GPU and driver.
    #[command(after_help = ADMIT_EXAMPLES)]
    Admit(AdmitArgs),
    /// Take back what a key said of an image.
    #[command(after_help = WITHDRAW_EXAMPLES)]
    Withdraw(WithdrawArgs),
}

/// Arguments of `evidence admit`.
#[derive(Debug, Clone, Args)]
pub struct AdmitArgs {
    /// Image in its registry; with --evidence optional: the digest that the file must be about.
    #[arg(value_name = "IMAGE", required_unless_present = "evidence")]
    pub image: Option<String>,
    /// File of `evidence --save`, instead of the registry.
    #[arg(long, value_name = "FILE")]
    pub evidence: Option<Utf8PathBuf>,
    /// GPU to run on: NVML name, `sm_90` or `9.0` (repeatable) [default: any that was proven].
    #[arg(long, value_name = "GPU", conflicts_with = "here")]
    pub gpu: Vec<String>,
    /// Driver or its branch: 580.95.05 or 580; `exact`, also next to one: refuse newer ones [default: any].
    #[arg(long, value_name = "VERSION")]
    pub driver: Vec<String>,
    /// GPUs and driver of this machine.
    #[arg(long)]
    pub here: bool,
    /// Accept another GPU model of the same compute capability.
    #[arg(long)]
    pub same_architecture: bool,
    /// The former spelling of `--driver exact`.
    #[arg(long, hide = true)]
    pub exact_driver: bool,
    /// GPUs at once; several require that NCCL ran on at least two.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub count: u32,
    /// Lowest level.
    #[arg(long, value_parser = levels(), default_value = "quick", value_name = "LEVEL")]
    pub level: Level,
    /// Oldest checks: `90d`, `12h`, `4w`.
    #[arg(long, value_name = "AGE", default_value = "90d")]
    pub max_age: MaxAge,
    /// Public key whose word counts (repeatable) [default: `[trust] keys`].
    #[arg(long, value_name = "PUB")]
    pub key: Vec<Utf8PathBuf>,
    /// Platform, for an image of several.
    #[arg(long, value_name = "PLATFORM", value_parser = platforms())]
    pub platform: Option<Machine>,
}

/// Arguments of `evidence withdraw`.
#[derive(Debug, Clone, Args)]
pub struct WithdrawArgs {
    /// Image in its registry.
    #[arg(value_name = "IMAGE")]
    pub image: String,
    /// GPU model [default: all].
    #[arg(long, value_name = "GPU")]
    pub gpu: Option<String>,
    /// Driver or its branch [default: all].
    #[arg(long, value_name = "VERSION")]
    pub driver: Option<String>,
    /// This level and those above it [default: all].
    #[arg(long, value_parser = levels(), value_name = "LEVEL")]
    pub level: Option<Level>,
    /// Private key [env: `ENVFORGE_SIGNING_KEY`, the key itself].
    #[arg(long, value_name = "FILE")]
    pub key: Option<Utf8PathBuf>,
    /// Platform, for an image of several.
    #[arg(long, value_name = "PLATFORM", value_parser = platforms())]
    pub platform: Option<Machine>,
}

into_request!(AdmitArgs => EvidenceAdmit {
    image, evidence, gpu, driver, here, same_architecture, exact_driver, count, level, max_age, key, platform,
});

into_request!(WithdrawArgs => EvidenceWithdraw { image, gpu, driver, level, key, platform });

impl From<EvidenceArgs> for request::Command {
    fn from(EvidenceArgs { image, save, html, key, platform, command }: EvidenceArgs) -> Self {
        match command {
            Some(EvidenceCommand::Admit(args)) => Self::EvidenceAdmit(args.into()),
            Some(EvidenceCommand::Withdraw(args)) => Self::EvidenceWithdraw(args.into()),
            None => {
                let image = image.unwrap_or_default();
                Self::Evidence(request::Evidence { image, save, html, key, platform })
            }
        }
    }
}
