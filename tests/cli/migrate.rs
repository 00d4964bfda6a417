//! `init` on what people bring. Each folder of `tests/fixtures/migrate` is a case: the files, and in `case.toml` the spec that they mean,
//! the packages of the new file, and words of the table.

use std::path::Path;

use serde::Deserialize;

use crate::program;
use crate::program::{Program, Run};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    #[serde(default)]
    code: i32,
    /// The GPU of the target.
    gpu: Option<String>,
    spec: Option<String>,
    packages: Option<Vec<String>>,
    requirements: Option<Vec<String>>,
    apt: Option<Vec<String>>,
    groups: Option<Vec<String>>,
    #[serde(default)]
    says: Vec<String>,
}

fn copied(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).expect("a folder of ours") {
        let entry = entry.expect("an entry");
        if entry.file_name() == "case.toml" {
            continue;
        }
        let target = to.join(entry.file_name());
        if entry.file_type().expect("a type").is_dir() {
            std::fs::create_dir_all(&target).expect("a folder");
            copied(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).expect("copied");
        }
    }
}

fn texts(list: Option<&toml::Value>) -> Vec<String> {
    let entries = list.and_then(toml::Value::as_array).into_iter().flatten();
    entries
        .filter_map(|entry| entry.as_str().or_else(|| entry.get("name")?.as_str()))
        .map(str::to_owned)
        .collect()
}

