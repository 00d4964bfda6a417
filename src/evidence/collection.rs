//! Statements of several signers read together: for each entry the newest word of its signer counts.
//!
//! A registry forgets nothing and orders nothing. Statements therefore carry a number that grows, an entry that a later statement does
//! not repeat is kept, and a withdrawal is an entry of its own.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use super::documents::Attestation;
use super::entry::{Entry, EntryKey};
use super::key::PublicKey;
use super::statement::{Statement, StatementError};
use crate::model::image_digest::Digest;

/// How far the clocks of two machines may be apart.
const CLOCKS: SignedDuration = SignedDuration::from_mins(10);

/// Whether a stamp of another machine is later than `now`, by more than clocks may be apart.
pub(crate) fn is_ahead(stamp: Timestamp, now: Timestamp) -> bool {
    stamp > now.saturating_add(CLOCKS).unwrap_or(now)
}

/// A key that is trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signer {
    /// The key.
    pub key: PublicKey,
    /// Statements signed later count for nothing.
    pub not_after: Option<Timestamp>,
}

/// An entry with who said it.
#[derive(Debug, Clone, PartialEq)]
pub struct Known {
    /// The entry.
    pub entry: Entry,
    /// The fingerprint of the key; empty: the statement names none.
    pub signer: String,
    /// Whether the signature was checked with a key that is trusted.
    pub checked: bool,
    /// When the statement was signed.
    pub issued: Timestamp,
}

/// What the evidence of an image says.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Collection {
    /// The entries, by signer, GPU, branch and level.
    pub known: Vec<Known>,
    /// What was there and counts for nothing, each in a line.
    pub ignored: Vec<String>,
    /// The highest number of a statement that was read, whether it counts or not.
    pub highest: u64,
    /// Whether a statement could not be read, since it is damaged or of a newer envforge.
    pub has_unreadable: bool,
}

/// What happens to statements of one number that differ.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Conflicts {
    /// Readers believe none of them.
    Refuse,
    /// Their signer repeats the entries of all in its next one.
    Unite,
}

/// The entries of one signer, each with when it was signed.
type Entries = BTreeMap<EntryKey, (Entry, Timestamp)>;

/// The statements of one signer, each with its payload.
type Statements<'a> = Vec<(Statement, &'a [u8])>;

impl Collection {
    /// Reads the evidence of the image with that digest by keys that are trusted.
    pub fn by(signers: &[Signer], found: &[Attestation], digest: &Digest, now: Timestamp) -> Self {
        Self::with_keys(signers, found, (digest, now), Conflicts::Refuse)
    }

    /// Reads what a key has said until now, for its next statement: nothing of it may be lost.
    pub fn own(key: &PublicKey, found: &[Attestation], digest: &Digest, now: Timestamp) -> Self {
        let signer = Signer { key: key.clone(), not_after: None };
        Self::with_keys(&[signer], found, (digest, now), Conflicts::Unite)
    }

    fn with_keys(
        signers: &[Signer],
        found: &[Attestation],
        (digest, now): (&Digest, Timestamp),
        conflicts: Conflicts,
    ) -> Self {
        let mut all = Self::default();
        let mut of_signer: BTreeMap<&PublicKey, Statements<'_>> = BTreeMap::new();
        let mut foreign = 0_usize;
        for attestation in found {
            let signed = signers
                .iter()
                .find_map(|signer| Some((signer, attestation.envelope.payload_by(&signer.key)?)));
            let Some((signer, payload)) = signed else {
                // Test results of other programs and summaries are no entries whoever signed them.
                foreign += usize::from(Statement::parse(attestation.envelope.unchecked_payload()).is_ok());
                continue;
            };
            // The same statement stands in both forms.
            let read = of_signer.get(&signer.key);
            if read.is_some_and(|read| read.iter().any(|(_, bytes)| *bytes == payload)) {
                continue;
            }
            match all.statement(payload, digest, now) {
                Some(statement) if signer.not_after.is_some_and(|end| statement.issued > end) => {
                    all.ignored.push(format!(
                        "statement {} of {}: signed on {}, after the key's `not-after`",
                        statement.number,
                        signer.key,
                        statement.issued.strftime("%F")
                    ));
                }
                Some(statement) => {
                    of_signer.entry(&signer.key).or_default().push((statement, payload));
                }
                None => {}
            }
        }
        if foreign > 0 {
            all.ignored.push(format!("{foreign} by keys that are not trusted here"));
        }
        for (key, statements) in of_signer {
            all.read(statements, (&key.fingerprint(), true), conflicts);
        }
        all
    }

