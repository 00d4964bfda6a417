//! The types of `envforge.toml`. Their doc comments are the descriptions of its JSON schema.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::model::cluster::ClusterRuntime;
use crate::model::index_address::IndexFormat;
use crate::model::project::spanned::SpannedValue;
use crate::model::required_version::RequiredVersion;
use crate::model::spec::Flavour;

/// The file's name.
pub const FILE: &str = "envforge.toml";
/// The version of the format, the only one read.
pub const SCHEMA: u32 = 1;

/// An envforge project: the contents of its images, and their shell settings.
///
/// The top level is the default environment. `[environments.NAME]` inherits it: single values replace, lists are
/// appended, variables are merged by name.
#[derive(Debug, Clone, PartialEq, JsonSchema)]
#[schemars(title = "envforge.toml", deny_unknown_fields)]
pub struct ProjectFile {
    /// Version of this format: 1.
    pub schema: u32,
    /// The versions of envforge that can read this file: `>=0.2`. Default: all.
    #[schemars(rename = "required-version", with = "Option<String>")]
    pub required_version: Option<RequiredVersion>,
    /// The project's name, part of its image names. Default: the name of the directory.
    #[schemars(with = "Option<String>")]
    pub name: Option<SpannedValue<String>>,
    /// The default environment.
    #[schemars(flatten)]
    pub default: Environment,
    /// Further environments, selected with `-E NAME`.
    #[schemars(default)]
    pub environments: BTreeMap<String, Environment>,
}

/// One environment.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Environment {
    /// The spec to build: `pytorch-cuda:2.8-cu128-py3.11-devel`. Alternatively, set its parts below.
    #[schemars(with = "Option<String>")]
    pub spec: Option<SpannedValue<String>>,
    /// The framework: `pytorch` or `pytorch-cuda`.
    #[schemars(with = "Option<String>")]
    pub framework: Option<SpannedValue<String>>,
    /// Its version, or a prefix of it: `2.8`.
    #[schemars(with = "Option<String>")]
    pub version: Option<SpannedValue<String>>,
    /// The CUDA: `cu128` or `12.8`.
    #[schemars(with = "Option<String>")]
    pub cuda: Option<SpannedValue<String>>,
    /// The Python: `3.11`.
    #[schemars(with = "Option<String>")]
    pub python: Option<SpannedValue<String>>,
    /// `runtime`, or `devel` with nvcc.
    #[schemars(with = "Option<Flavour>")]
    pub flavour: Option<SpannedValue<Flavour>>,
    /// The base image, instead of the default choice: `debian:13`.
    pub base: Option<String>,
    /// How containers import the project's own code: `editable` (from the mounted source, without a build; the image does not contain
    /// it), `install` (its wheel is built and part of the image) or `none`. Default: `editable` where the pyproject.toml next to this
    /// file declares a project.
    #[schemars(with = "Option<ProjectMode>")]
    pub project: Option<SpannedValue<String>>,
    /// The machine that will run the image. Default: the current machine.
    pub target: TargetConfig,
    /// Packages in addition to the framework.
    pub packages: Packages,
    /// Environment variables of the image.
    pub variables: BTreeMap<String, SpannedValue<String>>,
    /// Files of the project to copy into the image. Mount code that you edit instead.
    pub copy: Vec<SpannedValue<CopyEntry>>,
    /// Commands to run as user `dev` during the build, each in its own layer.
    pub run: Vec<SpannedValue<RunStep>>,
    /// Settings of `envforge shell`.
    pub shell: Shell,
    /// Settings of the checks before tagging.
    pub verify: Verify,
    /// The cluster whose nodes start the image from a file.
    pub cluster: Cluster,
}

/// How containers import the project's own code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "lowercase")]
pub enum ProjectMode {
    /// From the mounted source, behind the packages of the image.
    Editable,
    /// Installed in the image, as a wheel that is built of the sources.
    Install,
    /// Only as Python finds it by itself.
    None,
}

impl ProjectMode {
    /// Reads the value of `project`.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "editable" => Some(Self::Editable),
            "install" => Some(Self::Install),
            "none" => Some(Self::None),
            _ => None,
        }
    }
}

