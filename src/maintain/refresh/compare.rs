//! Compares rows with published releases: differences and new releases.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::Serialize;

use super::architectures::Targets;
use super::page::IndexWheel;
use crate::model::compat::tables::{Channel, Status, Variant};
use crate::model::compat::{Matrix, Row as _};
use crate::model::versions::{ComputeCapability, FrameworkVersion, Machine};

/// One wheel of a release, with its metadata.
#[derive(Debug, Clone)]
pub(crate) struct Published {
    /// The wheel.
    pub(crate) wheel: IndexWheel,
    /// Its `METADATA`, if it was read.
    pub(crate) metadata: Option<String>,
}

/// A difference between the index and the matrix.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub(crate) enum MatrixDifference {
    /// A field differs.
    Differs {
        /// The row.
        row: String,
        /// Its field.
        field: &'static str,
        /// The row's value.
        row_says: String,
        /// The index's value.
        index_says: String,
        /// The address.
        from: String,
    },
    /// A release older than the newest row that has neither a row nor a reason.
    Missing {
        /// The package.
        package: String,
        /// The release.
        version: String,
    },
    /// Wheels for a processor, of a release that has rows or a reason, without one for that processor.
    Unlisted {
        /// The package.
        package: String,
        /// The release.
        version: String,
        /// The processor.
        machine: String,
        /// Tags of Python.
        pythons: BTreeSet<String>,
    },
    /// A release newer than the newest row, with the values of the index.
    New {
        /// The package.
        package: String,
        /// The release.
        version: String,
        /// Its wheels for Linux by processor: tags of Python.
        wheels: BTreeMap<String, BTreeSet<String>>,
        /// Its CUDA pins.
        pins: BTreeMap<String, String>,
    },
}

impl fmt::Display for MatrixDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Differs { row, field, row_says, index_says, from } => {
                write!(f, "{row}\n- {field} = {row_says}\n+ {field} = {index_says}    # {from}")
            }
            Self::Missing { package, version } => {
                write!(
                    f,
                    "missing: {package} {version} has neither a row nor a `known_version` with the reason"
                )
            }
            Self::Unlisted { package, version, machine, pythons } => {
                let pythons: Vec<_> = pythons.iter().map(String::as_str).collect();
                write!(
                    f,
                    "missing: {package} {version} has wheels for {machine} ({}), and neither a row nor `rowless_wheels` with the reason",
                    pythons.join(" ")
                )
            }
            Self::New { package, version, wheels, pins } => {
                write!(f, "new: {package} {version}")?;
                for (machine, pythons) in wheels {
                    let pythons: Vec<_> = pythons.iter().map(String::as_str).collect();
                    write!(f, "\n+ {machine}: {}", pythons.join(" "))?;
                }
                for (name, version) in pins {
                    write!(f, "\n+ {name} = {version}")?;
                }
                write!(f, "\n  not in the index: CUDA variant, GPU targets, bundled cuDNN and NCCL")
            }
        }
    }
}

/// Compares the wheels of one package with its rows of the default channel, and finds new releases.
pub(crate) fn findings(package: &str, rows: &[&Variant], published: &[Published]) -> Vec<MatrixDifference> {
    let mut found = Vec::new();
    for row in rows.iter().filter(|row| row.channel == Channel::Default && row.verified) {
        compare(row, published, &mut found);
    }
    let mut new: BTreeMap<FrameworkVersion, Vec<&Published>> = BTreeMap::new();
    for one in published.iter().filter(|one| !one.wheel.yanked) {
        if let Some(version) = newer(&one.wheel, rows) {
            new.entry(version).or_default().push(one);
        }
    }
    found.extend(new.iter().map(|(version, wheels)| release(package, version, wheels)));
    found
}

