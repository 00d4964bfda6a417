//! The daemon's message streams in our words: lines of output, and layers of a pull.
//!
//! Pure: bytes and messages in, lines and sums out.

use std::collections::{BTreeMap, VecDeque};

use bollard::models::{CreateImageInfo, PushImageInfo};

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

/// Lines of output kept of a step.
pub(super) const KEPT: usize = 40;

/// The last lines somebody said.
#[derive(Debug, Default)]
pub(super) struct LastLines(VecDeque<String>);

impl LastLines {
    pub(super) fn push(&mut self, line: &str) {
        if self.0.len() == KEPT {
            self.0.pop_front();
        }
        self.0.push_back(line.to_owned());
    }

    pub(super) fn take(&mut self) -> Vec<String> {
        std::mem::take(&mut self.0).into()
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

/// Adds up the layers of a push. The client library leaves out their ids, so a layer is known by its size.
#[derive(Debug, Default)]
pub(super) struct PushProgress {
    layers: BTreeMap<u64, u64>,
}

impl PushProgress {
    /// Takes one message; gives bytes done and bytes in all if they moved.
    pub(super) fn update(&mut self, message: &PushImageInfo) -> Option<(u64, u64)> {
        if message.status.as_deref() != Some("Pushing") {
            return None;
        }
        let detail = message.progress_detail.as_ref()?;
        let size = |value: Option<i64>| value.and_then(|value| u64::try_from(value).ok());
        let total = size(detail.total).filter(|total| *total > 0)?;
        // The tar around a layer makes it a little longer than announced.
        self.layers.insert(total, size(detail.current)?.min(total));
        Some((self.layers.values().sum(), self.layers.keys().sum()))
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

    #[test]
    fn layers_of_a_push_add_up() {
        let mut progress = PushProgress::default();
        let message = |line: &str| serde_json::from_str::<PushImageInfo>(line).expect("a recorded message");
        let mut take = |line| progress.update(&message(line));
        assert_eq!(take(r#"{"status":"Preparing","progressDetail":{},"id":"aa"}"#), None);
        let first = r#"{"status":"Pushing","progressDetail":{"current":10,"total":100},"id":"aa"}"#;
        assert_eq!(take(first), Some((10, 100)));
        let second = r#"{"status":"Pushing","progressDetail":{"current":60,"total":50},"id":"bb"}"#;
        assert_eq!(take(second), Some((60, 150)));
        assert_eq!(take(r#"{"status":"Pushing","progressDetail":{"current":60},"id":"cc"}"#), None);
        assert_eq!(take(r#"{"status":"Layer already exists","progressDetail":{},"id":"dd"}"#), None);
    }
}
