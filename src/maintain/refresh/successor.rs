//! Rows of new releases from the row of the release before: what METADATA, file names and libraries say, and our choice of CUDA's
//! libraries where METADATA leaves it as it was. Nothing else is taken over.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr as _;

use pep440_rs::{Version, VersionSpecifiers};

use super::architectures::Targets;
use super::compare::{extras, pins_with, requirements};
use super::draft::{DraftRow, ORDER, list};
use super::page::IndexWheel;
use crate::model::compat::Matrix;
use crate::model::compat::tables::{Channel, Components, Variant};
use crate::model::versions::{FrameworkVersion, Machine, PythonVersion};

/// A package that carries a release: the framework's own, or one of its name that it requires in its own version.
#[derive(Debug, Clone)]
pub(crate) struct FamilyMember {
    /// Its normalized name.
    pub(crate) package: String,
    /// Its wheels of the release that a processor can load.
    pub(crate) wheels: Vec<IndexWheel>,
    /// METADATA of one of them.
    pub(crate) metadata: String,
    /// The extras with which it is required.
    pub(crate) extras: Vec<String>,
}

/// A new release for one processor, and the row of the release before it.
pub(crate) struct Succession<'a> {
    pub(crate) version: &'a FrameworkVersion,
    pub(crate) machine: Machine,
    /// The day of its first upload, if the index lists it.
    pub(crate) released: Option<&'a str>,
    /// Its packages, the framework's own first.
    pub(crate) family: &'a [FamilyMember],
    /// The GPU code of its libraries, if it was counted.
    pub(crate) targets: Option<&'a Targets>,
    /// The row of the release before.
    pub(crate) before: &'a Variant,
    /// The packages of that release.
    pub(crate) family_before: &'a [FamilyMember],
}

