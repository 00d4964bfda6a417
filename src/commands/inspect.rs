//! `inspect` and `diff`: what an image or lock holds, and what is another in another.

use std::fmt::Write as _;

use camino::Utf8Path;
use serde::Serialize;

use crate::engine::ImageInfo;
use crate::failure::Exit;
use crate::model::byte_size::gigabytes;
use crate::model::counted::counted;
use crate::model::lock::{Change, Lock, layer_name};
use crate::model::request::{self, ProjectOptions};
use crate::model::verdict::Proven;
use crate::model::visible::visible_line;
use crate::pages::diff_page;
use crate::report::Printer;
use crate::settings::Settings;
use crate::store::write_atomically;
use crate::workflow::content_digest::kept_list;
use crate::workflow::error::CommandError;
use crate::workflow::image_error::ImageError;
use crate::workflow::image_info::{NamedImage, described};
use crate::workflow::proven::proven;
use crate::workflow::request_error::RequestError;
use crate::workflow::required_evidence::proven_by_key;
use crate::workflow::session::{LazySession, Session};
use crate::workflow::spec_parts::{restricted_name, restricted_names};

/// What `inspect --json` prints.
#[derive(Serialize)]
struct InspectReport<'a> {
    schema: u32,
    name: &'a str,
    image: Option<&'a str>,
    tags: &'a [String],
    size: Option<u64>,
    labels: Option<&'a std::collections::BTreeMap<String, String>>,
    /// True if every required check passed on a GPU that counts, by the reports of this machine.
    verified: bool,
    #[serde(flatten)]
    proven: Option<Proven>,
    /// Whose key proves it for this machine; null: none that is trusted, or it was not asked for, since this machine verified it itself.
    evidence: Option<String>,
    lock: Option<&'a Lock>,
}

/// What `diff --json` prints.
#[derive(Serialize)]
struct DiffReport<'a> {
    schema: u32,
    from: &'a str,
    to: &'a str,
    changes: &'a [Change],
    /// Layers both have, and how many each has; null: one is not built.
    layers: Option<[usize; 3]>,
    /// Paths that differ; null: the content of one was never listed (`build --locked` lists it).
    paths: Option<&'a [String]>,
}

pub(super) async fn inspect(args: &request::Inspect, settings: &Settings) -> Result<Exit, CommandError> {
    let name = restricted_name(args.name.as_ref(), &args.parts, &settings.matrix)?;
    let lazy = LazySession::of(settings);
    let session = lazy.session().await?;
    let found = described(session, name.as_deref(), &args.project).await?;
    if args.sbom {
        let lock = found.lock.as_ref().ok_or_else(|| unknown_lock(&found.name))?;
        Printer.json(&lock.spdx(&found.name, &session.matrix));
        return Ok(Exit::Done);
    }
    let image = found.image.as_ref();
    let proven = image.map(|image| proven(&session.store, &*session.reporter, image)).transpose()?;
    let evidence = match image.zip(proven.as_ref()) {
        Some((image, proven)) if !proven.is_verified() => proven_by_key(session, image).await?,
        _ => None,
    };
    let evidence = evidence.map(|by| by.text());
    if settings.output.json {
        Printer.json(&InspectReport {
            schema: 1,
            name: &found.name,
            image: image.map(|image| image.id.as_str()),
            tags: image.map_or(&[], |image| &image.tags),
            size: image.map(|image| image.size),
            labels: image.map(|image| &image.labels),
            verified: proven.as_ref().is_some_and(Proven::is_verified),
            proven,
            evidence,
            lock: found.lock.as_ref(),
        });
    } else {
        Printer.text(text(&found, proven.as_ref(), evidence.as_deref()).trim_end());
    }
    Ok(Exit::Done)
}

/// Writes a page.
pub(super) fn save(settings: &Settings, file: &Utf8Path, page: &str) -> Result<(), CommandError> {
    Ok(write_atomically(&settings.paths.current_dir.join(file), page.as_bytes())?)
}

fn unknown_lock(name: &str) -> CommandError {
    ImageError::UnknownLock { image: name.to_owned() }.into()
}