/// Finds releases of a package, as a wheel or as source, that the matrix has neither a row of nor a reason for. Those newer than
/// every row are reported as new.
pub(crate) fn missing(
    matrix: &Matrix,
    framework: &str,
    package: &str,
    releases: &BTreeSet<FrameworkVersion>,
) -> Vec<MatrixDifference> {
    let rows = || matrix.variants.iter().filter(|row| row.framework == framework);
    let Some(newest) = rows().map(|row| &row.version).max() else { return Vec::new() };
    let reason =
        |version: &FrameworkVersion| matrix.known_versions_of(framework).any(|row| row.covers(version));
    let row = |version: &FrameworkVersion| rows().any(|row| row.version == *version);
    let missing = |version: &&FrameworkVersion| *version < newest && !row(version) && !reason(version);
    let releases = releases.iter().filter(missing);
    releases
        .map(|version| MatrixDifference::Missing {
            package: package.to_owned(),
            version: version.to_string(),
        })
        .collect()
}

/// Wheels of releases that no row names for their processor, by release and processor, and no reason.
pub(crate) fn unlisted<'a>(
    matrix: &Matrix,
    package: &str,
    rows: &[&Variant],
    published: &'a [Published],
) -> BTreeMap<(FrameworkVersion, Machine), Vec<&'a Published>> {
    let mut all: BTreeMap<_, Vec<_>> = BTreeMap::new();
    let Some(framework) = rows.first().map(|row| row.framework.as_str()) else { return all };
    let Some(newest) = rows.iter().map(|row| &row.version).max() else { return all };
    for one in published.iter().filter(|one| !one.wheel.yanked) {
        let Some(version) = release_of(&one.wheel).filter(|version| version <= newest) else { continue };
        if matrix.known_versions_of(framework).any(|row| row.covers(&version)) {
            continue;
        }
        for machine in [Machine::X86_64, Machine::Aarch64] {
            let name = machine.to_string();
            let is_of = one.wheel.name.machines().any(|other| other == name);
            let has_row = || rows.iter().any(|row| row.version == version && row.machine == machine);
            let has_reason =
                || matrix.rowless_wheels.iter().any(|row| row.covers(package, &version, machine));
            if is_of && !has_row() && !has_reason() {
                all.entry((version.clone(), machine)).or_default().push(one);
            }
        }
    }
    all
}

/// The same as differences.
pub(crate) fn unlisted_findings(
    matrix: &Matrix,
    package: &str,
    rows: &[&Variant],
    published: &[Published],
) -> Vec<MatrixDifference> {
    let all = unlisted(matrix, package, rows, published).into_iter();
    all.map(|((version, machine), wheels)| MatrixDifference::Unlisted {
        package: package.to_owned(),
        version: version.to_string(),
        machine: machine.to_string(),
        pythons: wheels.iter().map(|one| one.wheel.name.python_tag()).collect(),
    })
    .collect()
}

/// The release of a wheel; `None` for a try, a repair with letters, or one whose `+` names a variant.
fn release_of(wheel: &IndexWheel) -> Option<FrameworkVersion> {
    let version = wheel.name.version.as_str();
    let plain = version.split(".post").next().unwrap_or_default();
    let is_release = !plain.contains(|c: char| c.is_ascii_alphabetic() || c == '+') && !version.contains('+');
    is_release.then(|| version.parse().ok())?
}

/// The version of a wheel, if it is a release after those of the rows.
pub(crate) fn newer(wheel: &IndexWheel, rows: &[&Variant]) -> Option<FrameworkVersion> {
    let version = wheel.name.version.as_str();
    // One with letters is a try or a repair, and a `+` names a variant: neither is a release of the default channel.
    let is_release = !version.contains(|c: char| c.is_ascii_alphabetic() || c == '+');
    let version = is_release.then(|| version.parse().ok())??;
    rows.iter().all(|row| row.version < version).then_some(version)
}

