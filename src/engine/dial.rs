//! Opens connections to the daemon, whatever it listens on: one [`Pipe`] for HTTP and gRPC alike.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use hyper_util::client::legacy::connect::{Connected, Connection};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

use super::address::Address;
use super::tls::Tls;
use super::{EngineError, ssh};

trait Both: AsyncRead + AsyncWrite + Send {}
impl<T: AsyncRead + AsyncWrite + Send> Both for T {}

/// Bytes both ways.
pub(super) struct Pipe(Pin<Box<dyn Both>>);

impl Pipe {
    fn new(stream: impl AsyncRead + AsyncWrite + Send + 'static) -> Self {
        Self(Box::pin(stream))
    }
}

impl AsyncRead for Pipe {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.0.as_mut().poll_read(cx, buf)
    }
}

impl AsyncWrite for Pipe {
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
impl Connection for Pipe {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

/// For gRPC.
impl tonic::transport::server::Connected for Pipe {
    type ConnectInfo = ();
    fn connect_info(&self) -> Self::ConnectInfo {}
}

/// Opens connections to one address.
#[derive(Debug, Clone)]
pub(super) struct Dialer {
    pub(super) address: Address,
    tls: Option<Arc<Tls>>,
}

impl Dialer {
    /// Reads the certificates, if the address has any; connects to nothing yet.
    pub(super) fn new(address: Address) -> Result<Self, EngineError> {
        let tls = match &address {
            Address::Tls(host, files) => Some(Arc::new(Tls::new(host, files)?)),
            _ => None,
        };
        Ok(Self { address, tls })
    }

    /// Opens a connection.
    pub(super) async fn dial(&self) -> io::Result<Pipe> {
        match &self.address {
            Address::Unix(socket) => match UnixStream::connect(socket.as_std_path()).await {
                Ok(stream) => Ok(Pipe::new(stream)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    Err(io::Error::new(error.kind(), format!("`{socket}` does not exist")))
                }
                Err(error) => Err(error),
            },
            Address::Tcp(host) => TcpStream::connect(host.as_str()).await.map(Pipe::new),
            Address::Tls(host, _) => {
                let stream = TcpStream::connect(host.as_str()).await?;
                let tls = self.tls.as_ref().expect("made together with a TLS address");
                tls.connect(stream).await.map(Pipe::new)
            }
            Address::Ssh(target) => ssh::connect(target).map(Pipe::new),
        }
    }
}
