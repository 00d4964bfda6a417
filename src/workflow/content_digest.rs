//! The content digest of a built image: the agent walks it in a container of its own, the lock's record is compared.
#![expect(clippy::disallowed_methods, reason = "times the walk")]

use std::io::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;

use crate::archive::content_digest::{ContentDigest, FOLDERS, content_of_tar};
use crate::engine::{ContainerFile, RunLimits, RunOutcome, RunRequest};
use crate::model::bounded::read_bounded;
use crate::model::lock::Lock;
use crate::model::sha256::sha256_hex;
use crate::report::Event;
use crate::store::built_images::{known_content, remember_content};
use crate::store::write_atomically;
use crate::workflow::check_error::CheckError;
use crate::workflow::error::CommandError;
use crate::workflow::lock::LockedBuild;
use crate::workflow::session::Session;

/// Where the agent is put: below a folder that is left out, so that the walk does not meet it.
const AGENT: &str = "/run/envforge-digest/agent";

/// The content digest of the image of a lock, which is compared with the lock's record or becomes it; with `--locked` a lock
/// without one stays so.
pub(crate) async fn digest_of(
    session: &Session<'_>,
    locked: &LockedBuild,
    image: &str,
) -> Result<String, CommandError> {
    let recorded = locked.lock.records.content.as_ref();
    if let Some(known) = known_content(&session.store, image)? {
        match recorded {
            Some(recorded) if *recorded == known => return Ok(known),
            // A lock that gets a digest needs its list, too.
            None if kept_list(session, &locked.lock, &known)?.is_some() => {
                record(session, locked, &known);
                return Ok(known);
            }
            _ => {}
        }
    }
    let content = content_of(session, image).await?;
    let found = content.hex();
    remember_content(&session.store, image, &found)?;
    match &locked.lock.records.content {
        Some(recorded) if *recorded != found => {
            let kept = kept_list(session, &locked.lock, recorded)?;
            let lines =
                |kept: ContentDigest| kept.differences(&content).iter().map(ToString::to_string).collect();
            let (recorded, image) = (recorded.clone(), image.to_owned());
            Err(CheckError::ContentDiffers { recorded, found, differences: kept.map(lines), image }.into())
        }
        recorded => {
            keep_list(session, &locked.lock.hash(), &content)?;
            if recorded.is_none() {
                record(session, locked, &found);
            }
            Ok(found)
        }
    }
}

/// Reading 30 GB from a slow disk takes minutes.
const TIME: Duration = Duration::from_hours(1);
/// The file list of an image, bytes: one of 500,000 files has some 60 MB.
const MOST_LISTED: usize = 1 << 30;

/// Walks an image in a container: no network, read-only, no GPU, and the only capability is to read every file.
pub(crate) async fn content_of(session: &Session<'_>, image: &str) -> Result<ContentDigest, CommandError> {
    let id = "content".to_owned();
    session
        .reporter
        .report(Event::StepStarted { id: id.clone(), text: "compute the content digest".to_owned() });
    let started = Instant::now();
    let command = [AGENT, "digest", "--list"].map(str::to_owned).to_vec();
    let limits = RunLimits::on(session.engine.info(), TIME, MOST_LISTED);
    let request = RunRequest {
        user: Some("0:0".to_owned()),
        files: vec![ContainerFile {
            path: AGENT.to_owned(),
            mode: 0o755,
            bytes: Bytes::from_static(crate::agent::AGENT),
        }],
        keeps: vec!["DAC_OVERRIDE".to_owned()],
        report_as: Some(id.clone()),
        // The engine mounts over these while it runs: the image's own are seen after the end.
        collect: FOLDERS.iter().map(|folder| format!("/{folder}")).collect(),
        ..RunRequest::bounded(image, command, limits)
    };
    let outcome = session.engine.run(request, Arc::clone(&session.reporter)).await?;
    let content = listed(&outcome).map_err(|detail| {
        session.reporter.report(Event::StepFailed { id: id.clone(), text: detail.clone() });
        CheckError::NoContent { image: image.to_owned(), detail }
    })?;
    let seconds = started.elapsed().as_secs_f64();
    session.reporter.report(Event::StepFinished { id, cached: false, seconds });
    Ok(content)
}

/// What the agent listed, with the folders the engine mounts over as the image has them.
fn listed(outcome: &RunOutcome) -> Result<ContentDigest, String> {
    if let Some(limit) = outcome.reached {
        return Err(format!("the agent was ended: it {limit}"));
    }
    if outcome.code != 0 {
        let said = String::from_utf8_lossy(&outcome.stderr);
        let last = said.lines().last().unwrap_or("no output");
        return Err(format!("agent exited with code {}: {last}", outcome.code));
    }
    let digest = String::from_utf8_lossy(&outcome.stderr);
    let whole = Some(sha256_hex(&outcome.stdout).as_str()) == digest.lines().last();
    let content = ContentDigest::from_records(&outcome.stdout).filter(|_| whole);
    let mut content = content.ok_or("incomplete file list from the agent")?;
    for folder in FOLDERS {
        content.remove(folder);
        if let Some(tar) = outcome.collected.get(&format!("/{folder}")) {
            let read = content_of_tar(tar.as_slice()).map_err(|error| format!("`/{folder}`: {error}"))?;
            content.extend(read);
        }
    }
    Ok(content)
}

fn list_path(lock: &str) -> String {
    format!("content/{lock}.gz")
}

/// Keeps what the image of a lock holds, so that a later difference can be named.
fn keep_list(session: &Session<'_>, lock: &str, content: &ContentDigest) -> Result<(), CommandError> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(&content.records())?;
    Ok(session.store.write_state(&list_path(lock), &packed.finish()?)?)
}

/// The list of the image a lock was recorded with, if it is here and really the one.
pub(crate) fn kept_list(
    session: &Session<'_>,
    lock: &Lock,
    digest: &str,
) -> Result<Option<ContentDigest>, CommandError> {
    let Some(packed) = session.store.read_state(&list_path(&lock.hash()))? else { return Ok(None) };
    // A damaged list is none.
    let records = read_bounded(flate2::read::GzDecoder::new(packed.as_slice()), MOST_LISTED as u64);
    let content = records.ok().and_then(|records| ContentDigest::from_records(&records));
    Ok(content.filter(|content| content.hex() == digest))
}

/// Writes the digest into the lock, whose other content stays; a lock that cannot or may not be written stays without.
fn record(session: &Session<'_>, locked: &LockedBuild, digest: &str) {
    if locked.read_only {
        let text = format!(
            "content digest {}: compared with nothing, {} has none (`envforge lock --digest` records it)",
            &digest[..12],
            locked.path
        );
        return session.reporter.report(Event::Note { text });
    }
    let mut lock = locked.lock.clone();
    lock.records.content = Some(digest.to_owned());
    let text = match write_atomically(&locked.path, lock.to_toml().as_bytes()) {
        Ok(()) => format!("recorded content digest {} in {}", &digest[..12], locked.path),
        Err(error) => format!("cannot record the content digest in the lock file: {error}"),
    };
    session.reporter.report(Event::Note { text });
}
