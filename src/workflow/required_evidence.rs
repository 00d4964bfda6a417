//! What proves an image for this machine, here or by a trusted key, and `[policy] require-evidence`, which asks for it.
#![expect(clippy::disallowed_methods, reason = "asks the clock how old evidence is")]

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::engine::{EngineInfo, GpuAccess, ImageInfo};
use crate::evidence::{
    Admission, Attestation, Collection, Entry, Known, SavedEvidence, Signer, Wanted, WantedGpu, admit,
    short_fingerprint,
};
use crate::host::{self, GpuError};
use crate::model::compat::Matrix;
use crate::model::image_digest::Digest;
use crate::model::image_ref::ImageRef;
use crate::model::request::Level;
use crate::model::verdict::Proven;
use crate::model::verdict::tag_policy::TagStatus;
use crate::registry::EvidenceSubject;
use crate::report::{Event, Reporter};
use crate::settings::{KeyPurpose, ProvenOn, RequiredEvidence, Settings};
use crate::store::built_images::{pushed_digests, remember_pushed};
use crate::store::kept_evidence::{Origin, last_kept};
use crate::store::{Store, StoreError};
use crate::workflow::error::CommandError;
use crate::workflow::evidence::{EvidenceError, is_unknown, subject_of, trusted_keys};
use crate::workflow::kept_evidence::{add, is_of_registry, keep, kept, kept_from};
use crate::workflow::proven::{lock_of_build, reports_of};
use crate::workflow::session::Session;

/// How long a registry may take where nothing requires its answer.
const PATIENCE: Duration = Duration::from_secs(3);

/// How long it may take where an answer is required.
const DEADLINE: Duration = Duration::from_mins(1);

/// Whose word proves an image.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ProvenBy {
    /// Checks of this machine.
    ThisMachine(Vec<Known>),
    /// Evidence of a trusted key.
    Key(Vec<Known>),
}

/// The answer for this machine.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ForThisMachine {
    /// It is proven.
    Proven(ProvenBy),
    /// It is not, with all reasons; `is_known`: everything answered that could have proven it.
    Not { reasons: Vec<String>, is_known: bool },
}

impl ProvenBy {
    /// `by key 1a2b3c4d: level full on NVIDIA H200, driver 580.95.05 (2026-11-20)`.
    pub(crate) fn text(&self) -> String {
        let (Self::ThisMachine(known) | Self::Key(known)) = self;
        let entries = known.iter().map(|Known { entry, signer, .. }| {
            let by = if matches!(self, Self::Key(_)) { short_fingerprint(signer) } else { "" };
            let by = if by.is_empty() { "here".to_owned() } else { format!("by key {by}") };
            let day = entry.checked.strftime("%F");
            format!("{by}: level {} on {}, driver {} ({day})", entry.level, entry.gpu, entry.driver)
        });
        entries.collect::<Vec<_>>().join("; ")
    }
}

/// An error unless the image is proven as `[policy] require-evidence` asks.
pub(crate) async fn require_evidence(
    session: &Session<'_>,
    image: &ImageInfo,
    name: &str,
) -> Result<(), CommandError> {
    let Some(required) = &session.settings.policy.require_evidence else { return Ok(()) };
    match for_this_machine(session, image, required).await? {
        ForThisMachine::Proven(_) => Ok(()),
        ForThisMachine::Not { reasons, is_known } => Err(EvidenceError::Required {
            image: name.to_owned(),
            level: required.level(),
            file: session.settings.origin("policy.require-evidence").unwrap_or_default(),
            reasons,
            is_known,
        }
        .into()),
    }
}

/// The status of an image's tags under `[policy] require-evidence`: what it does not allow stays unverified.
pub(crate) async fn status_by_policy(
    session: &Session<'_>,
    image: &ImageInfo,
    status: TagStatus,
) -> Result<TagStatus, CommandError> {
    let Some(required) = session.settings.policy.require_evidence.as_ref().filter(|_| status.is_verified())
    else {
        return Ok(status);
    };
    Ok(match for_this_machine(session, image, required).await? {
        ForThisMachine::Proven(_) => status,
        ForThisMachine::Not { reasons, .. } => {
            let because = format!("`[policy] require-evidence`: {}", reasons.join("; "));
            TagStatus::Unverified { because }
        }
    })
}

