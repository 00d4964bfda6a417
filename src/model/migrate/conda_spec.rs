//! One dependency of a conda environment: `channel::name=version=build`, `name>=1,<2`, `name[version='>=1']`.

use pep440_rs::VersionSpecifiers;

use super::conditions::{alternatives, specifiers};
use crate::model::versions::CudaVariant;

/// A dependency of conda.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CondaSpec {
    /// Its name, lower case.
    pub name: String,
    /// Its channel, without the label: `nvidia` of `nvidia/label/cuda-12.1.0::cuda-nvcc`.
    pub channel: Option<String>,
    /// The CUDA release in a label: `12.1.0`.
    pub label: Option<String>,
    /// The version as written: `2.3.1`, `>=1,<2`; empty: any.
    pub version: String,
    /// The build: `py3.11_cuda12.1_cudnn8_0`.
    pub build: String,
}

impl CondaSpec {
    /// Reads a dependency; `None` for a text that is none.
    pub(super) fn read(text: &str) -> Option<Self> {
        let plain = text.split(" #").next().unwrap_or_default().trim();
        let (channel, rest) = match plain.split_once("::") {
            Some((channel, rest)) => (Some(channel.trim()), rest.trim()),
            None => (None, plain),
        };
        let label = channel.and_then(|channel| channel.split("label/cuda-").nth(1)).map(str::to_owned);
        let channel = channel.map(|channel| channel.split('/').next().unwrap_or_default().to_owned());
        let (rest, bracket) = match rest.split_once('[') {
            Some((before, inside)) => (before.trim(), inside.trim_end_matches(']')),
            None => (rest, ""),
        };
        let end = rest.find(['=', '<', '>', '!', '~', ' ']).unwrap_or(rest.len());
        let name = rest[..end].trim().to_ascii_lowercase();
        if name.is_empty() || name.contains(['/', ':', '*']) {
            return None;
        }
        let (mut version, mut build) = (rest[end..].trim().to_owned(), String::new());
        // `name=1.2=build`, `name==1.2=build`, `name 1.2 build`.
        if version.starts_with('=') || version.starts_with(|c: char| c.is_ascii_digit()) {
            let exact = version.trim_start_matches('=').trim().to_owned();
            let double = version.starts_with("==");
            let mut parts = exact.splitn(2, ['=', ' ']);
            let first = parts.next().unwrap_or_default().trim().to_owned();
            parts.next().unwrap_or_default().trim().clone_into(&mut build);
            version = if double { format!("=={first}") } else { first };
        } else if let Some(at) = start_of_build(&version) {
            version[at + 1..].trim().clone_into(&mut build);
            version.truncate(at);
        }
        for part in outside_quotes(bracket) {
            let Some((key, value)) = part.split_once('=') else { continue };
            let value = value.trim().trim_matches(['\'', '"']).to_owned();
            match key.trim() {
                "version" => version = value,
                "build" => build = value,
                _ => {}
            }
        }
        // `jaxlib==*=cuda*`: any version, of that build.
        if version.trim_start_matches('=') == "*" {
            version.clear();
        }
        Some(Self { name, channel, label, version, build })
    }

    /// Its versions as those of a Python package: conda's `=2.3` is `2.3.*`, an exact one with patch is exact.
    pub(super) fn versions(&self) -> Option<VersionSpecifiers> {
        let version = self.version.trim();
        if version.contains('|') {
            return self.newest_alternative();
        }
        if version.is_empty() || !version.starts_with(|c: char| c.is_ascii_digit()) {
            return specifiers(version);
        }
        let plain = version.trim_end_matches(".*").trim_end_matches('*');
        if plain.contains(',') {
            return None;
        }
        let prefix = plain.split('.').count() < 3 || version.ends_with('*');
        if prefix { format!("=={plain}.*").parse().ok() } else { format!("=={plain}").parse().ok() }
    }

    /// The CUDA in its version (`pytorch-cuda=12.1`, `cudatoolkit=11.6`), label or build.
    pub(super) fn cuda(&self) -> Option<CudaVariant> {
        let version =
            self.version.trim_start_matches(['=', '>', '<', '~', '^']).split(',').next().unwrap_or_default();
        let found = cuda_of(version).or_else(|| cuda_of(self.label.as_deref()?));
        // A range promises its major: `>=12.0,<=12.8`.
        let is_range = self.version.starts_with(['>', '<', '~', '^', '!']);
        found.map(|cuda| CudaVariant { minor: cuda.minor.filter(|_| !is_range), ..cuda })
    }

    /// The last of alternatives that is a condition: 2.1.* of `2.0|2.1`.
    fn newest_alternative(&self) -> Option<VersionSpecifiers> {
        if let Some(found) = alternatives(&self.version).filter(|found| !found.is_one_of_several) {
            return Some(found.versions);
        }
        let parts = self.version.trim_start_matches('=').split('|');
        let each = parts.map(|part| Self { version: part.trim().to_owned(), ..self.clone() }.versions());
        let newest = |part: &VersionSpecifiers| part.iter().map(|one| one.version().clone()).max();
        each.collect::<Option<Vec<_>>>()?.into_iter().max_by_key(newest)
    }

