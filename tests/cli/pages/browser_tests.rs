//! The pages in Debian's Chromium.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::Value;

use super::{hostile, keep, offline, read, report};
use crate::browser::Browser;
use crate::program::Program;
use crate::{envforge, program};

/// What a page tells of itself: title, whether hostile code ran, and elements that none of our pages has.
const STATE: &str = "const odd = [...document.querySelectorAll('*')].filter((it) =>
    ['IMG', 'IFRAME', 'OBJECT', 'EMBED', 'BASE', 'FORM', 'A'].includes(it.tagName)
    || [...it.attributes].some((one) => one.name.startsWith('on') || one.value.toLowerCase().startsWith('javascript:')));
  for (const it of document.querySelectorAll('*')) {
    for (const kind of ['mouseover', 'focus', 'click', 'load', 'error']) it.dispatchEvent(new Event(kind));
  }
  return { title: document.title, ran: window.hostile === 1, odd: odd.length, rows: document.querySelectorAll('tbody tr').length,
           scripts: document.scripts.length, text: document.body.textContent.length };";

#[test]
#[ignore = "needs chromium"]
fn browser_runs_nothing_of_a_report() {
    let folder = tempfile::tempdir().expect("a folder");
    let pages = hostile::write(folder.path());
    assert_eq!(pages.len(), 30);
    let browser = Browser::start();
    for (name, path) in &pages {
        browser.open_file(path);
        let state = browser.execute(STATE);
        assert_eq!(state["ran"], false, "{name}: {state}");
        assert_ne!(state["title"], "HOSTILE", "{name}: {state}");
        assert_eq!((&state["odd"], &state["scripts"]), (&0.into(), &1.into()), "{name}: {state}");
        assert!(state["text"].as_u64().is_some_and(|count| count > 100), "{name}: {state}");
        assert_eq!(browser.console(), Vec::<String>::new(), "{name}");
    }
    // The twin: the same attack in a page that does not escape runs; with our policy it is refused and the console says so.
    let (_, attack) = &hostile::attacks()[0];
    let page = read(&pages[0].1);
    let escaped = "&lt;script&gt;document.title=&#39;HOSTILE&#39;;window.hostile=1&lt;/script&gt;";
    assert!(page.contains(escaped));
    let unescaped = page.replacen(escaped, attack, 20);
    let open = |name: &str, page: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, page).expect("ours");
        browser.open_file(&path);
        (browser.execute(STATE)["ran"].clone(), browser.console())
    };
    let (ran, console) = open("closed.html", &unescaped);
    assert_eq!(ran, false, "the policy stops it");
    assert!(console.iter().any(|line| line.contains("Content Security Policy")), "{console:?}");
    let (ran, _) = open("open.html", &unescaped.replace("Content-Security-Policy", "x"));
    assert_eq!(ran, true, "without escaping and policy it runs");
}

/// Types into the fields of the filter; gives the rows that are shown and the milliseconds to the new layout.
fn filtered(browser: &Browser, gpu: &str, driver: &str, words: &str) -> (u64, f64, String) {
    let script = format!(
        "const tools = document.querySelector('[data-filters]');
         const set = (name, value) => {{ const it = tools.querySelector('[name=' + name + ']'); if (it) it.value = value; }};
         set('gpu', {gpu}); set('driver', {driver}); set('words', {words});
         document.body.offsetHeight;
         const before = performance.now();
         tools.querySelector('[name=words]').dispatchEvent(new Event('input', {{ bubbles: true }}));
         document.body.offsetHeight;
         const took = performance.now() - before;
         const rows = [...document.querySelectorAll('table tbody tr')].filter((row) => row.offsetParent !== null);
         return {{ rows: rows.length, took, says: tools.querySelector('output').textContent }};",
        gpu = Value::from(gpu),
        driver = Value::from(driver),
        words = Value::from(words),
    );
    let answer = browser.execute(&script);
    let rows = answer["rows"].as_u64().expect("a count");
    (rows, answer["took"].as_f64().expect("a time"), answer["says"].as_str().expect("a text").to_owned())
}

#[test]
#[ignore = "needs chromium"]
#[expect(clippy::print_stdout, reason = "the figure of the run")]
fn filter_of_the_site_agrees_with_the_resolver() {
    let program = program();
    assert_eq!(crate::maintain(&program, &["site", "public"]).code, 0);
    let browser = Browser::start();
    browser.open_file(&program.path("public/index.html"));
    let (all, ..) = filtered(&browser, "", "", "");
    let mut slowest: f64 = 0.0;
    for (gpu, capability, driver) in [
        ("Tesla V100-SXM2-32GB", "7.0", "535.104.05"),
        ("sm_61", "6.1", "450.80.02"),
        ("NVIDIA H200", "9.0", "570.124.06"),
        ("5090", "12.0", "570.26"),
        ("4090", "8.9", ""),
    ] {
        let mut expected = 0;
        for platform in ["linux/amd64", "linux/arm64"] {
            let mut args = vec!["list", "--all", "--json", "--platform", platform, "--gpu", capability];
            if !driver.is_empty() {
                args.extend(["--driver", driver]);
            }
            let run = envforge(&args);
            assert_eq!(run.code, 0, "{}", run.stderr);
            let list: Value = serde_json::from_str(&run.stdout).expect("JSON");
            let entries = list["entries"].as_array().expect("a list");
            let runs = |entry: &&Value| entry["why_not"].as_array().is_some_and(Vec::is_empty);
            expected += entries.iter().filter(runs).count() as u64;
        }
        filtered(&browser, "", "", "");
        let (rows, took, says) = filtered(&browser, gpu, driver, "");
        assert_eq!(rows, expected, "{gpu} with {driver}: {says}");
        assert!(rows > 0 && rows < all, "{gpu} with {driver}: {rows} of {all}");
        slowest = slowest.max(took);
        let (fewer, took, says) = filtered(&browser, gpu, driver, "pytorch cu12");
        assert!(fewer < rows, "{says}");
        slowest = slowest.max(took);
    }
    let (rows, _, says) = filtered(&browser, "RTX", "", "");
    assert!(rows == all && says.contains("GPU models match"), "an ambiguous name filters nothing: {says}");
    let (rows, _, says) = filtered(&browser, "", "new", "");
    assert!(rows == all && says.contains("a driver is a number"), "{says}");
    assert_eq!(browser.console(), Vec::<String>::new());
    // A figure to read, not a bound: beside other work a browser takes ten times as long.
    println!("slowest filter of {all} rows: {slowest:.1} ms");
}

