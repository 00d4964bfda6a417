//! A layer of byte code from the cache: read whenever the layer is written, as all layers of it together take hundreds of megabytes.

use std::io::{self, Write};

use crate::assemble::{AssembleError, LayerPlan, write_known};
use crate::container_layers::byte_code::kept;
use crate::engine::LayerContent;
use crate::store::Store;
use crate::workflow::assemble::byte_code_layer::byte_code_layer;
use crate::workflow::assemble::layer::io_error;
use crate::workflow::assemble::recipe::RecipeWheel;

/// The byte code of some wheels, for an engine.
pub(super) struct KeptCode {
    pub(super) store: Store,
    /// The packages of the Python that compiled it.
    pub(super) python: String,
    pub(super) wheels: Vec<RecipeWheel>,
}

impl LayerContent for KeptCode {
    fn write_to(&self, out: &mut dyn Write) -> io::Result<()> {
        let plan = byte_code(&self.store, &self.wheels, &self.python).map_err(io_error)?;
        write_known(&plan, out).map_err(io_error)
    }
}

/// The layer of the byte code of some wheels, from the cache.
pub(super) fn byte_code(
    store: &Store,
    wheels: &[RecipeWheel],
    python: &str,
) -> Result<LayerPlan, AssembleError> {
    let code = |wheel: &'_ RecipeWheel| {
        let code = kept(store, &wheel.locked.sha256, python);
        code.ok_or_else(|| gone("the byte code of a wheel is not in the cache"))
    };
    let all =
        wheels.iter().map(|wheel| Ok((wheel.left_out.iter().map(String::as_str).collect(), code(wheel)?)));
    byte_code_layer(all)?.ok_or_else(|| gone("its wheels have no byte code"))
}

/// A part went after it was found, or the recipe is not one of ours.
pub(super) fn gone(what: &str) -> AssembleError {
    AssembleError::Write(io::Error::new(io::ErrorKind::NotFound, what))
}
