//! Proves that a path of several distributions holds the file of the last of them by name: the image is the same whatever
//! order or layer they were installed in. In an image of envforge every other file is compared with its RECORD as well.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use envforge_protocol::{CheckId, Outcome, SkipReason};

use super::{NO_PYTHON, Options, display_path, installed_files, locked_files};
use crate::digest::sha256_of;
use crate::libraries;
use crate::report::Report;

const ID: CheckId = CheckId::SharedPaths;
/// As much of RECORDs is held: those of the largest images have some 30 MB together.
const LARGEST_RECORDS: usize = 256 << 20;
/// As many groups of packages are named.
const SHOWN: usize = 10;

pub(crate) fn run(options: &Options) -> Vec<Report> {
    if !options.has_own_environment() {
        return vec![in_another_image(options)];
    }
    let (mut shared, mut problems) = (Vec::new(), Vec::new());
    for packages in options.packages() {
        for (path, owners) in owners(&packages) {
            let Some(((winner, wanted), others)) = owners.split_last() else { continue };
            let losers: Vec<_> =
                others.iter().filter(|(_, hash)| hash != wanted).map(|(name, _)| name.as_str()).collect();
            if losers.is_empty() {
                continue;
            }
            let file = packages.join(&path);
            let shown = display_path(&options.root, &file);
            match sha256_of(&file) {
                Ok(found) if found == *wanted => {
                    shared.push(format!("{shown}: {winner} replaces {}", losers.join(", ")));
                }
                Ok(_) => problems.push(format!("{shown} is not the file of {winner}")),
                Err(error) => problems.push(format!("{shown}: {error}")),
            }
        }
    }
    for problem in locked_files::changed(options) {
        // Of a shared path this may be known.
        if !problems.contains(&problem) {
            problems.push(problem);
        }
    }
    let fine = if shared.is_empty() { "none".to_owned() } else { shared.join("; ") };
    let report = Report::of_problems(ID, fine, &problems);
    vec![report.hint("build the image with `--builder assembled`, or leave out one of the packages or what changes their files")]
}

/// In an image that envforge did not build the order of the installation decides whose file a path holds: packages that share paths
/// with different content are named, and nothing fails.
fn in_another_image(options: &Options) -> Report {
    let folders = options.packages();
    if folders.is_empty() {
        return Report::skipped(ID, SkipReason::NotInImage, NO_PYTHON);
    }
    let mut counts = BTreeMap::<String, usize>::new();
    for sharing in folders.iter().flat_map(|packages| owners(packages).into_values()) {
        let hashes: BTreeSet<&str> = sharing.iter().map(|(_, hash)| hash.as_str()).collect();
        if hashes.len() > 1 {
            let names: Vec<_> = sharing.iter().map(|(name, _)| name.as_str()).collect();
            *counts.entry(names.join(" and ")).or_default() += 1;
        }
    }
    if counts.is_empty() {
        return Report::new(ID, Outcome::Passed, "none");
    }
    let shared = counts.iter().take(SHOWN).map(|(names, count)| format!("{names} share paths: {count}"));
    let mut text = shared.collect::<Vec<_>>().join("; ");
    if counts.len() > SHOWN {
        text.push_str(&format!("; and {} more", counts.len() - SHOWN));
    }
    Report::new(ID, Outcome::Passed, format!("{text}; each path holds the file of the one installed last"))
        .with_warning("packages share paths")
}

/// The distributions that list a path, by name, each with the SHA-256 (hex) that it lists; paths of one alone are left out.
fn owners(packages: &Path) -> BTreeMap<String, Vec<(String, String)>> {
    let mut all = BTreeMap::<String, Vec<(String, String)>>::new();
    for (name, record) in records(packages) {
        for (path, hash) in record.lines().filter_map(row) {
            all.entry(path).or_default().push((name.clone(), hash));
        }
    }
    all.retain(|_, owners| owners.len() > 1);
    for owners in all.values_mut() {
        owners.sort();
    }
    all
}

/// The name and RECORD of every distribution, by name.
pub(super) fn records(packages: &Path) -> Vec<(String, String)> {
    let (mut all, mut left) = (Vec::new(), LARGEST_RECORDS);
    for path in libraries::entries(packages) {
        let folder = path.file_name().unwrap_or_default().to_string_lossy();
        let Some(stem) = folder.strip_suffix(".dist-info") else { continue };
        let name = stem.split('-').next().unwrap_or(stem).replace(['_', '.'], "-").to_lowercase();
        let Some(record) = installed_files::text(&path.join("RECORD")) else { continue };
        // A link to one large file has its size each time.
        let Some(rest) = left.checked_sub(record.len()) else { break };
        left = rest;
        all.push((name, record));
    }
    all.sort();
    all
}

