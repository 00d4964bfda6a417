//! `envforge` alone: the project, its lock, the image and the next step, in five lines.

use serde::Serialize;

use crate::failure::Exit;
use crate::model::request::{LockOptions, ProjectOptions, TargetOptions};
use crate::model::verdict::{ImageState, Proven};
use crate::model::visible::visible_line;
use crate::report::Printer;
use crate::settings::Settings;
use crate::store::Store;
use crate::workflow::build_request::{BuildRequest, wanted};
use crate::workflow::custom_base::BaseAtHand;
use crate::workflow::error::CommandError;
use crate::workflow::gpus;
use crate::workflow::lock_file::{lock_path, read_lock};
use crate::workflow::named::Named;
use crate::workflow::own_images::{images_of_lock, is_outside_project, own_images};
use crate::workflow::project_sources::image_hash;
use crate::workflow::proven::proven;
use crate::workflow::session::{LazySession, Session};
use crate::workflow::stack::stack_at_hand;

/// The state of a project's lock file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum LockState {
    /// There is none.
    Missing,
    /// The project asks for something else.
    OutOfDate,
    /// It is what the project asks for.
    UpToDate,
}

/// The image that `shell` would open.
#[derive(Debug, Clone, Serialize)]
struct Image {
    name: String,
    verified: bool,
    #[serde(flatten)]
    proven: Proven,
}

impl Image {
    fn of(session: &Session<'_>, Named { reference, image }: Named) -> Result<Self, CommandError> {
        let proven = proven(&session.store, &*session.reporter, &image)?;
        Ok(Self { name: reference, verified: proven.is_verified(), proven })
    }
}

/// JSON output of `envforge` alone.
#[derive(Debug, Serialize)]
struct Status {
    schema: u32,
    /// Directory of the project.
    project: Option<String>,
    spec: Option<String>,
    lock: Option<LockState>,
    /// Whether the engine answered.
    engine: bool,
    /// Whether the engine may have a GPU.
    gpu: bool,
    image: Option<Image>,
    next: &'static str,
}

pub(super) async fn status(settings: &Settings) -> Result<Exit, CommandError> {
    let project = if is_outside_project(settings) {
        None
    } else {
        let (source, target) = (LockOptions::default(), TargetOptions::default());
        Some(wanted(None, &ProjectOptions::default(), &source, &target, settings)?)
    };
    let (lock, hash) = match &project {
        Some(project) => lock_of(project, settings)?,
        None => (None, None),
    };
    // Where no engine answers `doctor` says why.
    let lazy = LazySession::of(settings);
    let session = lazy.session().await.ok();
    let image = match (session, &hash) {
        // One whose checks failed has no tag: it is shown, and not opened.
        (Some(session), Some(hash)) => images_of_lock(session, hash).await?.into_iter().next(),
        (Some(session), None) if project.is_none() => own_images(session).await?.into_iter().next(),
        _ => None,
    };
    let gpu =
        session.is_some_and(|session| gpus::request(session, &crate::engine::GpuSelection::IfAny).is_some());
    let image = match (session, image) {
        (Some(session), Some(named)) => Some(Image::of(session, named)?),
        _ => None,
    };
    let mut status = Status {
        schema: 1,
        project: project.as_ref().and_then(|project| project.folder.as_ref()).map(ToString::to_string),
        spec: project.map(|project| project.spec.written().to_owned()),
        lock,
        engine: session.is_some(),
        gpu,
        image,
        next: "",
    };
    status.next = next(&status);
    if settings.output.json {
        Printer.json(&status);
    } else {
        Printer.text(&text(&status));
    }
    Ok(Exit::Done)
}

/// The state of the project's lock, and the hash of its image's. Asks neither engine nor network: a base of the user's own is that of
/// the lock.
fn lock_of(
    project: &BuildRequest,
    settings: &Settings,
) -> Result<(Option<LockState>, Option<String>), CommandError> {
    let path = settings.paths.current_dir.join(project.source.lockfile.clone().unwrap_or_default());
    let Some(lock) = read_lock(&path)? else { return Ok((Some(LockState::Missing), None)) };
    let store = Store::open(&settings.paths.cache, &settings.paths.state)?;
    let hash = image_hash(&store, project, &lock)?;
    let base = BaseAtHand::read(project, settings)?;
    let stack = stack_at_hand(settings, project, &base)?;
    debug_assert_eq!(lock_path(settings, &stack, &project.source), path);
    let fits = base.unread.is_none() && lock.differences_from(&stack, &project.added).is_empty();
    Ok((Some(if fits { LockState::UpToDate } else { LockState::OutOfDate }), hash))
}

