//! `evidence` and its verbs: who proved an image, whether that admits it here, and how it is taken back.
#![expect(clippy::disallowed_methods, reason = "asks the clock how old evidence is")]

use std::fmt::Write as _;

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use crate::evidence::{
    Admission, Attestation, Collection, Entry, Known, SavedEvidence, Wanted, WantedGpu, admit as judge,
};
use crate::failure::Exit;
use crate::fetch::Fetcher;
use crate::host::{self, GpuError};
use crate::model::compat::Matrix;
use crate::model::counted::counted;
use crate::model::image_digest::Digest;
use crate::model::image_ref::ImageRef;
use crate::model::request::{self, TargetOptions};
use crate::model::target::TargetSource;
use crate::model::versions::DriverVersion;
use crate::registry::Registry;
use crate::report::{Event, NullReporter, Printer, reporter};
use crate::settings::Settings;
use crate::store::{read_regular, write_atomically};
use crate::workflow::error::CommandError;
use crate::workflow::evidence::{
    EvidenceError, is_unknown, signing_key, trusted_keys, withdraw as take_back,
};
use crate::workflow::request_error::RequestError;
use crate::workflow::session::downloads;
use crate::workflow::target::{machine, target};

/// The largest file of evidence: a thousand envelopes of some kilobytes.
const LARGEST_FILE: u64 = 64 << 20;
/// Characters of a fingerprint in a table.
const SHOWN: usize = 16;

/// What `evidence --json` prints.
#[derive(Serialize)]
struct Report<'a> {
    schema: u32,
    image: &'a str,
    digests: &'a [Digest],
    /// False: no key was given, and anybody may have said it.
    checked: bool,
    entries: Vec<Row<'a>>,
    /// What was there and does not count, a line each.
    ignored: &'a [String],
}

/// One entry.
#[derive(Serialize)]
struct Row<'a> {
    #[serde(flatten)]
    entry: &'a Entry,
    /// Fingerprint of the key, SHA-256 of its DER form; empty: not named.
    signer: &'a str,
    /// When the statement was signed.
    issued: Timestamp,
}

/// What `evidence admit --json` prints.
#[derive(Serialize)]
struct Answer<'a> {
    schema: u32,
    image: String,
    admitted: bool,
    /// An entry for each GPU that was asked for.
    proofs: Vec<Row<'a>>,
    /// Why it is refused, or what to know of the proofs.
    reasons: Vec<String>,
}

/// What `evidence withdraw --json` prints.
#[derive(Serialize)]
struct WithdrawReport<'a> {
    schema: u32,
    image: &'a str,
    withdrawn: &'a [Entry],
    /// Entries of the key that still stand.
    standing: usize,
}

/// The registries, without an engine and without a file of the cache.
fn registry(settings: &Settings) -> Result<Registry, CommandError> {
    let (fetch, _): (Fetcher, _) = downloads(settings)?;
    Ok(Registry::new(fetch, settings.registry.clone()))
}

/// What an image's registry has.
struct Gathered {
    name: String,
    pinned: String,
    digests: Vec<Digest>,
    found: Vec<Attestation>,
}

async fn gathered(
    image: &str,
    platform: Option<String>,
    settings: &Settings,
) -> Result<Gathered, CommandError> {
    let image: ImageRef = image.parse()?;
    let machine = machine(&TargetOptions { platform, ..TargetOptions::default() });
    let registry = registry(settings)?;
    let subject = registry.evidence_subject(&image, machine).await?;
    let list = registry.evidence(&image, &subject.digests).await?;
    for text in &list.skipped {
        reporter(settings.output).report(Event::Warning { text: format!("evidence not read: {text}") });
    }
    let pinned = image.pinned(&subject.manifest.digest).to_string();
    Ok(Gathered { name: subject.name, pinned, digests: subject.digests, found: list.attestations() })
}

pub(super) async fn evidence(args: &request::Evidence, settings: &Settings) -> Result<Exit, CommandError> {
    let signers = trusted_keys(&args.key, settings)?;
    let Gathered { name, pinned, digests, found } =
        gathered(&args.image, args.platform.clone(), settings).await?;
    let now = Timestamp::now();
    let known = if signers.is_empty() {
        Collection::unchecked(&found, &digests, now)
    } else {
        Collection::by(&signers, &found, &digests, now)
    };
    if let Some(file) = &args.save {
        let saved = SavedEvidence { name, digests: digests.clone(), found };
        write_atomically(&settings.paths.current_dir.join(file), &saved.to_json())?;
    }
    let checked = !signers.is_empty();
    if settings.output.json {
        let entries = known.known.iter().map(row).collect();
        Printer.json(&Report {
            schema: 1,
            image: &pinned,
            digests: &digests,
            checked,
            entries,
            ignored: &known.ignored,
        });
        return Ok(Exit::Done);
    }
    let report = |event| reporter(settings.output).report(event);
    if known.known.is_empty() {
        report(Event::Note { text: format!("no evidence of {pinned}") });
    } else {
        Printer.text(table(&known.known).trim_end());
    }
    for text in &known.ignored {
        report(Event::Note { text: format!("not counted: {text}") });
    }
    if !checked && !known.known.is_empty() {
        let text = "no signature was checked: anybody who can push may have said this (`--key PUB` checks)";
        report(Event::Warning { text: text.to_owned() });
    }
    Ok(Exit::Done)
}

