//! `requirements.txt`: lines, comments, continuations, `-r` includes, hashes. Options with URLs are rejected.

use std::collections::BTreeSet;

use camino::{Utf8Path, Utf8PathBuf};

use super::error::{Place, Problem, ProjectError};
use super::requirement::requirement_name;
use crate::model::sha256::is_sha256_hex;

/// A requirement of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirement {
    /// The requirement alone: `requests>=2`.
    pub text: String,
    /// The normalized package name.
    pub name: String,
    /// SHA-256 hashes that the file allows; empty: any.
    pub hashes: Vec<String>,
    /// Its position: `requirements.txt, line 3`.
    pub origin: String,
}

/// Options that select package sources, which do not belong in a shared file.
const INDEXES: [&str; 7] =
    ["-i", "--index-url", "--extra-index-url", "-f", "--find-links", "--no-index", "--trusted-host"];

/// Files that requirement files include lie in each other at most this deep, and there are at most this many `-r` lines.
const DEEPEST: usize = 32;
const MOST_INCLUDES: usize = 1000;

/// The files that requirements come from.
pub trait RequirementFiles {
    /// The one name of a file, without links and `..`, by which it is known again.
    fn locate(&self, path: &Utf8Path) -> Result<Utf8PathBuf, ProjectError>;
    /// The text of a file: `path` is for messages, `real` its one name.
    fn read(&self, path: &Utf8Path, real: &Utf8Path) -> Result<String, ProjectError>;
}

/// Returns the text of a file with requirements: UTF-8, or UTF-16 with its mark, which PowerShell writes. What is in another encoding
/// becomes replacement characters: in a comment it changes nothing, in a requirement the error names its line.
pub fn decoded(bytes: &[u8]) -> Result<String, &'static str> {
    let wide = match bytes.get(..2) {
        Some([0xff, 0xfe]) => Some(u16::from_le_bytes as fn([u8; 2]) -> u16),
        Some([0xfe, 0xff]) => Some(u16::from_be_bytes as fn([u8; 2]) -> u16),
        _ => None,
    };
    if let Some(unit) = wide {
        let units = bytes[2..].chunks_exact(2).map(|pair| unit([pair[0], pair[1]]));
        let text: Result<String, _> = char::decode_utf16(units).collect();
        return text.map_err(|_| "neither UTF-8 nor UTF-16");
    }
    if bytes.contains(&0) {
        return Err("neither UTF-8 nor UTF-16 with its mark");
    }
    Ok(String::from_utf8_lossy(bytes).trim_start_matches('\u{feff}').to_owned())
}

/// Returns the requirements of a file and its includes, each file once.
pub fn from_requirements(
    file: &Utf8Path,
    files: &dyn RequirementFiles,
) -> Result<Vec<Requirement>, ProjectError> {
    let mut reading = Reading { files, seen: BTreeSet::new(), includes: 0, found: Vec::new() };
    reading.include(file, 0)?;
    Ok(reading.found)
}

/// The files read so far, and what is in them.
struct Reading<'a> {
    files: &'a dyn RequirementFiles,
    seen: BTreeSet<Utf8PathBuf>,
    includes: usize,
    found: Vec<Requirement>,
}

impl Reading<'_> {
    fn include(&mut self, file: &Utf8Path, depth: usize) -> Result<(), ProjectError> {
        let real = self.files.locate(file)?;
        if !self.seen.insert(real.clone()) {
            return Ok(());
        }
        let text = self.files.read(file, &real)?;
        let mut problems = Vec::new();
        for (line, content) in logical_lines(&text) {
            let mut wrong = |text: String, hint: Option<&str>| {
                let place = Some(Place { line, column: 1 });
                problems.push(Problem { place, text, hint: hint.map(str::to_owned) });
            };
            let (option, value) = content.split_once([' ', '=']).unwrap_or((content.as_str(), ""));
            match option {
                "-r" | "--requirement" => {
                    self.includes += 1;
                    if depth == DEEPEST {
                        wrong(
                            format!("`{option}` in more than {DEEPEST} files that include each other"),
                            None,
                        );
                    } else if self.includes > MOST_INCLUDES {
                        wrong(format!("more than {MOST_INCLUDES} lines with `{option}`"), None);
                        break;
                    } else {
                        let folder = file.parent().unwrap_or(Utf8Path::new(""));
                        self.include(&folder.join(value.trim()), depth + 1)?;
                    }
                }
                _ if INDEXES.contains(&option) => wrong(
                    format!("unsupported option `{option}`: it selects a package source"),
                    Some(
                        "add indexes in envforge.toml: `[packages] indexes = [\"NAME\"]`, and their URLs in `[indexes]` of your configuration",
                    ),
                ),
                _ if option.starts_with('-') => {
                    wrong(format!("unsupported option `{option}`"), None);
                }
                _ => match requirement(&content, format!("{file}, line {line}")) {
                    Ok(requirement) => self.found.push(requirement),
                    Err(text) => wrong(text, None),
                },
            }
        }
        if problems.is_empty() {
            return Ok(());
        }
        Err(ProjectError::Invalid { file: file.to_string(), problems })
    }
}

