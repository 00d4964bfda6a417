//! The Python that wheels are chosen for, stated to uv by a program that runs no Python.
//!
//! uv asks its interpreter once what it is and reads one JSON object. The full version decides: `3.12` alone would mean 3.12.0 and
//! leave out packages with the marker `python_full_version >= "3.12.4"`.

use pep440_rs::Version;
use serde_json::json;

use super::error::PackagesError;
use super::script_file::{FOLDER, file};
use crate::base::base_status;
use crate::base::dpkg_status::{Installed, major_minor, upstream};
use crate::engine::{ContainerFile, Images};
use crate::model::lock::{LockedBase, LockedDeb};
use crate::model::sha256::sha256_hex;
use crate::model::stack::Stack;
use crate::model::versions::{GlibcVersion, Machine};

/// What uv has to know of a Python.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PythonTarget {
    /// `3.11.2`.
    pub(super) version: String,
    /// The C library beside it.
    pub(super) glibc: GlibcVersion,
    /// The processor.
    pub(super) machine: Machine,
}

impl PythonTarget {
    /// The Python of a stack, by the locked packages above a base and those of the base: its list, else dpkg's status in the image
    /// `base_reference`.
    pub(super) async fn of(
        engine: &(impl Images + ?Sized),
        base_reference: &str,
        base: &LockedBase,
        system: &[LockedDeb],
        stack: &Stack,
    ) -> Result<Self, PackagesError> {
        let listed = |name: &str| {
            let deb = system.iter().chain(&base.packages).find(|deb| deb.name == name);
            deb.map(|deb| deb.version.clone())
        };
        match Self::by(stack, listed) {
            Ok(target) => Ok(target),
            Err(_) if base.packages.is_empty() => {
                let status = base_status(engine, base_reference).await?;
                let installed = Installed::parse(&status);
                Self::by(stack, |name| listed(name).or_else(|| installed.version(name).map(str::to_owned)))
            }
            Err(error) => Err(error),
        }
    }

    /// The Python of a stack by the versions of packages.
    fn by(stack: &Stack, version: impl Fn(&str) -> Option<String>) -> Result<Self, PackagesError> {
        let (wanted, machine) = (stack.python, stack.machine);
        let unreadable = |package: &str, version: &str| PackagesError::Output {
            what: "list of distribution packages",
            detail: format!("the version `{version}` of `{package}` cannot be read"),
        };
        let python = format!("python{wanted}");
        let Some(found) = version(&format!("{python}-minimal")).or_else(|| version(&python)) else {
            let found = ["python3-minimal", "python3"].iter().find_map(|name| version(name));
            let found = found.map_or_else(|| "none".to_owned(), |version| major_minor(&version));
            return Err(PackagesError::Python { found, wanted: wanted.to_string() });
        };
        let full: Version = upstream(&found).parse().map_err(|_| unreadable(&python, &found))?;
        let libc = version("libc6").ok_or_else(|| unreadable("libc6", ""))?;
        let glibc = major_minor(&libc).parse().map_err(|_| unreadable("libc6", &libc))?;
        Ok(Self { version: full.to_string(), glibc, machine })
    }

    /// Files of a container of uv: the program, and its path in the file `python`. uv remembers an interpreter by its path, which
    /// therefore tells what is in it.
    pub(super) fn files(&self) -> [ContainerFile; 2] {
        let program = format!("#!/bin/sh\ncat <<'END'\n{}\nEND\n", self.answer());
        let name = format!("python-{}", &sha256_hex(program.as_bytes())[..16]);
        [file("python", 0o644, format!("{FOLDER}/{name}\n")), file(&name, 0o755, program)]
    }

