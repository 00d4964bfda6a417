//! Evidence of an image in its registry: keys, what is known, what a run adds, and the answer for a machine.
#![expect(clippy::disallowed_methods, reason = "reads keys and stamps statements")]

use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use jiff::Timestamp;

use crate::evidence::{
    Collection, Entry, KeyError, PublicKey, RESULT_TYPE, SIGNATURE_TYPE, SUMMARY_TYPE, Signer, SigningKey,
    Statement,
};
use crate::failure::{Exit, Failure};
use crate::model::compat::Matrix;
use crate::model::image_digest::Digest;
use crate::model::image_ref::ImageRef;
use crate::model::request::Level;
use crate::model::versions::Machine;
use crate::registry::{EvidenceList, EvidenceSubject, IndexSubject, NewEvidence, Registry, RegistryError};
use crate::report::{Event, Reporter};
use crate::settings::{KeyPurpose, ROOT, Settings, TrustedKey, changeable};
use crate::store::read_regular_text;
use crate::workflow::error::CommandError;
use crate::workflow::session::Session;

/// The largest file of a key: one of cosign has 650 bytes.
const LARGEST_KEY: u64 = 64 << 10;
/// How often a statement is made anew because another process signed with the same key meanwhile.
const ROUNDS: u32 = 20;
/// How long after it was there evidence is looked for again: longer than a writer takes between reading a tag and writing it.
pub(super) const SETTLING: Duration = Duration::from_millis(500);
/// Images of an index that are asked about: whoever may write tags can list any number.
const MOST_IMAGES: usize = 32;
/// Numbers that may be skipped, so that two processes do not take the same one again.
const SKIPPED: u64 = 16;

/// Why evidence cannot be signed, attached or judged.
#[derive(Debug, thiserror::Error)]
pub enum EvidenceError {
    /// A key cannot be used.
    #[error("cannot use key `{file}`: {cause}")]
    Key {
        /// The file or variable.
        file: String,
        /// Why.
        cause: KeyError,
    },
    /// The file of a key cannot be read.
    #[error("cannot read a key: {cause}")]
    KeyFile {
        /// Why, with the file's path.
        cause: std::io::Error,
    },
    /// Others can read a private key.
    #[error("cannot use key `{file}`: others can read it (mode {mode:o})")]
    ReadableKey {
        /// The file.
        file: Utf8PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// No key signs.
    #[error("no key to sign with")]
    NoSigningKey,
    /// No key is trusted.
    #[error("no key whose evidence counts")]
    NoTrustedKey,
    /// The image is not one of ours.
    #[error(
        "no evidence of `{image}`: the report of an image that envforge did not build here is the image's own word"
    )]
    Foreign {
        /// The image.
        image: String,
    },
    /// This machine did not build the image.
    #[error("no provenance of `{image}`: this machine did not build it from a lock that is known")]
    NotBuiltHere {
        /// The image.
        image: String,
    },
    /// Nothing ran on a GPU.
    #[error("no evidence of `{image}`: {why}")]
    NothingProven {
        /// The image.
        image: String,
        /// Why not.
        why: &'static str,
    },
    /// The image is in no registry.
    #[error("no evidence of `{image}`: its registry is not known")]
    NotPushed {
        /// The image.
        image: String,
    },
    /// The registry has another image under the name.
    #[error("no evidence of `{image}`: its registry has another image there ({found})")]
    OtherImage {
        /// The name.
        image: String,
        /// The digest of that one.
        found: Digest,
    },
    /// Another writer was faster, again and again.
    #[error(
        "cannot attach evidence to `{image}`: other processes with the same key attach theirs at the same time"
    )]
    Contended {
        /// The image.
        image: String,
    },
    /// A file is about another image.
    #[error("`{file}` is evidence of {found}, not of `{wanted}`")]
    OtherFile {
        /// The file.
        file: String,
        /// The digests of the file.
        found: String,
        /// The image asked for.
        wanted: String,
    },
    /// An image by a name alone cannot be compared with a file.
    #[error("`{image}` names no digest: a tag may mean another image than the file")]
    NoDigest {
        /// The image.
        image: String,
    },
    /// The driver of this machine does not answer.
    #[error("cannot ask this machine's GPUs: {cause}")]
    NoAnswer {
        /// Why.
        cause: String,
    },
    /// What is there cannot be read whole: a statement without it would take its place.
    #[error("nothing is attached to `{image}`, since its evidence cannot be read: {why}")]
    Unread {
        /// The image.
        image: String,
        /// Why.
        why: String,
    },
    /// Larger than readers take.
    #[error("nothing is attached to `{image}`: {what} is {size} bytes large, limit {limit}")]
    TooLarge {
        /// The image.
        image: String,
        /// What.
        what: &'static str,
        /// Its size.
        size: usize,
        /// The limit.
        limit: u64,
    },
    /// `--driver exact` without a driver.
    #[error("`--driver exact` requires `--driver VERSION` or --here")]
    NoDriver,
    /// `--driver VERSION` with `--here`.
    #[error("`--driver {driver}` cannot be combined with --here")]
    DriverAndHere {
        /// The driver.
        driver: String,
    },
    /// Two drivers.
    #[error("`--driver {first}` cannot be combined with `--driver {second}`")]
    TwoDrivers {
        /// One.
        first: String,
        /// The other.
        second: String,
    },
    /// `[policy] require-evidence` is not met.
    #[error("`{image}` is not proven as this machine's policy requires (level {level}):\n  - {}", reasons.join("\n  - "))]
    Required {
        /// The image.
        image: String,
        /// The level.
        level: Level,
        /// The file of the policy.
        file: String,
        /// Why not, all reasons.
        reasons: Vec<String>,
        /// Everything answered that could have proven it.
        is_known: bool,
    },
    /// A key of the site can be changed by others than root.
    #[error("the key `{file}` of this site is not read: {path} is not root's alone ({why})")]
    NotRoots {
        /// The key.
        file: Utf8PathBuf,
        /// The file or the folder above it.
        path: Utf8PathBuf,
        /// Why.
        why: String,
    },
    /// Not all of it could be read where it comes from: what is missing may take back what is there.
    #[error("evidence of `{image}` is not carried whole: {why}")]
    Partial {
        /// The image.
        image: String,
        /// Why.
        why: String,
    },
    /// There is nothing to withdraw.
    #[error("nothing to withdraw: this key has said nothing of `{image}` that matches")]
    NothingSaid {
        /// The image.
        image: String,
    },
}