/// Returns the lines joined at `\`, without comments and blank lines, each with its first line number.
fn logical_lines(text: &str) -> impl Iterator<Item = (usize, String)> {
    let mut lines = text.trim_start_matches('\u{feff}').lines().enumerate();
    std::iter::from_fn(move || {
        let (number, first) = lines.next()?;
        let mut whole = without_comment(first).trim_end().to_owned();
        while let Some(part) = whole.strip_suffix('\\') {
            let Some((_, next)) = lines.next() else { break };
            whole = format!("{} {}", part.trim_end(), without_comment(next).trim());
        }
        Some((number + 1, whole.trim().to_owned()))
    })
    .filter(|(_, line)| !line.is_empty())
}

fn without_comment(line: &str) -> &str {
    if line.trim_start().starts_with('#') {
        return "";
    }
    line.split_once(" #").map_or(line, |(before, _)| before)
}

fn requirement(line: &str, origin: String) -> Result<Requirement, String> {
    let mut parts = line.split(" --");
    let text = parts.next().unwrap_or_default().trim().to_owned();
    let name = requirement_name(&text)?;
    let mut hashes = Vec::new();
    for option in parts {
        let hash = option.strip_prefix("hash=").or_else(|| option.strip_prefix("hash ")).map(str::trim);
        match hash.map(|hash| hash.split_once(':')) {
            Some(Some(("sha256", hex))) if is_sha256_hex(hex) => hashes.push(hex.to_owned()),
            // Other algorithms cannot be compared with the SHA-256 of the lock.
            Some(Some((_, _))) => {}
            _ => return Err(format!("unsupported option `--{option}` of `{name}`")),
        }
    }
    Ok(Requirement { text, name, hashes, origin })
}

#[cfg(test)]
mod tests {
    use crate::failure::Failure as _;
    use std::collections::BTreeMap;

    use super::*;

    /// Files by name; `..` is as in a folder without links.
    struct Files {
        texts: BTreeMap<String, String>,
        read: std::cell::Cell<usize>,
    }

    impl RequirementFiles for Files {
        fn locate(&self, path: &Utf8Path) -> Result<Utf8PathBuf, ProjectError> {
            let mut real = Utf8PathBuf::new();
            for part in path.components() {
                if part.as_str() == ".." {
                    real.pop();
                } else {
                    real.push(part);
                }
            }
            let unreadable = || ProjectError::Unreadable {
                file: path.to_string(),
                named_by: "1.txt".to_owned(),
                why: "there is none".to_owned(),
            };
            self.texts.contains_key(real.as_str()).then_some(real).ok_or_else(unreadable)
        }

        fn read(&self, _: &Utf8Path, real: &Utf8Path) -> Result<String, ProjectError> {
            self.read.set(self.read.get() + 1);
            Ok(self.texts[real.as_str()].clone())
        }
    }

    /// Reads the first of these files, and says how many were read.
    fn read_counted(files: &[(&str, &str)]) -> (Result<Vec<Requirement>, ProjectError>, usize) {
        let texts: BTreeMap<_, _> =
            files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
        let files = Files { texts, read: std::cell::Cell::new(0) };
        let first = files.texts.keys().next().expect("one file").clone();
        (from_requirements(Utf8Path::new(&first), &files), files.read.get())
    }

    fn read(files: &[(&str, &str)]) -> Result<Vec<Requirement>, ProjectError> {
        read_counted(files).0
    }

    fn texts(found: &[Requirement]) -> Vec<&str> {
        found.iter().map(|requirement| requirement.text.as_str()).collect()
    }

