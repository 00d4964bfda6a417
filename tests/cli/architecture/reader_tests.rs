//! The reader finds each kind of arrow in small made trees, and no arrow where there is none.

use super::modules::Files;
use super::violations_of;

/// Arrows that are not allowed in a tree of files, as `from -> to: rule`.
fn found(tree: &[(&str, &str)]) -> Vec<String> {
    let files: Files = tree.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
    violations_of(&files).into_iter().map(|v| format!("{} -> {}: {}", v.from, v.to, v.rule)).collect()
}

/// The violations of `src/model/a.rs` with that text, in a house that has one file in each room.
fn in_model(text: &str) -> Vec<String> {
    found(&[
        (
            "src/lib.rs",
            "pub mod model; pub mod engine; pub mod workflow; mod failure; pub mod cli; pub mod commands;",
        ),
        ("src/main.rs", "use envforge::cli::Cli; fn main() { envforge::commands::run(Cli) }"),
        ("src/failure.rs", "pub struct Exit;"),
        ("src/model/mod.rs", "pub mod a; mod b; pub use b::{Fine, inner};"),
        ("src/model/b.rs", "pub struct Fine; pub mod inner { pub fn f() {} }"),
        ("src/engine/mod.rs", "mod run; pub use run::Engine; pub use run::go as start;"),
        ("src/engine/run.rs", "use crate::model::Fine; pub struct Engine(Fine); pub fn go() {}"),
        ("src/workflow/mod.rs", "pub use crate::model::Fine; pub mod step;"),
        (
            "src/workflow/step.rs",
            "#[macro_export] macro_rules! stepping { () => { $crate::engine::start() } }",
        ),
        ("src/cli/mod.rs", "use clap::Parser; pub struct Cli(crate::model::Fine);"),
        ("src/commands/mod.rs", "use crate::cli::Cli; pub fn run(_: Cli) {}"),
        ("src/model/a.rs", text),
    ])
}

const TO_ENGINE: &str = "src/model/a.rs -> src/engine/run.rs: arrow back up";

#[test]
fn reader_accepts_arrows_that_lead_down() {
    for text in [
        "",
        "use crate::failure::Exit; use super::{Fine, inner}; use std::fmt;",
        "use engine::Engine; fn f() { engine::start(); }",
        "// use crate::engine::Engine;\n/* crate::engine::start() /* nested */ */ /// [`crate::engine::Engine`]\nfn f() {}",
        r##"const A: &str = "use crate::engine::Engine;"; const B: &str = r#""crate::engine::x"#; const C: char = '"';"##,
        r#"#[doc = "crate::engine::Engine"] #[expect(unused, reason = "crate::engine::Engine")] fn f() {}"#,
        "#[cfg(test)] mod tests { use crate::engine::Engine; }",
        "#[cfg(test)] use crate::engine::Engine; #[cfg(all(test, unix))] pub(crate) fn f(a: u8, b: u8) { crate::engine::start() }",
        "struct A { #[cfg(test)] b: crate::engine::Engine, c: u8 } impl A { fn f(&self) { self.engine::<u8>(); } }",
    ] {
        assert_eq!(in_model(text), [""; 0], "{text}");
    }
}

