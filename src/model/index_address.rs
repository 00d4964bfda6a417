//! The address of a package index and the form of its pages: the simple API, or one flat page of links.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::Deserialize;

use super::address::{Address, AddressError};

/// Precedes the address of a flat page where one text holds both: `flat+https://…`.
pub const FLAT: &str = "flat+";

/// Frameworks whose own index has a setting by their name.
pub const WITH_OWN_SETTING: [&str; 4] = ["vllm", "onnxruntime", "jax", "tensorflow"];

/// The form of an index.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum IndexFormat {
    /// One page for each package below the address (PEP 503).
    #[default]
    Simple,
    /// One page with links to the files of all packages, as release pages are.
    Flat,
}

impl IndexFormat {
    /// Returns the address and its form as one text.
    pub fn written(self, address: &str) -> String {
        match self {
            Self::Simple => address.to_owned(),
            Self::Flat => format!("{FLAT}{address}"),
        }
    }
}

/// A package index.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct IndexAddress {
    address: Address,
    format: IndexFormat,
}

impl IndexAddress {
    /// The address.
    pub fn address(&self) -> &Address {
        &self.address
    }
    /// Whether it is one page of links.
    pub fn is_flat(&self) -> bool {
        self.format == IndexFormat::Flat
    }
    /// The page that lists the files of a package.
    pub fn page_of(&self, package: &str) -> Address {
        if self.is_flat() { self.address.clone() } else { self.address.join(&format!("{package}/")) }
    }
    /// The whole text, secrets included: for the client that uses it, never for people.
    pub fn expose(&self) -> String {
        self.format.written(self.address.expose())
    }
}

impl From<Address> for IndexAddress {
    fn from(address: Address) -> Self {
        Self { address, format: IndexFormat::Simple }
    }
}

impl FromStr for IndexAddress {
    type Err = AddressError;
    fn from_str(text: &str) -> Result<Self, AddressError> {
        let (format, address) = match text.trim().strip_prefix(FLAT) {
            Some(address) => (IndexFormat::Flat, address),
            None => (IndexFormat::Simple, text),
        };
        Ok(Self { address: address.parse()?, format })
    }
}

impl fmt::Display for IndexAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.format.written(&self.address.to_string()))
    }
}

impl fmt::Debug for IndexAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IndexAddress({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flat_page_lists_every_package_and_a_simple_index_has_a_page_for_each() {
        let page: IndexAddress =
            "flat+https://u:hunter2@host.test/v1/files.html".parse().expect("an address");
        assert_eq!(page.page_of("vllm").expose(), "https://u:hunter2@host.test/v1/files.html");
        assert_eq!(page.expose().parse::<IndexAddress>().expect("an address"), page);
        let simple: IndexAddress = "https://host.test/simple".parse().expect("an address");
        assert_eq!(simple.page_of("vllm").expose(), "https://host.test/simple/vllm/");
        assert!(page.is_flat() && !simple.is_flat());
        for bad in ["flat+ftp://host", "flat+", "flat+flat+https://host", "flat"] {
            assert!(bad.parse::<IndexAddress>().is_err(), "{bad}");
        }
    }

    #[test]
    fn login_is_not_printed() {
        let page: IndexAddress = "flat+https://u:hunter2@host.test/files".parse().expect("an address");
        assert_eq!(format!("{page}"), "flat+https://***@host.test/files");
        assert!(!format!("{page:?}").contains("hunter2"));
    }
}
