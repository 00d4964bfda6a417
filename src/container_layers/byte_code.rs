//! Byte code of wheels, from a container without network, secrets or any other package: kept by wheel and by everything in the image
//! that compiled it.
//!
//! A distribution's byte code is a function of its sources, their paths in the image and the Python: one fresh process each,
//! without site, so no code of a wheel runs.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::error::LayerError;
use super::limits::MOST_CODE;
use super::step::Tools;
use crate::assemble::LAYOUT_VERSION;
use crate::engine::{ContainerFile, RunLimits, RunRequest};
use crate::model::sha256::sha256_hex;
use crate::store::old_byte_code::BYTE_CODE;
use crate::store::{SealedRecords, Store, StoreError};

const SCRIPT: &str = concat!(
    include_str!("../../templates/steps/one_module.py"),
    include_str!("../../templates/steps/byte_code.py")
);
/// A slow machine compiles the modules of a batch in minutes.
const TIME: Duration = Duration::from_hours(1);
/// Raised when the same sources give other byte code than before.
const LAYOUT: u32 = 3;
/// Sources of one container, bytes: what is sent and received lies in memory, several times.
pub const BATCH: u64 = 48 << 20;
const WHAT: &str = "byte code";

/// A module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceFile {
    /// Its path in the image.
    pub path: String,
    /// Its source, or its byte code.
    pub content: Bytes,
}

/// The modules of a wheel.
#[derive(Debug, Clone)]
pub struct Distribution {
    /// SHA-256 of the wheel, hex.
    pub wheel: String,
    /// Its modules, sorted by path.
    pub sources: Vec<SourceFile>,
}

/// The Python that compiles.
#[derive(Debug, Clone, Copy)]
pub struct Interpreter<'a> {
    /// An image that has it, by tag.
    pub image: &'a str,
    /// Everything that the image has, as a hash: the scripts of a package of the distribution may have changed any of it.
    pub identity: &'a str,
}

/// The byte code of a wheel in the cache.
pub fn kept(store: &Store, wheel: &str, identity: &str) -> Option<Vec<SourceFile>> {
    // What cannot be read is made again.
    let frames = records(store).read(&name_of(wheel, identity), MOST_CODE as u64)?;
    let mut all = read(frames.into())?;
    (all.len() == 1).then(|| all.remove(0))
}

/// Whether the cache has the byte code of a wheel, whole or not.
pub fn is_kept(store: &Store, wheel: &str, identity: &str) -> bool {
    records(store).path(&name_of(wheel, identity)).is_ok_and(|path| path.is_file())
}

/// What the layer of the byte code of some wheels is a function of, as a hash: the Python, each wheel (SHA-256) and the paths
/// that it leaves out.
pub fn layer_key<'a>(identity: &str, wheels: impl Iterator<Item = (&'a str, BTreeSet<&'a str>)>) -> String {
    let mut text = format!("byte code {LAYOUT} {LAYOUT_VERSION}\n{identity}\n{SCRIPT}\n");
    for (sha256, left_out) in wheels {
        text.extend([sha256, "\n"]);
        text.extend(left_out.into_iter().flat_map(|path| [" ", path, "\n"]));
    }
    sha256_hex(text.as_bytes())
}

/// Compiles distributions in one container and keeps their byte code.
pub async fn compile(
    tools: &Tools<'_>,
    python: Interpreter<'_>,
    distributions: Vec<Distribution>,
) -> Result<(), LayerError> {
    if distributions.is_empty() {
        return Ok(());
    }
    let sources: Vec<&[SourceFile]> = distributions.iter().map(|one| one.sources.as_slice()).collect();
    let frames = write(&sources);
    let sent: Vec<(String, Vec<String>)> = distributions
        .into_iter()
        .map(|one| (one.wheel, one.sources.into_iter().map(|source| source.path).collect()))
        .collect();
    let answer = run(tools, python.image, frames.into()).await?;
    let wrong = |found: String| LayerError::ByteCode { found };
    let answer = read(answer).ok_or_else(|| wrong("an answer that cannot be read".to_owned()))?;
    if answer.len() != sent.len() {
        return Err(wrong(format!("{} distributions for {}", answer.len(), sent.len())));
    }
    for ((wheel, modules), code) in sent.iter().zip(&answer) {
        check(modules, code).map_err(wrong)?;
        keep(tools.store, wheel, python.identity, code)?;
    }
    Ok(())
}

