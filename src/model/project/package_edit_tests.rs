use super::*;
use crate::model::project::{ProjectFile, RequirementOfIndex};

const SPEC: &str = "schema = 1\nspec = \"pytorch-cuda:2.8\"  # the framework\n";

fn requirement(text: &str) -> PythonEntry {
    PythonEntry::Requirement(text.to_owned())
}

fn edit(text: &str, environment: Option<&str>) -> PackageEdit {
    PackageEdit::of(text, environment, PackageList::Python).expect("TOML")
}

/// The text with these packages added, which must be a project file again.
#[track_caller]
fn with(text: &str, environment: Option<&str>, packages: &[&str]) -> String {
    let mut edit = edit(text, environment);
    for package in packages {
        edit.add(&requirement(package));
    }
    let (after, _) = edit.finish();
    ProjectFile::parse("envforge.toml", &after).expect("a project file");
    after
}

#[track_caller]
fn without(text: &str, packages: &[&str]) -> String {
    let mut edit = edit(text, None);
    for package in packages {
        edit.remove(package).expect("it is there");
    }
    let (after, _) = edit.finish();
    ProjectFile::parse("envforge.toml", &after).expect("a project file");
    after
}

/// A file with this list, and what it must be after.
fn listed(list: &str) -> String {
    format!("{SPEC}\n[packages]  # ours\npython = {list}\n# end\napt = [\"tree\"]\n")
}

#[test]
fn packages_are_added_in_the_layout_of_the_list() {
    for (before, after) in [
        ("[]", "[\"einops>=0.8\", \"rich\"]"),
        ("[\"a\"]", "[\"a\", \"einops>=0.8\", \"rich\"]"),
        ("[\n    \"a\"\n]", "[\n    \"a\",\n    \"einops>=0.8\",\n    \"rich\",\n]"),
        ("[\n  \"a\",\n]", "[\n  \"a\",\n  \"einops>=0.8\",\n  \"rich\",\n]"),
        (
            "[\n    # why a\n    \"a\", # a\n    # last\n]",
            "[\n    # why a\n    \"a\", # a\n    # last\n    \"einops>=0.8\",\n    \"rich\",\n]",
        ),
        ("[\n    \"a\" # a\n]", "[\n    \"a\", # a\n    \"einops>=0.8\",\n    \"rich\",\n]"),
        ("[\n    # none yet\n]", "[\n    # none yet\n    \"einops>=0.8\",\n    \"rich\",\n]"),
    ] {
        assert_eq!(with(&listed(before), None, &["einops>=0.8", "rich"]), listed(after), "{before}");
    }
}

#[test]
fn package_that_is_there_is_replaced_where_it_is() {
    let before = listed("[\n    \"b\", # b\n    \"Einops >= 0.7\", # kept\n    \"c\",\n]");
    let mut edit = edit(&before, None);
    edit.add(&requirement("einops>=0.8"));
    let (after, changes) = edit.finish();
    assert_eq!(after, before.replace("Einops >= 0.7", "einops>=0.8"));
    let change = PackageChange {
        name: "einops".to_owned(),
        from: Some("Einops >= 0.7".to_owned()),
        to: Some("einops>=0.8".to_owned()),
    };
    assert_eq!(changes, [change]);
    let twice = listed("[\"x<2; python_version < '3.12'\", \"b\", \"x>=2; python_version >= '3.12'\"]");
    assert_eq!(with(&twice, None, &["x==3"]), listed("[\"x==3\", \"b\"]"));
}

#[test]
fn index_of_a_package_stays_unless_another_is_named() {
    let before = listed("[{ name = \"ourtool>=1\", index = \"internal\" }, \"b\"]");
    let after = listed("[{ name = \"ourtool>=2\", index = \"internal\" }, \"b\"]");
    assert_eq!(with(&before, None, &["ourtool>=2"]), after);
    let mut other = edit(&before, None);
    let entry = RequirementOfIndex { name: "ourtool".to_owned(), index: "other".to_owned() };
    other.add(&PythonEntry::OfIndex(entry));
    let after = listed("[{ name = \"ourtool\", index = \"other\" }, \"b\"]");
    assert_eq!(other.finish().0, after);
}