/// A machine with `report.html`.
fn with_report() -> Program {
    let (program, image) = (offline(), "registry.example.com/team/torch:2.8");
    keep(&program, &report(image));
    program.run(&["verify", image, "--last", "--html", "report.html"]);
    program
}

/// Every row is shown without the script: its fields are hidden, the rows are not.
#[test]
#[ignore = "needs chromium"]
fn pages_read_without_script() {
    let program = with_report();
    let page = read(program.path("report.html"));
    let start = page.find("<script>").expect("a script");
    let end = page.find("</script>").expect("its end");
    std::fs::write(program.path("plain.html"), page[..start].to_owned() + &page[end..]).expect("ours");
    let browser = Browser::start();
    let shown = "return [[...document.querySelectorAll('tbody tr')].filter((row) => row.offsetParent !== null).length,
                         document.querySelector('.tools').offsetParent !== null]";
    browser.open_file(&program.path("plain.html"));
    let plain = browser.execute(shown);
    browser.open_file(&program.path("report.html"));
    let scripted = browser.execute(shown);
    assert_eq!((&plain[0], &plain[1]), (&scripted[0], &Value::from(false)));
    assert_eq!(scripted[1], true);
    assert!(plain[0].as_u64().is_some_and(|rows| rows > 8), "{plain}");
}

/// The words of a page that lie on two lines, and by how much the page is wider than its window. Hashes and paths may be broken, after
/// `-`, `/` and `,` anything.
const BROKEN: &str = "const broken = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode;
    if (!node.parentElement.offsetParent || node.parentElement.closest('svg, script, option, h1, .long code')) continue;
    for (const word of node.data.matchAll(/[^\\s\\/,-]+/g)) {
      if (word[0].length > 24) continue;
      const range = document.createRange();
      range.setStart(node, word.index);
      range.setEnd(node, word.index + word[0].length);
      const tops = new Set([...range.getClientRects()].map((it) => Math.round(it.top)));
      if (tops.size > 1) broken.push(word[0]);
    }
  }
  return { broken: broken.slice(0, 20), wider: document.documentElement.scrollWidth - window.innerWidth, width: window.innerWidth };";

#[test]
#[ignore = "needs chromium"]
fn no_page_breaks_a_word_or_is_wider_than_its_window() {
    let program = with_report();
    assert_eq!(crate::maintain(&program, &["site", "public"]).code, 0);
    let (nodes, evidence) = (crate::fleet::example_page(), crate::evidence::example_page());
    let mut pages = super::example_pages(&program.path("")).to_vec();
    pages.extend(
        ["report.html", "public/index.html", "public/nvidia-h200.html"].map(|name| program.path(name)),
    );
    pages.extend([nodes.path("nodes.html"), evidence.path("evidence.html")]);
    let browser = Browser::start();
    let mut wrong = String::new();
    for page in &pages {
        for width in [360, 1280] {
            browser.resize(width, 900);
            browser.open_file(page);
            let found = browser.execute(BROKEN);
            assert_eq!(found["width"], width, "{found}");
            if found["broken"].as_array().is_none_or(|words| !words.is_empty())
                || found["wider"].as_i64() > Some(0)
            {
                let _ = writeln!(wrong, "{} at {width}: {found}", page.display());
            }
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

const IMAGES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/src/images");

/// The pictures of the book.
const PICTURES: [&str; 3] = ["page-verify.png", "page-size.png", "page-diff.png"];

#[test]
#[ignore = "by hand: rewrites the pictures of the book"]
fn pictures_of_the_book() {
    let program = with_report();
    let examples = super::example_pages(&program.path(""));
    let browser = Browser::start();
    browser.resize(1000, 700);
    let take =
        |name: &str| std::fs::write(Path::new(IMAGES).join(name), browser.picture()).expect("the book");
    std::fs::create_dir_all(IMAGES).expect("the book");
    browser.open_file(&program.path("report.html"));
    take(PICTURES[0]);
    for (name, path) in PICTURES[1..].iter().zip(examples) {
        browser.open_file(&path);
        take(name);
    }
}

#[test]
fn book_has_its_pictures() {
    let guide = read(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/src/how-to/pages.md"));
    for name in PICTURES {
        let bytes = std::fs::read(Path::new(IMAGES).join(name)).expect(name);
        assert!(bytes.starts_with(b"\x89PNG\r\n"), "{name}");
        assert!((5_000..=100_000).contains(&bytes.len()), "{name}: {} bytes", bytes.len());
        assert!(guide.contains(&format!("(../images/{name})")), "the guide shows {name}");
    }
}
