//! Reports in the state directory: a folder for each image id, a file in it for each level, GPU and driver.

use camino::Utf8Path;

use super::error::StoreError;
use super::files::remove_file;
use super::folders::Store;
use super::limits::LARGEST_STATE;
use super::regular_file::read_regular;
use crate::model::sha256::sha256_hex;
use crate::model::verdict::standing::{ImageReports, KeptReport};
use crate::model::verdict::{Proof, Verdict};

const FOLDER: &str = "reports";
const SCHEMA: u32 = 1;
/// Shorter prefixes of an id match no image.
const SHORTEST_ID: usize = 6;

fn hex(id: &str) -> &str {
    id.trim_start_matches("sha256:")
}

fn file_of(id: &str, report: &KeptReport) -> String {
    let key = serde_json::to_vec(&report.key()).expect("a key serialises: it holds texts only");
    format!("{FOLDER}/{}/{}-{}.json", hex(id), report.report.level, &sha256_hex(&key)[..16])
}

/// Saves a report with those of its image; returns the reports that its failure withdraws.
pub(crate) async fn save(store: &Store, report: &Verdict) -> Result<Vec<Proof>, StoreError> {
    let id = hex(&report.image);
    if id.is_empty() || !id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(StoreError::NotADigest { found: report.image.clone() });
    }
    // Two runs at once: each number is given once, and no failure is missed.
    let _guard = store.lock(&format!("reports-{}", &id[..id.len().min(16)])).await?;
    let known = of_image(store, id)?;
    let number = known.next_number();
    let conditions = report.conditions.clone();
    let kept = KeptReport { schema: SCHEMA, number, withdrawn: false, conditions, report: report.clone() };
    let withdrawn = known.withdrawn_by(&kept);
    // The failure first: cut short after it, it withdraws as well.
    write(store, id, &kept)?;
    for old in &withdrawn {
        if file_of(id, old) != file_of(id, &kept) {
            write(store, id, &KeptReport { withdrawn: true, ..old.clone() })?;
        }
        if old.number == 0 {
            let earlier = store.state_dir().join(FOLDER).join(format!("{id}.json"));
            remove_file(&earlier).map_err(StoreError::file("cannot remove a report"))?;
        }
    }
    Ok(withdrawn.iter().map(|old| Proof::of(&old.report)).collect())
}

fn write(store: &Store, id: &str, kept: &KeptReport) -> Result<(), StoreError> {
    let text = serde_json::to_vec_pretty(kept).expect("a verdict serialises: it holds text keys only");
    store.write_state(&file_of(id, kept), &text)
}

/// Returns the reports of an image, by its id.
pub(crate) fn of_image(store: &Store, id: &str) -> Result<ImageReports, StoreError> {
    let (mut kept, mut damaged) = (Vec::new(), Vec::new());
    // One file for each image: those of earlier versions.
    let earlier = store.state_dir().join(FOLDER).join(format!("{}.json", hex(id)));
    let folder = store.state_dir().join(FOLDER).join(hex(id));
    for path in std::iter::once(earlier).chain(files_in(&folder)?) {
        match read(&path, id) {
            Ok(found) => kept.extend(found),
            Err(why) => damaged.push((path.to_string(), why)),
        }
    }
    Ok(ImageReports::new(kept, damaged))
}

fn files_in(folder: &Utf8Path) -> Result<Vec<camino::Utf8PathBuf>, StoreError> {
    let failed = StoreError::file("cannot read the reports of an image");
    let entries = match fs_err::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let paths = entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<_>, _>>();
    let paths = paths.map_err(failed)?;
    let utf8 = paths.into_iter().filter_map(|path| camino::Utf8PathBuf::from_path_buf(path).ok());
    Ok(utf8.filter(|path| path.extension() == Some("json")).collect())
}