/// What a case got wrong.
fn mistakes(folder: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(folder.join("case.toml")).expect("case.toml");
    let case: Case = toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let gpu = case.gpu.as_deref().unwrap_or("sm_90");
    let program: Program = program().with("ENVFORGE_GPU", gpu).with("ENVFORGE_DRIVER", "580.65.06");
    copied(folder, &program.path(""));
    let run: Run = program.run(&["init"]);
    let mut wrong = Vec::new();
    let mut same = |what: &str, found: String, expected: String| {
        if found != expected {
            wrong.push(format!("{what}: {found}, expected {expected}"));
        }
    };
    same("exit", run.code.to_string(), case.code.to_string());
    let said = (run.stdout + &run.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
    for words in &case.says {
        same(&format!("says `{words}`"), said.contains(words.as_str()).to_string(), "true".to_owned());
    }
    let written = std::fs::read_to_string(program.path("envforge.toml")).unwrap_or_default();
    let file: toml::Table = written.parse().expect("TOML");
    let packages = |key: &str| texts(file.get("packages").and_then(|packages| packages.get(key)));
    match &case.spec {
        Some(spec) if case.code == 0 => {
            let found = file.get("spec").and_then(toml::Value::as_str).unwrap_or_default();
            same("spec", found.to_owned(), spec.clone());
        }
        Some(spec) => same("refuses", said.contains(spec.as_str()).to_string(), "true".to_owned()),
        None => {}
    }
    for (key, expected) in [
        ("python", &case.packages),
        ("requirements", &case.requirements),
        ("apt", &case.apt),
        ("groups", &case.groups),
    ] {
        if let Some(expected) = expected {
            same(key, format!("{:?}", packages(key)), format!("{expected:?}"));
        }
    }
    if case.code == 0 {
        let plan = program.run(&["plan"]);
        same("plan", format!("{} {}", plan.code, plan.stderr), "0 ".to_owned());
    } else {
        same("writes", written.is_empty().to_string(), "true".to_owned());
    }
    if !wrong.is_empty() {
        wrong.push(said);
    }
    wrong
}

#[test]
fn init_reads_what_people_bring() {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/migrate"));
    let mut folders: Vec<_> =
        std::fs::read_dir(folder).expect("cases").map(|entry| entry.expect("one").path()).collect();
    folders.sort();
    assert!(folders.len() > 25, "{}", folders.len());
    let wrong: Vec<_> = folders
        .iter()
        .filter_map(|folder| {
            Some((folder.file_name()?.to_owned(), mistakes(folder))).filter(|(_, wrong)| !wrong.is_empty())
        })
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn json_has_a_row_for_every_line() {
    let program = program().with("ENVFORGE_GPU", "sm_90");
    std::fs::write(program.path("requirements.txt"), "torch==2.8.0\n-e .\n").expect("written");
    let run = program.run(&["init", "--json"]);
    let report: serde_json::Value = serde_json::from_str(&run.stdout).expect("JSON");
    assert_eq!(
        (report["schema"].as_u64(), report["spec"].as_str()),
        (Some(1), Some("pytorch-cuda:2.8.0-cu128"))
    );
    let rows: Vec<_> = report["rows"]
        .as_array()
        .expect("rows")
        .iter()
        .map(|row| (row["line"].as_u64(), row["change"].as_str()))
        .collect();
    assert_eq!(rows, [(Some(1), Some("kept")), (Some(2), Some("not-taken-over"))]);
}

#[test]
fn table_of_a_long_file_fits_a_screen() {
    let program = program().with("ENVFORGE_GPU", "sm_90");
    let line = |at: i32| format!("some-package-{at}==1.{at}\n-e ./part-{at}\n");
    let packages = (0..5000).map(line).collect::<Vec<_>>().concat();
    std::fs::write(program.path("requirements.txt"), format!("torch==2.8.0\n{packages}")).expect("written");
    let run = program.run(&["init"]);
    let said = run.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(run.code == 0 && run.stderr.len() < 10_000, "{} {}", run.code, run.stderr.len());
    assert!(
        said.contains("packages: 5000 of requirements.txt, `envforge init --json` has all")
            && !said.contains("some-package-1==1.1"),
        "{said}"
    );
    assert!(said.contains("and 4980 more: `envforge init --json` has all"), "{said}");
    let run = program.run(&["init", "--force", "--json"]);
    let report: serde_json::Value = serde_json::from_str(&run.stdout).expect("JSON");
    assert_eq!(report["rows"].as_array().map(Vec::len), Some(10_001));
}

#[test]
fn one_file_or_folder_is_read_alone() {
    let program = program().with("ENVFORGE_GPU", "sm_90");
    std::fs::create_dir(program.path("old")).expect("a folder");
    std::fs::write(program.path("requirements.txt"), "torch==2.8.0\n").expect("written");
    std::fs::write(program.path("old/gpu.txt"), "torch==2.6.0\n").expect("written");
    let spec = |from: &str| {
        let run = program.run(&["init", "--force", "--json", "--from", from]);
        let report: serde_json::Value =
            serde_json::from_str(&run.stdout).unwrap_or_else(|_| panic!("{run:?}"));
        report["spec"].as_str().map(str::to_owned)
    };
    assert_eq!(spec("old/gpu.txt").as_deref(), Some("pytorch-cuda:2.6.0-cu124"));
    assert_eq!(spec(".").as_deref(), Some("pytorch-cuda:2.8.0-cu128"));
    let run = program.run(&["init", "--force", "--from", "nowhere"]);
    assert_eq!(run.code, 2, "{run:?}");
}

#[test]
fn files_that_are_no_text_are_told() {
    let program = program().with("ENVFORGE_GPU", "sm_90");
    // As PowerShell writes `pip freeze > requirements.txt`.
    let wide: Vec<u8> = "\u{feff}torch==2.8.0\r\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    std::fs::write(program.path("requirements.txt"), wide).expect("written");
    let run = program.run(&["init"]);
    assert_eq!(run.code, 0, "{run:?}");
    let run = program.run(&["plan"]);
    assert_eq!(run.code, 0, "what init names is read again: {run:?}");
    std::fs::write(program.path("requirements.txt"), b"# caf\xe9\ntorch==2.8.0\ncaf\xe9\n").expect("written");
    let run = program.run(&["init", "--force"]);
    assert!(
        run.code == 0
            && run.stderr.contains("requirements.txt:3")
            && run.stderr.contains("not a requirement"),
        "{run:?}"
    );
    std::fs::write(program.path("requirements.txt"), b"t\0o\0r\0c\0h\0").expect("written");
    let run = program.run(&["init", "--force"]);
    assert!(run.code == 1 && run.stderr.contains("neither UTF-8 nor UTF-16"), "{run:?}");
    std::fs::remove_file(program.path("requirements.txt")).expect("removed");
    let made = std::process::Command::new("mkfifo").arg(program.path("requirements.txt")).status();
    assert!(made.expect("mkfifo").success());
    let run = program.run(&["init", "--force"]);
    assert!(run.code == 1 && run.stderr.contains("a pipe"), "{run:?}");
    std::fs::remove_file(program.path("requirements.txt")).expect("removed");
    std::os::unix::fs::symlink("/etc/passwd", program.path("requirements.txt")).expect("a link");
    let run = program.run(&["init", "--force"]);
    assert!(run.code == 1 && run.stderr.contains("leads out of the folder"), "{run:?}");
}

#[test]
fn examples_are_what_init_writes() {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/migrate"));
    for name in ["conda", "uv", "poetry", "dockerfile", "requirements"] {
        let program = program();
        let project = program.path(name);
        std::fs::create_dir(&project).expect("a folder");
        copied(&folder.join(name).join("before"), &project);
        let mut command = program.command(&["init", "--target", "any"]);
        let run = Run::of(&command.current_dir(&project).output().expect("it starts"));
        assert_eq!(run.code, 0, "{name}: {}", run.stderr);
        let written = std::fs::read_to_string(project.join("envforge.toml")).expect("written");
        let after = std::fs::read_to_string(folder.join(name).join("after/envforge.toml")).expect("ours");
        assert_eq!(written, after, "{name}");
    }
}

#[test]
fn several_files_of_a_kind_are_told_and_none_is_guessed() {
    for files in [
        &["requirements-gpu.txt", "requirements-cpu.txt"] as &[&str],
        &["environment-gpu.yml", "environment-cpu.yml"],
        &["requirements/base.txt", "requirements/dev.txt"],
        &["Dockerfile.gpu", "Dockerfile.cpu"],
    ] {
        let program = program().with("ENVFORGE_GPU", "sm_90");
        for name in files {
            let path = program.path(name);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            std::fs::write(path, "torch==2.8.0\n").expect("written");
        }
        let run = program.run(&["init"]);
        let said = run.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(run.code, 1, "{files:?}: {run:?}");
        for name in files {
            assert!(said.contains(&format!("envforge init --from {name}")), "{name}: {said}");
        }
    }
}

#[test]
fn hint_names_a_file_that_was_not_read() {
    let program = program().with("ENVFORGE_GPU", "sm_90");
    for name in ["requirements-cpu.txt", "requirements-gpu.txt"] {
        std::fs::write(program.path(name), "torch==2.8.0\n").expect("written");
    }
    let run = program.run(&["init"]);
    let said = run.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        run.code == 1
            && said.contains("name the file that is meant: `envforge init --from requirements-gpu.txt`"),
        "{run:?}"
    );
}

#[test]
fn default_without_any_file_is_reported() {
    let program = program().with("ENVFORGE_GPU", "sm_90");
    let run = program.run(&["init"]);
    assert!(run.code == 0 && run.stderr.contains("the newest default is written"), "{run:?}");
    let run = program.run(&["init", "pytorch-cuda:2.8", "--force"]);
    assert!(run.code == 0 && !run.stderr.contains("newest default"), "{run:?}");
}

#[test]
fn spec_that_is_typed_is_compared_with_the_lines() {
    let program = program().with("ENVFORGE_GPU", "sm_90");
    std::fs::write(program.path("requirements.txt"), "torch==2.8.0\n").expect("written");
    let run = program.run(&["init", "pytorch-cuda:2.7"]);
    let said = run.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        run.code == 1
            && said.contains("you asked for pytorch-cuda:2.7; requirements.txt:1 says torch==2.8.0")
            && !said.contains("the framework pytorch-cuda:2.7"),
        "{run:?}"
    );
    assert_eq!(program.run(&["init", "pytorch-cuda:2.8"]).code, 0);
}