/// Whose key proves an image for this machine that was not proven here; `None`: no key is trusted, none proves it, or the registry does
/// not answer soon.
pub(crate) async fn proven_by_key(
    session: &Session<'_>,
    image: &ImageInfo,
) -> Result<Option<ProvenBy>, CommandError> {
    let may_be = !image.digests.is_empty() || !pushed_digests(&session.store, &image.id)?.is_empty();
    if session.settings.trust.keys.is_empty() || !may_be {
        return Ok(None);
    }
    let Some(wanted) = wanted_to_show(session.settings, session.engine.info()) else { return Ok(None) };
    let answer = tokio::time::timeout(PATIENCE, proven_for(session, image, &wanted)).await;
    match answer {
        Ok(Ok(ForThisMachine::Proven(by))) => Ok(Some(by)),
        Ok(Ok(ForThisMachine::Not { reasons, .. })) => {
            tracing::debug!(reasons = reasons.join("; "), "no evidence for this machine");
            Ok(None)
        }
        // Nothing depends on it.
        Ok(Err(error)) => {
            session.reporter.report(Event::Warning { text: format!("evidence is not looked at: {error}") });
            Ok(None)
        }
        Err(_) => {
            tracing::debug!(seconds = PATIENCE.as_secs(), "no answer about evidence");
            Ok(None)
        }
    }
}

/// Evidence that is kept on this machine: what a registry or an import once gave. No registry is asked.
pub(crate) struct KeptProofs<'a> {
    store: &'a Store,
    matrix: &'a Matrix,
    signers: Vec<Signer>,
    /// `None`: no key is trusted.
    wanted: Option<Wanted>,
}

impl<'a> KeptProofs<'a> {
    /// Reads the trusted keys, and asks the driver where there are any.
    pub(crate) fn open(
        store: &'a Store,
        settings: &'a Settings,
        engine: &EngineInfo,
        reporter: &dyn Reporter,
    ) -> Self {
        let signers = trusted_keys(&[], settings, KeyPurpose::Tests).unwrap_or_else(|error| {
            reporter.report(Event::Warning { text: format!("evidence is not looked at: {error}") });
            Vec::new()
        });
        let wanted = if signers.is_empty() { None } else { wanted_to_show(settings, engine) };
        Self { store, matrix: &settings.matrix, signers, wanted }
    }

    /// Whose key proves an image for this machine, which neither proved it itself nor saw it fail: `proven by key 1a2b3c4d: …, kept
    /// 2026-11-20, registry not asked`.
    pub(crate) fn text_of(&self, image: &ImageInfo, proven: &Proven) -> Result<Option<String>, StoreError> {
        let Some(wanted) = self.wanted.as_ref().filter(|_| proven.leaves_open()) else { return Ok(None) };
        let now = Timestamp::now();
        for digest in known_digests(self.store, image)? {
            let found = match kept(self.store, &digest) {
                Ok(found) => found,
                // Nothing depends on it.
                Err(error) => {
                    tracing::debug!(%error, "kept evidence is not read");
                    continue;
                }
            };
            let known = Collection::by(&self.signers, &found, &digest, now);
            if let Admission::Admitted(proofs) = admit(&known, wanted, self.matrix, now) {
                let by = ProvenBy::Key(proofs.into_iter().map(|(known, _)| known).collect());
                return Ok(Some(format!("proven {}, {}", by.text(), not_asked(self.store, &digest))));
            }
        }
        Ok(None)
    }
}

/// `kept 2026-11-20, registry not asked`: since that day it may have been withdrawn.
fn not_asked(store: &Store, digest: &Digest) -> String {
    let kept = last_kept(store, digest).and_then(|time| Timestamp::try_from(time).ok());
    let kept = kept.map(|time| format!("kept {}, ", time.strftime("%F"))).unwrap_or_default();
    format!("{kept}registry not asked")
}

/// What is asked of evidence that is shown and decides nothing: the line names GPU and driver, so that any is worth showing where this
/// machine's are not known.
fn wanted_to_show(settings: &Settings, engine: &EngineInfo) -> Option<Wanted> {
    let here = RequiredEvidence::default();
    let any = RequiredEvidence { gpu: Some(ProvenOn::Any), ..here.clone() };
    wanted(settings, engine, &here).or_else(|_| wanted(settings, engine, &any)).ok()
}

/// What proves the image for this machine: its own checks first, then evidence in the registry.
async fn for_this_machine(
    session: &Session<'_>,
    image: &ImageInfo,
    required: &RequiredEvidence,
) -> Result<ForThisMachine, CommandError> {
    match wanted(session.settings, session.engine.info(), required) {
        Ok(wanted) => proven_for(session, image, &wanted).await,
        Err(why) => Ok(ForThisMachine::Not { reasons: vec![why], is_known: false }),
    }
}