impl Failure for EvidenceError {
    fn exit(&self) -> Exit {
        match self {
            Self::Key { .. }
            | Self::ReadableKey { .. }
            | Self::NoSigningKey
            | Self::NoDigest { .. }
            | Self::NoDriver
            | Self::DriverAndHere { .. }
            | Self::TwoDrivers { .. }
            | Self::KeyFile { .. }
            | Self::NotRoots { .. }
            | Self::NotPushed { .. } => Exit::Usage,
            Self::Required { is_known: false, .. }
            | Self::NoTrustedKey
            | Self::Contended { .. }
            | Self::NoAnswer { .. }
            | Self::Partial { .. }
            | Self::Unread { .. } => Exit::Outside,
            Self::Required { is_known: true, .. }
            | Self::Foreign { .. }
            | Self::NothingProven { .. }
            | Self::TooLarge { .. }
            | Self::NotBuiltHere { .. }
            | Self::OtherImage { .. }
            | Self::OtherFile { .. }
            | Self::NothingSaid { .. } => Exit::No,
        }
    }

    fn hints(&self) -> Vec<String> {
        let hint = match self {
            Self::Required { image, level, file, .. } => {
                return vec![
                    format!("check it here: `envforge verify {image} --level {level}`"),
                    format!("the rule is `require-evidence` in `[policy]` of {file}"),
                ];
            }
            Self::NotRoots { path, .. } => format!("as root: `chown root: {path}` and `chmod go-w {path}`"),
            Self::Key { cause, .. } => return cause.hints(),
            Self::KeyFile { .. } => "`--key` names a file of a key in PEM, as `cosign generate-key-pair` writes it".to_owned(),
            Self::ReadableKey { file, .. } => format!("run `chmod 600 {file}`"),
            Self::NoSigningKey => "pass `--key FILE`, or set ENVFORGE_SIGNING_KEY to the key itself".to_owned(),
            Self::NoTrustedKey => {
                "pass `--key PUB`, or add `keys = [{ file = \"/path/key.pub\" }]` to `[trust]` of the configuration".to_owned()
            }
            Self::Foreign { .. } => "pass its lock file (`--lock FILE`) where it was built".to_owned(),
            Self::NothingProven { .. } | Self::NothingSaid { .. } | Self::OtherImage { .. } => {
                "show what is there: `envforge evidence IMAGE`".to_owned()
            }
            Self::NotPushed { .. } => {
                "push it first: `envforge push IMAGE HOST/NAME:TAG`, then verify `HOST/NAME:TAG`".to_owned()
            }
            Self::NoAnswer { .. } => "name them: `--gpu GPU --driver VERSION`; `envforge doctor` says more".to_owned(),
            Self::NotBuiltHere { .. } => "sign it where it is built: `envforge build … --push --attest`".to_owned(),
            Self::TooLarge { .. } => "it grows with the packages of the image: build an image of fewer".to_owned(),
            Self::NoDriver => "add `--driver VERSION`".to_owned(),
            Self::DriverAndHere { .. } => "drop one of them: --here asks this machine for its driver".to_owned(),
            Self::TwoDrivers { .. } => "ask for each driver in a call of its own".to_owned(),
            Self::Unread { .. } => "update envforge, or use another key".to_owned(),
            Self::Contended { .. } => "run the command again".to_owned(),
            Self::Partial { .. } => "run the command again when every registry of the image answers".to_owned(),
            Self::OtherFile { .. } => "save the evidence of this image: `envforge evidence IMAGE --save FILE`".to_owned(),
            Self::NoDigest { .. } => "name it by its digest: `HOST/NAME@sha256:…`".to_owned(),
        };
        vec![hint]
    }
}

