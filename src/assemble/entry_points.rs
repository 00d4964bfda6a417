//! Scripts that uv generates for the entry points of a distribution.
//!
//! Pure. Rules compared with uv 0.13.9; see `tests/docker/assemble_rules.rs`.

use std::collections::BTreeSet;

use crate::model::whiteout::{DELETES, deletes};

/// The interpreter of every script.
pub(super) const SHEBANG: &str = "#!/opt/env/bin/python";

/// A generated script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Script {
    /// Its file name.
    pub(super) name: String,
    module: String,
    function: String,
}

impl Script {
    /// Returns the text of the script.
    pub(super) fn text(&self) -> String {
        let Self { name: _, module, function } = self;
        let import = function.split('.').next().unwrap_or_default();
        format!(
            r#"{SHEBANG}
# -*- coding: utf-8 -*-
import sys
from {module} import {import}
if __name__ == "__main__":
    if sys.argv[0].endswith("-script.pyw"):
        sys.argv[0] = sys.argv[0][:-11]
    elif sys.argv[0].endswith(".exe"):
        sys.argv[0] = sys.argv[0][:-4]
    sys.exit({function}())
"#
        )
    }
}

/// Returns the scripts of `entry_points.txt` in the order in which uv writes them, or every reason against the file.
pub(super) fn scripts(text: &[u8], python_minor: u8) -> Result<Vec<Script>, Vec<String>> {
    let text = std::str::from_utf8(text).map_err(|_| vec!["entry_points.txt is not UTF-8".to_owned()])?;
    let options = options(text).map_err(|reason| vec![reason])?;
    let mut reasons = Vec::new();
    let mut of = |section: &str| {
        let mut found = Vec::new();
        for option in options.iter().filter(|option| option.section == section) {
            match script(option) {
                Ok(script) => found.push(script),
                Err(reason) => reasons.push(reason),
            }
        }
        found
    };
    let (mut console, gui) = (of("console_scripts"), of("gui_scripts"));
    // pip's `pip3.X` is of the Python that built the wheel; uv writes that of the environment.
    console.retain(|script| {
        let minor = script.name.strip_prefix("pip3.").map(str::parse::<u8>);
        !matches!(minor, Some(Ok(_)))
    });
    if let Some(pip) = console.iter().find(|script| script.name == "pip3") {
        let pip = Script { name: format!("pip3.{python_minor}"), ..pip.clone() };
        console.push(pip);
    }
    console.extend(gui);
    if reasons.is_empty() { Ok(console) } else { Err(reasons) }
}

/// Whether a script of that name would replace an interpreter; uv refuses these names, too.
pub(super) fn is_reserved(name: &str) -> bool {
    let name = name.to_lowercase();
    let minor = name.strip_prefix("python3.").map(|minor| minor.strip_suffix('t').unwrap_or(minor));
    ["python", "pythonw", "python3", "pypy", "pypyw", "pypy3", "graalpy"].contains(&name.as_str())
        || minor.is_some_and(|minor| !minor.is_empty() && minor.bytes().all(|byte| byte.is_ascii_digit()))
}

/// One option of a section.
struct IniOption {
    section: String,
    key: String,
    value: String,
}

