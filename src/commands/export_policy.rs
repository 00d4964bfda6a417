//! `export policy`: what an admission controller has to ask of images' evidence.
#![expect(clippy::disallowed_methods, reason = "asks the clock whether a key still counts")]

use jiff::Timestamp;

use crate::evidence::{SUMMARY_TYPE, Signer};
use crate::failure::Exit;
use crate::model::export::policy::{EvidencePolicy, ImageScope};
use crate::model::request::{self, TargetOptions};
use crate::report::{Event, NullReporter, Printer, reporter};
use crate::settings::{KeyPurpose, Settings, TargetOverrides};
use crate::store::write_atomically;
use crate::workflow::error::CommandError;
use crate::workflow::evidence::{EvidenceError, trusted_keys};
use crate::workflow::export_file::check_target;
use crate::workflow::target::target;

pub(super) fn export_policy(args: &request::ExportPolicy, settings: &Settings) -> Result<Exit, CommandError> {
    let file = settings.paths.current_dir.join(&args.target);
    check_target(&file, args.force)?;
    let images = ImageScope::parse(&args.images)?;
    let signers = trusted_keys(&args.key, settings, KeyPurpose::Tests)?;
    // A controller knows no `not-after`.
    let (ended, signers): (Vec<Signer>, Vec<Signer>) =
        signers.into_iter().partition(|signer| signer.not_after.is_some_and(|end| end <= Timestamp::now()));
    let warn = |text: String| reporter(settings.output).report(Event::Warning { text });
    for Signer { key, .. } in &ended {
        warn(format!("key {key} is left out: its `not-after` is past"));
    }
    for Signer { key, not_after } in &signers {
        if let Some(end) = not_after {
            let day = end.strftime("%F");
            warn(format!(
                "the policy believes key {key} until you remove it: its `not-after` ends before {day}"
            ));
        }
    }
    if signers.is_empty() {
        return Err(EvidenceError::NoTrustedKey.into());
    }
    let mut capabilities = Vec::new();
    if !args.gpu.is_empty() {
        // The environment is not asked: the policy is about what was typed alone.
        let options = TargetOptions { gpu: args.gpu.clone(), ..TargetOptions::default() };
        let target = target(&options, &TargetOverrides::default(), &settings.matrix, &NullReporter)?;
        capabilities.extend(target.gpus.iter().map(|gpu| gpu.compute_capability));
        capabilities.sort_unstable();
        capabilities.dedup();
    }
    let keys = signers.iter().map(|signer| signer.key.to_pem()).collect();
    let policy = EvidencePolicy { images, keys, predicate: SUMMARY_TYPE, capabilities, level: args.level };
    write_atomically(&file, policy.manifest(args.controller).as_bytes())?;
    Printer.text(file.as_str());
    Ok(Exit::Done)
}
