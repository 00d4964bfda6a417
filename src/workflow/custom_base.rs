//! `--base IMAGE` of an image the matrix does not know: what is found inside becomes a row that the rules judge. Without an engine
//! the lock file has it.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::base::{BaseError, BaseInfo, BaseRequest, inspect_base};
use crate::model::compat::Matrix;
use crate::model::compat::tables::Base;
use crate::model::lock::{Lock, LockedBase};
use crate::model::request::{LockOptions, TargetOptions};
use crate::model::resolve::resolve;
use crate::model::spec::Spec;
use crate::model::stack::{Reason, Stack};
use crate::model::versions::{Machine, PythonVersion};
use crate::report::{Event, NullReporter};
use crate::settings::Settings;
use crate::workflow::base_name::{check_base_name, near_base};
use crate::workflow::base_tools::{means, request};
use crate::workflow::build_request::BuildRequest;
use crate::workflow::error::CommandError;
use crate::workflow::lock_file::{lock_path, read_lock};
use crate::workflow::session::{LazySession, Origin, Session};
use crate::workflow::target::{machine, options, target};
use crate::workflow::vendor_base;

/// An image the user named as the base, looked into.
pub(crate) struct NamedBase {
    /// The matrix with the row it stands for.
    pub(crate) matrix: Arc<Matrix>,
    /// Everything that was found.
    pub(crate) found: BaseInfo,
}

/// The matrix of a request: that of the settings, or with the row of the image that was looked into.
pub(crate) fn matrix_on<'a>(named: Option<&'a NamedBase>, settings: &'a Settings) -> &'a Arc<Matrix> {
    named.map_or(&settings.matrix, |named| &named.matrix)
}

impl Session<'_> {
    /// The same session on a base of the user's own: every question sees its row.
    pub(crate) fn on_base(&self, named: Option<&NamedBase>) -> Self {
        Self { matrix: Arc::clone(matrix_on(named, self.settings)), ..self.clone() }
    }
}

/// The base of a request, as far as it is known without an engine.
pub(crate) struct BaseAtHand {
    /// The matrix, with the row of a base of the user's own that a lock file has.
    pub(crate) matrix: Arc<Matrix>,
    /// The base of the user's own that no lock file has; `None`: the row of the base is known.
    pub(crate) unread: Option<UnreadBase>,
}

/// A base of the user's own of which only the name is known.
pub(crate) struct UnreadBase {
    pub(crate) image: String,
    /// The matrix with each row that it may have.
    possible: Matrix,
}

impl BaseAtHand {
    /// Returns that of a request: a base of the user's own is the one of the lock file there.
    pub(crate) fn read(wanted: &BuildRequest, settings: &Settings) -> Result<Self, CommandError> {
        let matrix = Arc::clone(&settings.matrix);
        let Some(image) = custom_base(&wanted.source, settings) else {
            return Ok(Self { matrix, unread: None });
        };
        check_base_name(image)?;
        let spec = wanted.spec.parsed();
        let possible = possible_rows(image, spec.python, &matrix);
        let lock = lock_of_own_base(wanted, settings, spec, &possible)?;
        let row = lock.filter(|lock| lock.base.name == image).and_then(|lock| row_of_lock(&lock, &matrix));
        let Some(row) = row else {
            let (image, possible) = (image.to_owned(), with_rows(&matrix, possible));
            return Ok(Self { matrix, unread: Some(UnreadBase { image, possible }) });
        };
        Ok(Self { matrix: Arc::new(with_rows(&matrix, [row])), unread: None })
    }

    /// Returns the matrix to resolve with: it has rows that are only possible, too.
    pub(crate) fn possible(&self) -> &Matrix {
        match &self.unread {
            Some(unread) => &unread.possible,
            None => &self.matrix,
        }
    }