/// Reads the file as Python's configparser does with `=` only: no inline comments, no duplicates.
fn options(text: &str) -> Result<Vec<IniOption>, String> {
    let mut options: Vec<IniOption> = Vec::new();
    let (mut sections, mut keys) = (BTreeSet::new(), BTreeSet::new());
    let (mut section, mut depth, mut continues) = (None, 0, false);
    for (at, line) in text.replace("\r\n", "\n").split(['\n', '\r']).enumerate() {
        let wrong = |what: &str| Err(format!("entry_points.txt: {what} in line {}", at + 1));
        let content = line.trim();
        if content.is_empty() || content.starts_with(['#', ';']) {
            continue;
        }
        let indent = line.len() - line.trim_start().len();
        if let Some(last) = options.last_mut().filter(|_| continues && indent > depth) {
            last.value.push('\n');
            last.value.push_str(content);
            continue;
        }
        depth = indent;
        let header =
            content.strip_prefix('[').and_then(|rest| rest.rsplit_once(']')).map(|(header, _)| header);
        if let Some(header) = header.filter(|header| !header.is_empty()) {
            if !sections.insert(header.to_owned()) {
                return wrong("duplicate section");
            }
            (section, continues) = (Some(header.to_owned()), false);
            continue;
        }
        let Some(section) = section.clone() else { return wrong("option without a section") };
        let Some((key, value)) = content.split_once('=').map(|(key, value)| (key.trim(), value.trim()))
        else {
            return wrong("neither option nor section");
        };
        if key.is_empty() {
            return wrong("option without a name");
        }
        if !keys.insert((section.clone(), key.to_owned())) {
            return wrong("duplicate option");
        }
        options.push(IniOption { section, key: key.to_owned(), value: value.to_owned() });
        continues = true;
    }
    Ok(options)
}