/// Where the CUDA of a release is known from.
enum CudaSource<'a> {
    /// METADATA pins the parts of this toolkit.
    Pins(&'a Components),
    /// METADATA pins the torch of this row.
    Torch(&'a Variant),
    /// METADATA requires no more of CUDA than that of the release before: our choice among what it allows stands.
    Before,
    /// Its own PTX was made by the compiler of this toolkit.
    Ptx(&'a Components),
}

/// Returns the row of a new release; `None` without a wheel for the processor.
pub(crate) fn draft_of_successor(matrix: &Matrix, succession: &Succession<'_>) -> Option<DraftRow> {
    let Succession { before, version, machine, .. } = succession;
    let own = succession.family.first()?;
    let file = &own.wheels.first()?.file;
    let mut row = Draft { fields: BTreeMap::new(), unknown: Vec::new(), notes: Vec::new() };
    row.text("framework", &before.framework);
    row.text("version", version);
    row.text("machine", machine);
    match succession.released {
        Some(day) => row.text("released", &day),
        None => row.unknown.push("released"),
    }
    let pythons = pythons(succession);
    if pythons.is_empty() {
        row.unknown.push("python");
    }
    row.fields.insert("python", list(pythons.iter()));
    let free = freethreaded(succession, &pythons);
    if !free.is_empty() {
        row.fields.insert("python_freethreaded", list(free.iter()));
    }
    cuda(matrix, succession, &mut row);
    companions(matrix, succession, &mut row);
    carried(succession, &mut row);
    code(matrix, succession, &mut row);
    for (field, value) in [("channel", "default"), ("status", "stable"), ("evidence", "wheel")] {
        row.text(field, &value);
    }
    row.fields.insert("verified", "true".to_owned());
    let tag = own.wheels.iter().filter_map(|wheel| wheel.name.glibc()).min();
    let glibc = tag.into_iter().chain([before.min_glibc.clone()]).max();
    row.text("min_glibc", &glibc.unwrap_or_else(|| before.min_glibc.clone()));
    let source = format!(
        "package index: METADATA, file names and libraries of {file}; what METADATA leaves open as in the row of {}",
        before.version
    );
    row.text("source", &source);
    Some(row.finish(format!("{} {version} {} for {machine}", own.package, before.cuda)))
}

/// A row that is being drafted: its fields as TOML.
struct Draft {
    fields: BTreeMap<&'static str, String>,
    unknown: Vec<&'static str>,
    notes: Vec<String>,
}

impl Draft {
    fn text(&mut self, field: &'static str, value: &dyn ToString) {
        self.fields.insert(field, toml::Value::String(value.to_string()).to_string());
    }

    fn finish(mut self, title: String) -> DraftRow {
        if !self.notes.is_empty() {
            let notes = self.notes.join(" ");
            self.text("notes", &notes);
        }
        let fields = &self.fields;
        let line = |field: &&str| Some(format!("{field} = {}", fields.get(*field)?));
        let lines = ORDER.iter().filter_map(line).collect();
        DraftRow { table: "variant", title, lines, unknown: self.unknown }
    }
}

/// Whether a wheel is for every Python from some on, by its tags.
fn is_for_all(wheel: &IndexWheel) -> bool {
    let tag = wheel.name.python_tag();
    tag.ends_with("-none") || tag.contains("abi3")
}

/// Returns the Pythons with a wheel of every package, which METADATA of all accepts. Where no name tells the last one, it is one of the
/// release before.
fn pythons(succession: &Succession<'_>) -> Vec<PythonVersion> {
    let family = succession.family;
    let is_named = family.iter().any(|member| !member.wheels.iter().all(is_for_all));
    let fits = |python: &PythonVersion| {
        let loads = |wheel: &IndexWheel| wheel.name.fits(*python, succession.machine);
        family.iter().all(|member| member.wheels.iter().any(loads) && accepts(&member.metadata, *python))
    };
    let all = (6..40).map(|minor| PythonVersion { major: 3, minor });
    all.filter(|python| (is_named || succession.before.python.contains(python)) && fits(python)).collect()
}

/// Whether `Requires-Python` of METADATA accepts a Python.
fn accepts(metadata: &str, python: PythonVersion) -> bool {
    let headers = metadata.split("\n\n").next().unwrap_or_default();
    let says = headers.lines().find_map(|line| line.strip_prefix("Requires-Python:"));
    let says = says.and_then(|text| VersionSpecifiers::from_str(text.trim()).ok());
    // The newest patch of the line: conditions such as `>=3.9.7` are about the first ones.
    let newest = Version::from_str(&format!("{python}.99")).ok();
    says.zip(newest).is_none_or(|(says, newest)| says.contains(&newest))
}

/// Returns the Pythons without the interpreter's lock that every package with a wheel for each Python has one for: `3.14t`.
fn freethreaded(succession: &Succession<'_>, pythons: &[PythonVersion]) -> Vec<String> {
    let named: Vec<_> =
        succession.family.iter().filter(|member| !member.wheels.iter().all(is_for_all)).collect();
    let has = |python: &&PythonVersion| {
        let tag = format!("-cp{}{}t", python.major, python.minor);
        !named.is_empty()
            && named
                .iter()
                .all(|member| member.wheels.iter().any(|wheel| wheel.name.python_tag().ends_with(&tag)))
    };
    pythons.iter().filter(has).map(|python| format!("{python}t")).collect()
}

/// How packages of CUDA's libraries begin; other packages of the vendor are themes and bindings.
const CUDA_LIBRARIES: [&str; 5] = ["nvidia-cu", "nvidia-nccl-", "nvidia-nv", "nvidia-libnv", "cuda-toolkit"];

/// What the packages of a release require of CUDA's libraries, the extras of `cuda-toolkit` one by one.
fn cuda_requirements(family: &[FamilyMember], machine: Machine) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for member in family {
        // Some name CUDA's libraries in an extra alone, which our choice does not ask for.
        let headers = member.metadata.split("\n\n").next().unwrap_or_default();
        let extras: Vec<_> =
            headers.lines().filter_map(|line| line.strip_prefix("Provides-Extra:")).map(str::trim).collect();
        for one in requirements(&member.metadata, &machine.to_string(), &extras) {
            if !CUDA_LIBRARIES.iter().any(|start| one.name.starts_with(start)) {
                continue;
            }
            let parts = if one.extras.is_empty() { vec![String::new()] } else { one.extras };
            all.extend(parts.iter().map(|part| format!("{}[{part}]{}", one.name, one.conditions)));
        }
    }
    all
}

/// The `==` pins of all packages of a release.
fn pins(succession: &Succession<'_>) -> BTreeMap<String, String> {
    let of = |member: &FamilyMember| {
        let extras: Vec<_> = member.extras.iter().map(String::as_str).collect();
        pins_with(&member.metadata, &succession.machine.to_string(), &extras)
    };
    succession.family.iter().flat_map(of).collect()
}

/// The row of the default index of a torch that is pinned.
fn torch_row<'a>(matrix: &'a Matrix, version: &str, machine: Machine) -> Option<&'a Variant> {
    let version: FrameworkVersion = version.parse().ok()?;
    let is_it = |row: &&Variant| {
        row.framework == "pytorch"
            && row.version == version
            && row.machine == machine
            && row.channel == Channel::Default
    };
    matrix.variants.iter().find(is_it)
}

