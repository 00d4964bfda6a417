//! The client of one daemon.

use bollard::ClientVersion;

use crate::engine::error::EngineError;
use crate::engine::transport::address::Address;
use crate::engine::transport::classify_error::fault;
use crate::engine::transport::dial::Connector;
use crate::engine::transport::http::Http;

/// A daemon's client. Cheap to clone; every request opens its own connection.
#[derive(Debug, Clone)]
pub(in crate::engine) struct Daemon {
    pub(in crate::engine) client: bollard::Docker,
    pub(in crate::engine) http: Http,
    pub(in crate::engine) dialer: Connector,
}

impl Daemon {
    /// Prepares the client; sends nothing yet.
    pub(in crate::engine) fn open(address: Address) -> Result<Self, EngineError> {
        let dialer = Connector::new(address)?;
        let http = Http::new(&dialer);
        let client = client(&http, &dialer.address, bollard::API_DEFAULT_VERSION)?;
        Ok(Self { client, http, dialer })
    }

    /// Returns the same daemon with an API version that it supports: the reported one, or the client's if that is lower.
    pub(in crate::engine) fn negotiated(self, reported: Option<&str>) -> Result<Self, EngineError> {
        let numbers = reported.and_then(|text| text.split_once('.'));
        let numbers = numbers.and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
        let Some((major_version, minor_version)) = numbers else {
            let text = format!("invalid API version `{}`", reported.unwrap_or_default());
            return Err(EngineError::Refused { during: "the first request".to_owned(), text });
        };
        let version = ClientVersion { major_version, minor_version };
        if version >= self.client.client_version() {
            return Ok(self);
        }
        let client = client(&self.http, &self.dialer.address, &version)?;
        Ok(Self { client, ..self })
    }

    /// Maps an error of the daemon.
    pub(in crate::engine) fn fault(&self, during: &str, error: bollard::errors::Error) -> EngineError {
        fault(&self.dialer.address, during, error)
    }
}

fn client(http: &Http, address: &Address, version: &ClientVersion) -> Result<bollard::Docker, EngineError> {
    http.bollard(version).map_err(|error| fault(address, "connecting", error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn negotiated_uses_the_lower_api_version() {
        let version = |reported| {
            let daemon = Daemon::open(Address::default()).unwrap().negotiated(Some(reported)).unwrap();
            daemon.client.client_version().to_string()
        };
        assert_eq!(version("1.41"), "1.41");
        assert_eq!(version("1.999"), bollard::API_DEFAULT_VERSION.to_string());
        for wrong in [None, Some("x"), Some("1")] {
            let error = Daemon::open(Address::default()).unwrap().negotiated(wrong).unwrap_err();
            assert!(error.to_string().contains("invalid API version"), "{error}");
        }
    }
}
