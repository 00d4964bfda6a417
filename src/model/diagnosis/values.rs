//! Values of a text in the texts of a row: versions, libraries, packages, GPUs.

use std::collections::BTreeMap;

use super::branches::cuda_and_branch;
use super::names::{debian_of, extension_of, named_on, package_near, package_of, product_near, wheel_of};

/// Names and values.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Values(BTreeMap<&'static str, String>);

impl Values {
    pub(super) fn set(&mut self, name: &'static str, value: impl Into<String>) {
        let value = value.into();
        if !value.is_empty() {
            self.0.entry(name).or_insert(value);
        }
    }

    /// Returns a value.
    fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Whether a fix is one for these values: it asks for no package where a text names an extension without one, and plans for
    /// the driver where a text names that.
    pub(super) fn allow(&self, cure: &str) -> bool {
        let has = |name| self.get(name).is_some();
        let lacks_package = has("module") && !has("package") && cure.contains("{package");
        let ignores_driver = has("api") && !cure.contains("{driver");
        !lacks_package && !ignores_driver
    }

    /// Writes the values into the places `{name}` and `{name|OTHERWISE}` of a text.
    pub(super) fn fill(&self, text: &str) -> String {
        let mut out = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            out.push_str(before);
            let Some((place, next)) = after.split_once('}') else {
                out.push('{');
                rest = after;
                break;
            };
            let (name, otherwise) = place.split_once('|').unwrap_or((place, ""));
            let is_name = !name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase());
            match self.get(name) {
                Some(value) if is_name => out.push_str(value),
                None if is_name && place.contains('|') => out.push_str(otherwise),
                _ => {
                    out.push('{');
                    out.push_str(place);
                    out.push('}');
                }
            }
            rest = next;
        }
        out + rest
    }

    /// Adds what follows from values that were found and from the text near them: a package, a spec of PyTorch, a GPU.
    pub(super) fn derive(&mut self, near: &str, before: &str) {
        let named = ["file", "library", "found"].iter().find_map(|name| package_of(self.get(name)?));
        let named = named.or_else(|| extension_of(self.get("module")?));
        self.set("package", named.or_else(|| package_near(before)).unwrap_or_default());
        if let Some(package) = self.get("package").map(|name| name.to_ascii_lowercase().replace('_', "-")) {
            self.0.insert("package", package);
        }
        let line = before.rsplit('\n').next().unwrap_or(before);
        self.set("package", named_on(line).unwrap_or_default());
        let product = product_near(near).unwrap_or_default();
        let spec = self.get("torch").and_then(spec_of).or_else(|| spec_near(near));
        self.set("spec", spec.unwrap_or_else(|| product.to_owned()));
        self.set("product", product);
        let stated = || stated_gpu(&near.to_ascii_lowercase());
        let gpu = self.get("sm").map(gpu_of).or_else(stated).or_else(|| gpu_near(near));
        self.set("gpu", gpu.unwrap_or_default());
        if let (Some(wanted), Some(current)) = (self.get("wanted"), self.get("current")) {
            self.set("sm", format!("PTX {wanted} against {current}"));
        }
        if let Some((cuda, branch)) = self.get("api").and_then(cuda_and_branch) {
            self.set("supports", format!(", which needs more than the CUDA {cuda} of this driver"));
            self.set(
                "alike",
                format!("; the driver is there, and CUDA {cuda} is the newest that it supports"),
            );
            // The words with a number are PyTorch's.
            self.set("product", "pytorch-cuda");
            self.set("driver", branch.map(|branch| branch.to_string()).unwrap_or_default());
        }
        if let Some(peer) = self.get("peer").map(|peer| peer.replace('<', ":")) {
            self.0.insert("peer", peer);
        }
        if self.get("component").is_some_and(|name| name.eq_ignore_ascii_case("cuda")) {
            self.0.insert("component", "libcudart, the CUDA runtime".to_owned());
        }
        if let Some((major, minor)) = self.get("wheel").and_then(python_of) {
            self.set("tag", format!("cp{major}{minor}"));
            self.set("python", format!("{major}.{minor}"));
        }
        if let Some(needed) = self.get("needed").map(|version| version.replace('.', "")) {
            self.set("cu", needed);
        }
        if let Some((wheel, debian)) = self.get("found").map(|file| (wheel_of(file), debian_of(file))) {
            self.set("wheel", wheel.unwrap_or_default());
            self.set("debian", debian.unwrap_or_default());
        }
        if let Some(platform) =
            self.get("platform").map(|name| name.split('/').take(2).collect::<Vec<_>>().join("/"))
        {
            self.0.insert("platform", platform);
        }
    }
}

