//! What an image was built from, signed: attached where it was pushed, and read where it is pulled. By a trusted key it makes a digest
//! ours on a machine that did not build it.
#![expect(clippy::disallowed_methods, reason = "stamps statements and asks the clock")]

use std::time::Duration;

use jiff::Timestamp;

use crate::engine::ImageInfo;
use crate::evidence::{PROVENANCE_TYPE, Provenance, PublicKey, SBOM_TYPE, Signer, SigningKey, is_ahead};
use crate::model::image_ref::ImageRef;
use crate::model::lock::Lock;
use crate::model::verdict::tag_policy::main_tag;
use crate::registry::{LARGEST_DOCUMENT, NewEvidence};
use crate::report::Event;
use crate::settings::KeyPurpose;
use crate::store::built_images::built_from;
use crate::workflow::error::CommandError;
use crate::workflow::evidence::{EvidenceError, SETTLING, is_unknown, trusted_keys};
use crate::workflow::required_evidence::subject_here;
use crate::workflow::session::Session;

/// How long registries may take to say what an image was built from.
const DEADLINE: Duration = Duration::from_mins(1);
/// How often it is attached anew because another writer wrote over it.
const ROUNDS: u32 = 5;
/// What envelope and manifest add to a payload in base64.
const FRAME: usize = 4096;

/// An error unless this machine built the image itself: what another key said of it is not said again under this one.
pub(crate) fn require_built_here(
    session: &Session<'_>,
    image: &ImageInfo,
    lock: Option<&Lock>,
) -> Result<(), CommandError> {
    let hash = built_from(&session.store, &image.id)?;
    if lock.is_some_and(|lock| hash.as_deref() == Some(&lock.hash())) {
        return Ok(());
    }
    let image = main_tag(&image.tags).unwrap_or(&image.id).clone();
    Err(EvidenceError::NotBuiltHere { image }.into())
}

/// Signs what the image was built from, and attaches it where it was pushed. Returns the image by its digest with the key.
pub(crate) async fn attach_provenance(
    session: &Session<'_>,
    (target, image): (&ImageRef, &ImageInfo),
    lock: &Lock,
    key: &SigningKey,
) -> Result<String, CommandError> {
    require_built_here(session, image, Some(lock))?;
    let subject = subject_here(session, target, image).await?;
    let digest = &subject.manifest.digest;
    let provenance = Provenance {
        name: subject.name.clone(),
        digest: digest.clone(),
        issued: Timestamp::now(),
        run: format!("{:032x}", rand::random::<u128>()),
        program: env!("CARGO_PKG_VERSION").to_owned(),
        platform: lock.stack.machine.platform().to_owned(),
        lock: lock.to_toml(),
    };
    let payloads = [
        (PROVENANCE_TYPE, provenance.statement(lock)),
        (SBOM_TYPE, provenance.materials(lock, &session.matrix)),
    ];
    for (what, payload) in &payloads {
        let size = payload.len() * 4 / 3 + FRAME;
        if size as u64 > LARGEST_DOCUMENT {
            let image = target.to_string();
            return Err(EvidenceError::TooLarge { image, what, size, limit: LARGEST_DOCUMENT }.into());
        }
    }
    let signed = payloads.map(|(predicate, payload)| NewEvidence::signed(payload, predicate, key));
    let public = key.public();
    let created = provenance.issued.to_string();
    let mut notes = Vec::new();
    for round in 0..ROUNDS {
        if round > 0 {
            // Another writer may have read the tags before this one wrote them, and write them now.
            tokio::time::sleep(SETTLING).await;
        }
        let known = session.registry.provenance(target, digest).await?;
        if let Some(why) = known.skipped.first() {
            return Err(EvidenceError::Unread { image: target.to_string(), why: why.clone() }.into());
        }
        let there = known.attestations();
        let is_there = |one: &NewEvidence| there.iter().any(|found| found.envelope == one.envelope);
        if round > 0 && signed.iter().all(is_there) {
            for text in notes {
                session.reporter.report(Event::Note { text });
            }
            return Ok(format!("{} by key {public}", target.pinned(digest)));
        }
        let by = (&public, created.as_str());
        let known = (&known, &signed[..]);
        let registry = &session.registry;
        notes = registry.attach_evidence((target, &subject), known, by, &session.reporter).await?.notes;
    }
    Err(EvidenceError::Contended { image: target.to_string() }.into())
}

