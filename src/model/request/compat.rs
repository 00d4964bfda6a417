//! `compat`.

use camino::Utf8PathBuf;

use super::spec::SpecArgument;

/// A request for `compat lint`.
#[derive(Debug, Clone)]
pub struct CompatLint {
    /// The folder of `.toml` files; without one the matrix of this program.
    pub dir: Option<Utf8PathBuf>,
}

/// A wheel to check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WheelArgument {
    /// A file.
    File(Utf8PathBuf),
    /// A release of the package index: `sgl-kernel==0.3.21`.
    Release(String),
}

impl From<String> for WheelArgument {
    fn from(text: String) -> Self {
        // The path of a wheel may contain anything, but ends like a wheel.
        let path = Utf8PathBuf::from(&text);
        let is_release = text.contains("==") && path.extension() != Some("whl");
        if is_release { Self::Release(text) } else { Self::File(path) }
    }
}

/// A request for `compat abi`.
#[derive(Debug, Clone)]
pub struct CompatAbi {
    /// The wheel.
    pub wheel: WheelArgument,
    /// The spec whose lock it is held against; without one the project's.
    pub spec: Option<SpecArgument>,
    /// Another lock file.
    pub lockfile: Option<Utf8PathBuf>,
}

/// A request for `compat use`.
#[derive(Debug, Clone)]
pub struct CompatUse {
    /// The edition.
    pub file: Option<Utf8PathBuf>,
    /// The SHA-256 that its publisher names.
    pub sha256: Option<String>,
    /// The matrix this program was built with.
    pub builtin: bool,
}

/// A request for `compat show`.
#[derive(Debug, Clone)]
pub struct CompatShow {
    /// The row's name or its beginning, as messages write it: `variant pytorch 2.8.0`.
    pub row: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn release_has_an_exact_version_and_a_path_ends_like_a_wheel() {
        let of = |text: &str| WheelArgument::from(text.to_owned());
        assert_eq!(of("a==1.0"), WheelArgument::Release("a==1.0".to_owned()));
        for path in ["a-1.0-py3-none-any.whl", "./a==1/a-1.0-py3-none-any.whl", "a.txt"] {
            assert_eq!(of(path), WheelArgument::File(path.into()));
        }
    }
}
