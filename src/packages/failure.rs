//! Errors behind failed steps of the resolver's scripts, from their exit code and the output of apt or uv.

use super::error::{PackagesError, ToolOutput};
use super::redact::without_addresses;
use super::script_file::MINUTES;
use crate::model::lock::DEFAULT_INDEX;

/// Returns the error behind an exit code of a script; `with_additions`: the request includes packages of the user.
pub(super) fn explain(code: i64, stderr: &[u8], with_additions: bool) -> PackagesError {
    explain_with(code, stderr, with_additions, |_| vec![DEFAULT_INDEX])
}

/// As [`explain`]; `indexes_of` names the indexes that a package may come from.
pub(super) fn explain_with<'a>(
    code: i64,
    stderr: &[u8],
    with_additions: bool,
    indexes_of: impl Fn(&str) -> Vec<&'a str>,
) -> PackagesError {
    // uv reads the requirements as those of a project where a package comes from one index only.
    let text = without_addresses(String::from_utf8_lossy(stderr).trim())
        .replace("envforge-image depends on", "you require");
    match code {
        40 | 42 => mirror(text),
        47 => PackagesError::Vendor { cause: ToolOutput(text) },
        48 => PackagesError::Nvcc { cause: ToolOutput(text) },
        49 => PackagesError::Apt { cause: ToolOutput(text) },
        50 => PackagesError::AptChanges { cause: ToolOutput(text) },
        41 => PackagesError::System { cause: ToolOutput(text) },
        43 => resolver(text, with_additions, indexes_of),
        // `timeout`, and what it has to kill.
        124 | 137 => {
            let detail = format!("it was ended after {MINUTES} minutes or killed: {text}");
            PackagesError::Output { what: "run", detail }
        }
        code => {
            let detail = format!("exit code {code}: {text}");
            PackagesError::Output { what: "run", detail }
        }
    }
}

fn mirror(text: String) -> PackagesError {
    let says = |any: &[&str]| any.iter().any(|words| text.contains(words));
    let no_network = says(&["Temporary failure resolving", "Could not resolve", "Network is unreachable"]);
    let expired = says(&["is expired", "is not valid anymore", "Release file expired"]);
    let cause = ToolOutput(text);
    if expired { PackagesError::Expired { cause } } else { PackagesError::Mirror { cause, no_network } }
}

fn resolver<'a>(
    text: String,
    with_additions: bool,
    indexes_of: impl Fn(&str) -> Vec<&'a str>,
) -> PackagesError {
    let says = |any: &[&str]| any.iter().any(|words| text.contains(words));
    if let Some(file) = undated_file(&text) {
        let package = file.split('-').next().unwrap_or_default().to_ascii_lowercase().replace('_', "-");
        let index: Vec<_> = indexes_of(&package).iter().map(|name| format!("`{name}`")).collect();
        let index = index.join(" or ");
        return PackagesError::NoUploadTimes { index, file, cause: ToolOutput(text) };
    }
    if says(&["No solution found"]) {
        return PackagesError::NoSolution { cause: ToolOutput(text), with_additions, trap: None };
    }
    if says(&["401 Unauthorized", "403 Forbidden"]) {
        return PackagesError::IndexAccess { cause: ToolOutput(text) };
    }
    if says(&[
        "Failed to fetch",
        "error sending request",
        "dns error",
        "Could not connect",
        "onnection refused",
    ]) {
        return PackagesError::Index { package: fetched_package(&text), cause: ToolOutput(text) };
    }
    PackagesError::Resolver { cause: ToolOutput(text) }
}

