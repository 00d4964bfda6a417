//! Summaries and signatures that a later statement of the same signer stands in place of. A registry that deletes has none; a copy must
//! not bring one back, since policies and cosign read nothing else.

use jiff::Timestamp;
use serde::Deserialize;

use super::documents::Attestation;
use super::envelope::Envelope;
use super::statement::{SUMMARY_TYPE, Statement, signature_issued};

#[derive(Deserialize)]
struct Summary {
    #[serde(rename = "predicateType")]
    kind: String,
    predicate: SummaryPredicate,
}

#[derive(Deserialize)]
struct SummaryPredicate {
    #[serde(rename = "timeCreated")]
    created: Timestamp,
}

/// When a summary or a signature was made; `None`: it is something else.
fn created(payload: &[u8]) -> Option<Timestamp> {
    let summary = serde_json::from_slice::<Summary>(payload).ok();
    let summary = summary.filter(|summary| summary.kind == SUMMARY_TYPE);
    summary.map(|summary| summary.predicate.created).or_else(|| signature_issued(payload))
}

/// The summaries and signatures older than the newest test results by the same signer, as the documents name their signers; a document
/// that names none is of any.
pub fn superseded(found: &[Attestation]) -> Vec<Envelope> {
    let signer_of = |envelope: &Envelope| {
        found.iter().filter(|one| one.envelope == *envelope).find_map(|one| one.signer.clone())
    };
    let results = found.iter().filter_map(|one| {
        let issued = Statement::parse(one.envelope.unchecked_payload()).ok()?.issued;
        Some((signer_of(&one.envelope), issued))
    });
    let results: Vec<(Option<String>, Timestamp)> = results.collect();
    let is_old = |envelope: &Envelope| {
        let Some(created) = created(envelope.unchecked_payload()) else { return false };
        let signer = signer_of(envelope);
        results.iter().any(|(other, issued)| {
            let is_same = signer.is_none() || other.is_none() || *other == signer;
            is_same && *issued > created
        })
    };
    let mut old: Vec<Envelope> = Vec::new();
    for one in found {
        if is_old(&one.envelope) && !old.contains(&one.envelope) {
            old.push(one.envelope.clone());
        }
    }
    old
}