    /// Returns the warning about a stack whose base no lock file has.
    pub(crate) fn warning(&self, stack: &Stack) -> Option<String> {
        let image = &self.unread.as_ref()?.image;
        let near = near_base(image, &self.matrix);
        let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
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

/// The matrix with further rows of bases.
fn with_rows(matrix: &Matrix, rows: impl IntoIterator<Item = Base>) -> Matrix {
    let mut matrix = matrix.clone();
    matrix.bases.extend(rows);
    matrix
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
    let mut matrix = Matrix::clone(&settings.matrix);
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

/// The row of a lock file's base, whose Python the stack has. A suite that the matrix does not know counts as the one with the newest
/// C library: nothing is refused for a fact that is not known.
fn row_of_lock(lock: &Lock, matrix: &Matrix) -> Option<Base> {
    let LockedBase { name, suite, .. } = &lock.base;
    let of_suite = matrix.bases.iter().find(|row| row.suite == *suite);
    let newest = || matrix.bases.iter().max_by(|one, other| one.glibc.cmp(&other.glibc));
    let row = own_row(name, of_suite.or_else(newest)?, lock.stack.python, "the lock file");
    Some(Base { suite: suite.clone(), ..row })
}

/// Every row that a base may have of which only the name is known: that of each suite and, with the default suite, each Python of a
/// wheel. It may have the Python that a spec requires.
fn possible_rows(image: &str, required: Option<PythonVersion>, matrix: &Matrix) -> Vec<Base> {
    const SOURCE: &str = "assumed: `envforge lock` reads the image";
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
pub(crate) fn custom_base<'a>(source: &'a LockOptions, settings: &Settings) -> Option<&'a str> {
    source.base.as_deref().filter(|name| settings.matrix.base(name).is_none())
}

/// Looks into the image of `--base`, if there is one and no row of the matrix has that name. The bases of a vendor folder are loaded
/// first: there is no registry to have them from.
pub(crate) async fn named_base(
    lazy: &LazySession<'_>,
    source: &LockOptions,
    target: &TargetOptions,
) -> Result<Option<NamedBase>, CommandError> {
    let own = custom_base(source, lazy.settings);
    let machine = machine(target, &lazy.settings.matrix);
    let vendored = match lazy.origin() {
        Origin::Network => None,
        Origin::Vendor(folder) => vendor_base::load(lazy.session().await?, folder, machine, own).await?,
    };
    let Some(image) = own else { return Ok(None) };
    check_base_name(image)?;
    let session = lazy.session().await?;
    Ok(Some(looked_into(session, image, machine, vendored.as_ref()).await?))
}

/// The same where a session is open, which has its bases from registries.
pub(crate) async fn named_base_in(
    session: &Session<'_>,
    source: &LockOptions,
    target: &TargetOptions,
) -> Result<Option<NamedBase>, CommandError> {
    let Some(image) = custom_base(source, session.settings) else { return Ok(None) };
    check_base_name(image)?;
    Ok(Some(looked_into(session, image, machine(target, &session.matrix), None).await?))
}

/// Looks into an image. `vendored`: what a vendor folder has of it.
async fn looked_into(
    session: &Session<'_>,
    image: &str,
    machine: Machine,
    vendored: Option<&LockedBase>,
) -> Result<NamedBase, CommandError> {
    let request = BaseRequest { locked: vendored, ..request(session, image, machine)? };
    let found = inspect_base(&means(session), &request).await?;
    let matrix = &session.settings.matrix;
    let row = row(image, &found, matrix)?;
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
    Ok(NamedBase { matrix: Arc::new(with_rows(matrix, [row])), found })
}

/// What the matrix would say of the image: its suite's row where there is one, with what was found inside.
fn row(image: &str, found: &BaseInfo, matrix: &Matrix) -> Result<Base, BaseError> {
    let rows = &matrix.bases;
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
    use crate::model::lock::sample;

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
        let row = row_of_lock(&lock, crate::model::compat::embedded()).expect("a row");
        assert_eq!((row.name.as_str(), row.suite.as_str()), ("mine:1", "trixie"));
        assert_eq!((row.glibc.to_string().as_str(), row.python), ("2.41", lock.stack.python));
        // Of a suite that the matrix does not know nothing is too old.
        lock.base.suite = "sid".to_owned();
        let row = row_of_lock(&lock, crate::model::compat::embedded()).expect("a row");
        let newest = crate::model::compat::embedded().bases.iter().map(|row| &row.glibc).max();
        assert_eq!((row.suite.as_str(), Some(&row.glibc)), ("sid", newest));
    }

    #[test]
    fn unread_base_may_have_any_python_and_the_default_suite_first() {
        let rows = possible_rows("mine:1", None, crate::model::compat::embedded());
        let oldest = crate::model::compat::embedded().variants.iter().flat_map(|row| &row.python).min();
        assert!(rows.iter().any(|row| Some(&row.python) == oldest), "{oldest:?}");
        let first: Vec<_> = rows.iter().filter(|row| row.bootstrap).map(|row| row.suite.as_str()).collect();
        assert_eq!(first, ["bookworm"]);
        let required: PythonVersion = "3.15".parse().expect("a version");
        let rows = possible_rows("mine:1", Some(required), crate::model::compat::embedded());
        assert_eq!(rows.len(), crate::model::compat::embedded().bases.len());
        assert!(rows.iter().all(|row| row.python == required && row.name == "mine:1" && !row.default));
    }

    #[test]
    fn the_suite_tells_what_the_image_does_not() {
        let row = row("mine:1", &found("bookworm", None), crate::model::compat::embedded()).expect("a row");
        assert_eq!((row.name.as_str(), row.python.to_string().as_str()), ("mine:1", "3.11"));
        assert!(!row.gcc.is_empty() && !row.bootstrap && !row.default);
    }

    #[test]
    fn what_is_installed_counts_more_than_the_suite_and_without_both_there_is_none() {
        let of = |found: &BaseInfo| row("mine:1", found, crate::model::compat::embedded());
        assert_eq!(of(&found("bookworm", Some("3.12"))).expect("a row").python.to_string(), "3.12");
        let error = of(&found("sid", None)).expect_err("unknown");
        assert!(error.to_string().contains("it has no python3"), "{error}");
    }
}
