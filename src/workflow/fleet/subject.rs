//! What nodes check: an image that they fetch from its registry, or a file that has one path on all of them.

use std::fmt;
use std::io::Read as _;

use camino::{Utf8Path, Utf8PathBuf};

use super::error::FleetError;
use crate::model::counted::counted;
use crate::model::image_ref::ImageRef;
use crate::model::lock::Lock;
use crate::model::request::{FileKind, LockOptions, ProjectOptions, TargetOptions};
use crate::model::sha256::{Sha256Hex, is_sha256_hex};
use crate::report::{Reporter, in_step};
use crate::settings::Settings;
use crate::store::{Store, open_regular};
use crate::workflow::build_request::wanted;
use crate::workflow::cluster_folder::ClusterFolder;
use crate::workflow::error::CommandError;
use crate::workflow::lock_error::LockingError;
use crate::workflow::lock_file::read_lock;
use crate::workflow::project::found;
use crate::workflow::project_sources::{built_hash, image_lock};

/// What the name of a file ends in, lower-case.
const ENDS: [(&str, FileKind); 4] = [
    (".sif", FileKind::Sif),
    (".sqsh", FileKind::Squashfs),
    (".squashfs", FileKind::Squashfs),
    (".sqfs", FileKind::Squashfs),
];
/// What stands between a file and the SHA-256 that it is named by.
const BY_DIGEST: &str = "@sha256:";
/// Bytes that are read at one time.
const CHUNK: usize = 1 << 20;
/// The first bytes of a squashfs, and those of a SIF behind the line that starts it.
const OF_SQUASHFS: &[u8] = b"hsqs";
const OF_SIF: &[u8] = b"SIF_MAGIC\0";
const SIF_LINE: usize = 32;

/// What nodes check, the same on each of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Subject {
    /// An image, by its digest.
    Image(ImageRef),
    /// A file of an image.
    File(NodeFile),
}

/// A file of an image that nodes have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NodeFile {
    /// Its path, on every node.
    pub(crate) path: Utf8PathBuf,
    /// SHA-256 of its bytes.
    pub(crate) sha256: String,
    /// What it is.
    pub(crate) kind: FileKind,
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Image(image) => image.fmt(f),
            Self::File(NodeFile { path, sha256, .. }) => write!(f, "{path}{BY_DIGEST}{sha256}"),
        }
    }
}

impl Subject {
    /// The one image or file of a call. A file is read here for its SHA-256, unless its name has it: `FILE@sha256:…` lies on nodes alone.
    pub(crate) async fn of(
        names: &[String],
        folder: &Utf8Path,
        reporter: &dyn Reporter,
    ) -> Result<Self, CommandError> {
        let got = || match names {
            [] => "none".to_owned(),
            [name] => format!("`{name}`"),
            names => counted(names.len(), "image"),
        };
        let [name] = names else { return Err(FleetError::NoDigest { got: got() }.into()) };
        let (path, sha256) =
            name.split_once(BY_DIGEST).map_or((&**name, None), |(path, hex)| (path, Some(hex)));
        if is_file(path) {
            return Ok(Self::File(node_file(path, sha256, folder, reporter).await?));
        }
        let image: ImageRef = name.parse()?;
        match image.digest().cloned() {
            Some(digest) => Ok(Self::Image(image.pinned(&digest))),
            None => Err(FleetError::NoDigest { got: got() }.into()),
        }
    }

    /// The file of the project's image in the directory of its cluster, and the lock of that image, if it is known.
    pub(crate) async fn of_project(
        project: &ProjectOptions,
        settings: &Settings,
        reporter: &dyn Reporter,
    ) -> Result<(Self, Option<Lock>), CommandError> {
        let (file, lock) = file_of_project(project, settings)?;
        Ok((Self::File(node_file(&file, None, &settings.paths.current_dir, reporter).await?), lock))
    }
}

/// The path of the project's file, and the lock of its image, if it is known.
fn file_of_project(
    project: &ProjectOptions,
    settings: &Settings,
) -> Result<(String, Option<Lock>), CommandError> {
    let none = || FleetError::NoDigest { got: "none".to_owned() };
    if project.option().is_none() && found(project, settings).is_err() {
        return Err(none().into());
    }
    let wanted = wanted(None, project, &LockOptions::default(), &TargetOptions::default(), settings)?;
    let cluster = ClusterFolder::of(&wanted, settings)?.ok_or_else(none)?;
    let here = &settings.paths.current_dir;
    let lockfile = here.join(wanted.source.lockfile.as_ref().expect("a project has a lock file"));
    let missing = || LockingError::Missing { file: lockfile.to_string() };
    let lock = read_lock(&lockfile)?.ok_or_else(missing)?;
    let store = Store::open(&settings.paths.cache, &settings.paths.state)?;
    let file = cluster.file(&built_hash(&store, &wanted, &lock)?).into_string();
    if !here.join(&file).is_file() {
        return Err(FleetError::NotWritten { file, call: cluster.runtime.kind().call() }.into());
    }
    Ok((file, image_lock(&store, &wanted, lock)?))
}

/// Whether a name is that of a file: no image begins like a path, and none that has a digest needs these ends.
fn is_file(name: &str) -> bool {
    ["/", "./", "../"].iter().any(|start| name.starts_with(start)) || kind_by_name(name).is_some()
}

/// Whether a name is that of a squashfs or a SIF.
pub(crate) fn is_image_file(name: &str) -> bool {
    kind_by_name(name).is_some()
}

