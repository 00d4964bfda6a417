//! Evidence in a registry: read over both of its forms, and attached in both.
//!
//! A registry has no compare-and-swap. A tag is therefore read right before it is written and read again after it; the two forms are
//! written in one order by everybody, so that what one writer takes out of the first, the other finds in the second.

use std::pin::pin;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use http::{Method, StatusCode};
use serde::Deserialize;

use super::blob::Blob;
use super::client::{Registry, checked, parsed};
use super::client_session::{RepositorySession, TokenScope};
use super::error::RegistryError;
use super::manifest::{ACCEPT, Manifest, is_platform_of, may_be_taken_for};
use super::retry::RetryPolicy;
use super::upload_location::upload_location;
use crate::evidence::{
    Attestation, Bundle, Envelope, Legacy, PROVENANCE_TYPE, PublicKey, RESULT_TYPE, Referrer, SBOM_TYPE,
    SIGNATURE_TYPE, SUMMARY_TYPE, SigningKey, Statement, is_provenance_of_ours, legacy_tag, referrers,
    referrers_tag, signature_issued, superseded, with_referrers,
};
use crate::model::image::manifest::{BlobDescriptor, INDEX_TYPE, MANIFEST_TYPE};
use crate::model::image_digest::Digest;
use crate::model::image_ref::ImageRef;
use crate::model::versions::Machine;
use crate::report::Reporter;

/// Documents of evidence that are read of one image: anybody who may push can add some.
const MOST_DOCUMENTS: usize = 1000;
/// The most bytes of one of them: a statement of two hundred entries has some 800,000, the lock and the bill of materials of an image
/// with 500 packages as many. The client reads no larger body.
pub const LARGEST_DOCUMENT: u64 = 4 << 20;
/// The most bytes of statements that are kept of one image.
const MOST_BYTES: usize = 32 << 20;
/// Pages of a list of referrers that are read.
const MOST_PAGES: usize = 20;
/// Requests at a time.
const AT_A_TIME: usize = 8;
/// The predicate types of evidence.
const TESTS: [&str; 2] = [RESULT_TYPE, SUMMARY_TYPE];
/// Those with the signature that goes with them.
const SIGNED_TESTS: [&str; 3] = [RESULT_TYPE, SUMMARY_TYPE, SIGNATURE_TYPE];
/// Those of what an image was built from.
const ORIGINS: [&str; 2] = [PROVENANCE_TYPE, SBOM_TYPE];
/// All that is carried with an image.
const ALL: [&str; 5] = [RESULT_TYPE, SUMMARY_TYPE, SIGNATURE_TYPE, PROVENANCE_TYPE, SBOM_TYPE];
/// How often a tag is written that others write, too.
const WRITES: usize = 8;
/// The platform of an entry that is no image.
const NO_PLATFORM: &str = "unknown/unknown";

/// An image of a registry that evidence is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EvidenceSubject {
    /// `registry/name`.
    pub name: String,
    /// The index that it was named by, if it was. It has statements of its own: it may list images that did not run.
    pub index: Option<Digest>,
    /// Its manifest.
    pub manifest: BlobDescriptor,
    /// The manifest's media type.
    pub media_type: String,
    /// Digest of its configuration.
    pub config: Digest,
}

/// An index that evidence is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexSubject {
    /// It, as a subject.
    pub subject: EvidenceSubject,
    /// The images that it lists.
    pub images: Vec<Digest>,
}

/// Evidence with the document that holds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundEvidence {
    /// What was found.
    pub attestation: Attestation,
    /// Where.
    place: Place,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Place {
    /// A layer of the `.att` tag.
    Tag(Digest),
    /// A manifest that refers to the image.
    Referrer(Digest),
}

/// What a registry has of an image.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EvidenceList {
    /// The evidence.
    pub found: Vec<FoundEvidence>,
    /// What could not be read, each in a line.
    pub skipped: Vec<String>,
}

impl EvidenceList {
    /// The evidence without its places.
    pub fn attestations(&self) -> Vec<Attestation> {
        self.found.iter().map(|found| found.attestation.clone()).collect()
    }

