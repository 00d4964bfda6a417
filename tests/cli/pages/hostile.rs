//! Texts that attack a page, and every kind of page filled with one.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use envforge::model::image::device_code::{DeviceCode, LibraryCode};
use envforge::model::verdict::Verdict;
use envforge::pages::{
    ReportedImage, SizedComponent, SizedImage, Unchecked, diff_page, size_page, verify_page,
};

use super::{LARGEST, assert_page, links, report};

fn reported(report: &Verdict) -> ReportedImage<'_> {
    ReportedImage { report, proven: "failed at level full", by_key: None }
}

/// Ten attacks. Those with code set the title to HOSTILE and a variable, if a page runs them.
pub(super) fn attacks() -> Vec<(&'static str, String)> {
    let run = "document.title='HOSTILE';window.hostile=1";
    vec![
        ("script", format!("<script>{run}</script>")),
        ("address", format!("javascript:{run}")),
        ("attribute", format!("\" onmouseover=\"{run}\" autofocus onfocus=\"{run}\" x=\"")),
        ("single-quote", format!("' onerror='{run}' src='x")),
        ("end-of-style", format!("</style></script></title></textarea><script>{run}</script><style>")),
        (
            "image",
            format!(
                "<img src=x onerror=\"{run}\"><svg onload=\"{run}\"><iframe srcdoc=\"<script>{run}</script>\">"
            ),
        ),
        ("template", "{{ style|safe }}{% for a in range(100000) %}{{ a }}{% endfor %}{# x #}".to_owned()),
        ("reading-order", "safe\u{202e}lmth.exe\u{2066}\u{200b}\u{feff}\u{0}\u{1b}[31m\u{9b}".to_owned()),
        ("huge", format!("<b>{}", "&<\u{202e}\"".repeat(400_000))),
        (
            "comment-and-meta",
            format!(
                "--><!-- <![CDATA[ <meta http-equiv=refresh content=\"0;url=data:text/html,<script>{run}</script>\"><base href=//x/>"
            ),
        ),
    ]
}

/// Every kind of page that shows a text of others, with this text wherever one is shown.
pub(super) fn pages(text: &str) -> Vec<(&'static str, String)> {
    let mut verdict = report(text);
    text.clone_into(&mut verdict.image);
    verdict.digests = vec![text.to_owned()];
    verdict.gpus = vec![text.to_owned()];
    verdict.versions.insert(text.to_owned(), text.to_owned());
    text.clone_into(&mut verdict.level);
    text.clone_into(&mut verdict.checked);
    verdict.engine = Some(text.to_owned());
    verdict.lock = Some(text.to_owned());
    for check in &mut verdict.checks {
        text.clone_into(&mut check.id);
        text.clone_into(&mut check.stage);
        text.clone_into(&mut check.detail);
        check.hint = Some(text.to_owned());
        check.measured.insert(text.to_owned(), text.to_owned());
        check.expected.insert(text.to_owned(), text.to_owned());
    }
    let error = Unchecked { image: text.to_owned(), error: text.to_owned(), hints: vec![text.to_owned()] };
    let change = |from: Option<&str>, to: Option<&str>| serde_json::json!({ "part": text, "name": text, "from": from, "to": to });
    let changes = [change(Some(text), Some(text)), change(None, Some(text)), change(Some(text), None)];
    let diff = serde_json::json!({
        "schema": 1, "from": text, "to": text, "changes": changes, "layers": [1, 2, 3], "paths": [text, text],
    });
    let component = |size| SizedComponent { name: text, size, shared_with: 1 };
    let components = [component(1 << 30), component(1 << 29), component(7)];
    let image = SizedImage { name: text, size: 1 << 31, own: 7, components: &components };
    let library = |unknown: Option<&str>| LibraryCode {
        path: text.to_owned(),
        size: 9,
        code: BTreeMap::new(),
        unknown: unknown.map(str::to_owned),
    };
    let code = DeviceCode { targets: BTreeMap::new(), libraries: vec![library(None), library(Some(text))] };
    vec![
        ("verify", verify_page(&[reported(&verdict)], &[error])),
        ("diff", diff_page(&diff)),
        ("size", size_page(&image, &code)),
    ]
}

/// Writes every hostile page into a folder.
pub(super) fn write(folder: &Path) -> Vec<(String, PathBuf)> {
    let mut all = Vec::new();
    for (attack, text) in attacks() {
        for (kind, page) in pages(&text) {
            let path = folder.join(format!("{attack}-{kind}.html"));
            std::fs::write(&path, page).expect("a folder of the test's own");
            all.push((format!("{kind} page, attack `{attack}`"), path));
        }
    }
    all
}

#[test]
fn hostile_texts_stay_texts() {
    for (attack, text) in attacks() {
        for (kind, page) in pages(&text) {
            assert!(page.len() <= LARGEST, "{attack} in {kind}: {} bytes", page.len());
            assert!(links(&page).is_empty(), "{attack} in {kind}");
            assert!(
                !page.contains(['\u{202e}', '\u{2066}', '\u{200b}', '\u{0}', '\u{1b}']),
                "{attack} in {kind}"
            );
            // `javascript:` and `src=` as text are harmless: they are in no attribute.
            if !["address", "single-quote", "image", "comment-and-meta"].contains(&attack) {
                assert_page(&page);
            }
            assert_eq!(page.matches("<script").count(), 1, "{attack} in {kind}");
        }
    }
}

#[test]
fn huge_report_is_shortened_and_says_so() {
    let mut verdict = report("x");
    let one = verdict.checks[0].clone();
    verdict.checks = (0..20_000)
        .map(|number| envforge::model::verdict::Check { id: format!("check-{number}"), ..one.clone() })
        .collect();
    let page = verify_page(&[reported(&verdict)], &[]);
    assert_page(&page);
    assert!(page.contains("Shortened to keep this page below 500 kB"), "it says so");
    assert!(page.contains("check-100<") && !page.contains("check-19999<"), "the first rows stay");
    assert!(
        !verify_page(&[reported(&report("x"))], &[]).contains("Shortened"),
        "the twin: an ordinary report is whole"
    );
}
