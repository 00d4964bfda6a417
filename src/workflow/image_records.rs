//! The digests of an assembled image as records of its lock: compared where there are some, else written.

use crate::agent;
use crate::model::compat::Matrix;
use crate::model::counted::counted;
use crate::model::image::component::ComponentKind;
use crate::model::lock::{LayerRecord, Lock, LockMetadata};
use crate::model::sha256::sha256_hex;
use crate::report::Event;
use crate::store::write_atomically;
use crate::workflow::assemble::{ImageRecords, layout};
use crate::workflow::error::CommandError;
use crate::workflow::image_error::ImageError;
use crate::workflow::lock::LockedBuild;
use crate::workflow::session::Session;

/// Leaves records of another layout out of account, and says so: the same lock gives another image. They are written anew, but
/// with `--locked`.
pub(crate) fn forget_other_layout(session: &Session<'_>, locked: &mut LockedBuild) {
    let Some(other) = forget(&mut locked.lock) else { return };
    let layout = layout(&locked.lock);
    let path = &locked.path;
    let then = if locked.read_only { "`--locked` keeps them" } else { "recording new ones" };
    let text =
        format!("the image digests in {path} are of layout {other}, not {layout}: not compared; {then}");
    session.reporter.report(Event::Note { text });
}

/// Removes digests of another layout, and returns it.
fn forget(lock: &mut Lock) -> Option<u32> {
    let current = layout(lock);
    let records = &mut lock.records;
    let other = records.layout.filter(|layout| *layout != current)?;
    (records.content, records.layout, records.config, records.layers) = (None, None, None, Vec::new());
    Some(other)
}

/// Compares the digests of an image with those of its lock. With another agent or matrix, which the expectation file follows, only
/// the layers below the agent's count; with another layout none. Writes them into a lock that has none that count, and with `--locked`
/// keeps them for this run.
pub(crate) fn compare(
    session: &Session<'_>,
    locked: &mut LockedBuild,
    found: ImageRecords,
) -> Result<(), CommandError> {
    let agent = sha256_hex(agent::AGENT);
    let records = &locked.lock.records;
    let edition = &session.matrix.edition;
    let same_program = is_of_program(records, &agent, edition);
    if records.layout == Some(layout(&locked.lock)) {
        let differences = differences(&records.layers, &found.layers, same_program);
        let other = |config: &String| found.config.as_ref().is_some_and(|found| found != config);
        let other_config = same_program && records.config.as_ref().is_some_and(other);
        if !differences.is_empty() || other_config {
            let file = locked.path.to_string();
            let found = found.config.unwrap_or_default();
            return Err(ImageError::OtherRecords { file, found, differences }.into());
        }
        if same_program && (records.config.is_some() || found.config.is_none() && !records.layers.is_empty())
        {
            return Ok(());
        }
    }
    let mut lock = locked.lock.clone();
    lock.records.agent = Some(agent);
    lock.records.matrix.clone_from(edition);
    lock.records.layout = Some(layout(&lock));
    lock.records.config = found.config;
    lock.records.layers = found.layers;
    if locked.read_only {
        locked.lock = lock;
        return Ok(());
    }
    match write_atomically(&locked.path, lock.to_toml().as_bytes()) {
        Ok(()) => locked.lock = lock,
        Err(error) => {
            let text = format!("cannot record the image's digests in {}: {error}", locked.path);
            session.reporter.report(Event::Note { text });
        }
    }
    Ok(())
}

/// Whether the digests that a lock records are those of the image that this program builds from it.
pub(crate) fn are_current(lock: &Lock, matrix: &Matrix) -> bool {
    let agent = sha256_hex(agent::AGENT);
    lock.records.layout == Some(layout(lock)) && is_of_program(&lock.records, &agent, &matrix.edition)
}

/// Whether digests were recorded with this agent and this matrix.
fn is_of_program(records: &LockMetadata, agent: &str, edition: &str) -> bool {
    records.agent.as_deref() == Some(agent) && records.matrix == edition
}

/// A line for each layer that is another one than recorded.
fn differences(recorded: &[LayerRecord], found: &[LayerRecord], same_program: bool) -> Vec<String> {
    let counts = |layer: &&LayerRecord| same_program || layer.component != ComponentKind::Files.id();
    let below = |layers: &[LayerRecord]| -> Vec<LayerRecord> {
        let end = if same_program { layers.len() } else { layers.iter().take_while(counts).count() };
        layers[..end].to_vec()
    };
    let (recorded, found) = (below(recorded), below(found));
    if recorded.is_empty() {
        return Vec::new();
    }
    let mut lines: Vec<String> = recorded
        .iter()
        .zip(&found)
        .enumerate()
        .filter(|(_, (one, other))| one.diff_id != other.diff_id)
        .map(|(number, (one, other))| {
            format!(
                "layer {} ({}): {} instead of {}",
                number + 1,
                other.component,
                other.diff_id,
                one.diff_id
            )
        })
        .collect();
    if recorded.len() != found.len() {
        lines.push(format!("{} instead of {}", counted(found.len(), "layer"), recorded.len()));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::lock::sample;

    fn layer(component: &str, diff_id: &str) -> LayerRecord {
        LayerRecord {
            component: component.to_owned(),
            diff_id: diff_id.to_owned(),
            size: None,
            digest: None,
            compressed_size: None,
        }
    }

    #[test]
    fn digests_of_another_layout_are_forgotten_and_others_stay() {
        let records = |layout| LockMetadata {
            created: "2026-11-26T00:00:00Z".to_owned(),
            content: Some("c".to_owned()),
            layout,
            config: Some("d".to_owned()),
            layers: vec![layer("system", "1")],
            ..LockMetadata::default()
        };
        for (schema, current) in [(2, 2), (3, 3)] {
            let lock = |layout| Lock { schema, records: records(layout), ..sample::lock() };
            for kept in [Some(current), None] {
                let mut same = lock(kept);
                assert_eq!((forget(&mut same), same), (None, lock(kept)));
            }
            let mut other = lock(Some(current - 1));
            assert_eq!(forget(&mut other), Some(current - 1), "schema {schema}");
            let created = records(None).created;
            assert_eq!(other.records, LockMetadata { created, ..LockMetadata::default() });
        }
    }

    #[test]
    fn layers_from_the_agent_on_count_only_with_the_same_program() {
        let recorded = [layer("stack", "1"), layer("files", "2"), layer("copy", "3")];
        let found = [layer("stack", "1"), layer("files", "x"), layer("copy", "3")];
        assert_eq!(differences(&recorded, &found, true).len(), 1);
        assert_eq!(differences(&recorded, &found, false), Vec::<String>::new());
        let lower = [layer("stack", "y"), layer("files", "2")];
        let lines = differences(&recorded, &lower, true);
        assert!(lines[0].starts_with("layer 1 (stack): y instead of 1"), "{lines:?}");
        assert_eq!(
            (lines[1].as_str(), differences(&recorded, &lower, false).len()),
            ("2 layers instead of 3", 1)
        );
        assert_eq!(differences(&[], &found, true), Vec::<String>::new());
    }
}
