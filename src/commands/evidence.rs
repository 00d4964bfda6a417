//! `evidence` and its verbs: who proved an image, whether that admits it here, and how it is taken back.
#![expect(clippy::disallowed_methods, reason = "asks the clock how old evidence is")]

use std::fmt::Write as _;

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use super::inspect::save as save_page;
use crate::evidence::{
    Admission, Attestation, Collection, Entry, Known, SavedEvidence, Wanted, WantedGpu, admit as judge,
    is_model, short_fingerprint,
};
use crate::failure::Exit;
use crate::fetch::Fetcher;
use crate::host::{self, GpuError};
use crate::model::counted::counted;
use crate::model::image_digest::Digest;
use crate::model::image_ref::ImageRef;
use crate::model::request::{self, TargetOptions};
use crate::model::versions::{DriverVersion, Machine};
use crate::pages::evidence_page;
use crate::registry::Registry;
use crate::report::{Event, NullReporter, Printer, reporter};
use crate::settings::{KeyPurpose, Settings, TargetOverrides};
use crate::store::{read_regular, write_atomically};
use crate::workflow::error::CommandError;
use crate::workflow::evidence::{Attester, EvidenceError, is_unknown, signing_key, trusted_keys};
use crate::workflow::request_error::RequestError;
use crate::workflow::session::downloads;
use crate::workflow::target::{machine, target};

/// The largest file of evidence: a thousand envelopes of some kilobytes.
const LARGEST_FILE: u64 = 64 << 20;

/// The word for `--driver` that refuses newer drivers than the proven one.
const EXACT: &str = "exact";

/// What `evidence --json` prints.
#[derive(Serialize)]
struct Report<'a> {
    schema: u32,
    image: &'a str,
    /// The index that it was named by, or null.
    index: Option<&'a Digest>,
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
    digest: Digest,
    index: Option<Digest>,
    found: Vec<Attestation>,
    /// Whether some of it could not be read.
    is_partial: bool,
}

async fn gathered(
    image: &str,
    platform: Option<Machine>,
    settings: &Settings,
) -> Result<Gathered, CommandError> {
    let image: ImageRef = image.parse()?;
    let machine = machine(&TargetOptions { platform, ..TargetOptions::default() }, &settings.matrix);
    let registry = registry(settings)?;
    let subject = registry.evidence_subject(&image, machine).await?;
    let digest = subject.manifest.digest;
    let list = registry.evidence(&image, &digest).await?;
    for text in &list.skipped {
        reporter(settings.output).report(Event::Warning { text: format!("evidence not read: {text}") });
    }
    let pinned = image.pinned(&digest).to_string();
    let is_partial = !list.skipped.is_empty();
    let found = list.into_attestations();
    Ok(Gathered { name: subject.name, pinned, digest, index: subject.index, found, is_partial })
}