    /// Reads it without any key: anybody may have said it.
    pub fn unchecked(found: &[Attestation], digest: &Digest, now: Timestamp) -> Self {
        let mut all = Self::default();
        let mut of_signer: BTreeMap<String, Statements<'_>> = BTreeMap::new();
        for attestation in found {
            let payload = attestation.envelope.unchecked_payload();
            if let Some(statement) = all.statement(payload, digest, now) {
                let signer = attestation.signer.clone().unwrap_or_default();
                of_signer.entry(signer).or_default().push((statement, payload));
            }
        }
        // The same statement stands in a form that names its key and in one that does not.
        let named = of_signer.iter().filter(|(signer, _)| !signer.is_empty()).flat_map(|(_, all)| all);
        let named: Vec<&[u8]> = named.map(|(_, bytes)| *bytes).collect();
        if let Some(unnamed) = of_signer.get_mut("") {
            unnamed.retain(|(_, bytes)| !named.contains(bytes));
        }
        for (signer, statements) in of_signer {
            all.read(statements, (&signer, false), Conflicts::Refuse);
        }
        all
    }

    /// The statement of a payload, if it is about the image and not from the future.
    fn statement(&mut self, payload: &[u8], digest: &Digest, now: Timestamp) -> Option<Statement> {
        let mut statement = match Statement::parse(payload) {
            Ok(statement) => statement,
            Err(StatementError::OtherKind(_)) => return None,
            Err(error) => {
                self.ignored.push(error.to_string());
                self.has_unreadable = true;
                return None;
            }
        };
        let what = format!("statement {}", statement.number);
        if !statement.digests.contains(digest) {
            self.ignored.push(format!("{what}: about another image"));
            return None;
        }
        if is_ahead(statement.issued, now) {
            self.ignored
                .push(format!("{what}: signed on {}, and this machine's clock says {now}", statement.issued));
            // A clock that is wrong proves nothing, and takes back all the same.
            statement.entries.retain(|entry| !entry.stands());
        }
        self.highest = self.highest.max(statement.number);
        Some(statement)
    }

    /// Adds what one signer says.
    fn read(
        &mut self,
        mut statements: Statements<'_>,
        (signer, checked): (&str, bool),
        conflicts: Conflicts,
    ) {
        statements.sort_by(|(one, first), (other, second)| {
            (one.number, one.issued, first).cmp(&(other.number, other.issued, second))
        });
        statements.dedup_by(|(_, one), (_, other)| one == other);
        let mut entries = Entries::new();
        for (statement, _) in &statements {
            let same = statements.iter().filter(|(other, _)| other.number == statement.number).count();
            let is_refused = same > 1 && conflicts == Conflicts::Refuse;
            if is_refused {
                let text = format!(
                    "{same} different statements with number {}: none of them counts",
                    statement.number
                );
                if !self.ignored.contains(&text) {
                    self.ignored.push(text);
                }
            }
            let (passed, withdrawn): (Vec<&Entry>, Vec<&Entry>) =
                statement.entries.iter().partition(|entry| entry.stands());
            let counted = if is_refused { Vec::new() } else { passed };
            for entry in withdrawn.into_iter().chain(counted) {
                put(&mut entries, entry, statement.issued);
            }
        }
        self.known.extend(entries.into_values().map(|(entry, issued)| Known {
            entry,
            signer: signer.to_owned(),
            checked,
            issued,
        }));
    }

    /// The entries of the next statement of a signer: those that are known, and what a new report adds or withdraws.
    pub fn with(&self, new: &[Entry]) -> Vec<Entry> {
        let known = self.known.iter().map(|known| (known.entry.key(), (known.entry.clone(), known.issued)));
        let mut entries: Entries = known.collect();
        for entry in new {
            put(&mut entries, entry, entry.checked);
        }
        entries.into_values().map(|(entry, _)| entry).collect()
    }
}

/// Adds the next word of a signer to what it said before.
fn put(entries: &mut Entries, entry: &Entry, issued: Timestamp) {
    let key = entry.key();
    if !entry.stands() {
        for (other, known) in &mut *entries {
            if key.withdraws(other) && known.0.stands() {
                *known = (known.0.withdrawn(entry.checked), issued);
            }
        }
    } else if entries.get(&key).is_some_and(|(before, _)| !entry.may_replace(before)) {
        return;
    }
    entries.insert(key, (entry.clone(), issued));
}
