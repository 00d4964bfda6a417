//! Arguments, environment and configuration file become one value, built once.
//!
//! The only reader of the environment; nothing below it asks the machine for a preference. `Settings::from_parts` is pure
//! and holds the precedence: argument, then environment, then the user's file, then the site's, then the host's own tool settings.
#![expect(clippy::disallowed_methods, reason = "the one place that reads environment and configuration")]

mod cluster;
mod config;
mod configured_index;
mod engine;
mod environment;
mod error;
pub mod image_registry;
mod index;
mod join;
mod load;
mod matrix;
mod mirrors;
mod named;
mod netrc;
mod network;
mod output;
mod paths;
mod policy;
mod read;
mod registry;
mod signing;
mod site;
mod source;
mod tables;
mod target;
mod trust;
mod variables;

pub use cluster::ClusterConfig;
pub use config::{Config, config_schema, parse_config};
pub use engine::{EngineConfig, EngineSettings};
pub use environment::Environment;
pub use error::SettingsError;
pub use index::{IndexConfig, PackageIndexes};
pub use load::Settings;
pub use matrix::{MatrixConfig, MatrixSettings};
pub use mirrors::MirrorConfig;
pub use named::{NamedIndexes, NamedSecret, SecretSource};
pub use netrc::Netrc;
pub use network::{NetworkConfig, NetworkSettings, parse_network};
pub use output::{Output, Terminals};
pub use paths::{Paths, UserDirectories};
pub use policy::{PolicyConfig, ProvenOn, RequiredEvidence, UnknownStacks};
pub use registry::{ImageMirrorConfig, RegistryConfig};
pub use signing::SigningSettings;
pub(crate) use site::{ROOT, changeable};
pub use source::{SourceConfig, SourceSettings, ToolkitConfig};
pub use tables::Origins;
pub(crate) use tables::SITE_FILE;
pub use target::TargetOverrides;
pub use trust::{KeyPurpose, TrustConfig, TrustedKey, TrustedProject};
pub use variables::{VARIABLES, Variable};