/// The key that signs: of a file, else of the environment.
pub(crate) fn signing_key(file: Option<&Utf8Path>, settings: &Settings) -> Result<SigningKey, CommandError> {
    let password = settings.signing.password.as_ref();
    let Some(file) = file else {
        let text = settings.signing.key.as_ref().ok_or(EvidenceError::NoSigningKey)?;
        let named = |cause| EvidenceError::Key { file: "ENVFORGE_SIGNING_KEY".to_owned(), cause };
        return Ok(SigningKey::from_pem(text, password).map_err(named)?);
    };
    let path = settings.paths.current_dir.join(file);
    let text = key_text(&path)?.into();
    let mode = fs_err::metadata(&path)?.permissions().mode() & 0o777;
    let key = SigningKey::from_pem(&text, password);
    let key = key.map_err(|cause| EvidenceError::Key { file: file.to_string(), cause })?;
    // Checked after the key was read: a public key, which everybody may read, has an error of its own.
    if mode & 0o077 != 0 {
        return Err(EvidenceError::ReadableKey { file: file.to_owned(), mode }.into());
    }
    Ok(key)
}

fn key_text(file: &Utf8Path) -> Result<String, EvidenceError> {
    read_regular_text(file, LARGEST_KEY).map_err(|cause| EvidenceError::KeyFile { cause })
}

/// The keys whose word counts for that: those typed, else those of the settings; empty if there is neither.
pub(crate) fn trusted_keys(
    files: &[Utf8PathBuf],
    settings: &Settings,
    purpose: KeyPurpose,
) -> Result<Vec<Signer>, CommandError> {
    let typed = files.iter().map(|file| (settings.paths.current_dir.join(file), None));
    let configured = settings.trust.keys.iter().filter(|key| files.is_empty() && key.is_for(purpose));
    let mut signers = Vec::new();
    let configured = configured.map(|key| Ok((real_key_file(key)?, key.not_after)));
    let configured = configured.collect::<Result<Vec<_>, CommandError>>()?;
    for (file, not_after) in typed.chain(configured) {
        let key = PublicKey::from_pem(&key_text(&file)?);
        let key = key.map_err(|cause| EvidenceError::Key { file: file.to_string(), cause })?;
        // Through the whole of that day, UTC.
        let end = not_after
            .and_then(|day| day.tomorrow().ok())
            .and_then(|day| day.to_zoned(jiff::tz::TimeZone::UTC).ok())
            .map(|zoned| zoned.timestamp());
        signers.push(Signer { key, not_after: end });
    }
    Ok(signers)
}

