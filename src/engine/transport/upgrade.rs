//! Upgraded connections to the daemon: gRPC (`/grpc`, `/session`) or the bytes of a program's terminal.
//!
//! Implemented here because bollard hides its upgraded connections, and with them the build's progress, and because it
//! treats a terminal's bytes as frames if they begin with a NUL.

use std::io;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::dial::{Connection, Connector};
use crate::engine::error::EngineError;
use crate::engine::transport::classify_error::{broken, refused, unconnected};

/// The size limit of a response header.
const HEAD: usize = 16 * 1024;

/// An upgrade request.
pub(in crate::engine) struct Upgrade<'a> {
    /// The purpose, in errors.
    pub(in crate::engine) during: &'a str,
    /// Path and query.
    pub(in crate::engine) path: &'a str,
    /// `h2c` or `tcp`.
    pub(in crate::engine) protocol: &'a str,
    pub(in crate::engine) headers: &'a [(&'a str, &'a str)],
    /// JSON, or empty.
    pub(in crate::engine) body: &'a str,
}

/// Opens a connection, requests the upgrade, and returns the upgraded stream.
pub(in crate::engine) async fn upgrade(
    dialer: &Connector,
    ask: &Upgrade<'_>,
) -> Result<Connection, EngineError> {
    let address = &dialer.address;
    let broken = |error: io::Error| broken(address, ask.during, &error);
    let mut pipe = dialer.dial().await.map_err(|error| unconnected(address, &error))?;
    let Upgrade { path, protocol, .. } = ask;
    let mut request =
        format!("POST {path} HTTP/1.1\r\nHost: engine\r\nConnection: Upgrade\r\nUpgrade: {protocol}\r\n");
    for (name, value) in ask.headers {
        request.extend([name, ": ", value, "\r\n"]);
    }
    if !ask.body.is_empty() {
        request.push_str("Content-Type: application/json\r\n");
    }
    request.extend([&format!("Content-Length: {}\r\n\r\n", ask.body.len()), ask.body]);
    pipe.write_all(request.as_bytes()).await.map_err(broken)?;
    let head = read_head(&mut pipe).await.map_err(broken)?;
    let status = head.lines().next().unwrap_or_default();
    match status.split(' ').nth(1) {
        Some("101") => Ok(pipe),
        // An engine without the upgrade header responds with 200 and continues in the same way.
        Some("200") if *protocol == "tcp" => Ok(pipe),
        _ => Err(refused(ask.during, &refusal(&head, status, &mut pipe).await)),
    }
}

/// Opens a connection for gRPC.
pub(in crate::engine) async fn grpc(
    dialer: &Connector,
    path: &str,
    headers: &[(&str, &str)],
) -> Result<Connection, EngineError> {
    let during = "opening a build session";
    upgrade(dialer, &Upgrade { during, path, protocol: "h2c", headers, body: "" }).await
}

/// Returns the daemon's message of a refusal: its JSON message, otherwise the status line.
async fn refusal(head: &str, status: &str, pipe: &mut Connection) -> String {
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    });
    let mut body = vec![0; length.unwrap_or(0).min(HEAD)];
    let read = pipe.read_exact(&mut body).await.is_ok();
    let answer: Option<serde_json::Value> = read.then(|| serde_json::from_slice(&body).ok()).flatten();
    let message = answer.as_ref().and_then(|answer| answer["message"].as_str());
    message.unwrap_or(status).to_owned()
}

/// Reads exactly up to the empty line: the following bytes belong to the other protocol.
async fn read_head(pipe: &mut Connection) -> io::Result<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() >= HEAD {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the response header is too long"));
        }
        head.push(pipe.read_u8().await?);
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}
