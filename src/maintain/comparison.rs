//! The rows of the matrix compared with the package index's releases of today.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::stream::{self, StreamExt as _};

use super::cli::RefreshArgs;
use super::row_drafts::{PAGE_LIMIT, RowDrafts, WrittenRow, libraries};
use crate::failure::{Exit, Failure};
use crate::fetch::{FetchError, Fetcher};
use crate::maintain::refresh::{
    DraftRow, IndexWheel, MatrixDifference, Published, findings, listed, metadata, missing,
    name_contradiction, newer, releases, target_findings, targets, unlisted_findings,
};
use crate::model::address::Address;
use crate::model::compat::Matrix;
use crate::model::compat::coupled::{CoupledRelease, WheelPlace};
use crate::model::compat::tables::{Channel, Variant};
use crate::packages::{PackagesError, ToolOutput};
use crate::report::{Event, Reporter, reporter};
use crate::settings::Settings;
use crate::workflow::error::CommandError;
use crate::workflow::session::downloads;

/// Wheels asked at a time.
const PARALLEL: usize = 8;

/// The outcome of a comparison.
pub(crate) struct Comparison {
    /// Packages compared.
    pub(crate) packages: usize,
    /// Rows compared.
    pub(crate) rows: usize,
    /// Each difference and each new release.
    pub(crate) found: Vec<MatrixDifference>,
    /// Each row that was written.
    pub(crate) written: Vec<WrittenRow>,
}

/// Compares the requested rows, and drafts rows of new releases if the request has a folder for them.
pub(crate) async fn compare(
    matrix: &Matrix,
    args: &RefreshArgs,
    settings: &Settings,
) -> Result<Comparison, CommandError> {
    let packages = packages(matrix, args)?;
    let (fetcher, index) = downloads(settings)?;
    let index = index.default.ok_or(RefreshError::IndexUnset)?;
    let reporter = reporter(settings.output);
    let (mut found, mut rows) = (Vec::new(), 0);
    // Written at the end: an index that goes down in between leaves no half of them.
    let mut drafted: BTreeMap<&str, Vec<DraftRow>> = BTreeMap::new();
    let mut known = matrix.clone();
    // Other frameworks pin torch: its new releases are known first.
    let (torch, others): (Vec<_>, Vec<_>) = packages.iter().partition(|(package, _)| **package == "torch");
    for (package, of_package) in torch.into_iter().chain(others) {
        let address = index.join(&format!("{package}/"));
        // No project: every row of it differs.
        let page = page(&fetcher, &address, package).await?.unwrap_or_default();
        let published = published(&fetcher, (&page, &address), package, of_package, &*reporter).await?;
        found.extend(differences(args, package, of_package, &published));
        if args.release.is_none() {
            found.extend(unlisted_findings(matrix, package, of_package, &published));
        }
        if let Some(row) = of_package.first().filter(|_| args.release.is_none()) {
            found.extend(missing(matrix, &row.framework, package, &releases(&page, &address)));
        }
        if let Some(folder) = &args.write {
            let matrix = &known;
            let drafts = RowDrafts { matrix, fetcher: &fetcher, index: &index, folder, reporter: &*reporter };
            let new = drafts.of_package(package, of_package, &published).await;
            for (file, row) in libraries(matrix, &new) {
                drafted.entry(file).or_default().push(row);
            }
            known.variants.extend(new.iter().filter_map(DraftRow::variant));
            if let Some(row) = of_package.first() {
                drafted.entry(&row.framework).or_default().extend(new);
            }
        }
        if args.architectures {
            found.extend(architectures(&fetcher, of_package, &published, &*reporter).await?);
        }
        rows += of_package.len();
    }
    if let Some(folder) = args.write.as_ref().filter(|_| args.release.is_none()) {
        let drafts =
            RowDrafts { matrix: &known, fetcher: &fetcher, index: &index, folder, reporter: &*reporter };
        for (package, of_package) in coupled(matrix, &packages) {
            // Most are on their project's page alone.
            let Some(page) = page(&fetcher, &index.join(&format!("{package}/")), package).await? else {
                continue;
            };
            let new = drafts.of_coupled(package, &of_package, &page).await;
            drafted.entry("companions").or_default().extend(new);
        }
    }
    for (package, framework) in without_rows(matrix, args, &packages) {
        let address = index.join(&format!("{package}/"));
        let Some(page) = page(&fetcher, &address, package).await? else { continue };
        let releases = releases(&page, &address);
        if releases.is_empty() {
            return Err(PackagesError::Page { package: package.to_owned() }.into());
        }
        found.extend(missing(matrix, framework, package, &releases));
    }
    let mut written = Vec::new();
    if let Some(folder) = &args.write {
        let matrix = &known;
        let drafts = RowDrafts { matrix, fetcher: &fetcher, index: &index, folder, reporter: &*reporter };
        written = drafts.write(&drafted)?;
    }
    Ok(Comparison { packages: packages.len(), rows, found, written })
}

