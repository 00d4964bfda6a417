//! The vendor's apt repository: where it is, and whose key signs it.
//!
//! The key is downloaded from next to the repository's index (or read from a file of the settings) and trusted by its
//! fingerprint alone, which the matrix or a setting specifies. apt then verifies the index with exactly that key.

use bytes::Bytes;

use super::catalogue::catalogue;
use super::error::{PackagesError, ToolOutput};
use super::settings::VendorSettings;
use crate::base::fingerprint_of;
use crate::fetch::Fetcher;
use crate::model::address::Address;
use crate::model::stack::{Nvcc, VendorRepository};

/// A key with photographs and signatures is still smaller.
const LARGEST_KEY: u64 = 1 << 20;

/// The repository as apt's configuration lists it.
#[derive(Debug, Clone)]
pub(super) struct VendorSource {
    pub(super) root: Address,
    pub(super) key: Bytes,
}

/// The repository nvcc comes from, with its key checked; `None`: it comes from elsewhere.
pub(super) async fn vendor_source(
    nvcc: Option<&Nvcc>,
    settings: &VendorSettings,
    fetcher: &Fetcher,
) -> Result<Option<VendorSource>, PackagesError> {
    let Some(repository) = nvcc.and_then(|nvcc| nvcc.repository.as_ref()) else { return Ok(None) };
    let root = vendor_root(repository, settings);
    let key = match &settings.key {
        Some(key) => key.clone(),
        None => fetcher.document(&root.join(&repository.key), LARGEST_KEY).await.map_err(|error| {
            PackagesError::Vendor { cause: ToolOutput(super::redact::without_addresses(&error.to_string())) }
        })?,
    };
    let wanted = settings.fingerprint.as_ref().unwrap_or(&repository.fingerprint);
    let wanted: String = wanted.split_whitespace().collect::<String>().to_uppercase();
    let found = fingerprint_of(&key)
        .map_err(|error| PackagesError::VendorKey { found: error.to_string(), wanted: wanted.clone() })?;
    if found != wanted {
        return Err(PackagesError::VendorKey { found, wanted });
    }
    Ok(Some(VendorSource { root, key }))
}

/// The directory that holds the repository's index.
pub fn vendor_root(repository: &VendorRepository, settings: &VendorSettings) -> Address {
    let all = settings.root.clone().unwrap_or_else(|| catalogue().vendor_repositories());
    all.join(&repository.path).join("")
}

#[cfg(test)]
mod tests {
    use crate::failure::{Exit, Failure as _};
    use wiremock::matchers::path;
    use wiremock::{Mock, MockServer, ResponseTemplate};

    use super::*;
    use crate::fetch::FetchSettings;
    use crate::model::stack::NvccSource;

    const KEY: &[u8] = include_bytes!("../../tests/fixtures/vendor/debian12/x86_64/3bf863cc.pub");
    const FINGERPRINT: &str = "7440A2500DA815DC50E8D78280DFC67927037B68";

    fn nvcc() -> Nvcc {
        Nvcc {
            source: NvccSource::Vendor,
            packages: vec!["cuda-nvcc-12-8".to_owned()],
            component: None,
            gcc: 12,
            repository: Some(VendorRepository {
                path: "debian12/x86_64".to_owned(),
                key: "3bf863cc.pub".to_owned(),
                fingerprint: FINGERPRINT.to_owned(),
            }),
        }
    }

    async fn asked(settings: &VendorSettings, nvcc: &Nvcc) -> Result<Option<VendorSource>, PackagesError> {
        let fetcher =
            Fetcher::new(&FetchSettings { attempts: 1, ..FetchSettings::default() }).expect("client");
        vendor_source(Some(nvcc), settings, &fetcher).await
    }

    async fn server(key: &[u8]) -> (MockServer, VendorSettings) {
        let server = MockServer::start().await;
        Mock::given(path("/repos/debian12/x86_64/3bf863cc.pub"))
            .respond_with(ResponseTemplate::new(200).set_body_bytes(key))
            .mount(&server)
            .await;
        let root = format!("{}/repos", server.uri()).parse().expect("an address");
        (server, VendorSettings { root: Some(root), ..VendorSettings::default() })
    }

    #[tokio::test]
    async fn key_next_to_the_index_is_verified_by_fingerprint() {
        let (_server, settings) = server(KEY).await;
        let source = asked(&settings, &nvcc()).await.expect("the key").expect("the vendor's");
        assert_eq!(source.key, KEY);
        assert!(source.root.expose().ends_with("/repos/debian12/x86_64/"), "{}", source.root.expose());
        let other = Nvcc { repository: None, ..nvcc() };
        assert!(asked(&settings, &other).await.expect("nothing to do").is_none());
    }

    #[tokio::test]
    async fn key_mismatch_names_both_fingerprints() {
        let (_server, mut settings) = server(KEY).await;
        settings.fingerprint = Some("EB69 3B30 35CD 5710 E231 E123 A4B4 6996 3BF8 63CC".to_owned());
        let error = asked(&settings, &nvcc()).await.expect_err("refused");
        assert_eq!(error.exit(), Exit::Outside);
        let text = error.to_string();
        assert!(text.contains(FINGERPRINT) && text.contains("EB693B3035CD5710"), "{text}");
        let (_server, settings) = server(b"<html>not a key</html>").await;
        assert!(matches!(asked(&settings, &nvcc()).await, Err(PackagesError::VendorKey { .. })));
        let two = [KEY, KEY].concat();
        let own = VendorSettings { key: Some(two.into()), ..VendorSettings::default() };
        assert!(asked(&own, &nvcc()).await.is_err(), "two keys where one was checked");
    }

    #[tokio::test]
    async fn unreachable_repository_error_omits_its_address() {
        let root = "http://u:hunter2@127.0.0.1:9/repos".parse().expect("an address");
        let settings = VendorSettings { root: Some(root), ..VendorSettings::default() };
        let error = asked(&settings, &nvcc()).await.expect_err("connection refused");
        assert!(matches!(error, PackagesError::Vendor { .. }), "{error:?}");
        assert_eq!(error.exit(), Exit::Outside);
        assert!(error.hints()[0].contains("ENVFORGE_NVIDIA_MIRROR"));
        assert!(!format!("{error:?}").contains("hunter2"));
    }

    #[test]
    fn without_a_setting_the_vendors_own_address_is_taken() {
        let repository = nvcc().repository.expect("the vendor's");
        let root = vendor_root(&repository, &VendorSettings::default());
        assert!(root.expose().starts_with("https://") && root.expose().ends_with("/debian12/x86_64/"));
    }
}