/// The machine that will run the image.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    rename_all = "kebab-case",
    default,
    expecting = "a table, `{ gpu = [\"sm_90\"] }`"
)]
pub struct TargetConfig {
    /// Its GPUs: an NVML name, `sm_90` or `9.0`.
    pub gpu: Vec<String>,
    /// Its driver: `535.104.05`.
    pub driver: Option<String>,
    /// Resolve without a target machine: `true`.
    pub any: Option<bool>,
    /// `linux/amd64` or `linux/arm64`.
    #[schemars(with = "Option<String>")]
    pub platform: Option<SpannedValue<String>>,
    /// Allow NVIDIA's forward-compatibility package where supported: `true`.
    pub forward_compat: Option<bool>,
}

/// Packages in addition to the framework and the developer stack.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default, expecting = "a table, `[packages]`")]
pub struct Packages {
    /// Python requirements: `transformers>=4.40`, or a requirement with the only index it may come from:
    /// `{ name = "ourtool", index = "internal" }`.
    pub python: Vec<SpannedValue<PythonEntry>>,
    /// Requirement files, relative to this file: `requirements.txt`.
    pub requirements: Vec<SpannedValue<String>>,
    /// A `pyproject.toml`, relative to this file, whose `[project] dependencies` are installed.
    #[schemars(with = "Option<String>")]
    pub pyproject: Option<SpannedValue<String>>,
    /// Its dependency groups, or optional dependencies, to install.
    pub groups: Vec<SpannedValue<String>>,
    /// Distribution packages: `ffmpeg`.
    pub apt: Vec<SpannedValue<String>>,
    /// Python packages and dependencies that may be built from their source distribution if no wheel is compatible: a name,
    /// or a name with undeclared build requirements. Such a build runs the package's build code.
    pub allow_source: Vec<SpannedValue<AllowSourceEntry>>,
    /// Additional package indexes: a name of `[indexes]` in your configuration, or a name with its URL. A package comes from
    /// the first of them that has it, before the default index.
    pub indexes: Vec<SpannedValue<IndexEntry>>,
}

/// A Python requirement.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected a requirement, or `{ name = \"...\", index = \"...\" }`")]
pub enum PythonEntry {
    /// The requirement.
    Requirement(String),
    /// The requirement with its index.
    OfIndex(RequirementOfIndex),
}

/// A Python requirement with the only index it may come from.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RequirementOfIndex {
    /// The requirement: `ourtool` or `ourtool>=2`.
    pub name: String,
    /// A name of `indexes` above or of `[indexes]` in your configuration, `default` or `framework`.
    pub index: String,
}

impl PythonEntry {
    /// Returns the requirement.
    pub fn text(&self) -> &str {
        match self {
            Self::Requirement(text) => text,
            Self::OfIndex(entry) => &entry.name,
        }
    }

    /// Returns the only index it may come from, if it has one.
    pub fn index(&self) -> Option<&str> {
        match self {
            Self::Requirement(_) => None,
            Self::OfIndex(entry) => Some(&entry.index),
        }
    }
}

/// A package that may be built from its source distribution.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected the name of a package, or `{ name = \"...\", build = [\"...\"] }`")]
pub enum AllowSourceEntry {
    /// Its name.
    Named(String),
    /// Its name with its build requirements.
    WithBuild(SourceWithBuild),
}

/// A package that may be built, with undeclared build requirements.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SourceWithBuild {
    /// Its name.
    pub name: String,
    /// Build requirements: `ninja`.
    #[serde(default)]
    pub build: Vec<String>,
}

/// An additional package index.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "expected the name of an index, or `{ name = \"...\", url = \"https://...\" }` (`format = \"flat\"` for a page of links)"
)]
pub enum IndexEntry {
    /// A name of `[indexes]` in the user's configuration, which may contain credentials.
    Named(String),
    /// A name with a public URL.
    Known(Index),
}

