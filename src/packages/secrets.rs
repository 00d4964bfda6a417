//! Build secrets for indexes and certificates, stored in no layer.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::settings::IndexSettings;
use crate::engine::Secret;
use crate::model::address::Address;
use crate::model::image::render::shell_word;
use crate::model::lock::Lock;

/// Certificates and index addresses, those of a project's further indexes too, served during RUN steps.
pub fn index_secrets(index: &IndexSettings, lock: &Lock, further: &BTreeMap<String, Address>) -> Vec<Secret> {
    let mut lines = String::new();
    if let Some(address) = &index.default {
        lines.extend(["export UV_DEFAULT_INDEX=", &shell_word(address.expose()), "\n"]);
    }
    if lock.uses_framework_index()
        && let Some(address) = index.framework_index(&lock.stack.framework, lock.stack.cuda)
    {
        lines.extend(["export ENVFORGE_FRAMEWORK_INDEX=", &shell_word(address.expose()), "\n"]);
    }
    let torch = if lock.uses_framework_index() { index.framework_indexes(&lock.stack) } else { Vec::new() };
    let torch = torch.get(1).into_iter();
    let all: Vec<_> = torch.chain(further.values()).map(Address::expose).collect();
    if !all.is_empty() {
        lines.extend(["export ENVFORGE_INDEXES=", &shell_word(&all.join(" ")), "\n"]);
    }
    let mut secrets = Vec::new();
    if !lines.is_empty() {
        secrets.push(Secret { id: "index".to_owned(), bytes: Bytes::from(lines) });
    }
    secrets.extend(index.ca_bundle.clone().map(|bytes| Secret { id: "ca".to_owned(), bytes }));
    secrets
}