fn compare(row: &Variant, published: &[Published], found: &mut Vec<MatrixDifference>) {
    let version = row.version.to_string();
    let of_release: Vec<_> = published.iter().filter(|one| one.wheel.name.version == version).collect();
    let mut differs = |field, row_says: &dyn fmt::Display, index_says: String, from: String| {
        let row_says = row_says.to_string();
        found.push(MatrixDifference::Differs { row: row.label(), field, row_says, index_says, from });
    };
    if of_release.is_empty() {
        return differs(
            "version",
            &row.version,
            "no such release".to_owned(),
            "the project's page".to_owned(),
        );
    }
    let mut there: Vec<_> = of_release.iter().filter(|one| !one.wheel.yanked).collect();
    if there.is_empty() {
        // A yanked release is available by exact version only, like an unlisted row.
        if row.status != Status::Unlisted {
            let says = format!("{:?}", row.status).to_lowercase();
            return differs("status", &says, "withdrawn".to_owned(), of_release[0].wheel.file.clone());
        }
        there = of_release.iter().collect();
    }
    for python in &row.python {
        if !there.iter().any(|one| one.wheel.name.fits(*python, row.machine)) {
            differs("python", python, format!("no wheel for {}", row.machine), format!("release {version}"));
        }
    }
    let fitting =
        there.iter().filter(|one| row.python.iter().any(|&python| one.wheel.name.fits(python, row.machine)));
    for one in fitting {
        let file = &one.wheel.file;
        if let Some(glibc) = one.wheel.name.glibc().filter(|glibc| *glibc > row.min_glibc) {
            differs("min_glibc", &row.min_glibc, glibc.to_string(), file.clone());
        }
        let Some(text) = &one.metadata else { continue };
        let pins = pins_with(text, &row.machine.to_string(), &extras(row));
        let mut pinned = |field, says: Option<String>, names: &[&str]| {
            let of_index = pins.iter().find(|(name, _)| names.iter().any(|start| name.starts_with(start)));
            if let (Some(says), Some((_, version))) = (says, of_index)
                && says != *version
            {
                differs(field, &says, version.clone(), file.clone());
            }
        };
        pinned("cudnn", row.cudnn.as_ref().map(ToString::to_string), &["nvidia-cudnn-cu"]);
        pinned("nccl", row.nccl.as_ref().map(ToString::to_string), &["nvidia-nccl-cu"]);
        pinned("cudart", row.cudart.clone(), &["nvidia-cuda-runtime"]);
        pinned("triton", row.triton.clone(), &["triton"]);
    }
}

/// Compares the libraries of a row's wheel with the GPU targets of the row.
pub(crate) fn target_findings(row: &Variant, file: &str, targets: &Targets) -> Vec<MatrixDifference> {
    fn list<'a>(all: impl IntoIterator<Item = &'a ComputeCapability>) -> String {
        let all: BTreeSet<_> = all.into_iter().collect();
        if all.is_empty() {
            return "none".to_owned();
        }
        all.into_iter().map(|one| one.dotted()).collect::<Vec<_>>().join(" ")
    }
    let arch = row.arch.as_ref().map_or_else(|| "not established".to_owned(), list);
    let fields = [("arch", arch, list(&targets.arch)), ("ptx", list(&row.ptx), list(&targets.ptx))];
    // The row lists PTX of an unknown CUDA apart from its targets.
    let differs = |(field, row_says, index_says): &(&str, String, String)| {
        let is_noted = *field == "ptx" && row.unknown_ptx && !targets.ptx.is_empty();
        !is_noted && row_says != index_says
    };
    let differs = fields.into_iter().filter(differs);
    differs
        .map(|(field, row_says, index_says)| {
            let (row, from) = (row.label(), format!("libraries of {file}"));
            MatrixDifference::Differs { row, field, row_says, index_says, from }
        })
        .collect()
}

fn release(package: &str, version: &FrameworkVersion, published: &[&Published]) -> MatrixDifference {
    let mut wheels: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for one in published {
        for machine in one.wheel.name.machines() {
            wheels.entry(machine.to_owned()).or_default().insert(one.wheel.name.python_tag());
        }
    }
    let read = published.iter().find_map(|one| Some((one, one.metadata.as_deref()?)));
    let pins = read.map(|(one, text)| {
        let machine = one.wheel.name.machines().next().unwrap_or("x86_64");
        pins(text, machine)
    });
    let ours = |name: &str| name.starts_with("nvidia-") || name.starts_with("cuda-") || name == "triton";
    let pins = pins.unwrap_or_default().into_iter().filter(|(name, _)| ours(name)).collect();
    MatrixDifference::New { package: package.to_owned(), version: version.to_string(), wheels, pins }
}

