//! Requests that cannot be carried out as they were made.

use crate::failure::{Exit, Failure};
use crate::model::address::AddressError;
use crate::model::versions::VersionError;

/// What is wrong with a request, its options or the settings it needs.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// A version on the command line cannot be read.
    #[error("invalid value for {option}: {cause}")]
    Version {
        /// The option.
        option: &'static str,
        /// Why.
        cause: VersionError,
    },
    /// `--driver` with a CUDA version.
    #[error(
        "invalid value for --driver: `{typed}` is a CUDA version, drivers have versions such as 570.124.06"
    )]
    CudaAsDriver {
        /// The text.
        typed: String,
        /// The oldest branch whose drivers support that CUDA themselves.
        branch: Option<u32>,
    },
    /// The date of `--as-of` cannot be read.
    #[error("invalid value for --as-of: `{text}` (expected a date such as `2026-03-01`)")]
    Date {
        /// The text.
        text: String,
    },
    /// An address in a setting cannot be read. The address itself is not repeated: it may hold credentials.
    #[error("invalid value for {setting}: {cause}")]
    Address {
        /// The setting.
        setting: &'static str,
        /// Why.
        cause: AddressError,
    },
    /// An option for one image was given for several.
    #[error("{option} requires exactly one spec, got {count}")]
    OneSpecOnly {
        /// The option.
        option: &'static str,
        /// The number of specs.
        count: usize,
    },
    /// `--platform` names a processor that no machine with the GPU has.
    #[error("`{gpu}` is only in machines of {only}")]
    PlatformOfGpu {
        /// The GPU.
        gpu: String,
        /// Their platform.
        only: &'static str,
    },
    /// An index of several platforms needs a tag.
    #[error("--platform requires references with a tag")]
    PlatformsNeedTag,
    /// The platforms of a tag leave out that of the image.
    #[error("--platform does not name {own}, the platform of the image")]
    OwnPlatform {
        /// The platform.
        own: &'static str,
    },
    /// A filter matches only unlisted variants.
    #[error("no published variant matches `{filter}`")]
    NothingListed {
        /// The filter.
        filter: String,
    },
    /// `--wheel` for a published variant.
    #[error("cannot use --wheel: `{name}` has a published wheel")]
    WheelOfPublished {
        /// The stack.
        name: String,
    },
    /// `--wheel` for a package that nothing requests.
    #[error("cannot use --wheel: `{package}` is not requested")]
    WheelNotRequested {
        /// The package.
        package: String,
    },
    /// `--gpus` selects nothing that is a GPU.
    #[error("invalid value `{found}` for `--gpus`")]
    BadGpus {
        /// The value.
        found: String,
    },
    /// A SPEC together with an option that selects a project.
    #[error("`{option}` cannot be combined with a spec: `{spec}`")]
    SpecAndProject {
        /// The spec.
        spec: String,
        /// The option.
        option: &'static str,
    },
    /// `--cuda` or `--python` cannot be read.
    #[error("invalid value `{value}` for {option}")]
    BadPart {
        /// The option.
        option: &'static str,
        /// The value.
        value: String,
    },
    /// `--cuda` or `--python` with a spec that has another one.
    #[error("{option} {value} contradicts `{found}` of spec `{spec}`")]
    PartConflict {
        /// The option.
        option: &'static str,
        /// Its value.
        value: String,
        /// What the spec has.
        found: String,
        /// The spec.
        spec: String,
    },
    /// `--cuda` or `--python` with an image that is not a spec, or without one.
    #[error("{option} requires a spec or a project")]
    PartWithoutSpec {
        /// The option.
        option: &'static str,
    },
    /// `--cuda` or `--python` with names that are not specs.
    #[error("{option} requires a spec: images, lock files and projects have their own")]
    PartNeedsSpec {
        /// The option.
        option: &'static str,
    },
    /// `--with` or `--apt` for a project.
    #[error("--with and --apt require a SPEC; add project packages to envforge.toml")]
    AdditionToProject,
    /// Something that cannot be added.
    #[error("invalid value for {option}: {text}")]
    Addition {
        /// The option.
        option: &'static str,
        /// Why.
        text: String,
    },
    /// No SPEC and no project file.
    #[error("could not find envforge.toml in `{folder}` or any parent directory")]
    NoProject {
        /// The directory in which the search began.
        folder: String,
    },
    /// The nearest project file above belongs to somebody else.
    #[error("`{file}` belongs to another user")]
    ForeignProject {
        /// The file.
        file: String,
    },
    /// A request refers to a package index that is not configured.
    #[error("package index `{name}` is not configured")]
    UnknownIndex {
        /// Its name.
        name: String,
        /// The configuration file.
        config: String,
    },
    /// A package is pinned to the default index, and the settings name none.
    #[error("cannot pin `{package}` to the default index: no default index is configured")]
    DefaultIndexUnset {
        /// The package.
        package: String,
    },
    /// A run step refers to a secret that cannot be read.
    #[error("cannot read secret `{name}`: {why}")]
    NoSecret {
        /// Its name.
        name: String,
        /// Why.
        why: String,
    },
}

