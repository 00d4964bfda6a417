//! Versions of programs (engine, container toolkit, envforge): lenient parsing, and the minimum versions in one table.
//!
//! Pure. CUDA, drivers and packages have their own types in `versions`.

use semver::{Prerelease, Version};

/// A minimum version of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MinimumVersion {
    /// The program.
    pub program: &'static str,
    /// The lowest version.
    pub version: Version,
    /// The reason.
    pub reason: &'static str,
}

/// The lowest Docker with BuildKit in its API.
pub const DOCKER: MinimumVersion = MinimumVersion {
    program: "Docker",
    version: Version::new(20, 10, 0),
    reason: "builds require its BuildKit",
};
/// The lowest Docker that reads layers compressed with zstd (<https://docs.docker.com/engine/release-notes/23.0/>).
pub const ZSTD_LAYERS: MinimumVersion = MinimumVersion {
    program: "Docker",
    version: Version::new(23, 0, 0),
    reason: "older versions refuse layers compressed with zstd",
};
/// The lowest Podman with the Docker API that envforge uses.
pub const PODMAN: MinimumVersion = MinimumVersion {
    program: "Podman",
    version: Version::new(4, 0, 0),
    reason: "older versions are not supported",
};
/// The lowest Podman whose build cache considers the mounts of a step (buildah 1.39, pull request 5691).
pub const PODMAN_CACHED_MOUNTS: MinimumVersion = MinimumVersion {
    program: "Podman",
    version: Version::new(5, 4, 0),
    reason: "the build cache of older versions ignores the mounts of a step",
};
/// The lowest Podman known to copy an image's folder into a volume before the container starts (5.4.2 does, 4.3.1 does
/// not; those between were not tried).
pub const PODMAN_COPIES_BEFORE_START: MinimumVersion = MinimumVersion {
    program: "Podman",
    version: Version::new(5, 4, 0),
    reason: "older versions copy at the first start, and nothing into a volume that has files by then",
};
/// The recommended NVIDIA Container Toolkit.
pub const CONTAINER_TOOLKIT: MinimumVersion = MinimumVersion {
    program: "NVIDIA Container Toolkit",
    version: Version::new(1, 17, 8),
    reason: "older versions let a container escape to the host (CVE-2025-23266)",
};

impl MinimumVersion {
    /// Returns whether a reported version meets the minimum; `None` if the text contains no version.
    pub fn is_met_by(&self, reported: &str) -> Option<bool> {
        parse_program_version(reported).map(|version| version >= self.version)
    }
}

/// Finds and parses the version in the output of a program.
///
/// Accepts leading zeros, a leading `v`, a missing minor or patch number, and text before and after. Distribution suffixes
/// (`+dfsg1`, `-1`, `~bpo13+1`) do not count; `-rc1`, `~rc.2`, `-dev` make a pre-release.
pub fn parse_program_version(text: &str) -> Option<Version> {
    let text = text.trim();
    // A version in a sentence has a dot: `build 4` is not one.
    let dotted = starts(text).filter_map(|start| parse_at(&text[start..])).find(|(_, parts)| *parts > 1);
    let bare = || parse_at(text.strip_prefix(['v', 'V']).unwrap_or(text)).filter(|_| !text.contains(' '));
    dotted.or_else(bare).map(|(version, _)| version)
}

/// Returns the positions at which a number may start: not inside a word such as `e6534b4`, but behind a `v`.
fn starts(text: &str) -> impl Iterator<Item = usize> {
    let bytes = text.as_bytes();
    let ends_word = |at: usize| at == 0 || !(bytes[at - 1].is_ascii_alphanumeric() || bytes[at - 1] == b'.');
    (0..bytes.len()).filter(move |&at| {
        bytes[at].is_ascii_digit()
            && (ends_word(at) || (matches!(bytes[at - 1], b'v' | b'V') && ends_word(at - 1)))
    })
}

/// Parses the version at the start of a text, and counts its numbers.
fn parse_at(text: &str) -> Option<(Version, usize)> {
    let (mut numbers, mut parts, mut rest) = ([0_u64; 3], 0, text);
    while parts < numbers.len() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        numbers[parts] = rest[..digits].parse().ok()?;
        (parts, rest) = (parts + 1, &rest[digits..]);
        match rest.strip_prefix('.') {
            Some(next) if next.starts_with(|c: char| c.is_ascii_digit()) => rest = next,
            _ => break,
        }
    }
    let [major, minor, patch] = numbers;
    Some((Version { pre: pre_release(rest), ..Version::new(major, minor, patch) }, parts))
}