fn kind_by_name(name: &str) -> Option<FileKind> {
    let name = name.to_ascii_lowercase();
    ENDS.iter().find(|(end, _)| name.ends_with(end)).map(|(_, kind)| *kind)
}

async fn node_file(
    typed: &str,
    sha256: Option<&str>,
    folder: &Utf8Path,
    reporter: &dyn Reporter,
) -> Result<NodeFile, CommandError> {
    let path = folder.join(typed);
    if let Some(sha256) = sha256 {
        if !is_sha256_hex(sha256) {
            return Err(FleetError::FileDigest { file: typed.to_owned(), got: sha256.to_owned() }.into());
        }
        let kind = kind_by_name(typed).ok_or_else(|| FleetError::FileKind { file: typed.to_owned() })?;
        return Ok(NodeFile { path, sha256: sha256.to_owned(), kind });
    }
    let place = path.clone();
    let read = async {
        let done = tokio::task::spawn_blocking(move || read_file(&place)).await;
        done.unwrap_or_else(|error| Err(std::io::Error::other(error)))
    };
    let read = in_step(reporter, "file", format!("read {path}"), read).await;
    let (kind, sha256) = read.map_err(|cause| FleetError::ImageFile { file: typed.to_owned(), cause })?;
    let kind = kind.ok_or_else(|| FleetError::FileKind { file: typed.to_owned() })?;
    Ok(NodeFile { path, sha256, kind })
}

/// What a file is by its first bytes, and the SHA-256 of all.
fn read_file(path: &Utf8Path) -> std::io::Result<(Option<FileKind>, String)> {
    let mut file = open_regular(path)?;
    let (mut hasher, mut chunk, mut kind) = (Sha256Hex::default(), vec![0; CHUNK], None);
    let mut front = Vec::new();
    (&mut file).take((SIF_LINE + OF_SIF.len()) as u64).read_to_end(&mut front)?;
    if front.starts_with(OF_SQUASHFS) {
        kind = Some(FileKind::Squashfs);
    } else if front.get(SIF_LINE..).is_some_and(|rest| rest.starts_with(OF_SIF)) {
        kind = Some(FileKind::Sif);
    }
    if kind.is_none() {
        return Ok((None, String::new()));
    }
    hasher.update(&front);
    loop {
        match file.read(&mut chunk)? {
            0 => return Ok((kind, hasher.finish())),
            count => hasher.update(&chunk[..count]),
        }
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "writes files for a test")]
mod tests {
    use super::*;
    use crate::cluster_file::sif_front;
    use crate::model::sha256::sha256_hex;
    use crate::model::versions::Machine;
    use crate::report::NullReporter;

    async fn subject(folder: &Utf8Path, names: &[&str]) -> Result<Subject, String> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        Subject::of(&names, folder, &NullReporter).await.map_err(|error| error.to_string())
    }

    #[tokio::test]
    async fn files_are_known_by_their_content_or_named_by_their_digest() {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = Utf8Path::from_path(folder.path()).expect("UTF-8");
        let squashfs = [b"hsqs".to_vec(), vec![7; 3 << 20]].concat();
        let sif = [sif_front(4096, Machine::X86_64, "x"), squashfs.clone()].concat();
        fs_err::write(folder.join("a.sqsh"), &squashfs).expect("written");
        fs_err::write(folder.join("b.img"), &sif).expect("written");
        fs_err::write(folder.join("c.sif"), "#!/bin/sh\n").expect("written");
        let file = |path: Utf8PathBuf, bytes: &[u8], kind| {
            Ok(Subject::File(NodeFile { path, sha256: sha256_hex(bytes), kind }))
        };
        let a = folder.join("a.sqsh");
        assert_eq!(subject(folder, &["a.sqsh"]).await, file(a.clone(), &squashfs, FileKind::Squashfs));
        assert_eq!(subject(folder, &[a.as_str()]).await, file(a, &squashfs, FileKind::Squashfs));
        let b = subject(folder, &["./b.img"]).await.expect("a SIF");
        assert_eq!(Ok(b.clone()), file(folder.join("./b.img"), &sif, FileKind::Sif));
        assert_eq!(b.to_string(), format!("{folder}/./b.img@sha256:{}", sha256_hex(&sif)));

        let elsewhere = format!("/nodes/x.sif@sha256:{}", "a".repeat(64));
        let known = subject(folder, &[&elsewhere]).await.expect("named");
        assert_eq!(known.to_string(), elsewhere);
        assert!(matches!(known, Subject::File(NodeFile { kind: FileKind::Sif, .. })));
        for (name, says) in [
            ("c.sif", "`c.sif` is neither a squashfs nor a SIF"),
            ("d.sqsh", "cannot read image file `d.sqsh`: "),
            ("/x.sif@sha256:AB", "invalid SHA-256 `AB` of `/x.sif`"),
            ("a:1", "--on requires one image by its digest"),
        ] {
            let error = subject(folder, &[name]).await.expect_err(name);
            assert!(error.starts_with(says), "{error}");
        }
        let unknown = format!("/nodes/x.img@sha256:{}", "a".repeat(64));
        let error = subject(folder, &[&unknown]).await.expect_err("which kind?");
        assert_eq!(error, "`/nodes/x.img` is neither a squashfs nor a SIF");
        let image = format!("box.test/team/torch:2@sha256:{}", "a".repeat(64));
        assert_eq!(
            subject(folder, &[&image]).await.expect("an image").to_string(),
            image.replace(":2@", "@")
        );
    }
}
