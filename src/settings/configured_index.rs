//! A package index as the configuration file has it: an address, or a table with its form.

use schemars::JsonSchema;
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;

use crate::model::index_address::IndexFormat;

/// An address, which may contain a login, or `{ url = "https://...", format = "flat" }` for one page with links to all files.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "expected an address, or `{ url = \"https://...\", format = \"flat\" }` for a page of links"
)]
pub enum ConfiguredIndex {
    /// The address of an index (simple API).
    Address(#[schemars(with = "String")] SecretString),
    /// The address and the form of its pages.
    WithFormat(IndexWithFormat),
}

/// The address of an index and the form of its pages.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IndexWithFormat {
    /// The address.
    #[schemars(with = "String")]
    url: SecretString,
    /// `simple` (a page for each package) or `flat` (one page with links to all files). Default: simple.
    #[serde(default)]
    format: IndexFormat,
}

impl ConfiguredIndex {
    /// Returns the address as one text; `flat+` precedes that of a page of links.
    pub(super) fn into_text(self) -> SecretString {
        match self {
            Self::Address(address) => address,
            Self::WithFormat(index) => index.format.written(index.url.expose_secret()).into(),
        }
    }
}
