//! Projects as people have them, and pyproject.toml files of a stranger.

use std::collections::{BTreeMap, BTreeSet};

use super::*;

/// A directory of names: `src/vision/` has code, `lib -> ` leads outside.
struct Tree {
    kinds: BTreeMap<String, PathKind>,
    texts: BTreeMap<String, String>,
}

impl Tree {
    /// `src/vision/` is a package, `torch.py` a module, `docs/!` a directory without code, `lib@` a link out of the project.
    fn of(names: &[&str]) -> Self {
        let mut kinds = BTreeMap::from([(String::new(), PathKind::Directory)]);
        for name in names {
            let plain = name.trim_end_matches(['/', '!', '@']);
            let parts: Vec<&str> = plain.split('/').collect();
            for length in 1..parts.len() {
                kinds.insert(parts[..length].join("/"), PathKind::Directory);
            }
            let kind = match name.chars().next_back() {
                Some('/' | '!') => PathKind::Directory,
                Some('@') => PathKind::Outside,
                _ => PathKind::File,
            };
            kinds.insert(plain.to_owned(), kind);
            if name.ends_with('/') {
                kinds.insert(format!("{plain}/__init__.py"), PathKind::File);
            }
        }
        Self { kinds, texts: BTreeMap::new() }
    }
}

impl ProjectTree for Tree {
    fn kind(&self, path: &str) -> PathKind {
        self.kinds.get(path).copied().unwrap_or(PathKind::Absent)
    }

    fn modules(&self, path: &str) -> Vec<String> {
        let below = if path.is_empty() { String::new() } else { format!("{path}/") };
        let mut found = BTreeSet::new();
        for name in self.kinds.keys().filter_map(|name| name.strip_prefix(&below)) {
            if let Some(module) = name.strip_suffix("/__init__.py").or_else(|| name.strip_suffix(".py"))
                && !module.contains('/')
            {
                found.insert(module.to_owned());
            }
        }
        found.into_iter().collect()
    }

    fn text(&self, path: &str) -> Option<String> {
        self.texts.get(path).cloned()
    }
}

fn read(text: &str, names: &[&str]) -> Editable {
    editable(text, &Tree::of(names), &ImagePackages::default()).expect("a project")
}

fn text_of<'a>(project: &'a Editable, path: &str) -> &'a str {
    let found = project.files.iter().find(|file| file.path == path);
    &found.unwrap_or_else(|| panic!("no {path} in {:#?}", project.files)).text
}

const NAMED: &str = "[project]\nname = 'vision-ft'\nversion = '0.3'\n";

fn is_pth(file: &EditableFile) -> bool {
    std::path::Path::new(&file.path).extension().is_some_and(|end| end == "pth")
}

