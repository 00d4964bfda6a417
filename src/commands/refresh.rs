//! `compat refresh`: the matrix's rows beside what the package index says today.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::stream::{self, StreamExt as _};
use serde_json::json;

use crate::failure::{Exit, Failure};
use crate::fetch::{FetchError, Fetcher};
use crate::model::address::Address;
use crate::model::compat::Matrix;
use crate::model::compat::tables::{Channel, Variant};
use crate::model::request;
use crate::model::versions::FrameworkVersion;
use crate::packages::{PackagesError, ToolOutput};
use crate::refresh::{
    IndexWheel, MatrixDifference, Published, findings, listed, metadata, missing, name_contradiction, newer,
    package_of, target_findings, targets,
};
use crate::report::{Event, Printer, Reporter, reporter};
use crate::settings::Settings;
use crate::workflow::error::CommandError;
use crate::workflow::refresh_rows::RowDrafts;
use crate::workflow::session::downloads;

/// More than any page of an index.
const PAGE_LIMIT: u64 = 64 << 20;
/// Wheels asked at a time.
const PARALLEL: usize = 8;

pub(super) async fn refresh(
    args: &request::CompatRefresh,
    settings: &Settings,
) -> Result<Exit, CommandError> {
    let matrix = Matrix::current();
    let packages = packages(matrix, args)?;
    let (fetcher, index) = downloads(settings)?;
    let index = index.default.ok_or(RefreshError::IndexUnset)?;
    let reporter = reporter(settings.output);
    let (mut found, mut rows) = (Vec::new(), 0);
    for (package, of_package) in &packages {
        let published = published(&fetcher, &index, package, of_package, &*reporter).await?;
        // Of one release alone it is not known what is newer than all.
        let told = findings(package, of_package, &published).into_iter();
        found.extend(
            told.filter(|one| args.release.is_none() || !matches!(one, MatrixDifference::New { .. })),
        );
        if args.release.is_none() {
            found.extend(missing(package, &known_versions(matrix, of_package), &published));
        }
        for one in &published {
            if let Some((field, row_says, index_says)) = name_contradiction(one) {
                let (row, from) = (one.wheel.file.clone(), "METADATA of the same wheel".to_owned());
                found.push(MatrixDifference::Differs { row, field, row_says, index_says, from });
            }
        }
        if let Some(folder) = &args.write {
            let drafts = RowDrafts { fetcher: &fetcher, folder, reporter: &*reporter };
            drafts.append(package, of_package, &published).await?;
        }
        if args.architectures {
            found.extend(architectures(&fetcher, of_package, &published, &*reporter).await?);
        }
        rows += of_package.len();
    }
    if settings.output.json {
        Printer.json(&json!({ "schema": 1, "edition": matrix.edition, "rows": rows, "findings": found }));
    } else {
        for one in &found {
            Printer.text(&one.to_string());
        }
        let new = found.iter().filter(|one| matches!(one, MatrixDifference::New { .. })).count();
        let differ = found.len() - new;
        Printer.text(&format!(
            "matrix {}: {rows} rows of {} packages compared, {differ} differences, {new} new releases",
            matrix.edition,
            packages.len()
        ));
    }
    Ok(if found.is_empty() { Exit::Done } else { Exit::No })
}

/// The versions of the framework with rows, or with a reason for their absence.
fn known_versions(matrix: &Matrix, of_package: &[&Variant]) -> BTreeSet<FrameworkVersion> {
    let framework = of_package.first().map_or("", |row| row.framework.as_str());
    let rows = matrix.variants.iter().filter(|row| row.framework == framework).map(|row| &row.version);
    rows.chain(matrix.known_versions_of(framework).map(|row| &row.version)).cloned().collect()
}

/// The rows of the default channel by the package that carries them.
fn packages<'a>(
    matrix: &'a Matrix,
    args: &request::CompatRefresh,
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
        if let Some(package) = package_of(matrix, row) {
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

/// The wheels of a package, with the metadata of one wheel of each release and processor that a row names, and of what is newer.
async fn published(
    fetcher: &Fetcher,
    index: &Address,
    package: &str,
    rows: &[&Variant],
    reporter: &dyn Reporter,
) -> Result<Vec<Published>, CommandError> {
    let page = index.join(&format!("{package}/"));
    let text = match fetcher.document(&page, PAGE_LIMIT).await {
        Ok(text) => text,
        // No project: every row of it differs.
        Err(FetchError::NotFound { .. }) => return Ok(Vec::new()),
        Err(FetchError::Status { status, .. }) if status.starts_with("401") || status.starts_with("403") => {
            return Err(PackagesError::IndexAccess { cause: ToolOutput::of(&status) }.into());
        }
        Err(error) => {
            let cause = ToolOutput::of(&error.to_string());
            return Err(PackagesError::Index { package: Some(package.to_owned()), cause }.into());
        }
    };
    let all = listed(&String::from_utf8_lossy(&text), &page);
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
