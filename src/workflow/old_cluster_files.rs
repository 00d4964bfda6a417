//! Files of former locks in the directory of a cluster, and those that a killed export left, for `prune`. They are listed and not removed: a
//! job may wait for one, and a lock may be in use on another machine.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;
use std::time::{Duration, SystemTime};

use camino::{Utf8Path, Utf8PathBuf};

use crate::cluster_file::STAGED;
use crate::model::cluster::digits_of;
use crate::model::request::{LockOptions, ProjectOptions, TargetOptions};
use crate::report::{Event, Reporter};
use crate::settings::Settings;
use crate::store::Store;
use crate::store::known_locks::{in_use, unread_locks};
use crate::workflow::build_request::wanted;
use crate::workflow::cluster_folder::{ClusterError, ClusterFolder};
use crate::workflow::error::CommandError;
use crate::workflow::lock_file::read_lock;
use crate::workflow::project::{environments, found};
use crate::workflow::project_sources::image_hash;

/// How old a file in the making is that nothing writes any more: the clock of shared storage may differ from this machine's.
const UNFINISHED: Duration = Duration::from_hours(24);

/// A file with an image of a former lock, or an unfinished one.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct OldFile {
    pub(crate) path: Utf8PathBuf,
    /// Bytes.
    pub(crate) size: u64,
}

impl OldFile {
    /// Whether a killed export left it.
    pub(crate) fn is_unfinished(&self) -> bool {
        self.path.file_name().is_some_and(|name| name.starts_with(STAGED))
    }
}

/// Finds the files of the project here, of each of its environments, that no lock in use names. Without a project, a cluster or a lock
/// there are none; what keeps the directory from being read is reported.
pub(crate) fn old_cluster_files(settings: &Settings, store: &Store, reporter: &dyn Reporter) -> Vec<OldFile> {
    let project = ProjectOptions::default();
    // Which files a lock that cannot be read names is not known: as for images, none is removed.
    if found(&project, settings).is_err() || !unread_locks(store).is_empty() {
        return Vec::new();
    }
    match of_project(&project, settings, store) {
        Ok(files) => files,
        Err(error) => {
            let text = format!("files of the cluster are not listed: {error}");
            reporter.report(Event::Warning { text });
            Vec::new()
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "tells how old a file is")]
fn of_project(
    project: &ProjectOptions,
    settings: &Settings,
    store: &Store,
) -> Result<Vec<OldFile>, CommandError> {
    let mut files = Vec::new();
    let known = in_use(store);
    for environment in environments(project, settings)? {
        let project = ProjectOptions { environment, ..project.clone() };
        let (source, target) = (LockOptions::default(), TargetOptions::default());
        let wanted = wanted(None, &project, &source, &target, settings)?;
        let (Some(cluster), Some(lockfile)) =
            (ClusterFolder::of(&wanted, settings)?, &wanted.source.lockfile)
        else {
            continue;
        };
        // Without a lock no file is known to be that of a former one.
        let Some(lock) = read_lock(lockfile)? else { continue };
        let mut used = known.clone();
        used.insert(lock.hash());
        used.extend(image_hash(store, &wanted, &lock)?);
        let user = rustix::process::geteuid().as_raw();
        for file in old_files(&cluster, &used, user, SystemTime::now())? {
            // Environments may share a directory.
            if !files.contains(&file) {
                files.push(file);
            }
        }
    }
    Ok(files)
}

/// The files of an image's name in a directory, but those of the locks with these hashes, and unfinished ones. Those of another user belong
/// to a project of theirs with the same name.
fn old_files(
    cluster: &ClusterFolder,
    used: &BTreeSet<String>,
    user: u32,
    now: SystemTime,
) -> Result<Vec<OldFile>, CommandError> {
    let folder = &cluster.path;
    match fs_err::symlink_metadata(folder) {
        Ok(found) if found.is_dir() => {}
        // One that leads elsewhere could lead to files of others.
        Ok(_) => return Err(ClusterError::NotAFolder { folder: folder.clone() }.into()),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Err(ClusterError::NoFolder { folder: folder.clone() }.into());
        }
        Err(error) => return Err(error.into()),
    }
    let is_used = |digits: &str| used.iter().any(|hash| hash.starts_with(digits));
    let mut files = Vec::new();
    for entry in fs_err::read_dir(folder)? {
        let Ok(name) = entry?.file_name().into_string() else { continue };
        let before = if digits_of(&name, &cluster.name).is_some_and(|digits| !is_used(digits)) {
            None
        } else if name.starts_with(STAGED) {
            now.checked_sub(UNFINISHED)
        } else {
            continue;
        };
        let path = folder.join(name);
        files.extend(size_of_own(&path, user, before)?.map(|size| OldFile { path, size }));
    }
    files.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(files)
}

