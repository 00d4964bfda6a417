//! What enroot and Apptainer read in a file system: the image's configuration as files, the same for both.
//!
//! Sources: enroot 4.1, `src/docker.sh` (`/etc/environment`, `/etc/rc`, `/etc/rc.local`, `/etc/fstab`); Apptainer 1.4,
//! `internal/pkg/build/sources/conveyorPacker_oci.go` and `internal/pkg/util/fs/files/action_scripts.go` (`/.singularity.d`).

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::json;

use crate::model::image::login_profile::{LOGIN_PROFILE, login_profile};
use crate::model::image::render::rendered;

/// A file of the file system, or a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuntimeFile {
    /// Its path, without the leading `/`.
    pub path: &'static str,
    /// Its mode: 0o755.
    pub mode: u32,
    /// Its text; `None`: it is a directory.
    pub text: Option<String>,
}

/// What of an image's configuration counts for a runtime.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Settings {
    env: Option<Vec<String>>,
    entrypoint: Option<Vec<String>>,
    cmd: Option<Vec<String>>,
    working_dir: String,
    labels: Option<BTreeMap<String, String>>,
}

#[derive(Debug, Deserialize)]
struct Configuration {
    #[serde(default)]
    config: Settings,
}

/// Returns the files for an image's configuration (JSON), in the order of their paths.
///
/// # Errors
/// The configuration is not one.
pub fn runtime_files(configuration: &str) -> Result<Vec<RuntimeFile>, serde_json::Error> {
    let Configuration { config } = serde_json::from_str(configuration)?;
    let env = config.env.unwrap_or_default();
    let variables: Vec<(&str, String)> = env.iter().filter_map(|text| variable(text)).collect();
    let path = variables.iter().find(|(name, _)| *name == "PATH").map(|(_, value)| value.as_str());
    let path = path.unwrap_or("/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
    let values = json!({
        "variables": variables.iter().filter(|(name, _)| *name != "HOME").map(|(name, value)| json!({ "name": name, "value": value })).collect::<Vec<_>>(),
        "entrypoint": without_init(config.entrypoint.unwrap_or_default()),
        "command": config.cmd.unwrap_or_else(|| vec!["bash".to_owned()]),
        "folder": if config.working_dir.is_empty() { "/" } else { &config.working_dir },
    });
    let lines: String =
        variables.iter().flat_map(|(name, value)| [name, "=", value.as_str(), "\n"]).collect();
    let labels = serde_json::to_string_pretty(&config.labels.unwrap_or_default())?;
    let file = |path, mode, text: String| RuntimeFile { path, mode, text: Some(text) };
    let made = |template| rendered(template, &values);
    let folder = |path| RuntimeFile { path, mode: 0o755, text: None };
    Ok(vec![
        folder(".singularity.d"),
        folder(".singularity.d/env"),
        file(
            ".singularity.d/env/10-docker2singularity.sh",
            0o755,
            made(include_str!("../../../templates/cluster/environment.sh.j2")),
        ),
        file(
            ".singularity.d/env/99-base.sh",
            0o755,
            include_str!("../../../templates/cluster/libraries.sh").to_owned(),
        ),
        file(".singularity.d/labels.json", 0o644, labels + "\n"),
        folder(".singularity.d/libs"),
        file(
            ".singularity.d/runscript",
            0o755,
            made(include_str!("../../../templates/cluster/runscript.j2")),
        ),
        file(".singularity.d/startscript", 0o755, "#!/bin/sh\n".to_owned()),
        folder("etc"),
        file("etc/environment", 0o644, lines),
        file("etc/fstab", 0o644, String::new()),
        folder("etc/profile.d"),
        file(LOGIN_PROFILE, 0o644, login_profile(path)),
        file("etc/rc", 0o755, made(include_str!("../../../templates/cluster/rc.j2"))),
        file("etc/rc.local", 0o755, String::new()),
    ])
}

/// A variable with its value on one line, as the files of both runtimes have it; `None`: no shell takes the name.
fn variable(text: &str) -> Option<(&str, String)> {
    let (name, value) = text.split_once('=')?;
    let is_name = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && name.chars().all(|part| part.is_ascii_alphanumeric() || part == '_');
    is_name.then(|| (name, value.replace(['\n', '\r'], " ")))
}

/// An entrypoint without `tini … --`: no runtime of a cluster starts it as the first process, and it warns.
fn without_init(entrypoint: Vec<String>) -> Vec<String> {
    let is_init = entrypoint.first().is_some_and(|program| program == "tini" || program.ends_with("/tini"));
    let end = entrypoint.iter().position(|word| word == "--").filter(|_| is_init);
    match end {
        Some(end) => entrypoint[end + 1..].to_vec(),
        None => entrypoint,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text<'a>(files: &'a [RuntimeFile], path: &str) -> &'a str {
        let file = files.iter().find(|file| file.path == path).unwrap_or_else(|| panic!("no {path}"));
        file.text.as_deref().expect("a file")
    }

    #[test]
    fn configuration_is_there_for_both_runtimes() {
        let files = runtime_files(
            &json!({ "config": {
                "Env": ["PATH=/opt/env/bin:/usr/bin", "HOME=/root", "QUOTED=it's $HOME", "TWO=a\nb", "1BAD=x", "none"],
                "Entrypoint": ["/usr/bin/tini", "-g", "--", "/opt/envforge/entrypoint"],
                "Cmd": ["bash"],
                "WorkingDir": "/workspace",
                "Labels": { "io.envforge.name": "torch:2.8" },
            }})
            .to_string(),
        )
        .expect("a configuration");
        assert_eq!(
            text(&files, "etc/environment"),
            "PATH=/opt/env/bin:/usr/bin\nHOME=/root\nQUOTED=it's $HOME\nTWO=a b\n"
        );
        let environment = text(&files, ".singularity.d/env/10-docker2singularity.sh");
        assert!(environment.contains("\nexport PATH='/opt/env/bin:/usr/bin'\n"), "{environment}");
        assert!(!environment.contains("HOME="), "Apptainer's is the caller's: {environment}");
        assert!(environment.contains(r"export QUOTED='it'\''s $HOME'"), "{environment}");
        assert_eq!(
            text(&files, ".singularity.d/runscript"),
            "#!/bin/sh\n[ $# -gt 0 ] || set -- 'bash'\nexec '/opt/envforge/entrypoint' \"$@\"\n"
        );
        let rc = text(&files, "etc/rc");
        assert!(
            rc.contains("cd '/workspace'") && rc.ends_with("exec '/opt/envforge/entrypoint' \"$@\"\n"),
            "{rc}"
        );
        assert!(text(&files, LOGIN_PROFILE).contains("\nexport PATH='/opt/env/bin:/usr/bin'\n"));
        assert_eq!((text(&files, "etc/fstab"), text(&files, "etc/rc.local")), ("", ""));
        assert!(text(&files, ".singularity.d/labels.json").contains("\"torch:2.8\""));
        let paths: Vec<&str> = files.iter().map(|file| file.path).collect();
        assert!(paths.is_sorted(), "{paths:?}");
    }

    #[test]
    fn image_without_settings_starts_a_shell() {
        for configuration in ["{}", r#"{"config":{"Entrypoint":null,"Cmd":null,"Labels":null}}"#] {
            let files = runtime_files(configuration).expect("a configuration");
            assert!(text(&files, "etc/rc").ends_with("[ $# -gt 0 ] || set -- 'bash'\nexec \"$@\"\n"));
        }
        assert!(runtime_files("1").is_err());
    }
}
