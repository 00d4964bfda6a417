//! What was typed for mounts, ports, variables and sizes, read.
//!
//! Pure: paths are given absolute by the caller.

use std::net::{IpAddr, Ipv4Addr};

use camino::{Utf8Path, Utf8PathBuf};

use super::ShellError;
use crate::engine::{Mount, MountSource, Port};

fn bad(option: &'static str, found: &str, why: &'static str) -> ShellError {
    ShellError::Option { option, found: found.to_owned(), why }
}

/// `512m`, `64g`, `1t`, or bytes.
pub(crate) fn memory_size(option: &'static str, text: &str) -> Result<i64, ShellError> {
    let lower = text.trim().to_ascii_lowercase();
    let lower = lower.strip_suffix("ib").or(lower.strip_suffix('b')).unwrap_or(&lower);
    let (number, shift) = match lower.as_bytes().last() {
        Some(b'k') => (&lower[..lower.len() - 1], 10),
        Some(b'm') => (&lower[..lower.len() - 1], 20),
        Some(b'g') => (&lower[..lower.len() - 1], 30),
        Some(b't') => (&lower[..lower.len() - 1], 40),
        _ => (lower, 0),
    };
    let number: f64 = number.trim().parse().map_err(|_| bad(option, text, "not a size"))?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "checked below")]
    let bytes = (number * (1_i64 << shift) as f64) as i64;
    if number.is_finite() && bytes > 0 { Ok(bytes) } else { Err(bad(option, text, "must be above 0")) }
}

/// Converts `2.5` processors to billionths.
pub(crate) fn nano_cpus(text: &str) -> Result<i64, ShellError> {
    let number: f64 = text.parse().map_err(|_| bad("--cpus", text, "not a number"))?;
    #[expect(clippy::cast_possible_truncation, reason = "far below the limit, see the check")]
    let nano = (number * 1e9) as i64;
    if (0.01..=100_000.0).contains(&number) { Ok(nano) } else { Err(bad("--cpus", text, "out of range")) }
}

/// The mount options.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MountArgs<'a> {
    pub(crate) mount: &'a [String],
    pub(crate) data: &'a [String],
    pub(crate) volume: &'a [String],
    /// The current directory, the base of relative sources.
    pub(crate) current: &'a Utf8Path,
}

/// Parses the mounts, in the order data, mounts, volumes.
pub(crate) fn mounts(typed: MountArgs<'_>) -> Result<Vec<Mount>, ShellError> {
    let mut all = Vec::new();
    for text in typed.data {
        let (source, target) = if let Some((source, target)) = text.rsplit_once(':') {
            (source, target.to_owned())
        } else {
            let name = Utf8Path::new(text).file_name();
            let name = name.ok_or_else(|| bad("--data", text, "missing directory"))?;
            (text.as_str(), format!("/data/{name}"))
        };
        all.push(Mount { read_only: true, ..folder(("--data", text), typed.current, source, &target)? });
    }
    for text in typed.mount {
        let (rest, read_only) = match text.rsplit_once(':') {
            Some((rest, "ro")) => (rest, true),
            Some((rest, "rw")) => (rest, false),
            _ => (text.as_str(), false),
        };
        let (source, target) =
            rest.rsplit_once(':').ok_or_else(|| bad("--mount", text, "missing container path"))?;
        all.push(Mount { read_only, ..folder(("--mount", text), typed.current, source, target)? });
    }
    for text in typed.volume {
        let (name, target) =
            text.split_once(':').ok_or_else(|| bad("--volume", text, "missing container path"))?;
        if !is_name(name) {
            return Err(bad("--volume", text, "not a volume name"));
        }
        let target = absolute("--volume", text, target)?;
        all.push(Mount { source: MountSource::Volume(name.to_owned()), target, read_only: false });
    }
    Ok(all)
}

