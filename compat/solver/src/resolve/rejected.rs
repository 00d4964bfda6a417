//! The candidates that were rejected before one was accepted.

use super::rule::Rule;
use crate::versions::{CudaVariant, FrameworkVersion};

/// Rejected versions, variants and bases, each with the rules it violates.
#[derive(Debug, Default)]
pub(super) struct RejectedCandidates {
    pub(super) versions: Vec<(FrameworkVersion, Vec<Rule>)>,
    pub(super) variants: Vec<(CudaVariant, Vec<Rule>)>,
    pub(super) bases: Vec<(String, Vec<Rule>)>,
}
