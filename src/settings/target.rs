//! The target machine that the environment names.

use super::environment::{Environment, split_list};
use super::variables;

/// The target of the environment; `None`: not set, empty: no GPU.
#[derive(Debug, Clone, Default)]
pub struct TargetOverrides {
    /// `ENVFORGE_GPU`, split at commas.
    pub gpu: Option<Vec<String>>,
    /// `ENVFORGE_DRIVER`.
    pub driver: Option<String>,
}

impl TargetOverrides {
    /// Reads the environment.
    pub(super) fn of(environment: &Environment) -> Self {
        Self {
            gpu: variables::GPU.set_or_empty(environment).map(|text| split_list(text)),
            driver: variables::DRIVER.set_or_empty(environment).cloned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_gpu_means_no_gpu_and_absent_means_unknown() {
        let of = |pairs: &[(&str, &str)]| {
            let pairs = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            TargetOverrides::of(&pairs.collect()).gpu
        };
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[("ENVFORGE_GPU", "")]), Some(vec![]));
        let two = of(&[("ENVFORGE_GPU", "sm_90, NVIDIA L4")]);
        assert_eq!(two, Some(vec!["sm_90".into(), "NVIDIA L4".into()]));
    }
}
