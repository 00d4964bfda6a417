//! The little of HTTP that a played daemon speaks.

use std::io::Read;
use std::os::unix::net::UnixStream;

/// Method with path, and body, of one request; none when the caller went away, or sends nothing for five minutes.
pub(crate) fn request(stream: &mut UnixStream) -> Option<(String, String)> {
    stream.set_read_timeout(Some(std::time::Duration::from_mins(5))).ok()?;
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        if stream.read(&mut byte).ok()? == 0 {
            return None;
        }
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    });
    let mut body = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut body).ok()?;
    if head.to_ascii_lowercase().contains("\r\ntransfer-encoding: chunked") {
        // Read to its end: who answers before is taken for gone. An empty body is its last chunk alone.
        let ended = |body: &[u8]| body == b"0\r\n\r\n" || body.ends_with(b"\r\n0\r\n\r\n");
        while !ended(&body) && stream.read(&mut byte).ok()? > 0 {
            body.push(byte[0]);
        }
    }
    let what = head.lines().next()?.split(' ').take(2).collect::<Vec<_>>().join(" ");
    Some((what, String::from_utf8_lossy(&body).into_owned()))
}

/// A whole answer.
pub(crate) fn json(status: u16, body: &str) -> String {
    format!(
        "HTTP/1.1 {status} x\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}