/// The differences of one package that need no wheel but its metadata.
fn differences(
    args: &RefreshArgs,
    package: &str,
    rows: &[&Variant],
    published: &[Published],
) -> Vec<MatrixDifference> {
    // With one release requested, newer releases are unknown.
    let mut found = findings(package, rows, published);
    found.retain(|one| args.release.is_none() || !matches!(one, MatrixDifference::New { .. }));
    for one in published {
        if let Some((field, row_says, index_says)) = name_contradiction(one) {
            let (row, from) = (one.wheel.file.clone(), "METADATA of the same wheel".to_owned());
            found.push(MatrixDifference::Differs { row, field, row_says, index_says, from });
        }
    }
    found
}

/// The packages of the requested frameworks that carry no row, with their framework: their releases need a reason, too.
fn without_rows<'a>(
    matrix: &'a Matrix,
    args: &RefreshArgs,
    packages: &BTreeMap<&str, Vec<&Variant>>,
) -> Vec<(&'a str, &'a str)> {
    if args.release.is_some() {
        return Vec::new();
    }
    let frameworks: BTreeSet<_> = packages.values().flatten().map(|row| row.framework.as_str()).collect();
    let products = matrix.products.iter().filter(|row| frameworks.contains(row.framework.as_str()));
    let all = products.flat_map(|row| {
        let names = row.package.iter().chain(&row.other_packages);
        names.map(|package| (package.as_str(), row.framework.as_str()))
    });
    all.filter(|(package, _)| !packages.contains_key(package)).collect()
}

/// The releases of coupled packages that have wheels on the package index, by package, if torch is compared.
fn coupled<'a>(
    matrix: &'a Matrix,
    packages: &BTreeMap<&str, Vec<&Variant>>,
) -> BTreeMap<&'a str, Vec<&'a CoupledRelease>> {
    let mut all: BTreeMap<&str, Vec<&CoupledRelease>> = BTreeMap::new();
    let torch = packages.contains_key("torch");
    for row in matrix.coupled_releases.iter().filter(|row| torch && row.place == WheelPlace::Default) {
        all.entry(&row.package).or_default().push(row);
    }
    all
}

/// The rows of the default channel by the package that carries them.
fn packages<'a>(
    matrix: &'a Matrix,
    args: &RefreshArgs,
) -> Result<BTreeMap<&'a str, Vec<&'a Variant>>, CommandError> {
    let frameworks = &args.frameworks;
    let known: Vec<_> = matrix.products.iter().map(|product| product.framework.as_str()).collect();
    if let Some(other) = frameworks.iter().find(|name| !known.contains(&name.trim_end_matches("-cuda"))) {
        return Err(RefreshError::UnknownFramework { name: other.clone(), known: known.join(", ") }.into());
    }
    let mut packages: BTreeMap<&str, Vec<&Variant>> = BTreeMap::new();
    let wanted = |row: &&Variant| {
        frameworks.is_empty() || frameworks.iter().any(|name| name.trim_end_matches("-cuda") == row.framework)
    };
    let of_release =
        |row: &&Variant| args.release.as_ref().is_none_or(|release| row.version.to_string() == *release);
    let rows = matrix.variants.iter().filter(wanted).filter(of_release);
    for row in rows.filter(|row| row.channel == Channel::Default) {
        if let Some(package) = matrix.package_of(row) {
            packages.entry(package).or_default().push(row);
        }
    }
    if let Some(release) = args.release.as_ref().filter(|_| packages.is_empty()) {
        return Err(RefreshError::UnknownRelease {
            framework: frameworks.join(", "),
            release: release.clone(),
        }
        .into());
    }
    Ok(packages)
}

