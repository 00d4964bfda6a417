//! Parts of a spec that are given apart from it: `--cuda 12.8`, `--python 3.12`.

use super::cuda_request::CudaRequest;
use super::types::Spec;
use crate::versions::PythonVersion;

/// Returns the CUDA of a text, by the grammar of specs: `cu128`, `12.8`, `cuda12.8.1`, `12`.
pub fn cuda_part(text: &str) -> Option<CudaRequest> {
    let text = if text.starts_with("cu") { text.to_owned() } else { format!("cu{text}") };
    alone(&text)?.cuda
}

/// Returns the Python of a text, by the grammar of specs: `3.11`, `py3.11`, `py311`; also as others name it: `python3.11`, `3.11.9`.
pub fn python_part(text: &str) -> Option<PythonVersion> {
    let plain = text.strip_prefix("python").unwrap_or(text.trim_start_matches("py"));
    let mut parts = plain.splitn(3, '.');
    let minor = parts.next().zip(parts.next());
    let patch =
        parts.next().filter(|patch| !patch.is_empty() && patch.bytes().all(|byte| byte.is_ascii_digit()));
    let plain = match minor.zip(patch) {
        // A base has the newest patch of its minor.
        Some(((major, minor), _)) => format!("{major}.{minor}"),
        None => plain.to_owned(),
    };
    alone(&format!("py{plain}"))?.python
}

fn alone(part: &str) -> Option<Spec> {
    if part.contains('-') { None } else { format!("x:1-{part}").parse().ok() }
}

impl Spec {
    /// Restricts the spec to a CUDA; returns false if it has another one. The more exact of both counts.
    pub fn restrict_cuda(&mut self, cuda: CudaRequest) -> bool {
        let own = self.cuda.unwrap_or(cuda);
        let agree = |one: Option<u8>, other: Option<u8>| one.is_none() || other.is_none() || one == other;
        let fits = own.major == cuda.major && agree(own.minor, cuda.minor) && agree(own.patch, cuda.patch);
        if fits {
            let (minor, patch) = (own.minor.or(cuda.minor), own.patch.or(cuda.patch));
            self.cuda = Some(CudaRequest { major: own.major, minor, patch });
        }
        fits
    }

    /// Restricts the spec to a Python; returns false if it has another one.
    pub fn restrict_python(&mut self, python: PythonVersion) -> bool {
        *self.python.get_or_insert(python) == python
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_those_of_specs() {
        let cuda = |text: &str| cuda_part(text).map(|cuda| cuda.to_string());
        for (text, part) in
            [("12.8", "cu128"), ("cu128", "cu128"), ("12", "cu12"), ("cuda12.8.1", "cuda12.8.1")]
        {
            assert_eq!(cuda(text).as_deref(), Some(part), "{text}");
        }
        for wrong in ["", "x", "12.8-py3.11", "cu", "twelve"] {
            assert_eq!(cuda(wrong), None, "{wrong}");
        }
        for same in ["py311", "311", "python3.11", "3.11.9"] {
            assert_eq!(python_part("3.11"), python_part(same), "{same}");
        }
        assert!(python_part("3.11.x").is_none() && python_part("python").is_none());
        assert!(python_part("3.11").is_some() && python_part("three").is_none() && python_part("").is_none());
    }

    #[test]
    fn spec_is_restricted_or_contradicted() {
        let restricted = |spec: &str, cuda: &str| {
            let mut spec: Spec = spec.parse().expect("a spec");
            let fits = spec.restrict_cuda(cuda_part(cuda).expect("a CUDA"));
            fits.then(|| spec.to_string())
        };
        let fits = [
            ("x:1", "12.8", "x:1-cu128"),
            ("x:1-cu12", "12.8", "x:1-cu128"),
            ("x:1-cu128", "12", "x:1-cu128"),
        ];
        for (spec, cuda, now) in fits {
            assert_eq!(restricted(spec, cuda).as_deref(), Some(now));
        }
        assert_eq!(restricted("x:1-cu128", "12.8.1").as_deref(), Some("x:1-cuda12.8.1"));
        for (spec, cuda) in [("x:1-cu128", "12.6"), ("x:1-cu12", "13"), ("x:1-cuda12.8.1", "12.8.0")] {
            assert_eq!(restricted(spec, cuda), None, "{spec} {cuda}");
        }
        let mut spec: Spec = "x:1-py3.11".parse().expect("a spec");
        let python = |text: &str| python_part(text).expect("a Python");
        assert!(spec.restrict_python(python("3.11")) && !spec.restrict_python(python("3.12")));
    }
}