#[test]
fn importable_directories_are_those_of_the_build_backend() {
    let backend = |name: &str| format!("{NAMED}[build-system]\nbuild-backend = '{name}'\n");
    let poetry = |lines: &str| format!("[tool.poetry]\nname = 'vision-ft'\nversion = '1'\n{lines}");
    let cases: &[(String, &[&str], &[&str])] = &[
        (NAMED.to_owned(), &["src/vision_ft/", "tests/"], &["src"]),
        (NAMED.to_owned(), &["vision_ft/", "src!"], &[""]),
        (NAMED.to_owned(), &["vision_ft.py", "src/helpers!"], &[""]),
        (NAMED.to_owned(), &["src/other/"], &["src"]),
        (NAMED.to_owned(), &["python/vision_ft/", "Cargo.toml", "src/lib.rs"], &["python"]),
        (NAMED.to_owned(), &[], &[""]),
        (
            format!("{NAMED}[tool.setuptools]\npackage-dir = {{ '' = 'lib' }}\n"),
            &["lib/vision_ft/"],
            &["lib"],
        ),
        (
            format!("{NAMED}[tool.setuptools]\npackage-dir = {{ a = 'x/a', 'b.c' = 'y/b/c' }}\n"),
            &["x/a/", "y/b/c/"],
            &["x", "y"],
        ),
        (
            format!("{NAMED}[tool.setuptools.packages.find]\nwhere = ['code', 'more']\n"),
            &["code/a/", "more/b/"],
            &["code", "more"],
        ),
        (format!("{NAMED}[tool.setuptools]\npy-modules = ['train']\n"), &["train.py", "src/x/"], &[""]),
        (poetry(""), &["src/vision_ft/"], &["src"]),
        (
            poetry("packages = [{ include = 'a', from = 'lib' }, { include = 'b' }]\n"),
            &["lib/a/", "b/"],
            &["lib", ""],
        ),
        (backend("hatchling.build"), &["vision_ft/"], &[""]),
        (
            format!(
                "{}[tool.hatch.build.targets.wheel]\npackages = ['code/vision_ft']\n",
                backend("hatchling.build")
            ),
            &["code/vision_ft/"],
            &["code"],
        ),
        (
            format!("{}[tool.hatch.build]\ndev-mode-dirs = ['.', 'extra']\n", backend("hatchling.build")),
            &["extra/x/"],
            &["", "extra"],
        ),
        (
            format!("{}[tool.hatch.build]\nsources = ['src']\n", backend("hatchling.build")),
            &["src/x/"],
            &["src"],
        ),
        (backend("uv_build"), &["src/vision_ft/"], &["src"]),
        (
            format!("{}[tool.uv.build-backend]\nmodule-root = ''\n", backend("uv_build")),
            &["vision_ft/", "src/vision_ft/"],
            &[""],
        ),
        (
            format!("{}[tool.pdm.build]\npackage-dir = 'lib'\n", backend("pdm.backend")),
            &["lib/vision_ft/"],
            &["lib"],
        ),
        (
            format!("{}[tool.maturin]\npython-source = 'py'\n", backend("maturin")),
            &["py/vision_ft/"],
            &["py"],
        ),
        (
            format!(
                "{}[tool.scikit-build]\nwheel.packages = ['src/vision_ft']\n",
                backend("scikit_build_core.build")
            ),
            &["src/vision_ft/"],
            &["src"],
        ),
        (backend("flit_core.buildapi"), &["vision_ft.py"], &[""]),
        (backend("somebody.elses"), &["src/vision_ft/"], &["src"]),
    ];
    for (text, names, expected) in cases {
        let project = read(text, names);
        assert_eq!(project.roots, *expected, "{text}\n{names:?}: {:?}", project.notes);
        let pth: String = expected
            .iter()
            .map(|root| format!("/workspace/{root}").trim_end_matches('/').to_owned() + "\n")
            .collect();
        let name = project.files.iter().find(|file| is_pth(file)).expect("a .pth");
        assert_eq!(name.text, pth, "{text}");
    }
}

#[test]
fn directory_that_cannot_be_used_is_named_and_left_out() {
    let find = |path: &str| format!("{NAMED}[tool.setuptools.packages.find]\nwhere = [{path}]\n");
    for (path, reason) in [
        ("'../other'", "not a path below the project"),
        ("'/etc'", "not a path below the project"),
        ("'a/../../b'", "not a path below the project"),
        ("\"src\\nimport os; os.system('id')\"", "not a path below the project"),
        ("'link'", "leads out of the project"),
        ("'absent'", "is not a directory"),
        ("'setup.py'", "is not a directory"),
    ] {
        let project = read(&find(path), &["src/vision_ft/", "link@", "setup.py"]);
        assert_eq!(project.roots, ["src"], "{path}");
        assert!(project.notes.iter().any(|note| note.contains(reason)), "{path}: {:?}", project.notes);
        for file in &project.files {
            assert!(!file.text.contains("os.system"), "{file:?}");
        }
    }
    let renamed =
        read(&format!("{NAMED}[tool.setuptools]\npackage-dir = {{ vision = 'lib/code' }}\n"), &["src/x/"]);
    assert!(
        renamed.notes[0].contains("`vision` is at `lib/code`, which has another name"),
        "{:?}",
        renamed.notes
    );
    let outside = read(NAMED, &["src@"]);
    assert_eq!(outside.roots, [""]);
    assert!(outside.notes.iter().any(|note| note == "`src` leads out of the project: left out"));
}

#[test]
fn every_line_of_a_pth_is_a_directory_below_the_workspace() {
    for text in [
        find_lines("import os"),
        find_lines("src\\timport"),
        find_lines("import\\u0000x"),
        format!("{NAMED}[tool.setuptools]\npackage-dir = {{ '' = \"a\\nimport os\" }}\n"),
        "[tool.poetry]\nname = 'x'\npackages = [{ include = 'x', from = \"a\\rimport os\" }]\n".to_owned(),
    ] {
        let project = read(&text, &["import os!", "src!", "a!"]);
        let pth = project.files.iter().find(|file| is_pth(file)).expect("a .pth");
        for line in pth.text.lines() {
            assert!(line.starts_with("/workspace"), "{text}: {line}");
        }
        assert!(!pth.text.contains(['\r', '\t', '\0']), "{text}");
    }
}

