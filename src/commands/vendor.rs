//! `vendor`: everything a lock names in one folder; and whether a folder still holds it.

use std::fmt::Write as _;

use camino::Utf8Path;
use serde::Serialize;

use crate::failure::Exit;
use crate::model::counted::counted;
use crate::model::lock::vendor_files::items;
use crate::model::request;
use crate::report::{Event, Printer};
use crate::settings::Settings;
use crate::store::built_images::built_of;
use crate::store::vendor_base::fault;
use crate::store::vendor_dir::{DAMAGED, LOCKS, VendorError, VendorProblem, locks_of, verified};
use crate::store::{StoreError, write_atomically};
use crate::workflow::build_request::wanted;
use crate::workflow::carried_evidence::{VendoredEvidence, vendor_evidence, vendored};
use crate::workflow::custom_base::named_base;
use crate::workflow::error::CommandError;
use crate::workflow::installed_project::vendor_warning;
use crate::workflow::listed_names::with_listed;
use crate::workflow::lock::lock_for;
use crate::workflow::session::{LazySession, Session, SessionOptions};
use crate::workflow::stack::stack;
use crate::workflow::vendor::{copied, gather, gone_upstream};
use crate::workflow::{vendor_base, vendor_layers};

/// What `vendor --json` prints.
#[derive(Serialize)]
struct Report<'a> {
    schema: u32,
    folder: &'a str,
    lock: &'a str,
    matrix: &'a str,
    files: usize,
    /// Files that came into the folder now.
    new: usize,
    bytes: u64,
    /// Documents of evidence in it; null without --evidence.
    evidence: Option<usize>,
}

/// What `vendor --check --json` prints.
#[derive(Serialize)]
struct CheckReport<'a> {
    schema: u32,
    folder: &'a str,
    files: usize,
    findings: &'a [VendorProblem],
}

pub(crate) async fn vendor(args: &request::Vendor, settings: &Settings) -> Result<Exit, CommandError> {
    let folder = settings.paths.current_dir.join(&args.dir);
    if args.check {
        return check(&folder, args.upstream, settings).await;
    }
    let wanted = wanted(args.spec.as_ref(), &args.project, &args.source, &args.target, settings)?
        .with_parts(&args.parts)?;
    let lazy = LazySession::new(settings, SessionOptions::of(&wanted.source));
    let named = named_base(&lazy, &wanted.source, &wanted.target).await?;
    let stack = stack(settings, &wanted.spec, &wanted.source, &wanted.target, named.as_ref())?;
    let wanted = with_listed(&wanted, &stack, settings).await?;
    let session = &lazy.session().await?.on_base(named.as_ref());
    if let Some(text) = vendor_warning(&wanted) {
        session.reporter.report(Event::Warning { text });
    }
    let mut locked = Box::pin(lock_for(session, stack, named.as_ref(), &wanted)).await?;
    gather(session, &wanted, &locked).await?;
    let (mut new, mut bytes) = (0, 0);
    let all = items(&locked.lock);
    for item in &all {
        let from = session.store.blob_path(item.sha256())?;
        bytes += fs_err::metadata(&from)?.len();
        let is_new = match copied(&from, &folder, item.sha256()) {
            Err(error) if matches!(error.downcast_ref(), Some(StoreError::WrongContent { .. })) => {
                // The cache had other bytes under that hash.
                session.store.discard(item.sha256())?;
                gather(session, &wanted, &locked).await?;
                copied(&from, &folder, item.sha256())?
            }
            copied => copied?,
        };
        new += usize::from(is_new);
    }
    let mut files = all.len();
    let machine = locked.lock.stack.machine;
    if let Some(saved) = vendor_base::save(session, &locked.base, machine, &folder).await? {
        files += 1;
        bytes += saved.bytes;
        new += usize::from(saved.new);
    }
    if args.layers {
        let saved = Box::pin(vendor_layers::save(session, &wanted, &mut locked, &folder)).await?;
        files += saved.files;
        bytes += saved.bytes;
        new += saved.new;
    }
    let lock = &locked.lock;
    let hash = lock.hash();
    write_atomically(&folder.join(LOCKS).join(format!("{hash}.lock")), lock.to_toml().as_bytes())?;
    let evidence = if args.evidence { Some(evidence(session, &hash, &folder).await?) } else { None };
    if settings.output.json {
        let matrix = &lock.stack.matrix;
        let folder = folder.as_str();
        Printer.json(&Report { schema: 1, folder, lock: &hash, matrix, files, new, bytes, evidence });
    } else {
        Printer.text(folder.as_str());
        if !settings.output.quiet {
            let text = format!("{}, {new} of them new, {} MB", counted(files, "file"), bytes / 1_000_000);
            Printer.say(&text);
            if let Some(count) = evidence {
                Printer.say(&format!("with evidence: {}", counted(count, "statement")));
            }
        }
    }
    Ok(Exit::Done)
}