fn cuda_source<'a>(matrix: &'a Matrix, succession: &Succession<'_>) -> Option<CudaSource<'a>> {
    let pins = pins(succession);
    let of_start =
        |start: &str| pins.iter().find(|(name, _)| name.starts_with(start)).map(|(_, version)| version);
    let whole = |row: &&Components| Some(row.cuda.to_string()) == pins.get("cuda-toolkit").cloned();
    if let Some(row) = matrix.components.iter().find(whole) {
        return Some(CudaSource::Pins(row));
    }
    if let Some(runtime) = of_start("nvidia-cuda-runtime") {
        // Updates of a toolkit may have the same runtime: the other pins tell them apart.
        let agreeing = |row: &&Components| {
            let is_pinned = |version: &&String| pins.values().any(|pin| pin == *version);
            (row.versions.values().filter(is_pinned).count(), row.cuda.clone())
        };
        let same = matrix.components.iter().filter(|row| row.versions.get("runtime") == Some(runtime));
        let row = same.max_by_key(agreeing);
        return row.map(CudaSource::Pins);
    }
    if let Some(torch) = pins.get("torch") {
        return torch_row(matrix, torch, succession.machine).map(CudaSource::Torch);
    }
    let required = cuda_requirements(succession.family, succession.machine);
    let required_before = cuda_requirements(succession.family_before, succession.machine);
    if !required.is_empty() {
        return required.is_subset(&required_before).then_some(CudaSource::Before);
    }
    // What requires nothing of CUDA has all of it inside.
    let is_alone = succession.before.parts.is_empty() && succession.before.install.len() < 2;
    let isa = succession.targets.and_then(|targets| targets.ptx_isa.as_ref()).filter(|_| is_alone)?;
    let compiler = matrix.compilers.iter().find(|row| row.ptx_isa == *isa)?;
    let same = |row: &&Components| {
        (row.cuda.major(), row.cuda.minor()) == (compiler.cuda.major(), compiler.cuda.minor())
    };
    matrix.components.iter().filter(same).min_by_key(|row| row.cuda.clone()).map(CudaSource::Ptx)
}