/// The file of a key of the configuration. One of the site's is root's alone, as the folders above it and above a link to it.
fn real_key_file(key: &TrustedKey) -> Result<Utf8PathBuf, CommandError> {
    if !key.is_of_site {
        return Ok(key.file.clone());
    }
    let named = |error: std::io::Error| std::io::Error::new(error.kind(), format!("{}: {error}", key.file));
    let real = key.file.canonicalize_utf8().map_err(named)?;
    let folder = key.file.parent().map(Utf8Path::canonicalize_utf8).transpose().map_err(named)?;
    let above = folder.map(|folder| changeable(&folder, ROOT)).transpose()?.flatten();
    match changeable(&real, ROOT)?.or(above) {
        Some((path, why)) => Err(EvidenceError::NotRoots { file: key.file.clone(), path, why }.into()),
        None => Ok(real),
    }
}

/// What was attached.
pub(crate) struct Attestation {
    /// The image by its digest.
    pub(crate) pinned: String,
    /// The public key.
    pub(crate) key: PublicKey,
    /// The entries that stand now.
    pub(crate) standing: usize,
}

/// What statements about images are made and attached with.
#[derive(Clone, Copy)]
pub(crate) struct Attester<'a> {
    pub(crate) registry: &'a Registry,
    pub(crate) key: &'a SigningKey,
    /// The matrix that the checks went by.
    pub(crate) matrix: &'a Matrix,
    pub(crate) reporter: &'a Arc<dyn Reporter>,
}

impl<'a> Attester<'a> {
    /// Returns that of a session with this key.
    pub(crate) fn of(session: &'a Session<'_>, key: &'a SigningKey) -> Self {
        let Session { registry, matrix, reporter, .. } = session;
        Self { registry, key, matrix, reporter }
    }

    /// Signs entries with all that the key has said before, and attaches them to the image; the indexes that list it follow.
    pub(crate) async fn attach(
        &self,
        (image, subject): (&ImageRef, &EvidenceSubject),
        new: &[Entry],
    ) -> Result<Attestation, CommandError> {
        let Self { registry, key, reporter, .. } = *self;
        let public = key.public();
        let mut notes = Vec::new();
        let mut is_settled = false;
        for round in 0..ROUNDS {
            let known = signed_evidence(registry, image, &subject.manifest.digest).await?;
            let own = readable(image, own(&public, &known, subject))?;
            let entries = own.with(new);
            let indexes = indexes_of(&public, &known, subject);
            // As readers see it: they believe no two statements of one number.
            let is_there = round > 0 && read(&public, &known, subject).with(&[]) == entries;
            if is_there && !is_settled {
                // Another writer may have read both tags before this one wrote them, and write them now.
                is_settled = true;
                tokio::time::sleep(SETTLING).await;
                continue;
            }
            if is_there {
                for text in notes {
                    reporter.report(Event::Note { text });
                }
                for index in &indexes {
                    self.follow(image, index).await?;
                }
                let standing = own.known.iter().filter(|known| known.entry.stands()).count();
                let pinned = image.pinned(&subject.manifest.digest).to_string();
                return Ok(Attestation { pinned, key: public, standing });
            }
            is_settled = false;
            let skipped = if round == 0 { 0 } else { rand::random_range(0..SKIPPED) };
            // By the clock, too: two registries count apart, and their statements may meet in a third.
            let number = own.highest.saturating_add(1 + skipped).max(milliseconds());
            let statement = Statement { indexes, ..self.statement_of(subject, number, entries) };
            notes = self.put((image, subject), (&known, &statement)).await?;
        }
        Err(EvidenceError::Contended { image: image.to_string() }.into())
    }

    /// The statement of entries about an image or an index.
    fn statement_of(&self, subject: &EvidenceSubject, number: u64, entries: Vec<Entry>) -> Statement {
        Statement {
            name: subject.name.clone(),
            digests: vec![subject.manifest.digest.clone()],
            indexes: Vec::new(),
            issued: Timestamp::now(),
            number,
            run: format!("{:032x}", rand::random::<u128>()),
            matrix: self.matrix.edition.clone(),
            program: env!("CARGO_PKG_VERSION").to_owned(),
            entries,
        }
    }

