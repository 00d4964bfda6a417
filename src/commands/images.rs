//! `images` and `prune`: what envforge built on this engine, and what of it no lock in use names.

use std::fmt::Write as _;

use serde::Serialize;

use crate::engine::ImageInfo;
use crate::failure::Exit;
use crate::model::byte_size::gigabytes;
use crate::model::counted::counted;
use crate::model::image::inventory::shared;
use crate::model::image::plan::NAME_LABEL;
use crate::model::request;
use crate::model::verdict::Proven;
use crate::model::visible::visible_line;
use crate::report::Printer;
use crate::settings::Settings;
use crate::store::StoreError;
use crate::store::known_locks::in_use;
use crate::workflow::error::CommandError;
use crate::workflow::named::short_id;
use crate::workflow::old_cluster_files::{OldFile, old_cluster_files};
use crate::workflow::own_images::listed_images;
use crate::workflow::proven::proven;
use crate::workflow::required_evidence::KeptProofs;
use crate::workflow::session::{LazySession, Session};
use crate::workflow::unused_images::{Unused, is_in_use, lock_of, remove_unused, unused};

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
    /// Files of the project here on its cluster that no lock in use names.
    #[serde(skip_serializing_if = "Option::is_none")]
    cluster: Option<Vec<ClusterRow>>,
}

/// A file on a cluster.
#[derive(Serialize)]
struct ClusterRow {
    path: String,
    size: u64,
}

impl From<OldFile> for ClusterRow {
    fn from(OldFile { path, size }: OldFile) -> Self {
        Self { path: path.into_string(), size }
    }
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
    /// True if every required check passed on a GPU that counts, by the reports of this machine.
    verified: bool,
    #[serde(flatten)]
    proven: Proven,
    /// Whose key proves it for this machine, by the evidence that is kept here.
    evidence: Option<String>,
    size: u64,
    /// Bytes that other images of envforge share.
    shared: u64,
    /// True if a lock in use names it.
    in_use: bool,
}

pub(super) async fn images(settings: &Settings) -> Result<Exit, CommandError> {
    let lazy = LazySession::of(settings);
    let session = lazy.session().await?;
    let all = listed_images(session).await?;
    let used = in_use(&session.store);
    let rows = rows(session, all.iter(), &all, |image| is_in_use(&session.store, image, &all, &used))?;
    if settings.output.json {
        Printer.json(&Report {
            schema: 1,
            removed: None,
            images: rows,
            volumes: None,
            cache: None,
            cluster: None,
        });
    } else {
        Printer.text(table(&rows).trim_end());
    }
    Ok(Exit::Done)
}

pub(super) async fn prune(args: &request::Prune, settings: &Settings) -> Result<Exit, CommandError> {
    let lazy = LazySession::of(settings);
    let session = lazy.session().await?;
    let all = listed_images(session).await?;
    let unused = unused(session, &all, args.cache).await?;
    let of_cluster = old_cluster_files(settings, &session.store, &*session.reporter);
    if args.yes {
        remove_unused(session, &unused).await?;
    }
    let Unused { images, volumes, files } = unused;
    let cache = args
        .cache
        .then(|| CacheReport { files: files.len(), bytes: files.iter().map(|file| file.size).sum() });
    let rows = rows(session, images.iter().copied(), &all, |_| Ok(false))?;
    let own: u64 = rows.iter().map(|row| row.size - row.shared.min(row.size)).sum();
    if settings.output.json {
        let volumes = Some(volumes);
        let cluster = Some(of_cluster.into_iter().map(ClusterRow::from).collect());
        Printer.json(&Report { schema: 1, removed: Some(args.yes), images: rows, volumes, cache, cluster });
        return Ok(Exit::Done);
    }
    if !rows.is_empty() {
        Printer.text(table(&rows).trim_end());
    }
    for volume in &volumes {
        Printer.text(&format!("volume {volume}"));
    }
    for OldFile { path, size } in &of_cluster {
        Printer.text(&format!("file {} ({})", visible_line(path.as_str()), gigabytes(*size)));
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
                (_, true) => format!("{} of the cache removed, {bytes} freed", counted(files, "file")),
                (_, false) => {
                    format!(
                        "{} of the cache would be removed, {bytes} freed: envforge prune --cache --yes",
                        counted(files, "file")
                    )
                }
            });
        }
        if !of_cluster.is_empty() {
            let files = counted(of_cluster.len(), "file");
            let bytes = gigabytes(of_cluster.iter().map(|file| file.size).sum());
            let killed =
                if of_cluster.iter().any(OldFile::is_unfinished) { " and killed exports" } else { "" };
            Printer.say(&format!(
                "{files} of former locks{killed} on the cluster ({bytes}): remove those that no job needs"
            ));
        }
    }
    Ok(Exit::Done)
}

fn rows<'a>(
    session: &Session<'_>,
    images: impl Iterator<Item = &'a ImageInfo>,
    all: &[ImageInfo],
    in_use: impl Fn(&ImageInfo) -> Result<bool, StoreError>,
) -> Result<Vec<Row<'a>>, CommandError> {
    let mut rows = Vec::new();
    let kept = KeptProofs::open(&session.store, session.settings, session.engine.info(), &*session.reporter);
    for image in images {
        let proven = proven(&session.store, &*session.reporter, image)?;
        let evidence = kept.text_of(image, &proven)?;
        rows.push(row(image, all, in_use(image)?, (proven, evidence)));
    }
    Ok(rows)
}

fn row<'a>(
    image: &'a ImageInfo,
    all: &[ImageInfo],
    in_use: bool,
    (proven, evidence): (Proven, Option<String>),
) -> Row<'a> {
    let label = |name: &str| image.labels.get(name).map_or("", String::as_str);
    Row {
        id: &image.id,
        name: label(NAME_LABEL),
        spec: label(SPEC_LABEL),
        lock: lock_of(image),
        tags: &image.tags,
        verified: proven.is_verified(),
        proven,
        evidence,
        size: image.size,
        shared: shared(image, all),
        in_use,
    }
}

fn table(rows: &[Row<'_>]) -> String {
    let name = |row: &Row<'_>| row.tags.first().map_or_else(|| short_id(row.id), Clone::clone);
    let width = rows.iter().map(|row| name(row).len()).max().unwrap_or(0).max(5);
    let mut text =
        format!("{:<width$}  {:<12}  {:>9}  {:>9}  {:<9}  STATE\n", "IMAGE", "LOCK", "SIZE", "SHARED", "USE");
    for row in rows {
        let _ = writeln!(
            text,
            "{:<width$}  {:<12}  {:>9}  {:>9}  {:<9}  {}",
            name(row),
            // A label holds anything.
            visible_line(&row.lock.chars().take(12).collect::<String>()),
            gigabytes(row.size),
            gigabytes(row.shared),
            if row.in_use { "by a lock" } else { "-" },
            row.evidence.clone().unwrap_or_else(|| row.proven.short())
        );
    }
    text
}