pub(super) async fn evidence(args: &request::Evidence, settings: &Settings) -> Result<Exit, CommandError> {
    let signers = trusted_keys(&args.key, settings, KeyPurpose::Tests)?;
    let Gathered { name, pinned, digest, index, found, .. } =
        gathered(&args.image, args.platform, settings).await?;
    let now = Timestamp::now();
    let known = if signers.is_empty() {
        Collection::unchecked(&found, &digest, now)
    } else {
        Collection::by(&signers, &found, &digest, now)
    };
    if let Some(file) = &args.save {
        let saved = SavedEvidence { name, digest, found };
        write_atomically(&settings.paths.current_dir.join(file), &saved.to_json())?;
    }
    let checked = !signers.is_empty();
    let all = Report {
        schema: 1,
        image: &pinned,
        index: index.as_ref(),
        checked,
        entries: sorted(&known.known).into_iter().map(row).collect(),
        ignored: &known.ignored,
    };
    if let Some(file) = &args.html {
        save_page(settings, file, &evidence_page(&pinned, &all))?;
    }
    if settings.output.json {
        Printer.json(&all);
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
fn sorted(known: &[Known]) -> Vec<&Known> {
    let mut sorted: Vec<&Known> = known.iter().collect();
    sorted.sort_by_key(|known| {
        let entry = &known.entry;
        let order = (entry.stands(), entry.level, entry.branch(), entry.checked);
        (std::cmp::Reverse(order), entry.gpu.clone())
    });
    sorted
}

/// The entries as a table.
fn table(known: &[Known]) -> String {
    let sorted = sorted(known);
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
        let key = if known.signer.is_empty() { "not named" } else { short_fingerprint(&known.signer) };
        let key = if known.checked { key.to_owned() } else { format!("{key}, not checked") };
        let _ = writeln!(
            text,
            "{:<width$}  {:<11}  {:<6}  {:<10}  {:<9}  {key}",
            gpu(entry),
            entry.driver,
            entry.level.as_str(),
            entry.checked.strftime("%F").to_string(),
            match (entry.stands(), known.checked) {
                (true, true) => "proven",
                (true, false) => "claimed",
                (false, _) => "withdrawn",
            },
        );
    }
    text
}

pub(super) async fn admit(args: &request::EvidenceAdmit, settings: &Settings) -> Result<Exit, CommandError> {
    let signers = trusted_keys(&args.key, settings, KeyPurpose::Tests)?;
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
    let Gathered { pinned, digest, found, is_partial, .. } = if let Some(file) = &args.evidence {
        saved(file.as_str(), args.image.as_deref(), settings)?
    } else {
        let image = args.image.as_deref().unwrap_or_default();
        let gathered = gathered(image, args.platform, settings).await;
        if gathered.as_ref().is_err_and(|error| is_unknown(error) && error.exit() == Exit::Outside) {
            let text = "neither admitted nor refused: not known".to_owned();
            reporter(settings.output).report(Event::Note { text });
        }
        gathered?
    };
    let now = Timestamp::now();
    let known = Collection::by(&signers, &found, &digest, now);
    let admission = judge(&known, &wanted, &settings.matrix, now);
    let is_refused = matches!(admission, Admission::Refused(_));
    let exit = answer(pinned, admission, settings);
    // What was not read might have proven it.
    Ok(if is_refused && is_partial { Exit::Outside } else { exit })
}

/// The evidence of a file; with an image named, only if it is about that one.
fn saved(file: &str, image: Option<&str>, settings: &Settings) -> Result<Gathered, CommandError> {
    let bytes = read_regular(&settings.paths.current_dir.join(file), LARGEST_FILE)?;
    let SavedEvidence { name, digest, found } = SavedEvidence::parse(file, &bytes)?;
    if let Some(image) = image {
        let wanted: ImageRef = image.parse()?;
        let typed = wanted.digest().ok_or_else(|| EvidenceError::NoDigest { image: image.to_owned() })?;
        if *typed != digest {
            let (file, wanted, found) = (file.to_owned(), image.to_owned(), digest.to_string());
            return Err(EvidenceError::OtherFile { file, found, wanted }.into());
        }
    }
    // The name in the file is not signed: the digest is.
    let pinned = image.map_or_else(|| digest.to_string(), str::to_owned);
    Ok(Gathered { name, pinned, digest, index: None, found, is_partial: false })
}

/// The driver that was typed, and whether only that very one counts.
fn typed_driver(args: &request::EvidenceAdmit) -> Result<(Option<String>, bool), EvidenceError> {
    let mut versions = args.driver.iter().filter(|word| *word != EXACT).cloned();
    let exact = args.exact_driver || args.driver.iter().any(|word| word == EXACT);
    match (versions.next(), versions.next()) {
        (Some(first), Some(second)) => Err(EvidenceError::TwoDrivers { first, second }),
        (Some(driver), None) if args.here => Err(EvidenceError::DriverAndHere { driver }),
        (driver, _) => Ok((driver, exact)),
    }
}

/// What is asked of the evidence; the inner error is why this machine can be proven by none.
fn wanted(
    args: &request::EvidenceAdmit,
    settings: &Settings,
) -> Result<Result<Wanted, String>, CommandError> {
    let (typed, exact_driver) = typed_driver(args)?;
    // Before this machine is asked.
    if exact_driver && typed.is_none() && !args.here {
        return Err(EvidenceError::NoDriver.into());
    }
    let (gpus, driver) = if args.here {
        match host::detect() {
            Ok(facts) if !facts.gpus.is_empty() => {
                let gpus =
                    facts.gpus.into_iter().map(|gpu| (Some(gpu.name), gpu.compute_capability)).collect();
                (gpus, Some(facts.driver))
            }
            Ok(_) => return Ok(Err("this machine has no NVIDIA GPU".to_owned())),
            Err(GpuError::NoDriver) => return Ok(Err("this machine has no NVIDIA driver".to_owned())),
            Err(error) => return Err(EvidenceError::NoAnswer { cause: error.to_string() }.into()),
        }
    } else if args.gpu.is_empty() && typed.is_none() {
        (Vec::new(), None)
    } else {
        // The environment is not asked: the answer is for what was typed alone.
        let options = TargetOptions { gpu: args.gpu.clone(), driver: typed, ..TargetOptions::default() };
        let target = target(&options, &TargetOverrides::default(), &settings.matrix, &NullReporter)?;
        let gpus: Vec<_> = target.gpus.into_iter().map(|gpu| (gpu.name, gpu.compute_capability)).collect();
        (gpus, target.driver)
    };
    let mut wanted = Vec::new();
    for (name, capability) in gpus {
        let gpu = match name.filter(|_| !args.same_architecture) {
            Some(name) => WantedGpu::Model(name),
            None => WantedGpu::Capability(capability),
        };
        if !wanted.contains(&gpu) {
            wanted.push(gpu);
        }
    }
    let gpus = wanted;
    let max_age = SignedDuration::from_hours(i64::from(args.max_age.hours()));
    let (count, level) = (args.count, args.level);
    let agents = settings.policy.agents.clone().unwrap_or_default();
    Ok(Ok(Wanted { gpus, count, driver, exact_driver, level, max_age, agents }))
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
            let key = short_fingerprint(signer);
            let day = entry.checked.strftime("%F");
            Printer.text(&format!(
                "admitted: level {} on {}, driver {}, {day}, by key {key}{notes}",
                entry.level, entry.gpu, entry.driver
            ));
        }
        Printer.text(&format!("image: {image}"));
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
    let options = TargetOptions { platform: args.platform, ..TargetOptions::default() };
    let machine = machine(&options, &settings.matrix);
    let registry = registry(settings)?;
    let subject = registry.evidence_subject(&image, machine).await?;
    let names = settings.matrix.gpu_names();
    let is_meant = |entry: &Entry| {
        args.gpu.as_ref().is_none_or(|gpu| is_model(entry, gpu, &names))
            && driver.as_ref().is_none_or(|driver| driver.major() == entry.branch())
            && args.level.is_none_or(|level| entry.level >= level)
    };
    let reporter = reporter(settings.output);
    let attester = Attester { registry: &registry, key: &key, matrix: &settings.matrix, reporter: &reporter };
    let (attached, withdrawn) = attester.withdraw((&image, &subject), is_meant).await?;
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
            Report { schema: 1, image, index: None, checked: true, entries: Vec::new(), ignored: &[] };
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
