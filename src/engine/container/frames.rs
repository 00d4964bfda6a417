//! Output of programs in containers: the bytes of a terminal unchanged, or two streams in frames.

use std::io;

use bytes::{Buf, Bytes, BytesMut};
use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use tokio::io::{AsyncRead, AsyncReadExt as _};

use crate::engine::container::program::Output;
use crate::engine::transport::dial::Connection;

/// Bytes read at once.
const CHUNK: usize = 32 * 1024;
/// The header of a frame: stream, three zeros, length.
const HEAD: usize = 8;

/// Splits a program's output: the bytes of a terminal unchanged, or two streams in frames.
pub(super) fn output(
    read: tokio::io::ReadHalf<Connection>,
    terminal: bool,
) -> BoxStream<'static, io::Result<Output>> {
    if terminal { raw(read).boxed() } else { framed(read).boxed() }
}

/// Returns the bytes unchanged.
fn raw(read: impl AsyncRead + Unpin + Send) -> impl futures_util::Stream<Item = io::Result<Output>> {
    stream::try_unfold((read, BytesMut::new()), |(mut read, mut buffer)| async move {
        buffer.reserve(CHUNK);
        let got = read.read_buf(&mut buffer).await?;
        Ok((got > 0).then(|| (Output::Out(buffer.split().freeze()), (read, buffer))))
    })
}

/// Splits two streams in frames. Returns a large frame in parts.
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
    async fn framed_separates_streams_regardless_of_chunks() {
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
    async fn raw_keeps_terminal_bytes_unchanged() {
        let bytes: &[u8] = b"\x01\0\0\0\0\0\0\x05looks like a frame";
        assert_eq!(parts(raw(bytes)).await, [Output::Out(Bytes::from_static(bytes))]);
    }
}
