//! The matrix as a site: one page of all variants with a filter by GPU and driver, and one page for each GPU model.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::model::compat::Matrix;
use crate::model::compat::tables::{Channel, Gpu, Status};
use crate::model::resolve::{DriverRange, ResolveOptions, SupportEntry, support_entries};
use crate::model::versions::{ComputeCapability, Machine};
use crate::pages::Document;

const SOURCE: &str = "envforge list --all --json";

/// One file of the site.
#[derive(Debug)]
pub(super) struct SiteFile {
    /// Its name.
    pub(super) name: String,
    /// The page.
    pub(super) text: String,
}

#[derive(Serialize)]
struct Index<'a> {
    edition: &'a str,
    platforms: Vec<&'static str>,
    models: Vec<Model<'a>>,
    rows: Vec<Row>,
    families: Vec<Family<'a>>,
}

/// A GPU name that the filter knows.
#[derive(Serialize, PartialEq, Eq, PartialOrd, Ord)]
struct Model<'a> {
    name: &'a str,
    capability: String,
}

/// GPU models of one architecture.
#[derive(Serialize)]
struct Family<'a> {
    name: String,
    gpus: Vec<Link<'a>>,
}

#[derive(Serialize)]
struct Link<'a> {
    name: &'a str,
    file: String,
}

/// One variant.
#[derive(Serialize)]
struct Row {
    spec: String,
    mark: &'static str,
    platform: &'static str,
    python: String,
    cudnn: String,
    nccl: String,
    /// For the filter: `525.60.13=9.0,8.9 525.60.13-580=7.0`.
    on: String,
    /// The same for people.
    runs_on: String,
}

#[derive(Serialize)]
struct GpuPage<'a> {
    edition: &'a str,
    name: &'a str,
    facts: Vec<Fact>,
    platforms: Vec<&'static str>,
    rows: Vec<GpuRow>,
}

#[derive(Serialize)]
struct Fact {
    name: &'static str,
    value: String,
}

/// One variant on one GPU.
#[derive(Serialize)]
struct GpuRow {
    spec: String,
    mark: &'static str,
    platform: &'static str,
    python: String,
    driver: String,
    code: &'static str,
    on: String,
}

/// Returns the files of the site, the index first.
pub(super) fn site(matrix: &Matrix) -> Vec<SiteFile> {
    let options = ResolveOptions::default();
    let all: Vec<_> = [Machine::X86_64, Machine::Aarch64]
        .into_iter()
        .flat_map(|machine| support_entries(matrix, machine, &options))
        .collect();
    let newest = newest_patches(&all);
    let names = file_names(matrix);
    let mut files = vec![SiteFile { name: "index.html".to_owned(), text: index(matrix, &all, &names) }];
    files.extend(matrix.gpus.iter().zip(names).map(|(gpu, name)| {
        let text = gpu_page(matrix, gpu, &newest);
        SiteFile { name, text }
    }));
    files
}

fn index(matrix: &Matrix, all: &[SupportEntry], names: &[String]) -> String {
    let mut families: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for (gpu, file) in matrix.gpus.iter().zip(names) {
        let oldest = matrix.capabilities.iter().filter(|row| row.arch == gpu.arch).map(|row| row.cc).max();
        let link = Link { name: &gpu.name, file: file.clone() };
        families.entry((std::cmp::Reverse(oldest), gpu.arch.clone())).or_default().push(link);
    }
    let families = families.into_iter().map(|((_, name), mut gpus)| {
        gpus.sort_by(|a, b| a.name.cmp(b.name));
        Family { name, gpus }
    });
    let models = matrix.gpus.iter().map(|gpu| (&gpu.name, gpu.compute_capability));
    let chips =
        matrix.chips.iter().flat_map(|chip| chip.names.iter().map(|name| (name, chip.compute_capability)));
    let models: BTreeSet<_> = models
        .chain(chips)
        .map(|(name, capability)| Model { name, capability: capability.dotted() })
        .collect();
    let row = |it: &SupportEntry| Row {
        spec: it.entry.spec.to_string(),
        mark: mark(it),
        platform: it.machine.platform(),
        python: joined(&it.entry.python),
        cudnn: it.entry.cudnn.as_ref().map_or_else(|| "-".to_owned(), ToString::to_string),
        nccl: it.entry.nccl.as_ref().map_or_else(|| "-".to_owned(), ToString::to_string),
        on: on(&it.runs_on),
        runs_on: runs_on(it),
    };
    let page = Index {
        edition: &matrix.edition,
        platforms: platforms(all),
        models: models.into_iter().collect(),
        rows: all.iter().map(row).collect(),
        families: families.collect(),
    };
    let document =
        Document { template: "site.html.j2", title: "Variants for a GPU and a driver", source: SOURCE };
    document.write(&page)
}

fn gpu_page(matrix: &Matrix, gpu: &Gpu, newest: &[&SupportEntry]) -> String {
    let capability = gpu.compute_capability;
    let rows: Vec<_> = newest
        .iter()
        .filter_map(|it| {
            let range = it.runs_on.get(&capability)?;
            Some(GpuRow {
                spec: it.entry.spec.to_string(),
                mark: mark(it),
                platform: it.machine.platform(),
                python: joined(&it.entry.python),
                driver: drivers(range),
                code: code(it, capability),
                on: on(&[(capability, range.clone())].into()),
            })
        })
        .collect();
    let title = format!("{}: what runs on it", gpu.name);
    let document = Document { template: "gpu.html.j2", title: &title, source: SOURCE };
    let page = GpuPage {
        edition: &matrix.edition,
        name: &gpu.name,
        facts: facts(matrix, gpu),
        platforms: platforms(newest.iter().copied()),
        rows,
    };
    document.write(&page)
}

