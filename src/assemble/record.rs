//! RECORD, the list of files of an installed distribution: read from the wheel, healed and written as uv does it.
//!
//! Pure. Rules compared with uv 0.13.9; see `tests/docker/assemble_rules.rs`.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};

/// One line of RECORD. The order is uv's: by path, then hash, then size.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Row {
    /// The path, relative to site-packages.
    pub(super) path: String,
    /// `sha256=` and base64; other algorithms occur.
    pub(super) hash: Option<String>,
    /// The size in bytes.
    pub(super) size: Option<u64>,
}

impl Row {
    /// Returns the row of a file written by the installer.
    pub(super) fn of_content(path: String, content: &[u8]) -> Self {
        Self { path, hash: Some(hash_field(content)), size: Some(content.len() as u64) }
    }

    /// Returns the SHA-256 of the file; an error if the field is not a hash.
    pub(super) fn sha256(&self) -> Result<Option<[u8; 32]>, &'static str> {
        let Some(text) = self.hash.as_deref().and_then(|hash| hash.strip_prefix("sha256=")) else {
            return Ok(None);
        };
        let bytes = URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')).ok();
        bytes.and_then(|bytes| bytes.try_into().ok()).map(Some).ok_or("RECORD lists an invalid SHA-256")
    }
}

fn hash_field(content: &[u8]) -> String {
    format!("sha256={}", URL_SAFE_NO_PAD.encode(Sha256::digest(content)))
}

/// Returns the rows of a RECORD; an error names the line.
pub(super) fn parse(bytes: &[u8]) -> Result<Vec<Row>, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "RECORD is not UTF-8".to_owned())?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    fields(text)
        .into_iter()
        .enumerate()
        .map(|(at, fields)| {
            let wrong = || format!("RECORD: line {} is not `path,hash,size`", at + 1);
            let [path, hash, size] = <[String; 3]>::try_from(fields).map_err(|_| wrong())?;
            let size = match size.as_str() {
                "" => None,
                size => Some(size.parse().map_err(|_| wrong())?),
            };
            // Some wheels list absolute paths.
            let path = path.trim_start_matches('/').to_owned();
            Ok(Row { path, hash: (!hash.is_empty()).then_some(hash), size })
        })
        .collect()
}

/// Returns the fields of each line of a CSV file; empty lines are not lines.
fn fields(text: &str) -> Vec<Vec<String>> {
    let (mut lines, mut line, mut field) = (Vec::new(), Vec::new(), String::new());
    let (mut quoted, mut started) = (false, false);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => {
                chars.next();
                field.push('"');
            }
            '"' if quoted => quoted = false,
            '"' if field.is_empty() => (quoted, started) = (true, true),
            ',' if !quoted => {
                line.push(std::mem::take(&mut field));
                started = true;
            }
            '\r' | '\n' if !quoted => {
                if started {
                    line.push(std::mem::take(&mut field));
                    lines.push(std::mem::take(&mut line));
                }
                started = false;
            }
            c => {
                field.push(c);
                started = true;
            }
        }
    }
    if started {
        line.push(field);
        lines.push(line);
    }
    lines
}

/// Gives every file of the wheel exactly one row and drops the others, as uv does.
///
/// Of several rows for one file the first one stays. Files without a row get one with their size and no hash; signatures of
/// RECORD itself get none.
pub(super) fn heal(rows: Vec<Row>, dist_info: &str, files: &BTreeMap<&str, u64>) -> Vec<Row> {
    let mut missing = files.clone();
    for signature in ["RECORD.jws", "RECORD.p7s"] {
        let path = format!("{dist_info}/{signature}");
        if !rows.iter().any(|row| plain_path(&row.path) == path) {
            missing.remove(path.as_str());
        }
    }
    let mut healed: Vec<Row> =
        rows.into_iter().filter(|row| missing.remove(plain_path(&row.path).as_str()).is_some()).collect();
    let added =
        missing.into_iter().map(|(path, size)| Row { path: path.to_owned(), hash: None, size: Some(size) });
    healed.extend(added);
    healed
}

/// Returns a path without `.` and empty parts, for comparison: `./a//b` is the file `a/b`.
pub(super) fn plain_path(path: &str) -> String {
    let parts = path.split('/').filter(|part| !matches!(*part, "" | "."));
    parts.collect::<Vec<_>>().join("/")
}

