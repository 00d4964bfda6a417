//! Speeds recorded on this host, one file for each set of GPUs, and the lines the agent compares with.

use std::collections::BTreeMap;

use crate::host;
use crate::model::sha256::sha256_hex;
use crate::model::verdict::Verdict;
use crate::model::verdict::speed::{lines, measured, peaks};
use crate::workflow::error::CommandError;
use crate::workflow::session::Session;
use envforge_protocol::SpeedSource;

/// The recorded file of those GPUs: their names decide, not their order.
fn file_of(names: &[String]) -> String {
    let mut names = names.to_vec();
    names.sort();
    names.dedup();
    format!("figures/{}.json", &sha256_hex(names.join("\n").as_bytes())[..16])
}

/// The names of this machine's GPUs, if the engine runs here and the driver answers.
fn names(session: &Session<'_>) -> Vec<String> {
    if !session.engine.info().local {
        return Vec::new();
    }
    host::detect().map(|facts| facts.gpus.into_iter().map(|gpu| gpu.name).collect()).unwrap_or_default()
}

/// What is due of this machine's GPUs, as lines the agent reads; nothing where it is not known.
pub(crate) fn expected_speeds(session: &Session<'_>) -> Result<String, CommandError> {
    let names = names(session);
    let mut text = String::new();
    if let Some(first) = names.first().filter(|first| names.iter().all(|name| name == *first))
        && let Ok(found) = session.matrix.gpu_named(first)
        && let Some(row) = found.product
    {
        text += &lines(SpeedSource::Peak, &peaks(row));
    }
    if let Some(bytes) = session.store.read_state(&file_of(&names))? {
        // A damaged record is no record: the next --record replaces it.
        let recorded: BTreeMap<String, f64> = serde_json::from_slice(&bytes).unwrap_or_default();
        text += &lines(SpeedSource::Recorded, &recorded);
    }
    Ok(text)
}

/// Keeps what the report measured as this host's figures; how many there were.
pub(crate) fn record(session: &Session<'_>, verdict: &Verdict) -> Result<usize, CommandError> {
    let figures = measured(verdict);
    if !figures.is_empty() {
        let text = serde_json::to_vec_pretty(&figures).expect("figures serialise: they are finite");
        session.store.write_state(&file_of(&names(session)), &text)?;
    }
    Ok(figures.len())
}
