//! Pages of checks, known errors, exit codes and the contents of images, each from the one list that the program uses.

use std::collections::BTreeMap;

use envforge_protocol::status::groups;
use envforge_protocol::{CheckId, Level, Scope, SkipReason, Stage};

use crate::failure::{Exit, SHELL_FAILURE};
use crate::model::diagnosis::{Diagnosis, entries};
use crate::model::markdown::{MarkdownPage, code, sentence};
use crate::packages::catalogue;
use crate::store::caches::{CACHES, Cache};

pub(super) fn checks() -> String {
    let mut page = MarkdownPage::new("Checks");
    page.paragraph(
        "The program `/opt/envforge/agent` in each image runs the checks. `build` runs the static ones; `verify` runs the \
         level that `--level` names, and each level includes those before it. [Verify images](../how-to/verify.md) \
         explains verdicts and tags.",
    );
    for (stage, title) in [
        (Stage::Static, "Static checks"),
        (Stage::Gpu, "Checks on a GPU"),
        (Stage::Perf, "Measurements of speed"),
    ] {
        page.heading(2, title);
        for check in CheckId::ALL.iter().filter(|check| check.stage() == stage) {
            page.heading(3, check.as_str());
            page.paragraph(&sentence(check.proves()));
            let mut facts = vec![format!("Level: {}.", code(check.level().as_str()))];
            if stage != Stage::Perf {
                facts.push(format!("Required for the tags of {}.", check.requirement().described()));
            }
            if check.scope() == Scope::Own {
                facts.push("Skipped in images that envforge did not build.".to_owned());
            }
            if !check.bound().is_empty() {
                facts.push(format!("Bound on the error: {}.", check.bound()));
            }
            page.list(facts);
        }
    }
    page.heading(2, "Levels");
    page.list(Level::ALL.iter().map(|level| {
        let count = CheckId::ALL.iter().filter(|check| check.level() <= *level).count();
        format!("{}: {count} checks", code(level.as_str()))
    }));
    page.heading(2, "Reasons to skip");
    page.paragraph("A skipped check names its reason. Only some reasons allow a tag without `-unverified`.");
    page.table(
        &["reason", "allows a tag"],
        SkipReason::ALL.iter().map(|reason| {
            vec![code(reason.as_str()), if reason.is_allowed_for_tag() { "yes" } else { "no" }.to_owned()]
        }),
    );
    page.finish()
}

/// The statuses of libraries that lead to one error.
type Statuses = BTreeMap<&'static str, Vec<String>>;

pub(super) fn errors() -> String {
    let mut page = MarkdownPage::new("Errors");
    page.paragraph(
        "Each known error of containers, drivers, CUDA libraries and packages has an id. `envforge doctor --explain TEXT` finds it \
         in a text and prints the same, with versions, names and GPUs of the text in its commands. In the texts below `*` and a name in braces are any word, \
         `…` is other text of the same message. [Error messages](../errors.md) leads from envforge's own messages to their pages.",
    );
    let mut statuses = Statuses::new();
    for group in groups().filter(|group| !group.id.is_empty()) {
        let named = group.statuses.iter().map(|status| format!("`{}` ({})", status.name, status.code));
        statuses.entry(group.id).or_default().extend(named);
    }
    let mut all: BTreeMap<&str, (String, String, Vec<String>)> = BTreeMap::new();
    for group in groups().filter(|group| !group.what.is_empty() && !group.id.is_empty()) {
        all.insert(group.id, (group.what.to_owned(), group.why.to_owned(), vec![group.fix.to_owned()]));
    }
    let mut more: BTreeMap<&str, (Vec<String>, &str)> = BTreeMap::new();
    for entry in entries() {
        let known = Diagnosis::from(entry);
        all.insert(entry.id, (known.what, known.why, entry.fixes()));
        let plain = |part: &&str| part.trim_matches(['^', '$', '~']).replace("#}", "}").replace('`', "'");
        let texts =
            entry.texts.iter().map(|parts| code(&parts.iter().map(plain).collect::<Vec<_>>().join(" … ")));
        more.entry(entry.id).or_insert((Vec::new(), entry.source)).0.extend(texts);
    }
    for (id, (what, why, fixes)) in all {
        page.heading(2, id);
        page.paragraph(&sentence(&what));
        let mut facts = vec![format!("Cause: {}", sentence(&why))];
        facts.extend(fixes.iter().enumerate().map(|(at, fix)| match at {
            0 => format!("Fix: {}", sentence(fix)),
            _ => format!("If that was tried: {}", sentence(fix)),
        }));
        if let Some((texts, source)) = more.get(id) {
            facts.push(format!("Texts: {}", texts.join(", ")));
            facts.push(format!("Seen in: {}", linked(source)));
        }
        if let Some(codes) = statuses.get(id) {
            facts.push(format!("Status codes: {}", codes.join(", ")));
        }
        page.list(facts);
    }
    page.finish()
}

/// Returns a source with a link for each `OWNER/NAME#1`, and for each `#2` after one.
fn linked(source: &str) -> String {
    let mut repository = "";
    let link = |word| -> String {
        let name = str::trim_end_matches(word, [',', ';']);
        let Some((owner, number)) = name.split_once('#').filter(|(_, number)| number.parse::<u32>().is_ok())
        else {
            return word.to_owned();
        };
        if !owner.is_empty() {
            repository = owner;
        }
        let address = format!("https://github.com/{repository}/issues/{number}");
        format!("[{name}]({address}){}", &word[name.len()..])
    };
    source.split(' ').map(link).collect::<Vec<_>>().join(" ")
}

pub(super) fn exit_codes() -> String {
    let mut page = MarkdownPage::new("Exit codes");
    page.table(
        &["code", "meaning", "cases"],
        Exit::ALL.map(|exit| {
            vec![(exit as u8).to_string(), exit.meaning().to_owned(), exit.examples().to_owned()]
        }),
    );
    page.paragraph(&format!(
        "`envforge shell` ends with the exit code of the program in the container, and with {SHELL_FAILURE} where \
         envforge itself failed.",
    ));
    page.finish()
}

pub(super) fn caches() -> String {
    let mut page = MarkdownPage::new("Caches");
    page.paragraph(
        "Values that last from one run to another, and why one project cannot fill them for another: a key holds everything that \
         could change the value. `layers/...` are records below `records/ID` of the cache directory, each with a seal; ID is that of the key \
         of the state directory. CACHE and STATE are the directories of [settings](settings.md).",
    );
    let row = |cache: &Cache| {
        [code(cache.place), cache.value.to_owned(), cache.key.to_owned(), cache.guard.to_owned()].into()
    };
    page.table(&["place", "value", "key", "guard"], CACHES.iter().map(row));
    page.finish()
}

pub(super) fn image_contents() -> String {
    let mut page = MarkdownPage::new("Packages of every image");
    page.paragraph(
        "These packages are in each image in addition to the framework and its dependencies. \
         [Contents of an image](../explanation/image.md) describes the rest.",
    );
    let [system, wheels] = catalogue().entries();
    for (title, packages) in [("Distribution packages", system), ("Python packages", wheels)] {
        page.heading(2, title);
        page.table(
            &["package", "reason"],
            packages.into_iter().map(|(package, reason)| vec![code(package), reason.to_owned()]),
        );
    }
    page.finish()
}
