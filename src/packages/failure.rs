//! What a failed step of `resolve.sh` means, told from its exit code and what apt or uv printed.

use super::error::{PackagesError, Words};
use super::redact::without_addresses;

/// The error behind an exit code of `resolve.sh`; `with_additions`: the user's own packages were among the wishes.
pub(super) fn explain(code: i64, stderr: &[u8], with_additions: bool) -> PackagesError {
    let text = without_addresses(String::from_utf8_lossy(stderr).trim());
    match code {
        40 | 42 => mirror(text),
        47 => PackagesError::Vendor { cause: Words(text) },
        48 => PackagesError::Nvcc { cause: Words(text) },
        49 => PackagesError::Apt { cause: Words(text) },
        50 => PackagesError::AptChanges { cause: Words(text) },
        41 => PackagesError::System { cause: Words(text) },
        43 => resolver(text, with_additions),
        code => {
            let detail = format!("it ended with code {code}: {text}");
            PackagesError::Output { what: "run", detail }
        }
    }
}

fn mirror(text: String) -> PackagesError {
    let says = |any: &[&str]| any.iter().any(|words| text.contains(words));
    let no_network = says(&["Temporary failure resolving", "Could not resolve", "Network is unreachable"]);
    let expired = says(&["is expired", "is not valid anymore", "Release file expired"]);
    let cause = Words(text);
    if expired { PackagesError::Expired { cause } } else { PackagesError::Mirror { cause, no_network } }
}

fn resolver(text: String, with_additions: bool) -> PackagesError {
    let says = |any: &[&str]| any.iter().any(|words| text.contains(words));
    if says(&["No solution found"]) {
        return PackagesError::NoSolution { cause: Words(text), with_additions };
    }
    if says(&["401 Unauthorized", "403 Forbidden"]) {
        return PackagesError::IndexAccess { cause: Words(text) };
    }
    if says(&[
        "Failed to fetch",
        "error sending request",
        "dns error",
        "Could not connect",
        "onnection refused",
    ]) {
        return PackagesError::Index { package: fetched_package(&text), cause: Words(text) };
    }
    PackagesError::Resolver { cause: Words(text) }
}

/// `torch` of "Failed to fetch: `<address>/torch`", which newer releases of uv write without quotes.
fn fetched_package(text: &str) -> Option<String> {
    let (_, after) = text.split_once("Failed to fetch: ")?;
    let name = after.trim_start_matches('`').strip_prefix("<address>/")?;
    let name = name.split(|c: char| c == '`' || c.is_whitespace()).next()?;
    (!name.is_empty()).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unreachable_index_names_package_and_setting_but_no_address() {
        let said = "error: Request failed after 3 retries\n  Caused by: Failed to fetch: `http://u:hunter2@127.0.0.1:9/simple/torch/`\n  \
                    Caused by: error sending request for url (http://127.0.0.1:9/simple/torch/)\n  Caused by: Connection refused (os error 111)";
        let error = explain(43, said.as_bytes(), false);
        assert_eq!(error.to_string(), "the package index cannot be reached (asked for `torch`)");
        assert_eq!(error.exit_code(), 3);
        assert!(error.hints()[0].contains("ENVFORGE_INDEX"), "{:?}", error.hints());
        let cause = std::error::Error::source(&error).expect("uv's words").to_string();
        assert!(
            cause.contains("Connection refused") && !cause.contains("hunter2") && !cause.contains("127.0"),
            "{cause}"
        );
    }

    #[test]
    fn what_would_have_to_be_built_is_named_with_the_setting_that_allows_it() {
        let said = b"error: No solution found when resolving dependencies\n  cause: Because all versions of docopt have no usable \
                     wheels and you require docopt, we can conclude that your requirements are unsatisfiable.\n\nhint: Wheels are \
                     required for `docopt` because building from source is disabled for all packages (i.e., with `--no-build`)";
        let hints = explain(43, said, true).hints();
        assert!(hints[0].contains("`allow-source = [\"docopt\"]`") && hints.len() == 2, "{hints:?}");
    }

    #[test]
    fn the_package_is_named_without_quotes_too() {
        let said = "error: Request failed after 3 retries in 11.3s\n  cause: Failed to fetch: http://h.test/own/own-package/\n  \
                    cause: HTTP status server error (500 No) for url (http://h.test/own/own-package/)";
        let error = explain(43, said.as_bytes(), false);
        assert_eq!(error.to_string(), "the package index cannot be reached (asked for `own-package`)");
    }

    #[test]
    fn a_conflict_is_the_users_only_if_he_added_something() {
        let said = b"  x No solution found when resolving dependencies:\n  Because there is no version of torch==2.7.1+cu118";
        let error = explain(43, said, false);
        assert!(matches!(error, PackagesError::NoSolution { .. }), "{error:?}");
        assert_eq!(error.exit_code(), 3);
        assert!(std::error::Error::source(&error).expect("words").to_string().contains("torch==2.7.1+cu118"));
        let error = explain(43, said, true);
        assert_eq!(error.exit_code(), 1);
        assert!(error.hints()[0].contains("added"));
    }

    #[test]
    fn refused_access_asks_for_credentials() {
        let error =
            explain(43, b"HTTP status client error (401 Unauthorized) for url (https://h.test/x)", false);
        assert!(matches!(error, PackagesError::IndexAccess { .. }), "{error:?}");
        assert!(error.hints()[0].contains("token"));
    }

    #[test]
    fn a_container_without_network_is_told_from_a_mirror_that_is_down() {
        let error =
            explain(40, b"E: Failed to fetch http://m.test/x  Temporary failure resolving 'm.test'", false);
        assert!(matches!(error, PackagesError::Mirror { no_network: true, .. }), "{error:?}");
        assert!(error.hints()[0].contains("ENVFORGE_NETWORK=host"));
        let error = explain(40, b"E: Failed to fetch http://m.test/x  500  Internal Server Error", false);
        assert!(matches!(error, PackagesError::Mirror { no_network: false, .. }), "{error:?}");
        assert!(error.hints()[0].contains("ENVFORGE_DEBIAN_MIRROR"));
    }

    #[test]
    fn an_expired_index_names_the_option_that_accepts_it() {
        let error =
            explain(40, b"E: Release file for http://m.test/InRelease is expired (invalid since 3d)", false);
        assert!(matches!(error, PackagesError::Expired { .. }), "{error:?}");
        assert!(error.hints()[0].contains("accept-expired"));
    }

    #[test]
    fn a_package_the_base_lacks_and_other_failures_keep_the_tools_words() {
        for (code, said) in [(41, "E: Unable to locate package tini"), (43, "error: panic"), (137, "Killed")]
        {
            let error = explain(code, said.as_bytes(), false);
            assert_eq!(error.exit_code(), 3);
            let all = format!("{error} {:?}", std::error::Error::source(&error).map(ToString::to_string));
            assert!(all.contains(said), "{all}");
        }
    }
}