#[test]
fn dependency_that_would_exhaust_the_parser_is_left_out() {
    let nested = format!("a; {}os_name == 'x'{}", "(".repeat(2000), ")".repeat(2000));
    let text = format!("{NAMED}dependencies = [\"click\", \"{nested}\"]\n");
    let image = ImagePackages { has_dependencies: true, ..ImagePackages::default() };
    let project = editable(&text, &Tree::of(&["src/vision_ft/"]), &image).expect("a project");
    let metadata = text_of(&project, "site/vision_ft-0.3.dist-info/METADATA");
    assert!(metadata.contains("Requires-Dist: click\n") && metadata.len() < 1000, "{}", metadata.len());
}

/// Python 3.13 ends a line of a `.pth` at each of these, and reads entry points alike.
#[test]
fn name_with_a_line_end_of_any_kind_is_left_out() {
    for end in ['\u{b}', '\u{c}', '\u{1c}', '\u{1d}', '\u{1e}', '\u{85}', '\u{2028}', '\u{2029}'] {
        let escaped = format!("\\u{:04x}", u32::from(end));
        let folder = format!("src{end}import os!");
        let project =
            read(&find_lines(&format!("src{escaped}import os")), &[folder.as_str(), "src/vision_ft/"]);
        assert_eq!(project.roots, ["src"], "{end:?}");
        let text = format!("{NAMED}[project.entry-points.g]\n\"a{escaped}[h]\" = 'a:b'\n");
        let plugins = read(&text, &["src/vision_ft/"]);
        for file in project.files.iter().chain(&plugins.files).filter(|file| file.path.starts_with("site/")) {
            assert!(!file.text.contains(end), "{end:?}: {file:?}");
        }
    }
}

fn find_lines(path: &str) -> String {
    format!("{NAMED}[tool.setuptools.packages.find]\nwhere = [\"{path}\"]\n")
}

#[test]
fn metadata_and_scripts_come_from_static_fields() {
    let text = "[project]\nname = 'Vision.FT'\nversion = '0.3.0'\ndescription = 'Fine-tunes'\nrequires-python = '>=3.10'\n\
        dependencies = ['torch>=2.8', 'wandb']\n[project.scripts]\nvision-train = 'vision.cli:app.main'\n\
        [project.gui-scripts]\nviewer = 'vision.ui:run'\n[project.entry-points.'vision.models']\nsmall = 'vision.models.small'\n";
    let image = ImagePackages { has_dependencies: true, ..ImagePackages::default() };
    let project = editable(text, &Tree::of(&["src/vision/"]), &image).expect("a project");
    assert_eq!(project.notes, [] as [&str; 0]);
    let folder = "site/vision_ft-0.3.0.dist-info";
    assert_eq!(
        text_of(&project, &format!("{folder}/METADATA")),
        "Metadata-Version: 2.2\nName: Vision.FT\nVersion: 0.3.0\nSummary: Fine-tunes\nRequires-Python: >=3.10\n\
         Requires-Dist: torch>=2.8\nRequires-Dist: wandb\n"
    );
    assert_eq!(
        text_of(&project, &format!("{folder}/entry_points.txt")),
        "[console_scripts]\nvision-train = vision.cli:app.main\n\n[gui_scripts]\nviewer = vision.ui:run\n\n\
         [vision.models]\nsmall = vision.models.small\n\n"
    );
    assert_eq!(
        text_of(&project, "bin/vision-train"),
        "#!/usr/bin/env python\nimport sys\n\nfrom vision.cli import app\n\nif __name__ == \"__main__\":\n    sys.exit(app.main())\n"
    );
    assert!(
        text_of(&project, &format!("{folder}/direct_url.json")).contains("\"url\": \"file:///workspace\"")
    );
    let record = text_of(&project, &format!("{folder}/RECORD"));
    let listed: Vec<&str> = record.lines().filter_map(|line| line.split(',').next()).collect();
    let mut expected: Vec<String> = project
        .files
        .iter()
        .filter(|file| file.path != "sitecustomize.py")
        .map(|file| {
            file.path.strip_prefix("site/").map_or_else(|| format!("../{}", file.path), str::to_owned)
        })
        .collect();
    expected.sort();
    assert_eq!(listed, expected);
    // An image without the dependencies: the metadata leaves the list open instead of naming what is missing.
    let plain = read(text, &["src/vision/"]);
    let metadata = text_of(&plain, &format!("{folder}/METADATA"));
    assert!(metadata.ends_with("Dynamic: Requires-Dist\n") && !metadata.contains("wandb"), "{metadata}");
}

