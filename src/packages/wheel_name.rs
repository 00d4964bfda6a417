//! Wheel file names and their compatibility with a Python and a processor.

use std::str::FromStr;

use crate::model::stack::Stack;
use crate::model::versions::{GlibcVersion, Machine, PythonVersion};

/// The parts of `torch-2.8.0-cp311-cp311-manylinux_2_28_x86_64.whl`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WheelName {
    pub(crate) package: String,
    pub(crate) version: String,
    pythons: String,
    abis: String,
    platforms: String,
}

impl FromStr for WheelName {
    type Err = ();
    fn from_str(file: &str) -> Result<Self, ()> {
        let parts: Vec<&str> = file.strip_suffix(".whl").ok_or(())?.split('-').collect();
        // A build number may follow the version.
        let (5 | 6) = parts.len() else { return Err(()) };
        if parts.iter().any(|part| part.is_empty()) {
            return Err(());
        }
        let text = |part: usize| parts[part].to_owned();
        let tags = parts.len() - 3;
        Ok(Self {
            package: normalised(parts[0]),
            version: text(1),
            pythons: text(tags),
            abis: text(tags + 1),
            platforms: text(tags + 2),
        })
    }
}

impl WheelName {
    /// Whether that Python on that processor can load the wheel (the resolver checked glibc).
    pub(crate) fn fits(&self, python: PythonVersion, machine: Machine) -> bool {
        self.fits_python(python) && self.fits_machine(machine)
    }

    /// Its Python and ABI tags: `cp311-cp311`.
    pub(crate) fn python_tag(&self) -> String {
        format!("{}-{}", self.pythons, self.abis)
    }

    /// Its platform tag: `manylinux_2_28_x86_64`.
    pub(crate) fn platform_tag(&self) -> &str {
        &self.platforms
    }

    /// Whether that Python can load the wheel.
    pub(super) fn fits_python(&self, python: PythonVersion) -> bool {
        let PythonVersion { major, minor } = python;
        let exact = format!("cp{major}{minor}");
        let stable_abi = self.abis.split('.').any(|abi| abi == "abi3");
        let older = |tag: &str| {
            let digits =
                tag.strip_prefix(&format!("cp{major}")).or_else(|| tag.strip_prefix(&format!("py{major}")));
            digits.and_then(|digits| digits.parse::<u8>().ok()).is_some_and(|found| found <= minor)
        };
        let python_fits = self.pythons.split('.').any(|tag| {
            tag == exact
                || tag == format!("py{major}")
                || (tag.starts_with("cp") && stable_abi && older(tag))
                || (tag.starts_with("py") && older(tag))
        });
        let abi_fits = self.abis.split('.').any(|abi| {
            // Before 3.8 the tag had an `m`; free-threaded builds have a `t` and are not compatible.
            abi == "none" || abi == "abi3" || abi == exact || (minor < 8 && abi == format!("{exact}m"))
        });
        python_fits && abi_fits
    }

    /// Whether Linux with glibc on that processor can load the wheel.
    pub(super) fn fits_machine(&self, machine: Machine) -> bool {
        let processor = format!("_{machine}");
        self.platforms.split('.').any(|tag| {
            tag == "any" || (tag.contains("linux") && !tag.contains("musl") && tag.ends_with(&processor))
        })
    }

    /// Returns everything for which a stack cannot load the wheel, by its tags; `glibc`: that of the base, if it is known.
    pub(super) fn misfits(&self, stack: &Stack, glibc: Option<&GlibcVersion>) -> Vec<String> {
        let mut all = Vec::new();
        if !self.fits_python(stack.python) {
            all.push(format!("it is for Python {}; the stack has {}", self.python_tag(), stack.python));
        }
        if !self.fits_machine(stack.machine) {
            let found = self.platform_tag();
            all.push(format!("it is for {found}; the stack is for Linux on {}", stack.machine));
        }
        if let (Some(needs), Some(glibc)) = (self.glibc(), glibc)
            && needs > *glibc
        {
            all.push(format!("it needs glibc {needs}; {} has {glibc}", stack.base));
        }
        all
    }

    /// How closely its tags are those of a Python: its own ABI before the stable one, and that before none.
    pub(super) fn specificity(&self, python: PythonVersion) -> u8 {
        let exact = format!("cp{}{}", python.major, python.minor);
        let has = |wanted: &str| self.abis.split('.').any(|abi| abi == wanted);
        if has(&exact) { 2 } else { u8::from(has("abi3")) }
    }