/// Returns the file that its index lists without an upload time, which `--as-of` needs.
fn undated_file(text: &str) -> Option<String> {
    let (before, _) = text.split_once(" is missing an upload date")?;
    before.split_whitespace().next_back().map(|file| file.trim_matches('`').to_owned())
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
    use crate::failure::{Exit, Failure as _};
    use crate::model::compat;

    #[test]
    fn index_error_names_package_and_setting_without_address() {
        let said = "error: Request failed after 3 retries\n  Caused by: Failed to fetch: `http://u:hunter2@127.0.0.1:9/simple/torch/`\n  \
                    Caused by: error sending request for url (http://127.0.0.1:9/simple/torch/)\n  Caused by: Connection refused (os error 111)";
        let error = explain(43, said.as_bytes(), false);
        assert_eq!(error.to_string(), "cannot reach the package index for `torch`");
        assert_eq!(error.exit(), Exit::Outside);
        assert!(error.hints()[0].contains("ENVFORGE_INDEX"), "{:?}", error.hints());
        let cause = std::error::Error::source(&error).expect("uv's words").to_string();
        assert!(
            cause.contains("Connection refused") && !cause.contains("hunter2") && !cause.contains("127.0"),
            "{cause}"
        );
    }

    #[test]
    fn package_without_wheels_gets_allow_source_hint() {
        let said = b"error: No solution found when resolving dependencies\n  cause: Because all versions of docopt have no usable \
                     wheels and you require docopt, we can conclude that your requirements are unsatisfiable.\n\nhint: Wheels are \
                     required for `docopt` because building from source is disabled for all packages (i.e., with `--no-build`)";
        let hints = explain(43, said, true).hints();
        assert!(hints[0].contains("`allow-source = [\"docopt\"]`") && hints.len() == 2, "{hints:?}");
    }

    /// The index has another project under that name: its code is not to be run.
    #[test]
    fn package_of_another_name_gets_no_hint_to_build_it() {
        let said = b"error: No solution found when resolving dependencies\n  cause: Because all versions of apex have no usable wheels \
                     and you require apex, we can conclude that your requirements are unsatisfiable.\n\nhint: Wheels are required for \
                     `apex` because building from source is disabled for all packages (i.e., with `--no-build`)";
        let hints = explain(43, said, true).with_trap(compat::embedded()).hints();
        assert!(!hints.iter().any(|hint| hint.contains("allow-source")), "{hints:?}");
        assert!(
            hints[0].starts_with("do not build `apex`: the package index has an unrelated project"),
            "{hints:?}"
        );
        assert!(hints[0].ends_with("build NVIDIA/apex from its repository"), "{hints:?}");
    }

    #[test]
    fn project_that_the_resolver_makes_is_not_named() {
        let said = b"error: No solution found when resolving dependencies\n  cause: Because only flash-attn==2.8.3 is available and \
                     flash-attn==2.8.3 has no usable wheels, all versions of flash-attn cannot be used.\n         And because \
                     envforge-image depends on flash-attn, we can conclude that your requirements are unsatisfiable.";
        let error = explain(43, said, true);
        let cause = std::error::Error::source(&error).expect("uv's words").to_string();
        assert!(cause.contains("And because you require flash-attn, we can conclude"), "{cause}");
    }

    #[test]
    fn package_of_the_first_index_gets_pin_hint() {
        let said = b"error: No solution found when resolving dependencies\n  cause: Because only x==1.0 is available and you require \
                     x>2, we can conclude that your requirements are unsatisfiable.\n\nhint: `x` was found on http://h.test/own, but \
                     not at the requested version (x>2). By default, uv will only consider the first index. If all indexes are \
                     equally trusted, use `--index-strategy unsafe-best-match` to consider all versions.";
        for with_additions in [true, false] {
            let error = explain(43, said, with_additions);
            assert!(error.hints()[0].contains("{ name = \"x\", index = \"INDEX\" }"), "{:?}", error.hints());
            let words = std::error::Error::source(&error).expect("uv's words").to_string();
            assert!(!words.contains("index-strategy") && words.contains("x==1.0"), "{words}");
        }
        assert_eq!(explain(43, b"No solution found", true).index_hint(), None);
    }

    #[test]
    fn package_newer_than_the_date_gets_no_hint_to_an_option_of_uv() {
        let said = b"error: No solution found when resolving dependencies\n  cause: Because there are no versions of x and you \
                     require x, we can conclude that your requirements are unsatisfiable.\n\nhint: `x` was filtered by \
                     `exclude-newer` to only include packages uploaded before 2026-03-02T00:00:00Z. Consider using \
                     `exclude-newer-package` to override the cutoff for this package.\nhint: y";
        let error = explain(43, said, true);
        let words = std::error::Error::source(&error).expect("uv's words").to_string();
        assert!(words.ends_with("unsatisfiable.") && !words.contains("exclude-newer"), "{words}");
        let hints = error.hints();
        let hint = hints.iter().find(|hint| hint.contains("`--as-of`")).expect("one of the date");
        assert!(hint.starts_with("releases of `x` from 2026-03-02 on are left out"), "{hints:?}");
    }

    #[test]
    fn error_names_unquoted_package() {
        let said = "error: Request failed after 3 retries in 11.3s\n  cause: Failed to fetch: http://h.test/own/own-package/\n  \
                    cause: HTTP status server error (500 No) for url (http://h.test/own/own-package/)";
        let error = explain(43, said.as_bytes(), false);
        assert_eq!(error.to_string(), "cannot reach the package index for `own-package`");
    }

    #[test]
    fn conflict_exits_1_only_with_user_additions() {
        let said = b"  x No solution found when resolving dependencies:\n  Because there is no version of torch==2.7.1+cu118";
        let error = explain(43, said, false);
        assert!(matches!(error, PackagesError::NoSolution { .. }), "{error:?}");
        assert_eq!(error.exit(), Exit::Outside);
        assert!(std::error::Error::source(&error).expect("words").to_string().contains("torch==2.7.1+cu118"));
        let error = explain(43, said, true);
        assert_eq!(error.exit(), Exit::No);
        assert!(error.hints()[0].contains("added"));
    }

    #[test]
    fn index_without_upload_times_is_reported_by_name_and_file() {
        let said = "warning: our_tool-1.0-py3-none-any.whl is missing an upload date, but user provided: 2026-03-02T00:00:00Z\n  \
                    x No solution found when resolving dependencies:\n  Because there are no versions of tool";
        let error = explain(43, said.as_bytes(), true);
        assert_eq!(
            error.to_string(),
            "package index `default` lists no upload time, which `--as-of` requires: `our_tool-1.0-py3-none-any.whl`"
        );
        let both =
            |package: &str| if package == "our-tool" { vec!["internal", "default"] } else { vec!["other"] };
        let error = explain_with(43, said.as_bytes(), true, both);
        assert!(error.to_string().starts_with("package index `internal` or `default` lists"), "{error}");
        assert_eq!(error.exit(), Exit::Outside);
        assert!(error.hints()[0].contains("[index]"), "{:?}", error.hints());
    }

    #[test]
    fn denied_access_gets_credentials_hint() {
        let error =
            explain(43, b"HTTP status client error (401 Unauthorized) for url (https://h.test/x)", false);
        assert!(matches!(error, PackagesError::IndexAccess { .. }), "{error:?}");
        assert!(error.hints()[0].contains("token"));
    }

    #[test]
    fn distinguishes_missing_network_from_failing_mirror() {
        let error =
            explain(40, b"E: Failed to fetch http://m.test/x  Temporary failure resolving 'm.test'", false);
        assert!(matches!(error, PackagesError::Mirror { no_network: true, .. }), "{error:?}");
        assert!(error.hints()[0].contains("ENVFORGE_NETWORK=host"));
        let error = explain(40, b"E: Failed to fetch http://m.test/x  500  Internal Server Error", false);
        assert!(matches!(error, PackagesError::Mirror { no_network: false, .. }), "{error:?}");
        assert!(error.hints()[0].contains("ENVFORGE_DEBIAN_MIRROR"));
    }

    #[test]
    fn expired_index_error_names_accepting_option() {
        let error =
            explain(40, b"E: Release file for http://m.test/InRelease is expired (invalid since 3d)", false);
        assert!(matches!(error, PackagesError::Expired { .. }), "{error:?}");
        assert!(error.hints()[0].contains("accept-expired"));
    }

    #[test]
    fn failures_keep_the_output_of_the_tool() {
        for (code, said) in [(41, "E: Unable to locate package tini"), (43, "error: panic"), (137, "Killed")]
        {
            let error = explain(code, said.as_bytes(), false);
            assert_eq!(error.exit(), Exit::Outside);
            let all = format!("{error} {:?}", std::error::Error::source(&error).map(ToString::to_string));
            assert!(all.contains(said), "{all}");
        }
    }

    #[test]
    fn certificate_and_proxy_are_named_before_the_index() {
        let tls = "error: Failed to fetch: `https://i.test/simple/torch/`\n  Caused by: error sending request for url\n  Caused by: \
                   invalid peer certificate: UnknownIssuer";
        let hints = explain(43, tls.as_bytes(), false).hints();
        assert!(hints[0].contains("SSL_CERT_FILE") && hints[1].contains("ENVFORGE_INDEX"), "{hints:?}");
        let proxy = "error: Failed to fetch: `https://i.test/simple/torch/`\n  Caused by: error sending request for url\n  Caused by: \
                     tunnel error: unsuccessful";
        assert!(explain(43, proxy.as_bytes(), false).hints()[0].contains("HTTPS_PROXY"), "{proxy}");
        let refused = "error: Failed to fetch: `https://i.test/simple/torch/`\n  Caused by: Connection refused (os error 111)";
        assert_eq!(explain(43, refused.as_bytes(), false).hints().len(), 1, "{refused}");
    }
}
