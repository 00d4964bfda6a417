//! Rows of new releases from what their wheels say, for people to review. A value that nothing says is left out.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::architectures::Targets;
use super::compare::{Published, pins};
use crate::model::compat::Matrix;
use crate::model::compat::tables::{UnmeasuredLibrary, Variant};
use crate::model::versions::{
    ComputeCapability, FrameworkVersion, GlibcVersion, LibraryVersion, Machine, PythonVersion,
};

/// A proposed row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DraftRow {
    /// Its table: `variant`.
    pub(crate) table: &'static str,
    /// `torch 2.99.0 for x86_64`.
    pub(crate) title: String,
    /// Its fields as TOML, one each line.
    pub(crate) lines: Vec<String>,
    /// Required fields that nothing says.
    pub(crate) unknown: Vec<&'static str>,
}

impl DraftRow {
    /// Returns the row as text for its file. A row that lacks a required field is a comment, so that the file stays valid.
    pub(crate) fn text(&self, day: &str) -> String {
        let title = &self.title;
        format!(
            "\n# {title}: drafted on {day} by `maintain refresh --write`, to be reviewed.\n{}",
            self.content()
        )
    }

    /// Whether a file has the row already, drafted on whatever day.
    pub(crate) fn is_in(&self, file: &str) -> bool {
        file.contains(&self.content())
    }

    /// Returns the variant that the row is; `None` for one that lacks a field, or is of another table.
    pub(crate) fn variant(&self) -> Option<Variant> {
        let whole = self.table == "variant" && self.unknown.is_empty();
        whole.then(|| toml::from_str(&self.lines.join("\n")).ok())?
    }

    /// The row below the line with its date.
    fn content(&self) -> String {
        let mut out = String::new();
        if !self.unknown.is_empty() {
            let _ = writeln!(out, "# Not known, to be filled in: {}.", self.unknown.join(", "));
        }
        let mark = if self.unknown.is_empty() { "" } else { "# " };
        let table = format!("[[{}]]", self.table);
        for line in std::iter::once(table.as_str()).chain(self.lines.iter().map(String::as_str)) {
            let _ = writeln!(out, "{mark}{line}");
        }
        out
    }
}

/// A new release of a package for one processor, with what was read of it.
pub(crate) struct NewRelease<'a> {
    /// The framework: `pytorch`.
    pub(crate) framework: &'a str,
    /// The package that carries it: `torch`.
    pub(crate) package: &'a str,
    pub(crate) version: &'a FrameworkVersion,
    pub(crate) machine: Machine,
    /// Its wheels.
    pub(crate) wheels: &'a [&'a Published],
    /// The day of its first upload, if the index lists it.
    pub(crate) released: Option<&'a str>,
    /// The GPU code of its libraries, if it was counted.
    pub(crate) targets: Option<&'a Targets>,
}