/// Runs the compiler over the frames of sources; returns those of byte code.
async fn run(tools: &Tools<'_>, image: &str, sources: Bytes) -> Result<Bytes, LayerError> {
    let file =
        |name: &str, bytes: Bytes| ContainerFile { path: format!("/envforge/{name}"), mode: 0o644, bytes };
    let command = ["/usr/bin/python3", "-I", "-S", "/envforge/byte_code.py"].map(str::to_owned).to_vec();
    let limits = RunLimits::on(tools.engine.info(), TIME, MOST_CODE);
    let request = RunRequest {
        user: Some("65534:65534".to_owned()),
        files: vec![file("byte_code.py", Bytes::from_static(SCRIPT.as_bytes())), file("sources", sources)],
        ..RunRequest::bounded(image, command, limits)
    };
    let outcome = tools.engine.run(request, Arc::clone(&tools.reporter)).await?;
    if let Some(limit) = outcome.reached {
        let output = vec![format!("ended: it {limit}")];
        return Err(LayerError::Step { what: WHAT, code: outcome.code, output });
    }
    if outcome.code == 0 {
        return Ok(outcome.stdout.into());
    }
    let text = String::from_utf8_lossy(&outcome.stderr);
    let output = text.lines().rev().take(20).map(str::to_owned).collect::<Vec<_>>();
    let output = output.into_iter().rev().collect();
    Err(LayerError::Step { what: WHAT, code: outcome.code, output })
}

/// Only byte code of the modules that were sent, each where Python looks for it.
fn check(sent: &[String], code: &[SourceFile]) -> Result<(), String> {
    let mut modules = sent.iter();
    for file in code {
        let of = |source: &String| {
            let (folder, name) = source.rsplit_once('/').unwrap_or(("", source));
            let stem = name.strip_suffix(".py").unwrap_or(name);
            let tag = file.path.strip_prefix(&format!("{folder}/__pycache__/{stem}."));
            tag.and_then(|tag| tag.strip_suffix(".pyc")).is_some_and(|tag| !tag.contains('/'))
        };
        if !modules.any(of) {
            return Err(format!("`{}`, which was not requested", file.path.escape_default()));
        }
    }
    Ok(())
}

/// Keeps the byte code of a wheel.
pub fn keep(store: &Store, wheel: &str, identity: &str, code: &[SourceFile]) -> Result<(), StoreError> {
    records(store).write(&name_of(wheel, identity), &write(&[code]))
}

fn records(store: &Store) -> SealedRecords {
    SealedRecords::new(store, BYTE_CODE)
}

fn name_of(wheel: &str, identity: &str) -> String {
    let key = sha256_hex(format!("{LAYOUT} {wheel} {identity} {SCRIPT}").as_bytes());
    format!("{wheel}-{}", &key[..16])
}

/// Writes the frames that `byte_code.py` reads.
fn write(distributions: &[&[SourceFile]]) -> Vec<u8> {
    let mut out = Vec::new();
    for files in distributions {
        out.extend(format!("D {}\n", files.len()).bytes());
        for file in *files {
            out.extend(format!("F {} {}\n", file.path.len(), file.content.len()).bytes());
            out.extend(file.path.bytes());
            out.extend(&file.content);
        }
    }
    out
}

