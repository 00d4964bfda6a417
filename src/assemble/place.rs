//! Where an entry of a wheel is installed below `/opt/env`.
//!
//! Pure. Rules compared with uv 0.13.9; see `tests/docker/assemble_rules.rs`.

use super::entry_points::is_reserved;

/// The environment that wheels are installed in, without the leading `/`, as in the tar of a layer.
pub(super) const ENVIRONMENT: &str = "opt/env";

/// Where an entry is installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    /// At this path.
    At(Target),
    /// As a script of this name, unless an entry point has the name.
    Script(String),
    /// Nowhere: a directory that exists only in the wheel.
    Nowhere,
}

/// A path in the image, and as RECORD lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    /// The path in the tar of a layer; directories without `/` at the end.
    pub(super) path: String,
    /// The path relative to site-packages.
    pub(super) record: String,
}

/// Where the files of one wheel are installed.
#[derive(Debug, Clone)]
pub(super) struct Scheme<'a> {
    /// The normalised name of the distribution.
    pub(super) distribution: &'a str,
    /// `torch-2.8.0` of `torch-2.8.0.dist-info`.
    pub(super) stem: &'a str,
    /// 11 of Python 3.11.
    pub(super) python_minor: u8,
}

impl Scheme<'_> {
    /// Returns the place of an entry, or why it has none. Directories end with `/`.
    pub(super) fn place(&self, name: &str) -> Result<Place, &'static str> {
        let data = name.strip_prefix(self.stem).and_then(|rest| rest.strip_prefix(".data/"));
        let Some(data) = data else {
            return Ok(Place::At(self.target(&format!("{}/{name}", self.site_packages()))));
        };
        if data.is_empty() {
            return Ok(Place::Nowhere);
        }
        let path = match data.split_once('/') {
            Some(("purelib" | "platlib", rest)) => format!("{}/{rest}", self.site_packages()),
            Some(("headers", rest)) => {
                format!("include/site/python3.{}/{}/{rest}", self.python_minor, self.distribution)
            }
            Some(("data", rest)) => {
                return data_target(rest)
                    .map_or(Ok(Place::Nowhere), |found| found.map(|path| Place::At(self.target(path))));
            }
            Some(("scripts", "")) => return Ok(Place::Nowhere),
            Some(("scripts", script)) if script.contains('/') => return Err("it is a directory of scripts"),
            Some(("scripts", script)) if is_reserved(script) => {
                return Err("the name is reserved for the interpreter");
            }
            Some(("scripts", script)) => return Ok(Place::Script(script.to_owned())),
            _ => return Err("unknown directory of wheel data"),
        };
        Ok(Place::At(self.target(&path)))
    }

    /// Returns the target of a script.
    pub(super) fn script(&self, name: &str) -> Target {
        self.target(&format!("bin/{name}"))
    }

    fn site_packages(&self) -> String {
        format!("lib/python3.{}/site-packages", self.python_minor)
    }

    /// Returns the target of a path below the environment.
    fn target(&self, path: &str) -> Target {
        let path = path.trim_end_matches('/');
        // In the environment `lib64` is a link to `lib`; a directory in a layer would replace it.
        let real = path.strip_prefix("lib64/").map(|rest| format!("lib/{rest}"));
        let site = self.site_packages();
        let common = site.split('/').zip(path.split('/')).take_while(|(one, other)| one == other).count();
        let up = "../".repeat(site.split('/').count() - common);
        let rest: Vec<&str> = path.split('/').skip(common).collect();
        Target {
            path: format!("{ENVIRONMENT}/{}", real.as_deref().unwrap_or(path)),
            record: format!("{up}{}", rest.join("/")),
        }
    }
}

