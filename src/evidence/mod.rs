//! Evidence: signed statements that an image ran correctly on a GPU model with a driver, kept with the image in its registry.
//!
//! Pure but for the random numbers of a signature. `key` and `envelope` sign and check (DSSE, as cosign does), `statement` is what is
//! signed, `collection` reads statements of trusted keys together, `admit` answers whether they prove an image for a machine,
//! `provenance` says what an image was built from, `documents` are the manifests and blobs in a registry, `saved` is the file of `evidence --save`.

mod admit;
mod collection;
mod cosign_key;
mod documents;
mod entry;
mod envelope;
mod key;
mod key_error;
mod provenance;
mod saved;
mod statement;
mod superseded;

pub use admit::{Admission, Wanted, WantedGpu, admit, is_model};
pub(crate) use collection::is_ahead;
pub use collection::{Collection, Known, Signer};
pub use documents::{
    Attestation, Bundle, Legacy, Referrer, is_bundle_manifest, legacy_tag, referrers, referrers_tag,
    with_referrers,
};
pub use entry::{AttestedNodes, Entry, EntryOutcome};
pub use envelope::{Envelope, EnvelopeError};
pub use key::{PublicKey, SigningKey, short_fingerprint};
pub use key_error::KeyError;
pub(crate) use provenance::is_provenance_of_ours;
pub use provenance::{PROVENANCE_TYPE, Provenance, SBOM_TYPE};
pub use saved::{SavedError, SavedEvidence};
pub(crate) use statement::signature_issued;
pub use statement::{RESULT_TYPE, SIGNATURE_TYPE, SUMMARY_TYPE, Statement};
pub use superseded::superseded;

#[cfg(test)]
mod tests;
