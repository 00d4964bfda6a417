//! Forwards ports of this machine to a container of a remote engine. Requires only the engine: a small program in the
//! container carries each connection over the engine's own connection.

use std::net::SocketAddr;
use std::sync::Arc;

use futures_util::StreamExt as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::task::AbortOnDropHandle;

use super::ShellError;
use crate::engine::{Attached, Containers, ExecRequest, Output, Port};

/// The program that connects its input and output to a port of its container.
const RELAY: &str = include_str!("relay.py");
/// Bytes forwarded at once.
const CHUNK: usize = 64 * 1024;

/// Open listeners of this machine, not yet forwarded.
#[derive(Debug, Default)]
pub(crate) struct LocalListeners(Vec<(TcpListener, u16)>);

/// Forwarded ports, closed on drop.
pub(crate) type Tunnels = Vec<AbortOnDropHandle<()>>;

impl LocalListeners {
    /// Opens the listeners.
    pub(crate) async fn take(ports: &[Port]) -> Result<Self, ShellError> {
        let mut taken = Vec::new();
        for port in ports {
            let address = SocketAddr::new(port.address, port.host);
            let listener = TcpListener::bind(address).await;
            let listener =
                listener.map_err(|cause| ShellError::PortTaken { address: address.to_string(), cause })?;
            taken.push((listener, port.container));
        }
        Ok(Self(taken))
    }

    /// Forwards them to a running container.
    pub(crate) fn forward(self, containers: &Arc<dyn Containers>, container: &str) -> Tunnels {
        let one = |(listener, port)| {
            let forwarding = accept(listener, Arc::clone(containers), container.to_owned(), port);
            AbortOnDropHandle::new(tokio::spawn(forwarding))
        };
        self.0.into_iter().map(one).collect()
    }
}

async fn accept(listener: TcpListener, containers: Arc<dyn Containers>, container: String, port: u16) {
    let mut connections = tokio::task::JoinSet::new();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let (containers, container) = (Arc::clone(&containers), container.clone());
                connections.spawn(async move {
                    if let Err(error) = carry(stream, &*containers, &container, port).await {
                        tracing::debug!(%error, port, "a forwarded connection failed");
                    }
                });
            }
            // Too many open files, or a disconnected client: the next one may succeed.
            Err(error) => {
                tracing::debug!(%error, port, "cannot accept a connection");
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            }
        }
        while connections.try_join_next().is_some() {}
    }
}

/// Forwards one connection until the container closes it.
async fn carry(
    stream: TcpStream,
    containers: &dyn Containers,
    container: &str,
    port: u16,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let command = ["python3", "-ISc", RELAY, &port.to_string()].map(str::to_owned).to_vec();
    let request = ExecRequest { command, stdin: true, ..ExecRequest::default() };
    let (_, Attached { mut input, mut output }) = containers.exec(container, &request).await?;
    let (mut read, mut write) = stream.into_split();
    let _sending: AbortOnDropHandle<_> = AbortOnDropHandle::new(tokio::spawn(async move {
        let mut buffer = vec![0; CHUNK];
        while let Ok(count @ 1..) = read.read(&mut buffer).await {
            if input.write_all(&buffer[..count]).await.and(input.flush().await).is_err() {
                return;
            }
        }
        let _ = input.shutdown().await;
        // Dropping the input would end the connection before its response.
        std::future::pending::<()>().await;
    }));
    while let Some(part) = output.next().await {
        match part? {
            Output::Out(bytes) => write.write_all(&bytes).await?,
            Output::Err(bytes) => tracing::debug!(port, said = %String::from_utf8_lossy(&bytes), "relay"),
        }
    }
    Ok(write.shutdown().await?)
}