/// Parses a pre-release behind the numbers: `-rc1` and `~rc.1` are both `rc.1`, so that `rc.10` is newer than `rc.9`.
fn pre_release(rest: &str) -> Prerelease {
    let rest = rest.trim_start_matches(['-', '~', '.']).to_ascii_lowercase();
    let found = ["alpha", "beta", "rc", "pre", "dev"].into_iter().find(|name| {
        rest.strip_prefix(name).is_some_and(|after| !after.starts_with(|c: char| c.is_ascii_alphabetic()))
    });
    let Some(name) = found else { return Prerelease::EMPTY };
    let number = rest[name.len()..].trim_start_matches(['-', '.']);
    let digits = number.find(|c: char| !c.is_ascii_digit()).unwrap_or(number.len());
    let text = match number[..digits].parse::<u64>() {
        Ok(number) => format!("{name}.{number}"),
        Err(_) => name.to_owned(),
    };
    Prerelease::new(&text).unwrap_or(Prerelease::EMPTY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parse_program_version_reads_real_outputs() {
        let table = [
            ("Docker version 28.2.2, build e6534b4", "28.2.2"),
            ("20.10.24+dfsg1", "20.10.24"),
            ("28.5.2+dfsg1-1~bpo13+1", "28.5.2"),
            ("5:28.5.2-1~debian.12~bookworm", "28.5.2"),
            ("17.03.1-ce", "17.3.1"),
            ("28.0.0-rc.1", "28.0.0-rc.1"),
            ("podman version 5.4.2", "5.4.2"),
            ("4.3.1+ds1-8+deb12u1", "4.3.1"),
            ("5.8.0-rc1", "5.8.0-rc.1"),
            ("6.0.0-dev", "6.0.0-dev"),
            ("v0.12.5", "0.12.5"),
            ("github.com/docker/buildx v0.21.3 a1b2c3d4", "0.21.3"),
            ("containerd containerd.io 1.7.27 05044ec0a9a75232cad458027ca83437aae3f4da", "1.7.27"),
            ("nvidia-container-toolkit 1.17.8-1", "1.17.8"),
            ("NVIDIA Container Toolkit CLI version 1.17.8\ncommit: 4a4ac9", "1.17.8"),
            ("1.18.0~rc.2-1", "1.18.0-rc.2"),
            ("OpenSSH_9.2p1 Debian-2+deb12u3, OpenSSL 3.0.15 3 Sep 2024", "9.2.0"),
            ("OpenSSH_10.0p2, OpenSSL 3.5.1", "10.0.0"),
            ("envforge 0.2.0", "0.2.0"),
            ("01.02.03", "1.2.3"),
            ("1.48", "1.48.0"),
            ("28", "28.0.0"),
            ("v5", "5.0.0"),
            ("1.2.3.4", "1.2.3"),
        ];
        for (text, version) in table {
            let parsed = parse_program_version(text).map(|version| version.to_string());
            assert_eq!(parsed.as_deref(), Some(version), "{text}");
        }
    }

    #[test]
    fn parse_program_version_rejects_text_without_a_version() {
        for text in ["", "unknown", "usage: nvidia-ctk", "build e6534b4", "build 4", "99999999999999999999.1"]
        {
            assert_eq!(parse_program_version(text), None, "{text}");
        }
    }

    #[test]
    fn pre_releases_are_ordered_below_their_release() {
        let texts =
            ["5.7.9", "5.8.0-dev", "5.8.0-rc1", "5.8.0~rc9", "5.8.0-rc.10", "5.8.0", "5.8.0.1", "5.10"];
        let versions: Vec<_> = texts.iter().filter_map(|text| parse_program_version(text)).collect();
        assert_eq!(versions.len(), texts.len());
        assert!(versions.is_sorted(), "{versions:?}");
    }

    #[test]
    fn minimum_version_compares_reported_versions() {
        let cases = [
            (&DOCKER, "20.10.24+dfsg1", Some(true)),
            (&DOCKER, "19.03.15", Some(false)),
            (&PODMAN, "4.3.1+ds1-8+deb12u1", Some(true)),
            (&PODMAN, "3.0.1", Some(false)),
            (&PODMAN_CACHED_MOUNTS, "5.4", Some(true)),
            (&PODMAN_CACHED_MOUNTS, "5.3.2", Some(false)),
            (&PODMAN_CACHED_MOUNTS, "unknown", None),
            (&CONTAINER_TOOLKIT, "1.17.8-1", Some(true)),
            (&CONTAINER_TOOLKIT, "1.9.0", Some(false)),
        ];
        for (minimum, reported, met) in cases {
            assert_eq!(minimum.is_met_by(reported), met, "{} {reported}", minimum.program);
        }
    }
}
