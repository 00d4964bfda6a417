//! Input and output of programs in containers: the bytes of a terminal as they are, or two streams in frames.

use std::io;

use bytes::{Buf, Bytes, BytesMut};
use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use tokio::io::{AsyncRead, AsyncReadExt as _};

use super::connect::Daemon;
use super::dial::Pipe;
use super::upgrade::{Upgrade, upgrade};
use super::{Attached, EngineError, ExecRequest, Output, Program};

/// Bytes read at once.
const CHUNK: usize = 32 * 1024;
/// A frame's head: stream, three zeros, length.
const HEAD: usize = 8;
/// The engine cuts a terminal off when these keys come. Its default begins with Ctrl-P, which every shell and editor uses.
const DETACH_KEYS: &str = "ctrl-^,ctrl-_,ctrl-^,ctrl-_";

impl Daemon {
    /// Input and output of a container's command.
    pub(super) async fn attach(&self, container: &str, terminal: bool) -> Result<Attached, EngineError> {
        let keys = DETACH_KEYS.replace('^', "%5E").replace(',', "%2C");
        let path = format!(
            "/v{}/containers/{container}/attach?stream=1&stdin=1&stdout=1&stderr=1&detachKeys={keys}",
            self.client.client_version()
        );
        self.attached(&path, "attaching to a container", "", terminal).await
    }

    /// Starts a command in a running container.
    pub(super) async fn exec(
        &self,
        container: &str,
        request: &ExecRequest,
    ) -> Result<(Program, Attached), EngineError> {
        let during = format!("starting `{}` in a container", request.command.join(" "));
        let options = bollard::exec::CreateExecOptions {
            attach_stdin: Some(request.stdin),
            attach_stdout: Some(true),
            attach_stderr: Some(true),
            tty: Some(request.terminal),
            detach_keys: Some(DETACH_KEYS.to_owned()),
            env: Some(request.env.clone()),
            cmd: Some(request.command.clone()),
            working_dir: request.workdir.clone(),
            ..bollard::exec::CreateExecOptions::default()
        };
        let created = self.client.create_exec(container, options).await;
        let id = created.map_err(|error| self.fault(&during, error))?.id;
        let path = format!("/v{}/exec/{id}/start", self.client.client_version());
        let body = serde_json::json!({"Detach": false, "Tty": request.terminal}).to_string();
        let attached = self.attached(&path, &during, &body, request.terminal).await?;
        Ok((Program::Exec(id), attached))
    }

    async fn attached(
        &self,
        path: &str,
        during: &str,
        body: &str,
        terminal: bool,
    ) -> Result<Attached, EngineError> {
        let ask = Upgrade { during, path, protocol: "tcp", headers: &[], body };
        let (read, input) = tokio::io::split(upgrade(&self.dialer, &ask).await?);
        Ok(Attached { input: Box::pin(input), output: output(read, terminal) })
    }
}

fn output(read: tokio::io::ReadHalf<Pipe>, terminal: bool) -> BoxStream<'static, io::Result<Output>> {
    if terminal { raw(read).boxed() } else { framed(read).boxed() }
}

/// The bytes as they come.
fn raw(read: impl AsyncRead + Unpin + Send) -> impl futures_util::Stream<Item = io::Result<Output>> {
    stream::try_unfold((read, BytesMut::new()), |(mut read, mut buffer)| async move {
        buffer.reserve(CHUNK);
        let got = read.read_buf(&mut buffer).await?;
        Ok((got > 0).then(|| (Output::Out(buffer.split().freeze()), (read, buffer))))
    })
}

/// Two streams in frames. A frame is given as it comes, in parts if it is large.
fn framed(read: impl AsyncRead + Unpin + Send) -> impl futures_util::Stream<Item = io::Result<Output>> {
    let state = (read, BytesMut::new(), 0_usize, false);
    stream::try_unfold(state, |(mut read, mut buffer, mut due, mut error)| async move {
        loop {
            if due == 0 && buffer.len() >= HEAD {
                error = buffer[0] == 2;
                due = u32::from_be_bytes([buffer[4], buffer[5], buffer[6], buffer[7]]) as usize;
                buffer.advance(HEAD);
            } else if due > 0 && !buffer.is_empty() {
                let part: Bytes = buffer.split_to(due.min(buffer.len())).freeze();
                due -= part.len();
                let part = if error { Output::Err(part) } else { Output::Out(part) };
                return Ok(Some((part, (read, buffer, due, error))));
            } else {
                buffer.reserve(CHUNK);
                if read.read_buf(&mut buffer).await? == 0 {
                    return Ok(None);
                }
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(stream: u8, text: &[u8]) -> Vec<u8> {
        let length = u32::try_from(text.len()).expect("short").to_be_bytes();
        [&[stream, 0, 0, 0][..], &length, text].concat()
    }

    async fn parts(stream: impl futures_util::Stream<Item = io::Result<Output>>) -> Vec<Output> {
        stream.map(|part| part.expect("bytes in memory")).collect().await
    }

    #[tokio::test]
    async fn frames_are_told_apart_however_the_bytes_fall() {
        let bytes = [frame(1, b"out"), frame(2, b"error"), frame(1, b"")].concat();
        let expected = (b"out".to_vec(), b"error".to_vec());
        for size in [1, 3, 100] {
            let chunks: Vec<_> =
                bytes.chunks(size).map(|part| Ok::<_, io::Error>(Bytes::copy_from_slice(part))).collect();
            let read = tokio_util::io::StreamReader::new(stream::iter(chunks));
            let (mut out, mut error) = (Vec::new(), Vec::new());
            for part in parts(framed(Box::pin(read))).await {
                match part {
                    Output::Out(bytes) => out.extend_from_slice(&bytes),
                    Output::Err(bytes) => error.extend_from_slice(&bytes),
                }
            }
            assert_eq!((out, error), expected, "chunks of {size}");
        }
    }

    #[tokio::test]
    async fn a_terminals_bytes_are_left_alone() {
        let bytes: &[u8] = b"\x01\0\0\0\0\0\0\x05looks like a frame";
        assert_eq!(parts(raw(bytes)).await, [Output::Out(Bytes::from_static(bytes))]);
    }
}
