//! The types of `envforge.toml`. Their doc comments are the descriptions of its JSON schema.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use super::at::At;
use crate::stack::Flavour;

/// The file's name.
pub const FILE: &str = "envforge.toml";
/// The version of the format, the only one read.
pub const SCHEMA: u32 = 1;

/// An envforge project: what its images hold, and how they are opened.
///
/// What stands at the top is the default environment. `[environments.NAME]` takes it over and changes it: single values
/// replace, lists are appended, variables are merged by name.
#[derive(Debug, Clone, PartialEq, JsonSchema)]
#[schemars(title = "envforge.toml", deny_unknown_fields)]
pub struct ProjectFile {
    /// Version of this format: 1.
    pub schema: u32,
    /// The project's name, which its images carry. Default: the name of the folder.
    #[schemars(with = "Option<String>")]
    pub name: Option<At<String>>,
    /// The default environment.
    #[schemars(flatten)]
    pub default: Environment,
    /// Further environments, chosen by `-e NAME`.
    #[schemars(default)]
    pub environments: BTreeMap<String, Environment>,
}

/// One environment.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Environment {
    /// What to build, in one word: `pytorch-cuda:2.8-cu128-py3.11-devel`. Or name its parts below.
    #[schemars(with = "Option<String>")]
    pub spec: Option<At<String>>,
    /// The framework: `pytorch` or `pytorch-cuda`.
    #[schemars(with = "Option<String>")]
    pub framework: Option<At<String>>,
    /// Its version, or the beginning of it: `2.8`.
    #[schemars(with = "Option<String>")]
    pub version: Option<At<String>>,
    /// The CUDA: `cu128` or `12.8`.
    #[schemars(with = "Option<String>")]
    pub cuda: Option<At<String>>,
    /// The Python: `3.11`.
    #[schemars(with = "Option<String>")]
    pub python: Option<At<String>>,
    /// `runtime`, or `devel` with nvcc.
    #[schemars(with = "Option<Flavour>")]
    pub flavour: Option<At<Flavour>>,
    /// The base image instead of the chosen one: `debian:13`.
    pub base: Option<String>,
    /// The machine that will run it. Default: the one this is.
    pub target: TargetWish,
    /// Packages beside the framework.
    pub packages: Packages,
    /// Environment variables of the image.
    pub variables: BTreeMap<String, At<String>>,
    /// Files of the project that become part of the image. Code you edit is better mounted.
    pub copy: Vec<At<CopyWish>>,
    /// Commands run as user `dev` while the image is built, each a layer of its own.
    pub run: Vec<At<RunWish>>,
    /// How a container of it is opened.
    pub shell: Shell,
    /// How it is checked before it gets a tag.
    pub verify: Verify,
}

/// The machine that will run the image.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    rename_all = "kebab-case",
    default,
    expecting = "a table, `{ gpu = [\"sm_90\"] }`"
)]
pub struct TargetWish {
    /// Its GPUs: an NVML name, `sm_90` or `9.0`.
    pub gpu: Vec<String>,
    /// Its driver: `535.104.05`.
    pub driver: Option<String>,
    /// True: do not constrain the image to a machine.
    pub any: Option<bool>,
    /// `linux/amd64` or `linux/arm64`.
    #[schemars(with = "Option<String>")]
    pub platform: Option<At<String>>,
    /// Admit NVIDIA's forward-compatibility package where it is legal.
    pub forward_compat: Option<bool>,
}

