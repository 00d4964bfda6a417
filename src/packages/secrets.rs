//! Build secrets for indexes and certificates, stored in no layer.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::settings::IndexSettings;
use crate::engine::Secret;
use crate::model::given::have_login;
use crate::model::image::render::shell_word;
use crate::model::index_address::IndexAddress;
use crate::model::lock::Lock;

/// Certificates and index addresses, those of a project's further indexes too, served during RUN steps.
pub fn index_secrets(
    index: &IndexSettings,
    lock: &Lock,
    further: &BTreeMap<String, IndexAddress>,
) -> Vec<Secret> {
    let mut lines = String::new();
    if let Some(address) = &index.default {
        lines.extend(["export UV_DEFAULT_INDEX=", &shell_word(address.expose()), "\n"]);
    }
    let framework =
        if lock.uses_framework_index() { index.framework_indexes(&lock.stack) } else { Vec::new() };
    let lists = [
        ("ENVFORGE_FRAMEWORK_INDEX", framework.iter().map(IndexAddress::expose).collect::<Vec<_>>()),
        ("ENVFORGE_INDEXES", further.values().map(IndexAddress::expose).collect()),
    ];
    for (variable, addresses) in lists.iter().filter(|(_, addresses)| !addresses.is_empty()) {
        lines.extend(["export ", variable, "=", &shell_word(&addresses.join(" ")), "\n"]);
    }
    if have_login(&index.proxies.0) {
        for (name, value) in &index.proxies.0 {
            let value = shell_word(value);
            lines = format!("{lines}export {name}={value} {}={value}\n", name.to_lowercase());
        }
    }
    let mut secrets = Vec::new();
    if !lines.is_empty() {
        secrets.push(Secret { id: "index".to_owned(), bytes: Bytes::from(lines) });
    }
    secrets.extend(index.ca_bundle.clone().map(|bytes| Secret { id: "ca".to_owned(), bytes }));
    secrets
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::lock::{IndexKind, sample};
    use crate::packages::settings::Proxies;

    #[test]
    fn own_indexes_of_the_framework_and_its_torch_are_one_list_and_further_ones_another() {
        let address = |text: &str| text.parse().expect("an address");
        let mut lock = sample::lock();
        lock.stack.framework = "vllm".to_owned();
        lock.stack.companions.insert("torch".to_owned(), "2.8.0".to_owned());
        lock.wheels[0].index = IndexKind::Framework;
        let own = |text: &str| text.parse().expect("an address");
        let index = IndexSettings {
            framework: Some(own("https://torch.example.test/whl/{cuda}")),
            of_framework: BTreeMap::from([(
                "vllm".to_owned(),
                own("flat+https://u:p@forge.example.test/{cuda}"),
            )]),
            ..IndexSettings::default()
        };
        let further = BTreeMap::from([("pages".to_owned(), address("flat+https://pages.example.test/a"))]);
        let secrets = index_secrets(&index, &lock, &further);
        let text = String::from_utf8(secrets[0].bytes.to_vec()).expect("text");
        assert_eq!(
            text,
            "export ENVFORGE_FRAMEWORK_INDEX='flat+https://u:p@forge.example.test/cu128 https://torch.example.test/whl/cu128'\n\
             export ENVFORGE_INDEXES='flat+https://pages.example.test/a'\n"
        );
        let proxies = BTreeMap::from([("HTTPS_PROXY".to_owned(), "http://u:p@proxy.test".to_owned())]);
        let with_proxy = IndexSettings { proxies: Proxies(proxies), ..IndexSettings::default() };
        let secrets = index_secrets(&with_proxy, &sample::lock(), &BTreeMap::new());
        let text = String::from_utf8(secrets[0].bytes.to_vec()).expect("text");
        assert!(
            text.contains("export HTTPS_PROXY='http://u:p@proxy.test' https_proxy='http://u:p@proxy.test'\n"),
            "{text}"
        );
        lock.wheels.iter_mut().for_each(|wheel| wheel.index = IndexKind::Default);
        assert!(index_secrets(&index, &lock, &BTreeMap::new()).is_empty(), "no wheel needs one");
    }
}