#[test]
fn project_of_files_elsewhere_plans_here() {
    let program = program().with("ENVFORGE_GPU", "sm_90");
    std::fs::create_dir(program.path("old")).expect("a folder");
    std::fs::write(program.path("old/requirements.txt"), "torch==2.8.0\nrich\n").expect("written");
    assert_eq!(program.run(&["init", "--from", "old"]).code, 0);
    let run = program.run(&["plan"]);
    assert!(run.code == 0 && run.stdout.contains("rich"), "{run:?}");
}

#[test]
fn refusal_is_one_object_for_programs() {
    let program = program().with("ENVFORGE_GPU", "sm_90");
    for text in
        ["tensorflow==2.13.0\njax[cuda12]==0.4.34\n", "torch==2.8.0\ntorchvision==0.20.0\n", "numpy\n"]
    {
        std::fs::write(program.path("requirements.txt"), text).expect("written");
        let run = program.run(&["init", "--json"]);
        let report: serde_json::Value =
            serde_json::from_str(&run.stdout).unwrap_or_else(|_| panic!("{run:?}"));
        assert!(run.code == 1 && report["error"].is_string() && report["file"].is_null(), "{run:?}");
    }
}

/// The archive that `docker save` writes of an image with these layers and variables.
fn saved_image(layers: &[&[&str]], variables: &[&str]) -> Vec<u8> {
    let tar = |files: &[(String, Vec<u8>)]| {
        let mut tar = tar::Builder::new(Vec::new());
        for (name, bytes) in files {
            let mut header = tar::Header::new_gnu();
            header.set_mode(0o644);
            header.set_size(bytes.len() as u64);
            tar.append_data(&mut header, name, bytes.as_slice()).expect("a vector");
        }
        tar.into_inner().expect("a vector")
    };
    let empty =
        |names: &[&str]| names.iter().map(|name| ((*name).to_owned(), Vec::new())).collect::<Vec<_>>();
    let mut files: Vec<(String, Vec<u8>)> = Vec::new();
    for (at, names) in layers.iter().enumerate() {
        files.push((format!("{at}/layer.tar"), tar(&empty(names))));
    }
    let names: Vec<_> = files.iter().map(|(name, _)| name.clone()).collect();
    let ids = vec!["sha256:0"; layers.len()];
    let config = serde_json::json!({ "config": { "Env": variables }, "rootfs": { "diff_ids": ids } });
    files.push(("config.json".to_owned(), config.to_string().into_bytes()));
    let manifest = serde_json::json!([{ "Config": "config.json", "RepoTags": [], "Layers": names }]);
    files.push(("manifest.json".to_owned(), manifest.to_string().into_bytes()));
    tar(&files)
}