/// Returns the `==` pins of a wheel's metadata for Linux and that processor, without extras.
pub(super) fn pins(metadata: &str, machine: &str) -> BTreeMap<String, String> {
    pins_with(metadata, machine, &[])
}

/// A requirement of METADATA.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Requirement {
    /// The package.
    pub(super) name: String,
    /// Its extras: `nvrtc` of `cuda-toolkit[nvrtc]`.
    pub(super) extras: Vec<String>,
    /// The conditions without blanks: `==13.*`; empty: any version.
    pub(super) conditions: String,
}

/// Returns the requirements of a wheel's metadata for Linux, that processor and these extras.
pub(super) fn requirements(metadata: &str, machine: &str, extras: &[&str]) -> Vec<Requirement> {
    let headers = metadata.split("\n\n").next().unwrap_or_default();
    let lines = headers.lines().filter_map(|line| line.strip_prefix("Requires-Dist:"));
    lines.filter_map(|line| requirement(line.trim(), machine, extras)).collect()
}

/// Returns the `==` pins of a wheel's metadata for Linux, that processor and these extras.
pub(super) fn pins_with(metadata: &str, machine: &str, extras: &[&str]) -> BTreeMap<String, String> {
    requirements(metadata, machine, extras).into_iter().filter_map(pin).collect()
}

/// Returns the extras with which a row installs its package: `and-cuda` of `tensorflow[and-cuda]==2.16.1`.
pub(super) fn extras(row: &Variant) -> Vec<&str> {
    let first = row.install.first().map_or("", String::as_str);
    let inside = first.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    inside.map_or_else(Vec::new, |(names, _)| names.split(',').map(str::trim).collect())
}

fn requirement(line: &str, machine: &str, extras: &[&str]) -> Option<Requirement> {
    let (what, marker) = line.split_once(';').unwrap_or((line, ""));
    let marker = marker.replace('\'', "\"");
    let other = |name: &str, value: &str| {
        marker.contains(&format!("{name} == \"")) && !marker.contains(&format!("{name} == \"{value}\""))
    };
    let extra = marker.split_once("extra ==").map(|(_, rest)| rest.trim_start().trim_start_matches('"'));
    let requested = |rest: &str| extras.iter().any(|name| rest.starts_with(&format!("{name}\"")));
    if extra.is_some_and(|rest| !requested(rest))
        || other("platform_machine", machine)
        || other("platform_system", "Linux")
        || other("sys_platform", "linux")
    {
        return None;
    }
    let end = what.find(|c: char| !(c.is_ascii_alphanumeric() || "-_.".contains(c))).unwrap_or(what.len());
    let (name, rest) = what.split_at(end);
    let inside = rest.trim().strip_prefix('[').and_then(|rest| rest.split_once(']'));
    let (own, conditions) = inside.unwrap_or(("", rest.trim()));
    Some(Requirement {
        name: name.to_ascii_lowercase().replace('_', "-"),
        extras: own.split(',').map(str::trim).filter(|one| !one.is_empty()).map(str::to_owned).collect(),
        conditions: conditions.trim().trim_start_matches('(').trim_end_matches(')').replace(' ', ""),
    })
}