/// CUDA, its toolkit and libraries.
fn cuda(matrix: &Matrix, succession: &Succession<'_>, row: &mut Draft) {
    let before = succession.before;
    let Some(source) = cuda_source(matrix, succession) else {
        row.unknown.extend(["cuda", "toolkit"]);
        return;
    };
    let toolkit = match &source {
        CudaSource::Pins(components) | CudaSource::Ptx(components) => &components.cuda,
        CudaSource::Torch(torch) => &torch.toolkit,
        CudaSource::Before => &before.toolkit,
    };
    let minor = before.cuda.minor.map_or_else(String::new, |_| toolkit.minor().to_string());
    row.text("cuda", &format!("cu{}{minor}", toolkit.major()));
    row.text("toolkit", toolkit);
    if let (CudaSource::Pins(components), true) = (&source, before.cudart.is_some())
        && let Some(runtime) = components.versions.get("runtime")
    {
        row.text("cudart", runtime);
    }
    let pins = pins(succession);
    // What our choice pins beside it is said of the libraries that the row before says it of.
    let installed = |start: &str, was: bool| {
        let mut all = before.install.iter().filter_map(|one| one.split_once("=="));
        all.find(|(name, _)| was && name.starts_with(start)).map(|(_, version)| version.to_owned())
    };
    let other = match &source {
        CudaSource::Torch(torch) => Some(*torch),
        CudaSource::Before => Some(before),
        CudaSource::Pins(_) | CudaSource::Ptx(_) => None,
    };
    let is_named =
        |name: &str, start: &str| name == start || (start.ends_with("-cu") && name.starts_with(start));
    let (cudnn, nccl) = (before.cudnn.is_some(), before.nccl.is_some());
    for (field, start, was, otherwise) in [
        (
            "cudnn",
            "nvidia-cudnn-cu",
            cudnn,
            other.and_then(|one| one.cudnn.as_ref().map(ToString::to_string)),
        ),
        ("nccl", "nvidia-nccl-cu", nccl, other.and_then(|one| one.nccl.as_ref().map(ToString::to_string))),
        ("triton", "triton", before.triton.is_some(), other.and_then(|one| one.triton.clone())),
    ] {
        let pinned = pins.iter().find(|(name, _)| is_named(name, start)).map(|(_, version)| version.clone());
        if let Some(version) = pinned.or(otherwise).or_else(|| installed(start, was)) {
            row.text(field, &version);
        }
    }
    if matches!(source, CudaSource::Ptx(_)) {
        row.notes.push("CUDA by the version of its PTX.".to_owned());
    }
}

/// The companions that the release before has: pinned ones, and the newest of the matrix that requires this release.
fn companions(matrix: &Matrix, succession: &Succession<'_>, row: &mut Draft) {
    let pins = pins(succession);
    let version = Version::from_str(&succession.version.to_string()).ok();
    let newest = |package: &String| {
        let accepts = |requires: &str| {
            VersionSpecifiers::from_str(requires)
                .is_ok_and(|says| version.as_ref().is_some_and(|one| says.contains(one)))
        };
        let of = matrix.companions.iter().filter(|one| one.package == *package);
        let fitting = of.filter(|one| one.requires.as_deref().is_some_and(accepts));
        fitting.max_by_key(|one| one.version.parse::<FrameworkVersion>().ok()).map(|one| one.version.clone())
    };
    let found = succession.before.companions.keys().filter_map(|package| {
        let release = pins.get(package).cloned().or_else(|| newest(package))?;
        Some(format!("{package} = {}", toml::Value::String(release)))
    });
    let found: Vec<_> = found.collect();
    if !found.is_empty() {
        row.fields.insert("companions", format!("{{ {} }}", found.join(", ")));
    }
}

/// What a release has from the one before as long as its CUDA is known: how it is installed, and what its wheels contain.
fn carried(succession: &Succession<'_>, row: &mut Draft) {
    let before = succession.before;
    let taken = toml::Table::try_from(before).expect("rows hold texts, numbers and lists");
    for field in ["package", "parts", "shared", "cxx11_abi"] {
        let is_empty = |value: &toml::Value| value.as_array().is_some_and(Vec::is_empty);
        if let Some(value) = taken.get(field).filter(|value| !is_empty(value)) {
            row.fields.insert(field, value.to_string());
        }
    }
    let own = succession.family.first().map(|member| member.package.as_str()).unwrap_or_default();
    let next = |requirement: &String| {
        let name = requirement.split(['[', '=', '<', '>', '~', '!']).next().unwrap_or_default();
        let old = format!("=={}", before.version);
        if name == own {
            requirement.replace(&old, &format!("=={}", succession.version))
        } else {
            requirement.clone()
        }
    };
    if !before.install.is_empty() {
        row.fields.insert("install", list(before.install.iter().map(next)));
    }
}