fn row(known: &Known) -> Row<'_> {
    Row { entry: &known.entry, signer: &known.signer, issued: known.issued }
}

/// The entries, those that stand first, the highest level and newest driver first.
fn table(known: &[Known]) -> String {
    let mut sorted: Vec<&Known> = known.iter().collect();
    sorted.sort_by_key(|known| {
        let entry = &known.entry;
        let order = (entry.stands(), entry.level, entry.branch(), entry.checked);
        (std::cmp::Reverse(order), entry.gpu.clone())
    });
    let gpu = |entry: &Entry| match entry.count {
        0 | 1 => entry.gpu.clone(),
        count => format!("{count}x {}", entry.gpu),
    };
    let width = sorted.iter().map(|known| gpu(&known.entry).len()).max().unwrap_or(0).max(3);
    let mut text = format!(
        "{:<width$}  {:<11}  {:<6}  {:<10}  {:<9}  KEY\n",
        "GPU", "DRIVER", "LEVEL", "CHECKED", "STATE"
    );
    for known in sorted {
        let entry = &known.entry;
        let key = known.signer.get(..SHOWN).unwrap_or("not named");
        let key = if known.checked { key.to_owned() } else { format!("{key}, not checked") };
        let _ = writeln!(
            text,
            "{:<width$}  {:<11}  {:<6}  {:<10}  {:<9}  {key}",
            gpu(entry),
            entry.driver,
            entry.level.as_str(),
            entry.checked.strftime("%F").to_string(),
            if entry.stands() { "proven" } else { "withdrawn" },
        );
    }
    text
}

pub(super) async fn admit(args: &request::EvidenceAdmit, settings: &Settings) -> Result<Exit, CommandError> {
    let signers = trusted_keys(&args.key, settings)?;
    if signers.is_empty() {
        return Err(EvidenceError::NoTrustedKey.into());
    }
    let wanted = match wanted(args, settings)? {
        Ok(wanted) => wanted,
        Err(why) => {
            return Ok(answer(
                args.image.clone().unwrap_or_default(),
                Admission::Refused(vec![why]),
                settings,
            ));
        }
    };
    let Gathered { pinned, digests, found, .. } = if let Some(file) = &args.evidence {
        saved(file.as_str(), args.image.as_deref(), settings)?
    } else {
        let image = args.image.as_deref().unwrap_or_default();
        let gathered = gathered(image, args.platform.clone(), settings).await;
        if gathered.as_ref().is_err_and(|error| is_unknown(error) && error.exit() != Exit::Usage) {
            let text = "neither admitted nor refused: not known".to_owned();
            reporter(settings.output).report(Event::Note { text });
        }
        gathered?
    };
    let now = Timestamp::now();
    let known = Collection::by(&signers, &found, &digests, now);
    Ok(answer(pinned, judge(&known, &wanted, Matrix::current(), now), settings))
}

/// The evidence of a file; with an image named, only if it is about that one.
fn saved(file: &str, image: Option<&str>, settings: &Settings) -> Result<Gathered, CommandError> {
    let bytes = read_regular(&settings.paths.current_dir.join(file), LARGEST_FILE)?;
    let SavedEvidence { name, digests, found } = SavedEvidence::parse(file, &bytes)?;
    let texts = digests.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    if let Some(image) = image {
        let wanted: ImageRef = image.parse()?;
        let digest = wanted.digest().ok_or_else(|| EvidenceError::NoDigest { image: image.to_owned() })?;
        if !digests.contains(digest) {
            let (file, wanted) = (file.to_owned(), image.to_owned());
            return Err(EvidenceError::OtherFile { file, found: texts, wanted }.into());
        }
        return Ok(Gathered { name, pinned: image.to_owned(), digests: vec![digest.clone()], found });
    }
    let pinned = digests.first().map_or_else(|| name.clone(), |digest| format!("{name}@{digest}"));
    Ok(Gathered { name, pinned, digests, found })
}

