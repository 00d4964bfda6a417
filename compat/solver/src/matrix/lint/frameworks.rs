//! Consistency of variants, companions, known versions and products with each other and with the tables they refer to.

use std::collections::BTreeMap;

use super::super::rows::Row;
use super::super::tables::{Channel, KnownVersion, Matrix, Product, SourceFloor, Variant};
use super::code::{known, ptx, same_minor};
use super::fault::{Faults, Problem};
use crate::versions::{CudaVariant, FrameworkVersion, LibraryVersion, Machine};

/// Libraries that checks call.
const SHARED: [&str; 3] = ["cublas", "cudnn", "nccl"];

pub(super) fn check(matrix: &Matrix, faults: &mut Faults) {
    for variant in &matrix.variants {
        judge(matrix, variant, faults);
    }
    from_source(matrix, faults);
    device_code(matrix, faults);
    defaults(matrix, faults);
    products(matrix, faults);
    for row in &matrix.known_versions {
        product(matrix, row, &row.framework, faults);
        known_version(matrix, row, faults);
    }
    for row in &matrix.rowless_wheels {
        product(matrix, row, &row.framework, faults);
        let same = |variant: &&Variant| {
            let package = matrix.package_of(variant).unwrap_or_default();
            let is_release = variant.channel == Channel::Default && variant.version.label().is_empty();
            let of_index = is_release && variant.framework == row.framework;
            of_index && row.covers(package, &variant.version, variant.machine)
        };
        if let Some(variant) = matrix.variants.iter().find(same) {
            faults.contradiction(row, "no row".to_owned(), variant, "a row".to_owned());
        }
    }
    for row in &matrix.numpy_limits {
        product(matrix, row, &row.framework, faults);
    }
}

/// Checks that no row contradicts the reason for its absence, and that a version has one reason only.
fn known_version(matrix: &Matrix, row: &KnownVersion, faults: &mut Faults) {
    if let Some(last) = row.last.as_ref().filter(|last| **last <= row.version) {
        faults.contradiction(row, format!("from {}", row.version), row, format!("to {last}"));
    }
    let same = |variant: &&Variant| {
        // A team's own build of a release is another thing than the release.
        let is_release = variant.version.label().is_empty();
        is_release && variant.framework == row.framework && row.covers(&variant.version)
    };
    if let Some(variant) = matrix.variants.iter().find(same) {
        faults.contradiction(row, "no row".to_owned(), variant, "a row".to_owned());
    }
    let before = matrix.known_versions.iter().take_while(|other| !std::ptr::eq(*other, row));
    let mut of_framework = before.filter(|other| other.framework == row.framework);
    if let Some(other) =
        of_framework.find(|other| other.version <= *row.last() && row.version <= *other.last())
    {
        faults.contradiction(row, format!("a reason for {}", row.version), other, "another one".to_owned());
    }
}

/// Checks a single variant.
fn judge(matrix: &Matrix, variant: &Variant, faults: &mut Faults) {
    label(variant, faults);
    toolkit(matrix, variant, faults);
    code(matrix, variant, faults);
    libraries(matrix, variant, faults);
    companions(matrix, variant, faults);
    wheels(matrix, variant, faults);
    triton(variant, faults);
    shared(variant, faults);
    bases(matrix, variant, faults);
    product(matrix, variant, &variant.framework, faults);
    if variant.python.is_empty() {
        faults.add(variant, Problem::Empty { field: "python" });
    }
}

/// Checks that an own build is required by its label: the framework's index adds the CUDA to a version, which has room for one.
fn label(variant: &Variant, faults: &mut Faults) {
    if !variant.version.label().is_empty() && variant.channel != Channel::Default {
        let says = format!("version {}", variant.version);
        faults.contradiction(variant, says, variant, "the framework's own channel".to_owned());
    }
}

/// Checks that the toolkit has a row and matches the variant's CUDA.
fn toolkit(matrix: &Matrix, variant: &Variant, faults: &mut Faults) {
    let toolkit = matrix.toolkits.iter().find(|row| row.cuda == variant.toolkit);
    faults.require(toolkit.is_some(), variant, "toolkit", &variant.toolkit);
    let minor = variant.cuda.minor.map_or(variant.toolkit.minor(), u32::from);
    if u32::from(variant.cuda.major) != variant.toolkit.major() || minor != variant.toolkit.minor() {
        let says = format!("toolkit {}", variant.toolkit);
        faults.contradiction(variant, says, variant, format!("CUDA {}", variant.cuda.dotted()));
    }
}

/// Checks that the toolkit's compiler supports the variant's GPU targets, if that compiler has a row.
fn code(matrix: &Matrix, variant: &Variant, faults: &mut Faults) {
    let sass = variant.arch.iter().flatten();
    known(matrix, variant, sass.clone().chain(&variant.ptx), faults);
    if variant.arch.as_ref().is_some_and(Vec::is_empty) && variant.ptx.is_empty() {
        faults.add(variant, Problem::Empty { field: "arch" });
    }
    ptx(variant, faults);
    let Some(compiler) = matrix.compilers.iter().find(|row| same_minor(&row.cuda, &variant.toolkit)) else {
        return;
    };
    for cc in sass.chain(&variant.ptx) {
        if !compiler.targets.contains(cc) {
            faults.contradiction(variant, format!("code for {cc}"), compiler, "no such target".to_owned());
        }
    }
}

