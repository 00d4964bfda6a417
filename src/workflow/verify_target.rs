//! What was named: which image of the engine it is, and whether envforge built it.

use std::sync::Arc;

use camino::Utf8Path;
use envforge_protocol::{ExpectationText, Key};

use crate::agent::needed_glibc;
use crate::engine::{EngineError, ImageInfo, PullRequest};
use crate::model::compat::Matrix;
use crate::model::image::libc::{Libc, libc_of, libc_paths};
use crate::model::image::plan::{LOCK_LABEL, NAME_LABEL, UNVERIFIED};
use crate::model::image_ref::ImageRef;
use crate::model::lock::Lock;
use crate::model::request::{LockOptions, RequestedSpec, TargetOptions};
use crate::model::resolve::resolve;
use crate::model::spec::{Spec, strip_unverified};
use crate::model::stack::Stack;
use crate::model::verdict::{module, promised_version};
use crate::report::{Event, NullReporter};
use crate::store::built_images::{built_from, remember_built, remember_signed};
use crate::store::known_locks::{known_lock, remember_lock_of_others};
use crate::workflow::check::ImageOrigin;
use crate::workflow::check_error::CheckError;
use crate::workflow::content_digest::content_of;
use crate::workflow::error::CommandError;
use crate::workflow::image_error::ImageError;
use crate::workflow::lock_file::{lock_bytes, lock_path, read_lock};
use crate::workflow::named::{Named, short_id};
use crate::workflow::own_images::image_of_lock;
use crate::workflow::proven::lock_of_build;
use crate::workflow::provenance::signed_origin;
use crate::workflow::session::Session;
use crate::workflow::tags::by_own_name;
use crate::workflow::target::{options, target};

/// The image that was named; one that is no spec of ours is pulled if the engine does not have it.
pub(crate) async fn found(session: &Session<'_>, name: &str) -> Result<Named, CommandError> {
    if let Some(named) = local(session, name).await? {
        if named.reference != name {
            tracing::debug!(%name, reference = named.reference, id = named.image.id, "the image of a name");
        }
        return Ok(named);
    }
    if let Some(spec) = spec_of(strip_unverified(name).0, &session.matrix) {
        return Err(ImageError::SpecNotBuilt { spec: spec.parsed().to_string() }.into());
    }
    Ok(Named { reference: name.to_owned(), image: pulled(session, name).await? })
}

/// The image, from the first of its registry's mirrors that has it.
async fn pulled(session: &Session<'_>, name: &str) -> Result<ImageInfo, CommandError> {
    let wanted: ImageRef = name.parse()?;
    let mut refused = String::new();
    for source in session.registry.sources(&wanted) {
        let pull = PullRequest {
            reference: source.to_string(),
            machine: session.engine.info().machine,
            credential: session.registry.credential(&source).await?,
        };
        match session.engine.pull(pull, Arc::clone(&session.reporter)).await {
            Ok(image) => return Ok(image),
            // The engine's words say which registry refused and why.
            Err(EngineError::Refused { text, .. } | EngineError::Registry { text, .. }) => refused = text,
            Err(other) => return Err(other.into()),
        }
    }
    Err(ImageError::NotFound { image: name.to_owned(), text: refused }.into())
}

/// The image of that name, if the engine has it. A spec means the image of its lock, whatever its tags are called. A path is an
/// error: engines answer it with anything.
pub(crate) async fn local(session: &Session<'_>, name: &str) -> Result<Option<Named>, CommandError> {
    if name.split('/').any(|part| ["", ".", ".."].contains(&part)) {
        name.parse::<ImageRef>()?;
    }
    let (typed, is_unverified) = strip_unverified(name);
    // The tag of one image that was built here, such as the newest, which is not verified yet.
    if is_unverified
        && let Some(image) = session.engine.image(name).await?
        && built_from(&session.store, &image.id)?.is_some()
    {
        return Ok(Some(Named { reference: name.to_owned(), image }));
    }
    if let Some(spec) = spec_of(typed, &session.matrix)
        && let Some(named) = image_of_spec(session, spec.parsed()).await?
    {
        let called = candidates(session, name).into_iter().find(|tag| named.image.tags.contains(tag));
        return Ok(Some(Named { reference: called.unwrap_or(named.reference), image: named.image }));
    }
    for reference in candidates(session, name) {
        if let Some(image) = session.engine.image(&reference).await? {
            return Ok(Some(Named { reference, image }));
        }
    }
    Ok(None)
}

