//! The options that name the machine which will run the image.

use clap::Args;

/// The machine that will run the image.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Target machine")]
pub struct TargetArgs {
    /// A GPU of the target: an NVML name, `sm_90` or `9.0` (repeatable) [env: `ENVFORGE_GPU`]
    #[arg(long, value_name = "GPU")]
    pub gpu: Vec<String>,
    /// The target's driver, such as 535.104.05 [env: `ENVFORGE_DRIVER`]
    #[arg(long, value_name = "VERSION")]
    pub driver: Option<String>,
    /// `any`: do not constrain the image to a machine.
    #[arg(long, value_name = "any", value_parser = ["any"], conflicts_with_all = ["gpu", "driver"])]
    pub target: Option<String>,
    /// The processor of the image.
    #[arg(long, value_name = "PLATFORM", value_parser = ["linux/amd64", "linux/arm64"])]
    pub platform: Option<String>,
    /// Admit NVIDIA's forward-compatibility package where it is legal.
    #[arg(long)]
    pub forward_compat: bool,
    /// Refuse what nobody publishes, instead of building it from source.
    #[arg(long)]
    pub no_source: bool,
}

into_request!(TargetArgs => TargetOptions { gpu, driver, target, platform, forward_compat, no_source });