    /// Whether its versions are alternatives of which one was taken.
    pub(super) fn is_one_of_several(&self) -> bool {
        self.version.contains('|') && alternatives(&self.version).is_some_and(|found| found.is_one_of_several)
    }

    /// Whether its build is one of conda-forge's, `cuda126_py312h_201`, which is of no wheel: the pytorch channel writes `_cuda12.1_`.
    pub(super) fn is_of_conda_forge(&self) -> bool {
        self.build.split_once("cuda").is_some_and(|(_, rest)| {
            let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
            !rest[..end].contains('.')
        })
    }

    /// The CUDA in its build: `py3.11_cuda12.1_cudnn8`, `cuda118py310h_0`, `py39_cu117`.
    pub(super) fn cuda_of_build(&self) -> Option<CudaVariant> {
        let rest = self.build.split_once("cuda").or_else(|| self.build.split_once("cu"))?.1;
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let digits = rest[..end].trim_matches('.');
        if digits.contains('.') { cuda_of(digits) } else { format!("cu{digits}").parse().ok() }
    }
}

/// Where the build begins behind a condition: the last `=` of `>=2.1=*cuda*`.
fn start_of_build(version: &str) -> Option<usize> {
    let at = version.rfind('=')?;
    let before = version[..at].chars().next_back()?;
    (!"=<>!~".contains(before) && !version[at..].contains(',')).then_some(at)
}

/// The parts between commas that are in no quotes.
fn outside_quotes(text: &str) -> Vec<&str> {
    let mut quote = None;
    text.split(move |c: char| {
        match quote {
            Some(open) if c == open => quote = None,
            None if matches!(c, '\'' | '"') => quote = Some(c),
            _ => {}
        }
        c == ',' && quote.is_none()
    })
    .collect()
}

/// `12.1` or `12.1.0` or `12` as a variant.
pub(super) fn cuda_of(version: &str) -> Option<CudaVariant> {
    let mut parts = version.trim().trim_end_matches(".*").split('.').map(|part| part.parse::<u8>().ok());
    let major = parts.next()??;
    let minor = match parts.next() {
        Some(minor) => Some(minor?),
        None => None,
    };
    (major >= 8).then_some(CudaVariant { major, minor })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies_of_conda_have_their_parts() {
        let read = |text: &str| CondaSpec::read(text).unwrap_or_else(|| panic!("{text}"));
        for (text, name, versions) in [
            ("pytorch::pytorch=2.3.1", "pytorch", "==2.3.1"),
            ("python=3.11", "python", "==3.11.*"),
            ("numpy>=1.24,<2", "numpy", ">=1.24, <2"),
            ("pandas==2.0.2", "pandas", "==2.0.2"),
            ("scipy 1.11.*", "scipy", "==1.11.*"),
            ("tqdm", "tqdm", ""),
            ("pytorch=2.1=py3.10_cuda11.8_cudnn8.7.0_0", "pytorch", "==2.1.*"),
            ("conda-forge::numpy[version='>=1.21']", "numpy", ">=1.21"),
            ("pytorch[version='>=2.3,<2.4', build='*cuda*']", "pytorch", ">=2.3, <2.4"),
            ("pytorch=2.0|2.1", "pytorch", "==2.1.*"),
            ("pytorch>=2.1=*cuda*", "pytorch", ">=2.1"),
            ("pytorch>=2.1,<2.4", "pytorch", ">=2.1, <2.4"),
            ("Pillow = 9.5.0", "pillow", "==9.5.0"),
        ] {
            let spec = read(text);
            let found = spec.versions().map(|versions| versions.to_string());
            assert_eq!((spec.name.as_str(), found.as_deref()), (name, Some(versions)), "{text}");
        }
        assert_eq!(CondaSpec::read("submodules/rasterizer"), None);
    }

    #[test]
    fn cuda_is_in_version_label_or_build() {
        let read = |text: &str| CondaSpec::read(text).unwrap_or_else(|| panic!("{text}"));
        let cuda = |found: Option<CudaVariant>| found.map(|cuda| cuda.to_string()).unwrap_or_default();
        assert_eq!(cuda(read("pytorch-cuda=12.1").cuda()), "cu121");
        assert_eq!(cuda(read("cudatoolkit=11.6").cuda()), "cu116");
        assert_eq!(cuda(read("cudatoolkit>=11.3").cuda()), "cu11");
        assert_eq!(cuda(read("cuda-version>=12.0,<=12.8").cuda()), "cu12");
        assert_eq!(cuda(read("nvidia/label/cuda-12.1.0::cuda-nvcc").cuda()), "cu121");
        assert_eq!(cuda(read("pytorch=2.1=py3.10_cuda11.8_cudnn8.7.0_0").cuda_of_build()), "cu118");
        assert_eq!(cuda(read("pytorch=2.0.0=cuda112py310h_0").cuda_of_build()), "cu112");
        assert_eq!(cuda(read("jaxlib=0.4=py311_cpu").cuda_of_build()), "");
    }
}
