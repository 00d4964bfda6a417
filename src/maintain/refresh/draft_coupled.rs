//! Rows of new releases of coupled packages (xformers, torchao), for people to review. Which torch their libraries load with is not
//! in METADATA: it is left out.

use super::compare::Published;
use super::draft::{DraftRow, list};
use crate::model::compat::Matrix;
use crate::model::compat::coupled::{AbiClass, CoupledRelease};
use crate::model::compat::tables::{Channel, Variant};
use crate::model::versions::{FrameworkVersion, Machine, PythonVersion};

/// Returns the row of a new release; `None` without a wheel for Linux. Its class is that of the row before where METADATA bears it out: a
/// range that it states, or wheels without libraries.
pub(crate) fn draft_coupled(
    package: &str,
    version: &FrameworkVersion,
    wheels: &[&Published],
    released: Option<&str>,
    (before, matrix): (&CoupledRelease, &Matrix),
) -> Option<DraftRow> {
    let on = |machine: Machine| {
        let fits = move |one: &&&Published| (6..40).any(|minor| one.wheel.name.fits(python(minor), machine));
        wheels.iter().filter(fits).collect::<Vec<_>>()
    };
    let (x86, arm) = (on(Machine::X86_64), on(Machine::Aarch64));
    let of_machine = if x86.is_empty() { &arm } else { &x86 };
    let first = of_machine.first()?;
    let mut row = DraftRow {
        table: "coupled_release",
        title: format!("{package} {version}"),
        lines: vec![format!("package = \"{package}\""), format!("versions = [\"{version}\"]")],
        unknown: Vec::new(),
    };
    match released {
        Some(day) => row.lines.push(format!("released = \"{day}\"")),
        None => row.unknown.push("released"),
    }
    row.lines.push("place = \"default\"".to_owned());
    let torch = of_machine.iter().find_map(|one| requirement(one.metadata.as_deref()?, "torch"));
    row.lines
        .extend(torch.as_ref().filter(|text| !text.is_empty()).map(|text| format!("torch = \"{text}\"")));
    let tag = first.wheel.name.python_tag();
    let torch = torch.as_deref().unwrap_or_default();
    let is_bounded = before.abi == AbiClass::Range && before.loads.is_empty() && !torch.is_empty();
    let is_plain = before.abi == AbiClass::None && tag.ends_with("-none");
    let classes = [(torch.starts_with("=="), "pinned"), (is_bounded, "range"), (is_plain, "none")];
    match classes.iter().find(|(is_it, _)| *is_it) {
        Some((_, class)) => row.lines.push(format!("abi = \"{class}\"")),
        None => row.unknown.push("abi"),
    }
    if before.cuda_major.is_some() {
        let release = torch.strip_prefix("==").and_then(|text| text.parse::<FrameworkVersion>().ok());
        let is_it = |one: &&Variant| {
            one.framework == "pytorch"
                && Some(&one.version) == release.as_ref()
                && one.channel == Channel::Default
        };
        let major = matrix.variants.iter().find(is_it).map(|one| one.cuda.major);
        row.lines.extend(major.map(|major| format!("cuda_major = {major}")));
    }
    if let Some(from) = tag.strip_suffix("-abi3").and_then(|tag| tag.strip_prefix("cp3")) {
        row.lines.push(format!("python_from = \"3.{from}\""));
    } else if !tag.ends_with("-none") {
        let fits = |python: &PythonVersion| {
            of_machine.iter().any(|one| {
                [Machine::X86_64, Machine::Aarch64]
                    .iter()
                    .any(|machine| one.wheel.name.fits(*python, *machine))
            })
        };
        let pythons: Vec<_> = (6..40).map(python).filter(fits).collect();
        row.lines.push(format!("python = {}", list(pythons.iter())));
    }
    if x86.is_empty() != arm.is_empty() {
        let machine = if arm.is_empty() { Machine::X86_64 } else { Machine::Aarch64 };
        row.lines.push(format!("machine = \"{machine}\""));
    }
    row.lines.push(format!("source = \"package index: METADATA and file name of {}\"", first.wheel.file));
    Some(row)
}

fn python(minor: u8) -> PythonVersion {
    PythonVersion { major: 3, minor }
}