/// The size of a user's file, last written before that time; `None`: it is gone, newer, another user's, a link or a directory, which
/// envforge does not write there.
fn size_of_own(path: &Utf8Path, user: u32, before: Option<SystemTime>) -> Result<Option<u64>, CommandError> {
    match fs_err::symlink_metadata(path) {
        Ok(found) => {
            let is_old = match before {
                Some(before) => found.modified()? < before,
                None => true,
            };
            Ok((found.is_file() && found.uid() == user && is_old).then_some(found.len()))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests write files of the cluster")]
mod tests {
    use super::*;
    use crate::model::cluster::{ClusterRuntime, file_name};

    #[test]
    fn files_of_former_locks_are_found_and_no_link_and_no_other_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = Utf8Path::from_path(folder.path()).expect("UTF-8");
        let path = root.join("images");
        fs_err::create_dir(&path).expect("ours");
        let hash = |digit: &str| digit.repeat(64);
        let name = |hash: &str, kind| file_name("vision", hash, kind);
        let (sqsh, sif) = (ClusterRuntime::Pyxis.kind(), ClusterRuntime::Apptainer.kind());
        let write = |name: &str| fs_err::write(path.join(name), "content").expect("ours");
        for (digit, kind) in [("a", sqsh), ("b", sqsh), ("b", sif), ("c", sqsh)] {
            write(&name(&hash(digit), kind));
        }
        for other in ["vision-final.sqsh", "vision-train-bbbbbbbbbbbb.sqsh", "other-bbbbbbbbbbbb.sqsh"] {
            write(other);
        }
        fs_err::os::unix::fs::symlink("/etc/passwd", path.join(name(&hash("d"), sqsh))).expect("ours");
        fs_err::create_dir(path.join(name(&hash("e"), sqsh))).expect("ours");
        let used = BTreeSet::from([hash("a"), hash("c")]);
        let at = |path: &Utf8Path| ClusterFolder {
            runtime: ClusterRuntime::Pyxis,
            path: path.to_owned(),
            name: "vision".to_owned(),
        };
        let own = rustix::process::geteuid().as_raw();
        let now = SystemTime::now();
        let others = old_files(&at(&path), &used, own + 1, now).expect("read");
        assert_eq!(others, [], "they are of another user");
        let found = old_files(&at(&path), &used, own, now).expect("read");
        let names: Vec<_> = found.iter().map(|file| (file.path.file_name(), file.size)).collect();
        assert_eq!(names, [(Some("vision-bbbbbbbbbbbb.sif"), 7), (Some("vision-bbbbbbbbbbbb.sqsh"), 7)]);
        assert!(!found.iter().any(OldFile::is_unfinished));
        // An export that was killed where each file has a name; one of this hour may still be written.
        write(&format!("{STAGED}Ab12Cd"));
        assert_eq!(old_files(&at(&path), &used, own, now).expect("read").len(), 2);
        let later = now + UNFINISHED + Duration::from_mins(1);
        let found = old_files(&at(&path), &used, own, later).expect("read");
        assert!(found.len() == 3 && found[0].is_unfinished() && found[0].size == 7, "{found:?}");
        assert_eq!(old_files(&at(&path), &used, own + 1, later).expect("read"), [], "another user's export");
        let link = root.join("link");
        fs_err::os::unix::fs::symlink(&path, &link).expect("ours");
        let error = old_files(&at(&link), &used, own, now).expect_err("a link").to_string();
        assert!(error.contains("is not a directory"), "{error}");
        let error = old_files(&at(&root.join("gone")), &used, own, now).expect_err("missing").to_string();
        assert!(error.contains("cluster directory not found"), "{error}");
    }
}
