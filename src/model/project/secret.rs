//! Detection of credentials, which would be stored in the image history, its variables and the lock file.

/// Token prefixes that services publish for secret scanning.
const TOKENS: [(&str, usize); 14] = [
    ("ghp_", 20),
    ("gho_", 20),
    ("ghs_", 20),
    ("github_pat_", 20),
    ("glpat-", 16),
    ("hf_", 20),
    ("pypi-", 40),
    ("xoxb-", 16),
    ("xoxp-", 16),
    ("AKIA", 16),
    ("sk-", 20),
    ("dop_v1_", 20),
    ("npm_", 30),
    ("-----BEGIN", 0),
];
/// Names that precede a secret's value.
const NAMES: [&str; 8] =
    ["token", "password", "passwd", "secret", "api_key", "apikey", "access_key", "private_key"];

/// Describes a credential in a text without repeating it; `None` if there is none.
pub(crate) fn secret_in(text: &str) -> Option<&'static str> {
    if has_address_with_password(text) {
        return Some("a URL with a password");
    }
    if TOKENS.iter().any(|(start, length)| has_token(text, start, *length)) {
        return Some("a token");
    }
    text.split([' ', '\t', '\n', ';', '&', '|'])
        .any(|word| is_assignment(word.trim_start_matches(['"', '\''])))
        .then_some("a secret value")
        .or_else(|| has_bearer(text).then_some("an authorization header"))
}

/// Describes a credential in a file. Code may contain token prefixes, so a token must look like a real one; credential
/// files are checked like commands.
pub(crate) fn credential_in_file(name: Option<&str>, text: &str) -> Option<&'static str> {
    let name = name.unwrap_or_default();
    if text.contains("-----BEGIN") && text.contains("PRIVATE KEY-----") {
        return Some("a private key");
    }
    if TOKENS.iter().any(|(start, length)| *length > 0 && has_real_token(text, start, *length)) {
        return Some("a token");
    }
    let is_of_credentials =
        name == ".env" || name.starts_with(".env.") || [".pypirc", ".git-credentials"].contains(&name);
    if is_of_credentials {
        return secret_in(text);
    }
    (name == ".netrc" && text.split_whitespace().any(|word| word == "password")).then_some("a password")
}

/// Whether a text has a token with a random body: letters and digits in one run.
fn has_real_token(text: &str, start: &str, length: usize) -> bool {
    let random = |run: &str| {
        run.len() >= length.min(16)
            && run.contains(|c: char| c.is_ascii_digit())
            && run.contains(char::is_alphabetic)
    };
    token_bodies(text, start).any(|body| body.len() >= length && body.split(['-', '_']).any(random))
}

/// Whether a variable of that name and value would contain a credential.
pub(super) fn is_secret_variable(name: &str, value: &str) -> bool {
    secret_in(value).is_some() || is_assignment(&format!("{name}={value}"))
}

fn has_address_with_password(text: &str) -> bool {
    text.match_indices("://").any(|(at, _)| {
        let rest = &text[at + 3..];
        let host = rest.split(['/', ' ', '"', '\'', '?', '#']).next().unwrap_or(rest);
        let user = host.rsplit_once('@').map(|(user, _)| user);
        user.is_some_and(|user| !user.contains('$') && user != "git")
    })
}

fn has_token(text: &str, start: &str, length: usize) -> bool {
    token_bodies(text, start).any(|body| body.len() >= length)
}

/// Returns the text after each occurrence of a token prefix at the start of a word.
fn token_bodies<'text>(text: &'text str, start: &str) -> impl Iterator<Item = &'text str> {
    text.match_indices(start).filter_map(|(at, found)| {
        let before = text[..at].chars().next_back();
        let rest = &text[at + found.len()..];
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || "-_".contains(c))).unwrap_or(rest.len());
        before.is_none_or(|c| !c.is_ascii_alphanumeric()).then_some(&rest[..end])
    })
}

/// Whether a word assigns a credential: `HF_TOKEN=abc` or `--password=abc`, but not `TOKEN=$(cat file)`, `TOKEN=` or `tokenizer=x`.
fn is_assignment(word: &str) -> bool {
    let Some((name, value)) = word.split_once('=') else { return false };
    let name = name.to_ascii_lowercase().replace('-', "_");
    let named = NAMES.iter().any(|secret| name == *secret || name.ends_with(&format!("_{secret}")));
    let value = value.trim_matches(['"', '\'']);
    named && value.len() >= 4 && !value.contains(['$', '`']) && !value.starts_with('/')
}

fn has_bearer(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    ["bearer ", "basic "].iter().any(|word| {
        lower.match_indices(word).any(|(at, _)| {
            let before = lower[..at].trim_end().ends_with("authorization:");
            let value = text[at + word.len()..].trim_start();
            before && !value.is_empty() && !value.starts_with(['$', '`', '"', '\''])
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_detected_in_their_usual_places() {
        for bad in [
            "pip install --index-url https://user:hunter2@host/simple x",
            "git clone https://abcdef123@host/x.git",
            "HF_TOKEN=abcdefgh huggingface-cli download x",
            "curl --password=hunter2 x",
            "export API_KEY='abcd1234'",
            "curl -H 'Authorization: Bearer abc' https://host",
            "echo ghp_abcdefghijklmnopqrstuvwxyz0123456789",
            "echo '-----BEGIN OPENSSH PRIVATE KEY-----'",
        ] {
            assert!(secret_in(bad).is_some(), "{bad}");
        }
        assert!(is_secret_variable("WANDB_API_KEY", "0123456789abcdef"));
    }

    #[test]
    fn ordinary_commands_are_accepted() {
        for good in [
            "git clone git@host:x.git",
            "git clone ssh://git@host/x.git",
            "HF_TOKEN=$(cat /run/secrets/hf) python download.py",
            "curl -H \"Authorization: Bearer $(cat /run/secrets/hf)\" https://host",
            "pip install tokenizers==0.20",
            "python -m spacy download en_core_web_sm",
            "TOKENIZERS_PARALLELISM=false python x.py",
            "echo https://host/a@b",
        ] {
            assert_eq!(secret_in(good), None, "{good}");
        }
        assert!(!is_secret_variable("TOKENIZERS_PARALLELISM", "false"));
        assert!(!is_secret_variable("HF_TOKEN_PATH", "/run/secrets/hf"));
        assert!(!is_secret_variable("HF_TOKEN", ""));
    }
}
