//! What a project asks for beyond its own folder: a project may be cloned from anybody.

use camino::Utf8Path;

use super::file::Shell;
use crate::model::lock::LockedRun;
use crate::model::sha256::sha256_hex;

/// What a project asks for beyond its own folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostRequests {
    /// A line for each: `mounts /home of this machine`.
    pub lines: Vec<String>,
    /// Names the project's folder and these requests: SHA-256, hex.
    pub hash: String,
}

impl HostRequests {
    /// The requests of a project in that folder, which is absolute and without links; `None`: it asks for nothing.
    pub fn of(folder: &Utf8Path, shell: &Shell, runs: &[LockedRun]) -> Option<Self> {
        let mut lines = Vec::new();
        for mount in &shell.mounts {
            let source = mount.split(':').next().unwrap_or_default();
            if !is_inside(folder, source) {
                lines.push(format!("`[shell] mounts`: `{}` is outside the project", mount.escape_debug()));
            }
        }
        for port in &shell.ports {
            if !is_on_loopback(port) {
                lines.push(format!("`[shell] ports`: other machines reach `{}`", port.escape_debug()));
            }
        }
        for run in runs.iter().filter(|run| !run.secrets.is_empty()) {
            let (names, command) = (run.secrets.join("`, `"), run.command.escape_debug());
            lines.push(format!(
                "`run`: the command `{command}` reads your secrets `{}`",
                names.escape_debug()
            ));
        }
        if lines.is_empty() {
            return None;
        }
        let parts: Vec<&str> =
            std::iter::once(folder.as_str()).chain(lines.iter().map(String::as_str)).collect();
        let hash = sha256_hex(parts.join("\n").as_bytes());
        Some(Self { lines, hash })
    }
}

/// Whether a path, relative to the folder or absolute, lies in it. Links are looked at when it is mounted, by the caller's own
/// rights; here the text decides, so `..` counts as outside.
fn is_inside(folder: &Utf8Path, path: &str) -> bool {
    let path = Utf8Path::new(path);
    let climbs = path.components().any(|part| part.as_str() == "..");
    let elsewhere = path.is_absolute() && !path.starts_with(folder);
    !climbs && !elsewhere && !path.as_str().starts_with('~')
}

/// Whether `[ADDRESS:]HOST:CONTAINER` is reachable from this machine only. Without an address it is.
fn is_on_loopback(port: &str) -> bool {
    let Some((rest, _)) = port.rsplit_once(':') else { return true };
    let Some((address, _)) = rest.rsplit_once(':') else { return true };
    let address: Result<std::net::IpAddr, _> = address.trim_matches(['[', ']']).parse();
    address.is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::project::ProjectFile;

    fn requests(toml: &str) -> Option<HostRequests> {
        let text = format!("schema = 1\nspec = \"pytorch-cuda:2.8-cu128\"\n{toml}");
        let file = ProjectFile::parse("envforge.toml", &text).expect("parses");
        let environment = file.environment("envforge.toml", None).expect("the default one");
        HostRequests::of(Utf8Path::new("/work/p"), &environment.shell, &[])
    }

    #[test]
    fn folders_of_the_project_and_loopback_are_no_requests() {
        for toml in [
            "",
            "[shell]\nmounts = [\"data:/data:ro\", \"/work/p/x:/x\"]\nports = [\"6006\", \"80:80\", \"127.0.0.1:1:2\", \"[::1]:1:2\"]\n",
        ] {
            assert_eq!(requests(toml), None, "{toml}");
        }
    }

    #[test]
    fn each_request_beyond_the_folder_is_a_line() {
        for (toml, says) in [
            ("mounts = [\"/etc:/host:ro\"]", "`/etc:/host:ro` is outside"),
            ("mounts = [\"../other:/x\"]", "outside"),
            ("mounts = [\"data/../../x:/x\"]", "outside"),
            ("mounts = [\"/work/p2:/x\"]", "outside"),
            ("ports = [\"0.0.0.0:80:80\"]", "other machines reach `0.0.0.0:80:80`"),
            ("ports = [\"[::]:80:80\"]", "other machines"),
        ] {
            let found = requests(&format!("[shell]\n{toml}\n")).expect(toml);
            assert!(found.lines.len() == 1 && found.lines[0].contains(says), "{found:?}");
        }
    }

    #[test]
    fn secret_of_a_command_is_a_request() {
        let run = |secrets: &[&str]| LockedRun {
            command: "cat\u{1b}[2J".to_owned(),
            secrets: secrets.iter().map(|name| (*name).to_owned()).collect(),
        };
        let of = |run| HostRequests::of(Utf8Path::new("/p"), &Shell::default(), &[run]);
        assert_eq!(of(run(&[])), None);
        let found = of(run(&["hf", "key"])).expect("two secrets");
        assert!(found.lines[0].contains("`hf`, `key`") && !found.lines[0].contains('\u{1b}'), "{found:?}");
    }

    #[test]
    fn another_folder_or_request_has_another_hash() {
        let shell = |mounts: &str| {
            let text = format!("schema = 1\nspec = \"x:1\"\n[shell]\nmounts = [{mounts}]\n");
            let file = ProjectFile::parse("e", &text).expect("parses");
            file.environment("e", None).expect("one").shell
        };
        let hash = |folder: &str, mounts: &str| {
            HostRequests::of(Utf8Path::new(folder), &shell(mounts), &[]).expect("requests").hash
        };
        let one = hash("/p", "\"/a:/a\"");
        assert_eq!(hash("/p", "\"/a:/a\", \"inside:/b\""), one, "what it may do anyway changes nothing");
        assert_ne!(hash("/q", "\"/a:/a\""), one);
        assert_ne!(hash("/p", "\"/a:/a\", \"/b:/b\""), one);
    }
}