    /// What uv 0.13.9 reads, as `get_interpreter_info.py` in it prints it for Debian's Python. uv installs nothing here: paths are
    /// the distribution's and nothing is read there.
    fn answer(&self) -> serde_json::Value {
        let Self { version, glibc, machine } = self;
        let short = version.split('.').take(2).collect::<Vec<_>>().join(".");
        let minor = glibc.parts().get(1).copied().unwrap_or_default();
        let site = format!("/usr/local/lib/python{short}/dist-packages");
        let of_environment = format!("lib/python{short}/site-packages");
        json!({
            "result": "success",
            "markers": {
                "implementation_name": "cpython",
                "implementation_version": version,
                "os_name": "posix",
                "platform_machine": machine.to_string(),
                "platform_python_implementation": "CPython",
                "platform_release": "",
                "platform_system": "Linux",
                "platform_version": "",
                "python_full_version": version,
                "python_version": short,
                "sys_platform": "linux",
            },
            "sys_base_prefix": "/usr",
            "sys_base_exec_prefix": "/usr",
            "sys_prefix": "/usr",
            "sys_base_executable": "/usr/bin/python3",
            "sys_executable": "/usr/bin/python3",
            "sys_path": [],
            "site_packages": [],
            "stdlib": format!("/usr/lib/python{short}"),
            "extension_suffixes": [],
            "standalone": false,
            "scheme": {
                "platlib": site,
                "purelib": site,
                "include": format!("/usr/include/python{short}"),
                "scripts": "/usr/local/bin",
                "data": "/usr/local",
            },
            "virtualenv": {
                "purelib": of_environment,
                "platlib": of_environment,
                "include": format!("include/site/python{short}"),
                "scripts": "bin",
                "data": "",
            },
            "os": { "name": "manylinux", "major": 2, "minor": minor },
            "arch": machine.to_string(),
            "cpu_info": { "detected": { "kind": "flags", "flags": "" } },
            "manylinux_compatible": true,
            "gil_disabled": false,
            "debug_enabled": false,
            "pointer_size": "64",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::lock::sample;

    fn by(packages: &[(&str, &str)], python: &str) -> Result<PythonTarget, PackagesError> {
        let stack = Stack { python: python.parse().expect("a Python"), ..sample::stack() };
        let known = |name: &str| {
            let found = packages.iter().find(|(package, _)| *package == name);
            found.map(|(_, version)| (*version).to_owned())
        };
        PythonTarget::by(&stack, known)
    }

    #[test]
    fn full_version_and_c_library_come_from_the_packages() {
        let packages = [
            ("python3.11-minimal", "3.11.2-6+deb12u6"),
            ("python3", "3.11.2-1"),
            ("libc6", "2.36-9+deb12u10"),
        ];
        let found = by(&packages, "3.11").expect("a Python");
        assert_eq!((found.version.as_str(), found.glibc.to_string().as_str()), ("3.11.2", "2.36"));
        let error = by(&packages, "3.12").expect_err("another");
        assert_eq!(error.to_string(), "base has Python 3.11, but 3.12 is required");
        let error = by(&[("libc6", "2.36")], "3.12").expect_err("none");
        assert_eq!(error.to_string(), "base has Python none, but 3.12 is required");
        for (python, libc) in [("what", "2.36"), ("3.11.2", "x")] {
            let error = by(&[("python3.11", python), ("libc6", libc)], "3.11").expect_err("unreadable");
            assert!(error.to_string().contains("cannot be read"), "{error}");
        }
        by(&[("python3.11", "3.11.2")], "3.11").expect_err("no C library");
    }

    #[test]
    fn program_states_one_python_under_a_name_of_its_own() {
        let target = |version: &str| PythonTarget {
            version: version.to_owned(),
            glibc: "2.41".parse().expect("a version"),
            machine: Machine::Aarch64,
        };
        let [path, program] = target("3.13.5").files();
        assert_eq!(String::from_utf8_lossy(&path.bytes).trim(), program.path);
        assert_eq!(program.mode, 0o755);
        let text = String::from_utf8_lossy(&program.bytes).into_owned();
        let json = text.split('\n').nth(2).expect("a line");
        let told: serde_json::Value = serde_json::from_str(json).expect("JSON");
        assert_eq!(told["markers"]["python_full_version"], "3.13.5");
        assert_eq!((&told["os"]["minor"], &told["arch"]), (&json!(41), &json!("aarch64")));
        assert_ne!(target("3.13.6").files()[1].path, program.path);
    }
}
