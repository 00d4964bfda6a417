//! Opens connections to the daemon at any address: one [`Connection`] type for HTTP and gRPC.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use hyper_util::client::legacy::connect::{Connected, Connection as ConnectionInfo};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

use super::address::Address;
use super::ssh;
use super::tls::Tls;
use crate::engine::error::EngineError;

trait Both: AsyncRead + AsyncWrite + Send {}
impl<T: AsyncRead + AsyncWrite + Send> Both for T {}

/// A bidirectional byte stream.
pub(in crate::engine) struct Connection(Pin<Box<dyn Both>>);

impl Connection {
    fn new(stream: impl AsyncRead + AsyncWrite + Send + 'static) -> Self {
        Self(Box::pin(stream))
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.0.as_mut().poll_read(cx, buf)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.0.as_mut().poll_write(cx, buf)
    }
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.as_mut().poll_flush(cx)
    }
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.as_mut().poll_shutdown(cx)
    }
}

/// For HTTP.
impl ConnectionInfo for Connection {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

/// For gRPC.
impl tonic::transport::server::Connected for Connection {
    type ConnectInfo = ();
    fn connect_info(&self) -> Self::ConnectInfo {}
}

/// A connector to one address.
#[derive(Debug, Clone)]
pub(in crate::engine) struct Connector {
    pub(in crate::engine) address: Address,
    tls: Option<Arc<Tls>>,
}

impl Connector {
    /// Reads the certificates of the address, if any; does not connect yet.
    pub(in crate::engine) fn new(address: Address) -> Result<Self, EngineError> {
        let tls = match &address {
            Address::Tls(host, files) => Some(Arc::new(Tls::new(host, files)?)),
            _ => None,
        };
        Ok(Self { address, tls })
    }

    /// Opens a connection.
    pub(in crate::engine) async fn dial(&self) -> io::Result<Connection> {
        match &self.address {
            Address::Unix(socket) => match UnixStream::connect(socket.as_std_path()).await {
                Ok(stream) => Ok(Connection::new(stream)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    Err(io::Error::new(error.kind(), format!("`{socket}` does not exist")))
                }
                Err(error) => Err(error),
            },
            Address::Tcp(host) => TcpStream::connect(host.as_str()).await.map(Connection::new),
            Address::Tls(host, _) => {
                let stream = TcpStream::connect(host.as_str()).await?;
                let tls = self.tls.as_ref().expect("created with a TLS address");
                tls.connect(stream).await.map(Connection::new)
            }
            Address::Ssh(target) => ssh::connect(target).map(Connection::new),
        }
    }
}
