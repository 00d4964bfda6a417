//! The daemon of another machine: `ssh … docker system dial-stdio`, as in the docker client.
//!
//! ssh handles keys, known hosts and jumps. Its error output is the error of a failed connection.

use std::io;
use std::pin::{Pin, pin};
use std::process::Stdio;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout};

use super::address::SshTarget;
use crate::host::async_child;

/// The size limit of ssh's retained error output.
const STDERR_LIMIT: usize = 4096;

/// A connection; its child process ends with it.
pub(in crate::engine) struct SshStream {
    _child: Child,
    stdin: Option<ChildStdin>,
    stdout: ChildStdout,
    stderr: Option<ChildStderr>,
    errors: Vec<u8>,
    connected: bool,
}

/// Returns the arguments of `ssh`.
fn arguments(target: &SshTarget) -> Vec<String> {
    // BatchMode: a prompt would appear without a reader, once per connection.
    let mut words: Vec<String> =
        ["-T", "-o", "ConnectTimeout=30", "-o", "BatchMode=yes"].map(str::to_owned).into();
    if let Some(user) = &target.user {
        words.extend(["-l".to_owned(), user.clone()]);
    }
    if let Some(port) = target.port {
        words.extend(["-p".to_owned(), port.to_string()]);
    }
    words.extend(["--".to_owned(), target.host.clone(), "docker".to_owned()]);
    if let Some(socket) = &target.socket {
        // ssh passes one line to the remote shell.
        words.extend(["--host".to_owned(), format!("'unix://{}'", socket.replace('\'', r"'\''"))]);
    }
    words.extend(["system".to_owned(), "dial-stdio".to_owned()]);
    words
}

/// Starts ssh; the first read reports a failed connection.
pub(in crate::engine) fn connect(target: &SshTarget) -> io::Result<SshStream> {
    let mut command = async_child("ssh");
    command.args(arguments(target)).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // A separate process group: Ctrl-C in the terminal must keep the connection for the clean-up.
    command.process_group(0).kill_on_drop(true);
    let mut child = command
        .spawn()
        .map_err(|error| io::Error::new(error.kind(), format!("cannot run `ssh`: {error}")))?;
    let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
    Ok(SshStream {
        stdin,
        stdout: stdout.expect("it is piped"),
        stderr: child.stderr.take(),
        errors: Vec::new(),
        connected: false,
        _child: child,
    })
}

impl SshStream {
    /// Reads ssh's error output so far; ready at its end.
    fn poll_stderr(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while let Some(stderr) = &mut self.stderr {
            let mut bytes = Vec::with_capacity(512);
            match pin!(stderr.read_buf(&mut bytes)).poll(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(1..)) => {
                    if self.errors.len() < STDERR_LIMIT {
                        self.errors.extend_from_slice(&bytes);
                    }
                }
                Poll::Ready(_) => self.stderr = None,
            }
        }
        Poll::Ready(())
    }

    /// Returns the error of a failed connection.
    fn poll_failure(&mut self, cx: &mut Context<'_>) -> Poll<io::Error> {
        self.poll_stderr(cx).map(|()| {
            let text = String::from_utf8_lossy(&self.errors).trim().replace(['\r', '\n'], "; ");
            let text = if text.is_empty() { "ssh exited without output".to_owned() } else { text };
            io::Error::new(io::ErrorKind::NotConnected, text)
        })
    }
}

impl AsyncRead for SshStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let _ = self.poll_stderr(cx);
        let before = buf.filled().len();
        match Pin::new(&mut self.stdout).poll_read(cx, buf) {
            Poll::Ready(Ok(())) if buf.filled().len() == before && !self.connected && buf.remaining() > 0 => {
                self.poll_failure(cx).map(Err)
            }
            Poll::Ready(Ok(())) => {
                self.connected = true;
                Poll::Ready(Ok(()))
            }
            other => other,
        }
    }
}

impl AsyncWrite for SshStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let Some(stdin) = &mut self.stdin else { return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())) };
        match Pin::new(stdin).poll_write(cx, buf) {
            Poll::Ready(Err(_)) if !self.connected => self.poll_failure(cx).map(Err),
            other => other,
        }
    }
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stdin.as_mut().map_or(Poll::Ready(Ok(())), |stdin| Pin::new(stdin).poll_flush(cx))
    }
    /// Closes the pipe, which `dial-stdio` forwards as the end of the input.
    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stdin = None;
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_match_the_docker_clients() {
        let target = SshTarget {
            user: Some("me".to_owned()),
            host: "box".to_owned(),
            port: Some(2222),
            socket: Some("/run/it's.sock".to_owned()),
        };
        let words = arguments(&target).join(" ");
        assert!(
            words.ends_with(
                r"-l me -p 2222 -- box docker --host 'unix:///run/it'\''s.sock' system dial-stdio"
            ),
            "{words}"
        );
    }
}
