//! With which code a command ends for an error of the matrix, a spec or a request.

use envforge_compat::matrix::{CompatError, GpuNameError};
use envforge_compat::resolve::Unsatisfiable;
use envforge_compat::spec::SpecError;

use crate::failure::{Exit, Failure};
use crate::model::typed_path::looks_like_path;

impl Failure for CompatError {
    fn exit(&self) -> Exit {
        Exit::Usage
    }

    fn hints(&self) -> Vec<String> {
        self.hints()
    }
}

impl Failure for GpuNameError {
    fn exit(&self) -> Exit {
        Exit::Usage
    }

    fn hints(&self) -> Vec<String> {
        self.hints()
    }
}

impl Failure for SpecError {
    fn exit(&self) -> Exit {
        Exit::Usage
    }

    fn hints(&self) -> Vec<String> {
        if looks_like_path(&self.text) {
            return vec![
                "this is a path: run the command in a project's directory, or name its file with `--project`"
                    .to_owned(),
            ];
        }
        self.hints()
    }
}

impl Failure for Unsatisfiable {
    fn exit(&self) -> Exit {
        Exit::No
    }

    fn hints(&self) -> Vec<String> {
        self.hints()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_input_is_a_usage_error_and_an_impossible_stack_is_a_no() {
        let spec = "pytorch-cuda:x".parse::<crate::model::spec::Spec>().expect_err("no version");
        assert_eq!(spec.exit(), Exit::Usage);
        let gpu = super::super::embedded().gpu_named("RTX 1").expect_err("no such GPU");
        assert_eq!((gpu.exit(), Failure::hints(&gpu)), (Exit::Usage, gpu.hints()));
        let row = super::super::read_unlinted(&[("a.toml", "schema = 1\nchecked = \"2026-11-20\"\nx = 1\n")]);
        assert_eq!(row.expect_err("no such table").exit(), Exit::Usage);
        let none = Unsatisfiable {
            spec: Box::new("pytorch-cuda:2.8".parse().expect("a spec")),
            refusals: Vec::new(),
            alternatives: Vec::new(),
            driver: None,
        };
        assert_eq!(none.exit(), Exit::No);
    }

    #[test]
    fn path_in_the_place_of_a_spec_is_told_so() {
        let error = "./envforge.toml".parse::<crate::model::spec::Spec>().expect_err("a path");
        assert!(Failure::hints(&error)[0].starts_with("this is a path"));
    }
}