fn facts(matrix: &Matrix, gpu: &Gpu) -> Vec<Fact> {
    let mut all = vec![
        Fact {
            name: "Compute capability",
            value: format!("{} ({})", gpu.compute_capability.dotted(), gpu.compute_capability),
        },
        Fact { name: "Architecture", value: gpu.arch.clone() },
        Fact { name: "Class", value: gpu.class.clone() },
    ];
    let mut add = |name, value: Option<String>| all.extend(value.map(|value| Fact { name, value }));
    add("Memory", gpu.memory_gb.map(|gb| format!("{gb} GB")));
    add("Memory bandwidth", gpu.bandwidth_gb_s.map(|rate| format!("{rate} GB/s")));
    let rates: Vec<_> =
        gpu.tflops.iter().map(|(kind, rate)| format!("{} {rate}", kind.replace('_', " "))).collect();
    add("Dense peak, TFLOP/s", (!rates.is_empty()).then(|| rates.join(", ")));
    let last = matrix.capability(gpu.compute_capability).and_then(|row| row.last_driver_branch);
    add("Last driver branch", last.map(|branch| format!("R{branch}")));
    add("Also called", (!gpu.aliases.is_empty()).then(|| gpu.aliases.join(", ")));
    add("Source", Some(gpu.source.clone()));
    all
}

/// Returns a file name for each GPU of the matrix: of letters and digits alone, and no two alike.
fn file_names(matrix: &Matrix) -> Vec<String> {
    let mut taken = BTreeSet::new();
    let name = |gpu: &Gpu| {
        let words = gpu.name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
        let plain = words.collect::<Vec<_>>().join("-").to_ascii_lowercase();
        let mut name = format!("gpu-{plain}.html");
        let mut count = 2;
        while !taken.insert(name.clone()) {
            name = format!("gpu-{plain}-{count}.html");
            count += 1;
        }
        name
    };
    matrix.gpus.iter().map(name).collect()
}

/// Of each minor release, CUDA and platform the newest patch. Entries come newest first.
fn newest_patches(all: &[SupportEntry]) -> Vec<&SupportEntry> {
    let mut seen = BTreeSet::new();
    let mut newest = |it: &SupportEntry| {
        let spec = &it.entry.spec;
        let minor = spec.version.as_ref().map(|version| (version.major(), version.minor()));
        seen.insert((it.machine.platform(), spec.name.clone(), minor, spec.cuda))
    };
    all.iter().filter(|it| it.entry.status != Status::Unlisted).filter(|it| newest(it)).collect()
}

fn platforms<'a>(all: impl IntoIterator<Item = &'a SupportEntry>) -> Vec<&'static str> {
    all.into_iter().map(|it| it.machine.platform()).collect::<BTreeSet<_>>().into_iter().collect()
}

fn mark(it: &SupportEntry) -> &'static str {
    match (it.entry.channel, it.entry.status) {
        (Channel::Source, _) => "built from source",
        (_, Status::Experimental) => "experimental",
        (_, Status::Unlisted) => "unlisted",
        (_, Status::Stable | Status::Legacy) => "",
    }
}

fn joined(all: &[impl ToString]) -> String {
    all.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

/// Returns the capabilities of each range, ranges in order.
fn by_range(runs_on: &BTreeMap<ComputeCapability, DriverRange>) -> BTreeMap<&DriverRange, Vec<String>> {
    let mut ranges: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for (capability, range) in runs_on {
        ranges.entry(range).or_default().push(capability.dotted());
    }
    ranges
}

/// Returns the ranges as the script reads them.
fn on(runs_on: &BTreeMap<ComputeCapability, DriverRange>) -> String {
    let part = |(range, capabilities): (&DriverRange, Vec<String>)| {
        let last = range.last_branch.map_or_else(String::new, |last| format!("-{last}"));
        format!("{}{last}={}", range.oldest, capabilities.join(","))
    };
    by_range(runs_on).into_iter().map(part).collect::<Vec<_>>().join(" ")
}

fn runs_on(it: &SupportEntry) -> String {
    if it.entry.gpu.is_none() {
        return "GPU code unknown".to_owned();
    }
    let part = |(range, capabilities): (&DriverRange, Vec<String>)| {
        format!("{} ({})", capabilities.join(" "), drivers(range))
    };
    by_range(&it.runs_on).into_iter().map(part).collect::<Vec<_>>().join("; ")
}

fn drivers(range: &DriverRange) -> String {
    match range.last_branch {
        Some(last) => format!("{} to R{last}", range.oldest),
        None => format!(">={}", range.oldest),
    }
}

/// Returns the kind of code that runs on a GPU.
fn code(it: &SupportEntry, capability: ComputeCapability) -> &'static str {
    match (it.entry.gpu.is_none(), it.entry.gpu.iter().flatten().any(|code| code.cubin_runs_on(capability))) {
        (true, _) => "unknown",
        (false, true) => "machine code",
        (false, false) => "PTX, compiled by the driver",
    }
}
