//! Evidence that is kept on this machine: what came with an image, and what registries said of it.

use crate::evidence::{Attestation, SavedEvidence};
use crate::model::image_digest::Digest;
use crate::store::kept_evidence::{Origin, keep_evidence, kept_evidence};
use crate::store::{Store, StoreError};
use crate::workflow::error::CommandError;

/// The most bytes that are kept of one image's evidence: what strangers add takes no place from what is there.
pub(crate) const MOST_KEPT: usize = 48 << 20;

/// Adds what is not there yet.
pub(crate) fn add(found: &mut Vec<Attestation>, more: Vec<Attestation>) {
    for one in more {
        if !found.contains(&one) {
            found.push(one);
        }
    }
}

/// What is kept here of an image's evidence.
pub(crate) fn kept(store: &Store, digest: &Digest) -> Result<Vec<Attestation>, CommandError> {
    let mut found = kept_from(store, Origin::Layout, digest)?;
    add(&mut found, kept_from(store, Origin::Registry, digest)?);
    Ok(found)
}

/// What is kept of it from there.
pub(crate) fn kept_from(
    store: &Store,
    origin: Origin,
    digest: &Digest,
) -> Result<Vec<Attestation>, CommandError> {
    let Some(bytes) = kept_evidence(store, origin, digest)? else { return Ok(Vec::new()) };
    let saved = SavedEvidence::parse(&format!("the evidence kept of {digest}"), &bytes)?;
    Ok(if saved.digest == *digest { saved.found } else { Vec::new() })
}

/// Whether a registry's word on an image is kept. Read alone it may lack a withdrawal: the registry is to be asked.
pub(crate) fn is_of_registry(store: &Store, digest: &Digest) -> Result<bool, StoreError> {
    Ok(kept_evidence(store, Origin::Registry, digest)?.is_some())
}

/// Keeps evidence of an image, with what is kept of it from there already. False: it is too large, and nothing changed.
pub(crate) fn keep(store: &Store, origin: Origin, saved: SavedEvidence) -> Result<bool, StoreError> {
    let SavedEvidence { name, digest, found } = saved;
    // A damaged file is written anew.
    let mut all = kept_from(store, origin, &digest).unwrap_or_default();
    add(&mut all, found);
    let file = SavedEvidence { name, digest: digest.clone(), found: all }.to_json();
    if file.len() > MOST_KEPT {
        return Ok(false);
    }
    keep_evidence(store, origin, &digest, &file).map(|()| true)
}

#[cfg(test)]
mod tests {
    use camino::Utf8Path;

    use super::*;
    use crate::evidence::Envelope;

    fn one(payload: &str) -> Attestation {
        Attestation { envelope: Envelope::of_nobody(payload), signer: None }
    }

    #[test]
    fn what_is_kept_grows_and_what_is_too_large_takes_no_place() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = Utf8Path::from_path(folder.path()).expect("UTF-8");
        let store = Store::open(&root.join("cache"), &root.join("state")).expect("a store");
        let digest = Digest::of(b"image");
        let saved = |payloads: &[&str]| {
            let found = payloads.iter().map(|payload| one(payload)).collect();
            SavedEvidence { name: String::new(), digest: digest.clone(), found }
        };
        let layout = Origin::Layout;
        assert!(keep(&store, layout, saved(&["{}", "[1]"])).expect("kept"));
        assert!(keep(&store, layout, saved(&["[1]", "[2]"])).expect("kept"));
        assert_eq!(kept(&store, &digest).expect("read"), [one("{}"), one("[1]"), one("[2]")]);
        let large = "x".repeat(MOST_KEPT);
        assert!(!keep(&store, layout, saved(&[&large])).expect("refused"));
        assert_eq!(kept(&store, &digest).expect("read").len(), 3);
        assert!(kept(&store, &Digest::of(b"another")).expect("none").is_empty());
        // A damaged file is an error for who reads it, and written anew by who adds to it.
        keep_evidence(&store, layout, &digest, b"{").expect("written");
        assert!(kept(&store, &digest).is_err());
        assert!(keep(&store, layout, saved(&["{}"])).expect("kept"));
        assert_eq!(kept(&store, &digest).expect("read"), [one("{}")]);
        // What a registry says stands apart, and counts with the rest.
        assert!(!is_of_registry(&store, &digest).expect("read"));
        assert!(keep(&store, Origin::Registry, saved(&["{}", "[3]"])).expect("kept"));
        assert!(is_of_registry(&store, &digest).expect("read"));
        assert_eq!(kept(&store, &digest).expect("read"), [one("{}"), one("[3]")]);
        assert_eq!(kept_from(&store, layout, &digest).expect("read"), [one("{}")]);
    }
}
