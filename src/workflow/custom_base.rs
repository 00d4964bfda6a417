//! `--base IMAGE` of an image the matrix does not know: what is found inside becomes a row that the rules judge.

use crate::base::{BaseError, BaseInfo, inspect_base};
use crate::model::compat::Matrix;
use crate::model::compat::tables::Base;
use crate::model::request::{LockOptions, TargetOptions};
use crate::report::Event;
use crate::settings::Settings;
use crate::workflow::base_tools::{means, request};
use crate::workflow::error::CommandError;
use crate::workflow::session::Session;
use crate::workflow::target::machine;

/// An image the user named as the base, looked into.
pub(crate) struct NamedBase {
    /// The row it stands for.
    pub(crate) row: Base,
    /// Everything that was found.
    pub(crate) found: BaseInfo,
}

/// The image of `--base`, if no row of the matrix has that name.
pub(crate) fn custom_base(source: &LockOptions) -> Option<&str> {
    source.base.as_deref().filter(|name| Matrix::current().base(name).is_none())
}

/// Looks into the image of `--base`, if there is one and no row of the matrix has that name.
pub(crate) async fn named_base(
    settings: &Settings,
    source: &LockOptions,
    target: &TargetOptions,
) -> Result<Option<NamedBase>, CommandError> {
    let Some(image) = custom_base(source) else { return Ok(None) };
    let session = Session::open(settings, Some(source)).await?;
    let request = request(&session, image, machine(target))?;
    let found = inspect_base(&means(&session), &request).await?;
    let row = row(image, &found)?;
    let text = format!(
        "base {image}: {} {}, glibc {}, Python {}",
        row.distribution, row.suite, row.glibc, row.python
    );
    session.reporter.report(Event::Note { text });
    if !found.cuda.is_empty() {
        let text = format!(
            "{image} contains its own CUDA ({}) in addition to that of the framework's wheels; a plain base such as \
             debian:12 avoids the second copy",
            found.cuda.join(", ")
        );
        session.reporter.report(Event::Warning { text });
    }
    Ok(Some(NamedBase { row, found }))
}

/// What the matrix would say of the image: its suite's row where there is one, with what was found inside.
fn row(image: &str, found: &BaseInfo) -> Result<Base, BaseError> {
    let rows = &Matrix::current().bases;
    let known = rows.iter().find(|row| row.distribution == found.distribution && row.suite == found.suite);
    let python = found.python.or(known.map(|row| row.python)).ok_or_else(|| BaseError::NoBase {
        reference: image.to_owned(),
        why: format!(
            "it has no python3, and the Python version of {} {} is unknown",
            found.distribution, found.suite
        ),
    })?;
    Ok(Base {
        name: image.to_owned(),
        distribution: found.distribution.clone(),
        suite: found.suite.clone(),
        glibc: found.glibc.clone(),
        python,
        gcc: known.map(|row| row.gcc.clone()).unwrap_or_default(),
        clang: known.map(|row| row.clang.clone()).unwrap_or_default(),
        bootstrap: false,
        experimental: None,
        default: false,
        checked: true,
        note: None,
        source: format!("read inside {image}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(suite: &str, python: Option<&str>) -> BaseInfo {
        BaseInfo {
            distribution: "debian".to_owned(),
            suite: suite.to_owned(),
            glibc: "2.36".parse().expect("a version"),
            python: python.map(|text| text.parse().expect("a version")),
            cuda: Vec::new(),
            mirrors: Vec::new(),
        }
    }

    #[test]
    fn the_suite_tells_what_the_image_does_not() {
        let row = row("mine:1", &found("bookworm", None)).expect("a row");
        assert_eq!((row.name.as_str(), row.python.to_string().as_str()), ("mine:1", "3.11"));
        assert!(!row.gcc.is_empty() && !row.bootstrap && !row.default);
    }

    #[test]
    fn what_is_installed_counts_more_than_the_suite_and_without_both_there_is_none() {
        assert_eq!(
            row("mine:1", &found("bookworm", Some("3.12"))).expect("a row").python.to_string(),
            "3.12"
        );
        let error = row("mine:1", &found("sid", None)).expect_err("unknown");
        assert!(error.to_string().contains("it has no python3"), "{error}");
    }
}