/// The same for what is asked of evidence.
async fn proven_for(
    session: &Session<'_>,
    image: &ImageInfo,
    wanted: &Wanted,
) -> Result<ForThisMachine, CommandError> {
    let (matrix, now) = (&session.matrix, Timestamp::now());
    // The agent of a run of this machine is envforge's own.
    let own = Wanted { agents: BTreeSet::new(), ..wanted.clone() };
    let mut reasons: Vec<String> = match admit(&of_this_machine(session, image)?, &own, matrix, now) {
        Admission::Admitted(proofs) => {
            let known = proofs.into_iter().map(|(known, _)| known).collect();
            return Ok(ForThisMachine::Proven(ProvenBy::ThisMachine(known)));
        }
        Admission::Refused(reasons) => {
            reasons.into_iter().map(|why| format!("checked here: {why}")).collect()
        }
    };
    let signers = trusted_keys(&[], session.settings, KeyPurpose::Tests)?;
    let digests = known_digests(&session.store, image)?;
    let names: Vec<ImageRef> = image.digests.iter().filter_map(|text| text.parse().ok()).collect();
    let mut is_known = true;
    if signers.is_empty() {
        reasons.push("evidence: `[trust] keys` names no key".to_owned());
    } else if names.is_empty() {
        // It came in a layout, and its evidence with it; or its names in a registry were removed, which takes no withdrawal back.
        let mut found = Vec::new();
        for digest in &digests {
            if is_of_registry(&session.store, digest)? {
                is_known = false;
                found.push(
                    "evidence kept here is of a registry, which cannot be asked: pull the image again by its \
                     name there"
                        .to_owned(),
                );
                continue;
            }
            let of_digest = Collection::by(&signers, &kept(&session.store, digest)?, digest, now);
            match admit(&of_digest, wanted, matrix, now) {
                Admission::Admitted(proofs) => {
                    let known = proofs.into_iter().map(|(known, _)| known).collect();
                    return Ok(ForThisMachine::Proven(ProvenBy::Key(known)));
                }
                Admission::Refused(why) => {
                    found.extend(why.into_iter().map(|why| format!("evidence kept here: {why}")));
                }
            }
        }
        if found.is_empty() {
            found.push(
                "evidence: the image comes from no registry, and none came with it (`import --evidence`)"
                    .to_owned(),
            );
        }
        reasons.append(&mut found);
    }
    let end = tokio::time::Instant::now() + DEADLINE;
    for name in names.iter().filter(|_| !signers.is_empty()) {
        let asked = tokio::time::timeout_at(end, in_registry(session, (name, image), &digests)).await;
        let Ok(answer) = asked else {
            is_known = false;
            reasons.push(format!(
                "evidence at {}: not known: no answer in {} s",
                name.name(),
                DEADLINE.as_secs()
            ));
            break;
        };
        match answer {
            // What was not read may be a withdrawal.
            Ok(list) if !list.skipped.is_empty() => {
                is_known = false;
                reasons.push(format!(
                    "evidence at {}: not known: not read: {}",
                    name.name(),
                    list.skipped.join("; ")
                ));
            }
            Ok(InRegistry { digest, mut found, .. }) => {
                let seen = kept_from(&session.store, Origin::Registry, &digest)?;
                keep_seen(session, (image, &digest), &signers, (&found, &seen));
                add(&mut found, seen);
                add(&mut found, kept_from(&session.store, Origin::Layout, &digest)?);
                match admit(&Collection::by(&signers, &found, &digest, now), wanted, matrix, now) {
                    Admission::Admitted(proofs) => {
                        let known = proofs.into_iter().map(|(known, _)| known).collect();
                        return Ok(ForThisMachine::Proven(ProvenBy::Key(known)));
                    }
                    Admission::Refused(why) => {
                        reasons
                            .extend(why.into_iter().map(|why| format!("evidence at {}: {why}", name.name())));
                    }
                }
            }
            Err(error) if is_unknown(&error) => {
                is_known = false;
                reasons.push(format!("evidence at {}: not known: {error}", name.name()));
            }
            // The registry has another image there now.
            Err(error) => reasons.push(error.to_string()),
        }
    }
    Ok(ForThisMachine::Not { reasons, is_known })
}