fn text(found: &NamedImage, proven: Option<&Proven>, evidence: Option<&str>) -> String {
    let mut text = format!("{}\n\n", found.name);
    let mut line = |name: &str, value: &str| {
        // Labels of an image from elsewhere hold anything, further lines too.
        let _ = writeln!(text, "  {:<12}  {}", visible_line(name), visible_line(value));
    };
    match &found.image {
        Some(image) => {
            line("image", &image.id);
            line("tags", &image.tags.join("  "));
            line("size", &gigabytes(image.size));
        }
        None => line("image", "not built on this engine"),
    }
    if let Some(proven) = proven {
        line("state", &proven.to_string());
    }
    if let Some(evidence) = evidence {
        line("evidence", &format!("proven {evidence}"));
    }
    let Some(lock) = &found.lock else {
        if let Some(image) = &found.image {
            for (name, value) in &image.labels {
                line(name.rsplit('.').next().unwrap_or(name), value);
            }
        }
        text.push_str("\nlock file not found: only the labels of the image are known\n");
        return text;
    };
    line("spec", &lock.spec);
    line("lock", &lock.hash());
    line("made", &lock.records.created);
    line("stack", &lock.stack.title());
    line("python", &lock.stack.python.to_string());
    line("base", &format!("{} ({})", lock.base.name, lock.base.suite));
    if let Some(content) = &lock.records.content {
        line("content", content);
    }
    for (name, value) in &lock.environment {
        line("variable", &format!("{name}={value}"));
    }
    let debs = [
        ("base", &lock.base.packages),
        ("system", &lock.system),
        ("toolkit", &lock.unpacked),
        ("apt", &lock.apt),
    ];
    for (part, list) in debs {
        for deb in list {
            let _ = writeln!(text, "{part:<10} {} {}", deb.name, deb.version);
        }
    }
    for wheel in &lock.wheels {
        let _ = writeln!(text, "{:<10} {} {}", layer_name(wheel.layer), wheel.name, wheel.version);
    }
    text
}

pub(super) async fn diff(args: &request::Diff, settings: &Settings) -> Result<Exit, CommandError> {
    if let (Some(spec), Some(option)) = (args.to.clone(), args.project.option()) {
        return Err(RequestError::SpecAndProject { spec, option }.into());
    }
    let mut names =
        restricted_names(std::iter::once(&args.from).chain(&args.to), &args.parts, &settings.matrix)?
            .into_iter();
    let lazy = LazySession::of(settings);
    let session = lazy.session().await?;
    let from = described(session, names.next().as_deref(), &ProjectOptions::default()).await?;
    let to = described(session, names.next().as_deref(), &args.project).await?;
    let lock = |side: &NamedImage| side.lock.clone().ok_or_else(|| unknown_lock(&side.name));
    let (old, new) = (lock(&from)?, lock(&to)?);
    let changes = old.changes(&new);
    let layers = from.image.as_ref().zip(to.image.as_ref()).map(|(one, other)| common(one, other));
    let paths = paths(session, &old, &new)?;
    let (from, to) = (from.name.as_str(), to.name.as_str());
    let report = DiffReport { schema: 1, from, to, changes: &changes, layers, paths: paths.as_deref() };
    if let Some(file) = &args.html {
        save(settings, file, &diff_page(&report))?;
    }
    if settings.output.json {
        Printer.json(&report);
        return Ok(Exit::Done);
    }
    for change in &changes {
        Printer.text(&change.to_string());
    }
    for path in paths.iter().flatten() {
        Printer.text(&format!("content: {path}"));
    }
    if !settings.output.quiet {
        if let Some([both, one, other]) = layers {
            Printer.say(&format!("{} shared, of {one} and {other}", counted(both, "layer")));
        }
        match &paths {
            None => Printer.say("run `envforge build --locked` for both to compare paths"),
            Some(paths) => Printer.say(&format!("content differs at {}", counted(paths.len(), "path"))),
        }
        Printer.say(&counted(changes.len(), "change"));
    }
    Ok(Exit::Done)
}

fn common(one: &ImageInfo, other: &ImageInfo) -> [usize; 3] {
    let both = one.layers.iter().zip(&other.layers).take_while(|(one, other)| one == other).count();
    [both, one.layers.len(), other.layers.len()]
}

/// The paths that differ, if the content of both was listed.
fn paths(session: &Session<'_>, old: &Lock, new: &Lock) -> Result<Option<Vec<String>>, CommandError> {
    let list = |lock: &Lock| match &lock.records.content {
        Some(digest) => kept_list(session, lock, digest),
        None => Ok(None),
    };
    let (Some(old), Some(new)) = (list(old)?, list(new)?) else { return Ok(None) };
    Ok(Some(old.differences(&new).iter().map(ToString::to_string).collect()))
}