/// Returns the path of a data file below the environment; `None` for the environment itself.
fn data_target(path: &str) -> Option<Result<&str, &'static str>> {
    let is_interpreter = path.strip_prefix("bin/").is_some_and(is_reserved);
    match path {
        "" | "lib64/" => None,
        "pyvenv.cfg" | "lib64" => Some(Err("the file belongs to the environment")),
        _ if is_interpreter => Some(Err("the name is reserved for the interpreter")),
        path => Some(Ok(path)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCHEME: Scheme<'static> = Scheme { distribution: "a-b", stem: "a_b-1.0", python_minor: 11 };

    #[test]
    fn every_scheme_directory_has_its_target() {
        const SITE: &str = "opt/env/lib/python3.11/site-packages";
        for (name, path, record) in [
            ("a/b.py", format!("{SITE}/a/b.py"), "a/b.py"),
            ("a/", format!("{SITE}/a"), "a"),
            (
                "a_b-1.0.dist-info/RECORD",
                format!("{SITE}/a_b-1.0.dist-info/RECORD"),
                "a_b-1.0.dist-info/RECORD",
            ),
            ("c-1.0.data/scripts/x", format!("{SITE}/c-1.0.data/scripts/x"), "c-1.0.data/scripts/x"),
            ("a_b-1.0.data", format!("{SITE}/a_b-1.0.data"), "a_b-1.0.data"),
            ("a_b-1.0.data/purelib/x/y.py", format!("{SITE}/x/y.py"), "x/y.py"),
            ("a_b-1.0.data/platlib/x/", format!("{SITE}/x"), "x"),
            (
                "a_b-1.0.data/headers/",
                "opt/env/include/site/python3.11/a-b".into(),
                "../../../include/site/python3.11/a-b",
            ),
            (
                "a_b-1.0.data/headers/h.h",
                "opt/env/include/site/python3.11/a-b/h.h".into(),
                "../../../include/site/python3.11/a-b/h.h",
            ),
            ("a_b-1.0.data/data/etc/x", "opt/env/etc/x".into(), "../../../etc/x"),
            ("a_b-1.0.data/data/lib/x", "opt/env/lib/x".into(), "../../x"),
            ("a_b-1.0.data/data/lib64/x", "opt/env/lib/x".into(), "../../../lib64/x"),
            ("a_b-1.0.data/data/lib/python3.11/site-packages/x", format!("{SITE}/x"), "x"),
            ("a_b-1.0.data/data/bin/tool", "opt/env/bin/tool".into(), "../../../bin/tool"),
        ] {
            assert_eq!(
                SCHEME.place(name),
                Ok(Place::At(Target { path, record: record.to_owned() })),
                "{name}"
            );
        }
        assert_eq!(SCHEME.place("a_b-1.0.data/scripts/x.sh"), Ok(Place::Script("x.sh".to_owned())));
        assert_eq!(SCHEME.script("x").record, "../../../bin/x");
        for name in
            ["a_b-1.0.data/", "a_b-1.0.data/scripts/", "a_b-1.0.data/data/", "a_b-1.0.data/data/lib64/"]
        {
            assert_eq!(SCHEME.place(name), Ok(Place::Nowhere), "{name}");
        }
    }

    #[test]
    fn other_data_is_refused() {
        for (name, reason) in [
            ("a_b-1.0.data/other/x", "unknown directory"),
            ("a_b-1.0.data/other/", "unknown directory"),
            ("a_b-1.0.data/x", "unknown directory"),
            ("a_b-1.0.data/scripts", "unknown directory"),
            ("a_b-1.0.data/scripts/d/x", "directory of scripts"),
            ("a_b-1.0.data/scripts/d/", "directory of scripts"),
            ("a_b-1.0.data/scripts/python3.12", "reserved"),
            ("a_b-1.0.data/data/bin/Python", "reserved"),
            ("a_b-1.0.data/data/pyvenv.cfg", "belongs to the environment"),
            ("a_b-1.0.data/data/lib64", "belongs to the environment"),
        ] {
            let found = SCHEME.place(name).expect_err(name);
            assert!(found.contains(reason), "{name}: {found}");
        }
    }
}
