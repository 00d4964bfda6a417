//! `--base IMAGE` of an image the matrix does not know: what is found inside becomes a row that the rules judge. Without an engine
//! the lock file has it.

use std::borrow::Cow;
use std::collections::BTreeSet;

use crate::base::{Base as PreparedBase, BaseError, BaseInfo, inspect_base};
use crate::model::compat::Matrix;
use crate::model::compat::tables::Base;
use crate::model::lock::Lock;
use crate::model::request::{LockOptions, TargetOptions};
use crate::model::resolve::resolve;
use crate::model::spec::Spec;
use crate::model::stack::{Reason, Stack};
use crate::model::versions::PythonVersion;
use crate::report::{Event, NullReporter};
use crate::settings::Settings;
use crate::workflow::base_name::{check_base_name, near_base};
use crate::workflow::base_tools::{means, request};
use crate::workflow::build_request::BuildRequest;
use crate::workflow::error::CommandError;
use crate::workflow::lock_file::{lock_path, read_lock};
use crate::workflow::session::Session;
use crate::workflow::target::{machine, options, target};

/// An image the user named as the base, looked into.
pub(crate) struct NamedBase {
    /// The row it stands for.
    pub(crate) row: Base,
    /// Everything that was found.
    pub(crate) found: BaseInfo,
}

/// The base of a request, as far as it is known without an engine.
pub(crate) struct BaseAtHand {
    /// The matrix, with each row that a base of the user's own may have.
    pub(crate) matrix: Cow<'static, Matrix>,
    /// The base of the user's own that no lock file has; `None`: the row of the base is known.
    pub(crate) unread: Option<String>,
}

impl BaseAtHand {
    /// Returns that of an image that was looked into, or of a base of the matrix.
    pub(crate) fn of(named: Option<&NamedBase>) -> Self {
        Self { matrix: matrix_of(named), unread: None }
    }

    /// Returns that of a request: a base of the user's own is the one of the lock file there.
    pub(crate) fn read(wanted: &BuildRequest, settings: &Settings) -> Result<Self, CommandError> {
        let Some(image) = custom_base(&wanted.source) else { return Ok(Self::of(None)) };
        check_base_name(image)?;
        let spec: Spec = wanted.spec.parse()?;
        let possible = possible_rows(image, spec.python);
        let lock = lock_of_own_base(wanted, settings, &spec, &possible)?;
        Ok(match lock.filter(|lock| lock.base.name == image).and_then(|lock| row_of_lock(&lock)) {
            Some(row) => Self { matrix: with_rows([row]), unread: None },
            None => Self { matrix: with_rows(possible), unread: Some(image.to_owned()) },
        })
    }

    /// Returns the matrix without rows that are only possible.
    pub(crate) fn facts(&self) -> &Matrix {
        if self.unread.is_some() { Matrix::current() } else { &self.matrix }
    }

    /// Returns the warning about a stack whose base no lock file has.
    pub(crate) fn warning(&self, stack: &Stack) -> Option<String> {
        let image = self.unread.as_ref()?;
        let near = near_base(image).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        Some(format!(
            "base `{image}` is not known before `envforge lock` reads it: Python {} and its C library are \
             assumed{near}",
            stack.python
        ))
    }

    /// Returns a stack whose reasons say what is assumed of a base that no lock file has.
    pub(crate) fn assumed(&self, mut stack: Stack) -> Stack {
        if self.unread.is_some() {
            // A Python that the spec requires is not that of the base.
            let of_base =
                |reason: &&mut Reason| reason.field == "python" && reason.because.starts_with("Python of ");
            for reason in stack.reasons.iter_mut().filter(of_base) {
                "assumed; `envforge lock` reads it".clone_into(&mut reason.because);
            }
        }
        stack
    }
}

/// The matrix with the row of an image that was looked into.
pub(crate) fn matrix_of(named: Option<&NamedBase>) -> Cow<'static, Matrix> {
    named.map_or(Cow::Borrowed(Matrix::current()), |named| with_rows([named.row.clone()]))
}

/// The matrix with the row of the base that a stack is made on.
pub(crate) fn matrix_of_base(base: &PreparedBase, stack: &Stack) -> Cow<'static, Matrix> {
    if Matrix::current().base(&base.name).is_some() {
        return Cow::Borrowed(Matrix::current());
    }
    let row = row_of_suite(&base.name, &base.suite, stack.python);
    with_rows(row.map(|row| Base { glibc: base.glibc.clone().unwrap_or_else(|| row.glibc.clone()), ..row }))
}

fn with_rows(rows: impl IntoIterator<Item = Base>) -> Cow<'static, Matrix> {
    let mut matrix = Matrix::current().clone();
    matrix.bases.extend(rows);
    Cow::Owned(matrix)
}

/// The lock file of a request with a base of the user's own. Its name in the state directory has the Python of the base: each
/// that is possible is looked for.
fn lock_of_own_base(
    wanted: &BuildRequest,
    settings: &Settings,
    spec: &Spec,
    possible: &[Base],
) -> Result<Option<Lock>, CommandError> {
    if let Some(file) = &wanted.source.lockfile {
        return read_lock(&settings.paths.current_dir.join(file));
    }
    let mut matrix = Matrix::current().clone();
    let target = target(&wanted.target, &settings.target, &matrix, &NullReporter)?;
    let options = options(&wanted.target, &wanted.source, settings);
    for row in possible {
        matrix.bases.push(row.clone());
        let answer = resolve(spec, &target, &matrix, &options);
        matrix.bases.pop();
        let Ok(stack) = answer else { continue };
        let found = read_lock(&lock_path(settings, &stack, &wanted.source))?;
        if let Some(lock) = found.filter(|lock| lock.base.name == row.name) {
            return Ok(Some(lock));
        }
    }
    Ok(None)
}

