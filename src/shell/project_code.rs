//! The project's code in a container: files for its Python, in the home directory, unpacked before the command by a shell of the
//! image. Pure.
//!
//! The programs of an image run `/opt/env/bin/python`, which reads neither `~/.venv` nor a user's site-packages: a variable leads it
//! to the files, which add the project behind everything else.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::model::editable::{EditableFile, variables};
use crate::model::image::paths::HOME;
use crate::model::sha256::sha256_hex;

/// Unpacks the files and becomes the command.
const SCRIPT: &str = include_str!("../../templates/project/open.sh");
/// The directory of the files, below the home directory.
const FOLDER: &str = ".envforge/project";
/// The most bytes of the packed files, as text: an argument of a program has at most 128 KiB.
const MOST: usize = 100 << 10;

/// The files of a project, packed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProjectCode {
    /// Their name: it follows from their content.
    name: String,
    packed: String,
}

impl ProjectCode {
    /// Packs the files; `None`: they are too large.
    pub(crate) fn of(files: &[EditableFile]) -> std::io::Result<Option<Self>> {
        let mut tar = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::best()));
        for file in files {
            let mut header = tar::Header::new_gnu();
            header.set_mode(if file.executable { 0o755 } else { 0o644 });
            header.set_size(file.text.len() as u64);
            tar.append_data(&mut header, &file.path, file.text.as_bytes())?;
        }
        let packed = STANDARD.encode(tar.into_inner()?.finish()?);
        let name = format!("project-{}", &sha256_hex(packed.as_bytes())[..16]);
        Ok((packed.len() <= MOST).then_some(Self { name, packed }))
    }

    /// Returns the command behind the one that unpacks the files.
    pub(crate) fn before(&self, command: Vec<String>) -> Vec<String> {
        let own = ["/bin/sh", "-c", SCRIPT, "envforge", &self.name, &self.packed];
        own.into_iter().map(str::to_owned).chain(command).collect()
    }
}

/// Returns the variables that lead programs to the project, for a container with those of its image and those it is given; the last
/// of a name counts. A program that another tool starts in the container has them, too.
pub(crate) fn project_variables(image: &[String], given: &[String]) -> Vec<String> {
    let all: BTreeMap<&str, &str> =
        image.iter().chain(given).filter_map(|variable| variable.split_once('=')).collect();
    variables(&format!("{HOME}/{FOLDER}"), |name| all.get(name).copied())
}

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "runs the script with files of the test")]

    use std::process::Command;

    use camino::Utf8Path;

    use super::*;

    fn file(path: &str, text: &str) -> EditableFile {
        EditableFile { path: path.to_owned(), text: text.to_owned(), executable: path.starts_with("bin/") }
    }

    fn code(files: &[EditableFile]) -> ProjectCode {
        ProjectCode::of(files).expect("in memory").expect("small")
    }

    /// Runs a shell script behind the files with that home.
    fn run(home: &Utf8Path, code: &ProjectCode, script: &str) -> (String, String) {
        let command = code.before(["/bin/sh", "-c", script].map(str::to_owned).to_vec());
        let mut program = Command::new(&command[0]);
        program.args(&command[1..]).env("HOME", home).env_remove("PYTHONPATH").env("PATH", "/usr/bin:/bin");
        let output = program.output().expect("a shell");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        (text(&output.stdout), text(&output.stderr))
    }

    #[test]
    fn files_are_unpacked_once_and_replaced_when_they_change() {
        let folder = tempfile::tempdir().expect("a folder");
        let home = Utf8Path::from_path(folder.path()).expect("UTF-8");
        let first = code(&[file("sitecustomize.py", "1"), file("bin/train", "#!/bin/sh\necho trained\n")]);
        let (out, error) =
            run(home, &first, "cat ~/.envforge/project/sitecustomize.py; train; echo $PYTHONPATH");
        assert_eq!(out, format!("1trained\n{home}/.envforge/project"), "{error}");
        assert_eq!(error, "");
        std::fs::write(home.join(".envforge/project/mark"), "").expect("a file");
        assert_eq!(
            run(home, &first, "ls ~/.envforge/project/mark && echo kept").0.lines().last(),
            Some("kept")
        );
        std::fs::write(home.join(".envforge/host_key"), "").expect("a file");
        let second = code(&[file("sitecustomize.py", "2")]);
        assert_eq!(run(home, &second, "cat ~/.envforge/project/sitecustomize.py").0, "2");
        let (out, _) = run(home, &second, "ls ~/.envforge; ls ~/.envforge/project/");
        assert_eq!(
            out,
            format!("host_key\nproject\n{}\nsitecustomize.py", second.name),
            "old files are removed"
        );
    }

    #[test]
    fn exit_code_and_arguments_are_those_of_the_command() {
        let folder = tempfile::tempdir().expect("a folder");
        let home = Utf8Path::from_path(folder.path()).expect("UTF-8");
        let files = code(&[file("sitecustomize.py", "")]);
        let words = ["/bin/sh", "-c", "echo \"$#:$1\"; exit 7", "x", "a b", "$HOME"].map(str::to_owned);
        let command = files.before(words.to_vec());
        let output =
            Command::new(&command[0]).args(&command[1..]).env("HOME", home).output().expect("a shell");
        assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(7), b"2:a b\n".as_slice()));
        let closed = home.join("closed");
        std::fs::write(&closed, "").expect("a file");
        let (out, error) = run(&closed, &files, "echo still runs");
        assert_eq!(out, "still runs");
        assert!(error.contains("cannot write to"), "{error}");
    }

    #[test]
    fn script_that_the_image_hides_is_named_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let home = Utf8Path::from_path(folder.path()).expect("UTF-8");
        let files = code(&[file("bin/ls", "#!/bin/sh\n"), file("bin/train", "#!/bin/sh\n")]);
        let (_, error) = run(home, &files, "true");
        assert!(error.contains("script `ls` of the project is hidden by /usr/bin/ls"), "{error}");
        assert!(!error.contains("train"), "{error}");
        assert_eq!(run(home, &files, "true").1, "");
    }

    #[test]
    fn variables_keep_those_of_the_image_and_of_the_user() {
        let text = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let folder = "/home/dev/.envforge/project";
        let image = text(&["PATH=/opt/env/bin:/bin", "PYTHONPATH=/a"]);
        let expected = [format!("PYTHONPATH={folder}:/a"), format!("PATH=/opt/env/bin:/bin:{folder}/bin")];
        assert_eq!(project_variables(&image, &[]), expected);
        let given = text(&["PYTHONPATH=/b", "PATH=/c", "PYTHONPATH="]);
        assert_eq!(
            project_variables(&image, &given),
            [format!("PYTHONPATH={folder}"), format!("PATH=/c:{folder}/bin")]
        );
        assert_eq!(project_variables(&[], &[]), [format!("PYTHONPATH={folder}")]);
    }

    #[test]
    fn files_larger_than_an_argument_are_refused() {
        let noise: String = (0..6000).map(|number| sha256_hex(format!("{number}").as_bytes())).collect();
        assert_eq!(ProjectCode::of(&[file("a", &noise)]).expect("in memory"), None);
    }
}