/// Reads an option such as `name = module:function [extra]`; extras are ignored.
fn script(option: &IniOption) -> Result<Script, String> {
    let invalid = || {
        format!(
            "entry_points.txt: invalid script `{} = {}`",
            option.key.escape_debug(),
            option.value.escape_debug()
        )
    };
    let is_reference = |text: &str| {
        let of_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
        !text.is_empty() && text.chars().all(of_name)
    };
    let (module, rest) = option.value.split_once(':').ok_or_else(invalid)?;
    let function = match rest.split_once('[') {
        None => rest,
        Some((function, extras)) => {
            let extras = extras.strip_suffix(']').ok_or_else(invalid)?.trim_start();
            if extras.is_empty() || extras.starts_with(',') || extras.contains(",,") {
                return Err(invalid());
            }
            function
        }
    };
    let (module, function) = (module.trim(), function.trim());
    if !is_reference(module) || !is_reference(function) {
        return Err(invalid());
    }
    let name = option.key.clone();
    // Also a path inside the directory: nothing but a plain name is written.
    if name.contains(['/', '\\']) || name == "." || name == ".." || name.contains(char::is_control) {
        return Err(format!("entry_points.txt: invalid script name `{}`", name.escape_debug()));
    }
    if deletes(name.as_bytes()) {
        return Err(format!("script name `{name}`: {DELETES}"));
    }
    if is_reserved(&name) {
        return Err(format!("script name `{name}` is reserved for the interpreter"));
    }
    Ok(Script { name, module: module.to_owned(), function: function.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Result<Vec<String>, String> {
        let show = |script: Script| format!("{}={}:{}", script.name, script.module, script.function);
        match scripts(text.as_bytes(), 11) {
            Ok(all) => Ok(all.into_iter().map(show).collect()),
            Err(reasons) => Err(reasons.join("; ")),
        }
    }

    #[test]
    fn text_of_a_script_is_that_of_uv() {
        let all = scripts(b"[console_scripts]\nep = a.b : c.d [x,y]\n", 11).expect("scripts");
        insta::assert_snapshot!(all[0].text(), @r#"
        #!/opt/env/bin/python
        # -*- coding: utf-8 -*-
        import sys
        from a.b import c
        if __name__ == "__main__":
            if sys.argv[0].endswith("-script.pyw"):
                sys.argv[0] = sys.argv[0][:-11]
            elif sys.argv[0].endswith(".exe"):
                sys.argv[0] = sys.argv[0][:-4]
            sys.exit(c.d())
        "#);
        assert!(all[0].text().ends_with("sys.exit(c.d())\n"));
    }

    #[test]
    fn scripts_are_read_as_uv_reads_them() {
        for (text, expected) in [
            ("", &[] as &[&str]),
            ("\n", &[]),
            ("[other]\nz = not a thing\ny=\n[console_scripts]\nx=m:f", &["x=m:f"]),
            ("[console_scripts]\n  x = m:f\n  y = m:g\n", &["x=m:f", "y=m:g"]),
            ("[console_scripts]\n x=m:f\ny=m:g\n", &["x=m:f", "y=m:g"]),
            ("[console_scripts]\n\n\tx\t=\tm:f\r\ny=m:g\rz=m:h", &["x=m:f", "y=m:g", "z=m:h"]),
            ("[console_scripts] ; c\nx=m:f\n;y\n#z\n  # w\nX=m:g\n", &["x=m:f", "X=m:g"]),
            ("[console_scripts]\nx=m:f[ a ]  \ny = m-x :f.g[a, b]\n", &["x=m:f", "y=m-x:f.g"]),
            ("[ console_scripts ]\nx=m:f\n[Console_Scripts]\ny=m:f\n", &[]),
            ("[gui_scripts]\ny=m:f\n[console_scripts]\ny=m:g\na b=m:é\n", &["y=m:g", "a b=m:é", "y=m:f"]),
        ] {
            assert_eq!(
                found(text).as_deref(),
                Ok(expected.iter().map(ToString::to_string).collect::<Vec<_>>().as_slice()),
                "{text:?}"
            );
        }
    }

    #[test]
    fn pip_gets_a_script_of_the_running_minor() {
        let text = "[console_scripts]\npip=a:b\npip3=a:c\npip3.9=a:d\npip3.+4=a:d\npip3.x=a:e\npip3.256=a:g\nzs-3.9=a:f\n";
        let expected = ["pip=a:b", "pip3=a:c", "pip3.x=a:e", "pip3.256=a:g", "zs-3.9=a:f", "pip3.11=a:c"];
        assert_eq!(found(text).expect("scripts"), expected);
        assert_eq!(found("[gui_scripts]\npip3=a:b\npip3.4=a:c\n").expect("scripts").len(), 2);
    }

    #[test]
    fn files_that_uv_rejects_are_rejected() {
        for (line, reason) in [
            ("x: m:f", "neither option nor section in line 2"),
            ("x", "neither option nor section in line 2"),
            ("=m:f", "without a name in line 2"),
            ("[a", "neither option nor section in line 2"),
            ("x=m:f\nx=m:g", "duplicate option in line 3"),
            ("x=m:f\n[console_scripts]", "duplicate section in line 3"),
            ("x=m", "invalid script `x = m`"),
            ("x=m:f # c", "invalid script"),
            ("x=m:f ; c", "invalid script"),
            ("x=m:f=g", "invalid script"),
            ("x=:f", "invalid script"),
            ("x=m:", "invalid script"),
            ("x=m:f[]", "invalid script"),
            ("x=m:f[a", "invalid script"),
            ("x=m:f[a,,b]", "invalid script"),
            ("x=m:f\n  y=m:g", "invalid script"),
            ("x=m:f()\ny=m:f\"", "invalid script `x = m:f()`; "),
            ("d/x=m:f", "invalid script name `d/x`"),
            ("../x=m:f", "invalid script name `../x`"),
            ("..=m:f", "invalid script name `..`"),
            ("python=m:f", "`python` is reserved"),
        ] {
            let error = found(&format!("[console_scripts]\n{line}\n")).expect_err(line);
            assert!(error.contains(reason), "{line:?}: {error}");
        }
        assert!(found("x = m:f\n").expect_err("no section").contains("without a section in line 1"));
        assert!(found("\u{feff}[console_scripts]\n").is_err());
        assert!(found("[]\na=b").is_err());
        assert!(scripts(b"[console_scripts]\nx=m:f\xff\n", 11).is_err());
    }

    #[test]
    fn names_of_interpreters_are_reserved() {
        for name in [
            "python",
            "Python",
            "pythonw",
            "python3",
            "python3.11",
            "python3.11t",
            "pypy",
            "pypy3",
            "graalpy",
        ] {
            assert!(is_reserved(name), "{name}");
        }
        for name in
            ["python2", "pythonx", "python-config", "python3.", "python3.x", "pypy3.9", "graalpy3", "ipython"]
        {
            assert!(!is_reserved(name), "{name}");
        }
    }
}
