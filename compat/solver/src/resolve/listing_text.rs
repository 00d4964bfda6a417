//! The tables that `list` prints, of variants and of products: 80 columns, no color.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::listing::ListEntry;
use crate::matrix::Matrix;
use crate::matrix::tables::{Channel, Status};
use crate::spec::{CudaRequest, Spec};
use crate::versions::{DriverVersion, FrameworkVersion, Machine, PythonVersion};
use crate::wrap::hanging;

const NONE: &str = "no matching variants in the matrix";
const HEAD: [&str; 7] = ["SPEC", "FROM", "PYTHON", "CUDNN", "GPU", "DRIVER>=", "RUN"];

/// The legend of the table.
const LEGEND: &str = "
FROM: - default index, own framework's own index, src built from source,
* experimental upstream, ? not in the official release list
CUDNN: - none, or not known  GPU: + with PTX for newer ones, ? unknown
RUN: on the target, - unknown
";

/// Returns the entries as a table, one line each.
pub fn list_text(entries: &[ListEntry]) -> String {
    if entries.is_empty() {
        return format!("{NONE}\n");
    }
    table(HEAD, entries.iter().map(cells)) + LEGEND
}

const PRODUCTS_HEAD: [&str; 6] = ["NEWEST", "VERSIONS", "GPU", "DRIVER>=", "MACHINE", "RUN"];

const PRODUCTS_LEGEND: &str = "
NEWEST: that runs on the target, else of all  RUN: it on the target, - unknown
VERSIONS, GPU, DRIVER>=, MACHINE: of all versions, whether or not they run
All of one product: envforge list NAME. All of everything: envforge list --all
";

/// Says that nothing matches, and what the products have: versions, CUDAs and Pythons. `all`: the entries without the conditions.
pub fn nothing_text(all: &[ListEntry]) -> String {
    let specs: Vec<&Spec> = all.iter().map(|entry| &entry.spec).collect();
    let products: BTreeSet<&str> = specs.iter().map(|spec| spec.name.as_str()).collect();
    let cudas: BTreeSet<CudaRequest> = specs.iter().filter_map(|spec| spec.cuda).collect();
    let pythons: Vec<PythonVersion> = all.iter().flat_map(|entry| entry.python.iter().copied()).collect();
    let mut known = Vec::new();
    if products.len() == 1 {
        let versions: BTreeSet<_> = specs.iter().filter_map(|spec| spec.version.clone()).collect();
        known.extend(span(&versions).map(|span| format!("versions {span}")));
    }
    let cudas: Vec<_> = cudas.iter().map(ToString::to_string).collect();
    if !cudas.is_empty() {
        known.push(format!("CUDA {}", cudas.join(", ")));
    }
    if !pythons.is_empty() {
        known.push(format!("Python {}", python_span(&pythons)));
    }
    let products: Vec<_> = products.into_iter().collect();
    let known = known.join("; ");
    let text = match products.as_slice() {
        [] => NONE.to_owned(),
        [only] => format!("{NONE}; {only} has {known}"),
        _ => format!("{NONE}, which has {known}"),
    };
    hanging("", &text)
}

/// First and last: `1.8.0 to 2.15.0`.
fn span(versions: &BTreeSet<FrameworkVersion>) -> Option<String> {
    match (versions.first()?, versions.last()?) {
        (first, last) if first == last => Some(first.to_string()),
        (first, last) => Some(format!("{first} to {last}")),
    }
}

/// Returns one line for each product of the entries, which come product by product, the newest first.
pub fn products_text(entries: &[ListEntry], matrix: &Matrix) -> String {
    if entries.is_empty() {
        return format!("{NONE}\n");
    }
    let products = entries.chunk_by(|one, other| name_of(one) == name_of(other));
    table(PRODUCTS_HEAD, products.map(|entries| product_cells(entries, matrix))) + PRODUCTS_LEGEND
}

fn name_of(entry: &ListEntry) -> &str {
    &entry.spec.name
}