/// Keeps what trusted keys say in a registry: `images` and `ps` show it without asking again, and a registry that forgets a withdrawal
/// brings nothing back.
fn keep_seen(
    session: &Session<'_>,
    (image, digest): (&ImageInfo, &Digest),
    signers: &[Signer],
    (found, seen): (&[Attestation], &[Attestation]),
) {
    let is_new = |one: &&Attestation| {
        let is_by = |signer: &Signer| one.envelope.payload_by(&signer.key).is_some();
        !seen.contains(one) && signers.iter().any(is_by)
    };
    let new: Vec<Attestation> = found.iter().filter(is_new).cloned().collect();
    if new.is_empty() {
        return;
    }
    let store = &session.store;
    let saved = SavedEvidence { name: String::new(), digest: digest.clone(), found: new };
    // An engine may name the index that it pulled.
    let kept =
        remember_pushed(store, &image.id, (digest, None)).and_then(|()| keep(store, Origin::Registry, saved));
    if let Err(error) = kept {
        tracing::debug!(%error, "evidence is not kept");
    }
}

/// What a registry has of the image that it was pulled as.
async fn in_registry(
    session: &Session<'_>,
    (name, image): (&ImageRef, &ImageInfo),
    digests: &[Digest],
) -> Result<InRegistry, CommandError> {
    let machine = session.engine.info().machine;
    let subject = subject_of(&session.registry, name, (&image.id, digests), machine).await?;
    let digest = subject.manifest.digest;
    let list = session.registry.evidence(name, &digest).await?;
    let skipped = list.skipped.clone();
    Ok(InRegistry { digest, found: list.into_attestations(), skipped })
}

/// What a registry has of an image.
struct InRegistry {
    digest: Digest,
    found: Vec<Attestation>,
    /// What could not be read, each in a line.
    skipped: Vec<String>,
}

/// The image in its registry, compared with what this machine pulled or pushed.
pub(crate) async fn subject_here(
    session: &Session<'_>,
    name: &ImageRef,
    image: &ImageInfo,
) -> Result<EvidenceSubject, CommandError> {
    let machine = session.engine.info().machine;
    let digests = known_digests(&session.store, image)?;
    subject_of(&session.registry, name, (&image.id, &digests), machine).await
}

/// The digests under which registries have the image, as far as this machine pulled or pushed it, or loaded it from a layout.
pub(crate) fn known_digests(store: &Store, image: &ImageInfo) -> Result<Vec<Digest>, StoreError> {
    let digest = |text: &String| text.parse::<ImageRef>().ok()?.digest().cloned();
    let mut known: Vec<Digest> = image.digests.iter().filter_map(digest).collect();
    for digest in pushed_digests(store, &image.id)? {
        if !known.contains(&digest) {
            known.push(digest);
        }
    }
    Ok(known)
}

/// The reports of this machine on an image that is ours, as entries.
fn of_this_machine(session: &Session<'_>, image: &ImageInfo) -> Result<Collection, CommandError> {
    if lock_of_build(&session.store, &*session.reporter, &image.id)?.is_none() {
        return Ok(Collection::default());
    }
    let reports = reports_of(&session.store, &*session.reporter, &image.id)?;
    let kept = reports.standing().chain(reports.open_failures());
    // What ran in a sandbox is the image's own word.
    let kept = kept.filter(|kept| !kept.report.sandboxed);
    let entries = kept.flat_map(|kept| Entry::of_report(&kept.report, ""));
    let known =
        entries.map(|entry| Known { issued: entry.checked, signer: String::new(), checked: true, entry });
    Ok(Collection { known: known.collect(), ..Collection::default() })
}

/// What is asked of evidence; the error is why this machine's GPUs are not known.
fn wanted(settings: &Settings, engine: &EngineInfo, required: &RequiredEvidence) -> Result<Wanted, String> {
    let max_age = SignedDuration::from_hours(i64::from(required.max_age().hours()));
    let any = Wanted {
        gpus: Vec::new(),
        count: 1,
        driver: None,
        exact_driver: false,
        level: required.level().max(Level::Quick),
        max_age,
        agents: settings.policy.agents.clone().unwrap_or_default(),
    };
    if required.gpu() == ProvenOn::Any {
        return Ok(any);
    }
    if !engine.local {
        return Err("the engine is on another machine, whose GPUs are not known here".to_owned());
    }
    match host::detect() {
        Ok(facts) if !facts.gpus.is_empty() => {
            let mut gpus: Vec<_> = facts.gpus.into_iter().map(|gpu| WantedGpu::Model(gpu.name)).collect();
            gpus.dedup();
            Ok(Wanted { gpus, driver: Some(facts.driver), ..any })
        }
        // The engine reaches GPUs that this machine's driver does not show.
        Ok(_) | Err(GpuError::NoDriver) if engine.gpu_access() != GpuAccess::Request => {
            Err("the engine has GPUs, and this machine's driver shows none".to_owned())
        }
        // Nothing can run on a GPU here.
        Ok(_) | Err(GpuError::NoDriver) => Ok(any),
        Err(error) => Err(format!("this machine's GPUs are not known: {error}")),
    }
}
