//! `images` and `prune`: what envforge built on this engine, and what of it no lock in use names.
#![expect(clippy::disallowed_methods, reason = "asks the clock for the age of files of the cache")]

use std::fmt::Write as _;
use std::time::SystemTime;

use serde::Serialize;

use crate::engine::ImageInfo;
use crate::failure::Exit;
use crate::model::byte_size::gigabytes;
use crate::model::image::inventory::shared;
use crate::model::image::plan::{LOCK_LABEL, UNVERIFIED};
use crate::model::request;
use crate::report::Printer;
use crate::settings::Settings;
use crate::store::known_locks::{LocksInUse, in_use, known_lock};
use crate::store::unused::{remove, unused as unused_files};
use crate::workflow::error::CommandError;
use crate::workflow::session::Session;
use crate::workflow::shell::ETC_LABEL;

const NAME_LABEL: &str = "io.envforge.name";
const SPEC_LABEL: &str = "io.envforge.spec";

/// What `images --json` and `prune --json` print.
#[derive(Serialize)]
struct Report<'a> {
    schema: u32,
    /// True if they were removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    removed: Option<bool>,
    images: Vec<Row<'a>>,
    /// Volumes of `shell` that belong to images which are gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    volumes: Option<Vec<String>>,
    /// Files of the cache that no lock in use names.
    #[serde(skip_serializing_if = "Option::is_none")]
    cache: Option<CacheReport>,
}

/// Files of the cache.
#[derive(Debug, Clone, Copy, Serialize)]
struct CacheReport {
    files: usize,
    bytes: u64,
}

/// One image.
#[derive(Serialize)]
struct Row<'a> {
    id: &'a str,
    name: &'a str,
    spec: &'a str,
    lock: &'a str,
    tags: &'a [String],
    /// True if a tag without `-unverified` says that its checks ran on a GPU.
    verified: bool,
    size: u64,
    /// Bytes that other images of envforge share.
    shared: u64,
    /// True if a lock in use names it.
    in_use: bool,
}

pub(super) async fn images(settings: &Settings) -> Result<Exit, CommandError> {
    let session = Session::open(settings, None).await?;
    let all = session.engine.images(LOCK_LABEL).await?;
    let used = in_use(&session.store);
    let rows: Vec<_> = all.iter().map(|image| row(image, &all, is_in_use(image, &all, &used))).collect();
    if settings.output.json {
        Printer.json(&Report { schema: 1, removed: None, images: rows, volumes: None, cache: None });
    } else {
        Printer.text(table(&rows).trim_end());
    }
    Ok(Exit::Done)
}

pub(super) async fn prune(args: &request::Prune, settings: &Settings) -> Result<Exit, CommandError> {
    let session = Session::open(settings, None).await?;
    let all = session.engine.images(LOCK_LABEL).await?;
    let used = in_use(&session.store);
    // An image of somebody else's state folder is somebody else's.
    let ours = |image: &&ImageInfo| {
        !is_in_use(image, &all, &used) && known_lock(&session.store, lock_of(image)).is_some()
    };
    let unused: Vec<_> = all.iter().filter(ours).collect();
    let volumes = stale_volumes(&session, &unused).await?;
    let files = if args.cache { unused_files(&session.store, SystemTime::now()) } else { Vec::new() };
    let cache = args
        .cache
        .then(|| CacheReport { files: files.len(), bytes: files.iter().map(|file| file.size).sum() });
    if args.yes {
        remove(&files)?;
        for image in &unused {
            if image.tags.is_empty() {
                session.engine.remove_image(&image.id).await?;
            }
            for tag in &image.tags {
                session.engine.remove_image(tag).await?;
            }
        }
        for volume in &volumes {
            session.containers.remove_volume(volume).await?;
        }
    }
    let rows: Vec<_> = unused.iter().map(|image| row(image, &all, false)).collect();
    let own: u64 = rows.iter().map(|row| row.size - row.shared.min(row.size)).sum();
    if settings.output.json {
        let volumes = Some(volumes);
        Printer.json(&Report { schema: 1, removed: Some(args.yes), images: rows, volumes, cache });
        return Ok(Exit::Done);
    }
    if !rows.is_empty() {
        Printer.text(table(&rows).trim_end());
    }
    for volume in &volumes {
        Printer.text(&format!("volume {volume}"));
    }
    if !settings.output.quiet {
        let count = rows.len();
        let own = gigabytes(own);
        Printer.say(&match (count, args.yes) {
            (0, _) => "no image to remove: all are in use".to_owned(),
            (_, true) => format!("{count} removed, at least {own} freed"),
            (_, false) => format!("{count} would be removed, at least {own} freed: envforge prune --yes"),
        });
        if let Some(CacheReport { files, bytes }) = cache {
            let bytes = gigabytes(bytes);
            Printer.say(&match (files, args.yes) {
                (0, _) => "no file of the cache to remove".to_owned(),
                (_, true) => format!("{files} files of the cache removed, {bytes} freed"),
                (_, false) => {
                    format!("{files} files of the cache would be removed, {bytes} freed: envforge prune --cache --yes")
                }
            });
        }
    }
    Ok(Exit::Done)
}

