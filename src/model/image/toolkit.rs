//! The step that makes /usr/local/cuda.

use serde::Serialize;

use crate::model::lock::Lock;
use crate::model::stack::Stack;

/// The step that makes /usr/local/cuda.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ToolkitStep {
    /// Its content, for people.
    pub title: String,
    /// `runtime`, or the gcc major that nvcc accepts.
    pub argument: String,
    /// Whether .deb files are unpacked.
    pub debs: bool,
}

/// Whether an image of this stack has /usr/local/cuda: in the devel flavour, and where the toolkit's wheels are pinned.
pub(crate) fn has_toolkit(stack: &Stack) -> bool {
    stack.nvcc.is_some() || !stack.parts.is_empty()
}

/// The step that makes /usr/local/cuda, if the image has it.
pub(crate) fn toolkit_step(lock: &Lock) -> Option<ToolkitStep> {
    let stack = &lock.stack;
    let home = "/usr/local/cuda, links to the libraries and headers above";
    let (title, argument) = match &stack.nvcc {
        Some(nvcc) => {
            let (minor, source, gcc) = (stack.toolkit_minor(), nvcc.source, nvcc.gcc);
            let title = format!("{home}, and nvcc {minor} from {source}, which compiles with gcc {gcc}.");
            (title, gcc.to_string())
        }
        None => (format!("{home}."), "runtime".to_owned()),
    };
    has_toolkit(stack).then_some(ToolkitStep { title, argument, debs: !lock.unpacked.is_empty() })
}
