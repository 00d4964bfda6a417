//! `envforge verify`.

use camino::Utf8PathBuf;
use clap::{Args, ValueEnum};

use crate::model::request;

const EXAMPLES: &str = "\
Examples:
  envforge verify pytorch-cuda:2.8-cu128               all checks that this machine can run
  envforge verify pytorch-cuda:2.8-cu128 --level quick without the slow ones
  envforge verify pytorch/pytorch:2.8.0-cuda12.8-cudnn9-runtime
  envforge verify IMAGE IMAGE --json --junit report.xml
  envforge verify box:5000/team/torch:2.8-unverified --push
  envforge verify IMAGE --last                         the report of the last time

What is a SPEC of a known product is one: its verified tag is taken, else the one that ends in -unverified. Anything else is
an image. An image that envforge did not build runs in a sandbox: no network, no capabilities, read-only.
With --json one image gives its report, several give {schema, verdict, reports, errors}. Exit code 1: a check failed.
Without a GPU only the static checks run, and the last line says so.";

/// How much is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Level {
    /// What needs no GPU.
    Static,
    /// Static and GPU checks but the slow ones (`torch.compile`, DDP).
    Quick,
    /// Every check of correctness.
    Full,
    /// Full, and how fast this GPU computes.
    Perf,
}

impl From<Level> for request::Level {
    fn from(level: Level) -> Self {
        match level {
            Level::Static => Self::Static,
            Level::Quick => Self::Quick,
            Level::Full => Self::Full,
            Level::Perf => Self::Perf,
        }
    }
}

/// Arguments of `verify`.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub struct VerifyArgs {
    /// Images or specs.
    #[arg(required = true, value_name = "IMAGE|SPEC")]
    pub images: Vec<String>,
    /// How much is checked.
    #[arg(long, value_enum, default_value = "full", value_name = "LEVEL")]
    pub level: Level,
    /// Which GPUs: `all`, `none`, or indices and UUIDs apart by commas [default: all, if there is one].
    #[arg(long, value_name = "GPUS")]
    pub gpus: Option<String>,
    /// The lock the image must agree with [default: the one its label names, from the state folder].
    #[arg(long, value_name = "FILE")]
    pub lock: Option<Utf8PathBuf>,
    /// Write the reports as `JUnit` XML, too.
    #[arg(long, value_name = "FILE")]
    pub junit: Option<Utf8PathBuf>,
    /// Keep the speeds measured (`--level perf`) as what this host should reach from now on.
    #[arg(long)]
    pub record: bool,
    /// Put the tags that a verified image earned on the same digest in the registry they name; exit 1 if it earned none.
    #[arg(long)]
    pub push: bool,
    /// Show the last report of the image and check nothing.
    #[arg(long, conflicts_with_all = ["gpus", "lock", "record", "push"])]
    pub last: bool,
}

into_request!(VerifyArgs => Verify { images, level, gpus, lock, junit, record, push, last });
