//! The options of the target machine.

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

use crate::model::versions::Machine;

/// The platforms that images are built for, also by the names of their processors.
pub(super) fn platforms() -> impl TypedValueParser<Value = Machine> {
    let platform = |name, processors: [&'static str; 2]| PossibleValue::new(name).aliases(processors);
    let all = [platform("linux/amd64", ["amd64", "x86_64"]), platform("linux/arm64", ["arm64", "aarch64"])];
    PossibleValuesParser::from(all).try_map(|name| Machine::of_platform(&name).ok_or("unknown platform"))
}

/// The target machine.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Target machine")]
pub struct TargetArgs {
    /// Target GPU: NVML name, `sm_90` or `9.0` (repeatable, or comma-separated) [env: `ENVFORGE_GPU`]
    #[arg(long, value_name = "GPU", value_delimiter = ',')]
    pub gpu: Vec<String>,
    /// Target driver: a version such as 535.104.05, or a branch such as R580 [env: `ENVFORGE_DRIVER`]
    #[arg(long, value_name = "VERSION")]
    pub driver: Option<String>,
    /// `any`: do not restrict the image to a machine.
    #[arg(long, value_name = "any", value_parser = ["any"], conflicts_with_all = ["gpu", "driver"])]
    pub target: Option<String>,
    /// Platform of the image.
    #[arg(long, value_name = "PLATFORM", value_parser = platforms())]
    pub platform: Option<Machine>,
    /// Allow NVIDIA's forward-compatibility package where supported.
    #[arg(long)]
    pub forward_compat: bool,
    /// Fail instead of building from source.
    #[arg(long)]
    pub no_source: bool,
}

into_request!(TargetArgs => TargetOptions { gpu, driver, target, platform, forward_compat, no_source });