    #[test]
    fn comments_continuations_and_includes_are_parsed() {
        let found = read(&[
            (
                "a/1.txt",
                "\u{feff}# head\nrequests >= 2  # why\r\n\nrich \\\n  ~=13.0 \\\n\n-r 2.txt\n--requirement=../b.txt",
            ),
            ("a/2.txt", "-r 1.txt\nhttpx[http2]; python_version > '3.8'\n"),
            ("b.txt", "click"),
        ]);
        let found = found.expect("reads");
        let all = ["requests >= 2", "rich ~=13.0", "httpx[http2]; python_version > '3.8'", "click"];
        assert_eq!(texts(&found), all);
        assert_eq!(found[3].origin, "a/../b.txt, line 1", "as the file says it");
        let found = read(&[
            ("1.txt", "\u{feff}# head\nrequests >= 2  # why\r\n\nrich \\\n  ~=13.0\n-r 2.txt\n"),
            ("2.txt", "-r 1.txt\nhttpx[http2]; python_version > '3.8'\n"),
        ]);
        let found = found.expect("reads");
        assert_eq!(texts(&found), ["requests >= 2", "rich ~=13.0", "httpx[http2]; python_version > '3.8'"]);
    }

    /// Each name is another one, and all are one file.
    #[test]
    fn file_that_includes_itself_under_ever_new_names_is_read_once() {
        let (found, read) = read_counted(&[("r.txt", "click\n-r a/../r.txt\n-r b/../a/../r.txt")]);
        assert_eq!((texts(&found.expect("reads")).as_slice(), read), (["click"].as_slice(), 1));
    }

    #[test]
    fn includes_end_at_a_depth_and_a_number() {
        let chain: Vec<_> =
            (0..60).map(|n| (format!("{n:02}.txt"), format!("-r {:02}.txt\na{n}", (n + 1) % 60))).collect();
        let chain: Vec<_> = chain.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        let (found, count) = read_counted(&chain);
        let error = found.expect_err("too deep").to_string();
        assert!(
            error.contains("more than 32 files") && error.contains("32.txt") && count == 33,
            "{error} {count}"
        );
        let many = "-r 1.txt\n".repeat(2000);
        let error = read(&[("1.txt", &many)]).expect_err("too many").to_string();
        assert!(error.contains("more than 1000 lines with `-r`"), "{error}");
        assert!(read(&[("1.txt", &"-r 1.txt\n".repeat(1000))]).is_ok());
    }

    #[test]
    fn text_is_that_of_its_encoding() {
        let wide = |unit: fn(u16) -> [u8; 2]| -> Vec<u8> {
            "\u{feff}torch==2.8.0\r\n".encode_utf16().flat_map(unit).collect()
        };
        for bytes in [
            wide(u16::to_le_bytes),
            wide(u16::to_be_bytes),
            b"\xef\xbb\xbftorch==2.8.0\r\n".to_vec(),
            b"torch==2.8.0\r\n".to_vec(),
        ] {
            assert_eq!(decoded(&bytes), Ok("torch==2.8.0\r\n".to_owned()));
        }
        assert_eq!(decoded(b"rich # caf\xe9"), Ok("rich # caf\u{fffd}".to_owned()));
        assert!(decoded(b"t\0o\0").is_err() && decoded(b"\xff\xfe\x00\xd8").is_err());
    }

    #[test]
    fn hashes_are_kept_with_their_requirement() {
        let hash = "a".repeat(64);
        let found =
            read(&[("1.txt", &format!("rich==13.0 \\\n    --hash=sha256:{hash} \\\n    --hash=md5:x\n"))]);
        assert_eq!(found.expect("reads")[0].hashes, [hash]);
        assert!(read(&[("1.txt", "rich==13 --no-deps")]).is_err());
    }

    #[test]
    fn invalid_lines_are_reported_with_their_number() {
        let error =
            read(&[("1.txt", "good\n-e .\n--index-url https://host/simple\nx @ https://host/x.whl\n")]);
        let error = error.expect_err("refused");
        let text = error.to_string();
        for says in [
            "line 2, column 1: unsupported option `-e`",
            "line 3, column 1: unsupported option `--index-url`",
            "line 4, column 1: URL requirements are not supported: `x`",
        ] {
            assert!(text.contains(says), "{text}");
        }
        assert!(!text.contains("host"), "no address is repeated: {text}");
        assert!(error.hints()[0].contains("[indexes]"));
    }

    #[test]
    fn ten_thousand_lines_are_parsed() {
        let text =
            (0..10_000).fold(String::new(), |all, n| all + &format!("package-{n}>=1.{n}  # the {n}th\n"));
        assert_eq!(read(&[("1.txt", &text)]).expect("reads").len(), 10_000);
    }
}
