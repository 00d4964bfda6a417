//! Sources of apt, in both of their formats: lines of `sources.list` and stanzas of `.sources`.
//!
//! Owns the grammar. Must not know which of them may be used.

use super::deb822::stanzas;

/// One source of binary packages that is not switched off.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct AptSource {
    /// Addresses of any kind, as written.
    pub(super) uris: Vec<String>,
    /// `bookworm`, or `./` of a flat repository.
    pub(super) suites: Vec<String>,
    /// `main`; none for a flat repository.
    pub(super) components: Vec<String>,
    /// Architectures it is restricted to; empty: none.
    pub(super) architectures: Vec<String>,
    /// Keyrings by path, fingerprints, or a key itself.
    pub(super) signed_by: Option<String>,
    /// Whether its packages need no signature.
    pub(super) trusted: bool,
}

/// The sources of a file, by the format of its name.
pub(super) fn apt_sources(path: &str, text: &str) -> Vec<AptSource> {
    if path.ends_with(".sources") {
        deb822_sources(text)
    } else {
        text.lines().filter_map(one_line).collect()
    }
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

/// apt takes these for yes.
fn is_yes(text: &str) -> bool {
    ["yes", "true", "with", "on", "enable", "1"].iter().any(|yes| text.trim().eq_ignore_ascii_case(yes))
}

fn deb822_sources(text: &str) -> Vec<AptSource> {
    // Comments may be between the lines of a field.
    let text: String = text.lines().filter(|line| !line.starts_with('#')).flat_map(|l| [l, "\n"]).collect();
    let source = |stanza: super::deb822::Stanza<'_>| {
        let field = |name| words(stanza.field(name).unwrap_or_default());
        let is_on = stanza.field("Enabled").is_none_or(is_yes);
        (is_on && field("Types").iter().any(|kind| kind == "deb")).then(|| AptSource {
            uris: field("URIs"),
            suites: field("Suites"),
            components: field("Components"),
            architectures: field("Architectures"),
            signed_by: stanza.field("Signed-By").map(str::to_owned),
            trusted: stanza.field("Trusted").is_some_and(is_yes),
        })
    };
    stanzas(&text).filter_map(source).collect()
}

/// `deb [options] uri suite components…`
fn one_line(line: &str) -> Option<AptSource> {
    let rest = line.split('#').next()?.trim().strip_prefix("deb")?;
    let rest = rest.strip_prefix([' ', '\t'])?.trim_start();
    let (options, rest) = match rest.strip_prefix('[') {
        Some(options) => options.split_once(']')?,
        None => ("", rest),
    };
    let mut source = AptSource::default();
    for (name, value) in options.split_whitespace().filter_map(|option| option.split_once('=')) {
        match name {
            "arch" => source.architectures = value.split(',').map(str::to_owned).collect(),
            "signed-by" => source.signed_by = Some(value.replace(',', " ")),
            "trusted" => source.trusted = is_yes(value),
            _ => {}
        }
    }
    let mut rest = rest.split_whitespace().map(str::to_owned);
    source.uris.push(rest.next()?);
    source.suites.push(rest.next()?);
    source.components.extend(rest);
    Some(source)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_formats_say_the_same() {
        let line = "deb [arch=amd64,arm64 signed-by=/k.gpg trusted=yes] http://m.test/debian bookworm main contrib # why";
        let stanza = "Types: deb deb-src\nURIs: http://m.test/debian\nSuites: bookworm\nComponents: main\n# between\n contrib\n\
            Architectures: amd64 arm64\nSigned-By: /k.gpg\nTrusted: yes\n";
        let one = apt_sources("a.list", line);
        assert_eq!(one, apt_sources("a.sources", stanza));
        assert_eq!(one[0].components, ["main", "contrib"]);
        assert!(one[0].trusted);
    }

    #[test]
    fn what_is_off_or_no_binary_source_is_none() {
        for text in [
            "# deb http://m.test/ a b",
            "deb-src http://m.test/ a b",
            "deb",
            "deb http://m.test/",
            "debx http://m.test/ a",
        ] {
            assert_eq!(apt_sources("a.list", text), [], "{text}");
        }
        for text in [
            "Types: deb-src\nURIs: http://m.test/\nSuites: a\n",
            "Enabled: no\nTypes: deb\nURIs: http://m.test/\nSuites: a\n",
        ] {
            assert_eq!(apt_sources("a.sources", text), [], "{text}");
        }
    }
}
