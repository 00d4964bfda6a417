//! The JSON form of an index page (PEP 691): its files with the days of their upload (PEP 700).

use serde::Deserialize;

/// The content type of the form.
pub(crate) const JSON_PAGE: &str = "application/vnd.pypi.simple.v1+json";

/// A file that such a page lists.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct ListedFile {
    /// The file's name.
    pub(crate) filename: String,
    upload_time: Option<String>,
    /// False, or the reason.
    #[serde(default)]
    yanked: serde_json::Value,
}

impl ListedFile {
    /// The day of the upload (`2026-03-01`), if the index tells one.
    pub(crate) fn day(&self) -> Option<String> {
        let day: jiff::civil::Date = self.upload_time.as_deref()?.get(..10)?.parse().ok()?;
        Some(day.to_string())
    }

    /// Whether the file was withdrawn.
    pub(crate) fn is_yanked(&self) -> bool {
        !matches!(self.yanked, serde_json::Value::Null | serde_json::Value::Bool(false))
    }
}

/// Returns the files that a page lists; none for a page of another form.
pub(crate) fn listed_files(body: &[u8]) -> Vec<ListedFile> {
    #[derive(Deserialize)]
    struct Page {
        files: Vec<ListedFile>,
    }
    serde_json::from_slice::<Page>(body).map(|page| page.files).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn day_of_each_file_is_returned_and_a_wrong_one_is_left_out() {
        let body = br#"{"meta": {"api-version": "1.1"}, "name": "a", "files": [
            {"filename": "a-1.whl", "url": "x", "upload-time": "2026-03-01T23:59:59.5Z", "yanked": "broken"},
            {"filename": "a-2.whl", "url": "x", "yanked": false}, {"filename": "a-3.whl", "upload-time": "last year"},
            {"filename": "a-4.whl", "upload-time": "2026-13-01T00:00:00Z"}]}"#;
        let files = listed_files(body);
        let days: Vec<_> = files.iter().map(ListedFile::day).collect();
        assert_eq!(days, [Some("2026-03-01".to_owned()), None, None, None]);
        let yanked: Vec<_> =
            files.iter().filter(|file| file.is_yanked()).map(|file| &file.filename).collect();
        assert_eq!(yanked, ["a-1.whl"]);
        assert!(listed_files(b"<html>").is_empty() && listed_files(b"{}").is_empty());
    }
}
