//! A connection to the daemon that leaves HTTP for gRPC: `POST /grpc` and `POST /session` with `Upgrade: h2c`.
//!
//! Written by hand because bollard keeps its own upgraded connections to itself, and with them the build's progress.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tonic::transport::server::Connected;

use super::EngineError;
use super::connect::Address;
use super::fault::{lost, refused, unconnected};

/// Longest head of an answer that is read.
const HEAD: usize = 16 * 1024;

trait Both: AsyncRead + AsyncWrite + Send {}
impl<T: AsyncRead + AsyncWrite + Send> Both for T {}

/// Bytes both ways, over whatever the daemon listens on.
pub(super) struct Pipe(Pin<Box<dyn Both>>);

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

impl Connected for Pipe {
    type ConnectInfo = ();
    fn connect_info(&self) -> Self::ConnectInfo {}
}

/// Opens a connection, asks for the upgrade with these headers, and gives what lies behind it.
pub(super) async fn upgrade(
    address: &Address,
    path: &str,
    headers: &[(&str, &str)],
) -> Result<Pipe, EngineError> {
    let opened = match address {
        Address::Unix(socket) => {
            UnixStream::connect(socket.as_std_path()).await.map(|stream| Pipe(Box::pin(stream)))
        }
        Address::Tcp(host) => TcpStream::connect(host.as_str()).await.map(|stream| Pipe(Box::pin(stream))),
    };
    let mut pipe = opened.map_err(|error| unconnected(address, &error))?;
    let during = "opening a build session";
    let mut request =
        format!("POST {path} HTTP/1.1\r\nHost: engine\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n");
    for (name, value) in headers {
        request.extend([name, ": ", value, "\r\n"]);
    }
    request.push_str("Content-Length: 0\r\n\r\n");
    pipe.write_all(request.as_bytes()).await.map_err(|error| lost(during, &error))?;
    let head = read_head(&mut pipe).await.map_err(|error| lost(during, &error))?;
    let status = head.lines().next().unwrap_or_default();
    match status.split(' ').nth(1) {
        Some("101") => Ok(pipe),
        _ => Err(refused(during, &format!("`{path}` answered `{status}`; builds need BuildKit"))),
    }
}

/// Reads up to the empty line and not a byte more: what follows belongs to gRPC.
async fn read_head(pipe: &mut Pipe) -> io::Result<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() >= HEAD {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the answer has no end of its head"));
        }
        head.push(pipe.read_u8().await?);
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}
