//! Reports in the state directory, one for each image id.

use super::error::StoreError;
use super::folders::Store;
use crate::model::verdict::Verdict;

const FOLDER: &str = "reports";
/// Shorter prefixes of an id match no image.
const SHORTEST_ID: usize = 6;

fn file_of(id: &str) -> String {
    format!("{FOLDER}/{}.json", id.trim_start_matches("sha256:"))
}

/// Saves the report as its image's latest one.
pub(crate) fn save(store: &Store, verdict: &Verdict) -> Result<(), StoreError> {
    let text = serde_json::to_vec_pretty(verdict).expect("a verdict serialises: it holds text keys only");
    store.write_state(&file_of(&verdict.image), &text)
}

/// Returns the latest report of an image, by its id.
pub(crate) fn last(store: &Store, id: &str) -> Result<Option<Verdict>, StoreError> {
    let Some(text) = store.read_state(&file_of(id))? else { return Ok(None) };
    serde_json::from_slice(&text).map(Some).map_err(|cause| {
        let file = store.state_dir().join(file_of(id)).to_string();
        StoreError::Report { file, cause }
    })
}

/// Returns the latest report of an image that the engine no longer has, by a prefix of its id or the name it was checked
/// under; the newest if several match.
pub(crate) fn named(store: &Store, name: &str) -> Result<Option<Verdict>, StoreError> {
    let begins = name.trim_start_matches("sha256:");
    let mut found: Vec<Verdict> = Vec::new();
    for entry in fs_err::read_dir(store.state_dir().join(FOLDER)).into_iter().flatten().flatten() {
        let file = entry.file_name().to_string_lossy().into_owned();
        let Some(id) = file.strip_suffix(".json") else { continue };
        let Some(verdict) = last(store, id)? else { continue };
        if verdict.name == name || (begins.len() >= SHORTEST_ID && id.starts_with(begins)) {
            found.push(verdict);
        }
    }
    found.sort_by(|a, b| a.checked.cmp(&b.checked));
    Ok(found.pop())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn report_is_found_by_id_prefix_and_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = camino::Utf8PathBuf::from_path_buf(folder.path().to_owned()).expect("UTF-8");
        let store = Store::open(&root.join("cache"), &root.join("state")).expect("a store");
        let image =
            crate::model::image::info::ImageInfo { id: "sha256:abcdef0123".into(), ..Default::default() };
        let mut verdict = crate::model::verdict::judge(
            "",
            "agent exited with code 1",
            &image,
            &crate::model::verdict::ImageExpectations::default(),
        );
        verdict.name = "team/torch:1".into();
        save(&store, &verdict).expect("saved");
        assert_eq!(last(&store, "sha256:abcdef0123").expect("read").as_ref(), Some(&verdict));
        for name in ["sha256:abcdef", "abcdef0", "team/torch:1"] {
            assert_eq!(named(&store, name).expect("read").as_ref(), Some(&verdict), "{name}");
        }
        for name in ["abc", "team/torch", "fedcba0"] {
            assert_eq!(named(&store, name).expect("read"), None, "{name}");
        }
        store.write_state("reports/abcdef0123.json", b"{").expect("written");
        let error = last(&store, "abcdef0123").expect_err("cut");
        assert!(error.to_string().contains("abcdef0123.json"), "{error}");
    }
}