/// Checks that cuDNN and NCCL have a row of the variant's processor, measured or unmeasured.
fn libraries(matrix: &Matrix, variant: &Variant, faults: &mut Faults) {
    let (major, machine) = (variant.cuda.major, variant.machine);
    let unmeasured = |library: &str, version: &LibraryVersion| {
        let same = |row: &super::super::tables::UnmeasuredLibrary| {
            row.library == library
                && row.version == *version
                && row.cuda_major == major
                && row.machine == machine
        };
        matrix.unmeasured.iter().any(same)
    };
    if let Some(version) = &variant.cudnn {
        let build = matrix
            .cudnn
            .iter()
            .any(|row| row.version == *version && row.cuda_major == major && row.machine == machine);
        faults.require(build || unmeasured("cudnn", version), variant, "cuDNN", version);
    }
    if let Some(version) = &variant.nccl {
        let suffix = format!("-cu{major}");
        let build = matrix
            .nccl
            .iter()
            .any(|row| row.version == *version && row.package.ends_with(&suffix) && row.machine == machine);
        faults.require(build || unmeasured("nccl", version), variant, "NCCL", version);
    }
}

/// Checks that the Python without Triton is one of the row's, and that the others have it.
fn triton(variant: &Variant, faults: &mut Faults) {
    if let Some(first) = variant.triton_before {
        let known = variant.triton.is_some() && variant.python.contains(&first);
        faults.require(known, variant, "Triton, or wheel, for `triton_before`", first);
    }
}

/// Checks that the libraries of the framework's own wheel are ones that checks can call.
fn shared(variant: &Variant, faults: &mut Faults) {
    for library in &variant.shared {
        faults.require(SHARED.contains(&library.as_str()), variant, "known library", library);
    }
}

/// Checks that parts have a wheel of the variant's toolkit, and that every requirement bounds its version.
fn wheels(matrix: &Matrix, variant: &Variant, faults: &mut Faults) {
    let components = matrix.components.iter().find(|row| row.cuda == variant.toolkit);
    for part in &variant.parts {
        let wheel = matrix.component_wheels.iter().any(|wheel| wheel.part == *part);
        let version = components.is_some_and(|row| row.versions.contains_key(part));
        faults.require(wheel && version, variant, "wheel of the toolkit's part", part);
    }
    for requirement in &variant.install {
        let bounded = requirement.contains(['=', '<', '>']) && !requirement.contains(['@', '/', ' ']);
        faults.require(bounded, variant, "bounded requirement", requirement);
    }
}

/// Checks that companions have a row or are a framework of the matrix, and do not pin another version of the framework.
fn companions(matrix: &Matrix, variant: &Variant, faults: &mut Faults) {
    for (package, version) in &variant.companions {
        let row = matrix.companions.iter().find(|row| row.package == *package && row.version == *version);
        let Some(row) = row else {
            let framework = |other: &Variant| {
                let named = |product: &Product| {
                    product.framework == other.framework && product.package.as_ref() == Some(package)
                };
                other.version.to_string() == *version && matrix.products.iter().any(named)
            };
            if matrix.variants.iter().any(framework) {
                continue;
            }
            faults.unknown(variant, "companion", format!("{package} {version}"));
            continue;
        };
        let pinned = row.requires.as_deref().and_then(|text| text.strip_prefix("=="));
        let pinned = pinned.map(|text| text.split('+').next().unwrap_or(text));
        // A product with another framework as dependency (vLLM: torch) has companions of that one.
        let framework = variant.companions.get("torch").and_then(|version| version.parse().ok());
        let framework: FrameworkVersion = framework.unwrap_or_else(|| variant.version.clone());
        if pinned.is_some_and(|pinned| pinned.parse().is_ok_and(|pinned| framework.public() != pinned)) {
            let differs = row.requires.clone().unwrap_or_default();
            faults.contradiction(variant, format!("companion {package} {version}"), row, differs);
        }
    }
}

/// Whether a variant is that build of a framework.
fn is_variant(
    framework: &str,
    version: &FrameworkVersion,
    cuda: CudaVariant,
    machine: Machine,
) -> impl Fn(&Variant) -> bool {
    move |variant| {
        variant.framework == framework
            && variant.version == *version
            && variant.cuda == cuda
            && variant.machine == machine
    }
}

