//! The packages apt would install, as locked packages without addresses.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::catalogue::catalogue;
use super::error::PackagesError;
use super::percent::decoded;
use super::request::PackageRequest;
use crate::model::lock::{Lock, LockedBase, LockedDeb, SCHEMA};
use crate::model::sha256::is_sha256_hex;
use crate::model::stack::Stack;

/// Parses the sections `uris` and `show`: each file apt would download, with its SHA-256 from the signed index.
pub(super) fn locked_debs(uris: &str, show: &str) -> Result<Vec<LockedDeb>, PackagesError> {
    let known = records(show);
    let mut debs = Vec::new();
    for line in uris.lines().filter(|line| !line.trim().is_empty()) {
        let bad = |detail: String| PackagesError::Output { what: "list of distribution packages", detail };
        let (uri, file) = line.rsplit_once(' ').ok_or_else(|| bad(format!("`{line}`")))?;
        let uri = decoded(uri.trim_matches('\''));
        let record = known.iter().find(|deb| uri.ends_with(&format!("/{}", deb.path)));
        debs.push(record.cloned().ok_or_else(|| bad(format!("no SHA-256 of `{file}`")))?);
    }
    debs.sort();
    debs.dedup();
    Ok(debs)
}

/// Returns the old packages if the new ones have the same names on the same base: an update then changes none of them.
pub(super) fn kept(
    new: Vec<LockedDeb>,
    previous: Option<&Lock>,
    base: &LockedBase,
    of: impl Fn(&Lock) -> &Vec<LockedDeb>,
) -> Vec<LockedDeb> {
    let names = |debs: &[LockedDeb]| -> Vec<(String, String)> {
        debs.iter().map(|deb| (deb.name.clone(), deb.architecture.clone())).collect()
    };
    match previous {
        Some(lock) if same_base(&lock.base, base) && names(of(lock)) == names(&new) => of(lock).clone(),
        _ => new,
    }
}

/// Returns the lock file whose distribution packages are still valid, without running apt: their inputs are unchanged.
pub(super) fn standing<'a>(request: &PackageRequest<'a>) -> Option<&'a Lock> {
    let old = request.previous?;
    let has = |debs: &[LockedDeb], name: &str| debs.iter().any(|deb| deb.name == name);
    let same = same_base(&old.base, request.base)
        && old.stack.machine == request.stack.machine
        && old.stack.nvcc == request.stack.nvcc
        && old.added.apt == request.added.apt
        && old.records.envforge == env!("CARGO_PKG_VERSION")
        && old.schema == SCHEMA
        && catalogue().replaceable(&old.stack).eq(catalogue().replaceable(request.stack))
        // What the base may replace was decided for this base.
        && system_list(request.stack, |_| true)
            .lines()
            .all(|name| has(&old.system, name) || has(&old.base.packages, name))
        && !request.fresh.iter().any(|name| old.debs().any(|deb| deb.name == *name));
    same.then_some(old)
}

/// Returns the distribution packages of every image of a stack, one per line, without those that a file of the base replaces.
pub(super) fn system_list(stack: &Stack, base_has: impl Fn(&str) -> bool) -> String {
    let replaced: Vec<_> = catalogue()
        .replaceable(stack)
        .filter(|(_, file)| base_has(file))
        .map(|(package, _)| package)
        .collect();
    let wanted = catalogue().system(stack).filter(|package| !replaced.contains(package));
    let mut system: String = wanted.flat_map(|package| [package, "\n"]).collect();
    if let Some(nvcc) = &stack.nvcc {
        let _ = writeln!(system, "g++-{}", nvcc.gcc);
    }
    system
}

/// Whether both are the same bytes; ignores the content digest, which is metadata.
fn same_base(one: &LockedBase, other: &LockedBase) -> bool {
    one.provider == other.provider && one.digest == other.digest && one.packages == other.packages
}