    /// Signs a statement and attaches it in place of what the key has said before. Returns what others have to know.
    async fn put(
        &self,
        (image, subject): (&ImageRef, &EvidenceSubject),
        (known, statement): (&EvidenceList, &Statement),
    ) -> Result<Vec<String>, CommandError> {
        let Self { registry, key, reporter, .. } = *self;
        let mut signed = vec![NewEvidence::signed(statement.results(), RESULT_TYPE, key)];
        signed.extend(statement.summary().map(|summary| NewEvidence::signed(summary, SUMMARY_TYPE, key)));
        signed.extend(statement.signature().map(|payload| NewEvidence::signed(payload, SIGNATURE_TYPE, key)));
        let (public, created) = (key.public(), statement.issued.to_string());
        let by = (&public, created.as_str());
        Ok(registry.attach_evidence((image, subject), (known, &signed), by, reporter).await?.notes)
    }

    /// Makes the statement about an index say what those about its images say: it stands as long as each of them is proven by the key. cosign and
    /// admission controllers ask for the digest that an image is named by, and would take what is proven of one image for all of them.
    async fn follow(&self, image: &ImageRef, index: &Digest) -> Result<(), CommandError> {
        let Self { registry, key, reporter, .. } = *self;
        let public = key.public();
        let mut notes = Vec::new();
        for _ in 0..ROUNDS {
            let Some(IndexSubject { subject, images }) = registry.index_subject(image, index).await? else {
                return Ok(());
            };
            let known = signed_evidence(registry, image, index).await?;
            readable(&image.pinned(index), own(&public, &known, &subject))?;
            let newest = statements_by(&public, &known, index).max_by_key(|statement| statement.number);
            let (entries, unproven) = entries_of_all(registry, image, &images, &public).await?;
            if !unproven.is_empty() {
                let text = format!(
                    "no evidence of the index {index}: its {} not proven by key {public}: {}",
                    if unproven.len() == 1 { "image is" } else { "images are" },
                    unproven.join(", ")
                );
                notes.push(text);
            }
            let is_there = match &newest {
                Some(newest) => newest.entries == entries,
                None => entries.iter().all(|entry| !entry.stands()),
            };
            if is_there {
                for text in notes {
                    reporter.report(Event::Note { text });
                }
                return Ok(());
            }
            let highest = newest.map_or(0, |newest| newest.number);
            let number = highest.saturating_add(1).max(milliseconds());
            let statement = self.statement_of(&subject, number, entries);
            notes = self.put((image, &subject), (&known, &statement)).await?;
        }
        Err(EvidenceError::Contended { image: image.pinned(index).to_string() }.into())
    }

    /// Signs that what a key said no longer counts, where `is_meant`.
    pub(crate) async fn withdraw(
        &self,
        (image, subject): (&ImageRef, &EvidenceSubject),
        is_meant: impl Fn(&Entry) -> bool,
    ) -> Result<(Attestation, Vec<Entry>), CommandError> {
        let known = self.registry.evidence(image, &subject.manifest.digest).await?;
        let own = own(&self.key.public(), &known, subject);
        let now = Timestamp::now();
        let meant =
            own.known.iter().map(|known| &known.entry).filter(|entry| entry.stands() && is_meant(entry));
        let withdrawn: Vec<Entry> = meant.map(|entry| entry.withdrawn(now)).collect();
        if withdrawn.is_empty() {
            return Err(EvidenceError::NothingSaid { image: image.to_string() }.into());
        }
        let attached = self.attach((image, subject), &withdrawn).await?;
        Ok((attached, withdrawn))
    }
}

/// The evidence of an image or index; an error if not all of it can be read: a statement without the rest would take its place.
async fn signed_evidence(
    registry: &Registry,
    image: &ImageRef,
    digest: &Digest,
) -> Result<EvidenceList, CommandError> {
    let known = registry.signed_evidence(image, digest).await?;
    match known.skipped.first() {
        Some(why) => Err(EvidenceError::Unread { image: image.to_string(), why: why.clone() }.into()),
        None => Ok(known),
    }
}

/// The indexes that list the image: the one that it was named by, and those of earlier statements.
fn indexes_of(key: &PublicKey, known: &EvidenceList, subject: &EvidenceSubject) -> Vec<Digest> {
    let mut all: Vec<Digest> = subject.index.iter().cloned().collect();
    all.extend(statements_by(key, known, &subject.manifest.digest).flat_map(|one| one.indexes));
    all.sort();
    all.dedup();
    all
}