/// Volumes that hold /etc for users of an image which is gone, or is among these.
async fn stale_volumes(session: &Session<'_>, unused: &[&ImageInfo]) -> Result<Vec<String>, CommandError> {
    let mut stale = Vec::new();
    for (volume, image) in session.containers.volumes(ETC_LABEL).await? {
        if unused.iter().any(|one| one.id == image) || session.engine.image(&image).await?.is_none() {
            stale.push(volume);
        }
    }
    Ok(stale)
}

/// Whether a lock in use refers to it, and no later image of that lock, in either schema, has taken its tags.
fn is_in_use(image: &ImageInfo, all: &[ImageInfo], used: &LocksInUse) -> bool {
    let Some(lock) = used.get(lock_of(image)) else { return false };
    let is_tagged = |other: &ImageInfo| used.get(lock_of(other)) == Some(lock) && !other.tags.is_empty();
    !image.tags.is_empty() || !all.iter().any(is_tagged)
}

fn lock_of(image: &ImageInfo) -> &str {
    image.labels.get(LOCK_LABEL).map_or("", String::as_str)
}

fn row<'a>(image: &'a ImageInfo, all: &[ImageInfo], in_use: bool) -> Row<'a> {
    let label = |name: &str| image.labels.get(name).map_or("", String::as_str);
    Row {
        id: &image.id,
        name: label(NAME_LABEL),
        spec: label(SPEC_LABEL),
        lock: lock_of(image),
        tags: &image.tags,
        verified: image.tags.iter().any(|tag| !tag.ends_with(UNVERIFIED)),
        size: image.size,
        shared: shared(image, all),
        in_use,
    }
}

fn table(rows: &[Row<'_>]) -> String {
    let name = |row: &Row<'_>| row.tags.first().map_or_else(|| row.id.to_owned(), Clone::clone);
    let width = rows.iter().map(|row| name(row).len()).max().unwrap_or(0).max(5);
    let mut text = format!(
        "{:<width$}  {:<12}  {:<10}  {:>9}  {:>9}  use\n",
        "IMAGE", "LOCK", "STATE", "SIZE", "SHARED"
    );
    for row in rows {
        let state = match (row.tags.is_empty(), row.verified) {
            (true, _) => "untagged",
            (false, true) => "verified",
            (false, false) => "unverified",
        };
        let _ = writeln!(
            text,
            "{:<width$}  {:<12}  {state:<10}  {:>9}  {:>9}  {}",
            name(row),
            row.lock.get(..12).unwrap_or(row.lock),
            gigabytes(row.size),
            gigabytes(row.shared),
            if row.in_use { "by a lock" } else { "-" }
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn image_whose_tags_went_to_a_later_one_of_its_lock_is_not_in_use() {
        let image = |id: &str, lock: &str, tags: &[&str]| ImageInfo {
            id: id.to_owned(),
            labels: [(LOCK_LABEL.to_owned(), lock.to_owned())].into(),
            tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
            ..ImageInfo::default()
        };
        let all = [
            image("old", "a", &[]),
            image("new", "a", &["x:1"]),
            image("failed", "b", &[]),
            image("other", "c", &["y:1"]),
            image("of schema 1", "a of schema 1", &[]),
        ];
        let used = [("a", "a"), ("a of schema 1", "a"), ("b", "b")];
        let used = used.map(|(hash, lock)| (hash.to_owned(), lock.to_owned())).into();
        let expected = [false, true, true, false, false];
        assert_eq!(all.each_ref().map(|image| is_in_use(image, &all, &used)), expected);
    }
}