    /// The same, for whoever needs the places no more.
    pub fn into_attestations(self) -> Vec<Attestation> {
        self.found.into_iter().map(|found| found.attestation).collect()
    }
}

/// A signed document to attach.
#[derive(Debug, Clone)]
pub struct NewEvidence {
    /// It.
    pub envelope: Envelope,
    /// Its predicate type.
    pub predicate: &'static str,
    /// The fingerprint of the key that its bundle names; empty: not known.
    pub signer: String,
}

impl NewEvidence {
    /// Signs a payload.
    pub fn signed(payload: Vec<u8>, predicate: &'static str, key: &SigningKey) -> Self {
        Self { envelope: Envelope::sign(payload, key), predicate, signer: key.public().fingerprint() }
    }

    /// Evidence of another registry or of a file, each once; what is of a kind that is not carried is left out.
    pub fn all_of(found: &[Attestation]) -> Vec<Self> {
        // A form that names the key comes first.
        let named = found.iter().filter(|one| one.signer.is_some());
        let unnamed = found.iter().filter(|one| one.signer.is_none());
        let mut all: Vec<Self> = Vec::new();
        for new in named.chain(unnamed).filter_map(Self::of) {
            if !all.iter().any(|one| one.envelope == new.envelope) {
                all.push(new);
            }
        }
        all
    }

    fn of(found: &Attestation) -> Option<Self> {
        let of_kind: OfKind = serde_json::from_slice(found.envelope.unchecked_payload()).ok()?;
        let predicate = ALL.into_iter().find(|kind| *kind == of_kind.predicate_type)?;
        let (envelope, signer) = (found.envelope.clone(), found.signer.clone().unwrap_or_default());
        Some(Self { envelope, predicate, signer })
    }

    /// Its bundle, which refers to an image by manifest and media type.
    pub fn parts(&self, subject: (&BlobDescriptor, &str), created: &str) -> BundleParts {
        let bundle = Bundle::blob(&self.envelope, &self.signer);
        let manifest = Bundle::manifest(&BlobDescriptor::of(&bundle), self.predicate, subject, created);
        BundleParts { blobs: [bundle, Bundle::CONFIG.to_vec()], manifest }
    }
}

/// A bundle as documents of a registry or a layout.
pub struct BundleParts {
    /// The bundle and its configuration.
    pub blobs: [Vec<u8>; 2],
    /// The manifest.
    pub manifest: Vec<u8>,
}

/// What came of attaching.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Attached {
    /// What others have to know, each in a line.
    pub notes: Vec<String>,
}

impl Attached {
    /// What a registry whose tags are fixed did not take; an error if it took neither form.
    fn with_errors(
        mut self,
        tag_error: Option<RegistryError>,
        index_error: Option<RegistryError>,
    ) -> Result<Self, RegistryError> {
        let unseen = |cosign: u8, tag: &str, error: RegistryError| {
            format!("cosign {cosign} sees no new evidence: `{tag}` is not written: {error}")
        };
        match (tag_error, index_error) {
            // Both forms are tags that this registry does not let anybody write again.
            (Some(error), Some(_)) => return Err(error),
            (Some(error), None) => self.notes.push(unseen(2, ".att", error)),
            (None, Some(error)) => self.notes.push(unseen(3, "sha256-…", error)),
            (None, None) => {}
        }
        Ok(self)
    }
}