/// The statements of a key about an image or index, in any order.
fn statements_by<'a>(
    key: &'a PublicKey,
    known: &'a EvidenceList,
    digest: &'a Digest,
) -> impl Iterator<Item = Statement> + 'a {
    let payloads = known.found.iter().filter_map(move |found| found.attestation.envelope.payload_by(key));
    let statements = payloads.filter_map(|payload| Statement::parse(payload).ok());
    statements.filter(move |statement| statement.digests.contains(digest))
}

/// What a key says of all images of an index together, and the images that it has not proven: with one of them nothing stands, and a level
/// stands if each of them has it.
async fn entries_of_all(
    registry: &Registry,
    image: &ImageRef,
    images: &[Digest],
    key: &PublicKey,
) -> Result<(Vec<Entry>, Vec<String>), CommandError> {
    let mut all = Collection::default();
    let mut unproven = Vec::new();
    let mut lowest = Level::Perf;
    for digest in images.iter().take(MOST_IMAGES) {
        let found = signed_evidence(registry, image, digest).await?;
        let signer = Signer { key: key.clone(), not_after: None };
        let known = Collection::by(&[signer], &found.attestations(), digest, Timestamp::MAX).known;
        let standing = known.iter().filter(|known| known.entry.stands());
        match standing.map(|known| known.entry.level).max() {
            Some(best) => lowest = lowest.min(best),
            None => unproven.push(digest.to_string()),
        }
        all.known.extend(known);
    }
    if images.len() > MOST_IMAGES {
        unproven.push(format!("{} more", images.len() - MOST_IMAGES));
    }
    all.known.retain(|known| !known.entry.stands() || known.entry.level <= lowest);
    if !unproven.is_empty() || images.is_empty() {
        for known in &mut all.known {
            known.entry = known.entry.withdrawn(known.entry.checked);
        }
    }
    // One that was withdrawn of an image counts for all of them.
    let known = all.known.iter().map(|known| &known.entry);
    let withdrawn: Vec<Entry> = known.filter(|entry| !entry.stands()).cloned().collect();
    Ok((all.with(&withdrawn), unproven))
}

fn milliseconds() -> u64 {
    u64::try_from(Timestamp::now().as_millisecond()).unwrap_or_default()
}

/// What a key has said of an image. The clock of the machine that signed may have been wrong: for the next statement all counts.
fn own(key: &PublicKey, known: &EvidenceList, subject: &EvidenceSubject) -> Collection {
    Collection::own(key, &known.attestations(), &subject.manifest.digest, Timestamp::MAX)
}

/// What a key has said, if all of it can be read: a statement without the rest would take its place.
fn readable(image: &ImageRef, said: Collection) -> Result<Collection, EvidenceError> {
    if said.has_unreadable {
        let why = "a statement of this key is damaged or of a newer envforge".to_owned();
        return Err(EvidenceError::Unread { image: image.to_string(), why });
    }
    Ok(said)
}

/// The same as readers see it.
fn read(key: &PublicKey, known: &EvidenceList, subject: &EvidenceSubject) -> Collection {
    let signer = Signer { key: key.clone(), not_after: None };
    Collection::by(&[signer], &known.attestations(), &subject.manifest.digest, Timestamp::MAX)
}

/// The image in its registry that was checked here: of that id, and one that this machine pulled or pushed, by its digest. The
/// configuration alone does not say which layers a registry gives to others.
pub(crate) async fn subject_of(
    registry: &Registry,
    image: &ImageRef,
    (id, known): (&str, &[Digest]),
    machine: Machine,
) -> Result<EvidenceSubject, CommandError> {
    let subject = registry.evidence_subject(image, machine).await?;
    let digests: Vec<&Digest> = std::iter::once(&subject.manifest.digest).chain(&subject.index).collect();
    let is_known = digests.iter().any(|digest| known.contains(digest));
    // Engines call an image by its configuration, or, with a containerd store, by its manifest or index.
    let is_it = subject.config.as_str() == id || digests.iter().any(|digest| digest.as_str() == id);
    if is_known && is_it {
        return Ok(subject);
    }
    Err(EvidenceError::OtherImage { image: image.to_string(), found: subject.manifest.digest }.into())
}

/// Whether the registry could not be asked: what it has is not known.
pub(crate) fn is_unknown(error: &CommandError) -> bool {
    error.downcast_ref::<RegistryError>().is_some()
}