/// Checks that device code was measured of a published variant, for known GPUs, and that the parts do not exceed the whole.
fn device_code(matrix: &Matrix, faults: &mut Faults) {
    for row in &matrix.device_code {
        let same = is_variant(&row.framework, &row.version, row.cuda, row.machine);
        faults.require(matrix.variants.iter().any(same), row, "variant", &row.version);
        if row.machine_code.is_empty() {
            faults.add(row, Problem::Empty { field: "machine_code" });
        }
        for gpu in row.machine_code.keys() {
            let known = matrix.capabilities.iter().any(|one| one.cc == *gpu);
            faults.require(known, row, "capability", gpu.dotted());
        }
        let parts: u32 = row.machine_code.values().sum();
        if parts > row.megabytes {
            let differs = format!("{parts} MB for all architectures");
            faults.contradiction(row, format!("{} MB in all", row.megabytes), row, differs);
        }
    }
}

/// Checks that source builds are unpublished, that their build system accepts their CUDA, and the rules of variants.
fn from_source(matrix: &Matrix, faults: &mut Faults) {
    for row in &matrix.source_floors {
        product(matrix, row, &row.framework, faults);
    }
    for build in &matrix.source_builds {
        let is_it = is_variant(&build.framework, &build.version, build.cuda, build.machine);
        let same = |variant: &&Variant| is_it(variant);
        if let Some(variant) = matrix.variants.iter().find(same) {
            faults.contradiction(build, "unpublished".to_owned(), variant, "published".to_owned());
        }
        let line =
            |row: &&SourceFloor| row.framework == build.framework && build.version.starts_with(&row.line);
        let floor = matrix.source_floors.iter().find(line);
        faults.require(floor.is_some(), build, "source floor of", &build.version);
        if let Some(floor) = floor.filter(|floor| build.toolkit < floor.cuda) {
            let says = format!("toolkit {}", build.toolkit);
            faults.contradiction(build, says, floor, format!("CUDA {} and newer", floor.cuda));
        }
        if build.arch.is_empty() {
            faults.add(build, Problem::Empty { field: "arch" });
        }
        let hash = build.sha256.as_ref();
        let hex = |hash: &String| hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
        faults.require(hash.is_none_or(hex), build, "SHA-256", hash.map_or("", String::as_str));
        let address = build.address.as_ref();
        let of_the_archive = |text: &String| text.starts_with("https://") && text.ends_with(&build.archive);
        faults.require(
            address.is_none_or(of_the_archive),
            build,
            "address",
            address.map_or("", String::as_str),
        );
        for value in build.environment.values() {
            let known = ["{arch}", "{jobs}", "{version}", "{cuda}"];
            let rest = known.iter().fold(value.clone(), |rest, name| rest.replace(name, ""));
            faults.require(!rest.contains(['{', '}']), build, "placeholder in", value);
        }
        let variant = matrix.source_variants.iter().find(same);
        faults.require(variant.is_some(), build, "components of toolkit", &build.toolkit);
        if let Some(variant) = variant {
            judge(matrix, variant, faults);
        }
    }
}

/// Checks that some base system can load the variant.
fn bases(matrix: &Matrix, variant: &Variant, faults: &mut Faults) {
    let loadable = matrix.bases.iter().any(|base| base.glibc >= variant.min_glibc);
    faults.require(loadable, variant, "base with glibc", &variant.min_glibc);
}

/// Checks that the default index has one variant of each release, or one for each CUDA major without a minor.
fn defaults(matrix: &Matrix, faults: &mut Faults) {
    let mut seen: BTreeMap<_, &Variant> = BTreeMap::new();
    for variant in matrix.variants.iter().filter(|row| row.channel == Channel::Default) {
        let major = variant.cuda.minor.is_none().then_some(variant.cuda.major);
        let key = (&variant.framework, &variant.version, variant.machine, &variant.package, major);
        if let Some(other) = seen.insert(key, variant) {
            faults.contradiction(variant, "channel default".to_owned(), other, "the same".to_owned());
        }
    }
}

fn product(matrix: &Matrix, row: &dyn Row, framework: &str, faults: &mut Faults) {
    let known = matrix.products.iter().any(|product| product.framework == framework);
    faults.require(known, row, "product of framework", framework);
}

/// Checks that products declare whether they have rows, and that no alias is a name.
fn products(matrix: &Matrix, faults: &mut Faults) {
    for product in &matrix.products {
        let rows = matrix.variants.iter().find(|variant| variant.framework == product.framework);
        match rows {
            Some(variant) if !product.rows => {
                faults.contradiction(product, "no rows".to_owned(), variant, "a row".to_owned());
            }
            None if product.rows => faults.unknown(product, "variants of", &product.framework),
            _ => {}
        }
        let covered = product.licence.is_some() || product.licence_covers.is_empty();
        faults.require(covered, product, "licence of", product.licence_covers.join(", "));
        for alias in &product.aliases {
            let taken = |other: &&super::super::tables::Product| {
                other.name == *alias || (other.name != product.name && other.aliases.contains(alias))
            };
            if let Some(other) = matrix.products.iter().find(taken) {
                faults.contradiction(product, format!("alias `{alias}`"), other, "the same word".to_owned());
            }
        }
    }
}