/// `pytorch-cuda:2.7.0-cu128` of `2.7.0+cu128`.
fn spec_of(version: &str) -> Option<String> {
    let version = version.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
    let (number, local) = version.split_once('+').unwrap_or((version, ""));
    let is_number = number.contains('.') && number.split('.').all(|part| part.parse::<u32>().is_ok());
    if !is_number || number.starts_with('0') {
        return None;
    }
    let cuda = local.strip_prefix("cu").filter(|digits| digits.bytes().all(|b| b.is_ascii_digit()));
    Some(cuda.map_or(format!("pytorch-cuda:{number}"), |cuda| format!("pytorch-cuda:{number}-cu{cuda}")))
}

/// Returns the spec of the first version of PyTorch that a text names.
fn spec_near(text: &str) -> Option<String> {
    let lower = text.to_ascii_lowercase();
    let after = [
        "you have torch ",
        "you have ",
        "torch==",
        "pytorch ",
        "torch version: ",
        "torch version ",
        "pytorch version: ",
        "torch ",
        "torch-",
    ];
    let named = after.iter().find_map(|head| {
        lower.match_indices(head).find_map(|(at, _)| {
            let is_word = !lower[..at].ends_with(|c: char| c.is_ascii_alphanumeric());
            let rest = &lower[at + head.len()..];
            let end =
                rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '.' && c != '+').unwrap_or(rest.len());
            spec_of(rest[..end].trim_start_matches('v')).filter(|_| is_word)
        })
    });
    named.or_else(|| {
        let words = lower.split(|c: char| c.is_whitespace() || "'()[],;".contains(c));
        words.filter(|word| word.contains("+cu")).find_map(spec_of)
    })
}

/// Returns the Python that a wheel's name asks for: 3 and 11 of `torch-2.8.0-cp311-cp311-linux_x86_64.whl`.
fn python_of(wheel: &str) -> Option<(String, String)> {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    wheel.split('-').skip(2).find_map(|part| {
        let (major, minor) = part.strip_prefix("cp")?.split_at_checked(1)?;
        (is_number(major) && is_number(minor)).then(|| (major.to_owned(), minor.to_owned()))
    })
}

/// `sm_121` of `sm_121a`, `compute_86` and `8.6`.
fn gpu_of(name: &str) -> String {
    let digits: String = name.chars().filter(char::is_ascii_digit).collect();
    format!("sm_{digits}")
}

/// Returns the GPU that a framework states in a lower-case text: `sm_120` of `compatible with compute capability 12.0`.
pub(super) fn stated_gpu(lower: &str) -> Option<String> {
    let heads =
        ["compatible with compute capability ", "which is of cuda capability ", ", compute capability: "];
    heads.iter().find_map(|head| {
        let rest = &lower[lower.find(head)? + head.len()..];
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (major, minor) = rest[..end].trim_end_matches('.').split_once('.')?;
        Some(format!("sm_{major}{minor}"))
    })
}

/// Returns the GPU that a text names: `sm_121`, or a product in quotes.
fn gpu_near(text: &str) -> Option<String> {
    let lower = text.to_ascii_lowercase();
    let mut places =
        ["cuda capability sm_", "gpu-name=sm_", "--gpu-name sm_", "-arch=sm_", "code=sm_"].iter();
    let sm = places.find_map(|head| {
        let rest = &lower[lower.find(head)? + head.len()..];
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        (end > 1).then(|| format!("sm_{}", &rest[..end]))
    });
    sm.or_else(|| {
        let heads = [
            "NVIDIA GeForce ",
            "NVIDIA RTX ",
            "Tesla ",
            "NVIDIA H",
            "NVIDIA A1",
            "NVIDIA B",
            "NVIDIA GB10",
            "Quadro ",
        ];
        let rest = heads.iter().find_map(|head| text.find(head)).map(|at| &text[at..])?;
        let rest = rest.split([',', ';', ':']).next().unwrap_or(rest);
        let is_part = |word: &&str| {
            word.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
                && !["with", "which", "is", "has", "and"].contains(word)
        };
        let words: Vec<_> = rest.split(' ').take_while(is_part).take(5).collect();
        (words.len() > 1).then(|| format!("\"{}\"", words.join(" ")))
    })
}