#[test]
fn reader_finds_an_arrow_back_up_in_every_form() {
    for text in [
        "use crate::engine::Engine;",
        "pub(crate) use crate::engine::Engine;",
        "use crate::{failure::Exit, engine::{self, Engine as Other}};",
        "use crate :: engine :: /* between */ Engine;",
        "use super::super::engine::Engine;",
        "use {crate::{engine::{Engine}}};",
        "fn f() { crate::engine::start() }",
        "fn f(engine: &dyn crate::engine::Engine) {}",
        "fn f() -> Vec<<crate::engine::Engine as Clone>::Other> { vec![] }",
        "fn f() { use super::super::engine as e; e::start() }",
        "fn f() { println!(\"{}\", crate::engine::start()) }",
        "macro_rules! m { () => { $crate::engine::Engine } }",
        "mod inner { mod deeper { use super::super::super::super::engine::Engine; } }",
        "use crate::engine::*; fn f() -> Engine { todo!() }",
        "extern crate self as me; fn f() { me::engine::start() }",
        "extern crate self as me; use me::engine::Engine;",
        "use crate as root; fn f() { root::engine::start() }",
        "use r#crate::engine::Engine;",
        "#[derive(crate::engine::Engine)] struct A;",
        "struct A { #[serde(with = \"crate::engine::Engine\")] b: u8 }",
        "#[cfg(any(test, unix))] use crate::engine::Engine;",
        "#[cfg(not(test))] use crate::engine::Engine;",
        "#[cfg(test)] mod tests { fn f() { let a = '{'; let b = \"}\"; } } use crate::engine::Engine;",
        "const A: &str = \"\\\\\"; use crate::engine::Engine; const B: &str = \"//\";",
        "const A: &str = r#\"\"//\"#; use crate::engine::Engine; fn f<'a>(_: &'a str) -> char { '\\'' }",
        "#[path = \"../engine/run.rs\"] mod hidden;",
        "#[cfg_attr(unix, path = \"../engine/run.rs\")] mod hidden;",
        "include!(\"../engine/run.rs\");",
    ] {
        let found = in_model(text);
        assert!(found.iter().any(|violation| violation == TO_ENGINE), "{text}: {found:?}");
    }
}

#[test]
fn reader_finds_arrows_through_re_exports_and_macros() {
    // What is of the model is fetched through the workflow: the way is an arrow too.
    let through = in_model("use crate::workflow::Fine;");
    assert!(
        through.contains(&"src/model/a.rs -> src/workflow/mod.rs: arrow back up".to_owned()),
        "{through:?}"
    );
    let renamed = in_model("use crate::engine::start;");
    assert!(renamed.contains(&TO_ENGINE.to_owned()), "{renamed:?}");
    let called = in_model("fn f() { stepping!() }");
    assert!(
        called.contains(&"src/model/a.rs -> src/workflow/step.rs: arrow back up".to_owned()),
        "{called:?}"
    );
    let unknown = in_model("fn f() { crate::workflow::made_by_a_macro() }");
    assert!(
        unknown.contains(&"src/model/a.rs -> src/workflow/mod.rs: arrow back up".to_owned()),
        "{unknown:?}"
    );
}

#[test]
fn reader_finds_who_imports_commands_or_cli() {
    assert_eq!(in_model("use crate::cli::Cli;"), ["src/model/a.rs -> src/cli/mod.rs: arrow back up"]);
    let tree = [
        ("src/lib.rs", "mod cli; mod commands; mod model; mod report; mod unknown;"),
        ("src/main.rs", "fn main() { envforge::report::print() }"),
        (
            "src/cli/mod.rs",
            "use serde::Serialize; use crate::report::print; pub struct Cli(u8); fn f() { toml::to_string(u8::MAX) }",
        ),
        ("src/commands/mod.rs", "pub mod verb; pub struct Exit; use crate::cli::Cli;"),
        ("src/commands/verb.rs", "use crate::cli::Cli; fn f(c: Cli) {}"),
        ("src/model/mod.rs", "pub struct A;"),
        ("src/report/mod.rs", "pub fn print() -> crate::commands::Exit { todo!() }"),
        ("src/unknown.rs", "use crate::model::A;"),
    ];
    let cli = "cli imports only model, failure and clap";
    let main = "main.rs starts commands and cli only, lib.rs declares modules only";
    assert_eq!(
        found(&tree),
        [
            format!("src/cli/mod.rs -> serde: {cli}"),
            format!("src/cli/mod.rs -> src/report/mod.rs: {cli}"),
            format!("src/cli/mod.rs -> toml: {cli}"),
            "src/commands/verb.rs -> src/cli/mod.rs: arrow back up".to_owned(),
            format!("src/main.rs -> src/report/mod.rs: {main}"),
            "src/report/mod.rs -> src/commands/mod.rs: arrow back up".to_owned(),
            "src/unknown.rs -> src/model/mod.rs: room without a stratum".to_owned(),
        ]
    );
}