fn pin(requirement: Requirement) -> Option<(String, String)> {
    let Requirement { name, conditions, .. } = requirement;
    // A compatible release of Triton is one of its patches: `~=3.9.0`.
    let patch = || conditions.strip_prefix("~=").filter(|_| name == "triton");
    let version = conditions.strip_prefix("==").or_else(patch)?.to_owned();
    Some((name, version))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::maintain::refresh::listed;

    const METADATA: &str = "Metadata-Version: 2.1\nName: torch\n\
        Requires-Dist: nvidia-cudnn-cu12==9.10.2.21; platform_system == \"Linux\" and platform_machine == \"x86_64\"\n\
        Requires-Dist: nvidia-nccl-cu12 (==2.27.3) ; platform_machine == 'x86_64'\n\
        Requires-Dist: nvidia-cuda-runtime-cu12==12.8.90; platform_machine == \"aarch64\"\n\
        Requires-Dist: triton==3.4.0; extra == \"compile\"\n\
        Requires-Dist: filelock\n\nRequires-Dist: nvidia-nccl-cu12==0\n";

    fn row() -> Variant {
        let of = |row: &&Variant| {
            row.framework == "pytorch" && row.version.to_string() == "2.8.0" && row.machine == Machine::X86_64
        };
        let found = crate::model::compat::embedded()
            .variants
            .iter()
            .filter(of)
            .find(|row| row.channel == Channel::Default);
        found.expect("torch 2.8.0 of the default channel").clone()
    }

    fn page(of: &[(&str, &str)]) -> Vec<Published> {
        let base = "https://index.example.test/simple/torch/".parse().expect("an address");
        let one = |(version, rest): &(&str, &str)| {
            let text = format!("<a {rest} href='torch-{version}-PY.whl'>");
            let pythons = ["cp39-cp39", "cp310-cp310", "cp311-cp311", "cp312-cp312", "cp313-cp313"];
            let files = pythons.map(|python| text.replace("PY", &format!("{python}-manylinux_2_28_x86_64")));
            listed(&files.concat(), &base)
        };
        let wheels = of.iter().flat_map(one);
        wheels.map(|wheel| Published { wheel, metadata: Some(METADATA.to_owned()) }).collect()
    }

    #[test]
    fn ptx_of_an_unknown_cuda_is_not_a_difference() {
        let set = |all: &[&str]| all.iter().map(|one| one.parse().expect("a capability")).collect();
        let targets = |ptx: &[&str]| Targets { arch: set(&["9.0"]), ptx: set(ptx), ptx_isa: None };
        let fields = |row: &Variant, targets: &Targets| -> Vec<_> {
            let found = target_findings(row, "x.whl", targets);
            found.iter().map(ToString::to_string).filter(|text| text.contains("ptx")).collect()
        };
        let mut row = row();
        row.arch = Some(vec!["9.0".parse().expect("a capability")]);
        assert_eq!(fields(&row, &targets(&["9.0"])).len(), 1, "the row has no PTX");
        row.unknown_ptx = true;
        assert_eq!(target_findings(&row, "x.whl", &targets(&["9.0"])), []);
        row.arch = Some(vec!["8.0".parse().expect("a capability")]);
        assert_eq!(target_findings(&row, "x.whl", &targets(&["9.0"])).len(), 1, "`arch` is compared");
    }

    #[test]
    fn matching_row_has_no_differences() {
        assert_eq!(findings("torch", &[&row()], &page(&[("2.8.0", "")])), []);
    }

    #[test]
    fn every_difference_is_reported_with_both_values() {
        let cudnn = Variant { cudnn: Some("9.1.0.70".parse().expect("a version")), ..row() };
        let cudnn = Variant { min_glibc: "2.17".parse().expect("a version"), ..cudnn };
        let found = findings("torch", &[&cudnn], &page(&[("2.8.0", "")]));
        let text = found.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
        assert!(text.contains("- cudnn = 9.1.0.70\n+ cudnn = 9.10.2.21    # torch-2.8.0-cp39"), "{text}");
        assert!(text.contains("- min_glibc = 2.17\n+ min_glibc = 2.28"), "{text}");
        assert!(
            !text.contains("cudart") && !text.contains("triton"),
            "another processor's, an extra's: {text}"
        );

        for (published, word) in
            [(page(&[("2.8.0", "data-yanked=''")]), "withdrawn"), (page(&[("2.7.0", "")]), "no such release")]
        {
            let found = findings("torch", &[&row()], &published);
            assert_eq!(found.len(), 1, "{found:?}");
            assert!(found[0].to_string().contains(word), "{}", found[0]);
        }
        let more = Variant {
            python: vec!["3.11".parse().expect("a version"), "3.14".parse().expect("a version")],
            ..row()
        };
        let found = findings("torch", &[&more], &page(&[("2.8.0", "")]));
        assert_eq!(found[0].to_string().lines().nth(1), Some("- python = 3.14"));
    }

    #[test]
    fn pins_of_the_installed_extra_are_compared() {
        let triton = Some("3.3.0".to_owned());
        let install =
            |text: &str| Variant { triton: triton.clone(), install: vec![text.to_owned()], ..row() };
        let found = findings("torch", &[&install("torch[compile]==2.8.0")], &page(&[("2.8.0", "")]));
        let text = found.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
        assert!(text.contains("- triton = 3.3.0\n+ triton = 3.4.0"), "{text}");
        for other in ["torch==2.8.0", "torch[opt]==2.8.0", "torch[comp]==2.8.0"] {
            assert_eq!(findings("torch", &[&install(other)], &page(&[("2.8.0", "")])), [], "{other}");
        }
    }

    #[test]
    fn release_without_row_or_reason_is_reported() {
        let releases = |texts: &[&str]| texts.iter().map(|text| text.parse().expect("a version")).collect();
        let reported = |matrix: &Matrix, texts: &[&str]| {
            let found = missing(matrix, "pytorch", "torch", &releases(texts));
            found.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let matrix = crate::model::compat::embedded();
        let all = ["0.4.1", "1.0.0", "1.6.0", "1.7.1", "2.7.0", "2.7.5", "2.99.0"];
        let text = |version: &str| {
            format!("missing: torch {version} has neither a row nor a `known_version` with the reason")
        };
        assert_eq!(reported(matrix, &all), [text("0.4.1"), text("2.7.5")]);
        let mut without = matrix.clone();
        without.known_versions.retain(|row| !row.covers(&"1.6.0".parse().expect("a version")));
        without.variants.retain(|row| row.version.to_string() != "2.7.0");
        let gone = [text("0.4.1"), text("1.6.0"), text("2.7.0"), text("2.7.5")];
        assert_eq!(reported(&without, &all), gone);
    }

    #[test]
    fn wheels_for_a_processor_without_a_row_or_a_reason_are_reported() {
        let base = "https://index.example.test/simple/torch/".parse().expect("an address");
        let text = [
            "2.8.0-cp312-cp312-manylinux_2_28_x86_64",
            "2.8.0-cp312-cp312-manylinux_2_28_aarch64",
            "2.8.0+cpu-cp312-cp312-manylinux_2_28_aarch64",
            "2.99.0-cp312-cp312-manylinux_2_28_aarch64",
            "1.6.0-cp38-cp38-manylinux2014_aarch64",
            "2.8.0-cp312-cp312-macosx_11_0_arm64",
        ]
        .map(|name| format!("<a href='torch-{name}.whl'>"))
        .concat();
        let wheels = listed(&text, &base).into_iter();
        let published: Vec<_> = wheels.map(|wheel| Published { wheel, metadata: None }).collect();
        let reported = |matrix: &Matrix| {
            let found = unlisted_findings(matrix, "torch", &[&row()], &published);
            found.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let mut matrix = crate::model::compat::embedded().clone();
        matrix.rowless_wheels.clear();
        assert_eq!(
            reported(&matrix),
            [
                "missing: torch 2.8.0 has wheels for aarch64 (cp312-cp312), and neither a row nor `rowless_wheels` with the reason"
            ]
        );
        matrix.rowless_wheels.push(crate::model::compat::tables::RowlessWheels {
            framework: "pytorch".to_owned(),
            package: "torch".to_owned(),
            machine: Machine::Aarch64,
            cuda: None,
            version: "2.0.0".parse().expect("a version"),
            last: Some("2.9.0".parse().expect("a version")),
            what: "without CUDA".to_owned(),
            source: "a test".to_owned(),
        });
        assert_eq!(reported(&matrix), [""; 0]);
    }

    #[test]
    fn new_release_is_proposed_with_values_of_the_index() {
        let published =
            page(&[("2.8.0", ""), ("2.99.0", ""), ("2.99.1rc1", ""), ("2.98.0", "data-yanked=''")]);
        let found = findings("torch", &[&row()], &published);
        let [MatrixDifference::New { version, wheels, pins, .. }] = found.as_slice() else {
            panic!("{found:?}")
        };
        assert_eq!(version, "2.99.0");
        assert_eq!(wheels["x86_64"].len(), 5);
        assert_eq!(pins.keys().collect::<Vec<_>>(), ["nvidia-cudnn-cu12", "nvidia-nccl-cu12"]);
    }
}
