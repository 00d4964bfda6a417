//! `envforge verify`.

use camino::Utf8PathBuf;
use clap::Args;
use clap::builder::TypedValueParser;

use super::choices::one_of;
use crate::model::request::Level;

const EXAMPLES: &str = "\
Examples:
  envforge verify pytorch-cuda:2.8-cu128                run all checks this machine supports
  envforge verify                                       verify the image of the current project
  envforge verify pytorch-cuda:2.8-cu128 --level quick  skip slow checks
  envforge verify pytorch/pytorch:2.8.0-cuda12.8-cudnn9-runtime
  envforge verify IMAGE --gpu sm_120                    check for code of a GPU that is not here
  envforge verify IMAGE IMAGE --json --junit report.xml
  envforge verify IMAGE --html report.html              for a ticket: one file, no network
  envforge verify box:5000/team/torch:2.8-unverified --push
  envforge verify box:5000/team/torch:2.8 --attest --key cosign.key
  envforge verify IMAGE --last                          show the latest report
  envforge verify IMAGE@sha256:… --on slurm:gpu         on every idle node of a partition
  envforge verify IMAGE@sha256:… --on ssh:node[1-4] --level quick
  envforge verify torch.sqsh                            a file, started by Apptainer on this machine
  envforge verify /shared/torch.sqsh --on slurm         a file that the nodes share
  envforge verify --on slurm                            the file of the current project in `[cluster] folder`
  envforge verify IMAGE@sha256:… --on slurm --as-they-free reports
  envforge verify --merge reports                       one answer from reports of many nodes

A spec selects its verified tag, else its -unverified tag. Images not built by envforge run in a sandbox: no network, no
capabilities, read-only. With --json, one image prints its report; several print {schema, verdict, reports, errors}.
Exit code 1: a check failed. Without a GPU only the static checks run; the summary says so. Of many nodes: 1 if a node
failed, 3 if none failed and one that was asked, or every node, gave no report.";

/// Scope of the checks.
pub(super) fn levels() -> impl TypedValueParser<Value = Level> {
    one_of([
        ("static", Level::Static, "Checks that need no GPU"),
        ("quick", Level::Quick, "Static and GPU checks, except slow ones (`torch.compile`, DDP)"),
        ("full", Level::Full, "All correctness checks"),
        ("perf", Level::Perf, "Full plus performance measurements"),
    ])
}

/// Arguments of `verify`.
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub struct VerifyArgs {
    /// Images, specs, or one .sqsh or .sif file to verify [default: the current project, else every unverified image built here].
    #[arg(value_name = "IMAGE|SPEC|FILE")]
    pub images: Vec<String>,
    /// Scope of the checks.
    #[arg(long, value_parser = levels(), default_value = "full", value_name = "LEVEL")]
    pub level: Level,
    /// GPUs: `all`, `none`, or comma-separated indices or UUIDs [default: all available].
    #[arg(long, value_name = "GPUS")]
    pub gpus: Option<String>,
    /// Check only, by the image's files, that it has code for this GPU: NVML name, `sm_120` or `12.0` (repeatable, or comma-separated).
    #[arg(long, value_name = "GPU", value_delimiter = ',', conflicts_with_all = ["gpus", "level", "record", "push", "attest", "last", "on", "merge"])]
    pub gpu: Vec<String>,
    /// Lock file to compare the image with [default: found by the image's label].
    #[arg(long, value_name = "FILE")]
    pub lock: Option<Utf8PathBuf>,
    /// Also write the reports as `JUnit` XML.
    #[arg(long, value_name = "FILE")]
    pub junit: Option<Utf8PathBuf>,
    /// Also write the reports as one HTML page.
    #[arg(long, value_name = "FILE")]
    pub html: Option<Utf8PathBuf>,
    /// Record measured speeds (`--level perf`) as this host's baseline.
    #[arg(long)]
    pub record: bool,
    /// Push the verified tags; exit 1 if not verified.
    #[arg(long)]
    pub push: bool,
    /// Sign what the checks proved and attach it to the image in its registry; a failure withdraws.
    #[arg(long)]
    pub attest: bool,
    /// Name the machines that passed and the UUIDs of their GPUs in what is signed: whoever reads the registry reads them.
    #[arg(long, requires = "attest")]
    pub attest_nodes: bool,
    /// Private key for --attest: PKCS#8 or cosign's [env: `ENVFORGE_SIGNING_KEY`, the key itself].
    #[arg(long, value_name = "FILE", requires = "attest")]
    pub key: Option<Utf8PathBuf>,
    /// Show the latest report without running checks.
    #[arg(long, conflicts_with_all = ["gpus", "lock", "record", "push", "attest"])]
    pub last: bool,
    /// Many nodes.
    #[command(flatten)]
    pub fleet: super::FleetArgs,
    /// Parts of the specs.
    #[command(flatten)]
    pub parts: super::SpecPartArgs,
    /// The project.
    #[command(flatten)]
    pub project: super::ProjectArgs,
}

into_request!(VerifyArgs => Verify { images, level, gpus, gpu, lock, junit, html, record, push, attest, attest_nodes, key, last, fleet, parts, project });
