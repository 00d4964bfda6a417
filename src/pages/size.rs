//! The size of an image: treemaps of its components and of its device code, and the same as tables.

use serde::Serialize;

use super::document::Document;
use super::treemap::{Tile, squarified};
use crate::model::byte_size::{percent, readable};
use crate::model::image::device_code::DeviceCode;

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 380.0;

/// An image with its components.
#[derive(Debug, Clone, Copy)]
pub struct SizedImage<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its size in bytes.
    pub size: u64,
    /// The bytes that no other image has.
    pub own: u64,
    /// Its components.
    pub components: &'a [SizedComponent<'a>],
}

/// One component of an image.
#[derive(Debug, Clone, Copy)]
pub struct SizedComponent<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its size in bytes.
    pub size: u64,
    /// How many other images have it.
    pub shared_with: usize,
}

#[derive(Serialize)]
struct SizePage<'a> {
    name: &'a str,
    total: String,
    own: String,
    width: f64,
    height: f64,
    components: Treemap<'a>,
    rows: Vec<Row<'a>>,
    code: Treemap<'a>,
    code_total: String,
    code_percent: String,
    targets: Vec<String>,
    libraries: Vec<LibraryRow<'a>>,
}

#[derive(Serialize)]
struct Treemap<'a> {
    label: &'a str,
    tiles: Vec<NamedTile>,
}

#[derive(Serialize)]
struct NamedTile {
    name: String,
    size: String,
    percent: String,
    x: f64,
    y: f64,
    width: f64,
    height: f64,
    /// Whether its name fits in it.
    named: bool,
}

#[derive(Serialize)]
struct Row<'a> {
    name: &'a str,
    size: u64,
    readable: String,
    percent: String,
    shared_with: usize,
}

#[derive(Serialize)]
struct LibraryRow<'a> {
    path: &'a str,
    readable: String,
    /// By the targets of the page; nothing where it has no code.
    code: Vec<Option<String>>,
    unknown: Option<&'a str>,
}

/// Returns the page of an image.
pub fn size_page(image: &SizedImage<'_>, code: &DeviceCode) -> String {
    let SizedImage { name, size, own, components } = *image;
    let sum: u64 = components.iter().map(|one| one.size).sum();
    let rows = components.iter().map(|one| {
        let SizedComponent { name, size, shared_with } = *one;
        Row { name, size, readable: readable(size), percent: percent(size, sum), shared_with }
    });
    let libraries = code.libraries.iter().map(|library| LibraryRow {
        path: &library.path,
        readable: readable(library.bytes()),
        code: code
            .targets
            .keys()
            .map(|target| library.code.get(target).map(|bytes| readable(*bytes)))
            .collect(),
        unknown: library.unknown.as_deref(),
    });
    let title = format!("{name}: size by component and GPU");
    let document =
        Document { template: "size.html.j2", title: &title, source: "envforge size --json (--by gpu)" };
    let named = components.iter().map(|one| (one.name.to_owned(), one.size)).collect();
    let targets = code.targets.iter().map(|(target, bytes)| (target.to_string(), *bytes)).collect();
    document.write(&SizePage {
        name,
        total: readable(size),
        own: readable(own),
        width: WIDTH,
        height: HEIGHT,
        components: Treemap { label: "components", tiles: tiles(named) },
        rows: rows.collect(),
        code: Treemap { label: "GPU architectures", tiles: tiles(targets) },
        code_total: readable(code.bytes()),
        code_percent: percent(code.bytes(), size),
        targets: code.targets.keys().map(ToString::to_string).collect(),
        libraries: libraries.collect(),
    })
}

/// A tile for each part with bytes, largest first.
fn tiles(mut parts: Vec<(String, u64)>) -> Vec<NamedTile> {
    let sum: u64 = parts.iter().fold(0, |sum, (_, size)| sum.saturating_add(*size));
    parts.retain(|(_, size)| *size > 0);
    parts.sort_by(|(a, of_a), (b, of_b)| (of_b, a).cmp(&(of_a, b)));
    #[expect(clippy::cast_precision_loss, reason = "for a picture")]
    let sizes: Vec<_> = parts.iter().map(|(_, size)| *size as f64).collect();
    let free = Tile { x: 0.0, y: 0.0, width: WIDTH, height: HEIGHT };
    let named = parts.into_iter().zip(squarified(&sizes, free)).map(|((name, size), tile)| NamedTile {
        named: tile.height > 26.0
            && tile.width > 16.0 + 7.6 * f64::from(u32::try_from(name.chars().count()).unwrap_or(u32::MAX)),
        name,
        size: readable(size),
        percent: percent(size, sum),
        x: rounded(tile.x),
        y: rounded(tile.y),
        width: rounded(tile.width),
        height: rounded(tile.height),
    });
    named.collect()
}

/// Tenths of a pixel: enough, and the same digits everywhere.
fn rounded(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}
