//! The folders of examples/: what each README says to run, and what it then says without a GPU.

use std::path::PathBuf;

/// One folder below examples/.
pub(crate) struct Example {
    /// Its name.
    pub(crate) name: String,
    /// Where it lies.
    pub(crate) folder: PathBuf,
    /// What runs in the image, for a shell.
    pub(crate) command: String,
    /// The lines it prints without a GPU.
    pub(crate) expected: Vec<String>,
}

/// Those with an `envforge.toml`, sorted by name.
pub(crate) fn examples() -> Vec<Example> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("examples");
    let folders = std::fs::read_dir(root).expect("the examples").map(|entry| entry.expect("an entry").path());
    let mut folders: Vec<_> = folders.filter(|folder| folder.join("envforge.toml").is_file()).collect();
    folders.sort();
    folders.into_iter().map(example).collect()
}

fn example(folder: PathBuf) -> Example {
    let name = folder.file_name().expect("a name").to_string_lossy().into_owned();
    let read = |file: &str| {
        let text = std::fs::read_to_string(folder.join(file));
        text.unwrap_or_else(|error| panic!("{name}/{file}: {error}"))
    };
    let readme = read("README.md");
    let line = readme.lines().find(|line| line.starts_with("    ")).expect("a command").trim();
    let command = line.split_once(" -- ").map_or(line, |(_, command)| command).to_owned();
    let expected = read("expected-cpu.txt").lines().map(str::to_owned).collect();
    Example { name, folder, command, expected }
}

/// Asserts that these lines were said, in this order; loggers may speak between them.
#[track_caller]
pub(crate) fn assert_said(example: &Example, stdout: &str, stderr: &str) {
    let mut lines = stdout.lines();
    for wanted in &example.expected {
        assert!(lines.any(|line| line == wanted), "{}: `{wanted}` in {stdout}{stderr}", example.name);
    }
}
