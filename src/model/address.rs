//! Addresses of servers, from settings. They may carry credentials, which no text ever shows.
//!
//! Owns parsing, joining and the hiding of secrets. Does no I/O.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use reqwest::Url;

/// The address of a mirror, index or file: `http://` or `https://`. Printing it hides user, password and query.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address(Arc<Url>);

/// An invalid address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not an `http://` or `https://` address: {cause}")]
pub struct AddressError {
    /// The problem. The text itself may hold a secret and is not repeated.
    pub cause: String,
}

impl Address {
    /// The address of a file below this one: `pool/main/…` below a mirror's root.
    #[must_use]
    pub fn join(&self, relative: &str) -> Self {
        let mut url = Url::clone(&self.0);
        let path = format!("{}/{}", url.path().trim_end_matches('/'), relative.trim_start_matches('/'));
        url.set_path(&path);
        Self(Arc::new(url))
    }
    /// The address that a server names in its answer to a request to this one: whole, or relative to it.
    pub fn resolve(&self, location: &str) -> Result<Self, AddressError> {
        let url = self.0.join(location).map_err(|error| AddressError { cause: error.to_string() })?;
        url.as_str().parse()
    }
    /// Adds query fields to the address.
    #[must_use]
    pub fn with_query(&self, fields: &[(&str, &str)]) -> Self {
        let mut url = Url::clone(&self.0);
        url.query_pairs_mut().extend_pairs(fields);
        Self(Arc::new(url))
    }
    /// The whole address, secrets included: for the client that uses it, never for a text.
    pub fn expose(&self) -> &str {
        self.0.as_str()
    }
    /// Adds the login of another address, if this one has none.
    #[must_use]
    pub fn with_login_of(&self, other: &Self) -> Self {
        let mut url = Url::clone(&self.0);
        if url.username().is_empty() && url.password().is_none() {
            // Neither can fail for http and https, which always have a host. Both are encoded already.
            let _ = url.set_username(other.0.username()).and_then(|()| url.set_password(other.0.password()));
        }
        Self(Arc::new(url))
    }
    /// Returns the address without user, password and fragment. The query stays and may be secret.
    pub(crate) fn without_login(&self) -> String {
        let mut url = Url::clone(&self.0);
        // Neither can fail for http and https, which always have a host.
        let _ = url.set_username("").and_then(|()| url.set_password(None));
        url.set_fragment(None);
        url.into()
    }
    /// Returns the address without user, password, query and fragment.
    pub(crate) fn without_secrets(&self) -> String {
        let plain = self.without_login();
        plain.split('?').next().unwrap_or_default().to_owned()
    }
    /// Scheme, host and port: no path, no secret.
    pub fn origin(&self) -> String {
        self.0.origin().ascii_serialization()
    }
    pub(crate) fn url(&self) -> Url {
        Url::clone(&self.0)
    }
}

impl FromStr for Address {
    type Err = AddressError;
    fn from_str(text: &str) -> Result<Self, AddressError> {
        let url = Url::parse(text.trim()).map_err(|error| AddressError { cause: error.to_string() })?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(AddressError { cause: format!("scheme `{}`", url.scheme()) });
        }
        Ok(Self(Arc::new(url)))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut url = Url::clone(&self.0);
        if !url.username().is_empty() || url.password().is_some() {
            // Neither can fail for http and https, which always have a host.
            let _ = url.set_username("***").and_then(|()| url.set_password(None));
        }
        if url.query().is_some() {
            url.set_query(Some("***"));
        }
        url.set_fragment(None);
        f.pad(url.as_str())
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_and_queries_are_never_printed() {
        let address: Address =
            "https://user:hunter2@example.test/simple?token=hunter3".parse().expect("parses");
        assert_eq!(address.to_string(), "https://***@example.test/simple?***");
        assert!(!format!("{address:?}").contains("hunter"));
        assert!(address.expose().contains("hunter2"));
        assert_eq!(address.origin(), "https://example.test");
    }

    #[test]
    fn address_for_others_has_no_login_and_no_query() {
        let address: Address =
            "https://u:hunter2@h.test/a%2Bb.whl?token=hunter2#sha256=1".parse().expect("one");
        assert_eq!(address.without_secrets(), "https://h.test/a%2Bb.whl");
    }

    #[test]
    fn login_is_copied_unchanged() {
        let index: Address = "https://u%40x:p%2Fw@example.test/simple".parse().expect("parses");
        let file: Address = "https://example.test/f/a.tar.gz".parse().expect("parses");
        assert_eq!(file.with_login_of(&index).expose(), "https://u%40x:p%2Fw@example.test/f/a.tar.gz");
        let own: Address = "https://me@example.test/f".parse().expect("parses");
        assert_eq!(own.with_login_of(&index).expose(), "https://me@example.test/f");
    }

    #[test]
    fn a_file_is_joined_below_the_root_with_or_without_slash() {
        for root in ["http://example.test/debian", "http://example.test/debian/"] {
            let address: Address = root.parse().expect("parses");
            assert_eq!(address.join("pool/a+b.deb").to_string(), "http://example.test/debian/pool/a+b.deb");
        }
    }

    #[test]
    fn rejects_other_schemes_without_repeating_the_text() {
        for text in ["ftp://user:hunter2@example.test/", "hunter2", ""] {
            let error = text.parse::<Address>().expect_err("refused");
            assert!(!error.to_string().contains("hunter2"), "{error}");
        }
    }
}