/// Returns the row of a new release; `None` without a wheel for the processor.
pub(crate) fn draft(matrix: &Matrix, release: &NewRelease<'_>) -> Option<DraftRow> {
    let NewRelease { framework, package, version, machine, .. } = *release;
    let fitting =
        |python: PythonVersion| release.wheels.iter().any(|one| one.wheel.name.fits(python, machine));
    let pythons: Vec<_> =
        (6..40).map(|minor| PythonVersion { major: 3, minor }).filter(|python| fitting(*python)).collect();
    let of_machine: Vec<_> = release
        .wheels
        .iter()
        .filter(|one| pythons.iter().any(|&python| one.wheel.name.fits(python, machine)))
        .collect();
    let metadata = of_machine.iter().find_map(|one| one.metadata.as_deref());
    let pins = metadata.map(|text| pins(text, &machine.to_string())).unwrap_or_default();
    let pinned = |start: &str| {
        pins.iter().find(|(name, _)| name.starts_with(start)).map(|(_, version)| version.clone())
    };
    let mut row = DraftRow {
        table: "variant",
        title: format!("{package} {version} for {machine}"),
        lines: vec![
            format!("framework = \"{framework}\""),
            format!("version = \"{version}\""),
            format!("machine = \"{machine}\""),
        ],
        unknown: vec!["status"],
    };
    match release.released {
        Some(day) => row.lines.push(format!("released = \"{day}\"")),
        None => row.unknown.insert(0, "released"),
    }
    let runtime = pinned("nvidia-cuda-runtime");
    let toolkit = matrix.components.iter().find(|row| row.versions.get("runtime") == runtime.as_ref());
    match toolkit.filter(|_| runtime.is_some()) {
        Some(components) => {
            let (major, minor) = (components.cuda.major(), components.cuda.minor());
            let whole =
                matrix.variants.iter().any(|row| row.framework == framework && row.cuda.minor.is_none());
            let minor = if whole { String::new() } else { minor.to_string() };
            row.lines.push(format!("cuda = \"cu{major}{minor}\""));
            row.lines.push(format!("toolkit = \"{}\"", components.cuda));
        }
        None => row.unknown.extend(["cuda", "toolkit"]),
    }
    for (field, start) in [("cudnn", "nvidia-cudnn"), ("nccl", "nvidia-nccl"), ("triton", "triton")] {
        row.lines.extend(pinned(start).map(|version| format!("{field} = \"{version}\"")));
    }
    let companions: Vec<_> = ["torch", "torchvision", "torchaudio"]
        .into_iter()
        .filter_map(|name| Some(format!("{name} = \"{}\"", pins.get(name)?)))
        .collect();
    if !companions.is_empty() {
        row.lines.push(format!("companions = {{ {} }}", companions.join(", ")));
    }
    row.lines.extend(runtime.map(|version| format!("cudart = \"{version}\"")));
    row.lines.push(format!("python = {}", list(pythons.iter())));
    let glibc: Option<GlibcVersion> = of_machine.iter().filter_map(|one| one.wheel.name.glibc()).min();
    match glibc {
        Some(glibc) => row.lines.push(format!("min_glibc = \"{glibc}\"")),
        None => row.unknown.push("min_glibc"),
    }
    if let Some(targets) = release.targets.filter(|targets| !targets.arch.is_empty()) {
        let dotted = |all: &BTreeSet<ComputeCapability>| list(all.iter().map(|cc| cc.dotted()));
        row.lines.push(format!("arch = {}", dotted(&targets.arch)));
        if !targets.ptx.is_empty() {
            row.lines.push(format!("ptx = {}", dotted(&targets.ptx)));
        }
    }
    row.lines.extend(["channel = \"default\"", "verified = true", "evidence = \"wheel\""].map(str::to_owned));
    let file = &of_machine.first()?.wheel.file;
    row.lines.push(format!("source = \"package index: METADATA and file name of {file}\""));
    Some(row)
}

/// Returns rows of the cuDNN and NCCL of a variant that the matrix has none of: their GPU code was not read.
pub(crate) fn unmeasured(matrix: &Matrix, variant: &Variant) -> Vec<DraftRow> {
    let (major, machine) = (variant.cuda.major, variant.machine);
    let suffix = format!("-cu{major}");
    let named = |library: &str, version: &LibraryVersion| {
        let is_it = |row: &&UnmeasuredLibrary| row.library == library && row.version == *version;
        let mut rows = matrix.unmeasured.iter().filter(is_it);
        rows.any(|row| row.cuda_major == major && row.machine == machine)
    };
    let cudnn = variant.cudnn.as_ref().filter(|version| {
        let mut rows = matrix.cudnn.iter().filter(|row| row.version == **version && row.machine == machine);
        !rows.any(|row| row.cuda_major == major) && !named("cudnn", version)
    });
    let nccl = variant.nccl.as_ref().filter(|version| {
        let mut rows = matrix.nccl.iter().filter(|row| row.version == **version && row.machine == machine);
        !rows.any(|row| row.package.ends_with(&suffix)) && !named("nccl", version)
    });
    let row = |library: &str, version: &LibraryVersion| DraftRow {
        table: "unmeasured",
        title: format!("{library} {version} of CUDA {major} for {machine}"),
        lines: vec![
            format!("library = \"{library}\""),
            format!("version = \"{version}\""),
            format!("cuda_major = {major}"),
            format!("machine = \"{machine}\""),
            "why = \"its GPU code was not read\"".to_owned(),
            format!("source = \"METADATA of {} {}\"", variant.framework, variant.version),
        ],
        unknown: Vec::new(),
    };
    let cudnn = cudnn.map(|version| row("cudnn", version));
    cudnn.into_iter().chain(nccl.map(|version| row("nccl", version))).collect()
}

