//! What `doctor --explain` knows of the output of a program that failed in a container.

use crate::model::diagnosis::{Diagnosis, diagnose};
use crate::model::visible::visible_line_within;

/// Characters of an explanation.
const SHOWN: usize = 1_000;

/// The known error in an output, with its cause and fix, in one line.
pub(super) fn explained(output: &str) -> Option<String> {
    let Diagnosis { id, what, why, cure, .. } = diagnose(output)?;
    Some(visible_line_within(&format!("{id}: {what}: {why}; {cure}"), SHOWN))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_error_of_an_output_is_explained_with_its_fix() {
        let output =
            "step 1\nRuntimeError: CUDA error: no kernel image is available for execution on the device\n";
        let text = explained(output).expect("a known error");
        assert!(text.starts_with("no-code-for-gpu: ") && text.contains("envforge "), "{text}");
        assert!(!text.contains('\n'));
        assert_eq!(explained("ValueError: x must be positive\n"), None);
    }
}