/// Reads frames; `None`: they are cut or wrong.
fn read(mut frames: Bytes) -> Option<Vec<Vec<SourceFile>>> {
    let mut all = Vec::new();
    while !frames.is_empty() {
        let count: usize = line(&mut frames)?.strip_prefix("D ")?.parse().ok()?;
        let mut files = Vec::new();
        for _ in 0..count {
            let head = line(&mut frames)?;
            let (path, content) = head.strip_prefix("F ")?.split_once(' ')?;
            let path = take(&mut frames, path.parse().ok()?)?;
            let path = String::from_utf8(path.to_vec()).ok()?;
            files.push(SourceFile { path, content: take(&mut frames, content.parse().ok()?)? });
        }
        all.push(files);
    }
    Some(all)
}

fn line(frames: &mut Bytes) -> Option<String> {
    let end = frames.iter().take(64).position(|byte| *byte == b'\n')?;
    let line = frames.split_to(end + 1);
    String::from_utf8(line[..end].to_vec()).ok()
}

fn take(frames: &mut Bytes, count: usize) -> Option<Bytes> {
    (count <= frames.len()).then(|| frames.split_to(count))
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test forges a file")]
mod tests {
    use super::*;

    fn file(path: &str, content: &'static str) -> SourceFile {
        SourceFile { path: path.to_owned(), content: Bytes::from_static(content.as_bytes()) }
    }

    #[test]
    fn frames_are_read_as_they_were_written() {
        let (one, two) = (vec![file("/a.py", "1\n"), file("/b/ä.py", "")], vec![]);
        let frames = Bytes::from(write(&[&one, &two]));
        assert_eq!(read(frames.clone()), Some(vec![one, two]));
        for end in 0..frames.len() {
            assert!(read(frames.slice(..end)).is_none_or(|read| read.len() < 2), "{end}");
        }
    }

    #[test]
    fn byte_code_of_a_module_that_was_not_sent_is_refused() {
        let sent = ["/e/a.py", "/e/b/__init__.py"].map(str::to_owned);
        let answer = |paths: &[&str]| -> Vec<_> { paths.iter().map(|path| file(path, "")).collect() };
        let ok = ["/e/__pycache__/a.cpython-311.pyc", "/e/b/__pycache__/__init__.cpython-311.pyc"];
        for fine in [&ok[..], &ok[1..], &[]] {
            assert_eq!(check(&sent, &answer(fine)), Ok(()));
        }
        for bad in ["/e/__pycache__/c.cpython-311.pyc", "/e/a.pyc", "/e/__pycache__/a.x/../../../b.pyc"] {
            assert!(check(&sent, &answer(&[bad])).is_err(), "{bad}");
        }
        let twice = [ok[0], ok[0]];
        assert!(check(&sent, &answer(&twice)).is_err());
    }

    #[test]
    fn damaged_byte_code_in_the_cache_is_made_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = camino::Utf8Path::from_path(folder.path()).expect("UTF-8");
        let store = Store::open(&root.join("cache"), &root.join("state")).expect("a store");
        let code = vec![file("/a/__pycache__/b.cpython-311.pyc", "code")];
        keep(&store, "wheel", "python", &code).expect("kept");
        assert_eq!(kept(&store, "wheel", "python"), Some(code));
        assert_eq!(kept(&store, "wheel", "another python"), None);
        let place = records(&store).path(&name_of("wheel", "python")).expect("a key");
        let mut bytes = fs_err::read(&place).expect("a file");
        *bytes.last_mut().expect("not empty") ^= 1;
        fs_err::write(&place, bytes).expect("written");
        assert_eq!(kept(&store, "wheel", "python"), None);
        let forged = write(&[&[file("/a/__pycache__/b.cpython-311.pyc", "of somebody else")]]);
        let hash = sha256_hex(&forged).into_bytes();
        for text in [forged.clone(), [hash, forged].concat()] {
            fs_err::write(&place, text).expect("written");
            assert_eq!(kept(&store, "wheel", "python"), None, "code that was not compiled here");
        }
    }
}