/// The command that leads on.
fn next(status: &Status) -> &'static str {
    let Status { project, lock, engine, gpu, image, .. } = status;
    match (project, image) {
        _ if !engine => "envforge doctor",
        (Some(_), _) if matches!(lock, Some(LockState::Missing | LockState::OutOfDate)) => "envforge build",
        (Some(_), None) => "envforge build",
        (None, None) => "envforge build pytorch-cuda, or envforge init for a project",
        (_, Some(image)) if image.proven.state == ImageState::Failed => "envforge verify --last",
        (_, Some(image)) if !image.verified && *gpu => "envforge verify",
        (_, Some(_)) => "envforge shell",
    }
}

fn text(status: &Status) -> String {
    let Status { project, spec, lock, engine, image, next, .. } = status;
    let project = match (project, spec) {
        (Some(folder), Some(spec)) => visible_line(&format!("{spec} in {folder}")),
        _ => "none here (no envforge.toml in this directory or above)".to_owned(),
    };
    let lock = match lock {
        Some(LockState::Missing) => "missing",
        Some(LockState::OutOfDate) => "out of date",
        Some(LockState::UpToDate) => "up to date",
        None => "-",
    };
    let image = match image {
        Some(Image { name, proven, .. }) => visible_line(&format!("{name} ({proven})")),
        None if *engine => "none built here".to_owned(),
        None => "unknown: the container engine does not answer".to_owned(),
    };
    format!(
        "project    {project}\nlock file  {lock}\nimage      {image}\nnext step  {next}\ncommands   envforge --help\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::verdict::Proof;

    fn of_state(state: ImageState) -> Image {
        let proof = Proof {
            level: "full".to_owned(),
            gpus: vec!["NVIDIA H200 (sm_90)".to_owned()],
            driver: Some("580.1".to_owned()),
            checked: "2026-11-26T10:00:00Z".to_owned(),
        };
        let (proven, failed) =
            if state == ImageState::Failed { (vec![], vec![proof]) } else { (vec![proof], vec![]) };
        let proven = Proven { state, proven, failed };
        Image { name: "p:1".to_owned(), verified: proven.is_verified(), proven }
    }

    fn state(lock: Option<LockState>, image: Option<bool>, gpu: bool) -> Status {
        Status {
            schema: 1,
            project: lock.map(|_| "/work/p".to_owned()),
            spec: lock.map(|_| "pytorch-cuda:2.8".to_owned()),
            lock,
            engine: true,
            gpu,
            image: image.map(|verified| {
                of_state(if verified { ImageState::Verified } else { ImageState::StaticOnly })
            }),
            next: "",
        }
    }

    #[test]
    fn next_step_follows_from_lock_image_and_gpu() {
        use LockState::{Missing, OutOfDate, UpToDate};
        for (lock, image, gpu, expected) in [
            (Some(Missing), None, true, "envforge build"),
            (Some(OutOfDate), Some(true), true, "envforge build"),
            (Some(UpToDate), None, true, "envforge build"),
            (Some(UpToDate), Some(false), true, "envforge verify"),
            (Some(UpToDate), Some(false), false, "envforge shell"),
            (Some(UpToDate), Some(true), true, "envforge shell"),
            (None, Some(false), true, "envforge verify"),
            (None, Some(true), false, "envforge shell"),
        ] {
            assert_eq!(next(&state(lock, image, gpu)), expected, "{lock:?} {image:?} {gpu}");
        }
        assert!(next(&state(None, None, false)).contains("envforge init"));
        let failed =
            Status { image: Some(of_state(ImageState::Failed)), ..state(Some(UpToDate), None, true) };
        assert_eq!(next(&failed), "envforge verify --last");
        assert!(
            text(&failed)
                .contains("p:1 (failed at level full on NVIDIA H200 (sm_90), driver 580.1, 2026-11-26)")
        );
        assert_eq!(next(&Status { engine: false, ..state(Some(Missing), None, true) }), "envforge doctor");
    }

    #[test]
    fn status_has_five_lines() {
        for status in [state(None, None, false), state(Some(LockState::UpToDate), Some(true), true)] {
            assert_eq!(text(&status).lines().count(), 5);
        }
    }
}
