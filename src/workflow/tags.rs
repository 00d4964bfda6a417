//! The tags an image is to have.

use crate::model::compat::Matrix;
use crate::model::image::plan::name;
use crate::model::lock::Lock;
use crate::model::spec::Spec;

/// The canonical name, what was typed if it names a version, and what `--tag` asks for: without any suffix.
pub(crate) fn tags(typed: &str, wanted: &[String], lock: &Lock) -> Vec<String> {
    let mut tags = vec![name(lock)];
    if lock.added.is_empty() && typed.contains(':') && !typed.ends_with(":latest") {
        tags.push(by_own_name(typed).replace('+', "-"));
    }
    tags.extend(wanted.iter().cloned());
    tags.dedup();
    tags
}

/// Returns a spec as it was typed, but with the product's own name: `pytorch-cuda:2.8` for `torch:2.8`.
pub(crate) fn by_own_name(typed: &str) -> String {
    let spec: Option<Spec> = typed.parse().ok();
    let named =
        spec.as_ref().and_then(|spec| Some((spec.name.len(), Matrix::current().product(&spec.name)?)));
    // A spec is ASCII, and its name is its beginning.
    named.map_or_else(|| typed.to_owned(), |(length, product)| product.name.clone() + &typed[length..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spec_by_another_name_is_the_product() {
        for (typed, own) in [
            ("torch:2.8-cu128", "pytorch-cuda:2.8-cu128"),
            ("PyTorch:2.8", "pytorch-cuda:2.8"),
            ("tf", "tensorflow-cuda"),
            ("vllm:0.10.0-py312", "vllm-cuda:0.10.0-py312"),
            ("pytorch-cuda:2.8", "pytorch-cuda:2.8"),
            ("cuda:12.8", "cuda:12.8"),
            ("debian:12", "debian:12"),
            ("not a spec", "not a spec"),
        ] {
            assert_eq!(by_own_name(typed), own);
        }
    }
}
