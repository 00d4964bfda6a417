//! Rules about what exists: names, versions, published variants.

use std::fmt::Write as _;

use crate::compat::tables::{KnownVersion, Product, SourceFloor, Status, Variant};
use crate::resolve::candidate::{Question, package};
use crate::resolve::refusal::Refused;
use crate::resolve::rule::Rule;
use crate::spec::CudaWish;
use crate::versions::FrameworkVersion;

/// How many names or versions a refusal offers.
const NEAREST: usize = 3;

/// The product the spec names, if the matrix has rows of it.
pub(crate) fn known_product<'a>(question: &Question<'a>) -> Result<&'a Product, Vec<Refused>> {
    let name = question.spec.name.as_str();
    let matrix = question.matrix;
    let text = match matrix.product(name) {
        Some(product) if matrix.variants.iter().any(|row| row.framework == product.framework) => {
            return Ok(product);
        }
        Some(_) => format!("`{name}` is a product, but this edition of the matrix holds no rows of it"),
        None => {
            let near = nearest_products(question);
            let meant = near.first().map(|near| format!("; did you mean `{}`?", near.name));
            format!("no product is called `{name}`{}", meant.unwrap_or_default())
        }
    };
    let mut with_rows: Vec<_> = matrix
        .products
        .iter()
        .filter(|product| matrix.variants.iter().any(|row| row.framework == product.framework))
        .map(|product| product.name.as_str())
        .collect();
    with_rows.sort_unstable();
    let text = format!("{text}; the matrix has rows of {}", with_rows.join(", "));
    Err(vec![Refused::new(Rule::UnknownName, text, &format!("matrix {}", matrix.edition))])
}

/// Products whose name or alias is near what was typed, nearest first.
pub(crate) fn nearest_products<'a>(question: &Question<'a>) -> Vec<&'a Product> {
    let typed = question.spec.name.as_str();
    let far = |product: &Product| {
        let names = std::iter::once(&product.name).chain(&product.aliases);
        names.map(|name| strsim::osa_distance(name, typed)).min().unwrap_or(usize::MAX)
    };
    let mut near: Vec<_> = question.matrix.products.iter().map(|product| (far(product), product)).collect();
    near.retain(|(distance, product)| *distance <= (product.name.len() / 3).min(4));
    near.sort_by(|a, b| (a.0, &a.1.name).cmp(&(b.0, &b.1.name)));
    near.into_iter().map(|(_, product)| product).take(NEAREST).collect()
}

/// The versions of the product that the spec covers, newest first.
pub(crate) fn known_versions<'a>(
    question: &Question<'a>,
    product: &Product,
) -> Result<Vec<&'a FrameworkVersion>, Vec<Refused>> {
    let all = all_versions(question, product);
    let Some(asked) = &question.spec.version else { return Ok(all) };
    let covered: Vec<_> = all.iter().copied().filter(|version| covers(asked, version)).collect();
    if !covered.is_empty() {
        return Ok(covered);
    }
    let name = package(product);
    let matrix = question.matrix;
    let near = nearest_versions(question, product, asked);
    let near = near.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let (text, source) = match known_version(question, product, asked) {
        Some(row) => (
            format!("{name} {} exists, but the matrix has no rows of it: {}", row.version, row.what),
            row.source.clone(),
        ),
        None => (
            match all.last() {
                Some(oldest) if asked < *oldest => {
                    format!("the matrix begins with {name} {oldest} and knows no {asked}")
                }
                _ => format!("the matrix knows no {name} {asked}"),
            },
            format!("matrix {}", matrix.edition),
        ),
    };
    Err(vec![Refused::new(Rule::UnknownVersion, format!("{text}; the nearest are {near}"), &source)])
}

/// What is known of a version without rows.
pub(crate) fn known_version<'a>(
    question: &Question<'a>,
    product: &Product,
    asked: &FrameworkVersion,
) -> Option<&'a KnownVersion> {
    question
        .matrix
        .known_versions
        .iter()
        .filter(|row| row.framework == product.framework)
        .filter(|row| covers(asked, &row.version) || covers(&row.version, asked))
        .max_by(|a, b| a.version.cmp(&b.version))
}

/// True if nobody knows this version, so that the user probably meant another one. A version older than every row is
/// none of these: it may well exist.
pub(crate) fn is_misspelt(question: &Question<'_>, product: &Product, asked: &FrameworkVersion) -> bool {
    let all = all_versions(question, product);
    let known = all.iter().any(|version| covers(asked, version));
    let older = all.last().is_some_and(|oldest| asked < *oldest);
    !known && !older && known_version(question, product, asked).is_none()
}

/// True if `version` is what `asked` names: equal, or beginning with it.
fn covers(asked: &FrameworkVersion, version: &FrameworkVersion) -> bool {
    version.starts_with(asked) || version == asked
}

/// Every version of the product, newest first.
pub(crate) fn all_versions<'a>(question: &Question<'a>, product: &Product) -> Vec<&'a FrameworkVersion> {
    let rows = question.matrix.variants.iter().filter(|row| row.framework == product.framework);
    let mut versions: Vec<_> = rows.map(|row| &row.version).collect();
    versions.sort_by(|a, b| b.cmp(a));
    versions.dedup();
    versions
}

