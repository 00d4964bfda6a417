//! A misspelt package ends `lock` and `build` before an engine or a base is needed; who is asked, and who is not.

use envforge::model::lock::{Lock, UserAdditions};

use crate::index::{Fault, Index};
use crate::program::{Program, Run};
use crate::vendor::locked;
use crate::verify::{SPEC, lock};
use crate::wheels::{Wheel, WheelSpec};
use crate::{assert_message, program};

const NO_ENGINE: &str = "nothing/here.sock";

fn wheel(name: &str) -> Wheel {
    WheelSpec::new(name, "1.0").build()
}

/// A project with these entries of `[packages]`, whose default index is that one and whose engine does not exist.
fn project(packages: &str, default: &Index) -> Program {
    let program = program()
        .with("DOCKER_HOST", format!("unix:///{NO_ENGINE}"))
        .with("ENVFORGE_INDEX", format!("{}/simple", default.url()));
    let text = format!(
        "schema = 1\nname = \"p\"\nspec = \"{SPEC}\"\n[target]\nany = true\n[packages]\n{packages}\n"
    );
    std::fs::write(program.path("envforge.toml"), text).expect("ours");
    program
}

/// The pages that were asked for.
fn pages(index: &Index) -> Vec<String> {
    index.seen().into_iter().map(|seen| seen.path).collect()
}

/// Nothing is said of a name: the engine is the next that fails.
fn assert_undecided(run: &Run) {
    assert_message(run, 3, &[NO_ENGINE]);
    assert!(!run.stderr.contains("not found"), "{}", run.stderr);
}

#[test]
fn misspelt_name_ends_before_the_engine_with_the_near_one() {
    let index = Index::local(vec![wheel("rich")]);
    let program = project("python = ['transfomers>=4', 'rich', 'our-tool[x]']", &index);
    for verb in ["lock", "build"] {
        let run = program.run(&[verb]);
        let says = [
            "package not found:",
            "`our-tool` (envforge.toml) is not in index `default`",
            "`transfomers` (envforge.toml) is not in index `default`",
            "hint: did you mean `transformers` in place of `transfomers`?",
            "`indexes` in `[packages]`",
        ];
        assert_message(&run, 1, &says);
        assert!(!run.stderr.contains(NO_ENGINE) && !run.stderr.contains("`rich`"), "{}", run.stderr);
    }
    assert!(!program.path("envforge.lock").exists());
    let run = program.run(&["lock", SPEC, "--with", "tqmd", "--target", "any"]);
    assert_message(&run, 1, &["`tqmd` (--with) is not in index `default`"]);
}

#[test]
fn only_the_indexes_of_the_resolver_are_asked_and_none_after_the_first_that_has_the_name() {
    let (internal, default) = (Index::local(vec![wheel("our-tool")]), Index::local(vec![wheel("rich")]));
    let packages = "indexes = ['own']\npython = ['our-tool', 'rich', { name = 'pinned', index = 'own' }, \
                    \"other ; sys_platform == 'win32'\"]";
    let address = format!("{}/simple", internal.url_with("someone", "planted-token"));
    let program = project(packages, &default).with("ENVFORGE_INDEX_OWN", address);
    let run = program.run(&["lock"]);
    assert_message(&run, 1, &["`pinned` (envforge.toml) is not in index `own`"]);
    assert!(!run.stderr.contains("planted-token"), "{}", run.stderr);
    let mut asked = pages(&internal);
    asked.sort();
    assert_eq!(asked, ["/simple/our-tool/", "/simple/pinned/", "/simple/rich/"]);
    assert_eq!(pages(&default), ["/simple/rich/"], "names of the internal index reach no other");
    assert!(internal.seen().iter().all(|seen| seen.authorization.is_some()), "with its login");
    assert!(default.seen().iter().all(|seen| seen.authorization.is_none()), "and no other has that");
}

#[test]
fn index_that_fails_or_does_not_answer_decides_nothing_and_no_other_is_asked() {
    for fault in [Fault::Status(401), Fault::Status(403), Fault::Status(500), Fault::Stall] {
        let (internal, default) = (Index::local(Vec::new()), Index::local(Vec::new()));
        internal.fail("/simple/our-tool/", fault);
        let program = project("indexes = ['own']\npython = ['our-tool']", &default)
            .with("ENVFORGE_INDEX_OWN", format!("{}/simple", internal.url()));
        assert_undecided(&program.run(&["lock"]));
        assert_eq!(pages(&default), [""; 0], "{fault:?}");
        assert_eq!(pages(&internal).len(), 1, "{fault:?}: asked once");
    }
    let gone = Index::local(Vec::new());
    let program = project("python = ['our-tool']", &gone);
    drop(gone);
    assert_undecided(&program.run(&["lock"]));
}

#[test]
fn names_of_the_lock_are_not_asked_for_and_locked_asks_nothing() {
    let index = Index::local(vec![wheel("rich")]);
    let program = project("python = ['demo-one', 'rich']", &index);
    let added = UserAdditions {
        project: Some("p".to_owned()),
        python: vec!["demo-one".to_owned()],
        ..UserAdditions::default()
    };
    let wheels = vec![locked(&wheel("demo-one"))];
    std::fs::write(program.path("envforge.lock"), Lock { added, wheels, ..lock() }.to_toml()).expect("ours");
    let run = program.run(&["build", "--locked"]);
    assert!(!run.stderr.contains("not found:"), "{}", run.stderr);
    assert_eq!(pages(&index), [""; 0]);
    assert_undecided(&program.run(&["lock"]));
    assert_eq!(pages(&index), ["/simple/rich/"]);
    assert_message(&program.run(&["lock", "--upgrade"]), 1, &["`demo-one`"]);
}

#[test]
fn page_of_links_has_the_packages_of_its_files() {
    let page = Index::local(vec![wheel("our-tool")]);
    page.serve_page("/files.html");
    let default = Index::local(Vec::new());
    let program = project("indexes = ['own']\npython = ['our-tool', 'other']", &default)
        .with("ENVFORGE_INDEX_OWN", format!("flat+{}/files.html", page.url()));
    let run = program.run(&["lock"]);
    assert_message(&run, 1, &["`other` (envforge.toml) is not in index `own` or `default`"]);
    assert!(!run.stderr.contains("our-tool"), "{}", run.stderr);
    assert_eq!(pages(&default), ["/simple/other/"]);
}