    /// The oldest compatible glibc according to its tags, if any.
    pub(crate) fn glibc(&self) -> Option<GlibcVersion> {
        let floor = |tag: &str| match tag.strip_prefix("manylinux")?.split_once('_')? {
            ("", rest) => {
                let mut numbers = rest.split('_');
                format!("{}.{}", numbers.next()?, numbers.next()?).parse().ok()
            }
            ("2014", _) => "2.17".parse().ok(),
            ("2010", _) => "2.12".parse().ok(),
            ("1", _) => "2.5".parse().ok(),
            _ => None,
        };
        self.platforms.split('.').filter_map(floor).min()
    }

    /// The processors of its tags for Linux.
    #[cfg(feature = "maintain")]
    pub(crate) fn machines(&self) -> impl Iterator<Item = &'static str> {
        let of = |machine: &str| {
            self.platforms.split('.').any(|tag| tag.contains("linux") && tag.ends_with(machine))
        };
        ["x86_64", "aarch64"].into_iter().filter(move |machine| of(machine))
    }
}

/// A package's name as indexes compare it: lower-case, runs of `-`, `_` and `.` as one `-`.
pub(super) fn normalised(name: &str) -> String {
    let parts = name.split(['-', '_', '.']).filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join("-").to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wheel_name_gives_glibc_and_processors() {
        let of = |tags: &str| format!("a-1-cp311-{tags}.whl").parse::<WheelName>().expect(tags);
        let glibc = |tags: &str| of(tags).glibc().map(|glibc| glibc.to_string());
        assert_eq!(glibc("cp311-manylinux_2_28_x86_64").as_deref(), Some("2.28"));
        assert_eq!(glibc("cp311-manylinux2014_x86_64.manylinux_2_17_x86_64").as_deref(), Some("2.17"));
        assert_eq!(glibc("cp311-linux_x86_64"), None);
        let both = of("cp311t-manylinux_2_28_x86_64.manylinux_2_28_aarch64");
        assert_eq!(both.machines().collect::<Vec<_>>(), ["x86_64", "aarch64"]);
        assert_eq!(both.python_tag(), "cp311-cp311t");
    }

    fn fits(file: &str, python: &str, machine: Machine) -> bool {
        file.parse::<WheelName>().expect(file).fits(python.parse().unwrap(), machine)
    }

    #[test]
    fn wheel_of_same_python_and_processor_is_compatible() {
        for file in [
            "torch-2.8.0-cp311-cp311-manylinux_2_28_x86_64.whl",
            "torch-2.7.1+cu118-cp311-cp311-manylinux_2_28_x86_64.whl",
            "jinja2-3.1.6-py3-none-any.whl",
            "six-1.17.0-py2.py3-none-any.whl",
            "psutil-7.0.0-cp36-abi3-manylinux_2_12_x86_64.manylinux2010_x86_64.whl",
            "nvidia_nccl_cu12-2.27.3-py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64.whl",
            "foo-1-2-py3-none-any.whl",
        ] {
            assert!(fits(file, "3.11", Machine::X86_64), "{file}");
        }
    }

    #[test]
    fn wheel_of_another_python_or_system_is_not_compatible() {
        for file in [
            "torch-2.8.0-cp312-cp312-manylinux_2_28_x86_64.whl",
            "torch-2.8.0-cp311-cp311-manylinux_2_28_aarch64.whl",
            "torch-2.8.0-cp311-none-macosx_11_0_arm64.whl",
            "torch-2.8.0-cp311-cp311-win_amd64.whl",
            "x-1-cp311-cp311-musllinux_1_1_x86_64.whl",
            "x-1-cp312-abi3-manylinux_2_17_x86_64.whl",
            "x-1-py312-none-any.whl",
            "x-1-cp311-cp311t-manylinux_2_17_x86_64.whl",
            "x-1-py2-none-any.whl",
        ] {
            assert!(!fits(file, "3.11", Machine::X86_64), "{file}");
        }
    }

    #[test]
    fn other_file_names_are_not_wheels() {
        for file in ["torch-2.8.0.tar.gz", "torch.whl", "a-b-c-d.whl", "a--c-d-e.whl", ".whl"] {
            assert!(file.parse::<WheelName>().is_err(), "{file}");
        }
        assert_eq!(normalised("Jupyter_Server.Terminals"), "jupyter-server-terminals");
    }
}
