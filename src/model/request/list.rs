//! `list`.

use super::spec::SpecArgument;
use super::target::TargetOptions;

/// A request for `list`.
#[derive(Debug, Clone)]
pub struct List {
    /// Only this product, such as pytorch-cuda.
    pub name: Option<SpecArgument>,
    /// Only this framework, such as jax.
    pub framework: Option<String>,
    /// Only what runs on this machine, or on the one named by --gpu and --driver.
    pub for_this_machine: bool,
    /// Only variants of this CUDA, such as cu128.
    pub cuda: Option<String>,
    /// Only variants with a wheel for this Python, such as 3.11.
    pub python: Option<String>,
    /// Every patch release, unlisted and unverified variants too.
    pub all: bool,
    /// The machine it should run on.
    pub target: TargetOptions,
}
