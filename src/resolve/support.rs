//! The matrix as a table for people: what is published, for which CUDA, Python, driver and GPU. Printed by `generate support`.

use std::fmt::Write as _;

use super::listing::{ListEntry, entries};
use super::options::ResolveOptions;
use crate::compat::Matrix;
use crate::compat::tables::{Channel, Status};
use crate::spec::Spec;
use crate::target::Target;
use crate::versions::Machine;

/// Every variant of every product, newest first, as Markdown.
pub fn support_text(matrix: &Matrix) -> String {
    let mut out = "# What the matrix holds\n\nMade by `envforge generate support`; every row's source is shown by `envforge compat show`.\n\
                   Index: - the default one, own the framework's own, src none: built from source; * experimental upstream, ? in no\n\
                   official list. GPU: compute capabilities with machine code, + with PTX for newer ones, ? not established.\n"
        .to_owned();
    let mut products: Vec<_> = matrix.products.iter().map(|product| product.name.as_str()).collect();
    products.sort_unstable();
    for product in products {
        for machine in [Machine::X86_64, Machine::Aarch64] {
            let found =
                entries(matrix, Some(&Spec::of(product)), &Target::any(machine), &ResolveOptions::default());
            if !found.is_empty() {
                table(&mut out, product, machine, &found);
            }
        }
    }
    out
}

fn table(out: &mut String, product: &str, machine: Machine, found: &[ListEntry]) {
    let head = "| spec | index | Python | cuDNN | NCCL | GPU | driver |\n|---|---|---|---|---|---|---|";
    write!(out, "\n## {product}, {}\n\n{head}\n", machine.platform()).expect("a String takes all");
    for entry in found {
        let index = match entry.channel {
            Channel::Default => "-",
            Channel::Framework => "own",
            Channel::Source => "src",
        };
        let mark = match entry.status {
            _ if entry.channel == Channel::Source => "",
            Status::Experimental => "*",
            Status::Unlisted => "?",
            Status::Stable | Status::Legacy => "",
        };
        let python: Vec<_> = entry.python.iter().map(ToString::to_string).collect();
        let text = |version: &Option<crate::versions::LibraryVersion>| {
            version.as_ref().map_or_else(|| "-".to_owned(), ToString::to_string)
        };
        let gpu: Vec<_> = entry.gpu.iter().map(|cc| cc.dotted()).collect();
        let gpu = if gpu.is_empty() { "?".to_owned() } else { gpu.join(" ") };
        let ptx = if entry.ptx.is_empty() { "" } else { "+" };
        writeln!(
            out,
            "| {} | {index}{mark} | {} | {} | {} | {gpu}{ptx} | {} |",
            entry.spec,
            python.join(" "),
            text(&entry.cudnn),
            text(&entry.nccl),
            entry.driver.as_deref().unwrap_or("-"),
        )
        .expect("a String takes all");
    }
}