/// GPU code: of its libraries; of what pins torch and has none, that of torch, as in the row before.
fn code(matrix: &Matrix, succession: &Succession<'_>, row: &mut Draft) {
    let Some(targets) = succession.targets.filter(|targets| !targets.arch.is_empty()) else {
        let before = succession.before;
        let of = |version: &String| torch_row(matrix, version, succession.machine)?.arch.clone();
        let is_of_torch =
            before.companions.get("torch").and_then(of).is_some_and(|arch| Some(arch) == before.arch);
        let pins = pins(succession);
        if let Some(arch) = pins.get("torch").filter(|_| is_of_torch).and_then(of) {
            row.fields.insert("arch", list(arch.iter().map(|cc| cc.dotted())));
            row.notes.push("`arch` is that of its torch.".to_owned());
        }
        return;
    };
    row.fields.insert("arch", list(targets.arch.iter().map(|cc| cc.dotted())));
    if targets.ptx.is_empty() {
        return;
    }
    let ptx = list(targets.ptx.iter().map(|cc| cc.dotted()));
    let toolkit = row.fields.get("toolkit").map(|text| text.trim_matches('"').to_owned());
    let toolkit = toolkit.and_then(|text| text.parse::<crate::model::versions::ToolkitVersion>().ok());
    let compiler = matrix.compilers.iter().find(|one| Some(&one.ptx_isa) == targets.ptx_isa.as_ref());
    let same_major =
        compiler.zip(toolkit).filter(|(compiler, toolkit)| compiler.cuda.major() == toolkit.major());
    match same_major {
        Some((compiler, toolkit)) if compiler.cuda.minor() <= toolkit.minor() => {
            row.fields.insert("ptx", ptx);
            if compiler.cuda.minor() < toolkit.minor() {
                let cuda = format!("{}.{}", compiler.cuda.major(), compiler.cuda.minor());
                row.text("ptx_cuda", &cuda);
            }
        }
        _ => {
            row.fields.insert("unknown_ptx", "true".to_owned());
            row.notes
                .push(format!("It has PTX for {}, of an unknown CUDA.", ptx.replace(['[', ']', '"'], "")));
        }
    }
}

/// The extras of a row's own requirement, for its family.
pub(crate) fn own_extras(row: &Variant) -> Vec<String> {
    extras(row).into_iter().map(str::to_owned).collect()
}

/// Whether conditions of a requirement are about a version or its line: `<=0.12.0,>=0.12.0`, `==26.10.*`.
pub(crate) fn is_own_version(conditions: &str, version: &FrameworkVersion) -> bool {
    let (own, line) = (version.to_string(), format!("{}.{}.*", version.major(), version.minor()));
    let bare = |one: &str| one.trim_start_matches(['=', '<', '>', '~']).to_owned();
    conditions.split(',').map(bare).any(|one| one == own || one == line)
}

