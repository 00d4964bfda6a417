//! The size of an image: a treemap of its components, and the same as a table.

use serde::Serialize;

use super::document::Document;
use super::treemap::{Tile, squarified};

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 380.0;

/// One component of an image.
#[derive(Debug, Clone, Copy)]
pub struct SizedComponent<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its size in bytes.
    pub size: u64,
    /// Its size for people.
    pub readable: &'a str,
    /// How many other images have it.
    pub shared_with: usize,
}

#[derive(Serialize)]
struct SizePage<'a> {
    name: &'a str,
    total: &'a str,
    own: &'a str,
    width: f64,
    height: f64,
    tiles: Vec<NamedTile<'a>>,
    components: Vec<Row<'a>>,
}

#[derive(Serialize)]
struct NamedTile<'a> {
    name: &'a str,
    size: &'a str,
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
    readable: &'a str,
    percent: String,
    shared_with: usize,
}

/// Returns the page of an image; `total` and `own` are sizes for people.
pub fn size_page(name: &str, total: &str, own: &str, components: &[SizedComponent<'_>]) -> String {
    let sum: u64 = components.iter().map(|one| one.size).sum();
    let mut largest: Vec<_> = components.iter().filter(|one| one.size > 0).collect();
    largest.sort_by(|a, b| (b.size, a.name).cmp(&(a.size, b.name)));
    #[expect(clippy::cast_precision_loss, reason = "for a picture")]
    let sizes: Vec<_> = largest.iter().map(|one| one.size as f64).collect();
    let free = Tile { x: 0.0, y: 0.0, width: WIDTH, height: HEIGHT };
    let tiles = largest.iter().zip(squarified(&sizes, free)).map(|(one, tile)| NamedTile {
        name: one.name,
        size: one.readable,
        percent: percent(one.size, sum),
        x: rounded(tile.x),
        y: rounded(tile.y),
        width: rounded(tile.width),
        height: rounded(tile.height),
        named: tile.height > 26.0
            && tile.width
                > 16.0 + 7.6 * f64::from(u32::try_from(one.name.chars().count()).unwrap_or(u32::MAX)),
    });
    let rows = components.iter().map(|one| {
        let SizedComponent { name, size, readable, shared_with } = *one;
        Row { name, size, readable, percent: percent(size, sum), shared_with }
    });
    let title = format!("{name}: size by component");
    let document = Document { template: "size.html.j2", title: &title, source: "envforge size --json" };
    let (tiles, components) = (tiles.collect(), rows.collect());
    document.write(&SizePage { name, total, own, width: WIDTH, height: HEIGHT, tiles, components })
}

/// Tenths of a pixel: enough, and the same digits everywhere.
fn rounded(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

/// Returns a share in tenths of a percent.
fn percent(part: u64, whole: u64) -> String {
    let tenths = u128::from(part) * 1000 / u128::from(whole.max(1));
    format!("{}.{}", tenths / 10, tenths % 10)
}