/// The image that was built here from the lock of a spec; `None`: the spec has no lock here, or its lock no image.
async fn image_of_spec(session: &Session<'_>, spec: &Spec) -> Result<Option<Named>, CommandError> {
    // A spec that does not resolve today may still name an image by its tag.
    let Some(stack) = stack_of(session, spec) else { return Ok(None) };
    let path = lock_path(session.settings, &stack, &LockOptions::default());
    let Some(lock) = read_lock(&path)? else { return Ok(None) };
    image_of_lock(session, &lock.hash()).await
}

/// The references a name may stand for, best first.
fn candidates(session: &Session<'_>, name: &str) -> Vec<String> {
    let (typed, unverified) = strip_unverified(name);
    let Some(spec) = spec_of(typed, &session.matrix) else { return vec![name.to_owned()] };
    let own = by_own_name(&spec, &session.matrix);
    let mut names = vec![typed.replace('+', "-"), own.replace('+', "-")];
    names.extend(stack_of(session, spec.parsed()).map(|stack| stack.name));
    names.dedup();
    if typed == spec.parsed().name {
        names.retain(|name| name != typed && *name != own);
    }
    let with_suffix = names.iter().map(|name| format!("{name}{UNVERIFIED}"));
    if unverified { with_suffix.collect() } else { names.iter().cloned().chain(with_suffix).collect() }
}

/// A spec, if it reads as one of a product that is known: `debian:12` reads as one, too.
pub(crate) fn spec_of(text: &str, matrix: &Matrix) -> Option<RequestedSpec> {
    let spec: RequestedSpec = text.parse().ok()?;
    matrix.product(&spec.parsed().name)?;
    Some(spec)
}

/// The stack that a build of the spec has here.
fn stack_of(session: &Session<'_>, spec: &Spec) -> Option<Stack> {
    let (matrix, machine) = (&session.matrix, TargetOptions::default());
    let target = target(&machine, &session.settings.target, matrix, &NullReporter).ok()?;
    let options = options(&machine, &LockOptions::default(), session.settings);
    resolve(spec, &target, matrix, &options).ok()
}

/// An image with what is known of where it comes from.
pub(crate) struct Provenance {
    /// Its lock, as far as the image's label and the file that was given say.
    pub(crate) lock: Option<Lock>,
    /// Whether it was built here, or elsewhere by the word of a trusted key. Any other image may hold anything, whatever its labels say.
    pub(crate) ours: bool,
}

impl Provenance {
    /// What the checks may take for granted; for an image from elsewhere that is only what is claimed of it.
    pub(crate) fn origin(&self, image: &ImageInfo, matrix: &Matrix) -> ImageOrigin<'_> {
        match &self.lock {
            Some(lock) if self.ours => ImageOrigin::Ours { lock, baked: false },
            Some(lock) => ImageOrigin::Claimed { lock },
            None => ImageOrigin::Foreign { says: labels_say(image, matrix) },
        }
    }
}

/// Where the image comes from.
pub(crate) async fn provenance(
    session: &Session<'_>,
    file: Option<&Utf8Path>,
    image: &ImageInfo,
) -> Result<Provenance, CommandError> {
    let label = image.labels.get(LOCK_LABEL);
    let lock = match (file, label) {
        (Some(file), _) => {
            let path = session.settings.paths.current_dir.join(file);
            let lock = Lock::from_bytes(file.as_str(), &lock_bytes(&path)?)?;
            if let Some(label) = label.filter(|label| **label != lock.hash()) {
                return Err(ImageError::OtherLock {
                    file: file.to_string(),
                    hash: lock.hash(),
                    label: label.clone(),
                }
                .into());
            }
            Some(lock)
        }
        (None, Some(label)) => known_lock(&session.store, label),
        (None, None) => None,
    };
    if file.is_none() && lock.is_none() {
        // Built here, and its lock is gone: that is reported.
        lock_of_build(&session.store, &*session.reporter, &image.id)?;
    }
    let mut ours = match &lock {
        Some(lock) => is_ours(session, lock, image).await?,
        None => false,
    };
    let mut lock = lock;
    if !ours && let Some((signed, key)) = signed_origin(session, image).await? {
        let typed = lock.take().filter(|_| file.is_some()).map(|lock| lock.hash());
        if let (Some(file), Some(hash)) = (file, typed.filter(|hash| *hash != signed.hash())) {
            return Err(
                ImageError::OtherSignedLock { file: file.to_string(), hash, signed: signed.hash() }.into()
            );
        }
        let text = format!("built from lock {} by the word of key {key}", short_id(&signed.hash()));
        session.reporter.report(Event::Note { text });
        remember_lock_of_others(&session.store, &signed)?;
        remember_signed(&session.store, &image.id, &signed.hash(), &key.fingerprint())?;
        (lock, ours) = (Some(signed), true);
    }
    if ours && let (Some(lock), Some(_)) = (&lock, file) {
        // The state folder may have lost it.
        remember_lock_of_others(&session.store, lock)?;
    }
    let note = match (&lock, label) {
        (Some(lock), _) if !ours => Some(format!(
            "this image was not built here: checking it in a sandbox, without tagging it (`envforge build --locked {}` \
             builds the same image here)",
            lock.spec
        )),
        (None, Some(_)) => Some(
            "lock file of the image not found: checking it against its labels only, in a sandbox (pass it with --lock FILE)"
                .to_owned(),
        ),
        _ => None,
    };
    if let Some(text) = note {
        session.reporter.report(Event::Note { text });
    }
    if !ours {
        agent_starts(session, image).await?;
    }
    Ok(Provenance { lock, ours })
}

