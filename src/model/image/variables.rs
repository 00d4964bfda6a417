//! Environment variables of an image.

use std::collections::BTreeMap;

use crate::model::image::toolkit::has_toolkit;
use crate::model::lock::UserAdditions;
use crate::model::stack::Stack;

/// The environment variables of an image with this stack and the user's additions. The lock records them.
pub fn environment_of(stack: &Stack, added: &UserAdditions) -> BTreeMap<String, String> {
    let mut all = environment(stack);
    all.extend(added.variables.clone());
    all
}

/// The environment variables of an image with this stack alone.
pub fn environment(stack: &Stack) -> BTreeMap<String, String> {
    let mut all: BTreeMap<String, String> = [
        ("LANG", "C.UTF-8"),
        ("NVIDIA_DRIVER_CAPABILITIES", "compute,utility"),
        ("NVIDIA_VISIBLE_DEVICES", "all"),
        ("PATH", "/home/dev/.venv/bin:/opt/envforge/bin:/opt/env/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"),
        ("PIP_CONSTRAINT", "/opt/envforge/constraints.txt"),
        ("PIP_DISABLE_PIP_VERSION_CHECK", "1"),
        ("SHELL", "/bin/bash"),
        ("UV_CONSTRAINT", "/opt/envforge/constraints.txt"),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .collect();
    if has_toolkit(stack) {
        let path = all.get_mut("PATH").expect("set above");
        *path = path.replace(":/usr/local/sbin", ":/usr/local/cuda/bin:/usr/local/sbin");
        all.insert("CUDA_HOME".to_owned(), "/usr/local/cuda".to_owned());
    }
    // The floor by minor-version compatibility: a `cuda>=` condition would require more than the wheels need.
    if let Some(driver) = &stack.requires.driver {
        all.insert("NVIDIA_REQUIRE_CUDA".to_owned(), format!("driver>={driver}"));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::lock::sample;

    #[test]
    fn required_driver_is_the_floor_not_the_newest() {
        assert_eq!(environment(&sample::stack())["NVIDIA_REQUIRE_CUDA"], "driver>=525.60.13");
    }

    #[test]
    fn cuda_home_follows_from_the_toolkit() {
        let mut stack = sample::stack();
        assert!(!environment(&stack).contains_key("CUDA_HOME"));
        stack.parts.insert("nvidia-cuda-nvcc".to_owned(), "13.2".to_owned());
        let all = environment(&stack);
        assert_eq!(all["CUDA_HOME"], "/usr/local/cuda");
        assert!(all["PATH"].contains(":/usr/local/cuda/bin:/usr/local/sbin:"), "{all:?}");
    }
}