/// Returns a writable mount of a host directory; `(option, text)` is named in errors.
fn folder(
    (option, text): (&'static str, &str),
    current: &Utf8Path,
    source: &str,
    target: &str,
) -> Result<Mount, ShellError> {
    if source.is_empty() {
        return Err(bad(option, text, "missing directory"));
    }
    let target = absolute(option, text, target)?;
    Ok(Mount { source: MountSource::Folder(current.join(source).to_string()), target, read_only: false })
}

/// Parses a container path. The root and the paths that close the container are reserved.
fn absolute(option: &'static str, text: &str, target: &str) -> Result<String, ShellError> {
    let path = Utf8PathBuf::from(target.trim_end_matches('/'));
    let plain = path.components().all(|part| part.as_str() != "..");
    if !path.is_absolute() || !plain {
        return Err(bad(option, text, "the container path must be absolute"));
    }
    if ["/etc", "/proc", "/sys", "/dev", "/home/dev", "/tmp"].contains(&path.as_str()) {
        return Err(bad(option, text, "reserved container path"));
    }
    Ok(path.into_string())
}

/// Returns whether engines accept the name.
pub(crate) fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
}

/// Parses `HOST:CONTAINER`, `IP:HOST:CONTAINER` or `PORT`; on the loopback without an address.
pub(crate) fn ports(texts: &[String]) -> Result<Vec<Port>, ShellError> {
    texts.iter().map(|text| port(text)).collect()
}

fn port(text: &str) -> Result<Port, ShellError> {
    let wrong = || bad("--port", text, "not a pair of ports");
    let number = |part: &str| part.parse::<u16>().map_err(|_| wrong());
    let (rest, container) = text.rsplit_once(':').unwrap_or((text, text));
    let (address, host) = rest.rsplit_once(':').map_or((None, rest), |(address, host)| (Some(address), host));
    let address = match address {
        Some(address) => address.trim_matches(['[', ']']).parse().map_err(|_| wrong())?,
        None => IpAddr::V4(Ipv4Addr::LOCALHOST),
    };
    let container = number(container)?;
    if container == 0 {
        return Err(wrong());
    }
    Ok(Port { address, host: number(host)?, container })
}

/// Parses `NAME=VALUE`, or `NAME` with its value on this machine.
pub(crate) fn variables(
    texts: &[String],
    here: impl Fn(&str) -> Option<String>,
) -> Result<Vec<String>, ShellError> {
    let one = |text: &String| match text.split_once('=') {
        Some((name, _)) if is_variable(name) => Ok(text.clone()),
        None if is_variable(text) => match here(text) {
            Some(value) => Ok(format!("{text}={value}")),
            None => Err(ShellError::NoVariable { name: text.clone() }),
        },
        // The text may contain a secret after the name.
        _ => {
            let name = text.split('=').next().unwrap_or_default();
            Err(bad("--env", name, "not a variable name"))
        }
    };
    texts.iter().map(one).collect()
}

/// The most of a file of variables, bytes.
pub(crate) const LARGEST_ENV_FILE: u64 = 1 << 20;

/// Parses a file of variables: one per line, `#` starts a comment, quotes around a complete value are removed.
pub(crate) fn env_file(text: &str) -> Result<Vec<String>, ShellError> {
    let lines = text
        .lines()
        .map(str::trim)
        .enumerate()
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let one = |(number, line): (usize, &str)| {
        let line = line.strip_prefix("export ").unwrap_or(line);
        match line.split_once('=') {
            Some((name, value)) if is_variable(name.trim()) => {
                let bare =
                    ['"', '\''].iter().find_map(|quote| value.strip_prefix(*quote)?.strip_suffix(*quote));
                Ok(format!("{}={}", name.trim(), bare.unwrap_or(value)))
            }
            // Never the line itself: it may be a secret.
            _ => Err(bad("--env-file", &format!("line {}", number + 1), "not a `NAME=VALUE` line")),
        }
    };
    lines.map(one).collect()
}

