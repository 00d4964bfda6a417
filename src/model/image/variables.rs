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
    if let Some(ptxas) = &stack.ptxas {
        let path = format!("/opt/env/lib/python{}/site-packages/{}", stack.python, ptxas.file);
        all.insert(ptxas.variable.as_str().to_owned(), path);
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
    fn path_of_ptxas_is_set_where_triton_needs_another() {
        let mut stack = sample::stack();
        let plain = environment(&stack);
        assert!(!plain.keys().any(|name| name.starts_with("TRITON_")), "{plain:?}");
        stack.ptxas = Some(sample::ptxas());
        let mut all = environment(&stack);
        let path = "/opt/env/lib/python3.11/site-packages/nvidia/cuda_nvcc/bin/ptxas";
        assert_eq!(all.remove("TRITON_PTXAS_PATH").as_deref(), Some(path));
        assert_eq!(all, plain, "no other variable changes: the toolkit is not in the image");
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