/// Packages beside the framework and the developer stack.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default, expecting = "a table, `[packages]`")]
pub struct Packages {
    /// Python requirements: `transformers>=4.40`.
    pub python: Vec<At<String>>,
    /// Requirement files, relative to this file: `requirements.txt`.
    pub requirements: Vec<At<String>>,
    /// A `pyproject.toml`, relative to this file, whose `[project] dependencies` are wanted.
    #[schemars(with = "Option<String>")]
    pub pyproject: Option<At<String>>,
    /// Its dependency groups, or optional dependencies, that are wanted too.
    pub groups: Vec<At<String>>,
    /// Packages of the distribution: `ffmpeg`.
    pub apt: Vec<At<String>>,
    /// Python packages that may be built from their source distribution where no wheel of them fits, asked for above or needed by
    /// others: a name, or a name with what its build needs and does not say. Such a build runs what the package brings.
    pub allow_source: Vec<At<SourceWish>>,
    /// Package indexes beside the default one: a name of `[indexes]` in your configuration, or a name with its address.
    pub indexes: Vec<At<IndexWish>>,
}

/// A package that may be built from its source distribution.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected the name of a package, or `{ name = \"...\", build = [\"...\"] }`")]
pub enum SourceWish {
    /// Its name.
    Named(String),
    /// Its name with what its build needs.
    WithBuild(SourceWithBuild),
}

/// A package that may be built, with what its build needs and does not say.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SourceWithBuild {
    /// Its name.
    pub name: String,
    /// Requirements of its build: `ninja`.
    #[serde(default)]
    pub build: Vec<String>,
}

/// A package index beside the default one.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "expected the name of an index, or `{ name = \"...\", url = \"https://...\" }`"
)]
pub enum IndexWish {
    /// A name of `[indexes]` in the configuration of whoever builds, which may hold credentials.
    Named(String),
    /// A name with an address that everybody may know.
    Known(Index),
}

/// A package index with its address.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Index {
    /// Its name; `[indexes]` in the configuration wins over the address.
    pub name: String,
    /// Its address, without credentials.
    pub url: String,
}

/// Files to copy into the image.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table, `{ from = \"configs\", to = \"/opt/configs\" }`")]
pub struct CopyWish {
    /// A file or folder of the project, relative to this file.
    pub from: String,
    /// Where it lies in the image, absolute; of a folder its content lies there.
    pub to: String,
}

/// A command of the build.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected a command, or `{ command = \"...\", secrets = [\"NAME\"] }`")]
pub enum RunWish {
    /// The command, for bash.
    Command(String),
    /// The command with secrets it may read.
    WithSecrets(RunWithSecrets),
}

/// A command of the build that may read secrets.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunWithSecrets {
    /// The command, for bash.
    pub command: String,
    /// Names of `[secrets]` in the configuration of whoever builds. The command reads `/run/secrets/NAME`; nothing of
    /// it stays in the image.
    #[serde(default)]
    pub secrets: Vec<String>,
}

/// How a container of the image is opened.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default, expecting = "a table, `[shell]`")]
pub struct Shell {
    /// Folders of the host, `SOURCE:TARGET[:ro]`.
    pub mounts: Vec<At<String>>,
    /// Ports, `HOST:CONTAINER` or one number for both.
    pub ports: Vec<At<String>>,
    /// Memory it may use: `32g`.
    pub memory: Option<String>,
    /// Processors it may use: `4` or `1.5`.
    pub cpus: Option<f64>,
    /// Size of /dev/shm: `8g`.
    pub shm_size: Option<String>,
    /// True: open Jupyter.
    pub jupyter: Option<bool>,
}

/// How the image is checked before it gets a tag.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default, expecting = "a table, `[verify]`")]
pub struct Verify {
    /// `static`, `quick`, `full` or `perf`. Default: full.
    #[schemars(with = "Option<String>")]
    pub level: Option<At<String>>,
    /// Commands of the project that must succeed in the image, too.
    pub checks: Vec<At<ExtraCheck>>,
    /// Libraries that a package loads only where they are, and works without: `libtbb.so.12`.
    #[schemars(with = "Vec<String>")]
    pub may_lack: Vec<At<String>>,
}

/// A command that must succeed in the image before it gets a tag. It runs without network.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table, `{ name = \"...\", command = \"...\" }`")]
pub struct ExtraCheck {
    /// Its name in the report.
    pub name: String,
    /// The command, for bash.
    pub command: String,
}
