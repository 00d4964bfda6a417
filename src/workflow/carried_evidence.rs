//! Evidence that goes with an image: to another registry, into a layout or a vendor folder, and to a machine that reaches no registry.
//!
//! Nothing is signed here and nothing is believed: envelopes go on as they are, and whoever reads them checks signatures.
#![expect(clippy::disallowed_methods, reason = "stamps the documents of a registry")]

use camino::{Utf8Path, Utf8PathBuf};
use jiff::Timestamp;

use crate::engine::ImageInfo;
use crate::evidence::{Attestation, SavedEvidence};
use crate::model::counted::counted;
use crate::model::image_digest::Digest;
use crate::model::image_ref::ImageRef;
use crate::report::Event;
use crate::store::built_images::{pushed_names, remember_pushed};
use crate::store::kept_evidence::Origin;
use crate::store::{Store, StoreError, read_regular, write_atomically};
use crate::workflow::error::CommandError;
use crate::workflow::evidence::{EvidenceError, is_unknown};
use crate::workflow::kept_evidence::{MOST_KEPT, add, keep, kept};
use crate::workflow::required_evidence::{known_digests, subject_here};
use crate::workflow::session::Session;

/// The largest file of evidence.
pub(crate) const LARGEST_FILE: u64 = 64 << 20;
/// The folder of evidence in a vendor folder, a file for each image.
const VENDORED: &str = "evidence";
/// What the name of such a file ends in.
const SUFFIX: &str = ".evidence";

/// Evidence that was gathered.
pub(crate) struct Gathered {
    /// It.
    pub(crate) found: Vec<Attestation>,
    /// An error if there may be more: what was not read may take back what was.
    pub(crate) whole: Result<(), EvidenceError>,
}

/// Returns the evidence of the image's manifest with that digest: of the registries that it came from or went to, but for `except`, and
/// what is kept here.
pub(crate) async fn evidence_of(
    session: &Session<'_>,
    (image, digest): (&ImageInfo, &Digest),
    except: Option<&ImageRef>,
) -> Result<Gathered, CommandError> {
    let mut found = kept(&session.store, digest)?;
    let mut unread = Vec::new();
    // An engine may name the index that it pulled.
    let mut names = image.digests.clone();
    names.extend(
        pushed_names(&session.store, &image.id)?.into_iter().filter(|name| name.ends_with(digest.as_str())),
    );
    names.sort();
    names.dedup();
    let names = names.iter().filter_map(|text| text.parse::<ImageRef>().ok());
    for name in names.filter(|name| except.is_none_or(|except| except.name() != name.name())) {
        let of_name = async {
            let subject = subject_here(session, &name, image).await?;
            if subject.manifest.digest != *digest {
                return Ok((Vec::new(), Vec::new()));
            }
            let list = session.registry.all_evidence(&name, digest).await?;
            let skipped: Vec<String> = list.skipped.iter().map(|why| format!("{name}: {why}")).collect();
            Ok::<_, CommandError>((list.into_attestations(), skipped))
        };
        match of_name.await {
            Ok((more, skipped)) => {
                add(&mut found, more);
                unread.extend(skipped);
            }
            Err(error) if is_unknown(&error) => unread.push(format!("{name}: {error}")),
            // The registry has another image there now.
            Err(error) => {
                let text = format!("evidence of {name} is not carried: {error}");
                session.reporter.report(Event::Note { text });
            }
        }
    }
    let whole = if unread.is_empty() {
        Ok(())
    } else {
        Err(EvidenceError::Partial { image: digest.to_string(), why: unread.join("; ") })
    };
    Ok(Gathered { found, whole })
}

/// Keeps the evidence of a layout for the image that was loaded from it: its manifest was compared with the digest, and names it. False:
/// it is too large.
pub(crate) fn keep_of_layout(
    store: &Store,
    (image, digest): (&str, &Digest),
    found: Vec<Attestation>,
) -> Result<bool, StoreError> {
    remember_pushed(store, image, (digest, None))?;
    keep(store, Origin::Layout, SavedEvidence { name: String::new(), digest: digest.clone(), found })
}

/// Attaches the evidence of an image where it was pushed; returns how many documents are new there.
pub(crate) async fn carry(
    session: &Session<'_>,
    image: &ImageInfo,
    target: &ImageRef,
) -> Result<usize, CommandError> {
    let subject = subject_here(session, target, image).await?;
    let digest = &subject.manifest.digest;
    let pinned = target.pinned(digest);
    let Gathered { found, whole } = evidence_of(session, (image, digest), Some(target)).await?;
    if found.is_empty() {
        whole?;
        let others: Vec<String> = known_digests(&session.store, image)?
            .into_iter()
            .filter(|other| other != digest)
            .map(|other| other.to_string())
            .collect();
        let others = if others.is_empty() {
            String::new()
        } else {
            format!(
                " (it may be about the image as {}: push it with the same `--compression`)",
                others.join(", ")
            )
        };
        let text = format!("no evidence of {pinned} is known here{others}");
        session.reporter.report(Event::Warning { text });
        return Ok(0);
    }
    let created = Timestamp::now().to_string();
    let copied =
        session.registry.copy_evidence((target, &subject), &found, &created, &session.reporter).await?;
    let (count, attached) = copied;
    for text in attached.notes {
        session.reporter.report(Event::Note { text });
    }
    let text = match count {
        0 => format!("evidence of {pinned}: nothing to add"),
        count => format!("evidence copied: {} to {pinned}", counted(count, "statement")),
    };
    session.reporter.report(Event::Note { text });
    whole?;
    Ok(count)
}

