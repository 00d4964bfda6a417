//! The five-minute start of the book, word for word, in one real image.

use std::path::Path;

use crate::blocks::{blocks, matches, sessions};
use crate::program::Run;
use crate::scene::Scene;

#[test]
#[ignore = "needs docker, an index of everything and eight gigabytes: cargo test --features docker --test docker -- --ignored start_page"]
fn start_page_runs_as_shown() {
    let scene = Scene::new();
    let program = Path::new(env!("CARGO_BIN_EXE_envforge")).parent().expect("a folder");
    let path = format!("{}:{}", program.display(), std::env::var("PATH").expect("a PATH"));
    let folder = scene.program.path("start");
    std::fs::create_dir(&folder).expect("ours");
    std::fs::write(folder.join("train.py"), "print('trained')\n").expect("ours");
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/src/start.md");
    let page = std::fs::read_to_string(page).expect("the page");
    let mut count = 0;
    for block in blocks(&page).iter().filter(|block| block.language == "console") {
        for session in sessions(block) {
            let command = format!("exec 2>&1; {}", session.command);
            let mut shell = scene.program.command_of(Path::new("sh"), &["-c", &command]);
            let run = Run::of(&shell.current_dir(&folder).env("PATH", &path).output().expect("a shell"));
            assert_eq!(run.code, 0, "`{}`: {}", session.command, run.stdout);
            if !session.output.is_empty() {
                let shown = matches(&session.output, &run.stdout);
                assert_eq!(shown, Ok(()), "`{}`: {}", session.command, run.stdout);
            }
            count += 1;
        }
    }
    assert_eq!(count, 9);
}