impl Registry {
    /// Returns the image behind a name: of an index the manifest for that machine.
    pub async fn evidence_subject(
        &self,
        image: &ImageRef,
        machine: Machine,
    ) -> Result<EvidenceSubject, RegistryError> {
        let mut session = self.session(image, TokenScope::Pull, RetryPolicy::NEEDED)?;
        let mut answer = session.get(&format!("manifests/{}", image.wanted()), &ACCEPT).await?;
        let mut digest = checked(image, &answer, image.digest())?;
        let mut index = None;
        let config = match parsed(image, &answer)? {
            Manifest::Image { config, .. } => config,
            Manifest::Index(entries) => {
                // Which of several an engine runs is its own rule: none of them is what was checked for certain.
                let taken = entries.iter().filter(|entry| may_be_taken_for(entry, machine)).count();
                if taken > 1 {
                    let kind = format!("index with {taken} images for {}", machine.platform());
                    return Err(RegistryError::Kind { reference: image.to_string(), kind });
                }
                let entry = entries.iter().find(|entry| is_platform_of(&entry.platform, machine));
                let Some(entry) = entry else {
                    return Err(RegistryError::NoPlatform {
                        reference: image.to_string(),
                        platform: machine.platform().to_owned(),
                        published: entries.into_iter().map(|entry| entry.platform).collect(),
                    });
                };
                answer = session.get(&format!("manifests/{}", entry.digest), &ACCEPT).await?;
                index = Some(std::mem::replace(&mut digest, checked(image, &answer, Some(&entry.digest))?));
                match parsed(image, &answer)? {
                    Manifest::Image { config, .. } => config,
                    Manifest::Index(_) => {
                        let kind = "index of an index".to_owned();
                        return Err(RegistryError::Kind { reference: image.to_string(), kind });
                    }
                }
            }
        };
        let media_type = answer.header("content-type").filter(|kind| ACCEPT.contains(kind));
        Ok(EvidenceSubject {
            name: format!("{}/{}", image.registry(), image.repository()),
            media_type: media_type.unwrap_or(MANIFEST_TYPE).to_owned(),
            manifest: BlobDescriptor { digest, size: answer.body.len() as u64 },
            index,
            config,
        })
    }

    /// Returns the evidence of the manifest with that digest, in both forms.
    pub async fn evidence(&self, image: &ImageRef, digest: &Digest) -> Result<EvidenceList, RegistryError> {
        self.signed_documents(image, digest, &TESTS).await
    }

    /// Returns the same with the signatures that go with it: what the next statement of a key takes the place of.
    pub async fn signed_evidence(
        &self,
        image: &ImageRef,
        digest: &Digest,
    ) -> Result<EvidenceList, RegistryError> {
        self.signed_documents(image, digest, &SIGNED_TESTS).await
    }

