//! One page: a template of `templates/pages/` with the values of a report, inside the layout that all share.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, UndefinedBehavior, Value, context};
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use super::bounds::{BOUNDS, LARGEST};
use super::escape::write_value;

const STYLE: &str = include_str!("../../templates/pages/style.css");
const SCRIPT: &str = include_str!("../../templates/pages/script.js");

/// Templates by name.
const TEMPLATES: [(&str, &str); 9] = [
    ("layout.html.j2", include_str!("../../templates/pages/layout.html.j2")),
    ("verify.html.j2", include_str!("../../templates/pages/verify.html.j2")),
    ("fleet.html.j2", include_str!("../../templates/pages/fleet.html.j2")),
    ("size.html.j2", include_str!("../../templates/pages/size.html.j2")),
    ("treemap.html.j2", include_str!("../../templates/pages/treemap.html.j2")),
    ("diff.html.j2", include_str!("../../templates/pages/diff.html.j2")),
    ("evidence.html.j2", include_str!("../../templates/pages/evidence.html.j2")),
    ("site.html.j2", include_str!("../../templates/pages/site.html.j2")),
    ("gpu.html.j2", include_str!("../../templates/pages/gpu.html.j2")),
];

/// The most characters of a title.
const TITLE: usize = 200;

/// A page to write.
pub(crate) struct Document<'a> {
    /// Its template.
    pub(crate) template: &'static str,
    /// The title of its window.
    pub(crate) title: &'a str,
    /// The command whose `--json` prints the same.
    pub(crate) source: &'a str,
}

impl Document<'_> {
    /// Returns the page with these values: the same bytes for the same report.
    pub(crate) fn write(&self, report: &impl Serialize) -> String {
        let report = serde_json::to_value(report).expect("a report serialises: it holds text keys only");
        let mut page = String::new();
        for bounds in BOUNDS {
            let mut report = report.clone();
            let shortened = bounds.shorten(&mut report);
            page = self.rendered(&report, shortened);
            if page.len() <= LARGEST {
                break;
            }
        }
        page
    }

    fn rendered(&self, report: &serde_json::Value, shortened: bool) -> String {
        let environment = environment();
        let template = environment.get_template(self.template).expect("the template is part of the program");
        let shared = context! {
            title => self.title.chars().take(TITLE).collect::<String>(),
            source => self.source,
            shortened,
            envforge => env!("CARGO_PKG_VERSION"),
            style => STYLE,
            script => SCRIPT,
            style_hash => hash(STYLE),
            script_hash => hash(SCRIPT),
        };
        let values = context! { ..Value::from(Serde(report)), ..shared };
        template.render(values).expect("the template is part of the program and tested")
    }
}

fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    environment.set_formatter(write_value);
    let syntax = SyntaxConfig::builder().trim_blocks(true).build().expect("the usual delimiters");
    environment.set_syntax(syntax);
    for (name, text) in TEMPLATES {
        environment.add_template(name, text).expect("the template is part of the program and tested");
    }
    environment
}

/// Returns a text's hash as content security policies write it.
fn hash(text: &str) -> String {
    format!("sha256-{}", STANDARD.encode(Sha256::digest(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_value_is_an_error_and_templates_are_not_nested() {
        let environment = environment();
        let error = environment.render_str("{{ missing }}", context! {}).expect_err("strict");
        assert_eq!(error.kind(), minijinja::ErrorKind::UndefinedError);
        let page =
            environment.render_str("{{ text }}", context! { text => "{{ 7 * 7 }}<b>" }).expect("a page");
        assert_eq!(page, "{{ 7 * 7 }}&lt;b&gt;");
    }

    #[test]
    fn hash_is_that_of_content_security_policies() {
        // The example of the specification (CSP level 2).
        let text = "alert('Hello, world.');";
        assert_eq!(hash(text), "sha256-qznLcsROx4GACP2dm0UCKCzCG+HiZ1guq6ZZDob/Tng=");
    }
}