/// What the libraries of each row's wheel say against the GPUs it names.
async fn architectures(
    fetcher: &Fetcher,
    rows: &[&Variant],
    published: &[Published],
    reporter: &dyn Reporter,
) -> Result<Vec<MatrixDifference>, CommandError> {
    let mut found = Vec::new();
    for row in rows {
        let Some(one) = published.iter().find(|one| one.wheel.is_of(row)) else { continue };
        let file = &one.wheel.file;
        reporter.report(Event::Note { text: format!("reading the libraries of {file}") });
        match targets(fetcher, &one.wheel).await {
            Ok(targets) => found.extend(target_findings(row, file, &targets)),
            Err(why) => {
                let text = format!("cannot read the GPU architectures of {file}: {}", ToolOutput::of(&why));
                reporter.report(Event::Warning { text });
            }
        }
    }
    Ok(found)
}

/// The page of a package, or `None` without such a project.
async fn page(fetcher: &Fetcher, address: &Address, package: &str) -> Result<Option<String>, CommandError> {
    match fetcher.document(address, PAGE_LIMIT).await {
        Ok(text) => Ok(Some(String::from_utf8_lossy(&text).into_owned())),
        Err(FetchError::NotFound { .. }) => Ok(None),
        Err(FetchError::Status { status, .. }) if status.starts_with("401") || status.starts_with("403") => {
            Err(PackagesError::IndexAccess { cause: ToolOutput::of(&status) }.into())
        }
        Err(error) => {
            let cause = ToolOutput::of(&error.to_string());
            Err(PackagesError::Index { package: Some(package.to_owned()), cause }.into())
        }
    }
}

/// The wheels of a package, with the metadata of one wheel of each release and processor that a row names, and of what is newer.
async fn published(
    fetcher: &Fetcher,
    (page, address): (&str, &Address),
    package: &str,
    rows: &[&Variant],
    reporter: &dyn Reporter,
) -> Result<Vec<Published>, CommandError> {
    if page.is_empty() {
        return Ok(Vec::new());
    }
    let all = listed(page, address);
    if all.is_empty() {
        return Err(PackagesError::Page { package: package.to_owned() }.into());
    }
    let mut seen = BTreeSet::new();
    // One wheel of each release and processor is enough: its pins do not depend on the Python.
    let chosen: Vec<_> = all
        .into_iter()
        .map(|wheel| {
            let release = (wheel.name.version.clone(), wheel.name.machines().collect::<Vec<_>>());
            let read = is_read(&wheel, rows) && seen.insert(release);
            (wheel, read)
        })
        .collect();
    let with_metadata = |(wheel, read): (IndexWheel, bool)| async move {
        if !read {
            return Published { wheel, metadata: None };
        }
        let metadata = metadata(fetcher, &wheel).await;
        if let Err(why) = &metadata {
            let why = ToolOutput::of(why);
            let text = format!("cannot read the metadata of {}: {why}; pins are not compared", wheel.file);
            reporter.report(Event::Warning { text });
        }
        Published { wheel, metadata: metadata.ok() }
    };
    Ok(stream::iter(chosen).map(with_metadata).buffered(PARALLEL).collect().await)
}

/// True if a row that pins libraries, or a newer release, makes the metadata of this wheel worth reading.
fn is_read(wheel: &IndexWheel, rows: &[&Variant]) -> bool {
    let version = &wheel.name.version;
    let pins = |row: &&&Variant| {
        row.cudnn.is_some() || row.nccl.is_some() || row.cudart.is_some() || row.triton.is_some()
    };
    if rows.iter().any(|row| row.version.to_string() == *version) {
        return rows.iter().filter(pins).any(|row| wheel.is_of(row));
    }
    wheel.name.machines().next().is_some() && newer(wheel, rows).is_some()
}

/// Why the matrix cannot be compared.
#[derive(Debug, thiserror::Error)]
enum RefreshError {
    /// No package index is configured.
    #[error("no package index configured to compare the matrix with")]
    IndexUnset,
    /// The framework is not in the matrix.
    #[error("unknown framework `{name}` (known: {known})")]
    UnknownFramework { name: String, known: String },
    /// No row of the default channel has that release.
    #[error("{framework} {release} is not in the default channel")]
    UnknownRelease { framework: String, release: String },
}

impl Failure for RefreshError {
    fn exit(&self) -> Exit {
        Exit::Usage
    }

    fn hints(&self) -> Vec<String> {
        vec![match self {
            Self::IndexUnset => {
                "set `[index] default` in the configuration, or ENVFORGE_INDEX, to its simple address"
                    .to_owned()
            }
            Self::UnknownFramework { .. } | Self::UnknownRelease { .. } => {
                "run `envforge list` for the known releases".to_owned()
            }
        }]
    }
}
