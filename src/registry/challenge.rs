//! The `WWW-Authenticate` header of a 401 response.

/// Authentication that a registry requires.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Challenge {
    /// A token from a token server.
    Bearer(TokenRequest),
    /// User and password with every request.
    Basic,
}

/// Parameters of a token request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TokenRequest {
    /// The token server's address.
    pub(super) realm: String,
    /// The registry's name on the token server.
    pub(super) service: Option<String>,
    /// The required rights.
    pub(super) scope: Option<String>,
}

/// Selects one of the challenges: a token is preferred, as in Docker.
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
                let (service, scope) = (take("service"), take("scope"));
                return Some(Challenge::Bearer(TokenRequest { realm, service, scope }));
            }
        } else if scheme.eq_ignore_ascii_case("basic") {
            basic = Some(Challenge::Basic);
        }
    }
    basic
}

/// Parses `name="value",…`; a value may contain commas and escaped quotes.
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

/// Returns a value up to its closing quote, unescaped, and the rest.
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
    fn bearer_challenge_is_parsed_regardless_of_order() {
        let header =
            r#"Bearer service="r.test",scope="repository:a:pull,push", realm="https://auth.test/token""#;
        let wanted = Challenge::Bearer(TokenRequest {
            realm: "https://auth.test/token".to_owned(),
            service: Some("r.test".to_owned()),
            scope: Some("repository:a:pull,push".to_owned()),
        });
        assert_eq!(challenge([header].into_iter()), Some(wanted.clone()));
        assert_eq!(challenge([r#"Basic realm="x""#, header].into_iter()), Some(wanted));
    }

    #[test]
    fn basic_challenge_is_parsed_and_invalid_ones_ignored() {
        assert_eq!(challenge([r#"Basic realm="Registry Realm""#].into_iter()), Some(Challenge::Basic));
        for header in ["", "Bearer", "Bearer service=\"x\"", "Negotiate", "Bearer realm"] {
            assert_eq!(challenge([header].into_iter()), None, "{header}");
        }
    }

    proptest::proptest! {
        #[test]
        fn parser_never_panics_on_headers(text in "\\PC{0,80}") {
            let _ = challenge([text.as_str(), &format!("Bearer {text}")].into_iter());
        }
    }
}
