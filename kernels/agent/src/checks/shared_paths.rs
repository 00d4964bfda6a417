//! Proves that a path of several distributions holds the file of the last of them by name: the image is the same whatever
//! order or layer they were installed in.

use std::collections::BTreeMap;
use std::path::Path;

use envforge_protocol::CheckId;

use super::{Options, display_path};
use crate::digest::sha256;
use crate::report::Report;

const ID: CheckId = CheckId::SharedPaths;

pub(crate) fn run(options: &Options) -> Vec<Report> {
    let (mut shared, mut problems) = (Vec::new(), Vec::new());
    let pythons = std::fs::read_dir(options.environment().join("lib")).into_iter().flatten().flatten();
    for packages in pythons.map(|python| python.path().join("site-packages")) {
        for (path, owners) in owners(&packages) {
            let Some(((winner, wanted), others)) = owners.split_last() else { continue };
            let losers: Vec<_> =
                others.iter().filter(|(_, hash)| hash != wanted).map(|(name, _)| name.as_str()).collect();
            if losers.is_empty() {
                continue;
            }
            let file = packages.join(&path);
            let shown = display_path(&options.root, &file);
            match std::fs::read(&file) {
                Ok(bytes) if sha256(&bytes) == *wanted => {
                    shared.push(format!("{shown}: {winner} replaces {}", losers.join(", ")));
                }
                Ok(_) => problems.push(format!("{shown} is not the file of {winner}")),
                Err(error) => problems.push(format!("{shown}: {error}")),
            }
        }
    }
    let fine = if shared.is_empty() { "none".to_owned() } else { shared.join("; ") };
    let report = Report::of_problems(ID, fine, &problems);
    vec![report.hint("build the image with `--builder assembled`, or leave one of the packages out")]
}

/// The distributions that list a path, by name, each with the SHA-256 (hex) that it lists; paths of one alone are left out.
fn owners(packages: &Path) -> BTreeMap<String, Vec<(String, String)>> {
    let mut all = BTreeMap::<String, Vec<(String, String)>>::new();
    for entry in std::fs::read_dir(packages).into_iter().flatten().flatten() {
        let folder = entry.file_name().to_string_lossy().into_owned();
        let Some(stem) = folder.strip_suffix(".dist-info") else { continue };
        let name = stem.split('-').next().unwrap_or(stem).replace(['_', '.'], "-").to_lowercase();
        let Ok(record) = std::fs::read_to_string(entry.path().join("RECORD")) else { continue };
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

/// Path and hash of a row; `None`: it has no SHA-256.
fn row(line: &str) -> Option<(String, String)> {
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
    use envforge_protocol::Outcome;

    use super::*;

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
    fn hash_is_read_as_records_write_it() {
        assert_eq!(hex_of(A), Some(sha256(b"a")));
        assert_eq!(hex_of(&A[1..]), None);
        assert_eq!(hex_of("+"), None);
    }
}