/// Path and hash of a row; `None`: it has no SHA-256.
pub(super) fn row(line: &str) -> Option<(String, String)> {
    let (path, rest) = match line.strip_prefix('"') {
        Some(quoted) => {
            let end = quoted.find("\",")?;
            (quoted[..end].replace("\"\"", "\""), &quoted[end + 2..])
        }
        None => line.split_once(',').map(|(path, rest)| (path.to_owned(), rest))?,
    };
    let hash = rest.split(',').next()?.strip_prefix("sha256=")?;
    Some((path, hex_of(hash)?))
}

/// Hex of URL-safe base64 without padding.
fn hex_of(text: &str) -> Option<String> {
    let mut bits = 0_u32;
    let mut count = 0;
    let mut hex = String::with_capacity(64);
    for byte in text.bytes() {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'-' => 62,
            b'_' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            hex += &format!("{:02x}", bits >> count & 0xff);
        }
    }
    (hex.len() == 64).then_some(hex)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::sha256;

    /// URL-safe base64 of the SHA-256 of `a` and of `b`.
    const A: &str = "ypeBEsobvcr6wjGzmiPcTaeG7_gUfE5yuYB3ha_uSLs";
    const B: &str = "PiPoFgA5WUoziU9lZOGxNIu9egCI1CxKy3PurtWcAJ0";

    fn check(record_of_zeta: &str, on_disk: &str) -> Report {
        let root = tempfile::tempdir().expect("a folder");
        let packages = root.path().join("opt/env/lib/python3.11/site-packages");
        for (name, record) in
            [("Alpha_x-1.0", format!("\"p/f,1.py\",sha256={A},1\n")), ("zeta-2.0", record_of_zeta.into())]
        {
            let folder = packages.join(format!("{name}.dist-info"));
            std::fs::create_dir_all(&folder).expect("made");
            std::fs::write(folder.join("RECORD"), record + "zeta-2.0.dist-info/RECORD,,\n").expect("written");
        }
        std::fs::create_dir_all(packages.join("p")).expect("made");
        std::fs::write(packages.join("p/f,1.py"), on_disk).expect("written");
        run(&Options { root: root.path().into(), ..Options::default() }).remove(0)
    }

    #[test]
    fn file_of_the_last_distribution_by_name_passes_and_is_named() {
        let zeta = format!("\"p/f,1.py\",sha256={B},1\n");
        let report = check(&zeta, "b");
        assert_eq!(report.outcome, Outcome::Passed);
        assert_eq!(report.detail, "/opt/env/lib/python3.11/site-packages/p/f,1.py: zeta replaces alpha-x");
        let report = check(&zeta, "a");
        assert_eq!(report.outcome, Outcome::Failed);
        assert!(report.detail.ends_with("p/f,1.py is not the file of zeta"), "{}", report.detail);
    }

    #[test]
    fn equal_files_are_no_conflict() {
        let report = check(&format!("\"p/f,1.py\",sha256={A},1\n"), "a");
        assert_eq!((report.outcome, report.detail.as_str()), (Outcome::Passed, "none"));
    }

    #[test]
    fn packages_of_another_image_that_share_paths_are_named_and_nothing_fails() {
        let root = tempfile::tempdir().expect("a folder");
        let packages = root.path().join("usr/local/lib/python3.11/site-packages");
        let record = |name: &str, hash: &str| {
            let folder = packages.join(format!("{name}-1.0.dist-info"));
            std::fs::create_dir_all(&folder).expect("made");
            std::fs::write(folder.join("RECORD"), format!("p/f.py,sha256={hash},1\n")).expect("written");
        };
        let report = || run(&Options { root: root.path().into(), ..Options::default() }).remove(0);
        assert_eq!(report().outcome, Outcome::Skipped, "there is no Python");
        record("alpha", A);
        record("zeta", A);
        assert_eq!((report().outcome, report().detail.as_str()), (Outcome::Passed, "none"));
        record("zeta", B);
        let report = report();
        assert_eq!(report.outcome, Outcome::Passed);
        assert!(report.detail.starts_with("alpha and zeta share paths: 1; "), "{}", report.detail);
        assert!(report.measured.iter().any(|(name, _)| name == "warning"));
    }

    #[test]
    fn record_that_is_a_device_or_larger_than_any_is_passed_over() {
        let root = tempfile::tempdir().expect("a folder");
        let record = |name: &str| {
            let folder = root.path().join(format!("{name}-1.0.dist-info"));
            std::fs::create_dir_all(&folder).expect("made");
            folder.join("RECORD")
        };
        std::fs::write(record("fine"), "a.py,,1\n").expect("written");
        std::os::unix::fs::symlink("/dev/zero", record("endless")).expect("a link");
        let large = std::fs::File::create(record("large")).expect("made");
        large.set_len(1 << 30).expect("it has holes");
        assert_eq!(records(root.path()), [("fine".to_owned(), "a.py,,1\n".to_owned())]);
    }

    #[test]
    fn hash_is_read_as_records_write_it() {
        assert_eq!(hex_of(A), Some(sha256(b"a")));
        assert_eq!(hex_of(&A[1..]), None);
        assert_eq!(hex_of("+"), None);
    }
}