/// The line of one product, of which there is an entry.
fn product_cells(entries: &[ListEntry], matrix: &Matrix) -> [String; PRODUCTS_HEAD.len()] {
    // What is not known to run is not chosen either unless it is named.
    let newest = entries.iter().find(|entry| entry.runs_here == Some(true)).unwrap_or(&entries[0]);
    let version = |entry: &ListEntry| entry.spec.version.as_ref().map(ToString::to_string);
    let versions: BTreeSet<_> = entries.iter().filter_map(version).collect();
    let code = || entries.iter().flat_map(|entry| entry.gpu.iter().flatten());
    let gpu = match (code().min(), code().max()) {
        (Some(first), Some(last)) => {
            let has_newer = entries.iter().flat_map(|entry| &entry.ptx).any(|ptx| ptx >= last);
            let ptx = if has_newer { "+" } else { "" };
            format!("{}-{}{ptx}", first.dotted(), last.dotted())
        }
        _ => "?".to_owned(),
    };
    let drivers = entries.iter().filter_map(|entry| entry.driver.as_deref());
    let lowest =
        drivers.filter_map(|floor| floor.trim_start_matches(">=").parse::<DriverVersion>().ok()).min();
    [
        newest.spec.to_string(),
        versions.len().to_string(),
        gpu,
        lowest.map_or_else(|| "-".to_owned(), |lowest| lowest.to_string()),
        machines(name_of(newest), matrix).join(","),
        runs(newest).to_owned(),
    ]
}

/// The processors with a version of a product: `amd64`, `arm64`.
fn machines(product: &str, matrix: &Matrix) -> Vec<&'static str> {
    let Some(product) = matrix.product(product) else { return Vec::new() };
    let rows = matrix.variants.iter().chain(&matrix.source_variants);
    let of_product = rows.filter(|row| row.framework == product.framework && row.verified);
    let machines: BTreeSet<Machine> = of_product.map(|row| row.machine).collect();
    machines.into_iter().map(|machine| machine.platform().trim_start_matches("linux/")).collect()
}

/// A table with as much room for each column as it needs.
fn table<const N: usize>(head: [&str; N], cells: impl Iterator<Item = [String; N]>) -> String {
    let mut rows = vec![head.map(str::to_owned)];
    rows.extend(cells);
    let mut widths = [0; N];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut out = String::new();
    for row in &rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(widths) {
            write!(line, "{cell:<width$} ").expect("writing to a String");
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

fn runs(entry: &ListEntry) -> &'static str {
    match entry.runs_here {
        Some(true) => "yes",
        Some(false) => "no",
        None => "-",
    }
}

fn cells(entry: &ListEntry) -> [String; HEAD.len()] {
    let channel = match (entry.status, entry.channel) {
        (Status::Experimental, Channel::Default) => "-*",
        (Status::Unlisted, Channel::Default) => "-?",
        (_, Channel::Source) => "src",
        (Status::Experimental, _) => "own*",
        (Status::Unlisted, _) => "own?",
        (_, Channel::Default) => "-",
        (_, Channel::Framework) => "own",
    };
    let library = |version: &Option<crate::versions::LibraryVersion>| {
        let parts = |version: &crate::versions::LibraryVersion| {
            version.parts().iter().take(3).map(ToString::to_string).collect::<Vec<_>>().join(".")
        };
        version.as_ref().map_or_else(|| "-".to_owned(), parts)
    };
    let code = entry.gpu.as_deref().unwrap_or_default();
    let gpu = match (code.first(), code.last()) {
        (Some(first), Some(last)) => {
            let ptx = if entry.ptx.is_empty() { "" } else { "+" };
            format!("{}-{}{ptx}", first.dotted(), last.dotted())
        }
        _ if !entry.ptx.is_empty() => "PTX".to_owned(),
        _ => "?".to_owned(),
    };
    let driver = entry.driver.as_deref().map_or("-", |floor| floor.trim_start_matches(">="));
    [
        entry.spec.to_string(),
        channel.to_owned(),
        python_span(&entry.python),
        library(&entry.cudnn),
        gpu,
        driver.to_owned(),
        runs(entry).to_owned(),
    ]
}

/// `3.9-3.13`.
fn python_span(pythons: &[PythonVersion]) -> String {
    match (pythons.iter().min(), pythons.iter().max()) {
        (Some(first), Some(last)) if first == last => first.to_string(),
        (Some(first), Some(last)) => format!("{first}-{last}"),
        _ => "-".to_owned(),
    }
}