/// Writes RECORD: sorted, quoted where necessary, with `\n`.
pub(super) fn write(mut rows: Vec<Row>) -> Vec<u8> {
    rows.sort();
    let mut text = String::new();
    for Row { path, hash, size } in &rows {
        let size = size.map(|size| size.to_string()).unwrap_or_default();
        for (field, end) in [(path.as_str(), ','), (hash.as_deref().unwrap_or_default(), ','), (&size, '\n')]
        {
            if field.contains([',', '"', '\r', '\n']) {
                text.push('"');
                text.push_str(&field.replace('"', "\"\""));
                text.push('"');
            } else {
                text.push_str(field);
            }
            text.push(end);
        }
    }
    text.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(path: &str, hash: Option<&str>, size: Option<u64>) -> Row {
        Row { path: path.to_owned(), hash: hash.map(str::to_owned), size }
    }

    #[test]
    fn rows_are_read_whatever_the_line_ends() {
        let expected = [row("a,\"b\".py", Some("sha256=x"), Some(4)), row("c", None, None)];
        for text in [
            "\"a,\"\"b\"\".py\",sha256=x,4\nc,,\n",
            "\u{feff}\"a,\"\"b\"\".py\",sha256=x,04\r\n\r\n/c,,",
            "\n\n\"a,\"\"b\"\".py\",\"sha256=x\",4\rc,,\r",
        ] {
            assert_eq!(parse(text.as_bytes()).expect(text), expected, "{text:?}");
        }
        assert_eq!(parse(b""), Ok(Vec::new()));
    }

    #[test]
    fn other_lines_are_rejected_with_their_number() {
        for text in ["a,,\nb\n", "a,,\nb,,x\n", "a,,\nb,,,\n", "a,,\nb,, 4\n", "a,,\n\"b\n,,"] {
            assert_eq!(
                parse(text.as_bytes()),
                Err("RECORD: line 2 is not `path,hash,size`".to_owned()),
                "{text:?}"
            );
        }
        assert!(parse(b"\xff,,").is_err());
    }

    #[test]
    fn healing_follows_the_files() {
        let files =
            BTreeMap::from([("a", 1), ("b", 2), ("x.dist-info/RECORD", 3), ("x.dist-info/RECORD.jws", 4)]);
        let rows = vec![
            row("./a", Some("sha256=1"), Some(1)),
            row("a", None, Some(9)),
            row("gone", None, None),
            row("a/", None, None),
        ];
        let healed = heal(rows, "x.dist-info", &files);
        let expected = [
            row("./a", Some("sha256=1"), Some(1)),
            row("b", None, Some(2)),
            row("x.dist-info/RECORD", None, Some(3)),
        ];
        assert_eq!(healed, expected);
        let signed = heal(vec![row("x.dist-info/RECORD.jws", None, None)], "x.dist-info", &files);
        assert_eq!(signed[0], row("x.dist-info/RECORD.jws", None, None));
    }

    #[test]
    fn written_rows_are_sorted_and_quoted_where_necessary() {
        let rows = vec![
            row("b", None, Some(1)),
            Row::of_content("../../../bin/x".to_owned(), b"x=1\n"),
            row("b", None, None),
            row("a,\"", None, None),
            row("b", Some("sha256=1"), None),
        ];
        let text = String::from_utf8(write(rows)).expect("UTF-8");
        let expected = "../../../bin/x,sha256=mHUu4o1UhL3CgU-3CttqCy-zH2qbjueugf0vyc8wCzs,4\n\
                        \"a,\"\"\",,\nb,,\nb,,1\nb,sha256=1,\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn sha256_is_read_with_or_without_padding() {
        let text = hash_field(b"x");
        for text in [text.clone(), format!("{text}=")] {
            assert_eq!(row("a", Some(&text), None).sha256(), Ok(Some(Sha256::digest(b"x").into())));
        }
        assert_eq!(row("a", Some("sha512=abc"), None).sha256(), Ok(None));
        assert_eq!(row("a", None, None).sha256(), Ok(None));
        for wrong in ["sha256=", "sha256=abc", "sha256=*"] {
            assert!(row("a", Some(wrong), None).sha256().is_err(), "{wrong}");
        }
    }
}