fn is_variable(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::{Exit, Failure as _};

    fn owned(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    fn read(data: &[&str], mount: &[&str], volume: &[&str]) -> Result<Vec<String>, ShellError> {
        let (data, mount, volume) = (owned(data), owned(mount), owned(volume));
        let typed =
            MountArgs { mount: &mount, data: &data, volume: &volume, current: Utf8Path::new("/here") };
        let shown = |mount: Mount| {
            let source = match mount.source {
                MountSource::Folder(path) => path,
                MountSource::Volume(name) => format!("volume {name}"),
            };
            format!("{source} {} {}", mount.target, if mount.read_only { "ro" } else { "rw" })
        };
        Ok(mounts(typed)?.into_iter().map(shown).collect())
    }

    #[test]
    fn data_is_read_only_and_relative_to_the_current_directory() {
        assert_eq!(
            read(&["imagenet", "/d/x:/in"], &[], &[]).unwrap(),
            ["/here/imagenet /data/imagenet ro", "/d/x /in ro"]
        );
        assert_eq!(read(&[], &["a:/b:ro", "/c:/d"], &[]).unwrap(), ["/here/a /b ro", "/c /d rw"]);
        assert_eq!(read(&[], &[], &["out:/out"]).unwrap(), ["volume out /out rw"]);
    }

    #[test]
    fn invalid_mount_is_rejected() {
        for wrong in ["a", "a:b", ":/b", "a:/etc", "a:/x/../etc", "a:/proc", "a:/"] {
            let error = read(&[], &[wrong], &[]).unwrap_err();
            assert_eq!((error.exit(), error.hints().len()), (Exit::Usage, 1), "{wrong}");
        }
        assert!(read(&[], &[], &["/abs:/out"]).is_err());
    }

    #[test]
    fn sizes_and_processors_are_parsed() {
        assert_eq!(memory_size("--memory", "64g").unwrap(), 64 << 30);
        assert_eq!(memory_size("--memory", "1.5GiB").unwrap(), 3 << 29);
        assert_eq!(memory_size("--memory", "100").unwrap(), 100);
        for wrong in ["", "g", "-1g", "0", "1x", "inf"] {
            assert!(memory_size("--memory", wrong).is_err(), "{wrong}");
        }
        assert_eq!(nano_cpus("2.5").unwrap(), 2_500_000_000);
        assert!(nano_cpus("0").is_err() && nano_cpus("nan").is_err());
    }

    #[test]
    fn ports_default_to_the_loopback() {
        let shown = |text: &str| {
            let port = port(text).unwrap();
            format!("{} {} {}", port.address, port.host, port.container)
        };
        assert_eq!(shown("6006"), "127.0.0.1 6006 6006");
        assert_eq!(shown("80:8080"), "127.0.0.1 80 8080");
        assert_eq!(shown("0.0.0.0:80:8080"), "0.0.0.0 80 8080");
        assert_eq!(shown("[::1]:80:8080"), "::1 80 8080");
        for wrong in ["", "a", "1:0", "70000:1", "host:1:2"] {
            assert!(port(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn variables_are_passed_or_reported() {
        let here = |name: &str| (name == "TOKEN").then(|| "t".to_owned());
        assert_eq!(variables(&owned(&["A=b=c", "TOKEN"]), here).unwrap(), ["A=b=c", "TOKEN=t"]);
        assert!(matches!(variables(&owned(&["GONE"]), here), Err(ShellError::NoVariable { .. })));
        let error = variables(&owned(&["bad-name=secret"]), here).unwrap_err().to_string();
        assert!(!error.contains("secret"), "{error}");
        assert_eq!(
            env_file("# c\n\nA=1\nexport B=\"two words\"\nC='x'\n").unwrap(),
            ["A=1", "B=two words", "C=x"]
        );
        let error = env_file("A=1\nsecret\n").unwrap_err().to_string();
        assert!(error.contains("line 2") && !error.contains("secret"), "{error}");
    }
}
