//! Removes addresses from the output of other tools: they may contain credentials and private host names.

/// Replaces each address of a text by `<address>`; keeps only the last part of its path (a file or package name).
pub(super) fn without_addresses(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(found) = rest.find("://") {
        let scheme = rest[..found].bytes().rev().take_while(u8::is_ascii_alphanumeric).count();
        out.push_str(&rest[..found - scheme]);
        let after = &rest[found + 3..];
        let end = after.find(|c: char| c.is_whitespace() || "`'\"()<>[],".contains(c)).unwrap_or(after.len());
        out.push_str("<address>");
        let path =
            after[..end].split(['?', '#']).next().unwrap_or_default().trim_end_matches(['/', ':', '.']);
        // Split at `@` too: a password may hold slashes.
        if let Some((_, name)) = path.rsplit('@').next().and_then(|path| path.rsplit_once('/')) {
            out.push('/');
            out.push_str(name);
        }
        rest = &after[end..];
    }
    out.push_str(rest);
    without_hosts(&out)
}

/// pip prints a server as `host='…'`.
fn without_hosts(text: &str) -> String {
    let mut parts = text.split("host='");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        out.push_str("host='<host>'");
        out.push_str(part.split_once('\'').map_or("", |(_, rest)| rest));
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn addresses_lose_server_path_credentials_and_query() {
        let cases = [
            ("Failed to fetch: `https://u:p@h.test/simple/torch/`", "Failed to fetch: `<address>/torch`"),
            ("from http://h.test:8080/simple?token=x, then", "from <address>/simple, then"),
            ("https://h.test", "<address>"),
            ("error for url (https://u:p/q@h.test)", "error for url (<address>)"),
            ("two https://a.test/x and ftp://b.test/y.", "two <address>/x and <address>/y"),
            (
                "HTTPSConnectionPool(host='h.test', port=443): no",
                "HTTPSConnectionPool(host='<host>', port=443): no",
            ),
            ("nothing here: torch==2.8.0", "nothing here: torch==2.8.0"),
        ];
        for (text, wanted) in cases {
            assert_eq!(without_addresses(text), wanted);
        }
    }

    proptest! {
        #[test]
        fn credentials_are_removed(before in ".{0,20}", user in "[a-z]{1,8}", path in "[a-z/]{0,20}", after in "[ `)].{0,20}") {
            let text = format!("{before} https://{user}:hunter2@host.test/{path}{after}");
            prop_assert!(!without_addresses(&text).contains("hunter2"));
            prop_assert!(!without_addresses(&text).contains("host.test"));
        }
    }
}
