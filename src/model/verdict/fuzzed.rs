//! Fuzzed parser: the lines of a report.

use super::lines::Lines;
use super::{Detail, ImageExpectations, VerdictStatus, junit, verdict_text};
use crate::model::image::info::ImageInfo;
use crate::model::visible::is_hidden;

/// A report: nothing of it reaches a terminal unescaped or without bound, and it does not pass without the required check.
pub(crate) fn report(text: &str) {
    let hidden = |text: &str| {
        text.contains(|character| is_hidden(character) && character != '\n' && character != '\t')
    };
    for check in Lines::read(text).checks {
        let texts = [&check.id, &check.stage, &check.detail].into_iter().chain(&check.hint);
        for text in
            texts.chain(check.measured.iter().chain(&check.expected).flat_map(|(name, value)| [name, value]))
        {
            assert!(!hidden(text) && text.len() < 50_000, "{text:?}");
        }
        assert!(check.measured.len() + check.expected.len() <= 400);
    }
    let expected =
        ImageExpectations { required: vec!["never-said".to_owned()], ..ImageExpectations::default() };
    let verdict = super::judge(text, "agent exited with code 0", &ImageInfo::default(), &expected);
    assert_eq!(verdict.verdict, VerdictStatus::Failed);
    assert!(!hidden(&verdict_text(&verdict, Detail::Everything)));
    assert!(!hidden(&junit(&[&verdict])));
}