/// The row of a lock file's base, whose Python the stack has.
fn row_of_lock(lock: &Lock) -> Option<Base> {
    row_of_suite(&lock.base.name, &lock.base.suite, lock.stack.python)
}

/// The row of a base of that suite. A suite that the matrix does not know counts as the one with the newest C library: nothing is
/// refused for a fact that is not known.
fn row_of_suite(name: &str, suite: &str, python: PythonVersion) -> Option<Base> {
    let rows = &Matrix::current().bases;
    let of_suite = rows.iter().find(|row| row.suite == suite);
    let newest = || rows.iter().max_by(|one, other| one.glibc.cmp(&other.glibc));
    let row = own_row(name, of_suite.or_else(newest)?, python, "the lock file");
    Some(Base { suite: suite.to_owned(), ..row })
}

/// Every row that a base may have of which only the name is known: that of each suite and, with the default suite, each Python of a
/// wheel. It may have the Python that a spec requires.
fn possible_rows(image: &str, required: Option<PythonVersion>) -> Vec<Base> {
    const SOURCE: &str = "assumed: `envforge lock` reads the image";
    let matrix = Matrix::current();
    let of_suite = |like: &Base| {
        let row = own_row(image, like, required.unwrap_or(like.python), SOURCE);
        // `resolve` tries bases that are built here first.
        Base { bootstrap: like.default, ..row }
    };
    let mut rows: Vec<Base> = matrix.bases.iter().map(of_suite).collect();
    if let (None, Some(like)) = (required, matrix.default_base()) {
        let all = matrix.variants.iter().flat_map(|row| row.python.iter().copied());
        let others: BTreeSet<_> = all.filter(|python| matrix.bases_with_python(*python).is_empty()).collect();
        rows.extend(others.into_iter().map(|python| own_row(image, like, python, SOURCE)));
    }
    rows
}

fn own_row(name: &str, like: &Base, python: PythonVersion, source: &str) -> Base {
    Base {
        name: name.to_owned(),
        python,
        bootstrap: false,
        experimental: None,
        default: false,
        checked: true,
        note: None,
        source: source.to_owned(),
        ..like.clone()
    }
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
    check_base_name(image)?;
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
    use crate::model::lock::{BaseProvider, LockedBase, sample};

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
    fn base_of_a_lock_has_the_facts_of_its_suite_and_the_python_of_its_stack() {
        let mut lock = sample::lock();
        lock.base = LockedBase { name: "mine:1".to_owned(), suite: "trixie".to_owned(), ..lock.base };
        let row = row_of_lock(&lock).expect("a row");
        assert_eq!((row.name.as_str(), row.suite.as_str()), ("mine:1", "trixie"));
        assert_eq!((row.glibc.to_string().as_str(), row.python), ("2.41", lock.stack.python));
        // Of a suite that the matrix does not know nothing is too old.
        lock.base.suite = "sid".to_owned();
        let row = row_of_lock(&lock).expect("a row");
        let newest = Matrix::current().bases.iter().map(|row| &row.glibc).max();
        assert_eq!((row.suite.as_str(), Some(&row.glibc)), ("sid", newest));
    }

    #[test]
    fn unread_base_may_have_any_python_and_the_default_suite_first() {
        let rows = possible_rows("mine:1", None);
        let oldest = Matrix::current().variants.iter().flat_map(|row| &row.python).min();
        assert!(rows.iter().any(|row| Some(&row.python) == oldest), "{oldest:?}");
        let first: Vec<_> = rows.iter().filter(|row| row.bootstrap).map(|row| row.suite.as_str()).collect();
        assert_eq!(first, ["bookworm"]);
        let required: PythonVersion = "3.15".parse().expect("a version");
        let rows = possible_rows("mine:1", Some(required));
        assert_eq!(rows.len(), Matrix::current().bases.len());
        assert!(rows.iter().all(|row| row.python == required && row.name == "mine:1" && !row.default));
    }

    #[test]
    fn prepared_base_of_the_users_own_brings_its_row() {
        let stack = Stack { base: "mine:1".to_owned(), ..sample::stack() };
        let base = |name: &str| PreparedBase {
            provider: BaseProvider::Image,
            name: name.to_owned(),
            suite: "bookworm".to_owned(),
            reference: name.to_owned(),
            image_id: String::new(),
            digest: None,
            published: None,
            content: None,
            image: None,
            packages: Vec::new(),
            archive: None,
            glibc: Some("2.30".parse().expect("a version")),
            cuda: false,
            mirrors: Vec::new(),
        };
        let matrix = matrix_of_base(&base("mine:1"), &stack);
        let row = matrix.base("mine:1").expect("its row");
        assert_eq!((row.glibc.to_string().as_str(), row.python), ("2.30", stack.python));
        assert!(matches!(matrix_of_base(&base("debian:12"), &stack), Cow::Borrowed(_)));
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