    /// Returns the index with that digest and the images that it lists; `None`: the repository has no such index any more.
    pub async fn index_subject(
        &self,
        image: &ImageRef,
        index: &Digest,
    ) -> Result<Option<IndexSubject>, RegistryError> {
        let mut session = self.session(image, TokenScope::Pull, RetryPolicy::NEEDED)?;
        let answer = match session.get(&format!("manifests/{index}"), &ACCEPT).await {
            Ok(answer) => answer,
            Err(RegistryError::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let digest = checked(image, &answer, Some(index))?;
        let Manifest::Index(entries) = parsed(image, &answer)? else { return Ok(None) };
        // The attestations that builders list next to an image have a platform that no engine has.
        let images = entries.into_iter().filter(|entry| entry.is_unstated || entry.platform != NO_PLATFORM);
        let media_type = answer.header("content-type").filter(|kind| ACCEPT.contains(kind));
        let subject = EvidenceSubject {
            name: format!("{}/{}", image.registry(), image.repository()),
            index: None,
            media_type: media_type.unwrap_or(INDEX_TYPE).to_owned(),
            manifest: BlobDescriptor { digest: digest.clone(), size: answer.body.len() as u64 },
            // An index has none.
            config: digest,
        };
        Ok(Some(IndexSubject { subject, images: images.map(|entry| entry.digest).collect() }))
    }

    /// Returns the provenance and bills of materials of the manifest with that digest, in both forms.
    pub async fn provenance(&self, image: &ImageRef, digest: &Digest) -> Result<EvidenceList, RegistryError> {
        self.signed_documents(image, digest, &ORIGINS).await
    }

    /// Returns all of these of the manifest with that digest: what goes with the image.
    pub async fn all_evidence(
        &self,
        image: &ImageRef,
        digest: &Digest,
    ) -> Result<EvidenceList, RegistryError> {
        self.signed_documents(image, digest, &ALL).await
    }

    async fn signed_documents(
        &self,
        image: &ImageRef,
        digest: &Digest,
        kinds: &'static [&'static str],
    ) -> Result<EvidenceList, RegistryError> {
        let mut session = self.session(image, TokenScope::Pull, RetryPolicy::NEEDED)?;
        let mut list = EvidenceList::default();
        let (referrers, _) = referrers_of(&mut session, digest).await?;
        let wanted: Vec<_> = referrers.into_iter().filter(|referrer| referrer.may_be(kinds)).collect();
        let legacy = legacy(&mut session, digest).await?;
        let layers: Vec<_> = legacy.blobs(kinds).into_iter().rev().collect();
        for (count, what) in [(wanted.len(), "referrers"), (layers.len(), "layers of the `.att` tag")] {
            if count > MOST_DOCUMENTS {
                list.skipped.push(format!("{count} {what}, {MOST_DOCUMENTS} read"));
            }
        }
        let bundles = stream::iter(wanted.into_iter().take(MOST_DOCUMENTS));
        let bundles =
            bundles.map(|referrer| bundle(session.clone(), referrer.digest, kinds)).buffered(AT_A_TIME);
        let layers = stream::iter(layers.into_iter().take(MOST_DOCUMENTS));
        let envelopes = layers.map(|blob| envelope(session.clone(), blob, kinds)).buffered(AT_A_TIME);
        let mut documents = pin!(bundles.chain(envelopes));
        let mut bytes = 0;
        while let Some(found) = documents.try_next().await? {
            match found {
                Found::Evidence(found) => {
                    bytes += found.attestation.envelope.unchecked_payload().len();
                    list.found.push(*found);
                }
                Found::TooLarge(size) => {
                    list.skipped.push(format!("a document of {size} bytes, limit {LARGEST_DOCUMENT}"));
                }
                Found::Other => {}
            }
            if bytes > MOST_BYTES {
                list.skipped.push(format!("more than {MOST_BYTES} bytes of statements"));
                break;
            }
        }
        Ok(list)
    }

    /// Attaches signed documents to an image in both forms, in place of those of the same key in `known`: readers that know no numbers
    /// would print them as well. What the key has signed since then stays.
    pub async fn attach_evidence(
        &self,
        (image, subject): (&ImageRef, &EvidenceSubject),
        (known, new): (&EvidenceList, &[NewEvidence]),
        (key, created): (&PublicKey, &str),
        reporter: &Arc<dyn Reporter>,
    ) -> Result<Attached, RegistryError> {
        // Every predicate type of ours: a summary that nothing supports any more goes, too.
        let is_own = |found: &&FoundEvidence| found.attestation.envelope.payload_by(key).is_some_and(is_ours);
        let own: Vec<&FoundEvidence> = known.found.iter().filter(is_own).collect();
        let layers: Vec<Digest> = own.iter().filter_map(|found| found.place.layer()).collect();
        let bundles: Vec<Digest> = own.iter().filter_map(|found| found.place.referrer()).collect();
        let tagged = in_tag(new);
        self.attach_forms((image, subject), (&layers, &tagged), (&bundles, new), (created, reporter)).await
    }

    /// Attaches documents in both forms, in place of others: the layers of the `.att` tag, then the bundles, each the old and the new ones.
    async fn attach_forms(
        &self,
        (image, subject): (&ImageRef, &EvidenceSubject),
        by_tag: (&[Digest], &[NewEvidence]),
        (old, new): (&[Digest], &[NewEvidence]),
        (created, reporter): (&str, &Arc<dyn Reporter>),
    ) -> Result<Attached, RegistryError> {
        let is_empty = |(old, new): (&[Digest], &[NewEvidence])| old.is_empty() && new.is_empty();
        let mut attached = Attached::default();
        let tag_error = if is_empty(by_tag) {
            None
        } else {
            self.attach_by_tag(image, subject, by_tag, reporter).await?
        };
        let mut index_error = None;
        if !is_empty((old, new)) {
            if self.attach_bundles((image, subject), new, created, reporter).await? {
                self.remove_referrers(image, old, &mut attached).await?;
            } else {
                index_error = self.list_referrers(image, subject, new, (old, created)).await?;
            }
        }
        attached.with_errors(tag_error, index_error)
    }

    /// Attaches documents that others signed, in each form in which they are not there. Returns how many of them are new.
    pub async fn copy_evidence(
        &self,
        (image, subject): (&ImageRef, &EvidenceSubject),
        found: &[Attestation],
        created: &str,
        reporter: &Arc<dyn Reporter>,
    ) -> Result<(usize, Attached), RegistryError> {
        let there = self.signed_documents(image, &subject.manifest.digest, &ALL).await?;
        // Readers that know no numbers would believe a summary that its signer has replaced or taken back.
        let old = superseded(&[found, &there.attestations()].concat());
        let mut wanted = NewEvidence::all_of(found);
        wanted.retain(|new| !old.contains(&new.envelope));
        let is_stale = |found: &&FoundEvidence| old.contains(&found.attestation.envelope);
        let stale: Vec<&Place> = there.found.iter().filter(is_stale).map(|found| &found.place).collect();
        let stale_tags: Vec<Digest> = stale.iter().filter_map(|place| place.layer()).collect();
        let stale_bundles: Vec<Digest> = stale.iter().filter_map(|place| place.referrer()).collect();
        let lacks = |is_form: fn(&Place) -> bool| {
            let is_there = |new: &NewEvidence| {
                there.found.iter().any(|one| is_form(&one.place) && one.attestation.envelope == new.envelope)
            };
            wanted.iter().filter(|new| !is_there(new)).cloned().collect::<Vec<_>>()
        };
        let by_tag = in_tag(&lacks(|place| matches!(place, Place::Tag(_))));
        let bundles = lacks(|place| matches!(place, Place::Referrer(_)));
        let is_new = |new: &&NewEvidence| {
            let is_it = |list: &[NewEvidence]| list.iter().any(|one| one.envelope == new.envelope);
            (is_it(&by_tag) || new.predicate == SIGNATURE_TYPE) && is_it(&bundles)
        };
        let count = wanted.iter().filter(is_new).count();
        let (by_tag, bundles) = ((&*stale_tags, &*by_tag), (&*stale_bundles, &*bundles));
        let attached = self.attach_forms((image, subject), by_tag, bundles, (created, reporter)).await?;
        Ok((count, attached))
    }

    /// The `.att` tag. Returns the error of a registry whose tags are immutable.
    async fn attach_by_tag(
        &self,
        image: &ImageRef,
        subject: &EvidenceSubject,
        (old, new): (&[Digest], &[NewEvidence]),
        reporter: &Arc<dyn Reporter>,
    ) -> Result<Option<RegistryError>, RegistryError> {
        let envelopes: Vec<Vec<u8>> = new.iter().map(|new| new.envelope.to_json()).collect();
        let blobs: Vec<Blob> = envelopes.iter().map(|bytes| blob("evidence", bytes)).collect();
        self.push_blobs(image, &blobs, reporter).await?;
        let digest = &subject.manifest.digest;
        let wanted: Vec<Digest> = envelopes.iter().map(|bytes| Digest::of(bytes)).collect();
        let kinds: Vec<&str> = new.iter().map(|new| new.predicate).collect();
        for _ in 0..WRITES {
            let mut session = self.session(image, TokenScope::Push, RetryPolicy::NEEDED)?;
            let mut manifest = legacy(&mut session, digest).await?;
            manifest.remove(old);
            for (bytes, new) in envelopes.iter().zip(new) {
                manifest.add(&BlobDescriptor::of(bytes), new.predicate);
            }
            self.push_blobs(image, &[blob("evidence, configuration", &manifest.config())], reporter).await?;
            let mut session = self.session(image, TokenScope::Push, RetryPolicy::NEEDED)?;
            let path = format!("manifests/{}", legacy_tag(digest));
            match session.put(&path, MANIFEST_TYPE, Bytes::from(manifest.manifest())).await {
                Ok(_) => {}
                Err(error) if is_fixed_tag(&error) => return Ok(Some(error)),
                Err(error) => return Err(error),
            }
            let now: Vec<Digest> = legacy(&mut session, digest)
                .await?
                .blobs(&kinds)
                .into_iter()
                .map(|blob| blob.digest)
                .collect();
            if wanted.iter().all(|digest| now.contains(digest)) {
                return Ok(None);
            }
        }
        Err(contended(image, "evidence"))
    }

    /// The bundles, each put by its digest. Returns whether the registry lists referrers itself.
    async fn attach_bundles(
        &self,
        (image, subject): (&ImageRef, &EvidenceSubject),
        new: &[NewEvidence],
        created: &str,
        reporter: &Arc<dyn Reporter>,
    ) -> Result<bool, RegistryError> {
        let mut blobs: Vec<Blob> =
            new.iter().map(|new| blob("evidence", &Bundle::blob(&new.envelope, &new.signer))).collect();
        blobs.push(blob("evidence, configuration", Bundle::CONFIG));
        self.push_blobs(image, &blobs, reporter).await?;
        let mut session = self.session(image, TokenScope::Push, RetryPolicy::NEEDED)?;
        let mut has_api = true;
        for new in new {
            let manifest = bundle_manifest(subject, new, created);
            let path = format!("manifests/{}", Digest::of(&manifest));
            let answer = session.put(&path, MANIFEST_TYPE, Bytes::from(manifest)).await?;
            has_api &= answer.header("oci-subject").is_some();
        }
        // Nothing was attached that could have told: the list itself does.
        if new.is_empty() {
            has_api = referrers_of(&mut session, &subject.manifest.digest).await?.1;
        }
        Ok(has_api)
    }

    /// Takes earlier bundles out of a registry that lists referrers itself.
    async fn remove_referrers(
        &self,
        image: &ImageRef,
        old: &[Digest],
        attached: &mut Attached,
    ) -> Result<(), RegistryError> {
        let mut session = self.session(image, TokenScope::Push, RetryPolicy::NEEDED)?;
        let mut kept = 0_usize;
        for digest in old {
            let address = session.below(&format!("manifests/{digest}"));
            let ask = session.ask(Method::DELETE, address);
            match session.answer(ask).await {
                Ok(answer) if answer.status.is_success() || answer.status == StatusCode::NOT_FOUND => {}
                Err(error) if error.is_unreachable() => return Err(error),
                Ok(_) | Err(_) => kept += 1,
            }
        }
        if kept > 0 {
            attached.notes.push(format!(
                "this registry deletes no manifests: cosign may still read {kept} earlier statements; `envforge evidence` counts the newest"
            ));
        }
        Ok(())
    }

    /// The list of referrers where the registry keeps none. Returns why it cannot be written, as for the `.att` tag.
    async fn list_referrers(
        &self,
        image: &ImageRef,
        subject: &EvidenceSubject,
        new: &[NewEvidence],
        (old, created): (&[Digest], &str),
    ) -> Result<Option<RegistryError>, RegistryError> {
        let manifests: Vec<(BlobDescriptor, &str)> = new
            .iter()
            .map(|new| (BlobDescriptor::of(&bundle_manifest(subject, new, created)), new.predicate))
            .collect();
        let tag = referrers_tag(&subject.manifest.digest);
        let path = format!("manifests/{tag}");
        for _ in 0..WRITES {
            let mut session = self.session(image, TokenScope::Push, RetryPolicy::NEEDED)?;
            let before = document(&mut session, &path).await?;
            let after = with_referrers(before.as_deref(), old, &manifests)
                .ok_or_else(|| not_a_list(&session, "a list of referrers"))?;
            match session.put(&path, INDEX_TYPE, Bytes::from(after)).await {
                Ok(_) => {}
                Err(error) if is_fixed_tag(&error) => return Ok(Some(error)),
                Err(error) => return Err(error),
            }
            let now = document(&mut session, &path).await?;
            let now = now.and_then(|bytes| referrers(&bytes)).unwrap_or_default();
            let is_there = |digest: &Digest| now.iter().any(|referrer| referrer.digest == *digest);
            if manifests.iter().all(|(manifest, _)| is_there(&manifest.digest)) {
                return Ok(None);
            }
        }
        Err(contended(image, "evidence"))
    }
}

/// The error for something that others wrote each time, too.
pub(super) fn contended(image: &ImageRef, what: &str) -> RegistryError {
    RegistryError::Status {
        registry: image.registry().to_owned(),
        status: format!("{what} was overwritten by another writer each time"),
        detail: String::new(),
    }
}

impl Place {
    fn layer(&self) -> Option<Digest> {
        if let Self::Tag(digest) = self { Some(digest.clone()) } else { None }
    }