/// The requirements of a member on packages of the same name in its own version: name and extras.
pub(crate) fn relatives(
    member: &FamilyMember,
    own: &str,
    version: &FrameworkVersion,
    machine: Machine,
) -> Vec<(String, Vec<String>)> {
    let extras: Vec<_> = member.extras.iter().map(String::as_str).collect();
    let all = requirements(&member.metadata, &machine.to_string(), &extras).into_iter();
    let of_it = all.filter(|one| one.name.contains(own) && is_own_version(&one.conditions, version));
    of_it.map(|one| (one.name, one.extras)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::maintain::refresh::listed;
    use crate::model::compat::{embedded, faults};

    fn member(package: &str, files: &[&str], metadata: &str, extras: &[&str]) -> FamilyMember {
        let base = "https://index.example.test/simple/x/".parse().expect("an address");
        let links: Vec<_> = files.iter().map(|file| format!("<a href='{file}'>x</a>")).collect();
        FamilyMember {
            package: package.to_owned(),
            wheels: listed(&links.concat(), &base),
            metadata: format!("Name: {package}\n{metadata}\n\n"),
            extras: extras.iter().map(|&extra| extra.to_owned()).collect(),
        }
    }

    /// The row of that release and CUDA for `x86_64`.
    fn before(framework: &str, version: &str, cuda: &str) -> Variant {
        let is_it = |row: &&Variant| {
            row.framework == framework
                && row.version.to_string() == version
                && row.cuda.to_string() == cuda
                && row.machine == Machine::X86_64
                && row.channel == Channel::Default
        };
        embedded().variants.iter().find(is_it).expect("a row").clone()
    }

    fn drafted(
        before: &Variant,
        version: &str,
        (family, family_before): (&[FamilyMember], &[FamilyMember]),
        targets: Option<&Targets>,
    ) -> DraftRow {
        let succession = Succession {
            version: &version.parse().expect("a version"),
            machine: Machine::X86_64,
            released: Some("2027-01-02"),
            family,
            targets,
            before,
            family_before,
        };
        draft_of_successor(embedded(), &succession).expect("a row")
    }

    /// The row, which the lint has nothing against.
    fn linted(row: &DraftRow) -> Variant {
        let variant = row.variant().unwrap_or_else(|| panic!("{row:#?}"));
        let mut matrix = embedded().clone();
        matrix.variants.push(variant.clone());
        let found: Vec<_> = faults(&matrix).iter().map(ToString::to_string).collect();
        assert_eq!(found, [""; 0], "{row:#?}");
        variant
    }

    fn targets(arch: &[&str], ptx: &[&str], isa: Option<&str>) -> Targets {
        let set = |all: &[&str]| all.iter().map(|text| text.parse().expect("a capability")).collect();
        Targets { arch: set(arch), ptx: set(ptx), ptx_isa: isa.map(str::to_owned) }
    }

    #[test]
    fn pins_of_a_toolkit_settle_the_row() {
        let metadata = "Requires-Python: >=3.11\n\
            Requires-Dist: cuda-toolkit[cublas,cudart]==13.2.2; platform_system == \"Linux\"\n\
            Requires-Dist: nvidia-cudnn-cu13==9.26.0.51\nRequires-Dist: nvidia-nccl-cu13==2.30.7\n\
            Requires-Dist: triton~=3.9.0; platform_system == \"Linux\"";
        let files = ["cp310-cp310", "cp313-cp313", "cp314-cp314", "cp314-cp314t"]
            .map(|tag| format!("torch-2.99.0-{tag}-manylinux_2_28_x86_64.whl"));
        let family = [member("torch", &files.each_ref().map(String::as_str), metadata, &[])];
        let before = before("pytorch", "2.15.0", "cu132");
        let row = drafted(&before, "2.99.0", (&family, &[]), Some(&targets(&["9.0"], &[], None)));
        let read = linted(&row);
        let says = |text: Option<String>| text.unwrap_or_default();
        assert_eq!((read.cuda.to_string().as_str(), read.toolkit.to_string().as_str()), ("cu132", "13.2.2"));
        assert_eq!((says(read.cudart), says(read.triton)), ("13.2.86".to_owned(), "3.9.0".to_owned()));
        assert_eq!(list(read.python.iter()), "[\"3.13\", \"3.14\"]", "METADATA refuses 3.10");
        assert_eq!(read.python_freethreaded, ["3.14t"]);
        assert_eq!(read.released, "2027-01-02");
    }

    #[test]
    fn row_of_the_pinned_torch_settles_cuda() {
        let metadata = "Requires-Python: <3.14,>=3.11\nRequires-Dist: torch==2.14.0\n\
            Requires-Dist: torchvision==0.29.0\nRequires-Dist: torchaudio==2.11.0";
        let family = [member("vllm", &["vllm-0.99.0-cp38-abi3-manylinux_2_28_x86_64.whl"], metadata, &[])];
        let before = before("vllm", "0.33.0", "cu130");
        let row = drafted(&before, "0.99.0", (&family, &[]), Some(&targets(&["9.0"], &[], None)));
        let read = linted(&row);
        assert_eq!(
            (&read.toolkit, &read.cudnn, &read.triton),
            (&before.toolkit, &before.cudnn, &before.triton)
        );
        assert_eq!(read.install, ["vllm==0.99.0"]);
        assert_eq!(list(read.python.iter()), "[\"3.11\", \"3.12\", \"3.13\"]");
        assert_eq!(read.min_glibc, before.min_glibc, "packages that it requires need it");
        let unknown = family[0].metadata.replace("torch==2.14.0", "torch==2.98.0");
        let family = [FamilyMember { metadata: unknown, ..family[0].clone() }];
        assert_eq!(drafted(&before, "0.99.0", (&family, &[]), None).unknown, ["cuda", "toolkit"]);
    }

    #[test]
    fn our_choice_stands_as_long_as_metadata_requires_no_more() {
        let family = |version: &str, cudnn: &str| {
            let plugin = format!("jax-cuda13-plugin[with-cuda]<={version},>={version}");
            let own = format!("Requires-Python: >=3.12\nRequires-Dist: {plugin}; extra == \"cuda13\"");
            let library = format!("Requires-Dist: nvidia-cudnn-cu13{cudnn}; extra == \"with-cuda\"");
            let file = format!("jax_cuda13_plugin-{version}-cp312-cp312-manylinux_2_27_x86_64.whl");
            let metadata = format!("Provides-Extra: with-cuda\n{library}");
            [
                member("jax", &[&format!("jax-{version}-py3-none-any.whl")], &own, &["cuda13"]),
                member("jax-cuda13-plugin", &[&file], &metadata, &["with-cuda"]),
            ]
        };
        let before = before("jax", "0.12.0.1", "cu13");
        let (new, old) = (family("0.99.0", ">=9.12"), family("0.12.0.1", ">=9.12"));
        let code = targets(&["9.0", "12.0"], &["12.0"], Some("9.0"));
        let row = drafted(&before, "0.99.0", (&new, &old), Some(&code));
        let read = linted(&row);
        assert_eq!(
            (&read.toolkit, &read.parts, read.cudnn),
            (&before.toolkit, &before.parts, before.cudnn.clone())
        );
        assert_eq!(read.install[0], "jax[cuda13]==0.99.0");
        assert_eq!(read.install[1..], before.install[1..]);
        assert_eq!(list(read.python.iter()), "[\"3.12\"]", "the plug-in has a wheel for this one alone");
        // PTX of an older compiler than the toolkit's.
        assert_eq!(read.ptx_cuda.map(|cuda| cuda.to_string()).as_deref(), Some("13.0"));
        let more = family("0.99.0", ">=9.20");
        assert_eq!(drafted(&before, "0.99.0", (&more, &old), None).unknown, ["cuda", "toolkit"]);
        assert_eq!(
            relatives(&new[0], "jax", &"0.99.0".parse().expect("a version"), Machine::X86_64).len(),
            1
        );
    }

    #[test]
    fn ptx_tells_the_cuda_of_what_has_all_of_it_inside() {
        let family = [member(
            "warp-lang",
            &["warp_lang-1.99.0-py3-none-manylinux_2_28_x86_64.whl"],
            "Requires-Python: >=3.11\nProvides-Extra: docs\nRequires-Dist: nvidia-sphinx-theme; extra == \"docs\"",
            &[],
        )];
        let before = before("warp", "1.19.0", "cu134");
        let code = |isa| targets(&["9.0", "12.0"], &["12.1"], isa);
        let row = drafted(&before, "1.99.0", (&family, &[]), Some(&code(Some("9.5"))));
        let read = linted(&row);
        assert_eq!((read.cuda.to_string().as_str(), read.toolkit.to_string().as_str()), ("cu135", "13.5.0"));
        assert_eq!((read.ptx.len(), read.ptx_cuda, read.unknown_ptx), (1, None, false));
        for isa in [None, Some("99.0")] {
            let row = drafted(&before, "1.99.0", (&family, &[]), Some(&code(isa)));
            assert_eq!(row.unknown, ["cuda", "toolkit"], "{isa:?}");
            assert!(row.lines.contains(&"unknown_ptx = true".to_owned()), "{row:?}");
        }
    }
}
