//! Proves that the image's product computes: its script runs one of the product's own kernels in the image's own Python.

use std::path::PathBuf;

use envforge_protocol::{CheckGroup, CheckId, Key, SkipReason};

use super::{CheckFailure, python};
use crate::checks::Options;
use crate::products;
use crate::report::Report;

const IDS: &[CheckId] = CheckGroup::Product.checks();

pub(crate) fn run(options: &Options, say: &mut dyn FnMut(Report)) {
    python::run_program(options, IDS, start, say);
}

/// Returns the interpreter and the program. Without an expectation: that of the first product that is there.
fn start(options: &Options, _: &[CheckId]) -> Result<(PathBuf, Vec<String>), CheckFailure> {
    let python = python::interpreter(options)?;
    let expected = options.expectation_if_given().map_err(CheckFailure::error)?;
    let present = || products::names().find(|name| python::has(&python, name));
    let name = expected.value(Key::Framework).or_else(present);
    let Some(program) = name.and_then(products::program) else {
        let text = "no kernel check for this product; see the checks `framework-*`";
        return Err(CheckFailure::skip(SkipReason::NotOffered, text));
    };
    Ok((python, vec![python::program_file(&program)?]))
}