    fn referrer(&self) -> Option<Digest> {
        if let Self::Referrer(digest) = self { Some(digest.clone()) } else { None }
    }
}

/// The documents that are layers of the `.att` tag, too: cosign keeps no signature there.
fn in_tag(new: &[NewEvidence]) -> Vec<NewEvidence> {
    new.iter().filter(|new| new.predicate != SIGNATURE_TYPE).cloned().collect()
}

/// Whether a payload that our key signed is one that the next statement takes the place of: a list of entries that was read, or a
/// summary or signature of one, or what an image was built from. The key may sign other results as well.
fn is_ours(payload: &[u8]) -> bool {
    let value: serde_json::Value = serde_json::from_slice(payload).unwrap_or_default();
    let verifier = value["predicate"]["verifier"]["id"].as_str().unwrap_or_default();
    let is_summary = value["predicateType"] == SUMMARY_TYPE && verifier.starts_with("pkg:cargo/envforge@");
    let is_signature = signature_issued(payload).is_some();
    is_summary || is_signature || Statement::parse(payload).is_ok() || is_provenance_of_ours(payload)
}

/// Whether a registry refuses to write a tag again: immutable tags answer with a conflict, or call the tag invalid.
fn is_fixed_tag(error: &RegistryError) -> bool {
    let RegistryError::Status { status, .. } = error else { return false };
    ["400", "405", "409", "412"].iter().any(|code| status.starts_with(code))
}

fn blob(title: &str, bytes: &[u8]) -> Blob {
    Blob {
        title: title.to_owned(),
        known: Some(BlobDescriptor::of(bytes)),
        content: Arc::new(Bytes::copy_from_slice(bytes)),
        mount_from: Vec::new(),
    }
}

fn bundle_manifest(subject: &EvidenceSubject, new: &NewEvidence, created: &str) -> Vec<u8> {
    new.parts((&subject.manifest, &subject.media_type), created).manifest
}

/// A document below the repository; `None`: there is none.
async fn document(session: &mut RepositorySession<'_>, path: &str) -> Result<Option<Bytes>, RegistryError> {
    match session.get(path, &ACCEPT).await {
        Ok(answer) => Ok(Some(answer.body)),
        Err(RegistryError::NotFound { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The error for a body that is not what the API answers: nothing may be concluded from it.
fn not_a_list(session: &RepositorySession<'_>, what: &str) -> RegistryError {
    RegistryError::NotARegistry {
        registry: session.image().registry().to_owned(),
        what: format!("it answers with something that is not {what}"),
    }
}

/// The referrers of a manifest, and whether the registry lists them itself.
async fn referrers_of(
    session: &mut RepositorySession<'_>,
    digest: &Digest,
) -> Result<(Vec<Referrer>, bool), RegistryError> {
    let mut address = session.below(&format!("referrers/{digest}"));
    let mut all = Vec::new();
    for page in 0..MOST_PAGES {
        let ask = session.ask(Method::GET, address.clone());
        let answer = session.answer(ask).await?;
        if !answer.status.is_success() {
            let is_absent = page == 0
                && !answer.status.is_server_error()
                && answer.status != StatusCode::TOO_MANY_REQUESTS;
            if is_absent {
                break;
            }
            return Err(session.refused(&answer));
        }
        all.extend(referrers(&answer.body).ok_or_else(|| not_a_list(session, "a list of referrers"))?);
        let next = answer.header("link").and_then(|link| link.split_once('<')?.1.split_once('>'));
        let Some((next, _)) = next.filter(|(_, rest)| rest.contains("next")) else { return Ok((all, true)) };
        address = upload_location(&address, Some(next)).map_err(|why| RegistryError::Location {
            registry: session.image().registry().to_owned(),
            why,
        })?;
    }
    if !all.is_empty() {
        return Err(not_a_list(session, "a list of referrers with an end"));
    }
    match document(session, &format!("manifests/{}", referrers_tag(digest))).await? {
        None => Ok((Vec::new(), false)),
        Some(list) => {
            let list = referrers(&list).ok_or_else(|| not_a_list(session, "a list of referrers"))?;
            Ok((list, false))
        }
    }
}

async fn legacy(session: &mut RepositorySession<'_>, digest: &Digest) -> Result<Legacy, RegistryError> {
    match document(session, &format!("manifests/{}", legacy_tag(digest))).await? {
        None => Ok(Legacy::default()),
        Some(bytes) => Legacy::parse(&bytes).ok_or_else(|| not_a_list(session, "a manifest of attestations")),
    }
}

/// What a document turned out to be.
enum Found {
    Evidence(Box<FoundEvidence>),
    /// Of so many bytes.
    TooLarge(u64),
    /// Something else, or it has gone.
    Other,
}

/// As much of a statement as tells its kind: the rest is not kept.
#[derive(Deserialize)]
struct OfKind {
    #[serde(rename = "predicateType")]
    predicate_type: String,
}

impl Found {
    fn of(attestation: Option<Attestation>, place: Place, kinds: &[&str]) -> Self {
        // Other programs attach SBOMs and provenance in the same forms: they are not kept in memory.
        let is_kind = |attestation: &Attestation| {
            let payload = attestation.envelope.unchecked_payload();
            let of_kind = serde_json::from_slice::<OfKind>(payload);
            of_kind.is_ok_and(|OfKind { predicate_type: kind }| {
                // A signature that cosign made says nothing of checks.
                kinds.contains(&kind.as_str())
                    && (kind != SIGNATURE_TYPE || signature_issued(payload).is_some())
            })
        };
        match attestation.filter(is_kind) {
            Some(attestation) => Self::Evidence(Box::new(FoundEvidence { attestation, place })),
            None => Self::Other,
        }
    }
}

/// The evidence of one referrer.
async fn bundle(
    mut session: RepositorySession<'_>,
    digest: Digest,
    kinds: &[&str],
) -> Result<Found, RegistryError> {
    let manifest = verified(&mut session, &format!("manifests/{digest}"), &digest).await?;
    let Some(blob) = manifest.and_then(|bytes| Bundle::of_manifest(&bytes)) else { return Ok(Found::Other) };
    if blob.size > LARGEST_DOCUMENT {
        return Ok(Found::TooLarge(blob.size));
    }
    let bytes = verified(&mut session, &format!("blobs/{}", blob.digest), &blob.digest).await?;
    let bytes = bytes.filter(|bytes| bytes.len() as u64 == blob.size);
    Ok(Found::of(bytes.and_then(|bytes| Bundle::attestation(&bytes)), Place::Referrer(digest), kinds))
}

/// The evidence of one layer of the `.att` tag.
async fn envelope(
    mut session: RepositorySession<'_>,
    blob: BlobDescriptor,
    kinds: &[&str],
) -> Result<Found, RegistryError> {
    if blob.size > LARGEST_DOCUMENT {
        return Ok(Found::TooLarge(blob.size));
    }
    let bytes = verified(&mut session, &format!("blobs/{}", blob.digest), &blob.digest).await?;
    let bytes = bytes.filter(|bytes| bytes.len() as u64 == blob.size);
    let envelope = bytes.and_then(|bytes| Envelope::parse(&bytes).ok());
    let attestation = envelope.map(|envelope| Attestation { envelope, signer: None });
    Ok(Found::of(attestation, Place::Tag(blob.digest), kinds))
}

/// A document that has that digest; `None`: it is not there.
async fn verified(
    session: &mut RepositorySession<'_>,
    path: &str,
    digest: &Digest,
) -> Result<Option<Bytes>, RegistryError> {
    match session.get(path, &ACCEPT).await {
        Ok(answer) => checked(session.image(), &answer, Some(digest)).map(|_| Some(answer.body)),
        Err(RegistryError::NotFound { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}
