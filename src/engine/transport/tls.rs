//! TLS to the daemon: always checks the server's certificate, sends the client's if there is one.

use std::io;

use camino::Utf8Path;
use rustls_native_certs::load_native_certs;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::address::TlsFiles;
use crate::engine::error::EngineError;

/// The TLS configuration of a connection.
pub(in crate::engine) struct Tls {
    connector: TlsConnector,
    server: ServerName<'static>,
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Tls({:?})", self.server)
    }
}

fn bad(path: &Utf8Path, cause: impl std::fmt::Display) -> EngineError {
    EngineError::BadCertificate { path: path.to_owned(), cause: cause.to_string() }
}

impl Tls {
    /// Reads the files; `host` is `host:port`.
    pub(in crate::engine) fn new(host: &str, files: &TlsFiles) -> Result<Self, EngineError> {
        let name = host.rsplit_once(':').map_or(host, |(name, _)| name).trim_matches(['[', ']']);
        let bad_name = |_| EngineError::BadAddress {
            address: format!("tcp://{host}"),
            reason: "the host is neither a name nor an IP address",
        };
        let server = ServerName::try_from(name.to_owned()).map_err(bad_name)?;
        let mut roots = RootCertStore::empty();
        match &files.ca {
            // As in Docker: an own file replaces the system's CAs.
            Some(path) => {
                for certificate in certificates(path)? {
                    roots.add(certificate).map_err(|error| bad(path, error))?;
                }
            }
            None => {
                roots.add_parsable_certificates(load_native_certs().certs);
            }
        }
        let builder = ClientConfig::builder_with_provider(ring::default_provider().into())
            .with_safe_default_protocol_versions()
            .expect("the provider supports all of them")
            .with_root_certificates(roots);
        let config = match &files.identity {
            Some((certificate, key)) => {
                let chain = certificates(certificate)?;
                let key_of = PrivateKeyDer::from_pem_file(key).map_err(|error| bad(key, error))?;
                builder.with_client_auth_cert(chain, key_of).map_err(|error| bad(certificate, error))?
            }
            None => builder.with_no_client_auth(),
        };
        Ok(Self { connector: TlsConnector::from(std::sync::Arc::new(config)), server })
    }

    pub(in crate::engine) async fn connect(&self, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        self.connector.connect(self.server.clone(), stream).await
    }
}

fn certificates(path: &Utf8Path) -> Result<Vec<CertificateDer<'static>>, EngineError> {
    let all: Result<Vec<_>, _> =
        CertificateDer::pem_file_iter(path).map_err(|error| bad(path, error))?.collect();
    let all = all.map_err(|error| bad(path, error))?;
    if all.is_empty() { Err(bad(path, "no certificate found")) } else { Ok(all) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::{Exit, Failure as _};

    #[test]
    #[expect(clippy::disallowed_methods, reason = "writes the file it reads")]
    fn invalid_certificate_file_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let path = camino::Utf8PathBuf::from_path_buf(folder.path().join("ca.pem")).unwrap();
        fs_err::write(&path, "nothing").unwrap();
        let files = TlsFiles { ca: Some(path.clone()), identity: None };
        let error = Tls::new("box:1", &files).unwrap_err();
        assert!(error.to_string().contains(path.as_str()), "{error}");
        assert_eq!((error.exit(), error.hints().len()), (Exit::Usage, 1));
    }
}