/// The real versions nearest to one that does not exist: by spelling first, then by number.
pub(crate) fn nearest_versions<'a>(
    question: &Question<'a>,
    product: &Product,
    asked: &FrameworkVersion,
) -> Vec<&'a FrameworkVersion> {
    let mut all: Vec<_> = all_versions(question, product);
    let order = all.clone();
    let misspelt = is_misspelt(question, product, asked);
    all.sort_by_key(|version| {
        let between = order.iter().filter(|other| (asked.min(version)..=asked.max(version)).contains(other));
        (if misspelt { version_near(asked, version) } else { 0 }, between.count())
    });
    let mut lines = Vec::new();
    all.retain(|version| {
        let line = (version.major(), version.minor());
        let new = !lines.contains(&line);
        lines.push(line);
        new
    });
    all.truncate(NEAREST);
    all
}

/// How many keystrokes lie between what was typed and a version written as far.
pub(crate) fn version_near(asked: &FrameworkVersion, version: &FrameworkVersion) -> usize {
    let typed = asked.to_string();
    let parts = version.parts();
    (1..=parts.len())
        .map(|count| {
            let text = parts[..count].iter().map(ToString::to_string).collect::<Vec<_>>().join(".");
            strsim::osa_distance(&typed, &text)
        })
        .min()
        .unwrap_or(usize::MAX)
}

/// The CUDA that was named was never published for this version and processor.
pub(crate) fn unpublished(
    question: &Question<'_>,
    product: &Product,
    version: &FrameworkVersion,
    rows: &[&Variant],
) -> Refused {
    let machine = question.target.machine;
    let name = package(product);
    let Some(row) = rows.first() else {
        let text = match releases(question, product, None) {
            Some(span) => {
                format!("{name} {version} has no CUDA build for {machine}; releases that have: {span}")
            }
            None => format!("{name} has no CUDA build for {machine}"),
        };
        let source = question
            .matrix
            .variants
            .iter()
            .filter(|row| row.framework == product.framework && row.version == *version)
            .min_by_key(|row| row.cuda)
            .map_or("", |row| &row.source);
        return Refused::new(Rule::VariantUnpublished, text, source);
    };
    let wish = question.spec.cuda.expect("asked only where a CUDA is named");
    let whole = CudaWish { patch: None, ..wish };
    if let Some(row) = rows.iter().find(|row| whole.covers(row.cuda, &row.toolkit)) {
        let text = format!(
            "{name} {version}+{} is built with CUDA {}, not {}",
            row.cuda,
            row.toolkit,
            wish.dotted()
        );
        return Refused::new(Rule::VariantUnpublished, text, &row.source);
    }
    let mut has: Vec<_> = rows.iter().map(|row| row.cuda).collect();
    has.sort_unstable();
    let has: Vec<_> = has.iter().map(ToString::to_string).collect();
    let mut text =
        format!("{name} {version} was never published for CUDA {}: it has {}", wish.dotted(), has.join(", "));
    match releases(question, product, Some(whole)) {
        Some(span) => write!(text, "; {name} with {whole}: {span}").expect("a String takes all"),
        None => write!(text, "; no {name} was published for it").expect("a String takes all"),
    }
    let mut source = row.source.clone();
    if let Some(floor) = floor_above(question, product, version, whole) {
        write!(text, "; its build accepts CUDA {} and newer only", floor.cuda).expect("a String takes all");
        source = format!("{source}; {}", floor.source);
    }
    Refused::new(Rule::VariantUnpublished, text, &source)
}

/// The oldest CUDA that the build of a version accepts, if the wish is older.
fn floor_above<'a>(
    question: &Question<'a>,
    product: &Product,
    version: &FrameworkVersion,
    wish: CudaWish,
) -> Option<&'a SourceFloor> {
    let minor = u32::from(wish.minor?);
    let line = |row: &&SourceFloor| row.framework == product.framework && version.starts_with(&row.line);
    let floor = question.matrix.source_floors.iter().find(line)?;
    ((u32::from(wish.major), minor) < (floor.cuda.major(), floor.cuda.minor())).then_some(floor)
}

/// The first and last release with a build for this processor (and this CUDA).
fn releases(question: &Question<'_>, product: &Product, wish: Option<CudaWish>) -> Option<String> {
    let rows = question.matrix.variants.iter().filter(|row| {
        row.framework == product.framework
            && row.machine == question.target.machine
            && row.verified
            && wish.is_none_or(|wish| wish.covers(row.cuda, &row.toolkit))
    });
    let mut versions: Vec<_> = rows.map(|row| &row.version).collect();
    versions.sort_unstable();
    let (first, last) = (versions.first()?, versions.last()?);
    Some(if first == last { first.to_string() } else { format!("{first} to {last}") })
}

/// There are builds, but none that is chosen without being named.
pub(crate) fn nothing_to_choose(product: &Product, version: &FrameworkVersion, rows: &[&Variant]) -> Refused {
    let why = |row: &&Variant| {
        let mut words = vec![match row.status {
            Status::Experimental => "experimental",
            Status::Unlisted => "not in the official list",
            Status::Stable | Status::Legacy => "listed",
        }];
        if !row.verified {
            words.push("publication not seen");
        }
        if row.arch.is_none() {
            words.push("GPU code not established");
        }
        format!("{} ({})", row.cuda, words.join(", "))
    };
    let text = format!(
        "{} {version} has only builds that are chosen by name: {}",
        package(product),
        rows.iter().map(why).collect::<Vec<_>>().join(", ")
    );
    Refused::new(Rule::VariantUnpublished, text, rows.first().map_or("", |row| &row.source))
}
