//! Evidence that is kept on this machine, of images that came without a registry.

use crate::evidence::{Attestation, SavedEvidence};
use crate::model::image_digest::Digest;
use crate::store::kept_evidence::{keep_evidence, kept_evidence};
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
    let Some(bytes) = kept_evidence(store, digest)? else { return Ok(Vec::new()) };
    let saved = SavedEvidence::parse(&format!("the evidence kept of {digest}"), &bytes)?;
    Ok(if saved.digest == *digest { saved.found } else { Vec::new() })
}

/// Keeps evidence of an image, with what is kept of it already. False: it is too large, and nothing changed.
pub(crate) fn keep(store: &Store, saved: SavedEvidence) -> Result<bool, StoreError> {
    let SavedEvidence { name, digest, found } = saved;
    // A damaged file is written anew.
    let mut all = kept(store, &digest).unwrap_or_default();
    add(&mut all, found);
    let file = SavedEvidence { name, digest: digest.clone(), found: all }.to_json();
    if file.len() > MOST_KEPT {
        return Ok(false);
    }
    keep_evidence(store, &digest, &file).map(|()| true)
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
        assert!(keep(&store, saved(&["{}", "[1]"])).expect("kept"));
        assert!(keep(&store, saved(&["[1]", "[2]"])).expect("kept"));
        assert_eq!(kept(&store, &digest).expect("read"), [one("{}"), one("[1]"), one("[2]")]);
        let large = "x".repeat(MOST_KEPT);
        assert!(!keep(&store, saved(&[&large])).expect("refused"));
        assert_eq!(kept(&store, &digest).expect("read").len(), 3);
        assert!(kept(&store, &Digest::of(b"another")).expect("none").is_empty());
        // A damaged file is an error for who reads it, and written anew by who adds to it.
        keep_evidence(&store, &digest, b"{").expect("written");
        assert!(kept(&store, &digest).is_err());
        assert!(keep(&store, saved(&["{}"])).expect("kept"));
        assert_eq!(kept(&store, &digest).expect("read"), [one("{}")]);
    }
}
