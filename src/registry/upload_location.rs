//! Where a registry wants an upload to go on: below itself, or at another server, which it names in `Location`.

use crate::model::address::Address;

/// Returns the address of an upload that a registry named in its answer to a request to `asked`. Another server gets it over
/// TLS or not at all.
pub(super) fn upload_location(asked: &Address, location: Option<&str>) -> Result<Address, &'static str> {
    let location = location.ok_or("it named none")?;
    let target = asked.resolve(location).map_err(|_| "it is not an address")?;
    let is_secure = target.origin().starts_with("https:");
    if target.origin() == asked.origin() || is_secure {
        Ok(target)
    } else {
        Err("it leads to another server without TLS")
    }
}

/// The number of bytes that an upload has, by the header `Range: 0-1023`; `None`: it says nothing, or that of an upload
/// without bytes, which is also that of a single one.
pub(super) fn uploaded(range: Option<&str>) -> Option<u64> {
    let range = range?.trim();
    let range = range.strip_prefix("bytes=").unwrap_or(range);
    let last: u64 = range.strip_prefix("0-")?.parse().ok()?;
    last.checked_add(1).filter(|bytes| *bytes > 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn upload_leads_to_another_server_only_over_tls() {
        let found = |asked: &str, location: &str| {
            let asked = asked.parse().expect("an address");
            upload_location(&asked, Some(location)).map(|address| address.expose().to_owned())
        };
        let registry = "https://r.test/v2/a/blobs/uploads/";
        assert_eq!(found(registry, "/v2/a/u?s=1").as_deref(), Ok("https://r.test/v2/a/u?s=1"));
        assert_eq!(found(registry, "https://r.test/u").as_deref(), Ok("https://r.test/u"));
        assert_eq!(found(registry, "https://store.test/u").as_deref(), Ok("https://store.test/u"));
        assert_eq!(found(registry, "//store.test/u").as_deref(), Ok("https://store.test/u"));
        let plain = "http://box:5000/v2/a/blobs/uploads/";
        assert_eq!(found(plain, "http://box:5000/u").as_deref(), Ok("http://box:5000/u"));
        for (asked, location) in [
            (registry, "http://r.test/u"),
            (registry, "http://store.test/u"),
            (plain, "http://store.test/u"),
            (plain, "http://box:5001/u"),
            (plain, "//store.test/u"),
            (registry, "file:///etc/passwd"),
            (registry, "http://["),
        ] {
            assert!(found(asked, location).is_err(), "{asked} {location}");
        }
        let asked = registry.parse().expect("an address");
        assert_eq!(upload_location(&asked, None), Err("it named none"));
    }

    #[test]
    fn range_of_an_upload_counts_its_bytes() {
        assert_eq!(uploaded(Some("0-1023")), Some(1024));
        assert_eq!(uploaded(Some("bytes=0-1")), Some(2));
        for unusable in
            [None, Some("0-0"), Some("5-9"), Some("0-"), Some("0-18446744073709551615"), Some("x")]
        {
            assert_eq!(uploaded(unusable), None, "{unusable:?}");
        }
    }
}