/// Returns the row of a release for a processor that its other row has none for: what the wheels say for this one, and from that row what
/// a release has in common on all processors. Whether the libraries that it installs have wheels for this one is for the review.
pub(crate) fn draft_of_sibling(
    matrix: &Matrix,
    release: &NewRelease<'_>,
    sibling: &Variant,
) -> Option<DraftRow> {
    let mut row = draft(matrix, release)?;
    let taken = toml::Table::try_from(sibling).expect("rows hold texts, numbers and lists");
    let own: BTreeSet<String> =
        row.lines.iter().filter_map(|line| Some(line.split_once(" = ")?.0.to_owned())).collect();
    for field in [
        "cuda",
        "released",
        "toolkit",
        "package",
        "install",
        "parts",
        "cudnn",
        "nccl",
        "triton",
        "companions",
        "shared",
        "status",
    ] {
        let value = taken.get(field).filter(|value| !is_empty(value));
        let Some(value) = value.filter(|_| !own.contains(field)) else { continue };
        row.lines.push(format!("{field} = {value}"));
        row.unknown.retain(|unknown| *unknown != field);
    }
    // The CUDA of its compiler is in no name.
    if let Some(at) = row.lines.iter().position(|line| line.starts_with("ptx = ")) {
        let ptx = row.lines.remove(at);
        row.lines.push("unknown_ptx = true".to_owned());
        let which = ptx.trim_start_matches("ptx = ").replace(['[', ']', '"'], "");
        row.lines.push(format!("notes = \"It has PTX for {which}, of an unknown CUDA.\""));
    }
    row.lines.sort_by_key(|line| ORDER.iter().position(|field| line.starts_with(&format!("{field} = "))));
    if let Some(source) = row.lines.iter_mut().find(|line| line.starts_with("source = ")) {
        *source = format!(
            "{}; what is not of one processor as in the row of {}\"",
            source.trim_end_matches('"'),
            sibling.machine
        );
    }
    Some(row)
}

fn is_empty(value: &toml::Value) -> bool {
    value.as_array().is_some_and(Vec::is_empty) || value.as_table().is_some_and(toml::Table::is_empty)
}

/// The fields of a row as the files have them.
pub(super) const ORDER: [&str; 29] = [
    "framework",
    "version",
    "cuda",
    "machine",
    "released",
    "toolkit",
    "package",
    "install",
    "parts",
    "shared",
    "cudart",
    "cudnn",
    "nccl",
    "triton",
    "companions",
    "python",
    "python_freethreaded",
    "arch",
    "ptx",
    "ptx_cuda",
    "unknown_ptx",
    "channel",
    "status",
    "min_glibc",
    "cxx11_abi",
    "verified",
    "evidence",
    "notes",
    "source",
];

pub(super) fn list<T: ToString>(all: impl Iterator<Item = T>) -> String {
    let all: Vec<_> = all.map(|one| format!("\"{}\"", one.to_string())).collect();
    format!("[{}]", all.join(", "))
}

