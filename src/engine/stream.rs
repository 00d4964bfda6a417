//! The daemon's message streams in our words: lines of output, and layers of a pull.
//!
//! Pure: bytes and messages in, lines and sums out.

use std::collections::BTreeMap;

use bollard::models::CreateImageInfo;

/// Cuts a byte stream into lines, however the chunks fall. `\r` ends a line too, as progress bars use it.
#[derive(Debug, Default)]
pub(super) struct Lines {
    rest: Vec<u8>,
}

impl Lines {
    /// Takes a chunk and gives the lines it completed.
    pub(super) fn push(&mut self, chunk: &[u8]) -> Vec<String> {
        let mut lines = Vec::new();
        for &byte in chunk {
            if byte == b'\n' || byte == b'\r' {
                lines.extend(self.finish());
            } else {
                self.rest.push(byte);
            }
        }
        lines
    }

    /// Gives the line that no newline ended, if any.
    pub(super) fn finish(&mut self) -> Option<String> {
        let line = String::from_utf8_lossy(&std::mem::take(&mut self.rest)).trim_end().to_owned();
        (!line.is_empty()).then_some(line)
    }
}

/// Adds up the layers of a pull.
#[derive(Debug, Default)]
pub(super) struct PullProgress {
    layers: BTreeMap<String, (u64, u64)>,
}

impl PullProgress {
    /// Takes one message; gives bytes done and bytes in all if they moved.
    pub(super) fn update(&mut self, message: &CreateImageInfo) -> Option<(u64, u64)> {
        let id = message.id.clone()?;
        let size = |value: Option<i64>| value.and_then(|value| u64::try_from(value).ok());
        let detail = message.progress_detail.as_ref();
        match message.status.as_deref()? {
            "Downloading" => {
                let (done, total) = (size(detail?.current)?, size(detail?.total).unwrap_or(0));
                self.layers.insert(id, (done, total.max(done)));
            }
            "Download complete" | "Pull complete" => {
                let (_, total) = *self.layers.get(&id)?;
                self.layers.insert(id, (total, total));
            }
            _ => return None,
        }
        Some(self.layers.values().fold((0, 0), |(done, total), layer| (done + layer.0, total + layer.1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_whole_whatever_the_chunks() {
        let mut lines = Lines::default();
        assert_eq!(lines.push(b"one\ntw"), ["one"]);
        assert_eq!(lines.push(b"o\r\n\n"), ["two"]);
        assert_eq!(lines.push("50%\r100%\r\u{e9}".as_bytes()), ["50%", "100%"]);
        assert_eq!(lines.finish().as_deref(), Some("\u{e9}"));
        assert_eq!(lines.finish(), None);
    }

    #[test]
    fn a_character_cut_in_two_stays_whole() {
        let mut lines = Lines::default();
        assert!(lines.push(&[0xc3]).is_empty());
        assert_eq!(lines.push(&[0xa9, b'\n']), ["\u{e9}"]);
    }

    #[test]
    fn layers_of_a_pull_add_up() {
        let mut progress = PullProgress::default();
        let message = |line: &str| serde_json::from_str::<CreateImageInfo>(line).expect("a recorded message");
        let mut take = |line| progress.update(&message(line));
        assert_eq!(take(r#"{"status":"Pulling from library/debian","id":"12"}"#), None);
        let first = r#"{"status":"Downloading","progressDetail":{"current":10,"total":100},"id":"aa"}"#;
        assert_eq!(take(first), Some((10, 100)));
        let second = r#"{"status":"Downloading","progressDetail":{"current":5,"total":50},"id":"bb"}"#;
        assert_eq!(take(second), Some((15, 150)));
        assert_eq!(take(r#"{"status":"Download complete","progressDetail":{},"id":"aa"}"#), Some((105, 150)));
        assert_eq!(take(r#"{"status":"Already exists","progressDetail":{},"id":"cc"}"#), None);
    }
}