fn records(show: &str) -> Vec<LockedDeb> {
    let stanza = |text: &str| {
        let fields: BTreeMap<_, _> = text.lines().filter_map(|line| line.split_once(": ")).collect();
        let field = |name: &str| fields.get(name).map(|value| value.trim().to_owned());
        Some(LockedDeb {
            name: field("Package")?,
            version: field("Version")?,
            architecture: field("Architecture")?,
            sha256: field("SHA256").filter(|hash| is_sha256_hex(hash))?,
            size: field("Size")?.parse().ok()?,
            // A flat repository writes `./x.deb`.
            path: field("Filename")?.trim_start_matches("./").to_owned(),
        })
    };
    show.split("\n\n").filter_map(stanza).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::lock::{LockMetadata, UserAdditions, sample};
    use crate::packages::output::{Answers, RECORDED_DEBS};

    fn recorded() -> (String, Vec<LockedDeb>) {
        let answers = Answers::parse(RECORDED_DEBS.as_bytes()).expect("parses");
        let (uris, show) = (answers.named("uris").expect("uris"), answers.named("uris-show").expect("show"));
        (uris.to_owned(), locked_debs(uris, show).expect("debs"))
    }

    #[test]
    fn every_apt_file_is_locked_by_sha256_without_address() {
        let (uris, debs) = recorded();
        assert_eq!(debs.len(), uris.lines().filter(|line| line.starts_with('\'')).count());
        assert!(debs.len() > 90, "{}", debs.len());
        assert!(debs.windows(2).all(|pair| pair[0].name < pair[1].name));
        for deb in &debs {
            assert!(is_sha256_hex(&deb.sha256) && deb.size > 0 && !deb.path.contains("://"), "{deb:?}");
        }
        let vim = debs.iter().find(|deb| deb.name == "vim").expect("vim");
        assert_eq!(vim.version, "2:9.0.1378-2+deb12u2");
        assert_eq!(vim.path, "pool/main/v/vim/vim_9.0.1378-2+deb12u2_amd64.deb");
        assert_eq!(vim.sha256, "298464600a708a3cc7fd7e55a7719dd1adfa8d2de1645c3ecbd05b5d24ffae73");
    }

    #[test]
    fn error_names_file_without_sha256() {
        let uris = "'http://m.test/debian/pool/main/t/tini/tini_0.19.0-1_amd64.deb' tini_0.19.0-1_amd64.deb";
        let show = "Package: tini\nVersion: 0.19.0-1\nArchitecture: amd64\nFilename: pool/main/t/tini/tini_0.19.0-1_amd64.deb\nSize: 5\nSHA256: abc\n";
        for show in ["", show] {
            let error = locked_debs(uris, show).expect_err("refused");
            assert!(error.to_string().contains("tini_0.19.0-1_amd64.deb"), "{error}");
        }
        assert!(locked_debs("nonsense", "").is_err());
        assert_eq!(locked_debs("\n", "").expect("nothing to install"), []);
    }

    #[test]
    fn update_keeps_packages_of_same_base_and_names() {
        let old = sample::lock();
        let newer = vec![sample::deb("python3", "3.11.2-9")];
        assert_eq!(kept(newer.clone(), Some(&old), &old.base, |lock| &lock.system), old.system);
        assert_eq!(kept(newer.clone(), None, &old.base, |lock| &lock.system), newer);
        let more = vec![sample::deb("python3", "3.11.2-9"), sample::deb("tini", "1")];
        assert_eq!(kept(more.clone(), Some(&old), &old.base, |lock| &lock.system), more);
        let mut base = old.base.clone();
        base.content = None;
        assert_eq!(
            kept(newer.clone(), Some(&old), &base, |lock| &lock.system),
            old.system,
            "the content digest is a record"
        );
        base.packages[0].version = "2.37".to_owned();
        assert_eq!(kept(newer.clone(), Some(&old), &base, |lock| &lock.system), newer);
    }

    #[test]
    fn apt_runs_only_if_its_inputs_changed() {
        let lock = sample::lock();
        let mut system = lock.system[0].clone();
        let as_locked = |name: &str| {
            system.name = name.to_owned();
            system.clone()
        };
        let system: Vec<_> = system_list(&lock.stack, |_| false).lines().map(as_locked).collect();
        let records = LockMetadata { envforge: env!("CARGO_PKG_VERSION").to_owned(), ..lock.records.clone() };
        let lock = Lock { system, records, ..lock };
        let asks = |previous: &Lock, apt: &[&str], fresh: &[&str]| {
            let texts = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
            let (added, fresh) =
                (UserAdditions { apt: texts(apt), ..UserAdditions::default() }, texts(fresh));
            let request = PackageRequest {
                previous: Some(previous),
                fresh: &fresh,
                ..PackageRequest::sample(&lock, &lock.stack, &added)
            };
            standing(&request).is_none()
        };
        assert!(!asks(&lock, &[], &[]));
        assert!(!asks(&lock, &[], &["torch"]), "a wheel to upgrade does not concern apt");
        assert!(asks(&lock, &["tree"], &[]), "another request");
        assert!(asks(&lock, &[], &[&lock.system[0].name]), "a distribution package to upgrade");
        let short = Lock { system: lock.system[1..].to_vec(), ..lock.clone() };
        assert!(asks(&short, &[], &[]), "a package is missing");
        let mut other = lock.clone();
        other.schema = SCHEMA - 1;
        assert!(asks(&other, &[], &[]), "its packages were chosen for another image");
        other = lock.clone();
        other.stack.nccl = None;
        assert!(asks(&other, &[], &[]), "a stack without NCCL has fewer");
        other = lock.clone();
        let replaceable =
            |deb: &LockedDeb| catalogue().replaceable(&lock.stack).any(|(name, _)| name == deb.name);
        other.system.retain(|deb| !replaceable(deb));
        assert!(other.system.len() < lock.system.len() && !asks(&other, &[], &[]), "the base replaces them");
        other = lock.clone();
        other.records.envforge = "0.0.0".to_owned();
        assert!(asks(&other, &[], &[]), "another envforge may want others");
        other = lock.clone();
        other.base.digest = Some("sha256:other".to_owned());
        assert!(asks(&other, &[], &[]), "another base");
    }
}