/// Whether the image was built here from this lock. One that an envforge built here that did not yet record the ids of its
/// images is recognised by its content, once.
async fn is_ours(session: &Session<'_>, lock: &Lock, image: &ImageInfo) -> Result<bool, CommandError> {
    if let Some(hash) = built_from(&session.store, &image.id)? {
        return Ok(lock.hash() == hash);
    }
    // Only what this machine's own state folder says of the content counts, not a lock that came with the image.
    let kept = image.labels.get(LOCK_LABEL).and_then(|label| known_lock(&session.store, label));
    let Some(kept) = kept else { return Ok(false) };
    let Some(recorded) = kept.records.content else { return Ok(false) };
    // The content digest leaves out the agent's layer, variables and commands: where the configuration is recorded it decides.
    let ids_are_configs = !session.engine.info().keeps_blobs;
    if ids_are_configs && kept.records.config.is_some_and(|config| config != image.id) {
        return Ok(false);
    }
    let same = content_of(session, &image.id).await?.hex() == recorded;
    if same {
        remember_built(&session.store, &image.id, &lock.hash())?;
    }
    Ok(same)
}

/// Writes the versions that the labels name as an expectation file; empty without labels.
fn labels_say(image: &ImageInfo, matrix: &Matrix) -> String {
    let mut text = ExpectationText::default();
    let spec = image.labels.get(NAME_LABEL).and_then(|name| spec_of(name, matrix));
    let Some(spec) = spec.as_ref().map(RequestedSpec::parsed) else { return String::new() };
    let product = matrix.product(&spec.name);
    let framework = product.filter(|product| product.package.is_some()).map(|product| &product.framework);
    if let (Some(framework), Some(version), Some(cuda)) = (framework, &spec.version, spec.cuda) {
        let version = promised_version(framework, version, cuda);
        text.add(Key::Framework, module(framework));
        text.add(Key::Version, version);
        // A wheel of a whole major promises no minor in its name.
        if cuda.minor.is_some() {
            text.add(Key::Cuda, cuda.dotted());
        }
        if let Some(python) = spec.python {
            text.add(Key::Python, python);
        }
    }
    text.into_string()
}

/// C libraries of an image as tars, bytes: glibc has some 2 MB.
const LARGEST_LIBC: u64 = 64 << 20;

/// An error if the agent cannot start on the image's C library.
async fn agent_starts(session: &Session<'_>, image: &ImageInfo) -> Result<(), CommandError> {
    let Some(needs) = needed_glibc() else { return Ok(()) };
    let paths = libc_paths(session.engine.info().machine);
    let libc = libc_of(&session.engine.read_files(&image.id, &paths, LARGEST_LIBC).await?);
    tracing::debug!(%libc, %needs, "the image's C library");
    match libc {
        Libc::Glibc(version) if version < needs => {
            Err(CheckError::AgentCannotStart { libc: format!("glibc {version}"), needs: needs.to_string() }
                .into())
        }
        Libc::Glibc(_) => Ok(()),
        other => {
            Err(CheckError::AgentCannotStart { libc: other.to_string(), needs: needs.to_string() }.into())
        }
    }
}
