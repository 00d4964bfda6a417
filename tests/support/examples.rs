//! The folders of examples/: what each README says to run, and what it then says without a GPU.

use std::path::{Path, PathBuf};

/// One example below examples/.
pub(crate) struct Example {
    /// Its name: `pytorch/ddp`.
    pub(crate) name: String,
    /// Where its README and output are.
    pub(crate) folder: PathBuf,
    /// Where its `envforge.toml` is: here its command runs.
    pub(crate) project: PathBuf,
    /// What runs in the image, for a shell.
    pub(crate) command: String,
    /// The lines it prints without a GPU.
    pub(crate) expected: Vec<String>,
}

/// The folders below another one, sorted.
fn folders(below: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(below).expect("a folder").map(|entry| entry.expect("an entry").path());
    let mut folders: Vec<_> = entries.filter(|path| path.is_dir()).collect();
    folders.sort();
    folders
}

/// The projects, sorted by name.
pub(crate) fn projects() -> Vec<PathBuf> {
    let mut all = folders(&Path::new(env!("CARGO_MANIFEST_DIR")).join("examples"));
    all.retain(|folder| folder.join("envforge.toml").is_file());
    all
}

/// The examples that run in an image, sorted by name: a project, or each folder in it.
pub(crate) fn examples() -> Vec<Example> {
    let of_project = |project: PathBuf| {
        let own = project.join("README.md").is_file();
        let all = if own { vec![project.clone()] } else { folders(&project) };
        all.into_iter().map(move |folder| example(folder, project.clone()))
    };
    projects().into_iter().flat_map(of_project).collect()
}

fn example(folder: PathBuf, project: PathBuf) -> Example {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let name = folder.strip_prefix(root).expect("below examples").to_string_lossy().into_owned();
    let read = |file: &str| {
        let text = std::fs::read_to_string(folder.join(file));
        text.unwrap_or_else(|error| panic!("{name}/{file}: {error}"))
    };
    let readme = read("README.md");
    let command = readme.lines().find_map(|line| line.strip_prefix("    envforge shell -- "));
    let command = command.unwrap_or_else(|| panic!("{name} has no command")).to_owned();
    let expected = read("expected-cpu.txt").lines().map(str::to_owned).collect();
    Example { name, folder, project, command, expected }
}

/// Asserts that these lines were said, in this order; loggers may speak between them.
#[track_caller]
pub(crate) fn assert_said(example: &Example, stdout: &str, stderr: &str) {
    let mut lines = stdout.lines();
    for wanted in &example.expected {
        assert!(lines.any(|line| line == wanted), "{}: `{wanted}` in {stdout}{stderr}", example.name);
    }
}