#[test]
fn scripts_and_plugins_of_a_stranger_are_left_out_by_name() {
    let script = |name: &str, value: &str| format!("{NAMED}[project.scripts]\n\"{name}\" = \"{value}\"\n");
    let plugin = |group: &str, name: &str| {
        format!("{NAMED}[project.entry-points.\"{group}\"]\n\"{name}\" = \"a:b\"\n")
    };
    for text in [
        script("../../bin/sh", "a:b"),
        script("a/b", "a:b"),
        script("..", "a:b"),
        script("-c", "a:b"),
        script("python", "a:b"),
        script("python3.11", "a:b"),
        script("Python3", "a:b"),
        script("a\\nb", "a:b"),
        script("x", "a:b\\nevil = os:system"),
        script("x", "os; import sys:b"),
        script("x", "a:b(1)"),
        script("x", "a"),
        script("x", "a:b[c"),
        script("x", "1a:b"),
        plugin("g", "n\\n[console_scripts]\\nsh"),
        plugin("g]\\n[console_scripts", "sh"),
        plugin("console_scripts", "sh"),
        plugin("g", "a = b"),
        plugin("g", "[x"),
        format!("{NAMED}[project.scripts]\nx = {{ file = 'run.sh' }}\n"),
    ] {
        let project = read(&text, &["src/vision_ft/"]);
        assert!(
            project.files.iter().all(|file| !file.path.starts_with("bin/")),
            "{text}: {:?}",
            project.files
        );
        assert!(!project.files.iter().any(|file| file.path.ends_with("entry_points.txt")), "{text}");
        assert!(project.notes.iter().any(|note| note.contains("left out")), "{text}: {:?}", project.notes);
        assert!(project.notes.iter().all(|note| !note.contains('\n')), "{:?}", project.notes);
    }
    let good = read(&script("train_2.x-y", "a.b : c.d [ e, f ]"), &[]);
    assert!(text_of(&good, "bin/train_2.x-y").contains("from a.b import c\n"), "{:?}", good.notes);
    let poetry = "[tool.poetry]\nname = 'x'\nversion = '1'\n[tool.poetry.scripts]\na = 'x:m'\nb = { reference = 'x:n', type = 'console' }\n\
                  [tool.poetry.plugins.'g.h']\nc = 'x'\n";
    let poetry = read(poetry, &[]);
    let programs = poetry.files.iter().filter(|file| file.executable).map(|file| file.path.as_str());
    assert_eq!(programs.collect::<Vec<_>>(), ["bin/a", "bin/b"]);
    assert!(text_of(&poetry, "site/x-1.dist-info/entry_points.txt").contains("[g.h]\nc = x\n"));
}

#[test]
fn names_versions_and_fields_cannot_leave_their_line_or_directory() {
    for name in ["", "../x", "a/b", "x\\ny", "-x", "x-", "a b", "é", &"x".repeat(101)] {
        let project = read(&format!("[project]\nname = \"{name}\"\nversion = '1'\n"), &["src/x/"]);
        assert_eq!(
            (project.name.as_ref(), project.roots.as_slice()),
            (None, ["src".to_owned()].as_slice()),
            "{name}"
        );
        let paths: Vec<&str> = project.files.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(paths, ["sitecustomize.py", "site/envforge_project.pth"]);
        assert!(
            project.notes.iter().any(|note| note.contains("no metadata and no scripts")),
            "{:?}",
            project.notes
        );
    }
    let unnamed = read("[project]\nversion = '1'\n", &["x.py"]);
    assert_eq!(unnamed.notes, ["the project has no name: no metadata and no scripts"]);
    for version in ["1/../../x", "1\\n2", "latest"] {
        let project = read(&format!("[project]\nname = 'x'\nversion = \"{version}\"\n"), &[]);
        assert_eq!(project.version, "0+editable", "{version}");
        assert!(project.notes.iter().any(|note| note.starts_with("invalid version")), "{:?}", project.notes);
    }
    let text = "[project]\nname = 'x'\nversion = '1'\ndescription = \"a\\nRequires-Dist: evil\"\nrequires-python = \"x\\ny\"\n\
                dependencies = [\"good\", \"bad\\nName: y\", \"not a requirement\"]\n";
    let image = ImagePackages { has_dependencies: true, ..ImagePackages::default() };
    let project = editable(text, &Tree::of(&[]), &image).expect("a project");
    let metadata = text_of(&project, "site/x-1.dist-info/METADATA");
    assert_eq!(metadata, "Metadata-Version: 2.2\nName: x\nVersion: 1\nRequires-Dist: good\n");
}

