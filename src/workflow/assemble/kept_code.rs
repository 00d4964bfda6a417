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
        code.ok_or_else(|| gone(&code_of(&wheel.locked.file)))
    };
    let all =
        wheels.iter().map(|wheel| Ok((wheel.left_out.iter().map(String::as_str).collect(), code(wheel)?)));
    let no_code = || io::Error::new(io::ErrorKind::NotFound, "its wheels have no byte code");
    byte_code_layer(all)?.ok_or_else(|| AssembleError::Write(no_code()))
}

/// The error of a part that went after it was found.
pub(super) fn gone(what: &str) -> AssembleError {
    AssembleError::Gone { what: what.to_owned() }
}

/// The name of the byte code of a wheel, for an error.
pub(super) fn code_of(file: &str) -> String {
    format!("the byte code of `{file}`")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assemble::samples::locked;
    use crate::engine::EngineError;
    use crate::model::lock::WheelLayer;
    use crate::workflow::assemble::layer::of_layer;

    #[test]
    fn byte_code_that_vanished_is_named_behind_the_error_of_the_engine() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = camino::Utf8Path::from_path(folder.path()).expect("UTF-8");
        let store = Store::open(&root.join("cache"), &root.join("state")).expect("a store");
        let locked = locked("demo", WheelLayer::User, b"wheel");
        let wheels = vec![RecipeWheel { locked, path: None, left_out: Vec::new() }];
        let content = KeptCode { store, python: "3.11".to_owned(), wheels };
        let error = content.write_to(&mut Vec::new()).expect_err("it is gone");
        let error = of_layer::<AssembleError>(EngineError::File(error));
        let Some(AssembleError::Gone { what }) = error.downcast_ref() else { panic!("{error}") };
        assert_eq!(what, "the byte code of `demo-1.0-py3-none-any.whl`");
    }
}
