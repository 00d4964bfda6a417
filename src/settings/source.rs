//! `[toolkit]` and `[source]`: where the compiler of the devel flavour and release archives may come from.

use schemars::JsonSchema;
use serde::Deserialize;

use super::environment::{Environment, split_list};
use super::error::SettingsError;
use super::variables;
use crate::model::resolve::ToolkitSources;

/// `[toolkit]`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ToolkitConfig {
    /// Sources of nvcc: `distribution`, `wheels`, `vendor`. Default: all.
    pub sources: Option<Vec<String>>,
}

/// `[source]`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct SourceConfig {
    /// A directory or URL with release archives, tried before their own address.
    pub mirror: Option<String>,
}

/// Sources of compilers and release archives.
#[derive(Debug, Clone)]
pub struct SourceSettings {
    /// Where nvcc may come from.
    pub toolkit: ToolkitSources,
    /// A directory with release archives, tried first.
    pub mirror: Option<String>,
}

impl SourceSettings {
    /// Joins environment and configuration.
    pub(super) fn of(
        environment: &Environment,
        toolkit: ToolkitConfig,
        source: SourceConfig,
    ) -> Result<Self, SettingsError> {
        let named = variables::NVCC_SOURCES.of(environment).map(|text| split_list(&text));
        Ok(Self {
            toolkit: toolkit_sources(named.or(toolkit.sources))?,
            mirror: variables::SOURCE_MIRROR.of(environment).or(source.mirror),
        })
    }
}

/// Returns the named sources; all by default.
fn toolkit_sources(named: Option<Vec<String>>) -> Result<ToolkitSources, SettingsError> {
    let Some(named) = named else { return Ok(ToolkitSources::default()) };
    let mut sources = ToolkitSources { distribution: false, wheels: false, vendor: false };
    for name in named {
        match name.as_str() {
            "distribution" => sources.distribution = true,
            "wheels" => sources.wheels = true,
            "vendor" => sources.vendor = true,
            _ => {
                return Err(SettingsError::Value {
                    setting: "`[toolkit] sources` (ENVFORGE_NVCC_SOURCES)",
                    value: name,
                    allowed: "distribution, wheels, vendor",
                });
            }
        }
    }
    Ok(sources)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Failure as _;

    #[test]
    fn sources_of_nvcc_are_all_on_unless_named() {
        let of = |names: &[&str]| toolkit_sources(Some(names.iter().map(|&name| name.to_owned()).collect()));
        assert_eq!(toolkit_sources(None).expect("all"), ToolkitSources::default());
        let two = of(&["distribution", "wheels"]).expect("two");
        assert_eq!(two, ToolkitSources { vendor: false, ..ToolkitSources::default() });
        assert!(of(&["vendro"]).expect_err("misspelt").hints()[0].contains("vendor"));
    }
}