/// Adds the evidence of the images that were built here from a lock; how many documents there are.
async fn evidence(session: &Session<'_>, lock: &str, folder: &Utf8Path) -> Result<usize, CommandError> {
    let mut count = 0;
    for id in built_of(&session.store, lock)? {
        if let Some(image) = session.engine.image(&id).await? {
            count += vendor_evidence(session, &image, folder).await?;
        }
    }
    if count == 0 {
        let text =
            "no evidence is known here of an image of this lock: build and push it, and `verify --attest` it";
        session.reporter.report(Event::Warning { text: text.to_owned() });
    }
    Ok(count)
}

/// `vendor --check`: every file of the folder's locks read and compared; with `--upstream` asked for, too.
async fn check(folder: &Utf8Path, upstream: bool, settings: &Settings) -> Result<Exit, CommandError> {
    let (locks, mut findings) = locks_of(folder)?;
    if locks.is_empty() && findings.is_empty() {
        return Err(VendorError::NotVendored { folder: folder.to_string() }.into());
    }
    let mut seen = std::collections::BTreeSet::new();
    for lock in &locks {
        for item in items(lock) {
            if seen.insert(item.sha256().to_owned()) {
                findings.extend(verified(folder, item).err());
            }
        }
        let base = lock.base.digest.as_ref().map(|digest| format!("{digest} {}", lock.stack.machine));
        if base.is_some_and(|base| seen.insert(base)) {
            findings.extend(fault(folder, lock));
        }
    }
    let (layers, wrong) = vendor_layers::check(folder)?;
    findings.extend(wrong);
    let mut files = seen.len() + layers;
    for VendoredEvidence { path, saved } in vendored(folder)? {
        files += 1;
        if saved.is_err() {
            let file = path.file_name().unwrap_or_default().to_owned();
            findings.push(VendorProblem { what: DAMAGED, file, path: Some(path.to_string()) });
        }
    }
    let damaged = !findings.is_empty();
    if upstream {
        let lazy = LazySession::of(settings);
        findings.extend(gone_upstream(&locks, lazy.session().await?).await?);
    }
    if settings.output.json {
        let (folder, findings) = (folder.as_str(), &findings);
        Printer.json(&CheckReport { schema: 1, folder, files, findings });
    } else {
        let mut text = String::new();
        for finding in &findings {
            let _ = write!(text, "{:<8} {}", finding.what, finding.file);
            let _ = finding.path.iter().try_for_each(|path| write!(text, " ({path})"));
            text.push('\n');
        }
        if !text.is_empty() {
            Printer.text(text.trim_end());
        }
        if !settings.output.quiet {
            Printer.say(&format!(
                "{} of {} read, {}",
                counted(files, "file"),
                counted(locks.len(), "lock"),
                counted(findings.len(), "finding")
            ));
        }
    }
    Ok(if damaged { Exit::No } else { Exit::Done })
}