/// What is asked of the evidence; the inner error is why this machine can be proven by none.
fn wanted(
    args: &request::EvidenceAdmit,
    settings: &Settings,
) -> Result<Result<Wanted, String>, CommandError> {
    let matrix = Matrix::current();
    let options =
        TargetOptions { gpu: args.gpu.clone(), driver: args.driver.clone(), ..TargetOptions::default() };
    let (gpus, driver) = if args.here || !args.gpu.is_empty() || args.driver.is_some() {
        // A driver that does not answer is not a machine without a GPU.
        let is_asked = settings.target.gpu.is_none() && settings.target.driver.is_none();
        if args.here && is_asked {
            match host::detect() {
                Err(error @ (GpuError::Driver { .. } | GpuError::Silent { .. })) => {
                    return Err(EvidenceError::NoAnswer { cause: error.to_string() }.into());
                }
                Err(GpuError::NoDriver) => return Ok(Err("this machine has no NVIDIA driver".to_owned())),
                Ok(_) => {}
            }
        }
        let target = target(&options, &settings.target, matrix, &NullReporter)?;
        if args.here && (target.source == TargetSource::Any || target.gpus.is_empty()) {
            return Ok(Err("this machine has no NVIDIA GPU".to_owned()));
        }
        let mut gpus = Vec::new();
        for gpu in target.gpus {
            let wanted = match gpu.name.filter(|_| !args.same_architecture) {
                Some(name) => WantedGpu::Model(name),
                None => WantedGpu::Capability(gpu.compute_capability),
            };
            if !gpus.contains(&wanted) {
                gpus.push(wanted);
            }
        }
        (gpus, target.driver)
    } else {
        (Vec::new(), None)
    };
    let driver = driver.filter(|_| args.here || args.driver.is_some());
    let max_age = SignedDuration::from_hours(i64::from(args.max_age.hours()));
    let (count, level, exact_driver) = (args.count, args.level, args.exact_driver);
    Ok(Ok(Wanted { gpus, count, driver, exact_driver, level, max_age }))
}

/// Prints the answer.
fn answer(image: String, admission: Admission, settings: &Settings) -> Exit {
    let (admitted, proofs, reasons) = match admission {
        Admission::Admitted(proofs) => {
            let notes = proofs.iter().flat_map(|(_, notes)| notes.clone()).collect();
            (true, proofs, notes)
        }
        Admission::Refused(reasons) => (false, Vec::new(), reasons),
    };
    if settings.output.json {
        let proofs = proofs.iter().map(|(known, _)| row(known)).collect();
        Printer.json(&Answer { schema: 1, image, admitted, proofs, reasons });
    } else if admitted {
        for (Known { entry, signer, .. }, notes) in &proofs {
            let notes = notes.iter().fold(String::new(), |all, note| all + " (" + note + ")");
            let key = signer.get(..SHOWN).unwrap_or_default();
            let day = entry.checked.strftime("%F");
            Printer.text(&format!(
                "admitted: level {} on {}, driver {}, {day}, by key {key}{notes}",
                entry.level, entry.gpu, entry.driver
            ));
        }
    } else {
        let text = reasons.iter().fold(String::new(), |all, reason| all + "\n  - " + reason);
        Printer.text(&format!("refused{text}"));
    }
    if admitted { Exit::Done } else { Exit::No }
}

pub(super) async fn withdraw(
    args: &request::EvidenceWithdraw,
    settings: &Settings,
) -> Result<Exit, CommandError> {
    let key = signing_key(args.key.as_deref(), settings)?;
    let driver: Option<DriverVersion> = args
        .driver
        .as_deref()
        .map(str::parse)
        .transpose()
        .map_err(|cause| RequestError::Version { option: "--driver", cause })?;
    let image: ImageRef = args.image.parse()?;
    let machine = machine(&TargetOptions { platform: args.platform.clone(), ..TargetOptions::default() });
    let registry = registry(settings)?;
    let subject = registry.evidence_subject(&image, machine).await?;
    let is_meant = |entry: &Entry| {
        args.gpu.as_ref().is_none_or(|gpu| *gpu == entry.gpu)
            && driver.as_ref().is_none_or(|driver| driver.major() == entry.branch())
            && args.level.is_none_or(|level| entry.level >= level)
    };
    let reporter = reporter(settings.output);
    let (attached, withdrawn) = take_back(&registry, (&image, &subject), &key, is_meant, &reporter).await?;
    if settings.output.json {
        let (image, standing) = (&attached.pinned, attached.standing);
        Printer.json(&WithdrawReport { schema: 1, image, withdrawn: &withdrawn, standing });
    } else {
        let count = counted(withdrawn.len(), "entry");
        Printer
            .text(&format!("withdrawn: {count} of {}; {} still stand", attached.pinned, attached.standing));
    }
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use super::{Answer, Report, WithdrawReport};
    use crate::model::markdown::{documented_fields, printed_fields};

    #[test]
    fn every_field_is_documented() {
        let image = "registry.example.com/torch@sha256:1";
        let call = "envforge evidence registry.example.com/torch:2.8";
        let report =
            Report { schema: 1, image, digests: &[], checked: true, entries: Vec::new(), ignored: &[] };
        assert_eq!(printed_fields(&report), documented_fields(call));
        let call = "envforge evidence admit registry.example.com/torch:2.8 --here";
        let (image, proofs, reasons) = (image.to_owned(), Vec::new(), Vec::new());
        let answer = Answer { schema: 1, image, admitted: true, proofs, reasons };
        assert_eq!(printed_fields(&answer), documented_fields(call));
        let call = "envforge evidence withdraw registry.example.com/torch:2.8";
        let report = WithdrawReport { schema: 1, image: "", withdrawn: &[], standing: 0 };
        assert_eq!(printed_fields(&report), documented_fields(call));
    }
}