#[test]
fn saved_image_is_read_by_its_files() {
    let program = program().with("ENVFORGE_GPU", "sm_80");
    let here = "usr/local/lib/python3.10/dist-packages";
    let torch = format!("{here}/torch-2.3.1+cu121.dist-info");
    let names = [
        format!("{torch}/METADATA"),
        format!("{torch}/REQUESTED"),
        format!("{here}/sympy-1.12.dist-info/METADATA"),
        format!("{here}/timm-1.0.3.dist-info/METADATA"),
        format!("{here}/timm-1.0.3.dist-info/REQUESTED"),
        format!("{here}/.wh.peft-0.10.0.dist-info"),
    ];
    let below = format!("{here}/peft-0.10.0.dist-info/METADATA");
    let above: Vec<&str> = names.iter().map(String::as_str).collect();
    let image = saved_image(&[&[&below], &above], &["CUDA_VERSION=12.1.1", "SECRET=hunter2"]);
    std::fs::write(program.path("image.tar"), image).expect("written");
    let run = program.run(&["init", "--from", "image.tar"]);
    assert_eq!(run.code, 0, "{run:?}");
    let written = std::fs::read_to_string(program.path("envforge.toml")).expect("written");
    assert!(written.contains("spec = \"pytorch-cuda:2.3.1-cu121-py3.10\""), "{written}");
    assert!(written.contains("\"timm==1.0.3\"") && !written.contains("sympy"), "{written}");
    assert!(!written.contains("peft") && !run.stderr.contains("hunter2"), "{run:?}");
    for (bytes, says) in [(b"junk".to_vec(), "cannot read image"), (vec![0; 1024], "not an OCI layout")] {
        std::fs::write(program.path("other.tar"), bytes).expect("written");
        let run = program.run(&["init", "--force", "--from", "other.tar"]);
        assert!(run.code == 2 && run.stderr.contains(says), "{run:?}");
    }
}
