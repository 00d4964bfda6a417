//! What a registry asks for when it answers 401: the `WWW-Authenticate` header.

/// How a registry wants to be convinced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Challenge {
    /// A token from a token server.
    Bearer {
        /// The token server's address.
        realm: String,
        /// What the server calls the registry.
        service: Option<String>,
        /// What the token must allow.
        scope: Option<String>,
    },
    /// User and password with every request.
    Basic,
}

/// The challenge to answer among all that were sent: a token is preferred, as Docker does.
pub(super) fn challenge<'a>(headers: impl Iterator<Item = &'a str>) -> Option<Challenge> {
    let mut basic = None;
    for header in headers {
        let (scheme, rest) = header.trim().split_once(' ').unwrap_or((header.trim(), ""));
        if scheme.eq_ignore_ascii_case("bearer") {
            let mut fields = fields(rest);
            let mut take = |name: &str| {
                fields.iter().position(|field| field.0 == name).map(|at| fields.swap_remove(at).1)
            };
            if let Some(realm) = take("realm") {
                return Some(Challenge::Bearer { realm, service: take("service"), scope: take("scope") });
            }
        } else if scheme.eq_ignore_ascii_case("basic") {
            basic = Some(Challenge::Basic);
        }
    }
    basic
}

/// `name="value",…`; a value may hold commas and escaped quotes.
fn fields(text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some((name, after)) = rest.split_once('=') {
        let name = name.trim_matches([' ', ',', '\t']).to_ascii_lowercase();
        let value = if let Some(quoted) = after.trim_start().strip_prefix('"') {
            let (value, left) = quoted_value(quoted);
            rest = left;
            value
        } else {
            let (value, left) = after.split_once(',').unwrap_or((after, ""));
            rest = left;
            value.trim().to_owned()
        };
        found.push((name, value));
    }
    found
}

/// A value up to its closing quote, without its backslashes, and what follows.
fn quoted_value(text: &str) -> (String, &str) {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, char)) = chars.next() {
        match char {
            '"' => return (value, &text[at + 1..]),
            '\\' => value.extend(chars.next().map(|(_, char)| char)),
            char => value.push(char),
        }
    }
    (value, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_server_is_read_whatever_the_order_and_commas() {
        let header =
            r#"Bearer service="r.test",scope="repository:a:pull,push", realm="https://auth.test/token""#;
        let wanted = Challenge::Bearer {
            realm: "https://auth.test/token".to_owned(),
            service: Some("r.test".to_owned()),
            scope: Some("repository:a:pull,push".to_owned()),
        };
        assert_eq!(challenge([header].into_iter()), Some(wanted.clone()));
        assert_eq!(challenge([r#"Basic realm="x""#, header].into_iter()), Some(wanted));
    }

    #[test]
    fn basic_and_nonsense() {
        assert_eq!(challenge([r#"Basic realm="Registry Realm""#].into_iter()), Some(Challenge::Basic));
        for header in ["", "Bearer", "Bearer service=\"x\"", "Negotiate", "Bearer realm"] {
            assert_eq!(challenge([header].into_iter()), None, "{header}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_header_makes_the_reader_panic(text in "\\PC{0,80}") {
            let _ = challenge([text.as_str(), &format!("Bearer {text}")].into_iter());
        }
    }
}