#[test]
fn missing_tables_are_made() {
    let after = format!("{SPEC}\n[packages]\npython = [\"a\"]\n");
    assert_eq!(with(SPEC, None, &["a"]), after);
    let two =
        format!("{SPEC}[environments.train]\nflavour = \"devel\"\n[environments.other]\npython = \"3.12\"\n");
    let after = format!(
        "{SPEC}[environments.train]\nflavour = \"devel\"\n\n[environments.train.packages]\npython = [\"a\"]\n\
         [environments.other]\npython = \"3.12\"\n"
    );
    assert_eq!(with(&two, Some("train"), &["a"]), after);
    for inline in ["packages = { apt = [\"tree\"] }", "packages.apt = [\"tree\"]"] {
        let file = ProjectFile::parse("f", &with(&format!("{SPEC}{inline}\n"), None, &["a"])).expect("reads");
        assert_eq!((file.default.packages.python.len(), file.default.packages.apt.len()), (1, 1), "{inline}");
    }
    let inline = format!("{SPEC}[environments]\ntrain = {{ flavour = \"devel\" }}\n");
    let file = ProjectFile::parse("f", &with(&inline, Some("train"), &["a"])).expect("reads");
    assert_eq!(file.environments["train"].packages.python.len(), 1);
}

#[test]
fn removed_package_takes_its_own_comment_alone() {
    for (before, after) in [
        ("[\"x\"]", "[]"),
        ("[\"x\", \"b\"]", "[\"b\"]"),
        ("[\"a\", \"x\"]", "[\"a\"]"),
        ("[\"a\", \"x\", \"b\"]", "[\"a\", \"b\"]"),
        ("[\n    \"x\",\n]", "[\n]"),
        ("[\n    \"a\", # a\n    \"x\", # x\n]", "[\n    \"a\", # a\n]"),
        (
            "[\n    \"a\", # a\n    # section\n    \"x\", # x\n    # about b\n    \"b\", # b\n]",
            "[\n    \"a\", # a\n    # section\n    # about b\n    \"b\", # b\n]",
        ),
        ("[\n    \"a\",\n    \"x\" # x\n]", "[\n    \"a\"\n]"),
    ] {
        assert_eq!(without(&listed(before), &["X"]), listed(after), "{before}");
    }
}

#[test]
fn package_that_is_not_listed_is_reported_with_those_that_are() {
    let text = listed("[\"einops>=0.8\"]") + "[environments.train.packages]\npython = [\"rich\"]\n";
    let missing = edit(&text, None).remove("rich").expect_err("not there");
    let known = (vec!["einops".to_owned()], vec!["train".to_owned()]);
    assert_eq!((missing.listed, missing.elsewhere), known);
    let missing = edit(&text, Some("train")).remove("einops").expect_err("not there");
    assert_eq!((missing.listed, missing.elsewhere), (vec!["rich".to_owned()], vec![String::new()]));
    assert!(edit(SPEC, None).remove("a").is_err());
}

#[test]
fn line_ends_and_apt_are_kept_apart() {
    let crlf = listed("[\n    \"a\",\n]").replace('\n', "\r\n");
    let after = listed("[\n    \"a\",\n    \"b\",\n]").replace('\n', "\r\n");
    assert_eq!(with(&crlf, None, &["b"]), after);
    let mut apt = PackageEdit::of(&listed("[\"tree\"]"), None, PackageList::Apt).expect("TOML");
    apt.add(&requirement("ffmpeg"));
    apt.remove("tree").expect("in the list of apt");
    let file = ProjectFile::parse("f", &apt.finish().0).expect("reads");
    let names: Vec<_> = file.default.packages.apt.iter().map(|name| name.as_str()).collect();
    assert_eq!((names, file.default.packages.python.len()), (vec!["ffmpeg"], 1));
}