/// Returns how a wheel's name contradicts its METADATA: package, version, or the torch that the name tells.
pub(crate) fn name_contradiction(one: &Published) -> Option<(&'static str, String, String)> {
    let text = one.metadata.as_deref()?;
    let header = |name: &str| {
        let headers = text.split("\n\n").next().unwrap_or_default();
        headers.lines().find_map(|line| line.strip_prefix(name)).map(|value| value.trim().to_owned())
    };
    let name = &one.wheel.name;
    let same = |value: &str| value.to_ascii_lowercase().replace(['_', '.'], "-") == name.package;
    if let Some(says) = header("Name:").filter(|value| !same(value)) {
        return Some(("name", name.package.clone(), says));
    }
    if let Some(says) = header("Version:").filter(|value| *value != name.version) {
        return Some(("version", name.version.clone(), says));
    }
    let (_, local) = name.version.split_once('+')?;
    let (_, told) = local.split_once("torch").or_else(|| local.split_once("pt"))?;
    let told: String = told.chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
    let required = pins(text, name.machines().next().unwrap_or("x86_64")).remove("torch")?;
    let short = |version: &str| version.split('.').take(2).collect::<Vec<_>>().join(".");
    let agrees = if told.contains('.') {
        short(&told) == short(&required)
    } else {
        required.split('+').next().unwrap_or_default().replace('.', "").starts_with(told.as_str())
    };
    (!agrees).then(|| ("torch", told, format!("torch=={required}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::maintain::refresh::listed;

    const METADATA: &str = "Metadata-Version: 2.1\nName: torch\nVersion: 2.99.0\n\
        Requires-Dist: nvidia-cuda-runtime-cu12==12.8.90; platform_system == \"Linux\"\n\
        Requires-Dist: nvidia-cudnn-cu12==9.10.2.21\nRequires-Dist: triton==3.4.0\n\n";

    fn published(file: &str, metadata: &str) -> Published {
        let base = "https://index.example.test/simple/torch/".parse().expect("an address");
        let wheel = listed(&format!("<a href='{file}'>x</a>"), &base).remove(0);
        Published { wheel, metadata: Some(metadata.to_owned()) }
    }

    fn drafted(metadata: &str, targets: Option<&Targets>) -> DraftRow {
        let one = published("torch-2.99.0-cp312-cp312-manylinux_2_28_x86_64.whl", metadata);
        let version = "2.99.0".parse().expect("a version");
        let release = NewRelease {
            framework: "pytorch",
            package: "torch",
            version: &version,
            machine: Machine::X86_64,
            wheels: &[&one],
            released: None,
            targets,
        };
        draft(crate::model::compat::embedded(), &release).expect("a row")
    }

    #[test]
    fn draft_has_what_the_wheel_says_and_names_the_rest() {
        let arch = BTreeSet::from(["9.0".parse().expect("a capability")]);
        let row = drafted(METADATA, Some(&Targets { arch, ..Targets::default() }));
        let text = row.text("2026-11-23");
        for line in [
            "cuda = \"cu128\"",
            "toolkit = \"12.8.1\"",
            "cudnn = \"9.10.2.21\"",
            "triton = \"3.4.0\"",
            "python = [\"3.12\"]",
            "min_glibc = \"2.28\"",
            "arch = [\"9.0\"]",
        ] {
            assert!(text.contains(&format!("# {line}\n")), "{line} is not in {text}");
        }
        assert!(text.contains("to be filled in: released, status."), "{text}");
        assert!(!text.contains("nccl"), "nothing says it: {text}");
        assert!(text.lines().all(|line| line.is_empty() || line.starts_with('#')), "{text}");
    }

    #[test]
    fn draft_has_upload_day_and_companions_that_metadata_pins() {
        let metadata = "Name: vllm\nVersion: 2.99.0\nRequires-Dist: torch==2.14.0\nRequires-Dist: torchaudio==2.11.0\n\n";
        let one = published("vllm-2.99.0-cp38-abi3-manylinux_2_31_x86_64.whl", metadata);
        let version = "2.99.0".parse().expect("a version");
        let release = NewRelease {
            framework: "vllm",
            package: "vllm",
            version: &version,
            machine: Machine::X86_64,
            wheels: &[&one],
            released: Some("2026-11-20"),
            targets: None,
        };
        let row = draft(crate::model::compat::embedded(), &release).expect("a row");
        assert!(row.lines.contains(&"released = \"2026-11-20\"".to_owned()), "{row:?}");
        let companions = "companions = { torch = \"2.14.0\", torchaudio = \"2.11.0\" }";
        assert!(row.lines.contains(&companions.to_owned()), "{row:?}");
        assert_eq!(row.unknown, ["status", "cuda", "toolkit"]);
        assert!(drafted(METADATA, None).lines.iter().all(|line| !line.starts_with("companions")));
    }

    #[test]
    fn draft_for_another_processor_takes_what_a_release_has_in_common() {
        let one = published(
            "cupy_cuda12x-13.6.0-cp312-cp312-manylinux2014_aarch64.whl",
            "Name: cupy-cuda12x\nVersion: 13.6.0\n\n",
        );
        let version = "13.6.0".parse().expect("a version");
        let all = &|text: &str| BTreeSet::from([text.parse().expect("a capability")]);
        let release = NewRelease {
            framework: "cupy",
            package: "cupy-cuda12x",
            version: &version,
            machine: Machine::Aarch64,
            wheels: &[&one],
            released: None,
            targets: Some(&Targets { arch: all("9.0"), ptx: all("9.0"), ptx_isa: None }),
        };
        let matrix = crate::model::compat::embedded();
        let of = |row: &&Variant| {
            row.package.as_deref() == Some("cupy-cuda12x")
                && row.version == version
                && row.machine == Machine::X86_64
        };
        let sibling = matrix.variants.iter().find(of).expect("a row of x86_64");
        let row = draft_of_sibling(matrix, &release, sibling).expect("a row");
        assert_eq!(row.unknown, [""; 0], "{row:?}");
        let text = format!("schema = 1\n{}", row.text("2026-11-27"));
        let table: toml::Table = text.parse().expect("TOML");
        let read: Variant = table["variant"][0].clone().try_into().expect("a row");
        assert_eq!(
            (&read.install, read.machine, &read.toolkit),
            (&sibling.install, Machine::Aarch64, &sibling.toolkit)
        );
        assert!(read.unknown_ptx && read.ptx.is_empty(), "{read:?}");
        assert_eq!((read.python.len(), read.released), (1, sibling.released.clone()));
    }

    #[test]
    fn row_is_found_whenever_it_was_drafted_and_another_one_is_not() {
        let row = drafted(METADATA, None);
        let file = format!("schema = 1\n{}", row.text("2026-11-22"));
        assert!(row.is_in(&file) && !row.is_in("schema = 1\n"));
        let other = drafted(&METADATA.replace("9.10.2.21", "9.11.0.98"), None);
        assert!(!other.is_in(&file), "{file}");
    }

    #[test]
    fn unknown_runtime_leaves_the_cuda_out() {
        let row = drafted("Name: torch\nVersion: 2.99.0\n\n", None);
        assert_eq!(row.unknown, ["released", "status", "cuda", "toolkit"]);
        assert!(
            row.lines.iter().all(|line| !line.starts_with("cuda") && !line.starts_with("arch")),
            "{row:?}"
        );
    }

    #[test]
    fn name_that_contradicts_the_metadata_is_found() {
        let wheel = "flash_attn-2.8.3+cu12torch2.8cxx11abiTRUE-cp312-cp312-linux_x86_64.whl";
        let head = "Name: flash-attn\nVersion: 2.8.3+cu12torch2.8cxx11abiTRUE\n";
        let told = |torch: &str| {
            name_contradiction(&published(wheel, &format!("{head}Requires-Dist: torch=={torch}\n\n")))
        };
        assert_eq!(told("2.8.0"), None);
        let lie = told("2.7.1").expect("another torch");
        assert_eq!(lie, ("torch", "2.8".to_owned(), "torch==2.7.1".to_owned()));
        let version = name_contradiction(&published(wheel, "Name: flash_attn\nVersion: 2.8.2\n\n"));
        assert_eq!(version.map(|(field, ..)| field), Some("version"));
        let name = name_contradiction(&published(wheel, "Name: other\nVersion: 2.8.3\n\n"));
        assert_eq!(name.map(|(field, ..)| field), Some("name"));
    }
}