fn vendored_file(folder: &Utf8Path, digest: &Digest) -> Utf8PathBuf {
    folder.join(VENDORED).join(format!("{}{SUFFIX}", digest.as_str().trim_start_matches("sha256:")))
}

/// Writes the evidence of an image into a vendor folder; returns how many documents there are.
pub(crate) async fn vendor_evidence(
    session: &Session<'_>,
    image: &ImageInfo,
    folder: &Utf8Path,
) -> Result<usize, CommandError> {
    let mut count = 0;
    for digest in known_digests(&session.store, image)? {
        let Gathered { mut found, whole } = evidence_of(session, (image, &digest), None).await?;
        whole?;
        if !found.is_empty() {
            // An earlier call may have reached more.
            let there = saved_in(folder, &vendored_file(folder, &digest));
            add(&mut found, there.map(|saved| saved.found).unwrap_or_default());
            count += found.len();
            let saved = SavedEvidence { name: String::new(), digest: digest.clone(), found };
            write_atomically(&vendored_file(folder, &digest), &saved.to_json())?;
        }
    }
    Ok(count)
}

/// A file of evidence in a vendor folder.
pub(crate) struct VendoredEvidence {
    /// Its path.
    pub(crate) path: Utf8PathBuf,
    /// What it holds, or why it is not read.
    pub(crate) saved: Result<SavedEvidence, String>,
}

/// The files of evidence in a vendor folder, read one after the other.
pub(crate) fn vendored(folder: &Utf8Path) -> Result<impl Iterator<Item = VendoredEvidence>, CommandError> {
    let entries = match fs_err::read_dir(folder.join(VENDORED)) {
        Ok(entries) => Some(entries),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => return Err(error.into()),
    };
    let mut paths = Vec::new();
    for entry in entries.into_iter().flatten() {
        let path = Utf8PathBuf::from_path_buf(entry?.path());
        paths.extend(path.ok().filter(|path| path.as_str().ends_with(SUFFIX)));
    }
    paths.sort();
    let folder = folder.to_owned();
    Ok(paths.into_iter().map(move |path| VendoredEvidence { saved: saved_in(&folder, &path), path }))
}

fn saved_in(folder: &Utf8Path, path: &Utf8Path) -> Result<SavedEvidence, String> {
    let bytes = read_regular(path, LARGEST_FILE).map_err(|error| error.to_string())?;
    let saved = SavedEvidence::parse(path.as_str(), &bytes).map_err(|error| error.to_string())?;
    if path == vendored_file(folder, &saved.digest) {
        Ok(saved)
    } else {
        Err(format!("it is evidence of {}", saved.digest))
    }
}

/// Keeps the evidence of a vendor folder on this machine.
pub(crate) fn take_vendored(session: &Session<'_>, folder: &Utf8Path) -> Result<(), CommandError> {
    for VendoredEvidence { path, saved } in vendored(folder)? {
        let why = match saved {
            Ok(saved) => {
                if keep(&session.store, Origin::Layout, saved)? {
                    continue;
                }
                format!("more than {MOST_KEPT} bytes of one image")
            }
            Err(why) => why,
        };
        let text = format!("evidence is left out: {path}: {why}");
        session.reporter.report(Event::Warning { text });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::Envelope;

    fn one(payload: &str) -> Attestation {
        Attestation { envelope: Envelope::of_nobody(payload), signer: None }
    }

    #[test]
    fn file_of_a_vendor_folder_is_about_the_image_of_its_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = Utf8Path::from_path(folder.path()).expect("UTF-8");
        assert_eq!(vendored(root).expect("none").count(), 0);
        let digest = Digest::of(b"image");
        let saved = SavedEvidence { name: String::new(), digest: digest.clone(), found: vec![one("{}")] };
        let other = vendored_file(root, &Digest::of(b"another"));
        write_atomically(&vendored_file(root, &digest), &saved.to_json()).expect("written");
        write_atomically(&other, &saved.to_json()).expect("written");
        let read: Vec<_> = vendored(root).expect("read").collect();
        assert_eq!(read.len(), 2);
        for VendoredEvidence { path, saved: found } in read {
            if path == other {
                let why = found.expect_err("of another image");
                assert!(why.contains(digest.as_str()), "{why}");
            } else {
                assert_eq!(found, Ok(saved.clone()));
            }
        }
    }
}