/// The lock that a trusted key says the image was built from, with that key; `None`: no such key says so of the digests that it was
/// pulled by. What is not known, since a registry does not answer or a document cannot be read, is reported.
pub(crate) async fn signed_origin(
    session: &Session<'_>,
    image: &ImageInfo,
) -> Result<Option<(Lock, PublicKey)>, CommandError> {
    let signers = trusted_keys(&[], session.settings, KeyPurpose::Provenance)?;
    if signers.is_empty() {
        return Ok(None);
    }
    let unknown = |name: &ImageRef, why: &str| {
        let text = format!("provenance of {name} is not known: {why}");
        session.reporter.report(Event::Warning { text });
    };
    let end = tokio::time::Instant::now() + DEADLINE;
    let names: Vec<ImageRef> = image.digests.iter().filter_map(|text| text.parse().ok()).collect();
    for name in names {
        let asked = tokio::time::timeout_at(end, in_registry(session, (&name, image), &signers)).await;
        let Ok(answer) = asked else {
            unknown(&name, &format!("no answer in {} s", DEADLINE.as_secs()));
            break;
        };
        match answer {
            Ok(Some(found)) => return Ok(Some(found)),
            Ok(None) => {}
            Err(error) if is_unknown(&error) => unknown(&name, &error.to_string()),
            // The registry has another image there now: this one may still be under another name.
            Err(error) if matches!(error.downcast_ref(), Some(EvidenceError::OtherImage { .. })) => {
                session.reporter.report(Event::Note { text: error.to_string() });
            }
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

/// The newest provenance that counts.
async fn in_registry(
    session: &Session<'_>,
    (name, image): (&ImageRef, &ImageInfo),
    signers: &[Signer],
) -> Result<Option<(Lock, PublicKey)>, CommandError> {
    let digest = subject_here(session, name, image).await?.manifest.digest;
    let list = session.registry.provenance(name, &digest).await?;
    let note = |why: &str| {
        let text = format!("provenance of {name} does not count: {why}");
        session.reporter.report(Event::Note { text });
    };
    for text in &list.skipped {
        let text = format!("provenance of {name} is not known: not read: {text}");
        session.reporter.report(Event::Warning { text });
    }
    let now = Timestamp::now();
    let mut newest: Option<(Timestamp, Lock, PublicKey)> = None;
    for attestation in list.into_attestations() {
        let by = |signer: &Signer| attestation.envelope.payload_by(&signer.key).map(<[u8]>::to_vec);
        let Some((signer, payload)) = signers.iter().find_map(|signer| Some((signer, by(signer)?))) else {
            continue;
        };
        let Ok(provenance) = Provenance::parse(&payload, &digest) else { continue };
        if signer.not_after.is_some_and(|end| provenance.issued > end) {
            note(&format!("signed after the key's `not-after` by {}", signer.key));
            continue;
        }
        if is_ahead(provenance.issued, now) {
            note(&format!("signed on {}, and this machine's clock says {now}", provenance.issued));
            continue;
        }
        match Lock::from_bytes("the lock in it", provenance.lock.as_bytes()) {
            Ok(lock) if newest.as_ref().is_none_or(|(issued, ..)| provenance.issued > *issued) => {
                newest = Some((provenance.issued, lock, signer.key.clone()));
            }
            Ok(_) => {}
            // Of a newer envforge, say.
            Err(error) => note(&error.to_string()),
        }
    }
    Ok(newest.map(|(_, lock, key)| (lock, key)))
}