impl Failure for RequestError {
    fn exit(&self) -> Exit {
        match self {
            Self::NothingListed { .. } => Exit::No,
            Self::Version { .. }
            | Self::CudaAsDriver { .. }
            | Self::Date { .. }
            | Self::Address { .. }
            | Self::OneSpecOnly { .. }
            | Self::PlatformOfGpu { .. }
            | Self::PlatformsNeedTag
            | Self::OwnPlatform { .. }
            | Self::WheelOfPublished { .. }
            | Self::WheelNotRequested { .. }
            | Self::BadGpus { .. }
            | Self::SpecAndProject { .. }
            | Self::BadPart { .. }
            | Self::PartConflict { .. }
            | Self::PartWithoutSpec { .. }
            | Self::PartNeedsSpec { .. }
            | Self::AdditionToProject
            | Self::Addition { .. }
            | Self::NoProject { .. }
            | Self::ForeignProject { .. }
            | Self::UnknownIndex { .. }
            | Self::DefaultIndexUnset { .. }
            | Self::NoSecret { .. } => Exit::Usage,
        }
    }

    fn hints(&self) -> Vec<String> {
        let hint = match self {
            Self::Version { .. } | Self::Date { .. } | Self::Addition { .. } => return Vec::new(),
            Self::CudaAsDriver { typed, branch } => {
                let known = branch.map_or_else(String::new, |branch| {
                    format!("; branch R{branch} is the oldest that supports CUDA {typed} itself")
                });
                format!("pass the driver version that `nvidia-smi` prints{known}")
            }
            Self::Address { .. } => "use a URL such as `http://host/path`".to_owned(),
            Self::PlatformOfGpu { only, .. } => format!("omit --platform, or pass `--platform {only}`"),
            Self::PlatformsNeedTag => "pass `HOST/NAME:TAG`: a digest alone is that of one image".to_owned(),
            Self::OwnPlatform { own } => format!("add it: `--platform {own},…`"),
            Self::OneSpecOnly { option, .. } => format!("build that spec alone, or omit {option}"),
            Self::NothingListed { filter } => {
                format!("run `envforge list {filter} --all`, then build a variant by its full name with CUDA")
            }
            Self::WheelOfPublished { .. } => {
                "omit --wheel; add a package with `--with REQUIREMENT`".to_owned()
            }
            Self::WheelNotRequested { package } => {
                format!("request it: `--with {package}`, or `envforge add {package}` in a project")
            }
            Self::BadGpus { .. } => {
                "pass `all`, `none`, or comma-separated indices or UUIDs as `nvidia-smi -L` prints them"
                    .to_owned()
            }
            Self::BadPart { option, .. } if *option == "--cuda" => {
                "use a CUDA such as cu128 or 12.8".to_owned()
            }
            Self::BadPart { .. } => "use a Python such as 3.11".to_owned(),
            Self::PartConflict { option, .. } => format!("omit {option}, or change the spec"),
            Self::PartWithoutSpec { option } | Self::PartNeedsSpec { option } => {
                format!("omit {option}, or name a spec such as pytorch-cuda:2.8")
            }
            Self::SpecAndProject { .. } => "omit one of them".to_owned(),
            Self::AdditionToProject => "add it to `[packages]` of envforge.toml, or pass a SPEC".to_owned(),
            Self::ForeignProject { file } => format!("to use that project, name it: `--project {file}`"),
            Self::NoProject { .. } => {
                "pass a SPEC such as pytorch-cuda:2.8, or create a project file: envforge init".to_owned()
            }
            Self::UnknownIndex { name, config } => format!(
                "add `[indexes]` with `{name} = \"https://user:token@host/simple\"` to {config}, or set ENVFORGE_INDEX_{}",
                name.to_ascii_uppercase().replace(['-', '.'], "_")
            ),
            Self::DefaultIndexUnset { .. } => {
                "set `[index] default` in your configuration, or ENVFORGE_INDEX".to_owned()
            }
            Self::NoSecret { name, .. } => format!(
                "add `[secrets]` with `{name} = {{ env = \"VARIABLE\" }}` or `{name} = {{ file = \"/path\" }}` to your configuration"
            ),
        };
        vec![hint]
    }
}