/// The report in a file; `None`: there is no such file. An error is the reason why it is no report of this image.
fn read(path: &Utf8Path, id: &str) -> Result<Option<KeptReport>, String> {
    let bytes = match read_regular(path, LARGEST_STATE) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    let kept = match serde_json::from_slice::<KeptReport>(&bytes) {
        Ok(kept) => kept,
        // One of an earlier version is the report alone.
        Err(error) => match serde_json::from_slice(&bytes) {
            Ok(report) => {
                KeptReport { schema: SCHEMA, number: 0, withdrawn: false, conditions: None, report }
            }
            Err(_) => return Err(error.to_string()),
        },
    };
    if kept.schema != SCHEMA {
        return Err(format!("it has schema {}, this envforge reads {SCHEMA}", kept.schema));
    }
    if hex(&kept.report.image) != hex(id) {
        return Err(format!("it is the report of {}", kept.report.image));
    }
    Ok(Some(kept))
}

/// Returns the reports of an image that the engine no longer has, by a prefix of its id or the name it was checked under; those
/// with the newest report if several match.
pub(crate) fn named(store: &Store, name: &str) -> Result<Option<ImageReports>, StoreError> {
    let begins = hex(name);
    let mut found: Vec<ImageReports> = Vec::new();
    for entry in fs_err::read_dir(store.state_dir().join(FOLDER)).into_iter().flatten().flatten() {
        let file = entry.file_name().to_string_lossy().into_owned();
        let id = file.strip_suffix(".json").unwrap_or(&file);
        let reports = of_image(store, id)?;
        if reports.has_name(name) || (begins.len() >= SHORTEST_ID && id.starts_with(begins)) {
            found.push(reports);
        }
    }
    found.sort_by(|a, b| a.newest_time().cmp(b.newest_time()));
    Ok(found.pop())
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test writes files of earlier versions and damaged ones")]
mod tests {
    use std::io::Write as _;

    use camino::Utf8PathBuf;

    use super::*;
    use crate::model::image::info::ImageInfo;
    use crate::model::verdict::{ImageExpectations, ImageState, VerdictStatus, judge};

    const ID: &str = "sha256:abcdef0123";

    struct Fixture {
        store: Store,
        root: Utf8PathBuf,
        _folder: tempfile::TempDir,
    }

    fn fixture() -> Fixture {
        let folder = tempfile::tempdir().expect("a folder");
        let root = Utf8PathBuf::from_path_buf(folder.path().to_owned()).expect("UTF-8");
        let store = Store::open(&root.join("cache"), &root.join("state")).expect("a store");
        Fixture { store, root, _folder: folder }
    }

    /// A report of that level on that GPU.
    fn report(level: &str, gpu: Option<&str>, status: VerdictStatus) -> Verdict {
        let line = gpu.map_or_else(String::new, |gpu| {
            let measured = format!(r#"{{"gpu.0":"{gpu}"}}"#);
            format!(r#"{{"id":"gemm-large","stage":"gpu","outcome":"passed","detail":"exact","measured":{measured}}}"#)
        });
        let image = ImageInfo { id: ID.into(), user: "1000:1000".into(), ..Default::default() };
        let lines = format!("{line}\n{{\"done\":true,\"seconds\":1}}");
        let verdict = judge(&lines, "agent exited with code 0", &image, &ImageExpectations::default());
        Verdict { level: level.into(), name: "team/torch:1".into(), verdict: status, ..verdict }
    }

    fn state(store: &Store) -> ImageState {
        of_image(store, ID).expect("read").proven(None).state
    }

    const H200: Option<&str> = Some("NVIDIA H200 (sm_90)");

    #[tokio::test]
    async fn static_run_leaves_the_report_of_a_gpu() {
        let f = fixture();
        save(&f.store, &report("full", H200, VerdictStatus::Passed)).await.expect("saved");
        save(&f.store, &report("static", None, VerdictStatus::StaticOnly)).await.expect("saved");
        assert_eq!(state(&f.store), ImageState::Passed);
        let withdrawn = save(&f.store, &report("quick", H200, VerdictStatus::Failed)).await.expect("saved");
        assert_eq!(withdrawn.len(), 1, "{withdrawn:?}");
        assert_eq!(withdrawn[0].level, "full");
        assert_eq!(state(&f.store), ImageState::Failed);
        // The failure is settled, and what it withdrew does not come back.
        save(&f.store, &report("quick", H200, VerdictStatus::Passed)).await.expect("saved");
        let proven = of_image(&f.store, ID).expect("read").proven(None);
        assert_eq!((proven.state, proven.proven[0].level.as_str()), (ImageState::Passed, "quick"));
    }

    #[tokio::test]
    async fn report_is_found_by_id_prefix_and_name() {
        let f = fixture();
        save(&f.store, &report("full", H200, VerdictStatus::Passed)).await.expect("saved");
        let all = of_image(&f.store, ID).expect("read");
        for name in ["sha256:abcdef", "abcdef0", "team/torch:1"] {
            assert_eq!(named(&f.store, name).expect("read").as_ref(), Some(&all), "{name}");
        }
        for name in ["abc", "team/torch", "fedcba0"] {
            assert_eq!(named(&f.store, name).expect("read"), None, "{name}");
        }
    }

    #[tokio::test]
    async fn report_of_earlier_versions_is_read_and_a_new_one_comes_after_it() {
        let f = fixture();
        let old = report("full", H200, VerdictStatus::Passed);
        let text = serde_json::to_vec(&old).expect("JSON");
        f.store.write_state("reports/abcdef0123.json", &text).expect("written");
        assert_eq!(state(&f.store), ImageState::Passed);
        save(&f.store, &report("quick", H200, VerdictStatus::Failed)).await.expect("saved");
        assert_eq!(state(&f.store), ImageState::Failed);
        save(&f.store, &report("quick", H200, VerdictStatus::Passed)).await.expect("saved");
        assert_eq!(of_image(&f.store, ID).expect("read").standing().count(), 1, "it is withdrawn, too");
        let error =
            save(&f.store, &Verdict { image: "../../x".to_owned(), ..old }).await.expect_err("refused");
        assert!(error.to_string().contains("../../x"), "{error}");
    }

    #[tokio::test]
    async fn cut_or_foreign_report_is_named_and_proves_nothing() {
        let f = fixture();
        save(&f.store, &report("full", H200, VerdictStatus::Passed)).await.expect("saved");
        let folder = f.root.join("state/reports/abcdef0123");
        let path = files_in(&folder).expect("listed").remove(0);
        let whole = fs_err::read(&path).expect("ours");
        for bytes in [&whole[..whole.len() / 2], b"{", b"", b"{\"schema\":2,\"number\":1}"] {
            fs_err::File::create(&path).and_then(|mut file| file.write_all(bytes)).expect("ours");
            assert_eq!(state(&f.store), ImageState::NotChecked);
            let damaged = of_image(&f.store, ID).expect("read").damaged;
            assert_eq!(damaged[0].0, path, "it is named");
        }
        let other = String::from_utf8(whole.clone()).expect("text").replace(ID, "sha256:fedcba");
        fs_err::write(&path, other).expect("ours");
        assert_eq!(state(&f.store), ImageState::NotChecked, "the report of another image");
        fs_err::write(&path, &whole).expect("ours");
        assert_eq!(state(&f.store), ImageState::Passed);
        fs_err::remove_file(&path).expect("ours");
        assert_eq!(state(&f.store), ImageState::NotChecked, "a removed report");
    }

    #[tokio::test]
    async fn reports_that_are_saved_at_once_are_all_kept() {
        let f = fixture();
        let gpus: Vec<_> = (0..8).map(|at| format!("GPU {at} (sm_90)")).collect();
        let runs: Vec<_> =
            gpus.iter().map(|gpu| report("full", Some(gpu.as_str()), VerdictStatus::Passed)).collect();
        let saved = futures_util::future::join_all(runs.iter().map(|run| save(&f.store, run))).await;
        assert!(saved.iter().all(Result::is_ok));
        let reports = of_image(&f.store, ID).expect("read");
        assert_eq!(reports.standing().count(), 8);
        assert_eq!(reports.next_number(), 9, "each has a number of its own");
    }
}
