//! `shell --jupyter` as a user sees it: in a browser.

use crate::browser::{Browser, SHIFT_ENTER};
use crate::engine::docker;
use crate::scene::{TAG, wait_until};
use crate::shell::Shells;

/// Asks JupyterLab once for a notebook. On a busy machine it may not load its theme in time: a dialog says so, over all else.
const OPENS_A_NOTEBOOK: &str = "
    document.querySelectorAll('.jp-Dialog .jp-mod-accept').forEach(button => button.click());
    const card = document.querySelector(\".jp-LauncherCard[data-category='Notebook']\");
    if (card && !window.asked) {
        window.asked = true;
        card.click();
    }
    return document.querySelector('.jp-NotebookPanel') !== null;";

/// Opens JupyterLab of an image in a browser, which is refused without the token, runs a cell in a new notebook, and
/// asserts what it answers. A picture of the page goes to target/ci.
#[track_caller]
pub(crate) fn assert_a_notebook_answers(
    shells: &Shells,
    image: &str,
    (code, answer): (&str, &str),
    picture: &str,
) {
    let args = ["shell", image, "--jupyter", "--detach", "--name", "browsed", "--json"];
    let told: serde_json::Value = serde_json::from_str(&shells.succeed(&args)).expect("JSON");
    let url = told["jupyter"].as_str().expect("an address");
    let (lab, token) = url.split_once("?token=").expect("a token");

    let browser = Browser::start();
    let wrong = "0".repeat(token.len());
    for refused in [lab.to_owned(), format!("{lab}?token={wrong}")] {
        browser.open(&refused);
        assert!(browser.shown("#login_form, form").contains("token"), "{}", browser.address());
        assert!(browser.address().contains("/login?next="), "{}", browser.address());
    }
    browser.type_in("#password_input", &format!("{wrong}\n"));
    assert_eq!(browser.shown(".message.error"), "Invalid credentials");

    browser.open(url);
    browser.shown(".jp-LauncherCard[data-category='Notebook']");
    wait_until("a notebook is open", || browser.execute(OPENS_A_NOTEBOOK).as_bool() == Some(true));
    // Before, JupyterLab runs nothing and does not say so.
    browser.wait_for("#jp-main-statusbar", "| Idle");
    browser.type_in(".jp-Notebook .jp-CodeCell .cm-content", &format!("{code}{SHIFT_ENTER}"));
    let shown = browser.shown(".jp-OutputArea-output pre");
    browser.screenshot(picture);
    assert_eq!(shown, answer);

    browser.click(".jp-NotebookPanel-toolbar [data-jp-item-name='save'] jp-button");
    // The first time it asks for a name.
    browser.click(".jp-Dialog .jp-mod-accept");
    let file = shells.project().join("Untitled.ipynb");
    let saved = || std::fs::read_to_string(&file).unwrap_or_default();
    wait_until("the notebook is in the project's folder", || saved().contains(answer));

    let container = "envforge-browsed";
    let inside = shells.succeed(&[
        "shell",
        image,
        "--",
        "sh",
        "-c",
        "env; cat /proc/*/environ /proc/*/cmdline | tr '\\0' '\\n'; grep -rhs \"$(cat /tmp/.envforge/token)\" ~ /workspace || true",
    ]);
    let logs = shells.run(&["logs", "browsed"]);
    assert!(logs.stderr.contains("/lab") || logs.stdout.contains("/lab"), "{logs:?}");
    let known = [
        inside,
        docker(&["inspect", container, image]),
        docker(&["logs", container]),
        logs.stdout,
        logs.stderr,
    ];
    assert!(known.iter().all(|text| !text.contains(token)), "the token is told somewhere");
    shells.succeed(&["stop", "browsed", "--time", "2"]);
}

#[test]
#[ignore = "needs docker"]
fn notebook_in_a_browser_imports_the_framework() {
    let shells = Shells::new();
    let cell = ("import torch; torch.__version__, 6 * 7", "('2.7.1+cu118', 42)");
    assert_a_notebook_answers(&shells, TAG, cell, "jupyter-small.png");
}