/// Returns the requirement of METADATA on a package, without extras and markers; empty: any version.
fn requirement(metadata: &str, package: &str) -> Option<String> {
    let headers = metadata.split("\n\n").next().unwrap_or_default();
    let lines = headers.lines().filter_map(|line| line.strip_prefix("Requires-Dist:"));
    let plain = lines.filter(|line| !line.contains("extra ==")).filter_map(|line| line.split(';').next());
    plain.map(str::trim).find_map(|line| {
        let end =
            line.find(|c: char| !(c.is_ascii_alphanumeric() || "-_.".contains(c))).unwrap_or(line.len());
        let versions = line[end..].trim().trim_start_matches('(').trim_end_matches(')');
        (line[..end].eq_ignore_ascii_case(package)).then(|| versions.replace(' ', ""))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::maintain::refresh::listed;

    /// The row of the release before, of that class.
    fn before(class: &str) -> CoupledRelease {
        let text = format!(
            "package = \"torchthing\"\nversions = [\"1.2.2\"]\nplace = \"default\"\nabi = \"{class}\"\nsource = \"a test\""
        );
        toml::from_str(&text).expect("a row")
    }

    #[test]
    fn class_of_the_row_before_is_kept_where_metadata_bears_it_out() {
        let base = "https://index.example.test/simple/x/".parse().expect("an address");
        let of = |file: &str, torch: &str, class: &str| {
            let metadata = Some(format!("Name: torchthing\nRequires-Dist: torch{torch}\n\n"));
            let wheel = listed(&format!("<a href='{file}'>x</a>"), &base).remove(0);
            let one = Published { wheel, metadata };
            let version = "1.2.3".parse().expect("a version");
            let before = before(class);
            let row = draft_coupled(
                "torchthing",
                &version,
                &[&one],
                Some("2026-11-01"),
                (&before, &Matrix::default()),
            );
            let row = row.expect("a row");
            row.lines.iter().find(|line| line.starts_with("abi = ")).cloned().ok_or(row.unknown)
        };
        let (library, plain) = (
            "torchthing-1.2.3-cp312-cp312-manylinux_2_28_x86_64.whl",
            "torchthing-1.2.3-py3-none-manylinux_2_28_x86_64.whl",
        );
        assert_eq!(of(library, ">=2.11", "range"), Ok("abi = \"range\"".to_owned()));
        assert_eq!(of(plain, ">=2.1", "none"), Ok("abi = \"none\"".to_owned()));
        assert_eq!(of(library, "==2.11", "undeclared"), Ok("abi = \"pinned\"".to_owned()));
        // Libraries are new in it, no range is stated, or which torch it loads with was read of the wheels before.
        for (file, torch, class) in [
            (library, ">=2.1", "none"),
            (library, "", "range"),
            (library, ">=2.1", "undeclared"),
            (library, ">=2.1", "stable"),
        ] {
            assert_eq!(of(file, torch, class), Err(vec!["abi"]), "{file} {torch} {class}");
        }
    }

    fn drafted(files: &[&str], metadata: &str, released: Option<&str>) -> Option<DraftRow> {
        let base = "https://index.example.test/simple/x/".parse().expect("an address");
        let links: Vec<_> = files.iter().map(|file| format!("<a href='{file}'>x</a>")).collect();
        let page = links.concat();
        let published = |wheel| Published { wheel, metadata: Some(metadata.to_owned()) };
        let wheels: Vec<_> = listed(&page, &base).into_iter().map(published).collect();
        let wheels: Vec<_> = wheels.iter().collect();
        let version = "1.2.3".parse().expect("a version");
        draft_coupled("torchthing", &version, &wheels, released, (&before("undeclared"), &Matrix::default()))
    }

    #[test]
    fn pinned_release_is_a_complete_row() {
        let metadata = "Name: torchthing\nRequires-Dist: torchdata\nRequires-Dist: torch (==2.15.0)\n\nRequires-Dist: torch==1\n";
        let files = [
            "torchthing-1.2.3-cp311-cp311-manylinux_2_28_x86_64.whl",
            "torchthing-1.2.3-cp312-cp312-manylinux_2_28_x86_64.whl",
        ];
        let row = drafted(&files, metadata, Some("2026-11-01")).expect("a row");
        assert!(row.unknown.is_empty(), "{row:?}");
        let text = row.text("2026-11-25");
        for line in [
            "[[coupled_release]]",
            "versions = [\"1.2.3\"]",
            "released = \"2026-11-01\"",
            "torch = \"==2.15.0\"",
            "abi = \"pinned\"",
            "python = [\"3.11\", \"3.12\"]",
            "machine = \"x86_64\"",
        ] {
            assert!(text.lines().any(|one| one == line), "{line} is not in {text}");
        }
    }

    #[test]
    fn unknown_coupling_is_left_out_and_the_row_is_a_comment() {
        let metadata = "Name: torchthing\nRequires-Dist: torch>=2.10; extra == \"gpu\"\n\n";
        let files = [
            "torchthing-1.2.3-cp310-abi3-manylinux_2_28_x86_64.whl",
            "torchthing-1.2.3-cp310-abi3-manylinux_2_28_aarch64.whl",
        ];
        let row = drafted(&files, metadata, None).expect("a row");
        assert_eq!(row.unknown, ["released", "abi"]);
        let text = row.text("2026-11-25");
        assert!(text.contains("# python_from = \"3.10\"\n"), "{text}");
        assert!(!text.contains("torch =") && !text.contains("machine") && !text.contains("loads"), "{text}");
        assert!(text.lines().all(|line| line.is_empty() || line.starts_with('#')), "{text}");
        assert_eq!(drafted(&["torchthing-1.2.3-cp310-abi3-win_amd64.whl"], metadata, None), None);
    }
}