#[test]
fn reader_finds_circles_of_files_and_rooms() {
    let house = |a: &str, b: &str, mod_rs: &str| {
        found(&[
            ("src/lib.rs", "mod fetch;"),
            ("src/fetch/mod.rs", mod_rs),
            ("src/fetch/a.rs", a),
            ("src/fetch/b.rs", b),
        ])
    };
    let circle = [
        "src/fetch/a.rs -> src/fetch/b.rs: circle of files",
        "src/fetch/b.rs -> src/fetch/a.rs: circle of files",
    ];
    let (a, b) = ("use super::b::B; pub struct A(B);", "pub struct B; fn f(_: super::a::A) {}");
    assert_eq!(house(a, b, "mod a; mod b;"), circle);
    // Names that the parent passes on lead to the file that defines them, and the parent is no part of the circle.
    let (a, b) = ("use super::B; pub struct A(B);", "pub struct B; fn f(_: crate::fetch::A) {}");
    assert_eq!(house(a, b, "mod a; mod b; pub use a::A; pub use self::b::*;"), circle);
    assert_eq!(house(a, "pub struct B;", "mod a; mod b; pub use a::A; pub use self::b::*;"), [""; 0]);
    // A parent with code of its own is, unless it only passes on.
    let passes_on = "mod a; mod b; pub use b::B; pub struct Own;";
    let uses = "mod a; mod b; pub use b::B; pub struct Own(B);";
    let child = "use super::Own; pub struct B(Box<Own>);";
    assert_eq!(house("", child, passes_on), [""; 0]);
    assert_eq!(
        house("", child, uses),
        [
            "src/fetch/b.rs -> src/fetch/mod.rs: circle of files",
            "src/fetch/mod.rs -> src/fetch/b.rs: circle of files"
        ]
    );

    // Two rooms without a circle of files; rooms inside model, engine and workflow count.
    let rooms = |outer: &str, lib: &str| {
        let prefix = |path: &str| format!("{outer}/{path}");
        let parent = if outer == "src" { "crate".to_owned() } else { format!("crate::{}", &outer[4..]) };
        let files = [
            ("src/lib.rs".to_owned(), lib.to_owned()),
            (prefix("mod.rs"), "pub mod host; pub mod store;".to_owned()),
            (prefix("host/mod.rs"), "pub mod a; pub mod b;".to_owned()),
            (prefix("host/a.rs"), format!("use {parent}::store::c::C; fn f(_: C) {{}}")),
            (prefix("host/b.rs"), "pub struct B;".to_owned()),
            (prefix("store/mod.rs"), "pub mod c;".to_owned()),
            (prefix("store/c.rs"), format!("pub struct C({parent}::host::b::B);")),
        ];
        found(&files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect::<Vec<_>>())
    };
    for (outer, lib) in
        [("src", "mod host; mod store;"), ("src/model", "mod model;"), ("src/engine", "mod engine;")]
    {
        let expected = [("host", "store"), ("store", "host")]
            .map(|(from, to)| format!("{outer}/{from} -> {outer}/{to}: circle of rooms"));
        assert_eq!(rooms(outer, lib), expected, "{outer}");
    }
}

#[test]
fn reader_finds_files_that_the_build_script_takes() {
    let tree = |build: &str| {
        found(&[
            ("src/lib.rs", "mod engine;"),
            ("src/engine/mod.rs", "pub mod versions;"),
            ("src/engine/versions.rs", "pub struct V;"),
            ("build.rs", build),
            ("build/agent.rs", "pub fn embed() {}"),
        ])
    };
    let taken = ["build.rs -> src/engine/versions.rs: file of another crate"];
    assert_eq!(tree("#[path = \"build/agent.rs\"] mod agent; fn main() { agent::embed() }"), [""; 0]);
    assert_eq!(tree("#[path = \"src/engine/versions.rs\"] mod v; fn main() {}"), taken);
    assert_eq!(tree("#[path = \"src/engine\"] mod engine { pub mod versions; } fn main() {}"), taken);
}
