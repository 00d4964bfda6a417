//! The tags an image is to have.

use crate::model::image::plan::name;
use crate::model::lock::Lock;

/// The canonical name, what was typed if it names a version, and what `--tag` asks for: without any suffix.
pub(crate) fn tags(typed: &str, wanted: &[String], lock: &Lock) -> Vec<String> {
    let mut tags = vec![name(lock)];
    if lock.added.is_empty() && typed.contains(':') && !typed.ends_with(":latest") {
        tags.push(typed.replace('+', "-"));
    }
    tags.extend(wanted.iter().cloned());
    tags.dedup();
    tags
}