/// A package index with its URL.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Index {
    /// Its name; `[indexes]` in the configuration overrides the URL.
    pub name: String,
    /// Its URL, without credentials.
    pub url: String,
    /// `simple` (a page for each package) or `flat` (one page with links to all files). Default: simple.
    #[serde(default)]
    pub format: IndexFormat,
}

/// Files to copy into the image.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table, `{ from = \"configs\", to = \"/opt/configs\" }`")]
pub struct CopyEntry {
    /// A file or directory of the project, relative to this file.
    pub from: String,
    /// The absolute path in the image; a directory's contents are copied to it.
    pub to: String,
}

/// A build command.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected a command, or `{ command = \"...\", secrets = [\"NAME\"] }`")]
pub enum RunStep {
    /// The command, for bash.
    Command(String),
    /// The command with its secrets.
    WithSecrets(RunWithSecrets),
}

/// A build command with secrets.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunWithSecrets {
    /// The command, for bash.
    pub command: String,
    /// Names of `[secrets]` in the user's configuration, readable at `/run/secrets/NAME` during the command. Secrets are not
    /// stored in the image.
    #[serde(default)]
    pub secrets: Vec<String>,
}

/// Settings of `envforge shell`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default, expecting = "a table, `[shell]`")]
pub struct Shell {
    /// Host directories to mount, `SOURCE:TARGET[:ro]`.
    pub mounts: Vec<SpannedValue<String>>,
    /// Data sets to mount read-only: `SOURCE` at /data/NAME, or `SOURCE:TARGET`.
    pub data: Vec<SpannedValue<String>>,
    /// Named volumes, `NAME:TARGET`. Using one requires your agreement: other projects may use it, too.
    pub volumes: Vec<SpannedValue<String>>,
    /// Environment variables of the container: `NAME=VALUE`, or `NAME` for the caller's, which requires your agreement.
    pub env: Vec<SpannedValue<String>>,
    /// Files of variables, one `NAME=VALUE` per line, relative to this file.
    pub env_file: Vec<SpannedValue<String>>,
    /// Ports, `HOST:CONTAINER` or one number for both.
    pub ports: Vec<SpannedValue<String>>,
    /// The network: `bridge` (default), `none`, or `host` or the name of an engine network, which require your agreement.
    pub network: Option<String>,
    /// GPUs: `all`, `none`, or comma-separated indices or UUIDs. Default: all available.
    pub gpus: Option<String>,
    /// Memory limit: `32g`.
    pub memory: Option<String>,
    /// CPU limit: `4` or `1.5`.
    pub cpus: Option<f64>,
    /// Size of /dev/shm: `8g`.
    pub shm_size: Option<String>,
    /// Start Jupyter: `true`.
    pub jupyter: Option<bool>,
    /// Start an SSH server: `true`.
    pub ssh: Option<bool>,
}

/// Settings of the checks before tagging.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default, expecting = "a table, `[verify]`")]
pub struct Verify {
    /// `static`, `quick`, `full` or `perf`. Default: full.
    #[schemars(with = "Option<String>")]
    pub level: Option<SpannedValue<String>>,
    /// Additional commands that must succeed in the image.
    pub checks: Vec<SpannedValue<ExtraCheck>>,
    /// Optional libraries that may be missing: `libtbb.so.12`.
    #[schemars(with = "Vec<String>")]
    pub may_lack: Vec<SpannedValue<String>>,
}

/// A command that must succeed in the image before tagging. It runs without network.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table, `{ name = \"...\", command = \"...\" }`")]
pub struct ExtraCheck {
    /// Its name in the report.
    pub name: String,
    /// The command, for bash.
    pub command: String,
}

/// The cluster whose nodes start the image from a file. A key that is missing comes from `[cluster]` of your configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default, expecting = "a table, `[cluster]`")]
pub struct Cluster {
    /// Container runtime of its nodes: `pyxis` (with enroot) starts a squashfs, `apptainer` a SIF.
    #[schemars(with = "Option<String>")]
    pub runtime: Option<ClusterRuntime>,
    /// Directory of image files on storage that all nodes share, relative to this file: `/shared/images`.
    pub folder: Option<String>,
}
