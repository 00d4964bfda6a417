//! A connection to the daemon that leaves HTTP: for gRPC (`/grpc`, `/session`) or for the bytes of a program's terminal.
//!
//! Written by hand because bollard keeps its own upgraded connections to itself, and with them the build's progress; and
//! because it takes a terminal's bytes for frames where they begin with a NUL.

use std::io;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::EngineError;
use super::dial::{Dialer, Pipe};
use super::fault::{broken, refused, unconnected};

/// Longest head of an answer that is read.
const HEAD: usize = 16 * 1024;

/// What is asked for.
pub(super) struct Upgrade<'a> {
    /// What this is for, in errors.
    pub(super) during: &'a str,
    /// Path and query.
    pub(super) path: &'a str,
    /// `h2c` or `tcp`.
    pub(super) protocol: &'a str,
    pub(super) headers: &'a [(&'a str, &'a str)],
    /// JSON, or empty.
    pub(super) body: &'a str,
}

/// Opens a connection, asks for the upgrade, and gives what lies behind it.
pub(super) async fn upgrade(dialer: &Dialer, ask: &Upgrade<'_>) -> Result<Pipe, EngineError> {
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
        // An engine that names no protocol says 200 and goes on in the same way.
        Some("200") if *protocol == "tcp" => Ok(pipe),
        _ => Err(refused(ask.during, &said(&head, status, &mut pipe).await)),
    }
}

/// The upgrade to gRPC.
pub(super) async fn grpc(dialer: &Dialer, path: &str, headers: &[(&str, &str)]) -> Result<Pipe, EngineError> {
    let during = "opening a build session";
    upgrade(dialer, &Upgrade { during, path, protocol: "h2c", headers, body: "" }).await
}

/// The daemon's own words about a refusal: its JSON message, else the status line.
async fn said(head: &str, status: &str, pipe: &mut Pipe) -> String {
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

/// Reads up to the empty line and not a byte more: what follows belongs to the other protocol.
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