#[test]
fn version_that_a_build_computes_is_not_invented() {
    let project = read("[project]\nname = 'x'\ndynamic = ['version', 'scripts']\n", &[]);
    assert_eq!(project.version, "0+editable");
    assert_eq!(
        project.notes,
        ["`scripts` is computed by a build: not made", "version `0+editable`: a build would compute it"]
    );
    assert!(text_of(&project, "site/x-0+editable.dist-info/METADATA").contains("Version: 0+editable\n"));
}

#[test]
fn compiled_parts_are_named() {
    let with = |lines: &str| format!("{NAMED}[build-system]\n{lines}");
    for (text, names, sign) in [
        (with("build-backend = 'maturin'"), &[][..], "(maturin)"),
        (with("build-backend = 'mesonpy'"), &[], "(meson-python)"),
        (with("build-backend = 'scikit_build_core.build'"), &[], "(scikit-build-core)"),
        (
            with("requires = ['setuptools', 'Cython>=3', 'torch']"),
            &[],
            "(build requirement `cython`, build requirement `torch`)",
        ),
        (
            format!("{NAMED}[[tool.setuptools.ext-modules]]\nname = 'a'\nsources = ['a.c']\n"),
            &[],
            "(`ext-modules`)",
        ),
        (NAMED.to_owned(), &["Cargo.toml"], "(Cargo.toml)"),
    ] {
        let notes = read(&text, names).notes;
        assert_eq!(notes, [format!("compiled parts are not built {sign}")], "{text}");
    }
    let mut tree = Tree::of(&["setup.py"]);
    tree.texts.insert("setup.py".to_owned(), "setup(ext_modules=[CUDAExtension('a', ['a.cu'])])".to_owned());
    let notes = editable(NAMED, &tree, &ImagePackages::default()).expect("a project").notes;
    assert_eq!(notes, ["compiled parts are not built (`ext_modules` in setup.py)"]);
    assert_eq!(read(&with("requires = ['setuptools>=61', 'wheel']"), &[]).notes, [] as [&str; 0]);
}

#[test]
fn modules_that_the_image_hides_are_named() {
    let distributions = ["torch", "vision-ft", "scikit-learn"].map(str::to_owned).into();
    let image = ImagePackages { distributions, has_dependencies: false };
    let tree = Tree::of(&["src/vision_ft/", "src/torch.py", "src/mine/"]);
    let notes = editable(NAMED, &tree, &image).expect("a project").notes;
    assert_eq!(
        notes,
        [
            "`src/torch`: `import torch` is the image's package of that name",
            "`src/vision_ft`: `import vision_ft` is the image's package of that name",
            "the image has a distribution `vision-ft`, too: its metadata stands for the name",
        ]
    );
}

#[test]
fn file_without_a_project_declares_none() {
    let none = |text: &str| editable(text, &Tree::of(&[]), &ImagePackages::default()).expect_err("none");
    assert_eq!(none("[tool.ruff]\nline-length = 100\n"), NoProject::Undeclared);
    assert_eq!(none(""), NoProject::Undeclared);
    let setting = "`[tool.uv] package = false`";
    assert_eq!(none(&format!("{NAMED}[tool.uv]\npackage = false\n")), NoProject::NotAPackage { setting });
    let setting = "`[tool.poetry] package-mode = false`";
    assert_eq!(none("[tool.poetry]\npackage-mode = false\n"), NoProject::NotAPackage { setting });
    let NoProject::Invalid { why } = none("[project]\nname = \n") else { panic!("it is not TOML") };
    assert!(why.starts_with("line 2: "), "{why}");
}
